package gateway

import (
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// In a session that other replicas serve too, the answer to a question may arrive at a replica
// that has not asked it. The SDK cannot take it there: it numbers its requests for itself, so the
// number may even be that of another question. So most questions belong to a task, which the request's
// ID names:
//
//   - A call that makes a task has its tool's first questions asked by the task.
//   - The task behind a plain call asks on the call's own stream, which the gateway writes to, beside
//     the SDK.
//   - A tool that never runs as a task asks by the SDK, if this process has opened the session. The
//     answer must come to this process. In a session that another process has opened, its questions
//     return ErrCannotAsk: the answer could come to that process, where the SDK's handler may have asked
//     under the same number.

// newCarrier returns the carrier of the questions of a session's call. It returns nil if the SDK asks them, or if
// the call has no stream.
func (g *Gateway) newCarrier(x exchange, s *session, d protocol.Teller) fallback.Carrier {
	post, ok := x.(*httpExchange)
	if !ok || s == nil || s.portable == nil {
		return nil
	}
	response := post.respondToCall()
	if g.config.JSON || !response.streams {
		return nil
	}
	return func(task taskstore.Record) (stop func()) {
		box := g.mailbox(s)
		box.Know(d, task)
		return g.sendQuestions(box.ConnectCall(d, task.ID), task.ID, response.sendAll)
	}
}

// sendQuestions sends a task's questions on the stream of a request until stop is called.
func (g *Gateway) sendQuestions(c *push.Stream, task string, send func([][]byte)) (stop func()) {
	over := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(guard.Func(g.server.Logger(), "the questions on the stream of a request", func() { sendQueued(c, send, over) }))
	return func() {
		g.hub.Refresh(task) // send retractions before the answer
		close(over)
		writer.Wait()
		send(c.Take())
		c.Close()
	}
}
