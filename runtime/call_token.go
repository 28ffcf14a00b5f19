package mcptask

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Token identifies a call that this process or another one resumes later. It is
// printable text. Keep it as secret as the task's ID, which it contains.
type Token string

// NewToken returns a token for a task that is known by its ID alone, for example from a log. Resume takes it with the
// same tool, which may be "" if the task's tool is not known.
func NewToken(tool, taskID string) Token {
	return encodeToken(tokenContent{Tool: tool, TaskID: taskID})
}

// Renamed returns the token for the name that its tool has now, if the token has one of the former names. It returns any
// other token as it is. The client of a tool with was= uses it, so that a token from before the change still resumes its
// call.
func (t Token) Renamed(tool string, was ...string) Token {
	for _, former := range was {
		if c, err := decodeToken(t, former); err == nil {
			c.Tool = tool
			return encodeToken(c)
		}
	}
	return t
}

// tokenContent is the JSON in a token. The tool's name prevents a token from
// resuming a call of another tool.
type tokenContent struct {
	Tool    string    `json:"tool"`
	TaskID  string    `json:"task"`
	Expires time.Time `json:"expires,omitzero"`
}

// encodeToken writes a content as a token.
func encodeToken(c tokenContent) Token {
	data, err := json.Marshal(c)
	if err != nil { // strings and a time always marshal
		return ""
	}
	return Token(base64.RawURLEncoding.EncodeToString(data))
}

// decodeToken reads a token of the given tool.
func decodeToken(token Token, tool string) (tokenContent, error) {
	var c tokenContent
	data, err := base64.RawURLEncoding.Strict().DecodeString(string(token))
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
