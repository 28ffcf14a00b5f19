package gosdk

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/leak"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// A message that the SDK sends after a connection is closed, such as a cancellation, opens no connection that stays.
func TestNothingOpensAfterClose(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		before := leak.Now()
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		dialing, dial := make(chan struct{}, 2), make(chan struct{}, 2)
		closed := make(chan struct{}, 2)
		own := newOwnTransport(&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			dialing <- struct{}{}
			<-dial
			conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", listener.Addr().String())
			if err != nil {
				return nil, err
			}
			return tellsClose{conn, closed}, nil
		}})
		request := func(ctx context.Context) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://server", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			res, err := own.RoundTrip(r)
			if err == nil {
				res.Body.Close()
			}
			return err
		}
		// One message is on its way when the connection is closed.
		ctx, cancel := context.WithCancel(t.Context())
		early := make(chan error, 1)
		go func() { early <- request(ctx) }()
		<-dialing
		own.close()
		cancel()
		if err := <-early; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		// One comes later.
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		late := make(chan error, 1)
		go func() { late <- request(ctx) }()
		select {
		case err := <-late:
			if !errors.Is(err, errClosed) {
				t.Errorf("closed: %v", err)
			}
		case <-dialing:
			t.Error("it opens a connection")
			cancel()
			if err := <-late; err == nil {
				t.Error("it is answered")
			}
			dial <- struct{}{}
		}
		dial <- struct{}{}
		select {
		case <-closed:
		case <-time.After(leak.Patience):
			t.Error("the connection stays open")
		}
		_ = listener.Close()
		before.NoneLeft(t)
	})
}

// tellsClose is a connection that reports that it was closed.
type tellsClose struct {
	net.Conn
	closed chan struct{}
}

// Close implements net.Conn.
func (c tellsClose) Close() error {
	c.closed <- struct{}{}
	return c.Conn.Close()
}
