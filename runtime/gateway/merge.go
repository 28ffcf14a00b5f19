package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// merger lets the SDK answer a subscriptions/listen that names tasks as well as
// what the SDK serves: one stream, one acknowledgement, one end. The SDK's answer
// is held back, because it comes at once where the SDK agrees to nothing.
type merger struct {
	w http.ResponseWriter
	s *subscription
	// acked is closed when the subscription is acknowledged; nothing of ours may
	// come before.
	acked chan struct{}

	out    shared // its lock guards all that follows, and every write
	begun  bool
	isSSE  bool
	over   bool
	agreed bool
	part   []byte // of an event that is not complete
	answer []byte // the SDK's, held back
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
		event, rest, ok := bytes.Cut(m.part, []byte("\n\n"))
		if !ok {
			return len(data), nil
		}
		m.event(event)
		m.part = bytes.Clone(rest)
	}
}

// event passes one event on, unless it is the answer. m.out.mu is held.
func (m *merger) event(event []byte) {
	var data []byte
	for line := range bytes.Lines(event) {
		if text, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimSpace(text)...)
		}
	}
	var said message
	switch err := json.Unmarshal(data, &said); {
	case err == nil && said.Method == "" && said.ID != nil:
		m.answer = data
		if said.Error == nil && !m.agreed { // mcp-go may answer before it acknowledges
			m.acknowledge(m.s.acknowledged())
		}
	case err == nil && said.Method == dialect.Acknowledged:
		if !m.agreed {
			m.acknowledge(m.s.acknowledgedBy(data))
		}
	default:
		_, _ = m.w.Write(append(event, "\n\n"...)) // a client that has left
		_ = http.NewResponseController(m.w).Flush()
	}
}

// acknowledge lets the tasks follow. m.out.mu is held.
func (m *merger) acknowledge(data []byte) {
	m.agreed = true
	m.out.stream.message(data)
	close(m.acked)
}

// Flush implements http.Flusher.
func (m *merger) Flush() {
	m.out.mu.Lock()
	defer m.out.mu.Unlock()
	if !m.over {
		_ = http.NewResponseController(m.w).Flush() // a client that has left
	}
}

// end closes the stream for the SDK and returns what it has answered.
func (m *merger) end() (answer []byte) {
	m.out.mu.Lock()
	defer m.out.mu.Unlock()
	m.over = true
	return m.answer
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
func (s *subscription) acknowledgedBy(sdk []byte) []byte {
	tasks, err := json.Marshal(append([]string{}, s.tasks...))
	if err == nil {
		var merged json.RawMessage
		if merged, err = setMember(sdk, []string{"params", "notifications", "taskIds"}, tasks); err == nil {
			return merged
		}
	}
	s.g.server.Notice(slog.LevelError, "acknowledgement not merged", "error", err)
	return sdk
}

// mergedListen serves a subscription through the SDK. cancel ends ctx.
func (g *Gateway) mergedListen(ctx context.Context, cancel context.CancelFunc, w http.ResponseWriter, r *http.Request, s *subscription) {
	in := &merger{w: w, s: s, acked: make(chan struct{})}
	in.out.stream = &stream{w: w, flush: http.NewResponseController(w).Flush}
	followed := make(chan error, 1)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	following.Go(func() {
		defer guard.Then(g.server.Logger(), "a subscription", cancel)
		defer close(followed)
		select {
		case <-in.acked:
		case <-ctx.Done():
			return
		}
		defer in.out.keepAlive()()
		err := s.follow(ctx, in.out.message)
		followed <- err
		if err == nil {
			<-ctx.Done() // the SDK's part goes on
		}
		cancel()
	})
	g.config.Stateless.ServeHTTP(in, r.WithContext(ctx))
	select {
	case <-in.acked:
	default: // refused, or the client has left: what the SDK said is all there is
		if answer := in.end(); answer != nil {
			in.out.message(answer)
		}
		return
	}
	err := <-followed // the SDK may have agreed to nothing, and the tasks go on
	cancel()
	following.Wait()
	answer := in.end()
	if r.Context().Err() != nil {
		return
	}
	if answer == nil || err != nil {
		result, err := s.end(err)
		answer = encodeReply(s.id, result, nil)
		if err != nil {
			answer = encodeReply(s.id, nil, wireError(err))
		}
	}
	in.out.message(answer)
}

// merge is a subscription on a pipe that the SDK serves too.
type merge struct {
	s      *subscription
	acked  chan struct{}
	agreed bool
	answer chan *message // has room for the one that comes
}

// mergedListen serves a subscription on a pipe through the SDK.
func (p *pipe) mergedListen(ctx context.Context, s *subscription, line []byte, write func([]byte)) (json.RawMessage, error) {
	merged := &merge{s: s, acked: make(chan struct{}), answer: make(chan *message, 1)}
	key := sameID(s.id)
	p.mu.Lock()
	p.merged[key] = merged // until the SDK's answer, which may come late
	p.mu.Unlock()
	p.pass(line)
	if ctx.Err() != nil { // the SDK may have heard of the end before the beginning
		p.pass(cancelled(s.id, "the subscription has ended"))
	}
	var answer *message
	select {
	case <-merged.acked:
	case answer = <-merged.answer:
		select {
		case <-merged.acked: // before it: the SDK agreed to nothing
		default:
			return resultOf(answer)
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	err := s.follow(ctx, write)
	if answer == nil && err == nil {
		select { // the SDK's part goes on
		case answer = <-merged.answer:
		case <-ctx.Done():
		}
	}
	switch {
	case err != nil:
		p.pass(cancelled(s.id, "the subscription has ended"))
	case answer != nil:
		return resultOf(answer)
	}
	return s.end(err)
}

func resultOf(m *message) (json.RawMessage, error) {
	if m.Error != nil {
		return nil, m.Error
	}
	return m.Result, nil
}

// passMerged deals with what the SDK says of a subscription that is served here
// too; false is anything else.
func (p *pipe) passMerged(line []byte) bool {
	p.mu.Lock()
	none := len(p.merged) == 0
	p.mu.Unlock()
	if none {
		return false
	}
	var m message
	if json.Unmarshal(line, &m) != nil {
		return false
	}
	id := m.ID
	if m.Method != "" {
		var params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
		if m.Method != dialect.Acknowledged || json.Unmarshal(m.Params, &params) != nil {
			return false
		}
		id = params.Meta[mcptask.MetaSubscriptionID]
	}
	p.mu.Lock()
	merged := p.merged[sameID(id)]
	if merged == nil || m.Method != "" && merged.agreed {
		p.mu.Unlock()
		return false
	}
	agreed := merged.agreed
	merged.agreed = agreed || m.Error == nil
	if m.Method == "" {
		delete(p.merged, sameID(id))
	}
	p.mu.Unlock()
	switch {
	case m.Method != "":
		p.write(merged.s.acknowledgedBy(line))
		close(merged.acked)
	case !agreed && m.Error == nil: // an answer before the acknowledgement
		p.write(merged.s.acknowledged())
		close(merged.acked)
	}
	if m.Method == "" {
		merged.answer <- &m
	}
	return true
}
