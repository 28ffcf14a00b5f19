package mcptask

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Result is a tool's result: content for the model and, optionally, structured
// content for programs. A handler returns one to choose its content itself.
type Result struct {
	// Content is shown to the model, in order.
	Content []Content `json:"content"`
	// Structured is a JSON value that fits the tool's output schema.
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	// IsError reports whether the tool failed in a way that the model should read.
	IsError bool `json:"isError,omitempty"`
	// Meta is the result's _meta.
	Meta map[string]json.RawMessage `json:"_meta,omitempty"`
}

// Text joins the text blocks of the content with newlines.
func (r *Result) Text() string {
	if r == nil {
		return ""
	}
	var texts []string
	for _, c := range r.Content {
		if text, ok := c.readText(); ok {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// Content is one content block as JSON, such as {"type":"text","text":"…"}.
// Blocks of types that this package does not know pass through unchanged.
type Content json.RawMessage

// Text returns the text of a text block. It returns "" for any other block.
func (c Content) Text() string {
	text, _ := c.readText()
	return text
}

// MarshalJSON implements json.Marshaler.
func (c Content) MarshalJSON() ([]byte, error) {
	switch {
	case len(c) == 0:
		return nil, fmt.Errorf("mcptask: an empty content block: make one with TextContent or ImageContent")
	case !isObject(c):
		return nil, fmt.Errorf("mcptask: a content block is an object, and not %.64s: append the blocks of a list one by one", c)
	}
	return c, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Content) UnmarshalJSON(data []byte) error {
	*c = bytes.Clone(data)
	return nil
}

// TextContent makes a block of text.
func TextContent(text string) Content {
	return encodeBlock(struct { // most results have one, and a map takes three times as long
		Text string `json:"text"`
		Type string `json:"type"`
	}{text, "text"})
}

// ImageContent makes a block with an image. mime is its media type, such as image/png.
func ImageContent(data []byte, mime string) Content {
	return encodeBlock(map[string]any{"type": "image", "data": data, "mimeType": mime})
}

// AudioContent makes a block with sound. mime is its media type, such as audio/wav.
func AudioContent(data []byte, mime string) Content {
	return encodeBlock(map[string]any{"type": "audio", "data": data, "mimeType": mime})
}

// LinkContent makes a block that links to a resource.
func LinkContent(uri, name string) Content {
	return encodeBlock(map[string]any{"type": "resource_link", "uri": uri, "name": name})
}

// encodeBlock writes a content block as JSON.
func encodeBlock(block any) Content {
	data, err := json.Marshal(block)
	if err != nil { // strings and bytes always marshal
		return Content(`{"type":"text","text":""}`)
	}
	return data
}

// readText returns the text of a text block. ok is false for other blocks.
func (c Content) readText() (text string, ok bool) {
	var block struct{ Type, Text string }
	if json.Unmarshal(c, &block) != nil || block.Type != "text" {
		return "", false
	}
	return block.Text, true
}

// ErrorResult makes a tool error with a message.
func ErrorResult(message string) *Result {
	return &Result{Content: []Content{TextContent(message)}, IsError: true}
}
