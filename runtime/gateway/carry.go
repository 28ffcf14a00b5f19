package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The task behind a plain call asks on the call's own stream, which the gateway writes to, beside the SDK. The ID of the
// request names the task, so the answer may arrive at any replica. If the answer to the call has no stream, or the client's
// connection has broken, the session's own stream carries the question, or the one that resumes the call's.
//
// A call without a task behind it asks there too, under an ID that only this process knows. So the answer must come to this
// process. In a session that another process has opened, such a question returns ErrCannotAsk: the answer could come to that
// process. A call that makes a task there has its tool's first questions asked by the task.

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

// newAsk returns the function that asks the questions of a session's call that has no task.
func (g *Gateway) newAsk(x exchange, s *session, caller taskserver.Caller, send func([][]byte), isOpen bool) func(context.Context, mcptask.Request) (json.RawMessage, error) {
	client := x.context()
	return func(ctx context.Context, in mcptask.Request) (json.RawMessage, error) {
		if !g.canAsk(client, s, isOpen) {
			return nil, fmt.Errorf("%w: its client has left, or has opened no stream for the question", mcptask.ErrCannotAsk)
		}
		id, responses := "mcptask-ask-"+rand.Text(), make(chan *message, 1)
		question, err := push.EncodeRequest(id, in.Method, in.Params)
		if err != nil {
			return nil, err
		}
		defer g.sessions.expect(s, id, func(m *message) { responses <- m })()
		say := func(data []byte) {
			if isOpen && client.Err() == nil {
				send([][]byte{data})
			} else {
				g.mailbox(s).Post(id, data)
			}
		}
		say(question)
		select {
		case m := <-responses:
			response, failed := limitAnswer(ctx, g.server, caller, m.Result, m.Error)
			if failed != nil {
				return nil, failed
			}
			return response, nil
		case <-ctx.Done():
			if !g.mailbox(s).Retract(id) {
				say(push.Cancelled(id, "the call no longer waits for the answer"))
			}
			return nil, context.Cause(ctx)
		}
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
