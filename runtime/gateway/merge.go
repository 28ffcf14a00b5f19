package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// merge is a subscriptions/listen that names tasks as well as what the SDK serves: one
// stream, one acknowledgement, one end. The SDK's answer is held back, because it comes
// at once if the SDK agrees to nothing.
type merge struct {
	s      *subscription
	agreed bool
	// acked is closed when the subscription is acknowledged; nothing of ours may
	// come before. ended is closed when the SDK has answered.
	acked, ended chan struct{}
	answer       *wire.Message // the SDK's; set when ended is closed
}

func newMerge(s *subscription) *merge {
	return &merge{s: s, acked: make(chan struct{}), ended: make(chan struct{})}
}

// hear deals with what the SDK says of the subscription, and writes what the client is to get in
// its place. It returns false for any other message. It is not safe for concurrent use.
func (m *merge) hear(said *wire.Message, write func([]byte)) (taken bool) {
	agree := func(acknowledgement []byte) {
		m.agreed = true
		write(acknowledgement)
		close(m.acked)
	}
	switch {
	case said.Method == dialect.Acknowledged:
		if !m.agreed {
			agree(m.s.acknowledgedBy(said))
		}
	case !said.IsResponse() || said.ID == nil || m.answer != nil:
		return false
	default:
		if said.Error == nil && !m.agreed { // mcp-go may answer before it acknowledges
			agree(m.s.acknowledged())
		}
		m.answer = said
		close(m.ended)
	}
	return true
}

// acknowledged is the acknowledgement of the tasks alone.
func (s *subscription) acknowledged() []byte {
	data, err := dialect.Server20260728{}.Acknowledged(s.id, s.tasks)
	if err != nil { // an ID and strings are JSON
		return nil
	}
	return data
}

// acknowledgedBy adds the tasks to the SDK's acknowledgement (E-63).
func (s *subscription) acknowledgedBy(sdk *wire.Message) []byte {
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

// errTasksFailed ends the SDK's part of a subscription whose tasks cannot be followed.
var errTasksFailed = errors.New("the subscription has ended")

// listenMerged serves a subscription through the SDK.
func (g *Gateway) listenMerged(ctx context.Context, x exchange, s *subscription) (json.RawMessage, error) {
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
		if failed = s.follow(both, x.send); failed != nil {
			cancel(errTasksFailed)
		} // else the SDK's part goes on
	})
	defer following.Wait()
	defer cancel(nil)
	refused := x.forwardMerged(both, m)
	acked := isClosed(m.acked)
	if !acked { // what the SDK has said is all there is
		cancel(nil)
	}
	following.Wait() // the SDK may have agreed to nothing, and the tasks go on
	switch answered := failed == nil && isClosed(m.ended); {
	case refused:
		return nil, errAnswered
	case ctx.Err() != nil && g.server.Closing().Err() == nil: // the client has left
		return nil, ctx.Err()
	case answered && m.answer.Error != nil:
		return nil, m.answer.Error
	case answered:
		return m.answer.Result, nil
	case acked:
		return s.end(ctx, failed)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, errAnswered
}

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
	in := &merger{w: x.w, m: m}
	in.out.stream = &stream{w: x.w, flush: http.NewResponseController(x.w).Flush}
	if x.setBody() != nil {
		return false
	}
	x.out = &in.out
	x.next().ServeHTTP(in, x.r.WithContext(ctx))
	begun, refused := in.end()
	if !begun { // the answer is no event then
		x.out = nil
	}
	return refused
}

// merger is the response that the SDK writes its part of a merged subscription to.
type merger struct {
	w http.ResponseWriter
	m *merge

	out   shared // its lock guards all that follows, and every write
	begun bool
	isSSE bool
	over  bool
	part  []byte // of an event that is not complete
}

// Header implements http.ResponseWriter.
func (m *merger) Header() http.Header { return m.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (m *merger) WriteHeader(code int) {
	m.out.mu.Lock()
	defer m.out.mu.Unlock()
	m.begin(code)
}

// begin finds out whether the SDK answers with a stream. m.out.mu is held.
func (m *merger) begin(code int) {
	if m.begun || m.over {
		return
	}
	m.begun = true
	m.isSSE = code == http.StatusOK && strings.HasPrefix(m.w.Header().Get("Content-Type"), "text/event-stream")
	if m.isSSE {
		m.w.Header().Set("X-Accel-Buffering", "no")
	}
	m.w.WriteHeader(code)
}

// Write implements http.ResponseWriter: it takes events and passes them on whole.
func (m *merger) Write(data []byte) (int, error) {
	m.out.mu.Lock()
	defer m.out.mu.Unlock()
	if m.over {
		return len(data), nil // what comes after the end is for nobody
	}
	m.begin(http.StatusOK)
	if !m.isSSE {
		return m.w.Write(data)
	}
	m.part = append(m.part, data...)
	for {
		event, rest, ok := wire.CutEvent(m.part)
		if !ok {
			return len(data), nil
		}
		said, _, unread := wire.Read(event.Data())
		if unread != nil || said == nil || !m.m.hear(said, m.out.stream.message) {
			_, _ = m.w.Write(m.part[:len(m.part)-len(rest)]) // a client that has left
			_ = http.NewResponseController(m.w).Flush()
		}
		m.part = bytes.Clone(rest)
	}
}

// Flush implements http.Flusher.
func (m *merger) Flush() {
	m.out.mu.Lock()
	defer m.out.mu.Unlock()
	if !m.over {
		_ = http.NewResponseController(m.w).Flush() // a client that has left
	}
}

// end closes the stream for the SDK. It returns whether the SDK has written anything, and whether that is
// something else than a stream.
func (m *merger) end() (begun, refused bool) {
	m.out.mu.Lock()
	defer m.out.mu.Unlock()
	m.over = true
	return m.begun, m.begun && !m.isSSE
}

// forwardMerged implements exchange.
func (x *pipeExchange) forwardMerged(ctx context.Context, m *merge) (refused bool) {
	p := x.p
	p.mu.Lock()
	p.merged[wire.IDKey(x.m.ID)] = m // until the SDK's answer, which may come late
	p.mu.Unlock()
	p.pass(x.m.Bytes())
	if ctx.Err() != nil { // the SDK may have heard of the end before the beginning
		p.pass(push.Cancelled(x.m.ID, errTasksFailed.Error()))
		return false
	}
	select {
	case <-m.ended:
	case <-ctx.Done():
		if errors.Is(context.Cause(ctx), errTasksFailed) { // else the client has told the SDK
			p.pass(push.Cancelled(x.m.ID, errTasksFailed.Error()))
		}
	}
	return false
}

// passMerged deals with what the SDK says of a subscription that is served here
// too; false is anything else.
func (p *pipe) passMerged(said *wire.Message) bool {
	id := said.ID
	switch {
	case said.Method == dialect.Acknowledged:
		id = said.Params.Get("_meta", mcptask.MetaSubscriptionID)
	case said.Method != "":
		return false
	}
	p.mu.Lock()
	m := p.merged[wire.IDKey(id)]
	if said.Method == "" {
		delete(p.merged, wire.IDKey(id))
	}
	p.mu.Unlock()
	return m != nil && m.hear(said, p.write)
}
