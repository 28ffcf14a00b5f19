package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// field is an element of the form by which a viewer answers a question.
type field struct {
	Name, Title, Description string
	// Kind is text, number, integer, boolean, choice or json.
	Kind     string
	Choices  []string
	Required bool
}

// fieldPrefix begins the names of the form's elements that are fields of the answer.
const fieldPrefix = "field "

// fieldsOf returns the fields of a form. A question whose schema is not a flat one has one field for JSON.
func fieldsOf(in mcptask.Input) []field {
	var schema struct {
		Properties map[string]struct {
			Type        json.RawMessage `json:"type"`
			Title       string          `json:"title"`
			Description string          `json:"description"`
			Enum        []any           `json:"enum"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if len(in.Schema) == 0 || json.Unmarshal(in.Schema, &schema) != nil {
		return nil
	}
	required := map[string]bool{}
	for _, name := range schema.Required {
		required[name] = true
	}
	var fields []field
	for name, p := range schema.Properties {
		f := field{Name: name, Title: p.Title, Description: p.Description, Required: required[name]}
		if f.Title == "" {
			f.Title = name
		}
		var kind string
		_ = json.Unmarshal(p.Type, &kind) // a list of types has no element of its own
		switch {
		case len(p.Enum) > 0 && kind == "string":
			f.Kind = "choice"
			for _, choice := range p.Enum {
				f.Choices = append(f.Choices, fmt.Sprint(choice))
			}
		case kind == "string":
			f.Kind = "text"
		case kind == "boolean", kind == "number", kind == "integer":
			f.Kind = kind
		default:
			f.Kind = "json"
		}
		fields = append(fields, f)
	}
	slices.SortFunc(fields, func(a, b field) int {
		if a.Required != b.Required {
			return cmp.Compare(strconv.FormatBool(b.Required), strconv.FormatBool(a.Required)) // "true" first
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return fields
}

// readContent returns the content of an answer from the elements of a form. It leaves out optional fields that are empty.
func readContent(fields []field, form url.Values) (json.RawMessage, error) {
	content := map[string]any{}
	for _, f := range fields {
		text := form.Get(fieldPrefix + f.Name)
		if text == "" && (!f.Required || f.Kind != "text") {
			continue
		}
		var err error
		switch f.Kind {
		case "boolean":
			content[f.Name], err = strconv.ParseBool(text)
		case "number", "integer":
			err = json.Unmarshal([]byte(text), new(float64))
			content[f.Name] = json.RawMessage(text)
		case "json":
			err = json.Unmarshal([]byte(text), new(any))
			content[f.Name] = json.RawMessage(text)
		default:
			content[f.Name] = text
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %q is no %s", errForm, f.Title, shorten(text, 40), f.Kind)
		}
	}
	return json.Marshal(content)
}
