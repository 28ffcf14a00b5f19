// Package form tells which schemas a question may have.
package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
)

// Bounds of a question's schema.
const (
	// MaxSize is how many bytes it may have.
	MaxSize = 256 << 10
	// maxPattern is how many bytes a pattern may have: compiled, it takes up to
	// thousands of times as much.
	maxPattern = 1 << 10
	// maxError is how many bytes of an error are told: it has a peer's names in it.
	maxError = 300
)

// Check refuses the schema of a question unless it is what MCP allows there: a flat
// object, whose properties are strings, numbers, booleans, and choices of one or of
// several. A peer's schema has to pass before anything compiles or follows it: a
// reference to itself ends a process. No schema, or null, passes.
func Check(schema json.RawMessage) error {
	if len(schema) == 0 || string(schema) == "null" {
		return nil
	}
	if len(schema) > MaxSize {
		return fmt.Errorf("it has %d bytes, at most %d are allowed", len(schema), MaxSize)
	}
	if err := form.check("", schema); err != nil {
		return errors.New(text.Shorten(err.Error(), maxError))
	}
	return nil
}

// keywords are what an object may have as its members, each with the check of its
// value.
type keywords map[string]func(place string, value json.RawMessage) error

func (k keywords) check(place string, value json.RawMessage) error {
	members, err := object(place, value)
	if err != nil {
		return err
	}
	for name, value := range members {
		check := k[name]
		switch {
		case strings.HasPrefix(name, "x-"):
			continue
		case check == nil:
			return fmt.Errorf("%s is not a keyword that is allowed there", under(place, name))
		}
		if err := check(under(place, name), value); err != nil {
			return err
		}
	}
	return nil
}

func object(place string, value json.RawMessage) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil || members == nil {
		return nil, fmt.Errorf("%s is not an object", or(place, "it"))
	}
	return members, nil
}

func under(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}

func or(place, otherwise string) string {
	if place == "" {
		return otherwise
	}
	return place
}

// annotated adds to keywords what may stand anywhere and changes nothing.
func annotated(k keywords) keywords {
	for _, name := range []string{"title", "description", "$comment"} {
		k[name] = is[string]("a string")
	}
	for _, name := range []string{"deprecated", "readOnly", "writeOnly"} {
		k[name] = is[bool]("a boolean")
	}
	k["examples"] = anything
	return k
}

var (
	form = annotated(keywords{
		"$schema": is[string]("a string"), "type": among("object"), "properties": properties,
		"required": is[[]string]("a list of strings"), "additionalProperties": is[bool]("a boolean"),
	})
	// primitives are the properties, by their type.
	primitives = map[string]keywords{
		"string": primitive(keywords{
			"format": among("date", "date-time", "email", "uri"), "minLength": count, "maxLength": count, "pattern": pattern,
			"enumNames": is[[]string]("a list of strings"), "oneOf": each(option.check),
		}),
		"number":  primitive(numeric),
		"integer": primitive(numeric),
		"boolean": primitive(keywords{}),
		"array": annotated(keywords{
			"type": among("array"), "items": choices.check, "minItems": count, "maxItems": count,
			"uniqueItems": is[bool]("a boolean"), "default": nullOr(is[[]string]("a list of strings")),
		}),
	}
	numeric = keywords{
		"minimum": number, "maximum": number, "exclusiveMinimum": number, "exclusiveMaximum": number, "multipleOf": number,
	}
	choices = annotated(keywords{"type": among("string"), "enum": is[[]string]("a list of strings"), "anyOf": each(option.check)})
	option  = annotated(keywords{"const": scalar})
)

// primitive is a copy of keywords with those of each scalar property.
func primitive(own keywords) keywords {
	all := annotated(keywords{"type": among("string", "number", "integer", "boolean"), "enum": each(scalar), "const": scalar, "default": nullOr(scalar)})
	for name, check := range own {
		all[name] = check
	}
	return all
}

func properties(place string, value json.RawMessage) error {
	members, err := object(place, value)
	if err != nil {
		return err
	}
	for name, property := range members {
		at := under(place, name)
		var p struct {
			Type json.RawMessage `json:"type"`
		}
		if json.Unmarshal(property, &p) != nil {
			return fmt.Errorf("%s is not an object", at)
		}
		var kind string
		_ = json.Unmarshal(p.Type, &kind) // what is not a string is no kind that there is
		allowed := primitives[kind]
		if allowed == nil {
			return fmt.Errorf("%s has no type that is allowed: it is one of string, number, integer, boolean and array", at)
		}
		if err := allowed.check(at, property); err != nil {
			return err
		}
	}
	return nil
}

// is checks that a value decodes into a T, and is not null.
func is[T any](what string) func(string, json.RawMessage) error {
	return func(place string, value json.RawMessage) error {
		var v *T
		if json.Unmarshal(value, &v) != nil || v == nil {
			return fmt.Errorf("%s is not %s", place, what)
		}
		return nil
	}
}

func anything(string, json.RawMessage) error { return nil }

func among(allowed ...string) func(string, json.RawMessage) error {
	return func(place string, value json.RawMessage) error {
		var text string
		if json.Unmarshal(value, &text) != nil || !slices.Contains(allowed, text) {
			return fmt.Errorf("%s is not %s", place, strings.Join(allowed, " or "))
		}
		return nil
	}
}

func each(check func(string, json.RawMessage) error) func(string, json.RawMessage) error {
	return func(place string, value json.RawMessage) error {
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil || list == nil {
			return fmt.Errorf("%s is not a list", place)
		}
		for i, entry := range list {
			if err := check(under(place, strconv.Itoa(i)), entry); err != nil {
				return err
			}
		}
		return nil
	}
}

func nullOr(check func(string, json.RawMessage) error) func(string, json.RawMessage) error {
	return func(place string, value json.RawMessage) error {
		if string(value) == "null" {
			return nil
		}
		return check(place, value)
	}
}

// scalar checks a string, a number or a boolean.
func scalar(place string, value json.RawMessage) error {
	switch value[0] {
	case '"', 't', 'f':
		return nil
	case '{', '[', 'n':
		return fmt.Errorf("%s is not a string, a number or a boolean", place)
	}
	return number(place, value)
}

// number checks a number that a double holds: others cost who computes with them
// time and memory that grow with the exponent.
func number(place string, value json.RawMessage) error {
	f, err := strconv.ParseFloat(string(value), 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(string(value)), "e")
	if err != nil || f == 0 && strings.ContainsAny(mantissa, "123456789") {
		return fmt.Errorf("%s is not a number that a double can hold", place)
	}
	return nil
}

func count(place string, value json.RawMessage) error {
	var n *uint32
	if json.Unmarshal(value, &n) != nil || n == nil {
		return fmt.Errorf("%s is not a whole number, 0 or more", place)
	}
	return nil
}

func pattern(place string, value json.RawMessage) error {
	var text *string
	switch {
	case json.Unmarshal(value, &text) != nil || text == nil:
		return fmt.Errorf("%s is not a string", place)
	case len(*text) > maxPattern:
		return fmt.Errorf("%s has %d bytes, at most %d are allowed", place, len(*text), maxPattern)
	}
	return nil
}
