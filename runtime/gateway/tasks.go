package gateway

import (
	"context"
	"encoding/json"
	"log/slog"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// answerSessionTask answers a task method of a session.
func (g *Gateway) answerSessionTask(x exchange, s *session, caller mcptask.Caller) {
	m := x.message()
	d := g.spoken(s, caller, m)
	var method dialect.Method
	if d != nil {
		caller.Revision = d.Revision()
		method = d.Method(m.Method)
	}
	if method == nil {
		x.refuse(refusedRequest, unknownMethod(m, caller.Revision))
		return
	}
	if err := g.admit(caller, m); err != nil {
		x.refuse(refusedRate, err)
		return
	}
	if d.Blocks(m.Method) {
		x.answer(work{waits: true, run: func(ctx context.Context) (json.RawMessage, error) {
			return g.awaitTask(ctx, x, s, caller, d, method)
		}})
		return
	}
	written := func() {}
	x.answer(work{
		run: func(ctx context.Context) (json.RawMessage, error) {
			record, err := g.findTask(ctx, caller, s, d, m)
			if err != nil {
				return nil, err
			}
			if record.ID != "" {
				written = func() { g.settleNamed(x, s, record) }
				if m.Method == "tasks/get" { // which does not read it again
					return d.Show(ctx, g.server, caller, m.Params, record)
				}
			}
			return method(ctx, g.server, caller, m.Params)
		},
		written: func() { written() },
	})
}

// awaitTask runs a method that waits for the end of a task.
func (g *Gateway) awaitTask(ctx context.Context, x exchange, s *session, caller mcptask.Caller, d dialect.Teller, method dialect.Method) (json.RawMessage, error) {
	done, refusal := g.block(caller)
	if refusal != nil {
		return nil, refusal
	}
	defer done() // before the reply: who has it may ask again
	m := x.message()
	record, err := g.findTask(ctx, caller, s, d, m)
	if err != nil {
		return nil, err
	}
	if record.ID != "" && !record.Done() {
		defer x.carryQuestions(d, record.ID)()
	}
	return method(ctx, g.server, caller, m.Params)
}

// findTask finds the task that a request names, and notes that the session knows
// it. If the request does not wait for the task, the caller has to settle it. There is
// no record, and no error, if the request names no task or there is no such task: the
// method says so. A request that waits for a task waits for the store too.
func (g *Gateway) findTask(ctx context.Context, caller mcptask.Caller, s *session, d dialect.Teller, m *message) (record mcptask.Record, err error) {
	id := d.TaskID(g.server, caller, m.Params)
	if id == "" {
		return record, nil
	}
	if d.Blocks(m.Method) {
		record, err = g.server.Changed(ctx, caller, id, 0)
	} else {
		record, err = g.server.Get(ctx, caller, id)
	}
	switch {
	case dialect.Gone(err):
		g.mailbox(s).Forget(id)
		return mcptask.Record{}, nil
	case err != nil:
		return mcptask.Record{}, err
	}
	if d.Blocks(m.Method) { // its reply is far
		g.mailbox(s).Know(d, record)
		g.mailbox(s).Settle(record.ID, nil)
	} else {
		g.mailbox(s).KnowUnsettled(d, record)
	}
	return record, nil
}

// answerModernTask answers a task method of 2026-07-28, in the order that T-39
// prescribes: method, request metadata, capability, headers, task.
func (g *Gateway) answerModernTask(x exchange, caller mcptask.Caller) {
	m := x.message()
	method := g.modern.Method(m.Method)
	if method == nil || !g.without {
		x.refuse(refusedRequest, unknownMethod(m, g.modern.Revision()))
		return
	}
	if err := g.checkModern(x, true); err != nil {
		x.refuse(refusedRequest, err)
		return
	}
	if err := g.admit(caller, m); err != nil {
		x.refuse(refusedRate, err)
		return
	}
	x.answer(work{run: func(ctx context.Context) (json.RawMessage, error) { return method(ctx, g.server, caller, m.Params) }})
}

// checkModern refuses a request about tasks, before anything is looked up (E-64, T-39): for its metadata,
// for what its client does not declare, and for its headers.
func (g *Gateway) checkModern(x exchange, named bool) *mcptask.Error {
	if err := x.checkVersion(g.modern.Revision()); err != nil {
		return err
	}
	if err := g.modern.Check(x.message().meta.Capabilities); err != nil {
		return wireError(err)
	}
	return x.checkNames(named)
}

// attempt runs the work for a request; what panics is an internal error.
func (g *Gateway) attempt(ctx context.Context, m *message, work work) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil { // net/http recovers only its own goroutine
			g.server.Notice(slog.LevelError, "task method panicked", "method", m.Method, "panic", p)
			result, err = nil, mcptask.Errorf(mcptask.CodeInternalError, "internal error")
		}
	}()
	return work.run(ctx)
}

// answerError is the error that a request is answered with when its context is ctx.
func answerError(ctx context.Context, err error) *mcptask.Error {
	if ctx.Err() != nil { // the client no longer waits, or its session or the server ends
		return mcptask.Errorf(mcptask.CodeInternalError, "the request was ended before its answer was there")
	}
	return wireError(err)
}

// encodeAnswer makes the response to a request.
func encodeAnswer(ctx context.Context, m *message, result json.RawMessage, err error) []byte {
	if err == nil {
		return wire.EncodeResult(m.ID, result)
	}
	return wire.EncodeReply(m.ID, nil, answerError(ctx, err))
}
