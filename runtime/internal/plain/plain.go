// Package plain takes Go values as people and other languages expect them.
package plain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Marshal is json.Marshal without HTML escaping: < and > reach people as such. A
// field whose type writes itself by a pointer, as big.Int does, is written so.
func Marshal[T any](v T) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Mismatch says what of a value did not fit, without Go's names for it.
func Mismatch(err error) string {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && mismatch.Field != "" {
		return fmt.Sprintf("%s must not be a JSON %s", mismatch.Field, mismatch.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// Declared is an object with only the members that a schema has properties for:
// encoding/json would also take their names in another case. What is no object
// stays as it is.
func Declared(object json.RawMessage, schema string) (json.RawMessage, error) {
	var declared struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var members map[string]json.RawMessage
	unread := errors.Join(json.Unmarshal([]byte(schema), &declared), json.Unmarshal(object, &members))
	if unread != nil {
		return object, nil //nolint:nilerr // who decodes the whole says what is wrong
	}
	for name := range members {
		if _, ok := declared.Properties[name]; !ok {
			delete(members, name)
		}
	}
	return Marshal(members)
}

// IsNil sees through an interface that holds a nil pointer, map or function.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Interface, reflect.Slice, reflect.Chan:
		return rv.IsNil()
	}
	return false
}

// FirstText is the first text among the content blocks of a tool's result, or "".
func FirstText(result json.RawMessage) string {
	var r struct {
		Content []struct{ Type, Text string } `json:"content"`
	}
	_ = json.Unmarshal(result, &r) // what is otherwise has none
	for _, block := range r.Content {
		if block.Type == "text" {
			return block.Text
		}
	}
	return ""
}
