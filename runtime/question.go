package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/plain"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
)

// MetaInput is the _meta key that names a question's generated type, so that
// a generated client knows which answerer fits.
const MetaInput = "io.github.mcptaskgen/input"

// MetaIdempotencyKey is the _meta key of a call's idempotency key.
const MetaIdempotencyKey = "io.github.mcptaskgen/idempotency-key"

// The requests that a task may send. CanAskURL is not a method but stands for
// elicitation/create in its URL mode, which a client declares apart.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
	CanAskURL    = "elicitation/create#url"
)

// Ask asks the requestor's person and waits for the answer. Step names the
// question within the task: when the handler runs again after a restart, the
// same step gets the stored answer. An empty message is the declared one.
// Generated Ask<Input> functions call it.
//
// Errors: ErrDeclined, ErrDismissed, ErrCannotAsk, ErrInvalidAnswer, and the
// context's own.
func Ask[T any](ctx context.Context, task *Task, input InputSpec, step, message string) (T, error) {
	var answer T
	if message == "" {
		message = input.Message
	}
	in, err := newElicitation("", input, message)
	if err != nil {
		return answer, err
	}
	response, err := task.askStep(ctx, step, in)
	if err != nil {
		return answer, err
	}
	return decodeAnswer[T](response, input)
}

// newQuestionInput makes the elicitation of a declared input.
func newElicitation(key string, input InputSpec, message string) (Input, error) {
	params, err := plain.Marshal(map[string]any{
		"mode":            "form",
		"message":         message,
		"requestedSchema": json.RawMessage(input.Schema),
		"_meta":           map[string]any{MetaInput: input.Name},
	})
	if err != nil {
		return Input{}, fmt.Errorf("mcptask: question for %s: %w", input.Name, err)
	}
	return Input{Key: key, Method: methodElicit, Params: params, Schema: json.RawMessage(input.Schema)}, nil
}

// decodeAnswer reads an accepted answer: only the members that the schema has
// checked.
func decodeAnswer[T any](response json.RawMessage, input InputSpec) (T, error) {
	var answer T
	content, err := parseElicitation(response)
	if err != nil {
		return answer, err
	}
	if content, err = plain.Declared(content, input.Schema); err != nil {
		return answer, fmt.Errorf("%w: %w", ErrInvalidAnswer, err)
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		return answer, fmt.Errorf("%w: %s", ErrInvalidAnswer, plain.Mismatch(err))
	}
	return answer, nil
}

// elicited is the content of an accepted answer to elicitation/create.
func parseElicitation(response json.RawMessage) (json.RawMessage, error) {
	var r struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(response, &r); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrInvalidAnswer, plain.Mismatch(err))
	}
	switch r.Action {
	case "accept":
		if len(r.Content) == 0 {
			return json.RawMessage("{}"), nil
		}
		return r.Content, nil
	case "decline":
		return nil, ErrDeclined
	case "cancel":
		return nil, ErrDismissed
	}
	return nil, fmt.Errorf("%w: action %q is not accept, decline or cancel", ErrInvalidAnswer, r.Action)
}

// CheckAnswer refuses an answer that is none to such a request, or that the
// question's schema does not admit. It stops when ctx ends, with its cause.
func CheckAnswer(ctx context.Context, in Input, response json.RawMessage) error {
	if in.Method != methodElicit {
		return checkRequestResult(in.Method, response)
	}
	content, err := parseElicitation(response)
	if errors.Is(err, ErrDeclined) || errors.Is(err, ErrDismissed) {
		return nil
	}
	if err != nil || in.Schema == nil {
		return err
	}
	v, err := validate.Compile(string(in.Schema), true)
	if err != nil {
		return err
	}
	if err := v.Check(ctx, content); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: %w", ErrInvalidAnswer, err)
	}
	return nil
}

// checkResult refuses what is no result of sampling/createMessage or roots/list.
func checkRequestResult(method string, response json.RawMessage) error {
	var r struct {
		SampleResult
		Roots []Root `json:"roots"`
	}
	if err := json.Unmarshal(response, &r); err != nil {
		return fmt.Errorf("%w: %s", ErrInvalidAnswer, plain.Mismatch(err))
	}
	if method == methodRoots && r.Roots == nil || method == methodSample && (r.Role == "" || r.Model == "" || r.Content == nil) {
		return fmt.Errorf("%w: it is no result of %s", ErrInvalidAnswer, method)
	}
	return nil
}

// Question is what an Answerer is asked.
type Question struct {
	// TaskID is the task that asks, "" where there is none yet.
	TaskID string
	// Key is the question's key, unique within its task; "" in 2025-11-25.
	Key string
	// Method is the request, elicitation/create for a person.
	Method string
	// Message is the text for the person.
	Message string
	// Input names the generated type of the answer, "" where the server does
	// not say.
	Input string
	// Schema is the JSON Schema of an accepted answer.
	Schema json.RawMessage
	// URL is the page to open, "" where the question is a form.
	URL string
	// Params is the whole request.
	Params json.RawMessage
}

// Unanswered is the response to a question that nobody here answers. A person's
// is dismissed, so that the task does not wait for ever. Another request has no
// such response: it fails with ErrCannotAsk, which 2025-11-25 can tell the
// server; in 2026-07-28 it stays open, and who waits for the task learns why.
func (q Question) Unanswered() (json.RawMessage, error) {
	if q.Method != methodElicit {
		return nil, fmt.Errorf("%w: nobody here answers %s", ErrCannotAsk, q.Method)
	}
	return json.RawMessage(`{"action":"cancel"}`), nil
}

// Agreed makes the response to a question without content, where err is nil,
// ErrDeclined or ErrDismissed; another err stays one.
func Agreed(err error) (response json.RawMessage, ok bool, failed error) {
	switch {
	case errors.Is(err, ErrDeclined):
		return json.RawMessage(`{"action":"decline"}`), true, nil
	case errors.Is(err, ErrDismissed):
		return json.RawMessage(`{"action":"cancel"}`), true, nil
	case err != nil:
		return nil, true, err
	}
	return json.RawMessage(`{"action":"accept"}`), true, nil
}

// Answerer answers questions. Make one with a generated Answer<Input> and
// join several with Answers. The zero Answerer answers none.
type Answerer struct{ answerers []answerer }

type answerer struct {
	input  InputSpec
	answer func(context.Context, Question) (any, error)
}

// Answer makes an Answerer for one input type. f returns ErrDeclined or
// ErrDismissed to refuse. It may be called concurrently.
func Answer[T any](input InputSpec, f func(context.Context, Question) (T, error)) Answerer {
	return Answerer{[]answerer{{input, func(ctx context.Context, q Question) (any, error) {
		answer, err := f(ctx, q)
		return &answer, err
	}}}}
}

// Answers joins answerers; the first that fits a question answers it.
func Answers(answerers ...Answerer) Answerer {
	var joined Answerer
	for _, a := range answerers {
		joined.answerers = append(joined.answerers, a.answerers...)
	}
	return joined
}

// Empty says whether there is nothing that it could answer.
func (a Answerer) Empty() bool { return len(a.answerers) == 0 }

// Answer answers one question as the response to its request. ok is false
// where no answerer fits; the error is the person's side failing.
func (a Answerer) Answer(ctx context.Context, q Question) (response json.RawMessage, ok bool, err error) {
	for _, candidate := range a.answerers {
		if !candidate.fitsQuestion(q) {
			continue
		}
		value, err := candidate.answer(ctx, q)
		if err != nil {
			return Agreed(err)
		}
		content, err := plain.Marshal(value)
		if err != nil {
			return nil, true, fmt.Errorf("mcptask: encode the answer: %w", err)
		}
		return json.RawMessage(`{"action":"accept","content":` + string(content) + `}`), true, nil
	}
	return nil, false, nil
}

// fits: the type's name where the server gives one, else an equal schema.
func (a answerer) fitsQuestion(q Question) bool {
	if q.Method != methodElicit || q.URL != "" {
		return false
	}
	if q.Input != "" {
		return q.Input == a.input.Name
	}
	var theirs, ours any
	return json.Unmarshal(q.Schema, &theirs) == nil &&
		json.Unmarshal([]byte(a.input.Schema), &ours) == nil &&
		reflect.DeepEqual(theirs, ours)
}

// NewQuestion reads a request such as elicitation/create.
func NewQuestion(taskID, key, method string, params json.RawMessage) (Question, error) {
	var p struct {
		Message         string                     `json:"message"`
		URL             string                     `json:"url"`
		RequestedSchema json.RawMessage            `json:"requestedSchema"`
		Meta            map[string]json.RawMessage `json:"_meta"`
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return Question{}, fmt.Errorf("mcptask: question %s: %s", key, plain.Mismatch(err))
	}
	q := Question{TaskID: taskID, Key: key, Method: method, Message: p.Message, URL: p.URL, Schema: p.RequestedSchema, Params: params}
	if name := p.Meta[MetaInput]; name != nil {
		// Anything but a string names no type of ours.
		_ = json.Unmarshal(name, &q.Input)
	}
	return q, nil
}
