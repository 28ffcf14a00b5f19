package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
)

// askForm asks for the fields of a schema. If there are several, the person sees all answers before they are sent.
func (d dialog) askForm(ctx context.Context, schema json.RawMessage) (json.RawMessage, error) {
	parsed, err := form.Parse(schema)
	switch {
	case err != nil:
		return d.askJSON(schema)
	case len(parsed.Fields) == 0:
		return d.askConsent()
	}
	d.t.say(d.indent("Ctrl-D declines, Esc dismisses.", d.t.look.faint)...)
	values := make([]json.RawMessage, len(parsed.Fields))
	for at := range values {
		if values[at], err = d.askField(ctx, parsed.Fields, at, false); err != nil {
			return nil, err
		}
	}
	for {
		if err := d.review(ctx, parsed.Fields, values); err != nil {
			return nil, err
		}
		var members []form.Member
		for at, value := range values {
			if value != nil {
				members = append(members, form.Member{Name: parsed.Fields[at].Name, Value: value})
			}
		}
		content := form.EncodeMembers(members)
		if err = checkMembers(ctx, parsed.Members, content); err == nil {
			return content, nil
		}
		d.sayFault(err)
		if len(values) == 1 {
			if values[0], err = d.askField(ctx, parsed.Fields, 0, false); err != nil {
				return nil, err
			}
		}
	}
}

// askField asks for one of the fields until the value fits. The value is nil if the field stays empty. hasValue means that
// the default is a value that the person gave before, and may take back.
func (d dialog) askField(ctx context.Context, fields []form.Field, at int, hasValue bool) (json.RawMessage, error) {
	f := field{fields[at]}
	canClear := hasValue && !f.Required && !f.isHidden()
	var notes []string
	if len(fields) > 1 {
		notes = append(notes, fmt.Sprintf("field %d of %d", at+1, len(fields)))
	}
	if description := brief(f.Description, maxDescription); description != "" {
		notes = append(notes, description)
	}
	if len(notes) > 0 {
		d.sayHeading(f.label(), strings.Join(notes, ": "))
	}
	if canClear {
		d.t.say(d.indent("A space clears it.", d.t.look.faint)...)
	}
	for i := range f.Choices {
		if i == maxMessageRows {
			d.t.say(fmt.Sprintf("  … %d choices in all", len(f.Choices)))
			break
		}
		d.t.say(fit(fmt.Sprintf("  %d %s", i+1, f.choiceLabel(i)), d.width-1))
	}
	return d.askValue(f.prompt(len(notes) > 0), f.isHidden(), func(typed string) (json.RawMessage, error) {
		if canClear && typed != "" && strings.TrimSpace(typed) == "" {
			return nil, nil
		}
		value, err := f.read(typed)
		if err == nil && value != nil {
			err = f.check(ctx, value)
		}
		return value, err
	})
}

// sayHeading shows the name of a field, and notes on it behind the name.
func (d dialog) sayHeading(name, notes string) {
	lines := wrap(name+"  "+notes, d.width-3)
	for i, line := range lines {
		before := ""
		if i == 0 {
			before = line[:min(len(name), len(line))]
		}
		lines[i] = "  " + d.t.look.bold(before) + d.t.look.faint(line[len(before):])
	}
	d.t.say(lines...)
}

// review shows the values of several fields, or of a time, whose zone the person has to see. It asks for the fields
// that the person wants to change, and returns when the values are to be sent.
func (d dialog) review(ctx context.Context, fields []form.Field, values []json.RawMessage) error {
	if len(fields) == 1 && !(field{fields[0]}).isTime() {
		return nil
	}
	for {
		d.t.say("")
		names := 0
		for _, f := range fields {
			names = max(names, columns(field{f}.label()))
		}
		names = min(names, d.width/2)
		for i, f := range fields {
			number := fmt.Sprintf("  %*d  ", len(strconv.Itoa(len(fields))), i+1)
			name := fit(field{f}.label(), names)
			value := fit(cmp.Or(field{f}.show(values[i], maxChoice), "-"), d.width-len(number)-names-3)
			d.t.say(number + d.t.look.bold(name) + strings.Repeat(" ", names-columns(name)) + "  " + value)
		}
		chosen, err := d.askValue("  Enter sends, a number changes a field: ", false, func(typed string) (json.RawMessage, error) {
			typed = strings.TrimSpace(typed)
			if n, err := strconv.Atoi(cmp.Or(typed, "0")); err != nil || n < 0 || n > len(fields) || n == 0 && typed != "" {
				return nil, fmt.Errorf("%q is not a number from 1 to %d", shorten(typed, maxDefault), len(fields))
			}
			return json.RawMessage(typed), nil
		})
		if err != nil || len(chosen) == 0 {
			return err
		}
		at, _ := strconv.Atoi(string(chosen)) // it has been read above
		current := slices.Clone(fields)
		current[at-1].Default = values[at-1]
		if values[at-1], err = d.askField(ctx, current, at-1, values[at-1] != nil); err != nil {
			return err
		}
	}
}
