package protocol

import (
	"encoding/json"
	"errors"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// Params are those of a request. They are read once, for all who ask for a member. What
// does not fit is the requestor's fault.
type Params = *wire.Object

// checkParams refuses params that are not an object. Null has no members.
func checkParams(params Params) error {
	switch raw := params.Raw(); {
	case len(raw) == 0:
		return mcptask.Errorf(mcptask.CodeInvalidParams, "the request has no params")
	case !params.IsObject() && string(raw) != "null":
		return mcptask.Errorf(mcptask.CodeInvalidParams, "the params must be an object, not a JSON %s", kindOf(raw))
	}
	return nil
}

// valueAt reads the value at a path of params. It returns nil if the value is absent or null.
func valueAt(params Params, path ...string) (json.RawMessage, error) {
	if err := checkParams(params); err != nil {
		return nil, err
	}
	for i := 1; i < len(path); i++ {
		if inner := params.Object(path[:i]...); inner != nil && !inner.IsObject() && string(inner.Raw()) != "null" {
			return nil, mismatch(inner.Raw(), path[:i]...)
		}
	}
	raw := params.Get(path...)
	if string(raw) == "null" {
		raw = nil
	}
	return raw, nil
}

// textAt reads the string at a path of params, nil if it is absent or null.
func textAt(params Params, path ...string) (*string, error) {
	raw, err := valueAt(params, path...)
	if raw == nil || err != nil {
		return nil, err
	}
	text, ok := wire.Text(raw)
	if !ok {
		return nil, mismatch(raw, path...)
	}
	return &text, nil
}

// membersAt reads the members of the object at a path of params, nil if it is absent or null.
func membersAt(params Params, path ...string) (map[string]json.RawMessage, error) {
	raw, err := valueAt(params, path...)
	if raw == nil || err != nil {
		return nil, err
	}
	if inner := params.Object(path...); inner.IsObject() {
		return inner.All(), nil
	}
	return nil, mismatch(raw, path...)
}

// decodeAt decodes the value at a path of params, if it is there.
func decodeAt(params Params, v any, path ...string) error {
	raw, err := valueAt(params, path...)
	if raw == nil || err != nil {
		return err
	}
	err = json.Unmarshal(raw, v)
	var unfit *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &unfit): // the message is JSON
		return mcptask.Errorf(mcptask.CodeInvalidParams, "params.%s is malformed", strings.Join(path, "."))
	case unfit.Field != "":
		path = append(path, unfit.Field)
	}
	return mcptask.Errorf(mcptask.CodeInvalidParams, "params.%s must not be a JSON %s", strings.Join(path, "."), unfit.Value)
}

// mismatch refuses a value that has the wrong type.
func mismatch(raw json.RawMessage, path ...string) error {
	return mcptask.Errorf(mcptask.CodeInvalidParams, "params.%s must not be a JSON %s", strings.Join(path, "."), kindOf(raw))
}

// kindOf names the type of a JSON value as encoding/json does.
func kindOf(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "bool"
	}
	return "number"
}

// taskID reads params.taskId, the only thing that names a task (C-63).
func taskID(params Params) (string, error) {
	id, err := textAt(params, "taskId")
	if err != nil {
		return "", err
	}
	if id == nil {
		return "", mcptask.Errorf(mcptask.CodeInvalidParams, "params.taskId is missing")
	}
	return *id, nil
}

// idempotencyKey reads the key from params._meta.
func idempotencyKey(params Params) (string, error) {
	key, err := textAt(params, "_meta", mcptask.MetaIdempotencyKey)
	if key == nil || err != nil {
		return "", err
	}
	const longest = 256
	if *key == "" || len(*key) > longest {
		return "", mcptask.Errorf(mcptask.CodeInvalidParams, "an idempotency key has 1 to %d bytes", longest)
	}
	return *key, nil
}
