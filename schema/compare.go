package schema

import (
	"fmt"
	"slices"
	"strings"
)

// Kind says how two schemas differ.
type Kind string

// The kinds of a difference.
const (
	// Added means that only the official schema has it.
	Added Kind = "added"
	// Removed means that only our schema has it.
	Removed Kind = "removed"
	// Changed means that both have it, with different content.
	Changed Kind = "changed"
)

// Aspect says what differs. Any other keyword of JSON Schema is its own aspect.
type Aspect string

// The aspects of a difference.
const (
	// AspectDefinition is a whole definition.
	AspectDefinition Aspect = "definition"
	// AspectMember is a property, the items of an array, or the additional properties of an object.
	AspectMember Aspect = "member"
	// AspectPresence is whether a property is "required" or "optional".
	AspectPresence Aspect = "presence"
	// AspectAlternative is a member of an anyOf or oneOf.
	AspectAlternative Aspect = "alternative"
	AspectType        Aspect = "type"
	AspectEnum        Aspect = "enum"
)

// Difference is one structural difference between a surface and an official schema.
type Difference struct {
	// Path is the place, such as "Task.lastUpdatedAt",
	// "ListTasksResult.tasks[]" or "DetailedTask(status=failed).error".
	Path string
	// Definition is the definition that Path begins with.
	Definition string
	// Member is the last property of Path, if the difference is the property itself or its
	// presence.
	Member string
	Aspect Aspect
	Kind   Kind
	// Ours and Official are the content on both sides as canonical JSON. "" means that there is
	// none.
	Ours, Official string
}

// String describes the difference in one line.
func (d Difference) String() string {
	switch d.Kind {
	case Added:
		return fmt.Sprintf("%s: new in the official schema: %s", d.Path, d.Official)
	case Removed:
		return fmt.Sprintf("%s: no longer in the official schema: %s", d.Path, d.Ours)
	}
	return fmt.Sprintf("%s: changed from %s to %s", d.Path, d.Ours, d.Official)
}

// Compare lists the structural differences between a surface and an official schema, sorted by
// path. [Fingerprint] describes what counts as the same.
//
// It covers the surface's definitions. It also reports official definitions with "Task" in their
// name that the surface does not have. A difference inside a definition that several others refer
// to is listed once, under the name of that definition.
func Compare(ours *Surface, official *Document) []Difference {
	var c comparison
	mine, theirs := (&Document{Definitions: ours.Definitions}).valuesByName(), ours.applyPatches(official.valuesByName())
	for _, definition := range ours.Definitions {
		if ours.isNotCompared(definition.Name) {
			continue
		}
		c.definition = definition.Name
		left, _ := normalForm(ours, mine, definition.Name)
		right, ok := normalForm(ours, theirs, definition.Name)
		if !ok {
			c.addDifference(definition.Name, AspectDefinition, left, nil)
			continue
		}
		c.compareNormalForms(definition.Name, left, right)
	}
	for _, definition := range official.Definitions {
		if _, ok := mine[definition.Name]; !ok && strings.Contains(definition.Name, "Task") {
			form, _ := normalForm(ours, theirs, definition.Name)
			c.definition = definition.Name
			c.addDifference(definition.Name, AspectDefinition, nil, form)
		}
	}
	slices.SortStableFunc(c.found, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	return c.found
}

// isNotCompared reports whether a definition is our own or is skipped.
func (s *Surface) isNotCompared(definition string) bool {
	parts, listed := s.Compared[definition]
	return listed && len(parts) == 0 || s.skipped[definition]
}

type comparison struct {
	found      []Difference
	definition string // the definition being compared
}

// addDifference records a difference. nil means that a side has nothing.
func (c *comparison) addDifference(path string, aspect Aspect, ours, official any) *Difference {
	d := Difference{Path: path, Definition: c.definition, Aspect: aspect, Kind: Changed}
	if isNil(ours) {
		d.Kind = Added
	} else {
		d.Ours = canonicalJSON(ours)
	}
	if isNil(official) {
		d.Kind = Removed
	} else {
		d.Official = canonicalJSON(official)
	}
	c.found = append(c.found, d)
	return &c.found[len(c.found)-1]
}

func isNil(value any) bool {
	if form, ok := value.(map[string]any); ok {
		return form == nil
	}
	return value == nil
}

// compareMember compares two schemas inside a definition. name is the name of the property, if they
// are one.
func (c *comparison) compareMember(path, name string, ours, official any) {
	left, ok1 := ours.(map[string]any)
	right, ok2 := official.(map[string]any)
	if !ok1 || !ok2 {
		if canonicalJSON(ours) != canonicalJSON(official) {
			c.addDifference(path, AspectMember, ours, official).Member = name
		}
		return
	}
	if left[origin] != nil && left[origin] == right[origin] {
		return // compared under its own name
	}
	c.compareNormalForms(path, left, right)
}

func (c *comparison) compareNormalForms(path string, ours, official map[string]any) {
	keys := append(sortedKeys(ours), sortedKeys(official)...)
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		left, right := ours[key], official[key]
		switch key {
		case origin:
		case "properties":
			c.compareProperties(path, left, right)
		case "required":
			c.compareRequired(path, left, right)
		case "items":
			c.compareMember(path+"[]", "", left, right)
		case "additionalProperties":
			c.compareMember(path+"{}", "", left, right)
		case "anyOf", "oneOf":
			c.compareAlternatives(path, left, right)
		default:
			if canonicalJSON(left) != canonicalJSON(right) {
				c.addDifference(path+" "+key, Aspect(key), left, right)
			}
		}
	}
}

func (c *comparison) compareProperties(path string, ours, official any) {
	left, _ := ours.(map[string]any)
	right, _ := official.(map[string]any)
	names := append(sortedKeys(left), sortedKeys(right)...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		c.compareMember(path+"."+name, name, left[name], right[name])
	}
}

func (c *comparison) compareRequired(path string, ours, official any) {
	left, _ := ours.([]any)
	right, _ := official.([]any)
	for _, name := range sortedValues(append(slices.Clone(left), right...)) {
		was, is := slices.Contains(left, name), slices.Contains(right, name)
		if was != is {
			text := map[bool]string{true: "required", false: "optional"}
			c.addDifference(fmt.Sprintf("%s.%v", path, name), AspectPresence, text[was], text[is]).Member = fmt.Sprint(name)
		}
	}
}

// compareAlternatives matches the members of an anyOf: first equal ones, then those with the same
// constant in the same property.
func (c *comparison) compareAlternatives(path string, ours, official any) {
	left, _ := ours.([]any)
	right, _ := official.([]any)
	without := func(list, other []any) []any {
		return slices.DeleteFunc(slices.Clone(list), func(value any) bool {
			return slices.ContainsFunc(other, func(o any) bool { return canonicalJSON(o) == canonicalJSON(value) })
		})
	}
	left, right = without(left, right), without(right, left)
	for _, member := range left {
		tag := discriminator(member)
		i := slices.IndexFunc(right, func(other any) bool { return tag != "" && discriminator(other) == tag })
		if i < 0 {
			c.addDifference(path+tag+" alternative", AspectAlternative, member, nil)
			continue
		}
		c.compareMember(path+tag, "", member, right[i])
		right = slices.Delete(right, i, i+1)
	}
	for _, member := range right {
		c.addDifference(path+discriminator(member)+" alternative", AspectAlternative, nil, member)
	}
}

// discriminator describes the constant properties of an alternative: "(status=failed)".
func discriminator(value any) string {
	form, _ := value.(map[string]any)
	if name, ok := form["$ref"].(string); ok {
		return "(" + name + ")"
	}
	properties, _ := form["properties"].(map[string]any)
	var tags []string
	for _, name := range sortedKeys(properties) {
		property, _ := properties[name].(map[string]any)
		if values, _ := property["enum"].([]any); len(values) == 1 {
			tags = append(tags, fmt.Sprintf("%s=%v", name, values[0]))
		}
	}
	if len(tags) == 0 {
		return ""
	}
	return "(" + strings.Join(tags, ",") + ")"
}
