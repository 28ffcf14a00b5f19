package mcptask

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/plain"
)

// capability names what a requestor must be able to answer for the question.
func (in Input) requiredCapability() string {
	if in.Method == methodElicit && in.Schema == nil {
		return CanAskURL
	}
	return in.Method
}

// SampleRequest asks the requestor's model for a message.
type SampleRequest struct {
	Messages []SampleMessage `json:"messages"`
	// SystemPrompt is a wish; the client may change it.
	SystemPrompt string `json:"systemPrompt,omitempty"`
	// MaxTokens bounds the answer; it is required by the protocol.
	MaxTokens     int      `json:"maxTokens"`
	Temperature   *float64 `json:"temperature,omitempty"`
	StopSequences []string `json:"stopSequences,omitempty"`
}

// SampleMessage is one message of a conversation.
type SampleMessage struct {
	// Role is "user" or "assistant".
	Role    string  `json:"role"`
	Content Content `json:"content"`
}

// SampleResult is what the model answered.
type SampleResult struct {
	Role       string  `json:"role"`
	Content    Content `json:"content"`
	Model      string  `json:"model"`
	StopReason string  `json:"stopReason,omitempty"`
}

// Root is a place that the requestor's user has opened.
type Root struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}

// Sample asks the requestor's model. Step names the question, as for [Ask].
// Errors: ErrCannotAsk, ErrInvalidAnswer, and the context's own.
func (t *Task) Sample(ctx context.Context, step string, request SampleRequest) (*SampleResult, error) {
	response, err := t.sendRequest(ctx, step, methodSample, request)
	if err != nil {
		return nil, err
	}
	result := new(SampleResult)
	return result, json.Unmarshal(response, result)
}

// Roots asks which places the requestor's user has opened. Step names the
// question, as for [Ask]. Errors: ErrCannotAsk, ErrInvalidAnswer, and the
// context's own.
func (t *Task) Roots(ctx context.Context, step string) ([]Root, error) {
	response, err := t.sendRequest(ctx, step, methodRoots, struct{}{})
	if err != nil {
		return nil, err
	}
	var result struct {
		Roots []Root `json:"roots"`
	}
	err = json.Unmarshal(response, &result)
	return result.Roots, err
}

// AskURL asks the requestor's person to open a page, for what must not pass
// through the client, such as a password or a payment. It returns when the
// person has agreed to open it, not when the page is done. Step names the
// question, as for [Ask]. Errors: ErrDeclined, ErrDismissed, ErrCannotAsk, and
// the context's own.
func (t *Task) AskURL(ctx context.Context, step, message, url string) error {
	response, err := t.sendRequest(ctx, step, methodElicit, map[string]any{
		"mode": "url", "message": message, "url": url, "elicitationId": rand.Text(),
	})
	if err != nil {
		return err
	}
	_, err = parseElicitation(response)
	return err
}

// request sends a request of a task and returns its result.
func (t *Task) sendRequest(ctx context.Context, step, method string, params any) (json.RawMessage, error) {
	data, err := plain.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("mcptask: question %s: %w", step, err)
	}
	return t.askStep(ctx, step, Input{Method: method, Params: data})
}

// ask asks under the step's key. That of a question which an earlier attempt
// has withdrawn is used up (E-42): the step goes on with its next one.
func (t *Task) askStep(ctx context.Context, step string, in Input) (json.RawMessage, error) {
	if step == "" {
		return nil, fmt.Errorf("mcptask: a question needs the name of its step")
	}
	if !utf8.ValidString(step) { // it is in the ID by which the answer comes back
		return nil, fmt.Errorf("mcptask: the name of the step %q is not UTF-8", step)
	}
	for {
		in.Key = t.takeStepKey(step)
		response, err := t.host.Ask(ctx, in)
		if errors.Is(err, errWithdrawn) {
			continue
		}
		if err == nil {
			err = CheckAnswer(ctx, in, response) // 2025-11-25 takes what comes
		}
		return response, err
	}
}
