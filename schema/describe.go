package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// This file writes texts about revisions for a terminal.

// width is the maximum length of a line.
const width = 100

// text collects lines.
type text struct{ strings.Builder }

// addParagraph adds a paragraph and wraps its lines. The first line starts with lead, the others
// with as many spaces.
func (t *text) addParagraph(lead, format string, args ...any) {
	var line strings.Builder
	line.WriteString(lead)
	indent, empty := strings.Repeat(" ", len(lead)), true
	for _, word := range strings.Fields(fmt.Sprintf(format, args...)) {
		switch {
		case empty:
		case line.Len()+1+len(word) > width:
			t.WriteString(line.String() + "\n")
			line.Reset()
			line.WriteString(indent)
		default:
			line.WriteString(" ")
		}
		line.WriteString(word)
		empty = false
	}
	t.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

func (t *text) addHeading(title string) { t.WriteString("\n" + title + "\n") }

// List describes each known revision in one line: its name, its standing, its protocol version on
// the wire, and what it is.
func List() (string, error) {
	var rows [][3]string
	var about []string
	lengths := [3]int{}
	for _, revision := range Revisions() {
		s, err := Load(revision)
		if err != nil {
			return "", err
		}
		row := [3]string{s.Revision, string(s.Standing), cmp.Or(s.ProtocolVersion, "-")}
		for i, cell := range row {
			lengths[i] = max(lengths[i], len(cell))
		}
		rows, about = append(rows, row), append(about, s.About)
	}
	var out strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&out, "%-*s  %-*s  %-*s  %s\n", lengths[0], row[0], lengths[1], row[1], lengths[2], row[2], about[i])
	}
	return out.String(), nil
}

// sectionTitles are the headings of the sections.
var sectionTitles = []struct {
	section Section
	title   string
}{
	{Aspects, "How tasks work"}, {States, "States"}, {Methods, "Methods"}, {Notifications, "Notifications"},
	{Fields, "Fields"}, {MetaKeys, "Keys of _meta"}, {Capabilities, "Capabilities"}, {Errors, "Errors"},
	{Headers, "HTTP headers"}, {TaskParams, "Params that may ask for a task, in the whole schema"},
	{Definitions, "Definitions of the schema"}, {Mended, "Mistakes of the official schemas"},
}

// Changes describes the result of Diff.
func Changes(from, to *Surface, changes []Change) (string, error) {
	c, err := loadVocabulary()
	if err != nil {
		return "", err
	}
	var t text
	t.addParagraph("", "From %s to %s", from.Revision, to.Revision)
	t.WriteString("\n")
	for _, s := range []*Surface{from, to} {
		t.addParagraph("  ", "%s (%s, %s): %s", s.Revision, s.Standing, s.Date, s.About)
	}
	if len(changes) == 0 {
		t.addHeading("There are no known differences in tasks.")
	}
	for _, part := range sectionTitles {
		of := slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return c.Section != part.section })
		if len(of) == 0 {
			continue
		}
		t.addHeading(part.title)
		switch part.section {
		case Aspects:
			for _, change := range of {
				t.addParagraph("  ", "%s", c.Aspects.phrase(change.Means))
				t.addParagraph("    before: ", "%s", cmp.Or(change.From, "unspecified"))
				t.addParagraph("    now:    ", "%s", cmp.Or(change.To, "unspecified"))
			}
		case TaskParams, Definitions:
			names := map[Kind][]string{}
			for _, change := range of {
				names[change.Kind] = append(names[change.Kind], change.From+change.To)
			}
			for _, kind := range []Kind{Removed, Added} {
				if list := names[kind]; len(list) > 0 {
					t.addParagraph("  - ", "%s: %s", map[Kind]string{Removed: "gone", Added: "new"}[kind], strings.Join(list, ", "))
				}
			}
		default:
			for _, change := range of {
				t.addParagraph("  - ", "%s", change.Text)
			}
		}
	}
	return t.String(), nil
}

// Show describes everything known about a revision.
func Show(s *Surface) (string, error) {
	c, err := loadVocabulary()
	if err != nil {
		return "", err
	}
	var t text
	t.addParagraph("", "%s: %s", s.Revision, s.About)
	t.WriteString("\n")
	t.addParagraph("  standing:         ", "%s", s.Provenance.Standing)
	t.addParagraph("  protocol version: ", "%s", cmp.Or(s.ProtocolVersion, "none"))
	for _, source := range s.Provenance.Sources {
		t.addParagraph("  schema:           ", "%s %s at %s", source.Repository, source.Path, source.Commit)
	}
	for _, document := range s.Provenance.Documents {
		t.addParagraph("  text:             ", "%s %s at %s", document.Repository, document.Path, document.Commit)
	}

	t.addHeading("How tasks work")
	for _, aspect := range c.Aspects {
		if answer := s.Aspects[aspect.name]; answer != "" {
			t.addParagraph("  ", "%s: %s", aspect.phrase, answer)
		}
	}
	t.addHeading("States")
	for _, status := range s.Statuses {
		switch {
		case status.Terminal:
			t.addParagraph("  ", "%s (final): %s", status.Name, phraseFromDoc(status.Doc))
		default:
			t.addParagraph("  ", "%s -> %s: %s", status.Name, strings.Join(status.Next, ", "), phraseFromDoc(status.Doc))
		}
	}
	t.addHeading("Methods")
	for _, m := range s.Methods {
		t.addParagraph("  ", "%s, %s: %s", m.Name, m.Direction.describe(), phraseFromDoc(m.Doc))
		s.listMembers(&t, "params", m.Params)
		s.listMembers(&t, "result", m.Result)
	}
	t.addHeading("Notifications")
	for _, n := range s.Notifications {
		t.addParagraph("  ", "%s, %s: %s", n.Name, n.Direction.describe(), phraseFromDoc(n.Doc))
		s.listMembers(&t, "params", n.Params)
	}
	t.addHeading("Fields")
	for _, f := range s.Fields {
		if f.In != "tool" {
			s.showField(&t, c, f)
		}
	}
	t.addHeading("Fields of a tool")
	before := t.Len()
	for _, f := range s.Fields {
		if f.In == "tool" {
			s.showField(&t, c, f)
		}
	}
	if t.Len() == before {
		t.addParagraph("  ", "none")
	}
	if len(s.MetaKeys) > 0 {
		t.addHeading("Keys of _meta")
	}
	for _, key := range s.MetaKeys {
		t.addParagraph("  ", "%s: %s", key.Key, phraseFromDoc(key.Doc))
	}
	t.addHeading("Capabilities")
	for _, capability := range c.Capabilities {
		for _, party := range []struct {
			name   string
			places map[string]string
		}{{"server", s.Capabilities.Server}, {"client", s.Capabilities.Client}} {
			if place := party.places[capability.name]; place != "" {
				t.addParagraph("  ", "%s: capabilities%s: %s", party.name, joinPath(pointerSteps(place)), capability.phrase)
			}
		}
	}
	t.addParagraph("  ", "a generated server declares %s", s.ServerCapabilities)
	t.addHeading("Error codes")
	for _, code := range s.ErrorCodes {
		t.addParagraph("  ", "%s: %s", code.describe(), phraseFromDoc(code.Doc))
	}
	t.addHeading("What is refused")
	for _, r := range s.Refusals {
		own := ""
		if r.Own {
			own = "; the revision does not say, so this project chose it"
		}
		t.addParagraph("  ", "%s: %s%s", c.Cases.phrase(r.Case), s.describeAnswer(r), own)
	}
	if len(s.Headers) > 0 {
		t.addHeading("HTTP headers")
	}
	for _, h := range s.Headers {
		t.addParagraph("  ", "%s: %s", h.Name, phraseFromDoc(h.Doc))
	}
	if len(s.Patched) > 0 {
		t.addHeading("Mistakes of the official schema")
	}
	for _, p := range s.Patched {
		t.addParagraph("  ", "%s is %s there. %s", p.describePlace(), p.Official, p.Reason)
	}
	return t.String(), nil
}

func (s *Surface) showField(t *text, c canon, f Field) {
	kind, presence := s.describeField(f)
	t.addParagraph("  ", "%s: %s (%s, %s)%s", f.Place(), c.Fields.phrase(f.Means), kind, presence, describeNotes(f))
}

// listMembers lists the members of a message, required ones first.
func (s *Surface) listMembers(t *text, what, definition string) {
	d, ok := s.Definition(definition)
	if !ok {
		return
	}
	root, _ := d.value.(map[string]any)
	if what == "params" {
		s.visitProperty(root, "params", 0, func(inner map[string]any, _ bool) { root = inner })
	}
	found := map[string]string{}
	required := map[string]bool{}
	s.visitMembers(root, 0, func(name string, member map[string]any, needed bool) {
		kind := s.describeType(member, 0)
		if name == "_meta" && kind == "object" && !s.hasTaskKeys(member) {
			return
		}
		found[name] = kind // a later part of an allOf narrows an earlier one
		required[name] = required[name] || needed
	})
	var list []string
	for _, needed := range []bool{true, false} {
		for _, name := range sortedKeys(found) {
			if required[name] == needed {
				list = append(list, fmt.Sprintf("%s (%s%s)", name, found[name], map[bool]string{false: ", optional"}[needed]))
			}
		}
	}
	t.addParagraph("    "+what+": ", "%s", cmp.Or(strings.Join(list, ", "), "none of its own"))
}

// hasTaskKeys reports whether a _meta has keys about tasks.
func (s *Surface) hasTaskKeys(meta map[string]any) bool {
	properties, _ := meta["properties"].(map[string]any)
	return len(properties) > 1 || len(properties) == 1 && properties["progressToken"] == nil
}

// visitMembers calls each for every member of a schema, including its references and parts. A
// member of alternatives is required if all of them require it.
func (s *Surface) visitMembers(value map[string]any, depth int, each func(name string, member map[string]any, required bool)) {
	const deepest = 20
	if depth > deepest {
		return
	}
	if _, target := s.target(value); target != nil {
		s.visitMembers(target, depth+1, each)
	}
	list, _ := stringList(value["required"])
	properties, _ := value["properties"].(map[string]any)
	for _, name := range sortedKeys(properties) {
		inner, _ := properties[name].(map[string]any)
		each(name, inner, slices.Contains(list, name))
	}
	parts, _ := value["allOf"].([]any)
	for _, part := range parts {
		inner, _ := part.(map[string]any)
		s.visitMembers(inner, depth+1, each)
	}
	alternatives, _ := value["anyOf"].([]any)
	members, needed := map[string][]any{}, map[string]int{}
	for _, alternative := range alternatives {
		inner, _ := alternative.(map[string]any)
		s.visitMembers(inner, depth+1, func(name string, member map[string]any, required bool) {
			members[name] = append(members[name], member)
			if required {
				needed[name]++
			}
		})
	}
	for _, name := range sortedKeys(members) {
		each(name, map[string]any{"anyOf": members[name]}, needed[name] == len(alternatives))
	}
}
