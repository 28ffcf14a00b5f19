package mcptask

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
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

// decodeJSON decodes a value that someone else wrote. It is json.Unmarshal, but takes 1.0 and 1e2 for integers, as JSON
// Schema does. It rewrites numbers only if the value cannot be decoded without, so that a json.RawMessage usually keeps
// its text.
func decodeJSON[T any](value json.RawMessage) (decoded T, err error) {
	if err = json.Unmarshal(value, &decoded); err == nil {
		return decoded, nil
	}
	if plain, changed := validate.PlainIntegers(value); changed {
		decoded = *new(T)
		err = json.Unmarshal(plain, &decoded)
	}
	if err != nil {
		err = describeMismatch(err)
	}
	return decoded, err
}

// describeMismatch returns an error of encoding/json in words that need no Go. It names the fields around the value.
func describeMismatch(err error) error {
	mismatch := (*json.UnmarshalTypeError)(nil)
	if !errors.As(err, &mismatch) || mismatch.Type == nil {
		return errors.New(strings.TrimPrefix(text.Shorten(err.Error(), 200), "json: "))
	}
	want := mismatch.Type.Kind().String()
	_, isNumber := strings.CutPrefix(mismatch.Value, "number ")
	switch kind := mismatch.Type.Kind(); {
	case kind >= reflect.Int && kind <= reflect.Float64 && !isNumber:
		want = "number"
	case kind >= reflect.Int && kind <= reflect.Int64:
		bits := 64 - mismatch.Type.Bits()
		want = fmt.Sprintf("an integer from %d to %d", int64(math.MinInt64)>>bits, int64(math.MaxInt64)>>bits)
	case kind >= reflect.Uint && kind <= reflect.Uintptr:
		want = fmt.Sprintf("an integer from 0 to %d", uint64(math.MaxUint64)>>(64-mismatch.Type.Bits()))
	case kind == reflect.Float32:
		want = fmt.Sprintf("a number from %v to %v", -math.MaxFloat32, math.MaxFloat32)
	case kind == reflect.Float64:
		want = fmt.Sprintf("a number from %v to %v", -math.MaxFloat64, math.MaxFloat64)
	case kind == reflect.Struct, kind == reflect.Map, kind == reflect.Interface, kind == reflect.Pointer:
		want = "object"
	case kind == reflect.Slice:
		want = "array"
	case kind == reflect.Bool:
		want = "boolean"
	}
	place := mismatch.Field
	if place != "" {
		place += ": "
	}
	return fmt.Errorf("%sgot %s, want %s", place, text.Shorten(mismatch.Value, 64), want)
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
