package gateway

import (
	"context"
	"net/http"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// lifetimes holds two contexts that end the streams and the sessions of a server's gateways. They
// end with [StopStreams] and [StopSessions].
type lifetimes struct {
	streams, sessions         context.Context
	stopStreams, stopSessions context.CancelFunc
}

type lifetimesKey struct{}

func lifetimesOf(s *taskserver.Backend) *lifetimes {
	return s.Attached(lifetimesKey{}, func() any {
		l := new(lifetimes)
		l.streams, l.stopStreams = context.WithCancel(context.Background())
		l.sessions, l.stopSessions = context.WithCancel(context.Background())
		return l
	}).(*lifetimes)
}

// StopStreams ends the streams of all gateways of a server that answer no request: the sessions'
// own streams and the SDK's subscriptions. Call it when the server is closed. Streams that are
// opened later end at once. It does not wait, and may be called again. The order is: Close of the server, StopStreams,
// Shutdown of the HTTP server, StopSessions.
func StopStreams(s *taskserver.Backend) { lifetimesOf(s).stopStreams() }

// StopSessions ends the sessions of all gateways of a server, including the SDK's sessions, and its
// pipes. Call it when all requests are answered. Sessions that are opened later end at once. It
// does not wait, and may be called again.
func StopSessions(s *taskserver.Backend) { lifetimesOf(s).stopSessions() }

// forwardStream forwards a request whose stream stays open until the client closes it or
// [StopStreams] is called.
func (g *Gateway) forwardStream(next http.Handler, w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(lifetimesOf(g.server).streams, cancel)()
	next.ServeHTTP(w, r.WithContext(ctx))
}
