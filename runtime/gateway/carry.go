package gateway

import (
	"slices"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// The task behind a plain call (fallback=tools) asks by requests that name it and the question, on the call's own
// stream, which the gateway writes to beside the SDK. If the call has none, they are on the session's own stream. The
// answer may come long after the call, and in a session that other replicas serve too it may arrive at a replica that has
// not asked. The SDK could not take it there: it numbers its requests for itself, so the number may even be that of
// another question. So in such a session no question goes through the SDK:
//
//   - A call that makes a task has its tool's first questions asked by the task.
//   - A plain call without a task cannot ask. Its questions return ErrCannotAsk.

// prepareCarrier prepares a call of a session for the questions of the task behind it. s is nil if there is no
// session; nothing is asked then.
func (g *Gateway) prepareCarrier(x exchange, s *session, d protocol.Teller, call *mcptask.CallRequest) fallback.Carrier {
	if s == nil {
		return nil
	}
	if s.portable != nil && call.Mode == mcptask.ModeTask && slices.Contains(s.canAsk, "elicitation/create") {
		call.Later = true
	}
	var response *callResponse // nil on a pipe
	if post, ok := x.(*httpExchange); ok {
		response = post.respondToCall()
	}
	return func(task mcptask.Record) (stop func()) {
		box := g.mailbox(s)
		box.Know(d, task)
		switch {
		case response != nil && response.carriesQuestions() && !g.config.JSON:
			return g.sendQuestions(box.ConnectCall(d, task.ID), task.ID, response.sendAll)
		case box.Listens():
			return func() {}
		}
		return nil
	}
}

// sendQuestions sends a task's questions on the stream of a request until stop is called.
func (g *Gateway) sendQuestions(c *push.Stream, task string, send func([][]byte)) (stop func()) {
	over := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		defer guard.Recover(g.server.Logger(), "the questions on the stream of a request")
		sendQueued(c, send, over)
	})
	return func() {
		g.hub.Refresh(task) // send retractions before the answer
		close(over)
		writer.Wait()
		send(c.Take())
		c.Close()
	}
}
