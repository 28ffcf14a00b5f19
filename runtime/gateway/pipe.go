package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// FlowMeta is the _meta key that carries a flow's token where there are no
// headers. The gateway removes it from what comes in.
const FlowMeta = "io.github.mcptaskgen/flow"

// flowLife is how long a flow on a pipe stays open for the SDK to take.
const flowLife = time.Minute

// pipe stands in front of an SDK server that speaks over a pair of pipes, such
// as standard input and output: one message a line, one client, one session.
// It answers tasks/* itself and passes everything else on.
type pipe struct {
	g       *Gateway
	out     io.Writer
	toSDK   *io.PipeWriter
	fromSDK *io.PipeReader
	session *session
	ctx     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup

	writing sync.Mutex // of out: a line at a time

	mu      sync.Mutex
	waiting map[string]context.CancelFunc // requests that are answered here, by ID
	passed  map[string]bool               // requests that the SDK has not answered yet, by ID
	replied chan struct{}                 // has room for one: a passed request was answered
}

// lastReplies is how long the end of the input waits for replies that are still
// to come.
const lastReplies = 2 * time.Second

// Pipe begins to read in and to write out. The SDK reads from and writes to
// what is returned; closing the writer ends the pipe, as the end of in does.
func (g *Gateway) Pipe(ctx context.Context, in io.Reader, out io.Writer) (io.ReadCloser, io.WriteCloser, error) {
	principal, err := g.principal(ctx)
	if err != nil {
		return nil, nil, err
	}
	sdkReads, toSDK := io.Pipe()
	fromSDK, sdkWrites := io.Pipe()
	p := &pipe{
		g: g, out: out, toSDK: toSDK, fromSDK: fromSDK,
		session: &session{principal: principal},
		waiting: map[string]context.CancelFunc{},
		passed:  map[string]bool{},
		replied: make(chan struct{}, 1),
	}
	p.ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.session.ended, p.session.end = p.ctx, p.stop
	context.AfterFunc(g.server.Closing(), p.stop)
	go p.readClient(in)
	go p.readSDK()
	p.work.Go(p.ask)
	return sdkReads, sdkWrites, nil
}

// readClient handles what the client says until it says no more. What is
// answered here ends then, and the SDK sees the end of its input.
func (p *pipe) readClient(in io.Reader) {
	lines := bufio.NewReader(in)
	for {
		line, err := readLine(lines, p.g.maxBody)
		switch {
		case errors.Is(err, errLongLine):
			p.write(encodeReply(nil, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the message exceeds %d bytes", p.g.maxBody)))
			continue
		case len(bytes.TrimSpace(line)) > 0:
			p.handle(line)
		}
		if err != nil || p.ctx.Err() != nil {
			break
		}
	}
	p.await(lastReplies, func() bool { return len(p.passed) == 0 })
	p.stop()
	p.g.questions.end(p.session)
	done := make(chan struct{})
	go func() { p.work.Wait(); close(done) }()
	select {
	case <-done:
		_ = p.toSDK.Close() // the SDK reads the end
	case <-time.After(lastReplies):
		// The client has closed its side and does not read either: nothing that is
		// still to be written will ever be.
		_ = p.toSDK.Close()
		_ = p.fromSDK.Close()
	}
}

// readSDK passes on what the SDK says, a whole line at a time.
func (p *pipe) readSDK() {
	lines := bufio.NewReader(p.fromSDK)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			p.write(bytes.TrimSuffix(line, []byte("\n")))
			p.answered(line)
		}
		if err != nil {
			_ = p.fromSDK.CloseWithError(err)
			p.stop() // in may stay open; nobody answers any longer
			return
		}
	}
}

// answered notes the response to a request that was passed on.
func (p *pipe) answered(line []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(line, &m) != nil || m.Method != "" {
		return
	}
	p.mu.Lock()
	delete(p.passed, sameID(m.ID))
	p.mu.Unlock()
	p.wake()
}

func (p *pipe) wake() {
	select {
	case p.replied <- struct{}{}:
	default:
	}
}

// await waits, for a while, until done holds, which is asked under p.mu.
func (p *pipe) await(most time.Duration, done func() bool) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		p.mu.Lock()
		ok := done()
		p.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-p.replied:
		case <-timer.C:
			return
		case <-p.ctx.Done():
			return
		}
	}
}

// sameID is an ID however its JSON is written.
func sameID(id json.RawMessage) string {
	var text string
	if json.Unmarshal(id, &text) == nil {
		return "text " + text
	}
	return string(id)
}

// passRequest hands a request on. What never ends is not waited for.
func (p *pipe) passRequest(m *message, line []byte) {
	if m.Method != "subscriptions/listen" {
		p.mu.Lock()
		p.passed[sameID(m.ID)] = true
		p.mu.Unlock()
	}
	p.pass(line)
}

var errLongLine = errors.New("the line is too long")

// readLine reads a line of at most limit bytes and skips the rest of a longer one.
func readLine(r *bufio.Reader, limit int64) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || int64(len(line)+len(bytes.TrimSuffix(part, []byte("\n")))) > limit; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long: // a reader at its end says so again
			return nil, errLongLine
		}
		return line, err
	}
}

func (p *pipe) write(line []byte) {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, _ = p.out.Write(append(bytes.Clone(line), '\n')) // a client that has left
}

// pass hands a line on to the SDK.
func (p *pipe) pass(line []byte) {
	_, _ = p.toSDK.Write(append(bytes.TrimRight(line, "\r\n"), '\n')) // an SDK that has ended
}

// handle decides what becomes of one message.
func (p *pipe) handle(line []byte) {
	m, batch, refusal := parse(line)
	switch {
	case refusal != nil:
		var id json.RawMessage
		if m != nil {
			id = m.ID
		}
		p.write(encodeReply(id, nil, refusal))
	case batch:
		p.write(encodeReply(nil, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "this revision of the protocol has no batches: send one message a line")))
	case !m.request():
		p.note(m, line)
	default:
		if meta := m.meta(); meta.Version != nil {
			p.modern(m, meta, line)
			return
		}
		p.legacy(m, line)
	}
}

// note takes a notification or a response.
func (p *pipe) note(m *message, line []byte) {
	if task, key, ok := m.question(); ok {
		if err := p.g.server.Respond(p.ctx, p.caller(), task, key, m.Result, m.Error); err != nil {
			p.g.server.Logger().Info("response to a question not taken", "task", task, "key", key, "error", err)
		}
		return
	}
	if m.Method == "" && (m.ID == nil || !validID(m.ID)) {
		// An SDK ends the session over it. No answer: two peers could go on for ever.
		p.g.server.Logger().Info("response without a request's id dropped")
		return
	}
	if m.Method == "notifications/cancelled" {
		var params struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &params) == nil && p.cancel(params.RequestID) {
			return
		}
	}
	p.pass(line)
}

// caller is who speaks in the session of 2025-11-25 or before.
func (p *pipe) caller() mcptask.Caller {
	p.mu.Lock()
	defer p.mu.Unlock()
	return mcptask.Caller{Principal: p.session.principal, Revision: p.session.revision, CanAsk: p.session.canAsk}
}

// legacy takes a request of 2025-11-25 or before.
func (p *pipe) legacy(m *message, line []byte) {
	d, caller := p.g.legacy, p.caller()
	tasks := caller.Revision == d.Revision()
	switch {
	case m.Method == "initialize":
		flow := p.g.decorated(d, caller, m.Method)
		canAsk := d.CanAsk(clientCapabilities(m.Params))
		flow.Connected = func(_, revision string, _ func() error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.session.revision, p.session.canAsk = revision, canAsk
		}
		p.passWith(flow, m, line)
		// What comes next is read by what was negotiated.
		p.await(lastReplies, func() bool { return !p.passed[sameID(m.ID)] })
	case strings.HasPrefix(m.Method, "tasks/"):
		method := d.Method(m.Method)
		if method == nil || !tasks {
			p.refuse(m, mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s does not exist in this revision", m.Method))
			return
		}
		p.answer(m, func(ctx context.Context) (json.RawMessage, error) {
			p.g.shown(ctx, caller, p.session, m)
			return method(ctx, p.g.server, caller, m.Params)
		})
	case m.Method == "tools/call":
		switch flow, refusal := p.g.legacyFlow(p.session, caller, m, tasks); {
		case refusal != nil:
			p.refuse(m, refusal)
		case flow == nil:
			p.passRequest(m, line)
		default:
			p.passWith(flow, m, line)
		}
	case m.Method == "tools/list":
		p.passWith(p.g.listed(d, caller, tasks, false), m, line)
	default:
		p.passRequest(m, line)
	}
}

// modern takes a request of 2026-07-28, where there are no headers to check.
func (p *pipe) modern(m *message, meta meta, line []byte) {
	d := p.g.modern
	caller := mcptask.Caller{Principal: p.session.principal, Revision: d.Revision(), CanAsk: d.CanAsk(meta.Capabilities)}
	switch {
	case strings.HasPrefix(m.Method, "tasks/"):
		method := d.Method(m.Method)
		if method == nil {
			p.refuse(m, mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s does not exist in %s", m.Method, d.Revision()))
			return
		}
		if err := checkMeta(meta, d.Revision()); err != nil {
			p.refuse(m, err)
			return
		}
		if err := d.Check(meta.Capabilities); err != nil {
			p.refuse(m, wireError(err))
			return
		}
		p.answer(m, func(ctx context.Context) (json.RawMessage, error) {
			return method(ctx, p.g.server, caller, m.Params)
		})
	case m.Method == "tools/call":
		if tool, _ := p.g.tool(m); tool == nil {
			p.passRequest(m, line)
			return
		}
		if err := checkMeta(meta, d.Revision()); err != nil {
			p.refuse(m, err)
			return
		}
		flow, line, refusal := p.g.modernFlow(caller, m, line)
		if refusal != nil {
			p.refuse(m, refusal)
			return
		}
		p.passWith(flow, m, line)
	case m.Method == "tools/list":
		p.passWith(p.g.listed(d, caller, true, d.Check(meta.Capabilities) == nil), m, line)
	case m.Method == "server/discover":
		p.passWith(p.g.decorated(d, caller, m.Method), m, line)
	default:
		p.passRequest(m, line)
	}
}

func (p *pipe) refuse(m *message, err *mcptask.Error) { p.write(encodeReply(m.ID, nil, err)) }

// answer runs a task method beside the reading: tasks/result may wait for long.
func (p *pipe) answer(m *message, work func(context.Context) (json.RawMessage, error)) {
	ctx, cancel := context.WithCancel(p.ctx)
	id := string(m.ID)
	p.mu.Lock()
	if p.waiting[id] != nil {
		p.mu.Unlock()
		cancel()
		p.refuse(m, mcptask.Errorf(mcptask.CodeInvalidRequest, "a request with this id is under way"))
		return
	}
	p.waiting[id] = cancel
	p.mu.Unlock()
	p.work.Go(func() {
		defer cancel()
		data, ok := p.run(ctx, m, work)
		p.mu.Lock()
		delete(p.waiting, id) // before the reply: the client may use the ID again
		p.mu.Unlock()
		if ok {
			p.write(data)
		}
	})
}

// run makes the reply; there is none where nobody waits for it any longer.
func (p *pipe) run(ctx context.Context, m *message, work func(context.Context) (json.RawMessage, error)) (data []byte, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			p.g.server.Logger().Error("task method panicked", "method", m.Method, "panic", r)
			data, ok = encodeReply(m.ID, nil, mcptask.Errorf(mcptask.CodeInternalError, "internal error")), true
		}
	}()
	result, err := work(ctx)
	if ctx.Err() != nil && err != nil {
		return nil, false // cancelled by the client, or the client is gone
	}
	return p.g.outcome(ctx, m, result, err), true
}

// cancel ends a request that is answered here; false is none of ours.
func (p *pipe) cancel(id json.RawMessage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	cancel := p.waiting[string(id)]
	if cancel == nil {
		return false
	}
	cancel()
	return true
}

// passWith hands a request on together with its flow.
func (p *pipe) passWith(flow *Flow, m *message, line []byte) {
	flow.Ended = p.ctx
	token, closeFlow := OpenFlow(p.g.server, flow)
	marked, err := mark(line, token)
	if err != nil {
		closeFlow()
		p.refuse(m, mcptask.Errorf(mcptask.CodeInvalidRequest, "the params are not an object"))
		return
	}
	// The SDK takes it at once, or never.
	time.AfterFunc(flowLife, closeFlow)
	p.passRequest(m, marked)
}

// mark sets params._meta[FlowMeta] of a message.
func mark(line []byte, token string) ([]byte, error) {
	quoted, err := json.Marshal(token)
	if err != nil {
		return nil, err
	}
	return setMember(line, []string{"params", "_meta", FlowMeta}, quoted)
}

// setMember sets a member deep in an object, making the objects on the way.
// Nothing is escaped anew: a message must not grow on its way.
func setMember(object json.RawMessage, path []string, value json.RawMessage) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(object) > 0 {
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, err
		}
	}
	if members == nil { // null
		members = map[string]json.RawMessage{}
	}
	if len(path) > 1 {
		inner, err := setMember(members[path[0]], path[1:], value)
		if err != nil {
			return nil, err
		}
		value = inner
	}
	members[path[0]] = value
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(members); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// ask writes the questions of tasks.
func (p *pipe) ask() {
	c := p.g.questions.connect(p.session, "")
	defer p.g.questions.disconnect(c)
	for {
		select {
		case <-c.wake:
			for _, m := range c.take() {
				p.write(m.data)
			}
		case <-p.ctx.Done():
			return
		}
	}
}
