package gateway

import (
	"context"
	"net/http"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// serveStandalone forwards a session's GET stream and adds the questions of its tasks.
func (g *Gateway) serveStandalone(w http.ResponseWriter, r *http.Request, s *session) {
	if !g.hasTasks(s.revision) && g.unofficial == nil {
		g.forwardStream(g.config.Stateful, w, r)
		return
	}
	var c *push.Stream
	ctx, stop := context.WithCancel(r.Context())
	var writer sync.WaitGroup
	in := newSharedResponse(w)
	in.opened = func() {
		c = g.mailbox(s).ConnectBeside(ctx) // reads tasks while the stream is already open
		writer.Go(guard.Func(g.server.Logger(), "writing to a session's stream", func() { sendQueued(c, in.sendAll, ctx.Done()) }))
	}
	// The response is invalid once the handler has returned.
	defer func() {
		stop()
		writer.Wait()
		in.end()
		if c != nil {
			c.Close()
		}
	}()
	g.forwardStream(g.config.Stateful, in, r)
}

// sendQueued sends the messages of a push stream until done is closed.
func sendQueued(c *push.Stream, send func([][]byte), done <-chan struct{}) {
	for {
		select {
		case <-c.Wake():
			send(c.Take())
		case <-done:
			return
		}
	}
}
