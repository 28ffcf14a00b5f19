package gosdk

import (
	"net/http"
	"sync/atomic"
)

// ownTransport holds the HTTP connections of one Conn and closes them with it. The SDK reports a
// cancelled call on a goroutine of its own, perhaps after the Conn is closed. ownTransport refuses
// such a late request, because net/http would keep its connection open.
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

// close closes the idle connections. A connection in use closes when its request ends. A nil
// ownTransport has none.
func (t *ownTransport) close() {
	if t == nil {
		return
	}
	t.closed.Store(true)
	t.CloseIdleConnections()
}
