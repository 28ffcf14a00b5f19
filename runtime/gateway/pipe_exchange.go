package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// mostNested bounds the levels of objects and arrays in a line: the SDK ends the session over a line with
// more, which it cannot read. Over HTTP it refuses the request alone.
const mostNested = 1000

// read reads the message of one line. It returns nil if that is none for the router.
func (p *pipe) read(line []byte) *pipeExchange {
	m, batch, refusal := parse(line)
	if refusal == nil && wire.Depth(line) > mostNested {
		refusal = mcptask.Errorf(mcptask.CodeInvalidRequest, "the message has more than %d objects and arrays within each other", mostNested)
	}
	switch {
	case refusal != nil && m != nil && m.IsResponse():
		p.g.server.Notice(slog.LevelInfo, "response dropped", "error", refusal) // it gets no answer
	case refusal != nil:
		var id json.RawMessage
		if m != nil {
			id = m.ID
		}
		p.reply(wire.EncodeReply(id, nil, refusal))
	case batch:
		p.reply(wire.EncodeReply(nil, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "this revision of the protocol has no batches: send one message a line")))
	case m.Method == "" && (m.ID == nil || !wire.ValidID(m.ID)):
		// An SDK ends the session over it. No answer: two peers could go on for ever.
		p.g.server.Notice(slog.LevelInfo, "response without a request's id dropped")
	default:
		return &pipeExchange{p: p, m: m, ctx: p.ctx}
	}
	return nil
}

// pipeExchange is the exchange of one line.
type pipeExchange struct {
	p *pipe
	m *message
	// ctx ends with the pipe, or with the request once it is being answered here.
	ctx context.Context
}

func (x *pipeExchange) context() context.Context { return x.ctx }
func (x *pipeExchange) message() *message        { return x.m }
func (x *pipeExchange) modern() bool             { return x.m.IsRequest() && x.m.meta.Version != nil }

func (x *pipeExchange) caller() mcptask.Caller {
	s := x.p.session
	return mcptask.Caller{Principal: s.principal, Session: s.id, Method: x.m.Method}
}

func (x *pipeExchange) enter(bool) (*session, mcptask.Caller, bool) {
	p := x.p
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session, p.session.caller(p.g, x.m.Method), true
}

// initialize implements exchange. What comes next is read by what was negotiated.
func (x *pipeExchange) initialize(flow *Flow) {
	p := x.p
	capabilities := x.m.Params.Get("capabilities")
	flow.Connected = func(_, protocol string, _ func() error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.session.negotiated(p.g, protocol, capabilities)
	}
	x.forward(flow)
	p.await(lastReplies, func() bool { _, waits := p.passed[wire.IDKey(x.m.ID)]; return !waits })
}

// checkVersion implements exchange: there are no headers to compare.
func (x *pipeExchange) checkVersion(revision string) *mcptask.Error {
	return checkMeta(x.m.meta, revision)
}

func (x *pipeExchange) checkNames(bool) *mcptask.Error { return nil }
func (x *pipeExchange) accept()                        {}
func (x *pipeExchange) flush()                         {}

func (x *pipeExchange) refuse(_ refusalKind, err *mcptask.Error) {
	if x.m.IsRequest() {
		x.p.reply(wire.EncodeReply(x.m.ID, nil, err))
	}
}

// answer implements exchange. Work that waits may do so for long, and ends with the input. Any other is
// answered before the pipe ends.
func (x *pipeExchange) answer(work work) {
	p := x.p
	ctx, cancel := context.WithCancel(p.ctx)
	x.ctx = ctx
	id := wire.IDKey(x.m.ID)
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		cancel()
		return
	}
	if refusal := p.inUse(x.m); refusal != nil {
		p.mu.Unlock()
		cancel()
		x.refuse(refusedRequest, refusal)
		return
	}
	p.waiting[id] = cancel
	if !work.waits {
		p.brief++
	}
	defer p.mu.Unlock() // finish waits for all work that was begun before the end
	p.work.Go(func() {
		defer guard.Recover(p.g.server.Logger(), "a request on pipes")
		defer cancel()
		result, err := p.g.attempt(ctx, x.m, work)
		// The client has cancelled it, or is gone.
		silent := ctx.Err() != nil && err != nil && p.g.server.Closing().Err() == nil || errors.Is(err, errAnswered)
		p.mu.Lock()
		delete(p.waiting, id) // before the reply: the client may use the ID again
		if !work.waits {
			p.brief--
		}
		p.mu.Unlock()
		p.wake()
		if !silent {
			p.write(encodeAnswer(ctx, x.m, result, err))
		}
		if work.written != nil {
			work.written()
		}
	})
}

func (x *pipeExchange) send(message []byte) {
	if x.ctx.Err() == nil {
		x.p.write(message)
	}
}

// carryQuestions implements exchange: there is one stream, which has the questions.
func (x *pipeExchange) carryQuestions(dialect.Teller, string) (stop func()) { return func() {} }

// cancel implements exchange. A request that the SDK serves too is not ours alone.
func (x *pipeExchange) cancel(request json.RawMessage) bool {
	p := x.p
	p.g.sessions.cancel(p.session, request)
	p.mu.Lock()
	defer p.mu.Unlock()
	key := wire.IDKey(request)
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

func (x *pipeExchange) forward(flow *Flow, edits ...wire.Edit) {
	p := x.p
	var passed passing
	if flow != nil {
		if flow.carrier != nil {
			flow.carrier.overPipe(p.write)
		}
		flow.Ended = p.ctx
		token, closeFlow := OpenFlow(p.g.server, flow)
		// The SDK takes it at once, or never: it may refuse the request, or not answer.
		life := time.AfterFunc(flowLife, func() { defer guard.Recover(p.g.server.Logger(), "the end of a flow"); closeFlow() })
		if flow.announced != nil { // the questions go the way of the reply
			flow.announced.then = func(task string) { p.g.mailbox(p.session).SettleAfter(task, 0) }
		}
		passed = passing{func() { life.Stop(); closeFlow() }, flow.announced}
		edits = append(edits, wire.Set(json.RawMessage(`"`+token+`"`), "params", "_meta", FlowMeta))
	}
	line, err := x.m.Edited(edits...)
	var refusal *mcptask.Error
	if err != nil {
		refusal = mcptask.Errorf(mcptask.CodeInvalidRequest, "the params are not an object")
	} else if x.m.IsRequest() {
		refusal = p.expectReply(x.m, passed)
	}
	if refusal == nil {
		p.pass(line)
		return
	}
	if passed.over != nil {
		passed.over()
	}
	x.refuse(refusedRequest, refusal)
}

// forwardOpen implements exchange. The subscription counts as a request that waits until it is
// cancelled, answered, or the pipe ends. Nobody waits for its end.
func (x *pipeExchange) forwardOpen(done func()) {
	p := x.p
	done = sync.OnceFunc(done)
	p.mu.Lock()
	refusal := p.inUse(x.m)
	if refusal == nil && p.ctx.Err() == nil {
		id := wire.IDKey(x.m.ID)
		delete(p.merged, id)
		p.listens[id] = done
	} else {
		done()
	}
	p.mu.Unlock()
	if refusal != nil {
		x.refuse(refusedRequest, refusal)
		return
	}
	p.pass(x.m.Bytes())
}
