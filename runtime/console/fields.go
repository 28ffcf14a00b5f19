package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
)

// control is an element of the form by which a viewer answers a question.
type control struct {
	// Name is the name of the element, and Label its text on the page.
	Name, Label string
	// Hint describes the values that fit.
	Hint     string
	Required bool
	// Options are the choices, and IsSeveral says that a person may make several.
	Options   []option
	IsSeveral bool
	// Value is the text of an element without options, and Type the type of its input, or "" for several lines.
	Value, Type string
}

// option is a value that a control may have, in JSON, and its text on the page.
type option struct {
	Value, Label string
	IsChosen     bool
}

// nameOf returns the name of the control of a form's nth field. The field's own name may be one that browsers change.
func nameOf(n int) string { return "field " + strconv.Itoa(n) }

// optionsOf returns the values that can be chosen for a field, with titles. There are none if it is typed.
func optionsOf(f form.Field) []form.Choice {
	if f.Type == "boolean" && len(f.Choices) == 0 {
		return []form.Choice{{Value: json.RawMessage("true"), Title: "yes"}, {Value: json.RawMessage("false"), Title: "no"}}
	}
	return f.Choices
}

// newControl returns the control of a form's nth field, with the viewer's entry or else the default.
func newControl(n int, f form.Field, entered url.Values) control {
	c := control{Name: nameOf(n), Label: cmp.Or(f.Title, f.Name), Required: f.Required, IsSeveral: f.Type == "array", Type: "text"}
	chosen := entered[c.Name]
	if entered == nil {
		switch value := f.DefaultValue(); {
		case c.IsSeveral:
			for _, at := range f.DefaultChoices() {
				chosen = append(chosen, string(f.Choices[at].Value))
			}
		case f.IndexOf(value) >= 0:
			chosen = []string{string(f.Choices[f.IndexOf(value)].Value)}
		case value != nil:
			chosen = []string{plainText(value)}
		}
	}
	isChosen := map[string]bool{}
	for _, value := range chosen {
		isChosen[value] = true
	}
	for _, choice := range optionsOf(f) {
		value := string(choice.Value)
		c.Options = append(c.Options, option{value, cmp.Or(choice.Title, plainText(choice.Value)), isChosen[value]})
	}
	hints := []string{f.Description}
	switch {
	case c.IsSeveral:
		hints = append(hints, form.FormatRange(f.MinItems, f.MaxItems, "", " of them"))
	case c.Options == nil:
		c.Value = strings.Join(chosen, "")
		hints = append(hints, f.Describe())
		switch {
		case f.WriteOnly:
			c.Type = "password"
		case strings.ContainsAny(c.Value, "\r\n"):
			c.Type = "" // an input would join the lines
		case c.useCalendar(f.Format):
			hints = hints[:1]
			if c.Type == dateTimeInput {
				hints = append(hints, "in UTC")
			}
		}
	}
	c.Hint = strings.Join(slices.DeleteFunc(hints, func(s string) bool { return s == "" }), " · ")
	return c
}

// dateTimeInput is the type of an input for a time, which browsers send without a zone, as timeLayout.
const (
	dateTimeInput = "datetime-local"
	timeLayout    = "2006-01-02T15:04:05"
)

// useCalendar lets the browser show a calendar for a date or a time. It returns false for a value that a calendar cannot
// show, which stays a text.
func (c *control) useCalendar(format string) bool {
	switch format {
	case "date":
		if _, err := time.Parse(time.DateOnly, c.Value); err != nil && c.Value != "" {
			return false
		}
		c.Type = "date"
	case "date-time":
		if c.Value != "" {
			at, err := time.Parse(time.RFC3339, readTime(c.Value))
			if err != nil || at.Nanosecond() != 0 {
				return false
			}
			c.Value = at.UTC().Format(timeLayout)
		}
		c.Type = dateTimeInput
	}
	return c.Type != "text"
}

// readTime returns a time as a question has it. A time without a zone is in UTC. It returns any other text as it is.
func readTime(typed string) string {
	for _, layout := range []string{"2006-01-02T15:04", timeLayout} {
		if at, err := time.Parse(layout, strings.Replace(strings.TrimSpace(typed), " ", "T", 1)); err == nil {
			return at.Format(time.RFC3339Nano)
		}
	}
	return typed
}

// plainText returns a value as a person types it.
func plainText(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// readContent returns the content of an answer, as the controls have it. It leaves out optional fields that are empty.
// The schema of the question is checked later.
func readContent(fields []form.Field, entered url.Values) (json.RawMessage, error) {
	var members []form.Member
	var faults []string
	for n, f := range fields {
		value, err := readField(f, entered[nameOf(n)])
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", cmp.Or(f.Title, f.Name), err))
		}
		if value != nil {
			members = append(members, form.Member{Name: f.Name, Value: value})
		}
	}
	if faults != nil {
		return nil, fmt.Errorf("%w: %s", errForm, strings.Join(faults, "; "))
	}
	return form.EncodeMembers(members), nil
}

// readField returns the value of a field, or nil if it stays empty.
func readField(f form.Field, entered []string) (json.RawMessage, error) {
	isSeveral, options := f.Type == "array", optionsOf(f)
	if isSeveral || options != nil {
		entered = slices.DeleteFunc(slices.Clone(entered), func(value string) bool { return value == "" })
		known := map[string]bool{}
		for _, c := range options {
			known[string(c.Value)] = true
		}
		for _, value := range entered {
			if !known[value] {
				return nil, fmt.Errorf("%q is none of the choices", text.Shorten(value, mostOfFault))
			}
		}
	}
	if isSeveral {
		if len(entered) == 0 && !f.Required && f.DefaultValue() == nil {
			return nil, nil
		}
		return json.RawMessage("[" + strings.Join(entered, ",") + "]"), nil
	}
	if len(entered) > 1 {
		return nil, errors.New("it has more than one value")
	}
	typed := strings.ReplaceAll(strings.Join(entered, ""), "\r\n", "\n") // as browsers send lines
	switch {
	case options == nil && f.Type == "string" && f.Format == "date-time" && typed != "":
		return json.Marshal(readTime(typed))
	case options == nil && f.Type == "string" && (typed != "" || f.Required):
		return json.Marshal(typed)
	case typed == "":
		return nil, nil
	case options != nil:
		return json.RawMessage(typed), nil
	}
	return f.ReadNumber(typed)
}

// mostOfFault bounds the part of a form that an error repeats, in bytes.
const mostOfFault = 40
