package form

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ErrFormless means that a person cannot fill a form for a schema: it takes an answer as JSON.
var ErrFormless = errors.New("the schema does not describe a form: answer with JSON")

// Form has the fields that a question's schema asks a person for.
type Form struct {
	Fields []Field
	// Members are those of the schema.
	Members []Member
}

// Field is a property of a question's schema.
type Field struct {
	Property
	Name     string
	Required bool
	// Choices are the values that it may have, or that the items of a list may have. If it is empty, any value fits.
	Choices []Choice
	// Schema is the schema of the field.
	Schema json.RawMessage
	places map[string]int // of the choices, by their values; see newPlaces
}

// Property is the schema of a field.
type Property struct {
	Type        string            `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Format      string            `json:"format"`
	WriteOnly   bool              `json:"writeOnly"`
	Default     json.RawMessage   `json:"default"`
	Const       json.RawMessage   `json:"const"`
	Enum        []json.RawMessage `json:"enum"`
	EnumNames   []string          `json:"enumNames"`
	OneOf       []titled          `json:"oneOf"`
	AnyOf       []titled          `json:"anyOf"`
	Items       *Property         `json:"items"`
	Minimum     json.Number       `json:"minimum"`
	Maximum     json.Number       `json:"maximum"`
	MinLength   int64             `json:"minLength"`
	MaxLength   int64             `json:"maxLength"`
	MinItems    int64             `json:"minItems"`
	MaxItems    int64             `json:"maxItems"`
}

type titled struct {
	Const json.RawMessage `json:"const"`
	Title string          `json:"title"`
}

// Choice is a value that a field may have, and its title for a person, or "".
type Choice struct {
	Value json.RawMessage
	Title string
}

// Member is a member of a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Parse returns the form of a question's schema, with the fields in its order. It has none if the schema has no
// properties. The error is ErrFormless if a person has to write JSON.
func Parse(schema json.RawMessage) (Form, error) {
	var made Form
	if len(schema) == 0 || string(schema) == "null" {
		return made, nil
	}
	if len(schema) > MaxSize {
		return made, ErrFormless
	}
	members, err := DecodeMembers(schema)
	if err != nil {
		return made, ErrFormless
	}
	var properties []Member
	var required []string
	for i, m := range members {
		switch m.Name {
		case "properties":
			if properties, err = DecodeMembers(m.Value); err != nil {
				return made, ErrFormless
			}
			for at := range properties {
				properties[at].Value = withoutPassword(properties[at].Value)
			}
			members[i].Value = EncodeMembers(properties)
		case "required":
			if json.Unmarshal(m.Value, &required) != nil {
				return made, ErrFormless
			}
		}
	}
	if Check(EncodeMembers(members)) != nil {
		return made, ErrFormless
	}
	missing := map[string]bool{}
	for _, name := range required {
		missing[name] = true
	}
	for _, p := range properties {
		f, err := newField(p, missing[p.Name])
		if err != nil {
			return made, err
		}
		made.Fields = append(made.Fields, f)
		delete(missing, p.Name)
	}
	if len(missing) > 0 {
		return made, ErrFormless
	}
	made.Members = members
	return made, nil
}

func newField(m Member, required bool) (Field, error) {
	f := Field{Name: m.Name, Required: required, Schema: m.Value}
	if err := json.Unmarshal(m.Value, &f.Property); err != nil {
		return Field{}, ErrFormless
	}
	switch p := f.Property; {
	case p.Type == "array":
		if p.Items != nil {
			f.Choices = newChoices(p.Items.Enum, nil, p.Items.AnyOf)
		}
		if len(f.Choices) == 0 {
			return Field{}, ErrFormless
		}
	case p.Const != nil && string(p.Const) != "null":
		f.Choices = newChoices([]json.RawMessage{p.Const}, nil, nil)
	default:
		f.Choices = newChoices(p.Enum, p.EnumNames, p.OneOf)
	}
	if slices.ContainsFunc(f.Choices, func(c Choice) bool { return c.Value == nil }) { // an option without a const
		return Field{}, ErrFormless
	}
	f.places = newPlaces(f.Choices)
	return f, nil
}

// newChoices returns the choices of an enum with names, and of options with titles.
func newChoices(values []json.RawMessage, names []string, options []titled) []Choice {
	var choices []Choice
	for i, value := range values {
		c := Choice{Value: value}
		if i < len(names) {
			c.Title = names[i]
		}
		choices = append(choices, c)
	}
	for _, o := range options {
		choices = append(choices, Choice{o.Const, o.Title})
	}
	return choices
}

// withoutPassword replaces the format password, which a form may not have, by writeOnly. Both hide the typed text.
func withoutPassword(schema json.RawMessage) json.RawMessage {
	members, err := DecodeMembers(schema)
	if err != nil {
		return schema
	}
	isPassword := func(m Member) bool { return m.Name == "format" && string(m.Value) == `"password"` }
	if !slices.ContainsFunc(members, isPassword) {
		return schema
	}
	members = slices.DeleteFunc(members, func(m Member) bool { return isPassword(m) || m.Name == "writeOnly" })
	return EncodeMembers(append(members, Member{"writeOnly", json.RawMessage("true")}))
}

// newPlaces returns the indexes of choices, by the text of their values and by their meaning: 1 and 1.0 are the same.
// The text comes first, because large integers that differ are the same in floating point. A value that comes twice has
// its first index.
func newPlaces(choices []Choice) map[string]int {
	places := map[string]int{}
	add := func(key string, at int) {
		if _, ok := places[key]; !ok {
			places[key] = at
		}
	}
	for i, c := range choices {
		add(string(c.Value), i)
	}
	for i, c := range choices {
		add(meaningOf(c.Value), i)
	}
	return places
}

// meaningOf returns a text that is the same for all equal strings, numbers or booleans. It is not JSON.
func meaningOf(value json.RawMessage) string {
	var v any
	if json.Unmarshal(value, &v) != nil {
		return ""
	}
	switch v.(type) {
	case string, float64, bool:
		return fmt.Sprintf("%T %v", v, v)
	}
	return ""
}

// IndexOf returns the index of the choice that has a value, or -1.
func (f Field) IndexOf(value json.RawMessage) int {
	if at, ok := f.places[string(value)]; ok {
		return at
	}
	meaning := meaningOf(value)
	if at, ok := f.places[meaning]; ok && meaning != "" {
		return at
	}
	return -1
}

// DefaultValue returns the value that the field has if a person leaves it, or nil.
func (f Field) DefaultValue() json.RawMessage {
	if value := f.Default; len(value) > 0 && string(value) != "null" {
		return value
	}
	return nil
}

// DefaultChoices returns the indexes of the choices that a list has by default.
func (f Field) DefaultChoices() []int {
	var values []json.RawMessage
	_ = json.Unmarshal(f.DefaultValue(), &values) // Check has seen that it is a list
	var found []int
	for _, value := range values {
		if at := f.IndexOf(value); at >= 0 {
			found = append(found, at)
		}
	}
	return found
}

// Describe describes in words the texts or numbers that the field takes.
func (f Field) Describe() string {
	switch p := f.Property; {
	case p.Type == "string":
		formats := map[string]string{
			"email": "e-mail address", "uri": "URL", "date": "date such as 2026-01-31", "date-time": "time such as 2026-01-31T15:04:05Z",
		}
		return cmp.Or(formats[p.Format], "text") + FormatRange(p.MinLength, p.MaxLength, " of ", " characters")
	default:
		kind := "number"
		if p.Type == "integer" {
			kind = "whole number"
		}
		switch {
		case p.Minimum != "" && p.Maximum != "":
			kind += fmt.Sprintf(" from %s to %s", p.Minimum, p.Maximum)
		case p.Minimum != "":
			kind += " from " + string(p.Minimum)
		case p.Maximum != "":
			kind += " up to " + string(p.Maximum)
		}
		return kind
	}
}

// FormatRange formats the bounds of a length. 0 means no bound.
func FormatRange(least, most int64, before, after string) string {
	switch {
	case least > 0 && most > 0:
		return fmt.Sprintf("%s%d to %d%s", before, least, most, after)
	case least > 0:
		return fmt.Sprintf("%sat least %d%s", before, least, after)
	case most > 0:
		return fmt.Sprintf("%sat most %d%s", before, most, after)
	}
	return ""
}

// DecodeMembers returns the members of a JSON object in their order. If a name comes twice, the last value counts.
func DecodeMembers(data json.RawMessage) ([]Member, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, fmt.Errorf("no object: %w", cmp.Or(err, ErrFormless))
	}
	var members []Member
	places := map[string]int{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		m := Member{Name: fmt.Sprint(token)}
		if err := decoder.Decode(&m.Value); err != nil {
			return nil, err
		}
		if at, ok := places[m.Name]; ok {
			members[at] = m
			continue
		}
		places[m.Name] = len(members)
		members = append(members, m)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	return members, nil
}

// EncodeMembers encodes an object whose values are valid JSON.
func EncodeMembers(members []Member) json.RawMessage {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		name, _ := json.Marshal(m.Name) // a string always marshals
		b = append(append(append(b, name...), ':'), m.Value...)
	}
	return append(b, '}')
}
