package mcptask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// marshalJSON is json.Marshal without HTML escaping: people read < and > as such.
// It takes the address of v, so that a field whose type has MarshalJSON on its
// pointer, such as big.Int, is written with it.
func marshalJSON[T any](v T) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// describeMismatch says what was wrong with a JSON value without naming Go types.
func describeMismatch(err error) string {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && mismatch.Field != "" {
		return fmt.Sprintf("%s must not be a JSON %s", mismatch.Field, mismatch.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

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
	return marshalJSON(members)
}

// readFirstText returns the first text in the content blocks of a tool's result,
// or "".
func readFirstText(result json.RawMessage) string {
	var r struct {
		Content []struct{ Type, Text string } `json:"content"`
	}
	_ = json.Unmarshal(result, &r) // any other JSON has no text
	for _, block := range r.Content {
		if block.Type == "text" {
			return block.Text
		}
	}
	return ""
}

// isNil reports whether v is nil, or an interface that holds a nil pointer, map,
// function, slice or channel.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Interface, reflect.Slice, reflect.Chan:
		return rv.IsNil()
	}
	return false
}
