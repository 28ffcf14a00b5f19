package mcptask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
)

// Call answers a tools/call that the gateway has negotiated. It checks the
// arguments before it creates anything. An error is a JSON-RPC error for the
// caller; a tool error is an outcome.
func (s *Server) Call(ctx context.Context, caller Caller, tool string, arguments json.RawMessage, call CallRequest) (_ CallReply, failed error) {
	defer guard.Then(s.logger, "call", func() { failed = newInternalError() })
	t, ok := s.catalog.findTool(tool)
	if !ok {
		return CallReply{}, Errorf(CodeInvalidParams, "unknown tool %q", tool)
	}
	if len(arguments) == 0 || bytes.Equal(arguments, []byte("null")) {
		arguments = json.RawMessage("{}")
	}
	bound, err := t.bindArguments(ctx, arguments)
	if err != nil {
		if ctx.Err() != nil {
			return CallReply{}, ctx.Err()
		}
		text := fmt.Sprintf("invalid arguments: %v", err)
		if call.Mode == ModeTask {
			return CallReply{}, Errorf(CodeInvalidParams, "%s", text)
		}
		return newErrorReply(text)
	}
	// The end of the server ends the call, but not the storing of a task.
	open, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(s.closing, guard.Func(s.logger, "the end of a call", func() { stop(ErrServerClosed) }))()
	if trace := TraceOf(ctx); trace != "" {
		call.Trace = trace
	}
	call.bound = bound
	plain := Record{Principal: caller.Principal, Tool: tool, Revision: caller.Revision, Trace: call.Trace, Attempt: 1}
	call.Ask = s.hookAsk(plain, explainFailures(call.Ask))
	answers, reply, err := s.settleUpfrontQuestions(open, caller, t, call)
	switch {
	case err != nil:
		return CallReply{}, err
	case reply != nil:
		return *reply, nil
	}
	if call.Mode == ModePlain {
		outcome, err := s.runPlainCall(open, plain, caller, t, call, answers)
		return CallReply{Outcome: outcome}, err
	}
	return s.createTask(ctx, caller, t, arguments, call, answers)
}

// bindArguments checks arguments against their schema, and binds the handler to them and their defaults.
func (t *registeredTool) bindArguments(ctx context.Context, arguments json.RawMessage) (boundCall, error) {
	var err error
	if t.raw {
		err = t.input.Check(ctx, arguments)
	} else {
		arguments, err = t.input.CheckAndFill(ctx, arguments)
	}
	if err != nil {
		return nil, err
	}
	return t.bind(arguments)
}

// bindStored binds the handler to the arguments of a task that was stored. If its declaration has changed since, they
// may not fit their schema any more, and get no defaults then.
func (t *registeredTool) bindStored(arguments json.RawMessage) boundCall {
	return func(ctx context.Context, task *Task) (*Result, error) {
		if filled, err := t.input.CheckAndFill(context.WithoutCancel(ctx), arguments); err == nil && !t.raw {
			arguments = filled
		}
		bound, err := t.bind(arguments)
		if err != nil {
			return ErrorResult(fmt.Sprintf("invalid arguments: %v", err)), nil
		}
		return bound(ctx, task)
	}
}

// newErrorReply makes the reply of a tool error.
func newErrorReply(text string) (CallReply, error) {
	result, err := marshalJSON(ErrorResult(text))
	return CallReply{Outcome: &Outcome{Kind: OutcomeResult, Result: result, IsError: true}}, err
}

// runPlainCall runs the handler within the request. run describes the run to hooks.
func (s *Server) runPlainCall(ctx context.Context, run Record, caller Caller, t *registeredTool, call CallRequest, answers []Input) (*Outcome, error) {
	if s.closing.Err() != nil {
		return nil, newShutdownError()
	}
	task := &Task{
		principal: caller.Principal,
		attempt:   1,
		trace:     call.Trace,
		host:      callHost{caller, call},
		upfront:   pairUpfrontAnswers(t, answers),
		schemas:   &s.schemas,
	}
	wait := t.spec.Policy.Wait
	ctx, cancelWait := limit.Timeout(ctx, wait, errWaitOver)
	defer cancelWait()
	ctx, cancelDeadline := limit.Timeout(ctx, t.spec.Policy.Deadline, errDeadlineOver)
	defer cancelDeadline()
	ctx, ended := s.hookRun(ctx, RunInfo{Task: run, IsAwaited: true})
	outcome := newInternalOutcome() // which stays if the handler ends its goroutine
	defer func() { ended(newRunResult(ctx, *outcome)) }()
	outcome = s.limitOutcome(ctx, caller, "", t.spec.Name, s.invokeHandler(ctx, t, task, call.bound))
	switch cause := context.Cause(ctx); {
	case outcome.Kind != OutcomeCancelled:
	case errors.Is(cause, ErrServerClosed):
		return nil, newShutdownError()
	case errors.Is(cause, errWaitOver):
		text := fmt.Sprintf("%s did not finish within the %v that a call without a task may take, and was cancelled. "+
			"Call it as a task to let it run longer.", t.spec.Name, wait)
		reply, err := newErrorReply(text)
		return reply.Outcome, err
	}
	return outcome, nil
}

// callHost is the Host of a call without a task.
type callHost struct {
	caller Caller
	call   CallRequest
}

// Report implements Host.
func (h callHost) Report(_ context.Context, done, total float64, message string) {
	if h.call.Progress != nil {
		h.call.Progress("", done, total, message)
	}
}

// Ask implements Host. It asks on the call's own stream, if the revision has one.
func (h callHost) Ask(ctx context.Context, in Input) (json.RawMessage, error) {
	if err := h.caller.checkCanAsk(in, h.call.Ask != nil); err != nil {
		return nil, err
	}
	return h.call.Ask(ctx, in)
}
