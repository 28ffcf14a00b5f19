package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime/debug"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// answerSessionTask answers a tasks/* request of a session.
func (g *Gateway) answerSessionTask(x exchange, s *session, caller taskserver.Caller) {
	m := x.message()
	d := g.findRevision(s, caller, m)
	var method protocol.Method
	if d != nil {
		caller.Revision = d.Revision()
		method = d.Method(m.Method)
	}
	if method == nil {
		x.refuse(refusedRequest, unknownMethodError(m, caller.Revision))
		return
	}
	if err := g.checkRate(x.context(), caller, m); err != nil {
		x.refuse(refusedRate, err)
		return
	}
	if d.Blocks(m.Method) {
		g.answerWithHooks(x, caller, work{waits: true, run: func(ctx context.Context) (json.RawMessage, error) {
			return g.awaitTask(ctx, x, s, caller, d, method)
		}})
		return
	}
	written := func() {}
	g.answerWithHooks(x, caller, work{
		run: func(ctx context.Context) (json.RawMessage, error) {
			record, err := g.findTask(ctx, caller, s, d, m)
			if err != nil {
				return nil, err
			}
			if record.ID != "" {
				written = func() { g.settleAfterReply(x, s, record) }
				if m.Method == "tasks/get" { // show the record that was just read
					return d.Show(ctx, g.server, caller, m.Params, record)
				}
			}
			return method(ctx, g.server, caller, m.Params)
		},
		written: func() { written() },
	})
}

// awaitTask runs a method that waits for a task to end.
func (g *Gateway) awaitTask(ctx context.Context, x exchange, s *session, caller taskserver.Caller, d protocol.Teller, method protocol.Method) (json.RawMessage, error) {
	done, refusal := g.countWaiting(ctx, caller)
	if refusal != nil {
		return nil, refusal
	}
	defer done() // before the reply, after which the client may ask again
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

// findTask returns the task that a request names, and notes that the session knows it. If the
// request does not wait for the task, the caller must settle the task. findTask returns an empty
// record if the request names no task or the task does not exist; the method then reports the
// error. A request that waits for a task also waits for the store.
func (g *Gateway) findTask(ctx context.Context, caller taskserver.Caller, s *session, d protocol.Teller, m *message) (record taskstore.Record, err error) {
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
	case protocol.IsGone(err):
		g.mailbox(s).Forget(id)
		return taskstore.Record{}, nil
	case err != nil:
		return taskstore.Record{}, err
	}
	if d.Blocks(m.Method) { // its reply comes much later
		g.mailbox(s).Know(d, record)
		g.mailbox(s).Settle(record.ID, nil)
	} else {
		g.mailbox(s).KnowUnsettled(d, record)
	}
	return record, nil
}

// answerModernTask answers a tasks/* request of 2026-07-28. It checks in the order that T-39
// prescribes: method, request metadata, capability, headers, task.
func (g *Gateway) answerModernTask(x exchange, caller taskserver.Caller) {
	m := x.message()
	method := g.modern.Method(m.Method)
	if method == nil || !g.inRequests {
		x.refuse(refusedRequest, unknownMethodError(m, g.modern.Revision()))
		return
	}
	if err := g.checkModern(x, true); err != nil {
		x.refuse(refusedRequest, err)
		return
	}
	if err := g.checkRate(x.context(), caller, m); err != nil {
		x.refuse(refusedRate, err)
		return
	}
	g.answerWithHooks(x, caller, work{run: func(ctx context.Context) (json.RawMessage, error) {
		named := protocol.WithServerInfo(ctx, func(ctx context.Context) json.RawMessage { return g.findServerInfo(ctx, x) })
		return method(named, g.server, caller, m.Params)
	}})
}

// checkModern checks a request about tasks before any task is looked up (E-64, T-39). It checks the
// metadata, the client's capabilities and the headers.
func (g *Gateway) checkModern(x exchange, named bool) *mcptask.Error {
	if err := x.checkVersion(g.modern.Revision()); err != nil {
		return err
	}
	if err := g.modern.Check(x.message().Params); err != nil {
		return wireError(err)
	}
	return x.checkNames(named)
}

// runWork runs the work of a request, which may be the user's middleware. It turns a panic into an internal
// error. Callers may cause panics at any rate, so Notice logs them.
func (g *Gateway) runWork(ctx context.Context, m *message, work work) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.server.Notice(slog.LevelError, "request panicked", "method", m.Method, "panic", p, "stack", string(debug.Stack()))
			result, err = nil, mcptask.Errorf(mcptask.CodeInternalError, "internal error")
		}
	}()
	return work.run(ctx)
}

// answerError returns the error that answers a request whose context is ctx.
func answerError(ctx context.Context, err error) *mcptask.Error {
	if errors.Is(context.Cause(ctx), errCallerGone) {
		return mcptask.Errorf(mcptask.CodeInternalError, "%v: send it again with new ones", errCallerGone)
	}
	if ctx.Err() != nil { // the client no longer waits, or its session or the server ends
		return mcptask.Errorf(mcptask.CodeInternalError, "the request was ended before its answer was there")
	}
	return wireError(err)
}

// encodeAnswer returns the bytes of the response to a request.
func encodeAnswer(ctx context.Context, m *message, result json.RawMessage, err error) []byte {
	if err == nil {
		return wire.EncodeResult(m.ID, result)
	}
	return wire.EncodeReply(m.ID, nil, answerError(ctx, err))
}
