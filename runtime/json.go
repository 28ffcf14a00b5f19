package mcptask

import (
	"encoding/json"
	"errors"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"
)

// keepDeclared removes the members of an object that its schema has no properties
// for. Without it, encoding/json would also take members whose names differ in
// case. It returns anything but an object unchanged.
func keepDeclared(object json.RawMessage, schema string) (json.RawMessage, error) {
	var declared struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var members map[string]json.RawMessage
	unread := errors.Join(json.Unmarshal([]byte(schema), &declared), json.Unmarshal(object, &members))
	if unread != nil {
		return object, nil //nolint:nilerr // whoever decodes the whole value reports what is wrong with it
	}
	for name := range members {
		if _, ok := declared.Properties[name]; !ok {
			delete(members, name)
		}
	}
	return value.Marshal(members)
}
