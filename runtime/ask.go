package mcptask

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
)

// capability names what a requestor must be able to answer for the question.
func (in Input) capability() string {
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
	result := new(SampleResult)
	if err := t.request(ctx, step, methodSample, request, result); err != nil {
		return nil, err
	}
	return result, nil
}

// Roots asks which places the requestor's user has opened. Step names the
// question, as for [Ask]. Errors: ErrCannotAsk, ErrInvalidAnswer, and the
// context's own.
func (t *Task) Roots(ctx context.Context, step string) ([]Root, error) {
	var result struct {
		Roots []Root `json:"roots"`
	}
	err := t.request(ctx, step, methodRoots, struct{}{}, &result)
	return result.Roots, err
}

// AskURL asks the requestor's person to open a page, for what must not pass
// through the client, such as a password or a payment. It returns when the
// person has agreed to open it, not when the page is done. Step names the
// question, as for [Ask]. Errors: ErrDeclined, ErrDismissed, ErrCannotAsk, and
// the context's own.
func (t *Task) AskURL(ctx context.Context, step, message, url string) error {
	response, err := t.ask(ctx, step, methodElicit, map[string]any{
		"mode": "url", "message": message, "url": url, "elicitationId": rand.Text(),
	})
	if err != nil {
		return err
	}
	_, err = elicited(response)
	return err
}

// request asks and decodes the response.
func (t *Task) request(ctx context.Context, step, method string, params, result any) error {
	response, err := t.ask(ctx, step, method, params)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(response, result); err != nil {
		return fmt.Errorf("%w: %s", ErrInvalidAnswer, decodeMessage(err))
	}
	return nil
}

func (t *Task) ask(ctx context.Context, step, method string, params any) (json.RawMessage, error) {
	if step == "" {
		return nil, fmt.Errorf("mcptask: a question needs the name of its step")
	}
	data, err := marshal(params)
	if err != nil {
		return nil, fmt.Errorf("mcptask: question %s: %w", step, err)
	}
	return t.host.Ask(ctx, Input{Key: t.stepKey(step), Method: method, Params: data})
}
