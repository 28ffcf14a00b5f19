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
	Choices  []choice
	Required bool
}

// choice is a value of a field, and what a person sees of it.
type choice struct{ Value, Title string }

// fieldPrefix begins the names of the form's elements that are fields of the answer.
const fieldPrefix = "field "

// property is a property of a flat schema.
type property struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Enum        []string `json:"enum"`
	OneOf       []struct {
		Const string `json:"const"`
		Title string `json:"title"`
	} `json:"oneOf"`
}

// fieldsOf returns the fields of a form, those that must be filled first.
func fieldsOf(in mcptask.Input) []field {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if len(in.Schema) == 0 || json.Unmarshal(in.Schema, &schema) != nil {
		return nil
	}
	var fields []field
	for name, raw := range schema.Properties {
		var p property
		err := json.Unmarshal(raw, &p) // it reads on behind what does not fit
		f := field{Name: name, Title: cmp.Or(p.Title, name), Description: p.Description, Required: slices.Contains(schema.Required, name)}
		for _, value := range p.Enum {
			f.Choices = append(f.Choices, choice{value, value})
		}
		for _, c := range p.OneOf {
			f.Choices = append(f.Choices, choice{c.Const, cmp.Or(c.Title, c.Const)})
		}
		switch {
		case err == nil && p.Type == "string" && len(f.Choices) > 0:
			f.Kind = "choice"
		case err == nil && p.Type == "string":
			f.Kind = "text"
		case err == nil && slices.Contains([]string{"boolean", "number", "integer"}, p.Type):
			f.Kind = p.Type
		default:
			f.Kind = "json" // such as a list of texts, or a choice among numbers
		}
		fields = append(fields, f)
	}
	slices.SortFunc(fields, func(a, b field) int {
		switch {
		case a.Required == b.Required:
			return cmp.Compare(a.Name, b.Name)
		case a.Required:
			return -1
		}
		return 1
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
