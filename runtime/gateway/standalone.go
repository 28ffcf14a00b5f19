package gateway

import (
	"context"
	"net/http"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// serveStream forwards a session's GET stream and adds the messages of the session's mailbox. resumed says that the GET
// resumes the stream of a call, from the events that the SDK has stored. Then the response begins soon, because the SDK
// would wait for the next event.
func (g *Gateway) serveStream(w http.ResponseWriter, r *http.Request, s *session, resumed bool) {
	response, spare := newSharedResponse(w), resumed || !g.hasTasks(s.revision) && g.unofficial == nil
	var c *push.Stream
	ctx, stop := context.WithCancel(r.Context())
	var writer sync.WaitGroup
	response.opened = func() {
		c = g.mailbox(s).ConnectBeside(ctx, spare) // reads tasks while the stream is already open
		writer.Go(guard.Func(g.server.Logger(), "writing to a session's stream", func() { sendQueued(ctx, c, response.sendAll) }))
	}
	if resumed {
		response.startKeepAlive()
	}
	// The response is invalid once the handler has returned.
	defer func() {
		stop()
		response.end()
		writer.Wait()
		if c != nil {
			c.Close()
		}
	}()
	g.forwardStream(g.config.Stateful, response, r)
	response.WriteHeader(http.StatusOK) // unless the SDK has begun it: there may be no event left
}

// sendQueued sends the messages of a push stream until ctx ends.
func sendQueued(ctx context.Context, c *push.Stream, send func([][]byte)) {
	for {
		select {
		case <-c.Wake():
			if ctx.Err() != nil {
				return // another stream sends them
			}
			send(c.Take())
		case <-ctx.Done():
			return
		}
	}
}
