package terminal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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

// errFormless says that no form can be made from a schema.
var errFormless = errors.New("the schema is not one of a form")

// field is a property of a question's schema.
type field struct {
	name     string
	property property
	required bool
	choices  []choice
	// schema is that of an object with only this property. It is nil if it cannot be compiled here. Then only the
	// server checks the value.
	schema *validate.Schema
}

// property is the schema of a field.
type property struct {
	Type        string            `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Format      string            `json:"format"`
	WriteOnly   bool              `json:"writeOnly"`
	Default     json.RawMessage   `json:"default"`
	Const       json.RawMessage   `json:"const"`
	Enum        []json.RawMessage `json:"enum"`
	EnumNames   []string          `json:"enumNames"`
	OneOf       []option          `json:"oneOf"`
	AnyOf       []option          `json:"anyOf"`
	Items       *property         `json:"items"`
	Minimum     json.Number       `json:"minimum"`
	Maximum     json.Number       `json:"maximum"`
	MinLength   int64             `json:"minLength"`
	MaxLength   int64             `json:"maxLength"`
	MinItems    int64             `json:"minItems"`
	MaxItems    int64             `json:"maxItems"`
}

type option struct {
	Const json.RawMessage `json:"const"`
	Title string          `json:"title"`
}

// choice is a value that a field may have, and its name for a person.
type choice struct {
	value json.RawMessage
	label string
}

// member is a member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// fields are the fields of a form.
type fields struct {
	list   []field
	schema *validate.Schema // of the whole form, or nil
}

// newFields returns the fields of a question's schema, in its order. There are none if the schema has no
// properties. The error is errFormless if a person has to write JSON.
func newFields(schema json.RawMessage) (fields, error) {
	var made fields
	if len(schema) == 0 || string(schema) == "null" {
		return made, nil
	}
	if len(schema) > form.MaxSize {
		return made, errFormless
	}
	members, err := decodeMembers(schema)
	if err != nil {
		return made, errFormless
	}
	var properties []member
	var required []string
	for i, m := range members {
		switch m.name {
		case "properties":
			if properties, err = decodeMembers(m.value); err != nil {
				return made, errFormless
			}
			for at := range properties {
				properties[at].value = withoutPassword(properties[at].value)
			}
			members[i].value = encodeMembers(properties)
		case "required":
			if json.Unmarshal(m.value, &required) != nil {
				return made, errFormless
			}
		}
	}
	if form.Check(encodeMembers(members)) != nil {
		return made, errFormless
	}
	made.schema = compile(members)
	for _, p := range properties {
		f, err := newField(p, slices.Contains(required, p.name))
		if err != nil {
			return made, err
		}
		made.list = append(made.list, f)
	}
	for _, name := range required {
		if !slices.ContainsFunc(made.list, func(f field) bool { return f.name == name }) {
			return made, errFormless
		}
	}
	return made, nil
}

func newField(m member, required bool) (field, error) {
	f := field{name: m.name, required: required}
	if err := json.Unmarshal(m.value, &f.property); err != nil {
		return field{}, errFormless
	}
	f.schema = compile([]member{{"properties", encodeMembers([]member{m})}})
	p := f.property
	if p.Type == "array" {
		if p.Items == nil {
			return field{}, errFormless
		}
		f.choices = newChoices(p.Items.Enum, nil, p.Items.AnyOf)
		if len(f.choices) == 0 {
			return field{}, errFormless
		}
		return f, nil
	}
	if p.Const != nil && string(p.Const) != "null" {
		f.choices = newChoices([]json.RawMessage{p.Const}, nil, nil)
	} else {
		f.choices = newChoices(p.Enum, p.EnumNames, p.OneOf)
	}
	return f, nil
}

// newChoices returns the choices of an enum with names, and of options with titles.
func newChoices(values []json.RawMessage, names []string, options []option) []choice {
	var choices []choice
	add := func(value json.RawMessage, name string) {
		label := brief(name, maxChoice)
		if label == "" {
			label = showValue(value, maxChoice)
		}
		choices = append(choices, choice{value, label})
	}
	for i, value := range values {
		name := ""
		if i < len(names) {
			name = names[i]
		}
		add(value, name)
	}
	for _, o := range options {
		add(o.Const, o.Title)
	}
	return choices
}

// withoutPassword replaces the format password, which a form may not have, by writeOnly. Both hide what is typed.
func withoutPassword(schema json.RawMessage) json.RawMessage {
	members, err := decodeMembers(schema)
	if err != nil {
		return schema
	}
	isPassword := func(m member) bool { return m.name == "format" && string(m.value) == `"password"` }
	if !slices.ContainsFunc(members, isPassword) {
		return schema
	}
	members = slices.DeleteFunc(members, func(m member) bool { return isPassword(m) || m.name == "writeOnly" })
	return encodeMembers(append(members, member{"writeOnly", json.RawMessage("true")}))
}

// decodeMembers returns the members of a JSON object in their order. If a name comes twice, the last value counts.
func decodeMembers(data json.RawMessage) ([]member, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, fmt.Errorf("no object: %w", cmp.Or(err, errFormless))
	}
	var members []member
	places := map[string]int{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: fmt.Sprint(token)}
		if err := decoder.Decode(&m.value); err != nil {
			return nil, err
		}
		if at, ok := places[m.name]; ok {
			members[at] = m
			continue
		}
		places[m.name] = len(members)
		members = append(members, m)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	return members, nil
}

// encodeMembers encodes an object whose values are valid JSON.
func encodeMembers(members []member) json.RawMessage {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, encodeString(m.name)...), ':'), m.value...)
	}
	return append(b, '}')
}

func encodeString(s string) json.RawMessage {
	encoded, _ := encode(s) // a string always encodes
	return encoded
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
	return cmp.Or(brief(f.property.Title, maxLabel), brief(f.name, maxLabel), "value")
}

// isHidden reports whether what is typed stays off the screen.
func (f field) isHidden() bool { return f.property.WriteOnly && len(f.choices) == 0 }

// isSeveral reports whether the value is a list of choices.
func (f field) isSeveral() bool { return f.property.Type == "array" }

// kind says in words what the field takes.
func (f field) kind() string {
	p := f.property
	var kind string
	switch {
	case f.isSeveral():
		kind = "space or numbers to choose" + formatRange(p.MinItems, p.MaxItems, ", ", "")
	case len(f.choices) > 0:
		kind = fmt.Sprintf("1-%d", len(f.choices))
	case f.isHidden():
		kind = "hidden" + formatRange(p.MinLength, p.MaxLength, ", ", " characters")
	case p.Type == "boolean":
		kind = "y/n"
	case p.Type == "string":
		formats := map[string]string{
			"email": "e-mail address", "uri": "URL", "date": "date such as 2026-01-31", "date-time": "time such as 2026-01-31T15:04:05Z",
		}
		kind = cmp.Or(formats[p.Format], "text") + formatRange(p.MinLength, p.MaxLength, ", ", " characters")
	default:
		kind = "number"
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
	}
	if !f.required {
		kind += ", optional"
	}
	return brief(kind, maxLabel)
}

// formatRange formats the bounds of a length. 0 is no bound.
func formatRange(least, most int64, before, after string) string {
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

// defaultValue returns the value that an empty line means, or nil.
func (f field) defaultValue() json.RawMessage {
	if value := f.property.Default; len(value) > 0 && string(value) != "null" {
		return value
	}
	return nil
}

// showDefault returns the default for a person, or "".
func (f field) showDefault() string {
	value := f.defaultValue()
	switch {
	case value == nil:
		return ""
	case f.isHidden():
		return "hidden"
	case f.isSeveral():
		var labels []string
		for _, at := range f.defaultChoices() {
			labels = append(labels, f.choices[at].label)
		}
		return brief(cmp.Or(strings.Join(labels, ", "), "none"), maxDefault)
	case f.property.Type == "boolean" && len(f.choices) == 0:
		return showAnswer(value)
	}
	if at := f.indexOf(value); at >= 0 {
		return f.choices[at].label
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

// indexOf returns the index of the choice that has a value, or -1.
func (f field) indexOf(value json.RawMessage) int {
	for i, c := range f.choices {
		if bytes.Equal(c.value, value) { // also integers that are the same in floating point
			return i
		}
	}
	return slices.IndexFunc(f.choices, func(c choice) bool { return sameScalar(c.value, value) })
}

// sameScalar compares two strings, numbers or booleans.
func sameScalar(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && isScalar(x) && x == y
}

func isScalar(value any) bool {
	switch value.(type) {
	case string, float64, bool:
		return true
	}
	return false
}

// defaultChoices returns the indexes of the choices that a list has by default.
func (f field) defaultChoices() []int {
	var values []json.RawMessage
	_ = json.Unmarshal(f.defaultValue(), &values) // form.Check has seen that it is a list
	var found []int
	for _, value := range values {
		if at := f.indexOf(value); at >= 0 {
			found = append(found, at)
		}
	}
	return found
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
		place := text.Shorten(each.name, maxPlace)
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
	var members []member
	for _, each := range f.list {
		if value := values[each.name]; value != nil {
			members = append(members, member{each.name, value})
		}
	}
	return encodeMembers(members)
}

// newPrompt returns the prompt of the field.
func (f field) newPrompt() *prompt {
	label := fmt.Sprintf("  %s (%s)", f.label(), f.kind())
	if shown := f.showDefault(); shown != "" {
		label += " [" + shown + "]"
	}
	p := &prompt{label: label + ": ", hidden: f.isHidden(), several: f.isSeveral(), checked: map[int]bool{}}
	for _, c := range f.choices {
		p.choices = append(p.choices, c.label)
	}
	p.find = func(typed string) (int, bool) {
		at, err := f.find(typed)
		return at, err == nil
	}
	switch {
	case f.isSeveral():
		for _, at := range f.defaultChoices() {
			p.checked[at] = true
		}
	case f.defaultValue() != nil:
		p.at = f.indexOf(f.defaultValue())
	case !f.required:
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
	case len(f.choices) > 0 && isEmpty && p.at >= 0:
		return f.choices[p.at].value, nil
	case isEmpty && f.defaultValue() != nil:
		return f.defaultValue(), nil
	case isEmpty && f.required:
		return nil, errors.New("a value is needed: Ctrl-D declines the question")
	case isEmpty:
		return nil, nil
	case len(f.choices) > 0:
		at, err := f.find(typed)
		if err != nil {
			return nil, err
		}
		return f.choices[at].value, nil
	}
	switch f.property.Type {
	case "boolean":
		return readBoolean(typed)
	case "integer":
		return readInteger(typed)
	case "number":
		return readNumber(typed)
	}
	return encodeString(typed), nil
}

// find returns the choice that a person typed: its value, or what pick takes.
func (f field) find(typed string) (int, error) {
	typed = strings.TrimSpace(typed)
	for i, c := range f.choices {
		if string(c.value) == typed || showValue(c.value, maxChoice) == typed {
			return i, nil
		}
	}
	labels := make([]string, len(f.choices))
	for i, c := range f.choices {
		labels[i] = c.label
	}
	if at, ok := pick(labels, typed); ok {
		return at, nil
	}
	return 0, fmt.Errorf("%q is none of the choices: type a number from 1 to %d", text.Shorten(typed, maxDefault), len(f.choices))
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
	for i, c := range f.choices {
		if chosen[i] {
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = append(list, c.value...)
		}
	}
	if len(list) == 1 && !f.required && f.defaultValue() == nil {
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

func readInteger(typed string) (json.RawMessage, error) {
	digits, isNegative := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(typed), "+"), "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return nil, fmt.Errorf("%q is not a whole number", text.Shorten(typed, maxDefault))
	}
	digits = cmp.Or(strings.TrimLeft(digits, "0"), "0")
	if isNegative && digits != "0" {
		digits = "-" + digits
	}
	return json.RawMessage(digits), nil
}

func readNumber(typed string) (json.RawMessage, error) {
	typed = strings.TrimSpace(typed)
	if whole, err := readInteger(typed); err == nil {
		return whole, nil
	}
	number, err := strconv.ParseFloat(typed, 64)
	if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
		return nil, fmt.Errorf("%q is not a number such as 3 or -2.5", text.Shorten(typed, maxDefault))
	}
	if json.Valid([]byte(typed)) {
		return json.RawMessage(typed), nil
	}
	return json.RawMessage(strconv.FormatFloat(number, 'g', -1, 64)), nil
}

// compile returns the schema of an object, or nil.
func compile(members []member) *validate.Schema {
	members = slices.DeleteFunc(slices.Clone(members), func(m member) bool { return m.name == "type" })
	schema, _ := validate.Compile(string(encodeMembers(append(members, member{"type", json.RawMessage(`"object"`)}))), true)
	return schema
}

// check returns what is wrong with a value, in words for a person. It does not repeat a hidden value.
func (f field) check(ctx context.Context, value json.RawMessage) error {
	if f.schema == nil {
		return nil
	}
	err := f.schema.Check(ctx, encodeMembers([]member{{f.name, value}}))
	switch {
	case err == nil:
		return nil
	case f.isHidden():
		return errors.New("it does not fit" + formatRange(f.property.MinLength, f.property.MaxLength, ": want ", " characters"))
	}
	place := text.Shorten(f.name, maxPlace) + ": "
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
			if at := f.indexOf(each); at >= 0 {
				labels = append(labels, f.choices[at].label)
			}
		}
		return cmp.Or(brief(strings.Join(labels, ", "), maxDescription), "none")
	case f.indexOf(value) >= 0:
		return f.choices[f.indexOf(value)].label
	case f.property.Type == "boolean":
		return showAnswer(value)
	}
	return showValue(value, maxDescription)
}
