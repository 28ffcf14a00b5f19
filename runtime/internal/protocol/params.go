package protocol

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// Params are the params of a request. They are indexed once, for all who read a member. A value of
// the wrong type is the requestor's fault.
type Params = *wire.Object

// CheckParams refuses params that are not an object. Null has no members.
func CheckParams(params Params) error {
	switch raw := params.Raw(); {
	case len(raw) == 0:
		return mcptask.Errorf(mcptask.CodeInvalidParams, "the request has no params")
	case !params.IsObject() && string(raw) != "null":
		return mcptask.Errorf(mcptask.CodeInvalidParams, "the params must be an object, not a JSON %s", nameKind(raw))
	}
	return nil
}

// ReadValue reads the value at a path of params. It returns nil if the value is absent or null.
func ReadValue(params Params, path ...string) (json.RawMessage, error) {
	if err := CheckParams(params); err != nil {
		return nil, err
	}
	for i := 1; i < len(path); i++ {
		if inner := params.Object(path[:i]...); inner != nil && !inner.IsObject() && string(inner.Raw()) != "null" {
			return nil, refuseType(inner.Raw(), path[:i]...)
		}
	}
	raw := params.Get(path...)
	if string(raw) == "null" {
		raw = nil
	}
	return raw, nil
}

// readText reads the string at a path of params, nil if it is absent or null.
func readText(params Params, path ...string) (*string, error) {
	raw, err := ReadValue(params, path...)
	if raw == nil || err != nil {
		return nil, err
	}
	text, ok := wire.Text(raw)
	if !ok {
		return nil, refuseType(raw, path...)
	}
	return &text, nil
}

// readMembers reads the members of the object at a path of params, nil if it is absent or null.
func readMembers(params Params, path ...string) (map[string]json.RawMessage, error) {
	raw, err := ReadValue(params, path...)
	if raw == nil || err != nil {
		return nil, err
	}
	if inner := params.Object(path...); inner.IsObject() {
		return inner.All(), nil
	}
	return nil, refuseType(raw, path...)
}

// decodeValue decodes the value at a path of params, if it is there.
func decodeValue(params Params, v any, path ...string) error {
	raw, err := ReadValue(params, path...)
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

// refuseType refuses a value that has the wrong type.
func refuseType(raw json.RawMessage, path ...string) error {
	return mcptask.Errorf(mcptask.CodeInvalidParams, "params.%s must not be a JSON %s", strings.Join(path, "."), nameKind(raw))
}

// nameKind names the type of a JSON value as encoding/json does.
func nameKind(raw json.RawMessage) string {
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

// ReadTaskID reads params.taskId, the only thing that names a task (C-63).
func ReadTaskID(params Params) (string, error) {
	id, err := readText(params, "taskId")
	if err != nil {
		return "", err
	}
	if id == nil {
		return "", mcptask.Errorf(mcptask.CodeInvalidParams, "params.taskId is missing")
	}
	return *id, nil
}

// ReadIdempotencyKey reads the key from params._meta.
func ReadIdempotencyKey(params Params) (string, error) {
	key, err := readText(params, "_meta", spec.MetaIdempotencyKey)
	if key == nil || err != nil {
		return "", err
	}
	const longest = 256
	if *key == "" || len(*key) > longest {
		return "", mcptask.Errorf(mcptask.CodeInvalidParams, "an idempotency key has 1 to %d bytes", longest)
	}
	return *key, nil
}
