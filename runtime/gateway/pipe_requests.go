package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// What a client says on a pipe, and what becomes of it: post.go for lines.

// handle decides what becomes of one message.
func (p *pipe) handle(line []byte) {
	m, batch, refusal := parse(line)
	if refusal == nil && nested(line) > mostNested {
		refusal = mcptask.Errorf(mcptask.CodeInvalidRequest, "the message has more than %d objects and arrays within each other", mostNested)
	}
	switch {
	case refusal != nil && m != nil && m.response():
		p.g.server.Notice(slog.LevelInfo, "response dropped", "error", refusal) // it gets no answer
	case refusal != nil:
		var id json.RawMessage
		if m != nil {
			id = m.ID
		}
		p.reply(encodeReply(id, nil, refusal))
	case batch:
		p.reply(encodeReply(nil, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "this revision of the protocol has no batches: send one message a line")))
	case !m.request():
		p.note(m, line)
	case m.reserved():
		p.refuse(m, noMethod(m))
	default:
		if err := checkLasting(m, line); err != nil {
			p.refuse(m, err)
			return
		}
		if meta := m.meta(); meta.Version != nil {
			p.modern(m, meta, line)
			return
		}
		p.legacy(m, line)
	}
}

// note takes a notification or a response.
func (p *pipe) note(m *message, line []byte) {
	if ref, ok := m.answers(); ok {
		p.g.take(p.ctx, p.session, p.caller("response"), ref, m) // one that is lost is asked for again
		return
	}
	if m.Method == "" && (m.ID == nil || !validID(m.ID)) {
		// An SDK ends the session over it. No answer: two peers could go on for ever.
		p.g.server.Notice(slog.LevelInfo, "response without a request's id dropped")
		return
	}
	if m.reserved() {
		return
	}
	if m.Method == notificationCancelled {
		var params struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &params) == nil {
			p.g.sessions.cancel(p.session, params.RequestID)
			if p.cancel(params.RequestID) {
				return
			}
		}
	}
	p.pass(line)
}

// caller is who speaks in the session of 2025-11-25 or before.
func (p *pipe) caller(method string) mcptask.Caller {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session.caller(p.g, method)
}

// legacy takes a request of 2025-11-25 or before.
func (p *pipe) legacy(m *message, line []byte) {
	caller := p.caller(m.Method)
	switch {
	case m.Method == "initialize":
		p.initialize(m, line)
	case m.newer():
		p.refuse(m, notYet(m))
	case strings.HasPrefix(m.Method, "tasks/"):
		p.legacyTask(m, caller)
	case m.Method == "tools/call":
		switch flow, refusal := p.g.legacyFlow(p.session, caller, m); {
		case refusal != nil:
			p.refuse(m, refusal)
		case flow == nil:
			p.passRequest(m, line, passing{})
		default:
			if flow.awaited != nil {
				flow.awaited.way = pipeWay{p}
			}
			p.passWith(flow, m, line)
		}
	case m.Method == "tools/list":
		p.passWith(p.g.sessionList(p.session, caller), m, line)
	default:
		p.passRequest(m, line, passing{})
	}
}

// initialize passes the request on and notes what is negotiated.
func (p *pipe) initialize(m *message, line []byte) {
	flow := p.g.initialized(p.caller(m.Method))
	capabilities := clientCapabilities(m.Params)
	flow.Connected = func(_, protocol string, _ func() error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.session.negotiated(p.g, protocol, capabilities)
	}
	p.passWith(flow, m, line)
	// What comes next is read by what was negotiated.
	p.await(lastReplies, func() bool { _, waits := p.passed[sameID(m.ID)]; return !waits })
}

// legacyTask answers a task method of the session.
func (p *pipe) legacyTask(m *message, caller mcptask.Caller) {
	d, method := p.g.taskMethod(p.session, &caller, m)
	if method == nil {
		p.refuse(m, mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s does not exist in this revision", brief(m.Method)))
		return
	}
	if err := p.g.admit(caller, m); err != nil {
		p.refuse(m, err)
		return
	}
	settle := func() {}
	p.answer(m, d.Blocks(m.Method), func(ctx context.Context) (json.RawMessage, error) {
		if d.Blocks(m.Method) {
			done, err := p.g.block(caller)
			if err != nil {
				return nil, err
			}
			defer done()
		}
		record, err := p.g.shown(ctx, caller, p.session, d, m)
		if err != nil {
			return nil, err
		}
		if record.ID != "" && !d.Blocks(m.Method) {
			method = shows(method, d, m, record)
			settle = func() { p.g.questions.settle(p.session, record.ID, &record) }
		}
		return method(ctx, p.g.server, caller, m.Params)
	}, func() { settle() })
}

// modern takes a request of 2026-07-28, where there are no headers to check.
func (p *pipe) modern(m *message, meta meta, line []byte) {
	d := p.g.modern
	caller := mcptask.Caller{Principal: p.session.principal, Session: p.session.id, Revision: p.g.modern.Revision(), Method: m.Method, CanAsk: d.CanAsk(meta.Capabilities)}
	switch {
	case strings.HasPrefix(m.Method, "tasks/"):
		p.modernTask(m, caller, meta)
	case m.Method == "tools/call":
		if tool, _ := p.g.tool(m); tool == nil {
			p.passRequest(m, line, passing{})
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
		p.passWith(p.g.listed(caller, p.g.declares(meta)), m, line)
	case m.Method == dialect.Listen && p.g.without && dialect.Server20260728{}.NamesTasks(m.Params):
		p.listen(caller, m, meta, line)
	case m.Method == dialect.Listen:
		p.passListen(caller, m, line)
	case m.Method == "server/discover":
		p.passWith(p.g.discovered(caller), m, line)
	default:
		p.passRequest(m, line, passing{})
	}
}

// modernTask answers a task method of 2026-07-28.
func (p *pipe) modernTask(m *message, caller mcptask.Caller, meta meta) {
	d := p.g.modern
	method := d.Method(m.Method)
	if method == nil || !p.g.without {
		p.refuse(m, unknownMethod(m, d.Revision()))
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
	if err := p.g.admit(caller, m); err != nil {
		p.refuse(m, err)
		return
	}
	p.answer(m, false, func(ctx context.Context) (json.RawMessage, error) {
		return method(ctx, p.g.server, caller, m.Params)
	}, nil)
}

func (p *pipe) refuse(m *message, err *mcptask.Error) { p.reply(encodeReply(m.ID, nil, err)) }

// answer runs a task method beside the reading: one that blocks may wait for long,
// and ends with the input. Any other is answered before the pipe ends. written is
// called when the reply is written, or when there will be none; it may be nil.
func (p *pipe) answer(m *message, blocks bool, work func(context.Context) (json.RawMessage, error), written func()) {
	ctx, cancel := context.WithCancel(p.ctx)
	id := sameID(m.ID)
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		cancel()
		return
	}
	if refusal := p.inUse(m); refusal != nil {
		p.mu.Unlock()
		cancel()
		p.refuse(m, refusal)
		return
	}
	p.waiting[id] = cancel
	if !blocks {
		p.brief++
	}
	defer p.mu.Unlock() // finish waits for all work that was begun before the end
	p.work.Go(func() {
		defer guard.Recover(p.g.server.Logger(), "a request on pipes")
		defer cancel()
		data, ok := p.run(ctx, m, work)
		p.mu.Lock()
		delete(p.waiting, id) // before the reply: the client may use the ID again
		if !blocks {
			p.brief--
		}
		p.mu.Unlock()
		p.wake()
		if ok {
			p.write(data)
		}
		if written != nil {
			written()
		}
	})
}

// run makes the reply; there is none where nobody waits for it any longer.
func (p *pipe) run(ctx context.Context, m *message, work func(context.Context) (json.RawMessage, error)) (data []byte, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			p.g.server.Notice(slog.LevelError, "task method panicked", "method", m.Method, "panic", r)
			data, ok = encodeReply(m.ID, nil, mcptask.Errorf(mcptask.CodeInternalError, "internal error")), true
		}
	}()
	result, err := work(ctx)
	if ctx.Err() != nil && err != nil && p.g.server.Closing().Err() == nil {
		return nil, false // cancelled by the client, or the client is gone
	}
	return p.g.outcome(ctx, m, result, err), true
}

// listen answers a subscriptions/listen that names tasks (E-62, E-64). A
// notifications/cancelled ends it.
func (p *pipe) listen(caller mcptask.Caller, m *message, meta meta, line []byte) {
	if err := checkMeta(meta, p.g.modern.Revision()); err != nil {
		p.refuse(m, err)
		return
	}
	if err := p.g.modern.Check(meta.Capabilities); err != nil {
		p.refuse(m, wireError(err))
		return
	}
	p.answer(m, true, func(ctx context.Context) (json.RawMessage, error) {
		s, err := p.g.subscribe(ctx, caller, m)
		if err != nil {
			return nil, err
		}
		defer s.close()
		write := func(data []byte) {
			if ctx.Err() == nil {
				p.write(data)
			}
		}
		var result json.RawMessage
		if s.others {
			result, err = p.mergedListen(ctx, s, line, write)
		} else {
			var acknowledgement []byte
			if acknowledgement, err = (dialect.Server20260728{}).Acknowledged(s.id, s.tasks); err != nil {
				return nil, err
			}
			write(acknowledgement)
			result, err = s.end(s.follow(ctx, write))
		}
		if ctx.Err() != nil && p.g.server.Closing().Err() == nil {
			return nil, ctx.Err() // the client has ended it
		}
		return result, err
	}, nil)
}

// cancel ends a request that is answered here; false is none of ours, or not
// ours alone.
func (p *pipe) cancel(id json.RawMessage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := sameID(id)
	if listens := p.listens[key]; listens != nil {
		listens() // the ID is in use until the SDK has answered
	}
	cancel := p.waiting[key]
	if cancel == nil {
		return false
	}
	cancel()
	return p.merged[key] == nil
}
