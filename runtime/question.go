package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
)

// Question is a question as an Answerer gets it.
type Question struct {
	// TaskID is the task that asks, or "" if there is no task yet.
	TaskID string
	// Key is the question's key, unique within its task; "" in 2025-11-25.
	Key string
	// Method is the request, elicitation/create for a person.
	Method string
	// Message is the text for the person.
	Message string
	// Input names the generated type of the answer, or is "" if the server does
	// not say.
	Input string
	// Schema is the JSON Schema of an accepted answer.
	Schema json.RawMessage
	// URL is the page to open, or "" if the question is a form.
	URL string
	// Params is the whole request.
	Params json.RawMessage
}

// NewQuestion reads a request such as elicitation/create.
func NewQuestion(taskID, key, method string, params json.RawMessage) (Question, error) {
	type request struct {
		Message         string                     `json:"message"`
		URL             string                     `json:"url"`
		RequestedSchema json.RawMessage            `json:"requestedSchema"`
		Meta            map[string]json.RawMessage `json:"_meta"`
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	p, err := value.Decode[request](params)
	if err != nil {
		return Question{}, fmt.Errorf("mcptask: question %s: %w", key, err)
	}
	q := Question{TaskID: taskID, Key: key, Method: method, Message: p.Message, URL: p.URL, Schema: p.RequestedSchema, Params: params}
	if name := p.Meta[spec.MetaInput]; name != nil {
		// Generated types have string names; any other value leaves Input empty.
		_ = json.Unmarshal(name, &q.Input)
	}
	return q, nil
}

// Unanswered returns the response to a question that no answerer of this client
// takes. A question for a person counts as dismissed, so that the task does not
// wait forever. Other requests have no such response and fail with ErrCannotAsk.
// In 2025-11-25 the client can send that error to the server. In 2026-07-28 the
// question stays open, and the call's Wait returns the error.
func (q Question) Unanswered() (json.RawMessage, error) {
	if q.Method != spec.Elicit {
		return nil, fmt.Errorf("%w: no answerer is set for %s", ErrCannotAsk, q.Method)
	}
	return json.RawMessage(`{"action":"cancel"}`), nil
}

// Agreed makes the response to a question without content: accept if err is nil,
// decline for ErrDeclined, cancel for ErrDismissed. It returns any other err as
// failed.
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

// Request is a question of a task as its requestor gets it.
type Request struct {
	// Key names the question within its task.
	Key string
	// Method and Params are those of the request, such as elicitation/create.
	Method string
	Params json.RawMessage
	// Schema is the JSON Schema of an accepted answer's content; nil allows anything.
	Schema json.RawMessage
}

// Request makes the request that asks for the input, with a key and a message.
func (input InputSpec) Request(key, message string) (Request, error) {
	params, err := value.Marshal(map[string]any{
		"mode":            "form",
		"message":         message,
		"requestedSchema": json.RawMessage(input.Schema),
		"_meta":           map[string]any{spec.MetaInput: input.Name},
	})
	if err != nil {
		return Request{}, fmt.Errorf("mcptask: question for %s: %w", input.Name, err)
	}
	return Request{Key: key, Method: spec.Elicit, Params: params, Schema: json.RawMessage(input.Schema)}, nil
}

// CheckAnswer returns an error if a response does not fit its request or the question's schema. A property that is not
// required may also be null, or "" in place of a choice: both count as left out. CheckAnswer stops when ctx ends and
// returns the cause.
func CheckAnswer(ctx context.Context, in Request, response json.RawMessage) error {
	if in.Method != spec.Elicit {
		return checkRequestResult(in.Method, response)
	}
	content, err := AcceptedContent(response)
	if errors.Is(err, ErrDeclined) || errors.Is(err, ErrDismissed) {
		return nil
	}
	if err != nil || in.Schema == nil {
		return err
	}
	schema, err := validate.Compile(string(in.Schema), true)
	if err != nil {
		return err
	}
	if err := schema.Check(ctx, schema.PlainAnswer(ctx, content)); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: %w", ErrInvalidAnswer, err)
	}
	return nil
}

// checkRequestResult checks a result of sampling/createMessage or roots/list.
func checkRequestResult(method string, response json.RawMessage) (err error) {
	switch method {
	case spec.Sample:
		var r SampleResult
		if r, err = value.Decode[SampleResult](response); err == nil && (r.Role == "" || r.Model == "" || r.Content == nil) {
			err = fmt.Errorf("a result of %s needs a role, a model and content", method)
		}
	case spec.Roots:
		var r rootsResult
		if r, err = value.Decode[rootsResult](response); err == nil && r.Roots == nil {
			err = fmt.Errorf("a result of %s needs roots", method)
		}
	default:
		_, err = value.Decode[map[string]json.RawMessage](response)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidAnswer, err)
	}
	return nil
}

// elicitResult is a result of elicitation/create.
type elicitResult struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// rootsResult is a result of roots/list.
type rootsResult struct {
	Roots []Root `json:"roots"`
}

// AcceptedContent returns the content of an accepted answer to elicitation/create, as a JSON object. The error is
// ErrDeclined, ErrDismissed or ErrInvalidAnswer.
func AcceptedContent(response json.RawMessage) (json.RawMessage, error) {
	r, err := value.Decode[elicitResult](response)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidAnswer, err)
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

// decodeAnswer decodes an accepted answer. It takes only the members that the
// schema has checked.
func decodeAnswer[T any](response json.RawMessage, input InputSpec) (T, error) {
	var answer T
	content, err := AcceptedContent(response)
	if err != nil {
		return answer, err
	}
	schema, err := validate.Compile(input.Schema, true)
	if err != nil {
		return answer, err
	}
	if content, err = keepDeclared(schema.PlainAnswer(context.Background(), content), input.Schema); err != nil {
		return answer, fmt.Errorf("%w: %w", ErrInvalidAnswer, err)
	}
	if answer, err = value.Decode[T](content); err != nil {
		return answer, fmt.Errorf("%w: %w", ErrInvalidAnswer, err)
	}
	return answer, nil
}
