package taskserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/cause"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Call answers a tools/call that the gateway has negotiated. It checks the
// arguments before it creates anything. An error is a JSON-RPC error for the
// caller; a tool error is an outcome.
func (b *Backend) Call(ctx context.Context, caller Caller, tool string, arguments json.RawMessage, call CallRequest) (_ CallReply, failed error) {
	defer guard.Then(b.logger, "call", func() { failed = newInternalError() })
	t, ok := b.catalog.findTool(tool)
	if !ok {
		return CallReply{}, mcptask.Errorf(mcptask.CodeInvalidParams, "unknown tool %q", tool)
	}
	if len(arguments) == 0 || bytes.Equal(arguments, []byte("null")) {
		arguments = json.RawMessage("{}")
	}
	bound, err := t.bindArguments(ctx, arguments, call.Bind)
	if err != nil {
		if ctx.Err() != nil {
			return CallReply{}, ctx.Err()
		}
		text := fmt.Sprintf("invalid arguments: %v", err)
		if call.Mode == ModeTask {
			return CallReply{}, mcptask.Errorf(mcptask.CodeInvalidParams, "%s", text)
		}
		return newErrorReply(text)
	}
	// The end of the server ends the call, but not the storing of a task.
	open, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(b.closing, guard.Func(b.logger, "the end of a call", func() { stop(mcptask.ErrServerClosed) }))()
	if trace := TraceOf(ctx); trace != "" {
		call.Trace = trace
	}
	call.bound = bound
	plain := taskstore.Record{Principal: caller.Principal, Tool: t.Spec.Name, Revision: caller.Revision, Trace: call.Trace, Attempt: 1}
	call.Ask = b.hookAsk(plain, explainFailures(call.Ask))
	answers, reply, err := b.askUpfront(open, caller, t, call)
	switch {
	case err != nil:
		return CallReply{}, err
	case reply != nil:
		return *reply, nil
	}
	if call.Mode == ModePlain {
		outcome, err := b.runPlainCall(open, plain, caller, t, call, answers)
		return CallReply{Outcome: outcome}, err
	}
	return b.createTask(ctx, caller, t, arguments, call, answers)
}

// bindArguments checks arguments against their schema, and binds the handler to them and their defaults. It uses bind,
// or the tool's own if bind is nil.
func (t *registeredTool) bindArguments(ctx context.Context, arguments json.RawMessage, bind func(json.RawMessage) (mcptask.BoundCall, error)) (mcptask.BoundCall, error) {
	if bind == nil {
		bind = t.Bind
	}
	var err error
	if t.IsBare {
		err = t.input.Check(ctx, arguments)
	} else {
		arguments, err = t.input.CheckAndFill(ctx, arguments)
	}
	if err != nil {
		return nil, err
	}
	return bind(arguments)
}

// bindStored binds the handler to the arguments of a stored task, whose tool may have been declared anew since. If they do
// not fit its present schema, the error is ErrChanged. With onchange=run, the handler gets them as they are, without
// defaults. If decoding them panics, bindStored returns a call that panics, since callers recover the panics of calls.
func (t *registeredTool) bindStored(arguments json.RawMessage) (bound mcptask.BoundCall, misfit *mcptask.Error) {
	defer func() {
		if p := recover(); p != nil {
			why := fmt.Sprintf("%v\n%s", p, debug.Stack())
			bound = func(context.Context, *mcptask.Task) (*mcptask.Result, error) { panic(why) }
		}
	}()
	bound, err := t.bindArguments(context.Background(), arguments, nil)
	if err != nil && t.Spec.Policy.OnChange == mcptask.RunOnChange {
		bound, err = t.Bind(arguments)
	}
	if err != nil {
		return nil, withReason(mcptask.Errorf(mcptask.CodeInternalError, "started under another declaration: %v", err), cause.Changed)
	}
	return bound, nil
}

// newErrorReply makes the reply of a tool error.
func newErrorReply(text string) (CallReply, error) {
	result, err := value.Marshal(mcptask.ErrorResult(text))
	return CallReply{Outcome: &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: result, IsError: true}}, err
}

// runPlainCall runs the handler within the request. run describes the run to hooks.
func (b *Backend) runPlainCall(ctx context.Context, run taskstore.Record, caller Caller, t *registeredTool, call CallRequest, answers []taskstore.Input) (*taskstore.Outcome, error) {
	if b.closing.Err() != nil {
		return nil, newShutdownError()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := startStopwatch(0, t.Spec.Policy.Deadline, func() { cancel(mcptask.ErrDeadline) })
	defer watch.stop()
	task := mcptask.NewTask(callHost{caller, call, watch}, mcptask.TaskInfo{
		Principal: caller.Principal,
		Attempt:   1,
		Trace:     call.Trace,
		Questions: t.Spec.Questions,
		Answers:   listResponses(answers),
	})
	wait := t.Spec.Policy.Wait
	ctx, cancelWait := limit.Timeout(ctx, wait, errWaitOver)
	defer cancelWait()
	ctx, ended := b.hookRun(ctx, RunInfo{Task: run, IsAwaited: true})
	outcome := newInternalOutcome() // which stays if the handler ends its goroutine
	defer func() { ended(newRunResult(ctx, *outcome)) }()
	outcome = b.limitOutcome(ctx, caller, "", t.Spec.Name, b.invokeHandler(ctx, t, task, call.bound))
	switch cause := context.Cause(ctx); {
	case outcome.Kind != taskstore.OutcomeCancelled:
	case errors.Is(cause, mcptask.ErrServerClosed):
		return nil, newShutdownError()
	case errors.Is(cause, errWaitOver):
		text := fmt.Sprintf("%s did not finish within the %v that a call without a task may take, and was cancelled. "+
			"Call it as a task to let it run longer.", t.Spec.Name, wait)
		reply, err := newErrorReply(text)
		return reply.Outcome, err
	}
	return outcome, nil
}

// callHost is the Host of a call without a task.
type callHost struct {
	caller Caller
	call   CallRequest
	watch  *stopwatch
}

// Report implements Host.
func (h callHost) Report(_ context.Context, done, total float64, message string) {
	if h.call.Progress != nil {
		h.call.Progress("", done, total, message)
	}
}

// Returned implements Host.
func (h callHost) Returned() error {
	if h.call.Returned == nil {
		return nil
	}
	return h.call.Returned()
}

// Ask implements Host. It asks on the call's own stream, if the revision has one.
func (h callHost) Ask(ctx context.Context, in mcptask.Request) (json.RawMessage, error) {
	if err := h.caller.checkCanAsk(in, h.call.Ask != nil); err != nil {
		return nil, err
	}
	defer h.watch.pause()()
	return h.call.Ask(ctx, in)
}

// LeaveSlot lets the deadline wait for [mcptask.Task.WithoutSlot]. A plain call has no slot.
func (h callHost) LeaveSlot() (takeBack func()) { return h.watch.pause() }
