package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
	"github.com/mcptaskgen/mcptaskgen/internal/nearest"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Arguments makes the arguments of a call from words that a person types. NAME=VALUE is read by the type that the
// tool's schema gives the argument. Text stays as it is. Numbers and booleans are those of JSON. A NAME that is given
// more than once makes a list. NAME:=JSON takes any value. The words add to base, a JSON object that may be nil.
//
// The error names the word or the argument, and the values that the tool takes. A schema that cannot be read refuses
// nothing: the server checks.
func Arguments(ctx context.Context, tool mcptask.ToolInfo, base json.RawMessage, words []string) (json.RawMessage, error) {
	arguments := map[string]json.RawMessage{}
	if len(base) > 0 {
		if err := json.Unmarshal(base, &arguments); err != nil || arguments == nil {
			return nil, errors.New("the arguments are not a JSON object")
		}
	}
	root := readSchema(tool.InputSchema)
	given := map[string][]string{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if name, isJSON := strings.CutSuffix(name, ":"); ok && isJSON {
			if !json.Valid([]byte(value)) {
				return nil, fmt.Errorf("%s: %.60q is not JSON; give text as %s=%s", name, value, name, value)
			}
			arguments[name] = json.RawMessage(value)
			continue
		}
		if !ok || name == "" {
			return nil, fmt.Errorf("%.60q is not an argument: write NAME=VALUE or NAME:=JSON", word)
		}
		given[name] = append(given[name], value)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		property, ok := root.property(name)
		if !ok {
			if err := root.explainDots(name, given[name]); err != nil {
				return nil, err
			}
			properties, _ := root.members()["properties"].(map[string]any)
			return nil, Unknown(tool.Name, "argument", name, slices.Sorted(maps.Keys(properties)))
		}
		value, err := property.parseAll(given[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		arguments[name] = value
	}
	encoded, err := encode(arguments)
	if err != nil {
		return nil, err
	}
	if err := Check(ctx, tool.InputSchema, encoded); err != nil {
		return nil, err
	}
	return encoded, nil
}

// Unknown returns the error for a name that is not among the known ones. It suggests the nearest known name, or else
// lists them. owner has the names, such as a tool. kind is the kind of thing that they name, such as "argument".
func Unknown(owner, kind, name string, known []string) error {
	const most = 20
	text := fmt.Sprintf("%s has no %s %.60q", owner, kind, name)
	switch near := nearest.Name(name, known, len(name)/3+1); {
	case near != "":
		return fmt.Errorf("%s; did you mean %s?", text, near)
	case len(known) > most:
		return fmt.Errorf("%s; it has %s and %d more", text, strings.Join(known[:most], ", "), len(known)-most)
	case len(known) > 0:
		return fmt.Errorf("%s; it has %s", text, strings.Join(known, ", "))
	}
	return fmt.Errorf("%s: it has none", text)
}

// encode writes a value as JSON and leaves < > and & as they are.
func encode(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// parseAll reads the values that one name was given.
func (s schema) parseAll(values []string) (json.RawMessage, error) {
	kinds := s.kinds()
	isList := slices.Contains(kinds, "array")
	if len(values) == 1 && (!isList || strings.HasPrefix(strings.TrimSpace(values[0]), "[")) {
		return s.parse(values[0], kinds)
	}
	if len(kinds) > 0 && !isList {
		return nil, fmt.Errorf("got %d values, want one", len(values))
	}
	items := schema{s.root, s.members()["items"]}
	var list []json.RawMessage
	for _, value := range values {
		item, err := items.parse(value, items.kinds())
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return encode(list)
}

// parse reads one value by the types that it may have. Text is the last choice, because it takes everything.
func (s schema) parse(value string, kinds []string) (json.RawMessage, error) {
	var parsed any
	if json.Unmarshal([]byte(value), &parsed) == nil {
		kind := kindOf(parsed)
		isText := kind == "string" || kind == "null" && slices.Contains(kinds, "string")
		fits := len(kinds) == 0 || slices.Contains(kinds, kind) || kind == "number" && slices.Contains(kinds, "integer")
		if fits && !isText {
			return json.RawMessage(value), nil
		}
	}
	if len(kinds) == 0 || slices.Contains(kinds, "string") {
		return encode(value)
	}
	want := brief(s.describe(maxLists), maxDescription)
	if slices.Contains(kinds, "array") || slices.Contains(kinds, "object") {
		want += ", as JSON"
	}
	return nil, fmt.Errorf("got %.60q, want %s", value, want)
}

// explainDots returns an error if a name looks like the path to a value within an object. It says how to write the object.
func (s schema) explainDots(path string, values []string) error {
	name, inner, ok := strings.Cut(path, ".")
	outer, isProperty := s.property(name)
	if !ok || !isProperty {
		return nil
	}
	value, ok, err := outer.nest(inner, values)
	switch {
	case !ok:
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Errorf("%s is an object: write it as JSON, such as '%s:=%s'", name, name, value)
}

// nest returns an object that has only the value at a path, such as {"b":{"c":1}} for b.c. ok is false if the schema
// declares no such path.
func (s schema) nest(path string, values []string) (object json.RawMessage, ok bool, err error) {
	if s.members()["properties"] == nil && !slices.Contains(s.kinds(), "object") {
		return nil, false, nil
	}
	name, inner, isPath := strings.Cut(path, ".")
	var value json.RawMessage
	if p, isProperty := s.property(name); isPath && isProperty {
		value, ok, err = p.nest(inner, values)
	}
	if p, isProperty := s.property(path); !ok && isProperty {
		name, ok = path, true
		value, err = p.parseAll(values)
	}
	if !ok || err != nil {
		return nil, ok, err
	}
	return form.EncodeMembers([]form.Member{{Name: name, Value: value}}), true, nil
}
