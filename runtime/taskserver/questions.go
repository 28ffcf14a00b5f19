package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// upfrontKeyPrefix starts the keys of questions that are asked before the task, so
// that they never equal the keys of steps.
const upfrontKeyPrefix = "before/"

// askUpfront gets the answers to the questions that a tool asks before
// its call. It takes those that came with the call, asks while the call is open, or
// returns a reply that makes the requestor call again. A refusal is a tool error,
// and the handler does not run. The run of a task also calls it, for the questions
// that were left to the task, and for those whose form has changed since they were answered.
func (b *Backend) askUpfront(ctx context.Context, caller Caller, t *registeredTool, call CallRequest) (answers []taskstore.Input, reply *CallReply, err error) {
	var missing []taskstore.Input
	for _, spec := range t.Spec.Questions {
		request, err := spec.Request(upfrontKeyPrefix+spec.Name, spec.Message)
		if err != nil {
			return nil, nil, err
		}
		in := taskstore.Input{Request: request}
		response, ok := call.Answers[in.Key]
		if ok && call.inRun && errors.Is(mcptask.CheckAnswer(ctx, request, response), mcptask.ErrInvalidAnswer) {
			ok = false
		}
		switch {
		case ok:
		case call.Retry && caller.Answers(request):
			missing = append(missing, in)
			continue
		case call.Later || call.ByTool:
			continue // the task asks before its handler runs
		default:
			if err = caller.checkCanAsk(request, call.Ask != nil); err == nil {
				response, err = call.Ask(ctx, request)
			}
			switch {
			case endedByCaller(ctx):
				return nil, nil, ctx.Err()
			case err != nil:
				return refuseUpfront(spec, err)
			}
		}
		if err := mcptask.CheckAnswer(ctx, request, response); err != nil {
			if endedByCaller(ctx) {
				return nil, nil, ctx.Err()
			}
			if call.Retry {
				return nil, nil, mcptask.Errorf(mcptask.CodeInvalidParams, "the answer to %q was not taken: %v", in.Key, err)
			}
			return refuseUpfront(spec, err)
		}
		if _, err := mcptask.AcceptedContent(response); err != nil {
			return refuseUpfront(spec, err)
		}
		in.State, in.Response = taskstore.InputAnswered, keepAnswer(request, response)
		answers = append(answers, in)
	}
	if missing != nil {
		return nil, &CallReply{Questions: missing, Answered: answers}, nil
	}
	return answers, nil, nil
}

// endedByCaller reports whether a context has ended, and not because the server
// closes.
func endedByCaller(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), mcptask.ErrServerClosed)
}

// refuseUpfront makes the reply to a call whose question was not answered.
func refuseUpfront(spec mcptask.InputSpec, err error) ([]taskstore.Input, *CallReply, error) {
	if errors.Is(err, mcptask.ErrServerClosed) {
		return nil, nil, newShutdownError()
	}
	reply, encodeErr := newErrorReply(fmt.Sprintf("%s was asked for and not given: %v", spec.Name, err))
	return nil, &reply, encodeErr
}

// collectResponses returns the answers that a task has, by key.
func collectResponses(r *taskstore.Record) map[string]json.RawMessage {
	responses := map[string]json.RawMessage{}
	for _, in := range r.Inputs {
		if in.Response != nil {
			responses[in.Key] = in.Response
		}
	}
	return responses
}

// listResponses returns the responses to questions, in their order.
func listResponses(inputs []taskstore.Input) []json.RawMessage {
	var list []json.RawMessage
	for _, in := range inputs {
		list = append(list, in.Response)
	}
	return list
}
