package schemafile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// form is the part of a canonical schema that describe reads.
type form struct {
	Type       any                        `json:"type"`
	Enum       []json.RawMessage          `json:"enum"`
	Ref        string                     `json:"$ref"`
	Items      *form                      `json:"items"`
	Properties map[string]json.RawMessage `json:"properties"`
	AnyOf      []*form                    `json:"anyOf"`
	AllOf      []*form                    `json:"allOf"`
	Const      json.RawMessage            `json:"const"`
	Not        *struct{}                  `json:"not"`
}

// readForm reads the JSON of a schema. It returns an empty form if the JSON is not an object.
func readForm(text string) (f form) {
	if json.Unmarshal([]byte(text), &f) != nil {
		return form{}
	}
	return f
}

// describeSchema describes a schema in words: "an integer or null".
func describeSchema(text string) string {
	f := readForm(text)
	return f.describe()
}

func (f *form) describe() string {
	switch {
	case f == nil:
		return "anything"
	case len(f.Enum) == 1:
		return string(f.Enum[0])
	case len(f.Enum) > 1:
		values := make([]string, len(f.Enum))
		for i, value := range f.Enum {
			values[i] = string(value)
		}
		return "one of " + strings.Join(values, ", ")
	case f.Ref != "":
		return "as " + f.Ref
	case f.Not != nil:
		return "nothing"
	case len(f.AnyOf) > 0:
		var parts []string
		for _, member := range f.AnyOf {
			if words := member.describe(); !slices.Contains(parts, words) {
				parts = append(parts, words)
			}
		}
		return strings.Join(parts, " or ")
	case f.Items != nil:
		return "an array of: " + f.Items.describe()
	}
	if types, ok := f.Type.([]any); ok {
		return describeTypes(types)
	}
	if f.Type != nil {
		return describeTypes([]any{f.Type})
	}
	return "anything"
}

// describeTypes describes JSON Schema types, null last.
func describeTypes(types []any) string {
	var words []string
	null := false
	for _, t := range types {
		name := fmt.Sprint(t)
		switch name {
		case "null":
			null = true
		case "integer", "object", "array":
			words = append(words, "an "+name)
		default:
			words = append(words, "a "+name)
		}
	}
	if null {
		words = append(words, "null")
	}
	return strings.Join(words, " or ")
}

// parseList parses a JSON array, or a value as a list of one.
func parseList(text string) []any {
	var value any
	if text == "" || json.Unmarshal([]byte(text), &value) != nil {
		return nil
	}
	if values, ok := value.([]any); ok {
		return values
	}
	return []any{value}
}

func subtractValues(a, b []any) (rest []any) {
	for _, value := range a {
		if !slices.ContainsFunc(b, func(other any) bool { return fmt.Sprint(other) == fmt.Sprint(value) }) {
			rest = append(rest, value)
		}
	}
	return rest
}

// constant returns the only value of a member, or nil.
func (f *form) constant(member string) json.RawMessage {
	for _, part := range append([]*form{f}, f.AllOf...) {
		value := readForm(string(part.Properties[member]))
		if value.Const != nil {
			return value.Const
		}
		if len(value.Enum) == 1 {
			return value.Enum[0]
		}
	}
	return nil
}

// methodOf returns the method of a message's definition, or "".
func methodOf(text string) (method string) {
	f := readForm(text)
	if json.Unmarshal(f.constant("method"), &method) != nil {
		return ""
	}
	return method
}

// codeOf returns the code of an error's definition, or "".
func codeOf(text string) string {
	f := readForm(text)
	inner := readForm(string(f.Properties["error"]))
	return cmp.Or(string(f.constant("code")), string(inner.constant("code")))
}

// removeMethod returns the JSON of a message's definition without its method.
func removeMethod(text, method string) string {
	return strings.Replace(text, `{"enum":["`+method+`"]}`, `{}`, 1)
}
