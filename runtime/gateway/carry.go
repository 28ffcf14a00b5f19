package gateway

import (
	"context"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The task behind a plain call asks on the call's own stream, which the gateway writes to, beside the SDK. The ID of the
// request names the task, so the answer may arrive at any replica. If the answer to the call has no stream, or the client's
// connection has broken, the session's own stream carries the question, or the one that resumes the call's.
//
// A call without a task behind it asks by the SDK, which numbers its requests for itself. So the answer must come to this
// process. In a session that another process has opened, such a question returns ErrCannotAsk: the answer could come to that
// process, where the SDK's handler may have asked under the same number. A call that makes a task there has its tool's first
// questions asked by the task.

// newCarrier returns the carrier of the questions of a session's call. send sends messages before the answer to the call.
// isOpen is false if the answer has no stream.
func (g *Gateway) newCarrier(x exchange, s *session, d protocol.Teller, send func([][]byte), isOpen bool) fallback.Carrier {
	client := x.context() // forward changes x
	return func(task taskstore.Record, giveUp func()) (stop func()) {
		if !g.canAsk(client, s, isOpen) {
			return nil
		}
		c := g.mailbox(s).ConnectCall(d, task, giveUp, isOpen && client.Err() == nil)
		left := context.AfterFunc(client, guard.Func(g.server.Logger(), "a call whose client has left", c.Interrupt))
		end := g.sendQuestions(client, c, task.ID, send)
		return func() { left(); end() }
	}
}

// canAsk reports whether there is a stream for the questions of a call, or the client may open one.
func (g *Gateway) canAsk(client context.Context, s *session, isOpen bool) bool {
	return isOpen && (client.Err() == nil || g.config.Resumes) || g.mailbox(s).HasStream()
}

// sendQuestions sends a task's questions on the stream of a request until stop is called, or the client has left.
func (g *Gateway) sendQuestions(client context.Context, c *push.Stream, task string, send func([][]byte)) (stop func()) {
	ctx, over := context.WithCancel(client)
	var writer sync.WaitGroup
	writer.Go(guard.Func(g.server.Logger(), "the questions on the stream of a request", func() { sendQueued(ctx, c, send) }))
	return func() {
		g.hub.Refresh(task) // send retractions before the answer
		over()
		writer.Wait()
		if client.Err() == nil {
			send(c.Take())
		}
		c.Close()
	}
}
