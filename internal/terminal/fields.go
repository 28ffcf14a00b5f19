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
	"time"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// These constants bound the texts of a field, in bytes.
const (
	maxLabel       = 120
	maxDescription = 1000
	maxChoice      = 200
	maxDefault     = 60
	maxFault       = 500
)

// field is a field of a form.
type field struct{ form.Field }

// choiceLabel returns the label of a choice.
func (f field) choiceLabel(at int) string {
	c := f.Choices[at]
	return cmp.Or(brief(c.Title, maxChoice), showValue(c.Value, maxChoice))
}

// showValue returns a value as a person would type it.
func showValue(value json.RawMessage, most int) string {
	var s string
	if json.Unmarshal(value, &s) == nil && strings.TrimSpace(s) != "" {
		return brief(s, most)
	}
	return brief(string(value), most)
}

// isHidden reports whether the typed text stays off the screen.
func (f field) isHidden() bool { return f.WriteOnly && len(f.Choices) == 0 }

// isSeveral reports whether the value is a list of choices.
func (f field) isSeveral() bool { return f.Type == "array" }

// isTime reports whether the value is a time of a day.
func (f field) isTime() bool {
	return f.Type == "string" && f.Format == "date-time" && len(f.Choices) == 0 && !f.WriteOnly
}

// label returns the name of the field for a person.
func (f field) label() string {
	return cmp.Or(brief(f.Title, maxLabel), brief(f.Name, maxLabel), "value")
}

// prompt returns the text before the person's input: the values that the field takes, and its default. The name of the
// field comes first, unless it stands in the heading above.
func (f field) prompt(hasHeading bool) string {
	words := brief(f.kind(), maxLabel)
	if !hasHeading {
		words = f.label() + " (" + words + ")"
	}
	if shown := f.show(f.DefaultValue(), maxDefault); shown != "" {
		words += " [" + shown + "]"
	}
	return "  " + words + ": "
}

// kind describes in words the values that the field takes.
func (f field) kind() string {
	p := f.Property
	var kind string
	switch {
	case f.isSeveral():
		kind = "numbers, with commas" + form.FormatRange(p.MinItems, p.MaxItems, ", ", "")
	case len(f.Choices) > 0:
		kind = fmt.Sprintf("1-%d", len(f.Choices))
	case f.isHidden():
		kind = "hidden" + form.FormatRange(p.MinLength, p.MaxLength, ", ", " characters")
	case p.Type == "boolean":
		kind = "y/n"
	case f.isTime():
		kind = "time such as " + exampleTime
	default:
		kind = f.Describe()
	}
	if !f.Required {
		kind += ", optional"
	}
	return kind
}

// show returns a value for a person, in about the given number of bytes. It returns "" for nil.
func (f field) show(value json.RawMessage, most int) string {
	switch {
	case value == nil:
		return ""
	case f.isHidden():
		return "hidden"
	case f.isSeveral():
		var labels []string
		var values []json.RawMessage
		_ = json.Unmarshal(value, &values) // the form has seen that it is a list
		for _, value := range values {
			if at := f.IndexOf(value); at >= 0 {
				labels = append(labels, f.choiceLabel(at))
			}
		}
		return brief(cmp.Or(strings.Join(labels, ", "), "none"), most)
	case f.IndexOf(value) >= 0:
		return brief(f.choiceLabel(f.IndexOf(value)), most)
	case string(value) == "true":
		return "y"
	case string(value) == "false":
		return "n"
	}
	return showValue(value, most)
}

// read returns the value that a person has typed, or nil if the field stays empty. Its errors are for the person.
func (f field) read(typed string) (json.RawMessage, error) {
	isEmpty := typed == "" || !f.isHidden() && strings.TrimSpace(typed) == ""
	switch {
	case isEmpty && f.DefaultValue() != nil:
		return f.DefaultValue(), nil
	case isEmpty && f.Required:
		return nil, errors.New("a value is needed: Ctrl-D declines the question")
	case isEmpty:
		return nil, nil
	case f.isSeveral():
		return f.readSeveral(typed)
	case len(f.Choices) > 0:
		at, err := f.find(typed)
		if err != nil {
			return nil, err
		}
		return f.Choices[at].Value, nil
	case f.Type == "boolean":
		return readBoolean(typed)
	case f.Type == "integer", f.Type == "number":
		return f.ReadNumber(typed)
	case f.isTime():
		return readTime(typed, time.Local)
	}
	return encode(typed)
}

// find returns the choice that a person typed: its value, its title, its number, or the beginning of only one value or
// title.
func (f field) find(typed string) (int, error) {
	typed = strings.TrimSpace(typed)
	for i, c := range f.Choices {
		if strings.EqualFold(showValue(c.Value, maxChoice), typed) || strings.EqualFold(f.choiceLabel(i), typed) {
			return i, nil
		}
	}
	if n, err := strconv.Atoi(typed); err == nil && n >= 1 && n <= len(f.Choices) {
		return n - 1, nil
	}
	begins := func(text string) bool { return len(text) >= len(typed) && strings.EqualFold(text[:len(typed)], typed) }
	var found []int
	for i, c := range f.Choices {
		if typed != "" && (begins(showValue(c.Value, maxChoice)) || begins(f.choiceLabel(i))) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
	case 1:
		return found[0], nil
	default:
		return 0, fmt.Errorf("%q begins %d of the choices: type more of it, or a number from 1 to %d", shorten(typed, maxDefault), len(found), len(f.Choices))
	}
	return 0, fmt.Errorf("%q is none of the choices: type a number from 1 to %d", shorten(typed, maxDefault), len(f.Choices))
}

// readSeveral returns the list of the choices that were typed, in the order of the form.
func (f field) readSeveral(typed string) (json.RawMessage, error) {
	var chosen []int
	for word := range strings.SplitSeq(typed, ",") {
		if strings.TrimSpace(word) == "" {
			continue
		}
		at, err := f.find(word)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, at)
	}
	slices.Sort(chosen)
	list := []json.RawMessage{}
	for _, at := range slices.Compact(chosen) {
		list = append(list, f.Choices[at].Value)
	}
	return encode(list)
}

func readBoolean(typed string) (json.RawMessage, error) {
	switch strings.ToLower(strings.TrimSpace(typed)) {
	case "y", "yes", "true":
		return json.RawMessage("true"), nil
	case "n", "no", "false":
		return json.RawMessage("false"), nil
	}
	return nil, fmt.Errorf("%q is not y or n", shorten(typed, maxDefault))
}

// exampleTime is a time as a person types it.
const exampleTime = "2026-01-31 15:04"

// readTime reads a time that a person typed. Without a zone, it is in the local one.
func readTime(typed string, local *time.Location) (json.RawMessage, error) {
	typed = strings.TrimSpace(typed)
	if _, err := time.Parse(time.RFC3339, typed); err == nil {
		return encode(typed)
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04Z07:00", "2006-01-02 15:04:05Z07:00"} {
		if t, err := time.ParseInLocation(layout, typed, local); err == nil {
			return encode(t.Format(time.RFC3339))
		}
	}
	return nil, fmt.Errorf("%q is not a time such as %s", shorten(typed, maxDefault), exampleTime)
}

// check returns the fault of a value as an error in words for a person. It does not repeat a hidden value.
func (f field) check(ctx context.Context, value json.RawMessage) error {
	properties := form.EncodeMembers([]form.Member{{Name: f.Name, Value: f.Schema}})
	err := checkMembers(ctx, []form.Member{{Name: "properties", Value: properties}}, form.EncodeMembers([]form.Member{{Name: f.Name, Value: value}}))
	if err != nil && f.isHidden() {
		return errors.New("it does not fit" + form.FormatRange(f.MinLength, f.MaxLength, ": want ", " characters"))
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), f.Name+": "))
	}
	return nil
}

// checkMembers is Check for the members of an object's schema.
func checkMembers(ctx context.Context, members []form.Member, content json.RawMessage) error {
	members = slices.DeleteFunc(slices.Clone(members), func(m form.Member) bool { return m.Name == "type" })
	return Check(ctx, form.EncodeMembers(append(members, form.Member{Name: "type", Value: json.RawMessage(`"object"`)})), content)
}

// Check checks an object against its schema. The error names the fault in words for a person. If the schema cannot be
// read, Check returns nil and the server decides.
func Check(ctx context.Context, schema, content json.RawMessage) error {
	response := fmt.Appendf(nil, `{"action":"accept","content":%s}`, content)
	err := mcptask.CheckAnswer(ctx, mcptask.Request{Method: "elicitation/create", Schema: schema}, response)
	if !errors.Is(err, mcptask.ErrInvalidAnswer) {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), mcptask.ErrInvalidAnswer.Error()+": "))
}
