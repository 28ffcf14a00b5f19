package taskflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.temporal.io/sdk/workflow"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/internal/flowwire"
)

// question is an open question.
type question struct {
	key    string
	size   int              // in JSON
	answer *flowwire.Answer // nil while it is open
}

// Ask asks the requestor's person and waits for the answer. Step names the question within the task: a
// replay, a retry of the workflow and a new start of the server keep the question, and use its
// answer again. A step that is asked again in the same run is another question, and so is each step of
// a run that was continued as new. An empty message means that of input. Generated code has the
// InputSpec of each answer's type.
//
// The end of ctx withdraws the question. Ask then returns the error of ctx.
//
// The name of a step has no @. The open questions of a workflow may have a mebibyte in all, with their schemas, as JSON
// in which <, > and & take six bytes each.
//
// Errors: mcptask.ErrDeclined, mcptask.ErrDismissed, mcptask.ErrCannotAsk and
// mcptask.ErrInvalidAnswer, with the step's name, for errors.Is. ErrCannotAsk also says that
// temporal.Run did not start the workflow. A workflow may return these errors: the model reads their text.
func Ask[T any](ctx workflow.Context, t *Task, input mcptask.InputSpec, step, message string) (T, error) {
	content, err := t.ask(ctx, input, step, message)
	if err != nil {
		var none T
		return none, err
	}
	return decodeAnswer[T](content, step)
}

// ask returns the content of the answer.
func (t *Task) ask(ctx workflow.Context, input mcptask.InputSpec, step, message string) (json.RawMessage, error) {
	if message == "" {
		message = input.Message
	}
	switch {
	case step == "":
		return nil, errors.New("taskflow: a question needs the name of its step")
	case !utf8.ValidString(step):
		return nil, fmt.Errorf("taskflow: the name of the step %q is not UTF-8", step)
	case strings.Contains(step, "@"): // see takeKey
		return nil, fmt.Errorf("taskflow: the name of the step %q has an @: choose another name", step)
	case !json.Valid([]byte(input.Schema)):
		return nil, fmt.Errorf("taskflow: %s: the schema of the input %q is not JSON: use the InputSpec that was generated for the answer's type", step, input.Name)
	case !t.isStartedByRun:
		return nil, fmt.Errorf("%s: %w: the workflow was not started for a task", step, mcptask.ErrCannotAsk)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	key, err := t.takeKey(ctx, step)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", step, err)
	}
	asked := flowwire.Question{Key: key, Message: message, Input: flowwire.Input{Name: input.Name, Schema: json.RawMessage(input.Schema)}}
	q := &question{key: key, size: measureQuestion(asked)}
	if size := q.size + t.measureOpen(); size > maxQuestions {
		return nil, fmt.Errorf("taskflow: %s: the open questions have %d bytes, and %d is the most: put large data where the person can fetch it", step, size, maxQuestions)
	}
	t.waiting = append(t.waiting, q)
	t.state.Questions = append(slices.Clip(t.state.Questions), asked)
	defer t.closeQuestion(q)
	if err := workflow.Await(ctx, func() bool { return q.answer != nil }); err != nil {
		return nil, err
	}
	if q.answer.Refusal != "" {
		return nil, newRefusal(step, *q.answer)
	}
	return q.answer.Content, nil
}

// maxQuestions is how many bytes the open questions may have. Temporal refuses answers to queries of more than 2 MiB.
const maxQuestions = 1 << 20

// measureQuestion returns how many bytes a question has in the answer to a query, with the escapes of JSON. Temporal's
// workflowcheck would report everything in encoding/json as non-deterministic.
//
//workflowcheck:ignore
func measureQuestion(q flowwire.Question) int {
	data, err := json.Marshal(q)
	if err != nil {
		panic(err) // the schema is JSON, so it is a fault of this package
	}
	return len(data)
}

// measureOpen returns how many bytes the open questions have.
func (t *Task) measureOpen() (size int) {
	for _, q := range t.waiting {
		if q.answer == nil {
			size += q.size
		}
	}
	return size
}

// takeKey returns the key of a step: its name, and step@1.2 if the first run asks it a second time. A run that
// was continued as new must not get the answers of the runs before it: its keys are step@2 and step@2.2. They
// have no #, because the server writes step#2 if it asks again for a key that was withdrawn, and the two
// must not be confused.
func (t *Task) takeKey(ctx workflow.Context, step string) (string, error) {
	if len(t.keys) == 0 {
		// The next run begins with the memo that this run leaves. But a retry begins with the memo that this run began
		// with, so that it asks for the same keys.
		next := t.memo
		next.Run++
		if err := workflow.UpsertMemo(ctx, map[string]any{flowwire.MemoTask: next}); err != nil {
			return "", err
		}
	}
	run := strconv.Itoa(t.memo.Run + 1)
	key := step
	if t.memo.Run > 0 {
		key = step + "@" + run
	}
	for n := 2; t.keys[key]; n++ {
		key = step + "@" + run + "." + strconv.Itoa(n)
	}
	t.keys[key] = true
	return key, nil
}

// takeAnswer gives an answer to the question that waits for it. Answers may come more than once, and
// after their question was withdrawn.
func (t *Task) takeAnswer(answer flowwire.Answer) {
	for _, q := range t.waiting {
		if q.key == answer.Key && q.answer == nil {
			q.answer = &answer
			t.hideQuestion(q.key)
		}
	}
}

// closeQuestion ends the wait for a question.
func (t *Task) closeQuestion(closed *question) {
	t.waiting = slices.DeleteFunc(t.waiting, func(q *question) bool { return q == closed })
	t.hideQuestion(closed.key)
}

// hideQuestion removes a question from the state. It makes a new slice, since the query may have
// returned the old one.
func (t *Task) hideQuestion(key string) {
	t.state.Questions = slices.DeleteFunc(slices.Clone(t.state.Questions), func(q flowwire.Question) bool { return q.Key == key })
}

// decodeAnswer decodes the content of an answer, which the server has checked against the schema. Temporal's
// workflowcheck would report everything in encoding/json as non-deterministic.
//
//workflowcheck:ignore
func decodeAnswer[T any](content json.RawMessage, step string) (answer T, err error) {
	defer func() {
		if p := recover(); p != nil { // of the type's own decoder: it must not block the workflow
			err = fmt.Errorf("%s: %w: its type panics when it is decoded", step, mcptask.ErrInvalidAnswer)
		}
	}()
	// The schema has the members of this very answer and takes any value for them: the server has checked the
	// answer against the real schema, and a later version must not decide otherwise in a replay.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(content, &members); err != nil {
		return answer, fmt.Errorf("%s: %w: it is not an object", step, mcptask.ErrInvalidAnswer)
	}
	properties := map[string]struct{}{}
	for name := range members {
		properties[name] = struct{}{}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties})
	if err != nil {
		return answer, err
	}
	task := mcptask.NewTask(answeredHost{content}, mcptask.TaskInfo{Attempt: 1})
	return mcptask.Ask[T](context.Background(), task, mcptask.InputSpec{Schema: string(schema)}, step, "")
}

// answeredHost is a Host whose questions all have the same answer.
type answeredHost struct{ content json.RawMessage }

// Report implements mcptask.Host.
func (answeredHost) Report(context.Context, float64, float64, string) {}

// Ask implements mcptask.Host.
func (h answeredHost) Ask(context.Context, mcptask.Request) (json.RawMessage, error) {
	return json.Marshal(map[string]any{"action": "accept", "content": h.content})
}

// refusal is the error of a question without an answer.
type refusal struct {
	text  string
	cause error // one of mcptask's, or nil
}

// newRefusal makes the error of a step from its answer.
func newRefusal(step string, answer flowwire.Answer) *refusal {
	r := &refusal{text: step + ": " + answer.Text, cause: answer.Refusal.Err()}
	if answer.Text == "" {
		r.text = step + ": the question was not answered"
		if r.cause != nil {
			r.text = step + ": " + r.cause.Error()
		}
	}
	return r
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

// Is reports whether the target is the error of package mcptask that the refusal stands for. There is no
// Unwrap: a failure in Temporal would repeat the text as its cause.
func (r *refusal) Is(target error) bool { return r.cause != nil && errors.Is(r.cause, target) }
