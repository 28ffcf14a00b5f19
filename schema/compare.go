package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Kind is a way in which two schemas differ.
type Kind string

// The kinds of a difference.
const (
	Added   Kind = "added"   // only the second schema has it
	Removed Kind = "removed" // only the first schema has it
	Changed Kind = "changed" // both have it, with different content
)

// Difference is one place in which two schemas differ.
type Difference struct {
	// Pointer is the place as a JSON pointer, such as /$defs/Task/properties/ttl. If the second schema has the place
	// only by a reference, the pointer is that in the definition.
	Pointer string
	Kind    Kind
	// From and To are the contents as JSON without words. "" means that there is none.
	From, To string

	source string // the place in the first schema, through its references
}

// String describes the difference in one line.
func (d Difference) String() string {
	line := d.Pointer + " " + string(d.Kind) + " "
	if d.Kind == Changed {
		return line + shorten(d.From) + " -> " + shorten(d.To)
	}
	return line + shorten(d.From+d.To)
}

// shorten cuts a long value.
func shorten(text string) string {
	const longest = 120
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "..."
	}
	return text
}

// Compare lists the differences between two schemas, sorted by place. These do not count as
// differences:
//   - titles, descriptions, comments and examples, and the order of things;
//   - whether a schema is referred to or written out, and the name of a definition that is
//     otherwise the same;
//   - a constant and an enum of one value, anyOf of enums and one enum, anyOf of plain types and a
//     list of types, and keywords that are always true.
func Compare(from, to *Document) []Difference {
	return compareScope(from, to, func(string) ([]string, bool) { return []string{""}, true })
}

// Compare lists the differences between a surface and a schema file. It covers the definitions of the
// surface, and those of the file that are new and about tasks. See [Compare].
func (s *Surface) Compare(file *Document) []Difference {
	found := compareScope(&s.Document, file, func(name string) ([]string, bool) {
		parts, partly := s.Compared[name]
		if !partly {
			parts = []string{""}
		}
		_, known := s.Definition(name)
		definition, _ := file.Definition(name)
		return parts, known || definition.IsAboutTasks()
	})
	return slices.DeleteFunc(found, func(d Difference) bool {
		return slices.ContainsFunc(s.Patched, func(p Patch) bool {
			definition, _ := file.Definition(p.Definition)
			return d.Pointer == definitionPointer(p.Definition)+p.Pointer && compact(valueAt(definition.value, p.Pointer)) == string(p.Official)
		})
	})
}

// IsAboutTasks reports whether the name of a definition refers to tasks, or its method does.
func (d Definition) IsAboutTasks() bool {
	return strings.Contains(d.Name, "Task") || strings.HasPrefix(strings.TrimPrefix(d.Method(), "notifications/"), "tasks")
}

// Method returns the method of a message's definition, or "".
func (d Definition) Method() string {
	schemas := []any{d.value}
	if parts, ok := valueAt(d.value, "/allOf").([]any); ok {
		schemas = append(schemas, parts...)
	}
	for _, schema := range schemas {
		values, _ := simplify(valueAt(schema, "/properties/method"))["enum"].([]any)
		if len(values) == 1 {
			return fmt.Sprint(values[0])
		}
	}
	return ""
}

// compareScope compares the parts of the definitions that are in the scope.
func compareScope(from, to *Document, scope func(name string) (parts []string, ok bool)) []Difference {
	c := &comparison{from: from.valuesByName(), to: to.valuesByName(), seen: map[place]bool{}, reached: map[string]bool{}}
	var gone, added []string
	for _, name := range slices.Sorted(maps.Keys(c.from)) {
		parts, ok := scope(name)
		switch _, both := c.to[name]; {
		case !ok || len(parts) == 0:
		case !both:
			gone = append(gone, name)
		default:
			for _, part := range parts {
				c.comparePart(definitionPlace(name), part, c.from[name], c.to[name])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.to)) {
		if _, both := c.from[name]; both {
			continue
		}
		if _, ok := scope(name); ok {
			added = append(added, name)
		}
	}
	for _, name := range gone {
		i := slices.IndexFunc(added, func(other string) bool { return c.isRenamed(name, other) })
		if i >= 0 {
			added = slices.Delete(added, i, i+1)
		} else if !c.reached["from "+name] {
			c.add(definitionPlace(name), c.from[name], nil)
		}
	}
	for _, name := range added {
		if !c.reached["to "+name] {
			c.add(definitionPlace(name), nil, c.to[name])
		}
	}
	return c.sorted()
}

// comparison walks through two schemas side by side.
type comparison struct {
	from, to map[string]any // definitions
	seen     map[place]bool
	reached  map[string]bool // definitions that were compared where others refer to them
	found    []Difference
}

// sorted returns the differences by place. If the second schema repeats a definition that the first one refers to, a
// difference there is listed once, at the shortest place.
func (c *comparison) sorted() []Difference {
	content := func(d Difference) string { return string(d.Kind) + d.From + d.To }
	slices.SortFunc(c.found, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(content(a), content(b)), cmp.Compare(len(a.Pointer), len(b.Pointer)), cmp.Compare(a.Pointer, b.Pointer))
	})
	found := slices.CompactFunc(c.found, func(a, b Difference) bool { return a.source == b.source && content(a) == content(b) })
	slices.SortFunc(found, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(content(a), content(b)))
	})
	return found
}

// place is a place in both schemas, as JSON pointers.
type place struct{ from, to string }

// step returns the place of a member.
func (p place) step(name string) place {
	name = "/" + escapeStep.Replace(name)
	return place{p.from + name, p.to + name}
}

func definitionPlace(name string) place {
	return place{definitionPointer(name), definitionPointer(name)}
}

// isRenamed reports whether two definitions differ in nothing but their names.
func (c *comparison) isRenamed(from, to string) bool {
	trial := &comparison{from: c.from, to: c.to, seen: map[place]bool{}, reached: map[string]bool{}}
	trial.compare(place{}, c.from[from], c.to[to])
	return len(trial.found) == 0
}

// add adds a difference. nil means that a side has nothing.
func (c *comparison) add(at place, from, to any) {
	d := Difference{Pointer: at.to, Kind: Changed, source: at.from}
	if from == nil {
		d.Kind = Added
	} else {
		d.From = compact(from)
	}
	if to == nil {
		d.Kind = Removed
	} else {
		d.To = compact(to)
	}
	c.found = append(c.found, d)
}

// comparePart compares the place of two definitions that a JSON pointer names.
func (c *comparison) comparePart(at place, part string, from, to any) {
	from, to = valueAt(from, part), valueAt(to, part)
	above, keyword := path.Split(part)
	if part == "" || strings.HasSuffix(above, "/properties/") {
		c.compareOptional(place{at.from + part, at.to + part}, from, to)
		return
	}
	c.compareKeyword(at, keyword, from, to)
}

// compareOptional compares two schemas, either of which may be missing.
func (c *comparison) compareOptional(at place, from, to any) {
	switch {
	case from != nil && to != nil:
		c.compare(at, from, to)
	case from != nil || to != nil:
		c.add(at, from, to)
	}
}

func (c *comparison) compare(at place, from, to any) {
	was, is := refName(from), refName(to)
	if was != is {
		if was != "" {
			at.from = definitionPointer(was)
		}
		if is != "" {
			at.to = definitionPointer(is)
		}
		if c.seen[at] {
			return
		}
		c.seen[at] = true
		c.reached["from "+was], c.reached["to "+is] = true, true
		c.compare(at, resolve(from, c.from), resolve(to, c.to))
		return
	}
	left, right := simplify(from), simplify(to)
	delete(left, "$ref") // the definition is compared under its own name
	delete(right, "$ref")
	keywords := maps.Clone(left)
	maps.Copy(keywords, right)
	if len(shared(left["type"], right["type"])) == 0 && left["type"] != nil && right["type"] != nil {
		keywords = map[string]any{"type": nil} // the rest is of another kind of value
	}
	for _, keyword := range slices.Sorted(maps.Keys(keywords)) {
		c.compareKeyword(at, keyword, left[keyword], right[keyword])
	}
}

// compareKeyword compares the values of a keyword. nil means that a schema does not have it.
func (c *comparison) compareKeyword(at place, keyword string, from, to any) {
	at = at.step(keyword)
	switch keyword {
	case "properties", "patternProperties":
		left, _ := from.(map[string]any)
		right, _ := to.(map[string]any)
		names := maps.Clone(left)
		if names == nil {
			names = map[string]any{}
		}
		maps.Copy(names, right)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			c.compareOptional(at.step(name), left[name], right[name])
		}
	case "items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else":
		c.compareOptional(at, from, to)
	case "anyOf", "oneOf", "allOf":
		c.compareMembers(at, listOf(from), listOf(to))
	case "required", "enum", "type":
		c.compareValues(at, listOf(from), listOf(to))
	default:
		if compact(from) != compact(to) {
			c.add(at, from, to)
		}
	}
}

// compareValues compares two lists of values, whose order does not count.
func (c *comparison) compareValues(at place, from, to []any) {
	lacks := func(list []any, value any) bool {
		return !slices.ContainsFunc(list, func(other any) bool { return compact(other) == compact(value) })
	}
	if len(from) == 1 && len(to) == 1 && lacks(to, from[0]) {
		c.add(at, from[0], to[0])
		return
	}
	for _, value := range from {
		if lacks(to, value) {
			c.add(at, value, nil)
		}
	}
	for _, value := range to {
		if lacks(from, value) {
			c.add(at, nil, value)
		}
	}
}

// shared returns the types that two lists share.
func shared(from, to any) []any {
	return slices.DeleteFunc(slices.Clone(listOf(from)), func(t any) bool { return !slices.Contains(listOf(to), t) })
}

// compareMembers compares the members of an anyOf, oneOf or allOf. It pairs those with the same label,
// then the others in their order.
func (c *comparison) compareMembers(at place, from, to []any) {
	paired := make([]bool, len(to))
	pair := func(member any, fits func(other any) bool) bool {
		for i, other := range to {
			if !paired[i] && fits(other) {
				paired[i] = true
				c.compare(at.step(strconv.Itoa(i)), member, other)
				return true
			}
		}
		return false
	}
	var rest []any
	for _, member := range from {
		label := labelOf(member, c.from)
		if !pair(member, func(other any) bool { return labelOf(other, c.to) == label }) {
			rest = append(rest, member)
		}
	}
	for _, member := range rest {
		if !pair(member, func(any) bool { return true }) {
			c.add(at, member, nil)
		}
	}
	for i, member := range to {
		if !paired[i] {
			c.add(at.step(strconv.Itoa(i)), nil, member)
		}
	}
}

// labelOf returns a label that sets a member of an anyOf apart from the others: its constant properties, or else its
// type.
func labelOf(schema any, definitions map[string]any) string {
	for refName(schema) != "" { // Parse refuses cycles
		schema = resolve(schema, definitions)
	}
	form := simplify(schema)
	constants := map[string]any{}
	properties, _ := form["properties"].(map[string]any)
	for name, property := range properties {
		if values, _ := simplify(property)["enum"].([]any); len(values) == 1 {
			constants[name] = values[0]
		}
	}
	if len(constants) > 0 {
		return compact(constants)
	}
	return compact(form["type"])
}

// resolve returns the definition that a schema refers to, with the keywords beside the reference.
func resolve(schema any, definitions map[string]any) any {
	name := refName(schema)
	if name == "" {
		return schema
	}
	object, _ := schema.(map[string]any)
	target, ok := definitions[name].(map[string]any)
	if !ok {
		return definitions[name]
	}
	beside := maps.Clone(object)
	delete(beside, "$ref")
	out := maps.Clone(target)
	maps.Copy(out, beside)
	return out
}

// simplify returns the keywords of a schema in the form that [Compare] compares. It does not change
// the schemas inside.
func simplify(schema any) map[string]any {
	object, _ := schema.(map[string]any)
	out := map[string]any{}
	if schema == false {
		out["not"] = map[string]any{}
	}
	for keyword, value := range object {
		switch keyword {
		case "const":
			keyword, value = "enum", []any{value}
		case "items", "additionalProperties":
			if len(simplify(value)) == 0 {
				continue
			}
		case "propertyNames":
			if compact(value) == `{"type":"string"}` {
				continue
			}
		}
		out[keyword] = value
	}
	if members, ok := out["anyOf"].([]any); ok && out["type"] == nil && out["enum"] == nil {
		if merged := mergeAlternatives(members); merged != nil {
			delete(out, "anyOf")
			maps.Copy(out, merged)
		}
	}
	if out["enum"] != nil {
		delete(out, "type") // the values have it
	}
	return out
}

// mergeAlternatives returns one schema for the members of an anyOf: one enum, or a list of types, at
// most one of which has more keywords. It returns nil if the members have other forms.
func mergeAlternatives(members []any) map[string]any {
	merged := map[string]any{}
	var values, types []any
	for _, member := range members {
		form := simplify(member)
		values, types = append(values, listOf(form["enum"])...), append(types, listOf(form["type"])...)
		for keyword, value := range form {
			switch keyword {
			case "enum", "type":
			case "minimum", "maximum":
				if merged[keyword] != nil {
					return nil
				}
				merged[keyword] = value
			default:
				return nil
			}
		}
		if form["enum"] == nil && form["type"] == nil {
			return nil
		}
	}
	switch {
	case len(types) == 0 && len(merged) == 0:
		return map[string]any{"enum": values}
	case len(values) == 0:
		merged["type"] = types
		return merged
	}
	return nil
}

// listOf returns a list, or a value as a list of one, or nil for nil.
func listOf(value any) []any {
	if list, ok := value.([]any); ok || value == nil {
		return list
	}
	return []any{value}
}

// valueAt returns the value that a JSON pointer names, or nil. It does not step into lists.
func valueAt(value any, pointer string) any {
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		object, _ := value.(map[string]any)
		value = object[unescapeStep.Replace(step)]
	}
	return value
}

func definitionPointer(name string) string { return "/$defs/" + escapeStep.Replace(name) }

var (
	escapeStep   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapeStep = strings.NewReplacer("~1", "/", "~0", "~")
)

// compact returns a value as JSON with sorted members.
func compact(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value) // decoded JSON always encodes
	}
	return strings.TrimSpace(out.String())
}
