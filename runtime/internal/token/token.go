// Package token writes and reads what takes a call up again.
package token

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Content is what a token says. The tool keeps it from being taken for another's.
type Content struct {
	Tool    string    `json:"tool"`
	TaskID  string    `json:"task"`
	Expires time.Time `json:"expires,omitzero"`
}

// Encode makes printable text of a content.
func Encode(c Content) string {
	data, err := json.Marshal(c)
	if err != nil { // strings and a time always marshal
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// Decode reads a token of the given tool.
func Decode(text, tool string) (Content, error) {
	var c Content
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err == nil && c.TaskID == "" {
		err = errors.New("it names no task")
	}
	if err != nil {
		return c, fmt.Errorf("mcptask: not a token of a call: %w", err)
	}
	if c.Tool != tool {
		return c, fmt.Errorf("mcptask: the token is of a call of %s, not of %s", c.Tool, tool)
	}
	return c, nil
}
