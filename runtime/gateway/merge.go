package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// merge is a subscriptions/listen that names tasks as well as notifications of the SDK. The client
// gets one stream, one acknowledgement and one answer. The SDK's answer is held back, because it
// comes at once if the SDK has nothing to subscribe to.
type merge struct {
	s            *subscription
	acknowledged bool
	// acked is closed when the subscription is acknowledged. The gateway sends its messages after
	// that. ended is closed when the SDK has answered.
	acked, ended chan struct{}
	answer       *wire.Message // the SDK's; set when ended is closed
}

func newMerge(s *subscription) *merge {
	return &merge{s: s, acked: make(chan struct{}), ended: make(chan struct{})}
}

// answerMergedListen serves a subscription together with the SDK.
func (g *Gateway) answerMergedListen(ctx context.Context, x exchange, s *subscription) (json.RawMessage, error) {
	m := newMerge(s)
	both, cancel := context.WithCancelCause(ctx)
	var failed error
	var following sync.WaitGroup
	following.Go(func() {
		defer guard.Then(g.server.Logger(), "a subscription", func() { cancel(nil) })
		select {
		case <-m.acked:
		case <-both.Done():
			return
		}
		if failed = s.followTasks(both, x.send); failed != nil {
			cancel(errTasksFailed)
		} // if all tasks have ended, the SDK's part goes on
	})
	defer following.Wait()
	defer cancel(nil)
	refused := x.forwardMerged(both, m)
	acked := isClosed(m.acked)
	if !acked { // the SDK has refused, so there is nothing to follow
		cancel(nil)
	}
	following.Wait() // the tasks go on if the SDK has nothing to subscribe to
	switch answered := failed == nil && isClosed(m.ended); {
	case refused:
		return nil, errAnswered
	case ctx.Err() != nil && g.server.Closing().Err() == nil: // the client has disconnected
		return nil, ctx.Err()
	case answered && m.answer.Error != nil:
		return nil, m.answer.Error
	case answered:
		return m.answer.Result, nil
	case acked:
		return s.answer(ctx, failed)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, errAnswered
}

// handleMessage handles a message of the SDK about the subscription, and writes what the client
// gets instead. It returns false for any other message. It is not safe for concurrent use.
func (m *merge) handleMessage(said *wire.Message, write func([]byte)) (taken bool) {
	agree := func(acknowledgement []byte) {
		m.acknowledged = true
		write(acknowledgement)
		close(m.acked)
	}
	switch {
	case said.Method == protocol.Acknowledged:
		if !m.acknowledged {
			agree(m.s.mergeAcknowledgement(said))
		}
	case !said.IsResponse() || said.ID == nil || m.answer != nil:
		return false
	default:
		if said.Error == nil && !m.acknowledged { // mcp-go may answer before it acknowledges
			agree(m.s.encodeAcknowledgement())
		}
		m.answer = said
		close(m.ended)
	}
	return true
}

// takeEvent is handleMessage for the data of one of the SDK's events.
func (m *merge) takeEvent(event []byte, write func([]byte)) bool {
	said, unread := wire.Read(event)
	return unread == nil && m.handleMessage(said, write)
}

// encodeAcknowledgement returns an acknowledgement of the tasks alone.
func (s *subscription) encodeAcknowledgement() []byte {
	data, err := protocol.Server20260728{}.Acknowledged(s.id, s.tasks)
	if err != nil { // cannot happen: an ID and strings always marshal
		return nil
	}
	return data
}

// mergeAcknowledgement returns the SDK's acknowledgement with the tasks added (E-63).
func (s *subscription) mergeAcknowledgement(sdk *wire.Message) []byte {
	tasks, err := json.Marshal(append([]string{}, s.tasks...))
	if err == nil {
		var merged []byte
		if merged, err = sdk.Edited(wire.Set(tasks, "params", "notifications", "taskIds")); err == nil {
			return merged
		}
	}
	s.g.server.Notice(slog.LevelError, "acknowledgement not merged", "error", err)
	return sdk.Bytes()
}

// errTasksFailed ends the SDK's part of a subscription if the tasks cannot be followed.
var errTasksFailed = errors.New("the subscription has ended")

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// forwardMerged implements exchange.
func (x *httpExchange) forwardMerged(ctx context.Context, m *merge) (refused bool) {
	in := newSharedResponse(x.w)
	if x.setBody() != nil {
		return false
	}
	x.out, in.take = in, m.takeEvent
	in.opened = func() {
		in.header.Set("X-Accel-Buffering", "no")
		in.keepAlive(keepAlive)
	}
	x.next().ServeHTTP(in, x.r.WithContext(ctx))
	begun, refused := in.endAnswer()
	if !begun { // the SDK has written nothing, so the answer is not an event
		x.out = nil
	}
	return refused
}

// forwardMerged implements exchange.
func (x *pipeExchange) forwardMerged(ctx context.Context, m *merge) (refused bool) {
	p := x.p
	p.mu.Lock()
	p.merged[wire.IDKey(x.m.ID)] = m // until the SDK's answer, which may come late
	p.mu.Unlock()
	p.sendToSDK(x.m.Bytes())
	if ctx.Err() != nil { // the SDK may have seen the cancellation before the request
		p.sendToSDK(push.Cancelled(x.m.ID, errTasksFailed.Error()))
		return false
	}
	select {
	case <-m.ended:
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errTasksFailed) { // otherwise the client's cancellation has reached the SDK
			p.sendToSDK(push.Cancelled(x.m.ID, errTasksFailed.Error()))
		}
	}
	return false
}

// passMerged handles a message of the SDK about a subscription that the gateway serves too. It
// returns false for any other message.
func (p *pipe) passMerged(said *wire.Message) bool {
	id := said.ID
	switch {
	case said.Method == protocol.Acknowledged:
		id = said.Params.Get("_meta", spec.MetaSubscriptionID)
	case said.Method != "":
		return false
	}
	p.mu.Lock()
	m := p.merged[wire.IDKey(id)]
	if said.Method == "" {
		delete(p.merged, wire.IDKey(id))
	}
	p.mu.Unlock()
	return m != nil && m.handleMessage(said, p.out.put)
}
