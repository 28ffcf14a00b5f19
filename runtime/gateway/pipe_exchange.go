package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// maxNesting limits the nesting of objects and arrays in a line. The SDK cannot read more and then
// ends the session. Over HTTP it only refuses the request.
const maxNesting = 1000

// readMessage reads the message in one line. It returns nil if it has already dealt with the line.
func (p *pipe) readMessage(line []byte) *pipeExchange {
	m, refusal := parseMessage(line)
	if refusal == nil && wire.Depth(line) > maxNesting {
		refusal = mcptask.Errorf(mcptask.CodeInvalidRequest, "the message nests more than %d objects and arrays", maxNesting)
	}
	switch {
	case refusal != nil && m.IsResponse():
		p.g.server.Notice(slog.LevelInfo, "response dropped", "error", refusal) // a response gets no answer
	case refusal != nil:
		p.out.putBuffered(wire.EncodeReply(m.ID, nil, refusal))
	case m.Method == "" && (m.ID == nil || !wire.ValidID(m.ID)):
		// An SDK would end the session. There is no reply, because two peers could then answer each
		// other forever.
		p.g.server.Notice(slog.LevelInfo, "response without a request's id dropped")
	default:
		return &pipeExchange{p: p, m: p.g.renameCall(m, nil), ctx: p.ctx}
	}
	return nil
}

// pipeExchange implements exchange for one line.
type pipeExchange struct {
	p *pipe
	m *message
	// ctx ends with the pipe, or with the request once the gateway answers it.
	ctx context.Context
	// share is the memory of the answer, once the gateway answers the request.
	share *share
}

// newShare returns the share for the answer to a request. The request itself counts in addRequest.
func (p *pipe) newShare() *share {
	return &share{g: p.g, caller: taskserver.Caller{Principal: p.session.principal}}
}

func (x *pipeExchange) context() context.Context { return x.ctx }
func (x *pipeExchange) message() *message        { return x.m }
func (x *pipeExchange) modern() bool             { return x.m.IsRequest() && x.m.meta.Version != nil }

func (x *pipeExchange) version() string {
	if x.m.meta.Version != nil {
		return *x.m.meta.Version
	}
	return ""
}

func (x *pipeExchange) caller() taskserver.Caller {
	s := x.p.session
	return taskserver.Caller{Principal: s.principal, Local: true, Session: s.id, Method: x.m.Method}
}

func (x *pipeExchange) enter() (*session, taskserver.Caller, bool) {
	p := x.p
	p.mu.Lock()
	defer p.mu.Unlock()
	caller := p.session.newCaller(p.g, x.m.Method)
	caller.Local = true
	return p.session, caller, true
}

// initialize implements exchange. It waits for the answer, because the next message depends on the
// negotiated revision.
func (x *pipeExchange) initialize(flow *Flow) {
	p := x.p
	capabilities, client := x.m.Params.Get("capabilities"), x.m.Params.Get("clientInfo")
	flow.Connected = func(_, version string, _ func() error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.session.revision == "" { // once: the mailbox reads it without the lock
			p.session.setNegotiated(p.g, version, capabilities, client)
		}
	}
	var edits []wire.Edit
	if p.g.config.Direct && x.m.Params.Object("capabilities").Has("tasks") { // as over HTTP
		edits = append(edits, wire.Delete("params", "capabilities", "tasks"))
	}
	x.forward(flow, edits...)
	p.waitUntil(lastReplies, func() bool {
		r, waits := p.requests[wire.IDKey(x.m.ID)]
		return !waits || r.ours || r.lasts // then initialize was refused: another request has its ID
	})
}

// checkVersion implements exchange. A pipe has no headers to compare.
func (x *pipeExchange) checkVersion(revision string) *mcptask.Error {
	return x.p.g.checkMeta(x.m.meta, revision)
}

func (x *pipeExchange) checkNames(bool) *mcptask.Error { return nil }
func (x *pipeExchange) isPipe() bool                   { return true }
func (x *pipeExchange) trace() string                  { return x.m.readTrace() }
func (x *pipeExchange) accept()                        {}
func (x *pipeExchange) flush()                         {}

func (x *pipeExchange) refuse(_ refusalKind, err *mcptask.Error) {
	if x.m.IsRequest() {
		x.p.out.putBuffered(wire.EncodeReply(x.m.ID, nil, err))
	}
}

// answer implements exchange. Work that waits for a task ends with the client's input. All other
// work is answered before the pipe ends.
func (x *pipeExchange) answer(work work) {
	p := x.p
	ctx, cancel := context.WithCancel(p.ctx)
	x.ctx = ctx
	id := wire.IDKey(x.m.ID)
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		cancel()
		return
	}
	if refusal := p.addRequest(x.m, pipeRequest{end: cancel, ours: true, lasts: work.waits}); refusal != nil {
		p.mu.Unlock()
		cancel()
		x.refuse(refusedRequest, refusal)
		return
	}
	defer p.mu.Unlock() // until the work has begun: waitForWork must not miss it
	p.work.Go(guard.Func(p.g.server.Logger(), "a request on pipes", func() {
		defer cancel()
		x.share = p.newShare()
		defer x.share.release()
		result, err := p.g.runWork(x.share.withRoom(ctx), x.m, work)
		if err == nil {
			if refusal := x.share.takeResult(ctx, len(result)); refusal != nil {
				result, err = nil, refusal
			}
		}
		// The client has cancelled the request, or is gone.
		silent := ctx.Err() != nil && err != nil && p.g.server.Closing().Err() == nil
		p.mu.Lock()
		delete(p.requests, id) // before the reply, after which the client may reuse the ID
		p.mu.Unlock()
		p.signalReply()
		if !silent {
			p.out.put(encodeAnswer(ctx, x.m, result, err))
		}
		if work.written != nil {
			work.written()
		}
	}))
}

func (x *pipeExchange) send(message []byte) {
	if x.ctx.Err() == nil {
		x.p.out.put(message)
	}
}

// carryQuestions implements exchange. A pipe has one stream, which already carries the questions.
func (x *pipeExchange) carryQuestions(protocol.Teller, string) (stop func()) { return func() {} }

func (x *pipeExchange) openCall() (send func([][]byte), isOpen bool) { return x.p.out.putAll, true }

// cancel implements exchange. It returns false if the SDK serves the request too. The SDK would keep the
// cancellation of a request that is not open for the next one with its ID.
func (x *pipeExchange) cancel(request json.RawMessage) bool {
	p := x.p
	p.g.sessions.cancelWaiting(p.session, request)
	p.mu.Lock()
	defer p.mu.Unlock()
	key := wire.IDKey(request)
	r, open := p.requests[key]
	if open && !r.ours {
		r.cancelled = true
		p.requests[key] = r
	}
	if r.ours || r.lasts {
		r.end() // the ID stays in use until there is an answer
	}
	return !open || r.ours
}

func (x *pipeExchange) forward(flow *Flow, edits ...wire.Edit) {
	p := x.p
	var passed pipeRequest
	switch {
	case flow == nil:
	case p.g.config.Direct && flow.Tool != "":
		x.callDirectly(flow)
		return
	case p.g.config.Direct:
		passed.flow = flow
	default:
		flow.Ended = p.ctx
		token, closeFlow := OpenFlow(p.g.server, flow)
		// The SDK takes the flow at once or never: it may refuse the request, or leave it
		// unanswered.
		life := time.AfterFunc(flowLife, func() { defer guard.Recover(p.g.server.Logger(), "the end of a flow"); closeFlow() })
		p.settleAfterReply(flow)
		share := p.newShare()
		unused := context.AfterFunc(p.ctx, func() { defer guard.Recover(p.g.server.Logger(), "the end of a pipe"); share.release() })
		flow.share = share
		passed = pipeRequest{end: func() { life.Stop(); closeFlow(); unused(); share.release() }, announcement: flow.announced}
		edits = append(edits, wire.Set(json.RawMessage(`"`+token+`"`), "params", "_meta", FlowMeta))
	}
	line, err := x.m.Edited(edits...)
	var refusal *mcptask.Error
	if err != nil {
		refusal = mcptask.Errorf(mcptask.CodeInvalidRequest, "the params are not an object")
	} else if x.m.IsRequest() {
		passed.progress = string(x.m.progressToken())
		refusal = p.expectReply(x.m, passed)
	}
	if refusal == nil {
		p.sendToSDK(line)
		return
	}
	if passed.end != nil {
		passed.end()
	}
	x.refuse(refusedRequest, refusal)
}

// settleAfterReply has the questions of a call's task follow the reply at once, on the same stream.
func (p *pipe) settleAfterReply(flow *Flow) {
	if flow.announced != nil {
		flow.announced.then = func(task string) { p.g.mailbox(p.session).SettleAfter(task, 0) }
	}
}

// callDirectly answers a call of one of the server's tools without the SDK.
func (x *pipeExchange) callDirectly(flow *Flow) {
	p := x.p
	flow.Ended = p.ctx
	p.settleAfterReply(flow)
	x.answer(work{
		run: func(ctx context.Context) (json.RawMessage, error) {
			flow.share = x.share
			token := x.m.progressToken()
			if token == nil {
				return p.g.callDirectly(ctx, x, flow, nil)
			}
			result, err := p.g.callDirectly(ctx, x, flow, func(task string, done, total float64, message string) {
				if task != "" && flow.Stateless {
					return // 2026-07-28 has no progress of tasks (E-67)
				}
				var meta map[string]any
				if task != "" && flow.Related != nil {
					meta = flow.Related(task)
				}
				if data := encodeProgress(token, done, total, message, meta); data != nil {
					p.reports.delay(string(token), data)
				}
			})
			if !flow.announced.hasTask() { // the token of a task lives on
				p.reports.drop(string(token))
			}
			return result, err
		},
		written: flow.announced.noteWritten,
	})
}

// forwardOpen implements exchange. The subscription counts as a waiting request until it is
// cancelled or answered, or the pipe ends. forwardOpen does not wait for that.
func (x *pipeExchange) forwardOpen(done func()) {
	p := x.p
	done = sync.OnceFunc(done)
	if refusal := p.expectReply(x.m, pipeRequest{end: done, lasts: true}); refusal != nil {
		done()
		x.refuse(refusedRequest, refusal)
		return
	}
	if p.ctx.Err() != nil { // endListens may have missed it
		done()
	}
	p.sendToSDK(x.m.Bytes())
}
