package mcptask

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Token is a call to be taken up again later, by this process or another. It
// is printable, and as secret as the task's ID.
type Token string

type tokenContent struct {
	Tool    string    `json:"tool"`
	TaskID  string    `json:"task"`
	Expires time.Time `json:"expires,omitzero"`
}

func newToken(c tokenContent) Token {
	data, err := json.Marshal(c)
	if err != nil { // strings and a time always marshal
		return ""
	}
	return Token(base64.RawURLEncoding.EncodeToString(data))
}

// parse reads a token of the given tool.
func (t Token) parse(tool string) (tokenContent, error) {
	var c tokenContent
	data, err := base64.RawURLEncoding.Strict().DecodeString(string(t))
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
