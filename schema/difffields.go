package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

func (s *Surface) field(means string) (Field, bool) {
	i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Means == means })
	if i < 0 {
		return Field{}, false
	}
	return s.Fields[i], true
}

// quantity is a field's unit and clock: "milliseconds, from the task's creation".
func (f Field) quantity() string {
	switch {
	case f.Clock != "" && strings.HasPrefix(f.Clock, "which "):
		return f.Unit + ", from a time " + f.Clock
	case f.Clock != "":
		return f.Unit + ", from " + f.Clock
	}
	return f.Unit
}

// form is what a field holds, and whether it must be there.
func (s *Surface) form(f Field) (kind, presence string) {
	value, required, _ := s.lookup(f.At)
	presence = "optional"
	if required {
		presence = "required"
	}
	return s.typeText(value, 0), presence
}

func (d *diff) fields() {
	for _, meaning := range d.canon.Fields {
		was, before := d.from.field(meaning.name)
		is, now := d.to.field(meaning.name)
		switch {
		case before && now:
			d.field(meaning.phrase, was, is)
		case before:
			d.add(Fields, Removed, meaning.name, was.Place(), "", "%s is gone: %s%s", was.Place(), meaning.phrase, inside(was.quantity()))
		case now:
			kind, presence := d.to.form(is)
			d.add(Fields, Added, meaning.name, "", is.Place(), "%s is new: %s (%s, %s)%s", is.Place(), meaning.phrase, kind, presence, noted(is))
		}
	}
}

func inside(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func noted(f Field) string {
	parts := []string{f.quantity(), f.Note}
	text := strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
	return strings.TrimSuffix("; "+text, "; ")
}

// field compares a field that both have.
func (d *diff) field(phrase string, was, is Field) {
	same := "" // what a change of the name leaves as it was
	if q := is.quantity(); q != "" && q == was.quantity() {
		same = "; " + q + ", as before"
	}
	from, to := was.Place(), is.Place()
	switch {
	case from == to:
	case from[:strings.LastIndex(from, ".")+1] == to[:strings.LastIndex(to, ".")+1]:
		d.add(Fields, Renamed, is.Means, from, to, "%s is called %s: %s%s", from, to, phrase, same)
	default:
		d.add(Fields, Moved, is.Means, from, to, "%s has become %s: %s%s", from, to, phrase, same)
	}
	if was.Unit != is.Unit {
		d.add(Fields, Changed, is.Means, was.Unit, is.Unit, "%s is in %s (before: %s)", to, cmp.Or(is.Unit, "no unit"), cmp.Or(was.Unit, "no unit"))
	}
	if was.Clock != is.Clock {
		d.add(Fields, Changed, is.Means, was.Clock, is.Clock, "%s counts from %s (before: %s)", to, clock(is), clock(was))
	}
	kindWas, presenceWas := d.from.form(was)
	kind, presence := d.to.form(is)
	switch {
	case len(was.Values) > 0 && len(is.Values) > 0:
		for _, value := range d.canon.Support {
			if before, now := was.Values[value.name], is.Values[value.name]; before != now {
				d.add(Fields, Renamed, is.Means, fmt.Sprintf("%q", before), fmt.Sprintf("%q", now), "%s: %q is called %q: %s", to, before, now, value.phrase)
			}
		}
	case kindWas != kind:
		d.add(Fields, Changed, is.Means, kindWas, kind, "%s holds %s (before: %s)", to, kind, kindWas)
	}
	if presenceWas != presence {
		d.add(Fields, Changed, is.Means, presenceWas, presence, "%s is %s (before: %s)", to, presence, presenceWas)
	}
	switch {
	case was.Note == is.Note:
	case is.Note == "":
		d.add(Fields, Changed, is.Means, was.Note, "", "%s: no longer %s", to, was.Note)
	case was.Note == "":
		d.add(Fields, Changed, is.Means, "", is.Note, "%s: %s", to, is.Note)
	default:
		d.add(Fields, Changed, is.Means, was.Note, is.Note, "%s: %s (before: %s)", to, is.Note, was.Note)
	}
}

func clock(f Field) string {
	if strings.HasPrefix(f.Clock, "which ") {
		return "a time " + f.Clock
	}
	return cmp.Or(f.Clock, "no time")
}

func (d *diff) metaKeys() {
	for _, meaning := range d.canon.MetaKeys {
		find := func(s *Surface) (MetaKey, bool) {
			i := slices.IndexFunc(s.MetaKeys, func(k MetaKey) bool { return k.Means == meaning.name })
			if i < 0 {
				return MetaKey{}, false
			}
			return s.MetaKeys[i], true
		}
		was, before := find(d.from)
		is, now := find(d.to)
		switch {
		case before && now && was.Key != is.Key:
			d.add(MetaKeys, Renamed, meaning.name, was.Key, is.Key, "%s is called %s: it %s", was.Key, is.Key, meaning.phrase)
		case before && !now:
			d.add(MetaKeys, Removed, meaning.name, was.Key, "", "%s is gone: it %s", was.Key, sentence(was.Doc))
		case now && !before:
			d.add(MetaKeys, Added, meaning.name, "", is.Key, "%s is new: it %s", is.Key, sentence(is.Doc))
		}
	}
}

// capabilities compares where one party declares what it can do.
func (d *diff) capabilities(party string, from, to map[string]string) {
	definition := strings.ToUpper(party[:1]) + party[1:] + "Capabilities"
	kind := func(s *Surface, pointer string) string {
		value, _, ok := s.lookup(definition + pointer)
		if !ok {
			return "object" // an extension, of which the core's schema knows nothing
		}
		return s.typeText(value, 0)
	}
	for _, meaning := range d.canon.Capabilities {
		was, before := from[meaning.name]
		is, now := to[meaning.name]
		oldPlace, newPlace := "capabilities"+dotted(pointerSteps(was)), "capabilities"+dotted(pointerSteps(is))
		switch {
		case before && now && was != is:
			d.add(Capabilities, Moved, meaning.name, oldPlace, newPlace, "the %s's %s has become %s: %s", party, oldPlace, newPlace, meaning.phrase)
		case before && !now:
			d.add(Capabilities, Removed, meaning.name, oldPlace, "", "the %s's %s is gone: %s", party, oldPlace, meaning.phrase)
		case now && !before:
			d.add(Capabilities, Added, meaning.name, "", newPlace, "the %s's %s is new: %s", party, newPlace, meaning.phrase)
		case before && now:
			if a, b := kind(d.from, was), kind(d.to, is); a != b {
				d.add(Capabilities, Changed, meaning.name, a, b, "the %s's %s is declared by a value of type %s (before: %s)", party, newPlace, b, a)
			}
		}
	}
}

// answer describes a refusal: "-32021 MissingClientCapability (HTTP 400)".
func (s *Surface) answer(r Refusal) string {
	if r.Code == "" {
		return r.Answer
	}
	code := s.code(r.Code)
	text := fmt.Sprintf("%d %s", code.Code, code.Name)
	if code.HTTPStatus != 0 {
		text += fmt.Sprintf(" (HTTP %d)", code.HTTPStatus)
	}
	return text
}

func (s *Surface) refusal(name string) (Refusal, bool) {
	i := slices.IndexFunc(s.Refusals, func(r Refusal) bool { return r.Case == name })
	if i < 0 {
		return Refusal{}, false
	}
	return s.Refusals[i], true
}

func (d *diff) errors() {
	for _, was := range d.from.ErrorCodes {
		if is := d.to.code(was.Name); is.Code == 0 {
			d.add(Errors, Removed, "", fmt.Sprint(was.Code), "", "%d %s is gone: it %s", was.Code, was.Name, sentence(was.Doc))
		} else if is.Code != was.Code {
			d.add(Errors, Moved, "", fmt.Sprint(was.Code), fmt.Sprint(is.Code), "%s has the code %d (before: %d)", is.Name, is.Code, was.Code)
		}
	}
	for _, is := range d.to.ErrorCodes {
		if d.from.code(is.Name).Code == 0 {
			http := ""
			if is.HTTPStatus != 0 {
				http = fmt.Sprintf(" (HTTP %d)", is.HTTPStatus)
			}
			d.add(Errors, Added, "", "", fmt.Sprint(is.Code), "%d %s%s is new: it %s", is.Code, is.Name, http, sentence(is.Doc))
		}
	}
	own := map[bool]string{true: "; the revision does not say, this project's choice"}
	for _, c := range d.canon.Cases {
		was, before := d.from.refusal(c.name)
		is, now := d.to.refusal(c.name)
		oldAnswer, newAnswer := d.from.answer(was), d.to.answer(is)
		switch {
		case before && now && oldAnswer != newAnswer && was.Code == is.Code && d.from.code(was.Code).Code == d.to.code(is.Code).Code:
			d.add(Errors, Changed, c.name, oldAnswer, newAnswer, "%s: %s%s (before: %s)", c.phrase, newAnswer, own[is.Own], oldAnswer)
		case before && now && oldAnswer != newAnswer:
			d.add(Errors, Moved, c.name, oldAnswer, newAnswer, "%s: %s%s (before: %s)", c.phrase, newAnswer, own[is.Own], oldAnswer)
		case before && !now:
			d.add(Errors, Removed, c.name, oldAnswer, "", "%s: nothing is said of it (before: %s)", c.phrase, oldAnswer)
		case now && !before:
			d.add(Errors, Added, c.name, "", newAnswer, "%s: %s%s", c.phrase, newAnswer, own[is.Own])
		}
	}
}
