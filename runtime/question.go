package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
)

// MetaInput is the _meta key that names a question's generated type. It tells a
// generated client which answerer fits.
const MetaInput = "io.github.mcptaskgen/input"

// MetaIdempotencyKey is the _meta key of a call's idempotency key.
const MetaIdempotencyKey = "io.github.mcptaskgen/idempotency-key"

// MetaUnattended is the _meta key by which a call says that nobody answers its questions by the
// fallback tools. The value is true. A question that the client has not declared then returns
// ErrCannotAsk to the handler. The generated client sends it with every call.
const MetaUnattended = "io.github.mcptaskgen/unattended"

// The requests that a task may send. CanAskURL is not a method. It stands for
// elicitation/create in its URL mode, which a client declares separately. methodCall
// stands for a tool that takes the answers to forms.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
	methodRoots  = "roots/list"
	methodCall   = "tools/call"
	CanAskURL    = "elicitation/create#url"
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
	p, err := decodeJSON[request](params)
	if err != nil {
		return Question{}, fmt.Errorf("mcptask: question %s: %w", key, err)
	}
	q := Question{TaskID: taskID, Key: key, Method: method, Message: p.Message, URL: p.URL, Schema: p.RequestedSchema, Params: params}
	if name := p.Meta[MetaInput]; name != nil {
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
	if q.Method != methodElicit {
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

// newElicitation makes the request that asks for a declared input.
func newElicitation(key string, input InputSpec, message string) (Input, error) {
	params, err := marshalJSON(map[string]any{
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

// requiredCapability names the capability that the requestor needs to answer the
// question.
func (in Input) requiredCapability() string {
	if in.Method == methodElicit && in.Schema == nil {
		return CanAskURL
	}
	return in.Method
}

// CheckAnswer returns an error if a response does not fit its request or the
// question's schema. It stops when ctx ends and returns the cause.
func CheckAnswer(ctx context.Context, in Input, response json.RawMessage) error {
	return checkAnswer(ctx, nil, in, response)
}

// checkAnswer is CheckAnswer with a cache of compiled schemas, which may be nil.
func checkAnswer(ctx context.Context, schemas *validate.Cache, in Input, response json.RawMessage) error {
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
	schema, err := schemas.Compile(in.Schema)
	if err != nil {
		return err
	}
	if err := schema.Check(ctx, content); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: %w", ErrInvalidAnswer, err)
	}
	return nil
}

// checkRequestResult checks a result of sampling/createMessage or roots/list.
func checkRequestResult(method string, response json.RawMessage) error {
	type result struct {
		SampleResult
		rootsResult
	}
	r, err := decodeJSON[result](response)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidAnswer, err)
	}
	noRoots := method == methodRoots && r.Roots == nil
	noSample := method == methodSample && (r.Role == "" || r.Model == "" || r.Content == nil)
	if noRoots || noSample {
		return fmt.Errorf("%w: it is no result of %s", ErrInvalidAnswer, method)
	}
	return nil
}

// explainFailure returns the handler's error for a question that the requestor has answered with a JSON-RPC error. A code
// outside of the range that JSON-RPC reserves is a refusal. SDKs check the answers that they send, and report a wrong
// one as invalid params. A client without the URL mode reports that with the same code. The result has only the text of
// failed: a handler may return it, and the task must not end with the requestor's own error.
func (in Input) explainFailure(failed *Error) error {
	const lowestReserved, highestReserved = -32768, -32000
	kind := ErrCannotAsk
	switch {
	case failed.Code < lowestReserved || failed.Code > highestReserved && failed.Code != 0: // 0 may mean that there is no code
		kind = ErrDeclined
	case failed.Code == CodeInvalidParams && in.requiredCapability() != CanAskURL:
		kind = ErrInvalidAnswer
	}
	return fmt.Errorf("%w: %s", kind, failed.Error())
}

// explainFailures returns a function that asks as ask does, and returns the handler's errors for the requestor's. ask may
// be nil.
func explainFailures(ask askFunc) askFunc {
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, in Input) (json.RawMessage, error) {
		response, err := ask(ctx, in)
		if failed := (*Error)(nil); errors.As(err, &failed) {
			err = in.explainFailure(failed)
		}
		return response, err
	}
}

type askFunc = func(context.Context, Input) (json.RawMessage, error)

// keepAnswer returns the members of a response that the server reads. It leaves out all others, and content that no
// schema has checked. It returns a response that does not fit its request unchanged.
func keepAnswer(in Input, response json.RawMessage) json.RawMessage {
	var kept json.RawMessage
	var err error
	switch in.Method {
	case methodElicit:
		kept, err = recode(response, func(r *elicitResult) {
			if r.Action != "accept" || in.Schema == nil {
				r.Content = nil
			}
		})
	case methodSample:
		kept, err = recode(response, func(*SampleResult) {})
	case methodRoots:
		kept, err = recode(response, func(*rootsResult) {})
	default:
		return response
	}
	if err != nil {
		return response
	}
	return kept
}

// recode decodes a value, changes it and encodes it again.
func recode[T any](value json.RawMessage, change func(*T)) (json.RawMessage, error) {
	v, err := decodeJSON[T](value)
	if err != nil {
		return nil, err
	}
	change(&v)
	return marshalJSON(v)
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

// parseElicitation returns the content of an accepted answer to elicitation/create.
func parseElicitation(response json.RawMessage) (json.RawMessage, error) {
	r, err := decodeJSON[elicitResult](response)
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
	content, err := parseElicitation(response)
	if err != nil {
		return answer, err
	}
	if content, err = keepDeclared(content, input.Schema); err != nil {
		return answer, fmt.Errorf("%w: %w", ErrInvalidAnswer, err)
	}
	if answer, err = decodeJSON[T](content); err != nil {
		return answer, fmt.Errorf("%w: %w", ErrInvalidAnswer, err)
	}
	return answer, nil
}
