package gateway

import (
	"bytes"
	"encoding/json"
)

// setMember sets a member deep in an object, making the objects on the way.
// Nothing is escaped anew: a message must not grow on its way.
func setMember(object json.RawMessage, path []string, value json.RawMessage) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(object) > 0 {
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, err
		}
	}
	if members == nil { // null
		members = map[string]json.RawMessage{}
	}
	if len(path) > 1 {
		inner, err := setMember(members[path[0]], path[1:], value)
		if err != nil {
			return nil, err
		}
		value = inner
	}
	members[path[0]] = value
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(members); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
