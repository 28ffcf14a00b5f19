package gosdk

import (
	"net/http"
	"sync/atomic"
)

// ownTransport is the HTTP connections of one Conn, which end with it. The SDK tells the
// server of a cancelled call on a goroutine of its own, perhaps after the end: any such
// request would let net/http keep idle connections again.
type ownTransport struct {
	*http.Transport
	closed atomic.Bool
}

func newOwnTransport(t *http.Transport) *ownTransport { return &ownTransport{Transport: t} }

// RoundTrip implements http.RoundTripper.
func (t *ownTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.closed.Load() {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errClosed
	}
	res, err := t.Transport.RoundTrip(r)
	if t.closed.Load() { // meanwhile
		t.CloseIdleConnections()
	}
	return res, err
}

// close closes connections now or, those in use, when their requests are over.
func (t *ownTransport) close() {
	t.closed.Store(true)
	t.CloseIdleConnections()
}
