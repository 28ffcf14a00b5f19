package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/form"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
)

// These constants bound the texts of a field, in bytes.
const (
	maxLabel       = 120
	maxDescription = 1000
	maxChoice      = 200
	maxDefault     = 60
	maxFault       = 500
	maxPlace       = 64 // as package validate cuts names
)

// field is a field of a form.
type field struct {
	form.Field
	// schema is that of an object with only this property. It is nil if it cannot be compiled here. Then only the server
	// checks the value.
	schema *validate.Schema
}

// fields are the fields of a form.
type fields struct {
	list   []field
	schema *validate.Schema // of the whole form, or nil
}

// newFields returns the fields of a question's schema, or form.ErrFormless.
func newFields(schema json.RawMessage) (fields, error) {
	parsed, err := form.Parse(schema)
	if err != nil || len(parsed.Fields) == 0 {
		return fields{}, err
	}
	made := fields{schema: compile(parsed.Members)}
	for _, f := range parsed.Fields {
		property := form.EncodeMembers([]form.Member{{Name: f.Name, Value: f.Schema}})
		made.list = append(made.list, field{f, compile([]form.Member{{Name: "properties", Value: property}})})
	}
	return made, nil
}

func encodeString(s string) json.RawMessage {
	encoded, _ := encode(s) // a string always encodes
	return encoded
}

// choiceLabel returns what a choice is called.
func (f field) choiceLabel(at int) string {
	c := f.Choices[at]
	return cmp.Or(brief(c.Title, maxChoice), showValue(c.Value, maxChoice))
}

// choiceLabels returns what all choices are called.
func (f field) choiceLabels() []string {
	labels := make([]string, len(f.Choices))
	for i := range labels {
		labels[i] = f.choiceLabel(i)
	}
	return labels
}

// showValue returns a value as a person would type it.
func showValue(value json.RawMessage, most int) string {
	var s string
	if json.Unmarshal(value, &s) == nil && strings.TrimSpace(s) != "" {
		return brief(s, most)
	}
	return brief(string(value), most)
}

// label returns what the field is called.
func (f field) label() string {
	return cmp.Or(brief(f.Title, maxLabel), brief(f.Name, maxLabel), "value")
}

// isHidden reports whether what is typed stays off the screen.
func (f field) isHidden() bool { return f.WriteOnly && len(f.Choices) == 0 }

// isSeveral reports whether the value is a list of choices.
func (f field) isSeveral() bool { return f.Type == "array" }

// kind says in words what the field takes.
func (f field) kind() string {
	p := f.Property
	var kind string
	switch {
	case f.isSeveral():
		kind = "space or numbers to choose" + form.FormatRange(p.MinItems, p.MaxItems, ", ", "")
	case len(f.Choices) > 0:
		kind = fmt.Sprintf("1-%d", len(f.Choices))
	case f.isHidden():
		kind = "hidden" + form.FormatRange(p.MinLength, p.MaxLength, ", ", " characters")
	case p.Type == "boolean":
		kind = "y/n"
	default:
		kind = f.Describe()
	}
	if !f.Required {
		kind += ", optional"
	}
	return brief(kind, maxLabel)
}

// showDefault returns the default for a person, or "".
func (f field) showDefault() string {
	value := f.DefaultValue()
	switch {
	case value == nil:
		return ""
	case f.isHidden():
		return "hidden"
	case f.isSeveral():
		var labels []string
		for _, at := range f.DefaultChoices() {
			labels = append(labels, f.choiceLabel(at))
		}
		return brief(cmp.Or(strings.Join(labels, ", "), "none"), maxDefault)
	case f.Type == "boolean" && len(f.Choices) == 0:
		return showAnswer(value)
	}
	if at := f.IndexOf(value); at >= 0 {
		return f.choiceLabel(at)
	}
	return showValue(value, maxDefault)
}

// showAnswer returns y or n for a boolean.
func showAnswer(value json.RawMessage) string {
	if string(value) == "true" {
		return "y"
	}
	return "n"
}

// check returns what is wrong with the whole form, and the fields to ask again: those that the fault names, or all.
func (f fields) check(ctx context.Context, values map[string]json.RawMessage) (again []field, err error) {
	if f.schema == nil {
		return nil, nil
	}
	if err = f.schema.Check(ctx, f.encode(values)); err == nil {
		return nil, nil
	}
	for _, each := range f.list {
		place := text.Shorten(each.Name, maxPlace)
		if strings.Contains(err.Error(), place+": ") || strings.Contains(err.Error(), strconv.Quote(place)) {
			again = append(again, each)
		}
	}
	if len(again) == 0 {
		again = f.list
	}
	return again, errors.New(brief(err.Error(), maxFault))
}

// encode returns the content of the answer.
func (f fields) encode(values map[string]json.RawMessage) json.RawMessage {
	var members []form.Member
	for _, each := range f.list {
		if value := values[each.Name]; value != nil {
			members = append(members, form.Member{Name: each.Name, Value: value})
		}
	}
	return form.EncodeMembers(members)
}

// newPrompt returns the prompt of the field.
func (f field) newPrompt() *prompt {
	label := fmt.Sprintf("  %s (%s)", f.label(), f.kind())
	if shown := f.showDefault(); shown != "" {
		label += " [" + shown + "]"
	}
	p := &prompt{label: label + ": ", hidden: f.isHidden(), several: f.isSeveral(), choices: f.choiceLabels(), checked: map[int]bool{}}
	p.find = func(typed string) (int, bool) {
		at, err := f.find(typed)
		return at, err == nil
	}
	switch {
	case f.isSeveral():
		for _, at := range f.DefaultChoices() {
			p.checked[at] = true
		}
	case f.DefaultValue() != nil:
		p.at = f.IndexOf(f.DefaultValue())
	case !f.Required:
		p.at = -1
	}
	return p
}

// read returns the value that a person has entered, or nil if the field stays empty. Its errors are for the person.
func (f field) read(p *prompt) (json.RawMessage, error) {
	typed := string(p.text)
	isEmpty := strings.TrimSpace(typed) == "" && (!f.isHidden() || typed == "")
	switch {
	case f.isSeveral():
		return f.readSeveral(p, typed)
	case len(f.Choices) > 0 && isEmpty && p.at >= 0:
		return f.Choices[p.at].Value, nil
	case isEmpty && f.DefaultValue() != nil:
		return f.DefaultValue(), nil
	case isEmpty && f.Required:
		return nil, errors.New("a value is needed: Ctrl-D declines the question")
	case isEmpty:
		return nil, nil
	case len(f.Choices) > 0:
		at, err := f.find(typed)
		if err != nil {
			return nil, err
		}
		return f.Choices[at].Value, nil
	}
	switch f.Type {
	case "boolean":
		return readBoolean(typed)
	case "integer", "number":
		return f.ReadNumber(typed)
	}
	return encodeString(typed), nil
}

// find returns the choice that a person typed: its value, or what pick takes.
func (f field) find(typed string) (int, error) {
	typed = strings.TrimSpace(typed)
	for i, c := range f.Choices {
		if string(c.Value) == typed || showValue(c.Value, maxChoice) == typed {
			return i, nil
		}
	}
	if at, ok := pick(f.choiceLabels(), typed); ok {
		return at, nil
	}
	return 0, fmt.Errorf("%q is none of the choices: type a number from 1 to %d", text.Shorten(typed, maxDefault), len(f.Choices))
}

// readSeveral returns the list of the choices that are checked, or of those that were typed.
func (f field) readSeveral(p *prompt, typed string) (json.RawMessage, error) {
	chosen := map[int]bool{}
	if strings.TrimSpace(typed) == "" {
		chosen = p.checked
	} else if at, err := f.find(typed); err == nil {
		chosen[at] = true
	} else {
		words := strings.Split(typed, ",")
		if len(words) == 1 {
			words = strings.Fields(typed)
		}
		for _, word := range words {
			if strings.TrimSpace(word) == "" {
				continue
			}
			at, err := f.find(word)
			if err != nil {
				return nil, err
			}
			chosen[at] = true
		}
	}
	list := []byte{'['}
	for i, c := range f.Choices {
		if chosen[i] {
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = append(list, c.Value...)
		}
	}
	if len(list) == 1 && !f.Required && f.DefaultValue() == nil {
		return nil, nil
	}
	return append(list, ']'), nil
}

func readBoolean(typed string) (json.RawMessage, error) {
	switch strings.ToLower(strings.TrimSpace(typed)) {
	case "y", "yes", "true":
		return json.RawMessage("true"), nil
	case "n", "no", "false":
		return json.RawMessage("false"), nil
	}
	return nil, fmt.Errorf("%q is not y or n", text.Shorten(typed, maxDefault))
}

// compile returns the schema of an object, or nil.
func compile(members []form.Member) *validate.Schema {
	members = slices.DeleteFunc(slices.Clone(members), func(m form.Member) bool { return m.Name == "type" })
	schema, _ := validate.Compile(string(form.EncodeMembers(append(members, form.Member{Name: "type", Value: json.RawMessage(`"object"`)}))), true)
	return schema
}

// check returns what is wrong with a value, in words for a person. It does not repeat a hidden value.
func (f field) check(ctx context.Context, value json.RawMessage) error {
	if f.schema == nil {
		return nil
	}
	err := f.schema.Check(ctx, form.EncodeMembers([]form.Member{{Name: f.Name, Value: value}}))
	switch {
	case err == nil:
		return nil
	case f.isHidden():
		return errors.New("it does not fit" + form.FormatRange(f.MinLength, f.MaxLength, ": want ", " characters"))
	}
	place := text.Shorten(f.Name, maxPlace) + ": "
	words := strings.ReplaceAll(strings.TrimPrefix(err.Error(), place), "; "+place, "; ")
	return errors.New(brief(words, maxFault))
}

// showEntered returns what the person has entered, for the screen.
func (f field) showEntered(value json.RawMessage) string {
	switch {
	case value == nil:
		return "(empty)"
	case f.isHidden():
		return "(hidden)"
	case f.isSeveral():
		var values []json.RawMessage
		_ = json.Unmarshal(value, &values) // read has made it
		var labels []string
		for _, each := range values {
			if at := f.IndexOf(each); at >= 0 {
				labels = append(labels, f.choiceLabel(at))
			}
		}
		return cmp.Or(brief(strings.Join(labels, ", "), maxDescription), "none")
	case f.IndexOf(value) >= 0:
		return f.choiceLabel(f.IndexOf(value))
	case f.Type == "boolean":
		return showAnswer(value)
	}
	return showValue(value, maxDescription)
}
