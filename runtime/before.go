package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// keyBefore precedes the keys of questions that are asked before the task, so
// that they never meet the keys of steps.
const upfrontKeyPrefix = "before/"

// before settles the questions of a tool before its call: by the answers that
// came with it, by asking while it is open, or by a reply that makes the
// requestor call again. A refusal is a tool error; the handler does not run. A
// task asks so too, for what was left to it.
func (s *Server) settleUpfrontQuestions(ctx context.Context, caller Caller, t *registeredTool, call CallRequest) (answers []Input, reply *CallReply, err error) {
	var missing []Input
	for _, spec := range t.spec.Questions {
		in, err := newElicitation(upfrontKeyPrefix+spec.Name, spec, spec.Message)
		if err != nil {
			return nil, nil, err
		}
		response, ok := call.Answers[in.Key]
		switch {
		case ok:
		case call.Retry && caller.Answers(in):
			missing = append(missing, in)
			continue
		case call.Later:
			continue // the task asks, before its handler runs
		default:
			if err = caller.checkCanAsk(in, call.Ask != nil); err == nil {
				response, err = call.Ask(ctx, in)
			}
			switch {
			case ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrServerClosed):
				return nil, nil, ctx.Err()
			case err != nil:
				return refuseUpfront(spec, err)
			}
		}
		if err := CheckAnswer(ctx, in, response); err != nil {
			if ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrServerClosed) {
				return nil, nil, ctx.Err()
			}
			if call.Retry {
				return nil, nil, Errorf(CodeInvalidParams, "the answer to %q was not taken: %v", in.Key, err)
			}
			return refuseUpfront(spec, err)
		}
		if _, err := parseElicitation(response); err != nil {
			return refuseUpfront(spec, err)
		}
		in.State, in.Response = InputAnswered, response
		answers = append(answers, in)
	}
	if missing != nil {
		return nil, &CallReply{Questions: missing, Answered: answers}, nil
	}
	return answers, nil, nil
}

func refuseUpfront(spec InputSpec, err error) ([]Input, *CallReply, error) {
	if errors.Is(err, ErrServerClosed) {
		return nil, nil, newShutdownError()
	}
	reply, encodeErr := newErrorReply(fmt.Sprintf("%s was asked for and not given: %v", spec.Name, err))
	return nil, &reply, encodeErr
}

// responses are the answers that a task has, by key.
func (r *Record) collectResponses() map[string]json.RawMessage {
	given := map[string]json.RawMessage{}
	for _, in := range r.Inputs {
		if in.Response != nil {
			given[in.Key] = in.Response
		}
	}
	return given
}

// given is an answer from before the task.
type upfrontAnswer struct {
	input    InputSpec
	response json.RawMessage
}

// givenAnswers pairs a tool's questions with what was answered to them.
func pairUpfrontAnswers(t *registeredTool, inputs []Input) []upfrontAnswer {
	var list []upfrontAnswer
	for i, in := range inputs {
		list = append(list, upfrontAnswer{t.spec.Questions[i], in.Response})
	}
	return list
}

// Asked returns the answer that was given before the task: to the i-th of
// ToolSpec.Questions. Generated code calls it.
func Asked[T any](task *Task, i int) (T, error) {
	var answer T
	if i >= len(task.answers) {
		return answer, ErrCannotAsk
	}
	return decodeAnswer[T](task.answers[i].response, task.answers[i].input)
}

// Answers says whether the caller answers such a request.
func (c Caller) Answers(in Input) bool { return slices.Contains(c.CanAsk, in.requiredCapability()) }

// canAsk says why the caller cannot be asked; way is whether there is one to.
func (c Caller) checkCanAsk(in Input, way bool) error {
	switch {
	case !c.Answers(in):
		return fmt.Errorf("%w: its client has not declared that it answers %s", ErrCannotAsk, in.requiredCapability())
	case !way:
		return fmt.Errorf("%w: this plain call in %s has no way to ask: call the tool as a task", ErrCannotAsk, c.Revision)
	}
	return nil
}

// Observe calls f with each version of a task that this process stores or sees
// while a requestor waits, and of one that it deletes unfinished because its
// ExpiresAt has passed, until stop is called. A version may come twice or late. f
// must not block.
func (s *Server) Observe(f func(Record)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := new(int)
	s.observers[key] = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.observers, key)
	}
}

func (s *Server) notifyObservers(r Record) {
	s.mu.Lock()
	observers := make([]func(Record), 0, len(s.observers))
	for _, f := range s.observers {
		observers = append(observers, f)
	}
	s.mu.Unlock()
	for _, f := range observers {
		f(r)
	}
}
