package gateway

import (
	"context"
	"net/http"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// lifetimes end what the gateways of a server keep open for clients that may say more:
// each is a context that ends with [StopStreams] or [StopSessions].
type lifetimes struct {
	streams, sessions         context.Context
	stopStreams, stopSessions context.CancelFunc
}

type lifetimesKey struct{}

func lifetimesOf(s *mcptask.Server) *lifetimes {
	return s.Attached(lifetimesKey{}, func() any {
		l := new(lifetimes)
		l.streams, l.stopStreams = context.WithCancel(context.Background())
		l.sessions, l.stopSessions = context.WithCancel(context.Background())
		return l
	}).(*lifetimes)
}

// StopStreams ends the streams that all gateways of a server keep open and that answer
// nothing: those of sessions, and the SDK's subscriptions. Call it when the server is
// closed. A stream that is opened later ends at once. It does not wait, and may be
// called again.
func StopStreams(s *mcptask.Server) { lifetimesOf(s).stopStreams() }

// StopSessions ends the sessions of all gateways of a server, the SDK's with them, and
// its pipes. Call it when the requests in them are answered. A session that is opened
// later ends at once. It does not wait, and may be called again.
func StopSessions(s *mcptask.Server) { lifetimesOf(s).stopSessions() }

// passOpen passes on a request whose stream is open until the client has enough, or
// [StopStreams].
func (g *Gateway) passOpen(next http.Handler, w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(lifetimesOf(g.server).streams, cancel)()
	next.ServeHTTP(w, r.WithContext(ctx))
}
