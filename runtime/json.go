package mcptask

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

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

// decodeJSON decodes a value that someone else wrote. Its error names the place in the value, and says in
// JSON's words what was wrong.
func decodeJSON[T any](value json.RawMessage) (T, error) {
	decoded, err := unmarshal[T](value)
	if err != nil {
		err = locateMismatch(value, func(part json.RawMessage) error {
			_, err := unmarshal[T](part)
			return err
		}, err)
	}
	return decoded, err
}

// unmarshal is json.Unmarshal, but takes 1.0 and 1e2 for integers, as JSON Schema does. It rewrites numbers only
// if the value cannot be decoded without, so that a json.RawMessage usually keeps its text.
func unmarshal[T any](value json.RawMessage) (T, error) {
	var decoded T
	err := json.Unmarshal(value, &decoded)
	if err == nil {
		return decoded, nil
	}
	plain, changed := validate.PlainIntegers(value)
	if !changed {
		return decoded, err
	}
	var again T
	return again, json.Unmarshal(plain, &again)
}

// describeMismatch says in JSON's words why a value was not decoded.
func describeMismatch(value json.RawMessage, err error) string {
	var mismatch *json.UnmarshalTypeError
	var noTime *time.ParseError
	var noBase64 base64.CorruptInputError
	var noNumber *strconv.NumError
	value = json.RawMessage(text.Shorten(string(value), 100))
	words := text.Shorten(err.Error(), 200)
	switch {
	case errors.As(err, &mismatch) && mismatch.Type != nil:
		got, isLiteral := strings.CutPrefix(mismatch.Value, "number ")
		switch {
		case got == "bool":
			got = "boolean"
		case isLiteral && value[0] != '{' && value[0] != '[':
			got = string(value) // as it was sent
		}
		want := nameKind(mismatch.Type, isLiteral)
		if isLiteral && value[0] == '"' {
			want += ", in quotes"
		}
		return fmt.Sprintf("got %s, want %s", text.Shorten(got, longestName), want)
	case errors.As(err, &noTime):
		example := time.Date(2026, time.January, 2, 15, 4, 5, 0, time.UTC).Format(noTime.Layout)
		return fmt.Sprintf("%s is not a time: write one such as %s", value, example)
	case errors.As(err, &noBase64):
		return fmt.Sprintf("%s is not base64: write it such as aGVsbG8=", value)
	case errors.As(err, &noNumber) && !strings.HasPrefix(words, "slog: "):
		// Another type's words may stand before it.
		return strings.Replace(words, text.Shorten(noNumber.Error(), 200), text.Shorten(strconv.Quote(noNumber.Num), longestName)+" is not a number of this kind", 1)
	case strings.HasPrefix(words, "json: invalid use of ,string"):
		return fmt.Sprintf(`%s has no such value between its quotes: write one such as "7" or "true"`, value)
	}
	for _, parser := range parsers {
		rest, ok := strings.CutPrefix(words, parser.begin)
		if !ok {
			continue
		}
		if part, err := strconv.QuotedPrefix(rest); err == nil { // of the value
			value = json.RawMessage(part)
		}
		return fmt.Sprintf("%s is not %s", value, parser.wanted)
	}
	if strings.Contains(strings.ToLower(words), "unmarshal") { // these words name Go types
		return fmt.Sprintf("%s cannot be read", value)
	}
	return strings.TrimPrefix(words, "json: ")
}

// parsers has the beginnings of errors of the standard library, and what they say that a value is not.
var parsers = []struct{ begin, wanted string }{
	{"Time.UnmarshalJSON: ", "a time: write one such as 2026-01-02T15:04:05Z"},
	{"time: ", "a duration: write one such as 1h30m"},
	{"ParseAddr(", "an IP address: write one such as 192.0.2.1"},
	{"invalid IP address: ", "an IP address: write one such as 192.0.2.1"},
	{"netip.ParsePrefix(", "a range of IP addresses: write one such as 192.0.2.0/24"},
	{"not an ip:port", "an IP address with a port: write one such as 192.0.2.1:80"},
	{"invalid port", "an IP address with a port: write one such as 192.0.2.1:80"},
	{"slog: level string ", "a level: write one such as INFO"},
	{"error parsing regexp: ", "a regular expression in the syntax of RE2"},
	{"json: invalid number literal", "a number"},
	{"math/big: ", "a number of this kind"},
}

// nameKind names the JSON values that a Go type takes. With the range, it says which numbers are among them.
func nameKind(t reflect.Type, withRange bool) string {
	kind := t.Kind()
	isInteger, isFloat := kind >= reflect.Int && kind <= reflect.Uintptr, kind == reflect.Float32 || kind == reflect.Float64
	switch {
	case t == reflect.TypeFor[json.Number]():
		return "number"
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()), kind == reflect.String:
		return "string"
	case kind == reflect.Bool:
		return "boolean"
	case isInteger && !withRange:
		return "integer"
	case isInteger && kind >= reflect.Uint:
		return fmt.Sprintf("an integer from 0 to %d", uint64(math.MaxUint64)>>(64-t.Bits()))
	case isInteger:
		return fmt.Sprintf("an integer from %d to %d", int64(math.MinInt64)>>(64-t.Bits()), int64(math.MaxInt64)>>(64-t.Bits()))
	case isFloat && !withRange:
		return "number"
	case isFloat:
		most := map[reflect.Kind]float64{reflect.Float32: math.MaxFloat32, reflect.Float64: math.MaxFloat64}[kind]
		return fmt.Sprintf("a number from %v to %v", -most, most)
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "a string in base64"
	case kind == reflect.Slice, kind == reflect.Array:
		return "array"
	}
	return "object"
}

// maxMismatchDepth bounds how deep locateMismatch looks, and so its work: each level decodes the
// value about twice, and the names above it once for each halving.
const maxMismatchDepth = 10

// longestName bounds the bytes of each name in an error.
const longestName = 64

// locateMismatch returns an error of decode with its place in the value, such as "steps.2.until". The
// UnmarshalJSON method that failed does not know that place. locateMismatch halves the members of the
// value until the first one that fails is alone, then those of that member.
func locateMismatch(value json.RawMessage, decode func(json.RawMessage) error, err error) error {
	var place []string
	before, after := "", "" // what the value stands in
	descend := func() bool {
		opening, members, closing := splitMembers(value)
		begin, end := before+opening, closing+after
		fails := func(some []member) error {
			var part bytes.Buffer
			part.WriteString(begin)
			for i, m := range some {
				if i > 0 {
					part.WriteByte(',')
				}
				part.WriteString(m.key)
				part.Write(m.value)
			}
			part.WriteString(end)
			return decode(part.Bytes())
		}
		if empty := fails(nil); empty != nil && empty.Error() == err.Error() {
			return false // the members do not matter
		}
		for len(members) > 1 {
			half := members[:len(members)/2]
			if fails(half) == nil {
				half = members[len(members)/2:]
			}
			members = half
		}
		if len(members) == 0 {
			return false
		}
		m := members[0]
		failed := fails(members)
		if failed == nil {
			return false
		}
		place = append(place, text.Shorten(m.name, longestName))
		if name, isName := strings.CutSuffix(m.key, ":"); isName {
			// A name that a map does not take fails whatever its value is.
			if unnamed := fails([]member{{m.name, m.key, json.RawMessage("null")}}); unnamed != nil && unnamed.Error() == failed.Error() {
				value, err = json.RawMessage(name), failed
				return false
			}
		}
		before, after, value, err = begin+m.key, end, m.value, failed
		return true
	}
	for len(place) < maxMismatchDepth && descend() {
	}
	what := describeMismatch(value, err)
	if len(place) == 0 {
		return errors.New(what)
	}
	return fmt.Errorf("%s: %s", strings.Join(place, "."), what)
}

// member is a member of an object, with its key and a colon, or an element of an array.
type member struct {
	name, key string
	value     json.RawMessage
}

// splitMembers returns the members of an object, ordered by name, or the elements of an array, with the
// brackets around them.
func splitMembers(value json.RawMessage) (opening string, members []member, closing string) {
	var object map[string]json.RawMessage
	var array []json.RawMessage
	switch {
	case json.Unmarshal(value, &object) == nil:
		for _, name := range slices.Sorted(maps.Keys(object)) {
			key, _ := json.Marshal(name) // strings always marshal
			members = append(members, member{name, string(key) + ":", object[name]})
		}
		return "{", members, "}"
	case json.Unmarshal(value, &array) == nil:
		for i, element := range array {
			members = append(members, member{strconv.Itoa(i), "", element})
		}
	}
	return "[", members, "]"
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
