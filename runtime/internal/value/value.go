// Package value encodes and decodes the JSON values that people and other programs write.
package value

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

// Marshal is json.Marshal without HTML escaping: people read < and > as such.
// It takes the address of v, so that a field whose type has MarshalJSON on its
// pointer, such as big.Int, is written with it.
func Marshal[T any](v T) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Decode decodes a value that someone else wrote. It is json.Unmarshal, but takes 1.0 and 1e2 for integers, as JSON
// Schema does. It rewrites numbers only if the value cannot be decoded without, so that a json.RawMessage usually keeps
// its text.
func Decode[T any](value json.RawMessage) (decoded T, err error) {
	decoded, err = decode[T](value)
	if err == nil {
		return decoded, nil
	}
	why := describeMismatch(err)
	place := findPlace(value, func(part json.RawMessage) bool {
		_, err := decode[T](part)
		return err != nil && describeMismatch(err) == why
	})
	if place != "" {
		why = place + ": " + why
	}
	return decoded, errors.New(why)
}

func decode[T any](value json.RawMessage) (decoded T, err error) {
	if err = json.Unmarshal(value, &decoded); err == nil {
		return decoded, nil
	}
	if plain, changed := validate.PlainIntegers(value); changed {
		decoded = *new(T)
		err = json.Unmarshal(plain, &decoded)
	}
	return decoded, err
}

// describeMismatch describes an error of encoding/json in words that need no Go, without its place.
func describeMismatch(err error) string {
	mismatch := (*json.UnmarshalTypeError)(nil)
	if !errors.As(err, &mismatch) || mismatch.Type == nil {
		return strings.TrimPrefix(text.Shorten(err.Error(), 200), "json: ")
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
	return fmt.Sprintf("got %s, want %s", text.Shorten(mismatch.Value, 64), want)
}
