// Package form checks the schemas of questions, and reads them as forms for a person.
package form

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// These constants bound a question's schema.
const (
	// MaxSize bounds the bytes of the schema.
	MaxSize = 256 << 10
	// maxPattern bounds the bytes of a pattern. A compiled pattern takes up to thousands of times
	// as much memory.
	maxPattern = 1 << 10
	// maxError bounds the characters of an error, because it contains names from a peer.
	maxError = 300
)

// Check returns an error unless MCP allows the schema for a question: a flat object whose
// properties are strings, numbers, booleans, and choices of one or several values. A missing schema
// and null pass. A peer's schema must pass before anything compiles or follows it: following a
// schema that refers to itself crashes the process.
func Check(schema json.RawMessage) error {
	if len(schema) == 0 || string(schema) == "null" {
		return nil
	}
	if len(schema) > MaxSize {
		return fmt.Errorf("it has %d bytes: at most %d are allowed", len(schema), MaxSize)
	}
	if err := form.check("", schema); err != nil {
		return fmt.Errorf("%.*s", maxError, err.Error())
	}
	return nil
}

// keywords are the members that an object may have. Each has the check of its value.
type keywords map[string]func(place string, value json.RawMessage) error

func (k keywords) check(place string, value json.RawMessage) error {
	members, err := decodeObject(place, value)
	if err != nil {
		return err
	}
	for name, value := range members {
		check := k[name]
		switch {
		case strings.HasPrefix(name, "x-"):
			continue
		case check == nil:
			return fmt.Errorf("%s is not an allowed keyword", joinPlace(place, name))
		}
		if err := check(joinPlace(place, name), value); err != nil {
			return err
		}
	}
	return nil
}

func decodeObject(place string, value json.RawMessage) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil || members == nil {
		return nil, fmt.Errorf("%s is not an object", cmp.Or(place, "it"))
	}
	return members, nil
}

func joinPlace(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}

// withAnnotations adds to keywords those that only annotate, and may stand anywhere.
func withAnnotations(k keywords) keywords {
	for _, name := range []string{"title", "description", "$comment"} {
		k[name] = checkType[string]("a string")
	}
	for _, name := range []string{"deprecated", "readOnly", "writeOnly"} {
		k[name] = checkType[bool]("a boolean")
	}
	k["examples"] = acceptAny
	return k
}

var (
	form = withAnnotations(keywords{
		"$schema": checkType[string]("a string"), "type": checkEnum("object"), "properties": checkProperties,
		"required": checkType[[]string]("a list of strings"), "additionalProperties": checkType[bool]("a boolean"),
	})
	// primitives are the kinds of properties, by type.
	primitives = map[string]keywords{
		"string": newPrimitive(keywords{
			"format": checkEnum("date", "date-time", "email", "uri"), "minLength": checkCount, "maxLength": checkCount, "pattern": checkPattern,
			"enumNames": checkType[[]string]("a list of strings"), "oneOf": checkEach(option.check),
		}),
		"number":  newPrimitive(numeric),
		"integer": newPrimitive(numeric),
		"boolean": newPrimitive(keywords{}),
		"array": withAnnotations(keywords{
			"type": checkEnum("array"), "items": choices.check, "minItems": checkCount, "maxItems": checkCount,
			"uniqueItems": checkType[bool]("a boolean"), "default": allowNull(checkType[[]string]("a list of strings")),
		}),
	}
	numeric = keywords{
		"minimum": checkNumber, "maximum": checkNumber, "exclusiveMinimum": checkNumber, "exclusiveMaximum": checkNumber, "multipleOf": checkNumber,
	}
	choices = withAnnotations(keywords{"type": checkEnum("string"), "enum": checkType[[]string]("a list of strings"), "anyOf": checkEach(option.check)})
	option  = withAnnotations(keywords{"const": checkScalar})
)

// newPrimitive returns a copy of keywords, with those of every scalar property.
func newPrimitive(own keywords) keywords {
	all := withAnnotations(keywords{"type": checkEnum("string", "number", "integer", "boolean"), "enum": checkEach(checkScalar), "const": checkScalar, "default": allowNull(checkScalar)})
	for name, check := range own {
		all[name] = check
	}
	return all
}

func checkProperties(place string, value json.RawMessage) error {
	members, err := decodeObject(place, value)
	if err != nil {
		return err
	}
	for name, property := range members {
		at := joinPlace(place, name)
		var p struct {
			Type json.RawMessage `json:"type"`
		}
		if json.Unmarshal(property, &p) != nil {
			return fmt.Errorf("%s is not an object", at)
		}
		var kind string
		_ = json.Unmarshal(p.Type, &kind) // any other JSON is no allowed type
		allowed := primitives[kind]
		if allowed == nil {
			return fmt.Errorf("%s must have a type: string, number, integer, boolean or array", at)
		}
		if err := allowed.check(at, property); err != nil {
			return err
		}
	}
	return nil
}

// checkType returns a check that a value decodes into a T and is not null.
func checkType[T any](what string) func(string, json.RawMessage) error {
	return func(place string, value json.RawMessage) error {
		var v *T
		if json.Unmarshal(value, &v) != nil || v == nil {
			return fmt.Errorf("%s is not %s", place, what)
		}
		return nil
	}
}

func acceptAny(string, json.RawMessage) error { return nil }

func checkEnum(allowed ...string) func(string, json.RawMessage) error {
	return func(place string, value json.RawMessage) error {
		var text string
		if json.Unmarshal(value, &text) != nil || !slices.Contains(allowed, text) {
			return fmt.Errorf("%s is not %s", place, strings.Join(allowed, " or "))
		}
		return nil
	}
}

func checkEach(check func(string, json.RawMessage) error) func(string, json.RawMessage) error {
	return func(place string, value json.RawMessage) error {
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil || list == nil {
			return fmt.Errorf("%s is not a list", place)
		}
		for i, entry := range list {
			if err := check(joinPlace(place, strconv.Itoa(i)), entry); err != nil {
				return err
			}
		}
		return nil
	}
}

func allowNull(check func(string, json.RawMessage) error) func(string, json.RawMessage) error {
	return func(place string, value json.RawMessage) error {
		if string(value) == "null" {
			return nil
		}
		return check(place, value)
	}
}

// checkScalar checks a string, a number or a boolean.
func checkScalar(place string, value json.RawMessage) error {
	switch value[0] {
	case '"', 't', 'f':
		return nil
	case '{', '[', 'n':
		return fmt.Errorf("%s is not a string, a number or a boolean", place)
	}
	return checkNumber(place, value)
}

// checkNumber checks a number that a float64 can hold. With others, computing takes time and memory
// that grow with the exponent.
func checkNumber(place string, value json.RawMessage) error {
	f, err := strconv.ParseFloat(string(value), 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(string(value)), "e")
	if err != nil || f == 0 && strings.ContainsAny(mantissa, "123456789") {
		return fmt.Errorf("%s is not a number that a float64 can hold", place)
	}
	return nil
}

func checkCount(place string, value json.RawMessage) error {
	var n *uint32
	if json.Unmarshal(value, &n) != nil || n == nil {
		return fmt.Errorf("%s is not a whole number of at least 0", place)
	}
	return nil
}

func checkPattern(place string, value json.RawMessage) error {
	var text *string
	switch {
	case json.Unmarshal(value, &text) != nil || text == nil:
		return fmt.Errorf("%s is not a string", place)
	case len(*text) > maxPattern:
		return fmt.Errorf("%s has %d bytes: at most %d are allowed", place, len(*text), maxPattern)
	}
	return nil
}
