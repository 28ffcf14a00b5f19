package mcptask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
)

// SampleRequest asks the requestor's model for a message.
type SampleRequest struct {
	Messages []SampleMessage `json:"messages"`
	// SystemPrompt is a wish; the client may change it.
	SystemPrompt string `json:"systemPrompt,omitempty"`
	// MaxTokens bounds the answer. The protocol requires it.
	MaxTokens     int      `json:"maxTokens"`
	Temperature   *float64 `json:"temperature,omitempty"`
	StopSequences []string `json:"stopSequences,omitempty"`
}

// SampleMessage is one message of a conversation.
type SampleMessage struct {
	// Role is "user" or "assistant".
	Role    string        `json:"role"`
	Content SampleContent `json:"content"`
}

// SampleResult is the model's answer.
type SampleResult struct {
	Role       string        `json:"role"`
	Content    SampleContent `json:"content"`
	Model      string        `json:"model"`
	StopReason string        `json:"stopReason,omitempty"`
}

// SampleContent is the content of a message: one block or several, in order. In JSON, one block is an object, the form
// that every client reads, and several are a list. Both are decoded.
type SampleContent []Content

// Text joins the text blocks with newlines.
func (c SampleContent) Text() string { return (&Result{Content: c}).Text() }

// MarshalJSON implements json.Marshaler.
func (c SampleContent) MarshalJSON() ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("mcptask: %w", err)
	}
	if len(c) == 1 {
		return c[0], nil
	}
	list := []byte{'['} // json.Marshal would escape < and > in it
	for i, block := range c {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, block...)
	}
	return append(list, ']'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *SampleContent) UnmarshalJSON(data []byte) error {
	blocks := SampleContent{bytes.Clone(data)}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		if err := json.Unmarshal(data, (*[]Content)(&blocks)); err != nil {
			return err
		}
	}
	if err := blocks.check(); err != nil {
		return err
	}
	*c = blocks
	return nil
}

// sampleBlocks are the types of blocks that a message may have. A tool's result has others.
var sampleBlocks = []string{"text", "image", "audio", "tool_use", "tool_result"}

// check refuses content that a message may not have, because its reader would take it for an empty text.
func (c SampleContent) check() error {
	if len(c) == 0 {
		return errors.New("the content of a message has no blocks: add one, such as TextContent returns")
	}
	for i, block := range c {
		var kind struct {
			Type string
			Text *string
		}
		switch err := json.Unmarshal(block, &kind); {
		case err != nil || !isObject(block):
			return fmt.Errorf("block %d of the content of a message is not a content block: want an object with a type", i+1)
		case !slices.Contains(sampleBlocks, kind.Type):
			return fmt.Errorf("block %d of the content of a message has the type %.64q: want text, image, audio, tool_use or tool_result", i+1, kind.Type)
		case kind.Type == "text" && kind.Text == nil:
			return fmt.Errorf("block %d of the content of a message has the type text and no text", i+1)
		}
	}
	return nil
}

// isObject reports whether valid JSON is an object.
func isObject(data []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) }

// Sample asks the requestor's model. Step names the question, as for [Ask]. A message of several blocks needs a client
// of 2025-11-25 or later. Errors: ErrDeclined, ErrCannotAsk, ErrInvalidAnswer, and the context's own.
func (t *Task) Sample(ctx context.Context, step string, request SampleRequest) (*SampleResult, error) {
	if request.Messages == nil {
		request.Messages = []SampleMessage{} // null does not fit the protocol
	}
	for i, message := range request.Messages {
		if err := message.Content.check(); err != nil {
			return nil, fmt.Errorf("%s: message %d: %w", step, i+1, err)
		}
	}
	response, err := t.sendRequest(ctx, step, spec.Sample, request)
	if err != nil {
		return nil, err
	}
	result := new(SampleResult)
	return result, json.Unmarshal(response, result)
}
