package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

func (s *Surface) findField(means string) (Field, bool) {
	return find(s.Fields, func(f Field) bool { return f.Means == means })
}

// describeQuantity returns a field's unit and clock: "milliseconds, from the task's creation".
func (f Field) describeQuantity() string {
	if f.Clock == "" {
		return f.Unit
	}
	return f.Unit + ", from " + f.describeClock()
}

// describeField returns the type of a field and whether it is required.
func (s *Surface) describeField(f Field) (kind, presence string) {
	value, required, _ := s.lookupMember(f.At)
	presence = "optional"
	if required {
		presence = "required"
	}
	return s.describeType(value, 0), presence
}

func (d *diff) compareFields() {
	for _, meaning := range d.canon.Fields {
		was, before := d.from.findField(meaning.name)
		is, now := d.to.findField(meaning.name)
		switch {
		case before && now:
			d.compareField(meaning.phrase, was, is)
		case before:
			d.addChange(Fields, Removed, meaning.name, was.Place(), "", "%s is gone: %s%s", was.Place(), meaning.phrase, parenthesize(was.describeQuantity()))
		case now:
			kind, presence := d.to.describeField(is)
			d.addChange(Fields, Added, meaning.name, "", is.Place(), "%s is new: %s (%s, %s)%s", is.Place(), meaning.phrase, kind, presence, describeNotes(is))
		}
	}
}

func parenthesize(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func describeNotes(f Field) string {
	parts := []string{f.describeQuantity(), f.Note}
	text := strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
	return strings.TrimSuffix("; "+text, "; ")
}

// compareField compares a field that both revisions have.
func (d *diff) compareField(phrase string, was, is Field) {
	same := "" // what a new name leaves unchanged
	if q := is.describeQuantity(); q != "" && q == was.describeQuantity() {
		same = "; " + q + ", as before"
	}
	from, to := was.Place(), is.Place()
	switch {
	case from == to:
	case from[:strings.LastIndex(from, ".")+1] == to[:strings.LastIndex(to, ".")+1]:
		d.addChange(Fields, Renamed, is.Means, from, to, "%s is called %s: %s%s", from, to, phrase, same)
	default:
		d.addChange(Fields, Moved, is.Means, from, to, "%s has become %s: %s%s", from, to, phrase, same)
	}
	if was.Unit != is.Unit {
		d.addChange(Fields, Changed, is.Means, was.Unit, is.Unit, "%s is in %s (before: %s)", to, cmp.Or(is.Unit, "no unit"), cmp.Or(was.Unit, "no unit"))
	}
	if was.Clock != is.Clock {
		d.addChange(Fields, Changed, is.Means, was.Clock, is.Clock, "%s counts from %s (before: %s)", to, is.describeClock(), was.describeClock())
	}
	kindWas, presenceWas := d.from.describeField(was)
	kind, presence := d.to.describeField(is)
	switch {
	case len(was.Values) > 0 && len(is.Values) > 0:
		for _, value := range d.canon.Support {
			if before, now := was.Values[value.name], is.Values[value.name]; before != now {
				d.addChange(Fields, Renamed, is.Means, fmt.Sprintf("%q", before), fmt.Sprintf("%q", now), "%s: %q is called %q: %s", to, before, now, value.phrase)
			}
		}
	case kindWas != kind:
		d.addChange(Fields, Changed, is.Means, kindWas, kind, "%s holds %s (before: %s)", to, kind, kindWas)
	}
	if presenceWas != presence {
		d.addChange(Fields, Changed, is.Means, presenceWas, presence, "%s is %s (before: %s)", to, presence, presenceWas)
	}
	switch {
	case was.Note == is.Note:
	case is.Note == "":
		d.addChange(Fields, Changed, is.Means, was.Note, "", "%s: no longer %s", to, was.Note)
	case was.Note == "":
		d.addChange(Fields, Changed, is.Means, "", is.Note, "%s: %s", to, is.Note)
	default:
		d.addChange(Fields, Changed, is.Means, was.Note, is.Note, "%s: %s (before: %s)", to, is.Note, was.Note)
	}
}

func (f Field) describeClock() string {
	if strings.HasPrefix(f.Clock, "which ") {
		return "a time " + f.Clock
	}
	return cmp.Or(f.Clock, "no time")
}

func (d *diff) compareMetaKeys() {
	for _, meaning := range d.canon.MetaKeys {
		means := func(k MetaKey) bool { return k.Means == meaning.name }
		was, before := find(d.from.MetaKeys, means)
		is, now := find(d.to.MetaKeys, means)
		switch {
		case before && now && was.Key != is.Key:
			d.addChange(MetaKeys, Renamed, meaning.name, was.Key, is.Key, "%s is called %s: it %s", was.Key, is.Key, meaning.phrase)
		case before && !now:
			d.addChange(MetaKeys, Removed, meaning.name, was.Key, "", "%s is gone: it %s", was.Key, phraseFromDoc(was.Doc))
		case now && !before:
			d.addChange(MetaKeys, Added, meaning.name, "", is.Key, "%s is new: it %s", is.Key, phraseFromDoc(is.Doc))
		}
	}
}

// compareCapabilities compares the places in which one party declares its capabilities.
func (d *diff) compareCapabilities(party string, from, to map[string]string) {
	definition := strings.ToUpper(party[:1]) + party[1:] + "Capabilities"
	kind := func(s *Surface, pointer string) string {
		value, _, ok := s.lookupMember(definition + pointer)
		if !ok {
			return "object" // an extension, which the core's schema does not describe
		}
		return s.describeType(value, 0)
	}
	for _, meaning := range d.canon.Capabilities {
		was, before := from[meaning.name]
		is, now := to[meaning.name]
		oldPlace, newPlace := "capabilities"+joinPath(pointerSteps(was)), "capabilities"+joinPath(pointerSteps(is))
		switch {
		case before && now && was != is:
			d.addChange(Capabilities, Moved, meaning.name, oldPlace, newPlace, "the %s's %s has become %s: %s", party, oldPlace, newPlace, meaning.phrase)
		case before && !now:
			d.addChange(Capabilities, Removed, meaning.name, oldPlace, "", "the %s's %s is gone: %s", party, oldPlace, meaning.phrase)
		case now && !before:
			d.addChange(Capabilities, Added, meaning.name, "", newPlace, "the %s's %s is new: %s", party, newPlace, meaning.phrase)
		case before && now:
			if a, b := kind(d.from, was), kind(d.to, is); a != b {
				d.addChange(Capabilities, Changed, meaning.name, a, b, "the %s's %s is declared by a value of type %s (before: %s)", party, newPlace, b, a)
			}
		}
	}
}

// describeAnswer describes a refusal: "-32021 MissingClientCapability (HTTP 400)".
func (s *Surface) describeAnswer(r Refusal) string {
	if r.Code == "" {
		return r.Answer
	}
	return s.errorCode(r.Code).describe()
}

// describe returns the number, name and HTTP status of an error code.
func (c ErrorCode) describe() string {
	text := fmt.Sprintf("%d %s", c.Code, c.Name)
	if c.HTTPStatus != 0 {
		text += fmt.Sprintf(" (HTTP %d)", c.HTTPStatus)
	}
	return text
}

func (s *Surface) findRefusal(name string) (Refusal, bool) {
	return find(s.Refusals, func(r Refusal) bool { return r.Case == name })
}

func (d *diff) compareErrors() {
	for _, was := range d.from.ErrorCodes {
		if is := d.to.errorCode(was.Name); is.Code == 0 {
			d.addChange(Errors, Removed, "", fmt.Sprint(was.Code), "", "%d %s is gone: it %s", was.Code, was.Name, phraseFromDoc(was.Doc))
		} else if is.Code != was.Code {
			d.addChange(Errors, Moved, "", fmt.Sprint(was.Code), fmt.Sprint(is.Code), "%s has the code %d (before: %d)", is.Name, is.Code, was.Code)
		}
	}
	for _, is := range d.to.ErrorCodes {
		if d.from.errorCode(is.Name).Code == 0 {
			d.addChange(Errors, Added, "", "", fmt.Sprint(is.Code), "%s is new: it %s", is.describe(), phraseFromDoc(is.Doc))
		}
	}
	own := map[bool]string{true: "; the revision does not say, so this project chose it"}
	for _, c := range d.canon.Cases {
		was, before := d.from.findRefusal(c.name)
		is, now := d.to.findRefusal(c.name)
		oldAnswer, newAnswer := d.from.describeAnswer(was), d.to.describeAnswer(is)
		switch {
		case before && now && oldAnswer != newAnswer && was.Code == is.Code && d.from.errorCode(was.Code).Code == d.to.errorCode(is.Code).Code:
			d.addChange(Errors, Changed, c.name, oldAnswer, newAnswer, "%s: %s%s (before: %s)", c.phrase, newAnswer, own[is.Own], oldAnswer)
		case before && now && oldAnswer != newAnswer:
			d.addChange(Errors, Moved, c.name, oldAnswer, newAnswer, "%s: %s%s (before: %s)", c.phrase, newAnswer, own[is.Own], oldAnswer)
		case before && !now:
			d.addChange(Errors, Removed, c.name, oldAnswer, "", "%s: unspecified (before: %s)", c.phrase, oldAnswer)
		case now && !before:
			d.addChange(Errors, Added, c.name, "", newAnswer, "%s: %s%s", c.phrase, newAnswer, own[is.Own])
		}
	}
}
