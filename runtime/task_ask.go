package mcptask

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/cause"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"
)

// Ask asks the requestor's person and waits for the answer. Step names the
// question within the task: when the handler runs again after a restart, the
// same step gets the stored answer. An empty message means the declared one.
// Generated Ask<Input> functions call it.
//
// Errors: ErrDeclined, ErrDismissed, ErrCannotAsk, ErrInvalidAnswer, with the step's
// name, and the context's own.
func Ask[T any](ctx context.Context, task *Task, input InputSpec, step, message string) (T, error) {
	var answer T
	if message == "" {
		message = input.Message
	}
	in, err := input.Request("", message)
	if err != nil {
		return answer, err
	}
	response, err := task.askStep(ctx, step, in)
	if err != nil {
		return answer, err
	}
	if answer, err = decodeAnswer[T](response, input); err != nil {
		return answer, fmt.Errorf("%s: %w", step, err)
	}
	return answer, nil
}

// Asked returns the answer that was given before the task to the i-th of
// ToolSpec.Questions. Generated code calls it.
func Asked[T any](task *Task, i int) (T, error) {
	var answer T
	if i >= len(task.info.Answers) {
		return answer, ErrCannotAsk
	}
	return decodeAnswer[T](task.info.Answers[i], task.info.Questions[i])
}

// Root is a place that the requestor's user has opened.
type Root struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}

// Roots asks which places the requestor's user has opened. Step names the
// question, as for [Ask]. Errors: ErrDeclined, ErrCannotAsk, ErrInvalidAnswer,
// and the context's own.
func (t *Task) Roots(ctx context.Context, step string) ([]Root, error) {
	response, err := t.sendRequest(ctx, step, spec.Roots, struct{}{})
	if err != nil {
		return nil, err
	}
	var result rootsResult
	err = json.Unmarshal(response, &result)
	return result.Roots, err
}

// AskURL asks the requestor's person to open a page, for secrets that must not pass through the client, such as a
// password or a payment. It returns when the person has agreed to open the page, not when the page is done. Step names
// the question, as for [Ask]. Errors: ErrDeclined, ErrDismissed, ErrCannotAsk, and the context's own.
func (t *Task) AskURL(ctx context.Context, step, message, url string) error {
	response, err := t.sendRequest(ctx, step, spec.Elicit, map[string]any{
		"mode": "url", "message": message, "url": url, "elicitationId": rand.Text(),
	})
	if err != nil {
		return err
	}
	if _, err = AcceptedContent(response); err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

// sendRequest sends a request of the task and returns its result.
func (t *Task) sendRequest(ctx context.Context, step, method string, params any) (json.RawMessage, error) {
	data, err := value.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", step, err)
	}
	return t.askStep(ctx, step, Request{Method: method, Params: data})
}

// askStep asks a question under the step's key. If an earlier attempt withdrew
// the question of that key, the key cannot be used again (E-42), and the step
// takes its next one.
func (t *Task) askStep(ctx context.Context, step string, in Request) (json.RawMessage, error) {
	if in.Schema != nil { // no answer would be taken
		if _, err := validate.Compile(string(in.Schema), true); err != nil {
			return nil, fmt.Errorf("%s: the question has a schema that no answer fits: %w", step, err)
		}
	}
	isNewForm := ctx.Value(cause.NewForm{}) != nil
	for {
		var err error
		if isNewForm { // the same question, and not the step's next one
			in.Key, isNewForm = escapeStep(step), false
		} else if in.Key, _, err = t.takeStepKey(step); err != nil {
			return nil, err
		}
		response, err := t.host.Ask(ctx, in)
		if errors.Is(err, cause.ErrWithdrawn) {
			continue
		}
		if err == nil {
			err = CheckAnswer(ctx, in, response) // 2025-11-25 stores responses unchecked
		}
		return response, err
	}
}
