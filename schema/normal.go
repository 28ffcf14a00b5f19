package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// origin marks a schema in a normal form that was a plain reference.
const origin = "$origin"

// maxNodes limits how much of a definition is inlined, because nested references could grow without
// end. The rest stays references.
const maxNodes = 5_000

// annotations are the keywords that do not restrict values.
var annotations = []string{"title", "description", "$schema", "$id", "$comment", "examples"}

// Fingerprint returns the SHA-256 (hex) of the normal form of a definition, limited to the parts
// that the surface compares. ok is false if the document does not have the definition or the
// surface compares none of it.
//
// Two schemas with the same meaning have the same normal form, as far as these rules go:
//   - Titles, descriptions, $schema, $id, $comment and examples are dropped. The order of members,
//     required, enum, type, anyOf and oneOf does not count.
//   - A reference to a definition that the surface compares as a whole is inlined. Other
//     references, and those inside themselves, stay references by name.
//   - allOf is merged into one schema if that is exact: types and enums intersect, required and
//     properties unite. What cannot be merged stays in allOf, sorted.
//   - const becomes an enum of one value. anyOf of enums becomes one enum. anyOf of one schema
//     becomes that schema. anyOf of plain types, at most one of them with numeric bounds, becomes a
//     list of types. A type that an enum implies is dropped.
//   - Keywords that are always true are dropped: additionalProperties and items with true or {},
//     propertyNames with type string, and empty properties and required. {"not": {}} means false.
func Fingerprint(surface *Surface, document *Document, definition string) (fingerprint string, ok bool) {
	form, ok := normalForm(surface, surface.applyPatches(document.valuesByName()), definition)
	if !ok || surface.isNotCompared(definition) {
		return "", false
	}
	sum := sha256.Sum256([]byte(canonicalJSON(form)))
	return hex.EncodeToString(sum[:]), true
}

// normalForm returns the normal form of the parts of a definition that the surface compares.
func normalForm(surface *Surface, definitions map[string]any, name string) (map[string]any, bool) {
	value, ok := definitions[name]
	if !ok {
		return nil, false
	}
	n := &normalizer{definitions: definitions, inline: map[string]bool{}, left: maxNodes}
	for _, d := range surface.Definitions {
		n.inline[d.Name] = surface.Compared[d.Name] == nil
	}
	form := n.normalize(value, []string{name})
	if parts := surface.Compared[name]; parts != nil {
		form = selectParts(form, parts)
	}
	return form, true
}

type normalizer struct {
	definitions map[string]any
	inline      map[string]bool
	left        int // the number of nodes that may still be inlined
}

// normalize returns a new normal form. within lists the definitions being inlined.
func (n *normalizer) normalize(value any, within []string) map[string]any {
	n.left--
	object, ok := value.(map[string]any)
	if !ok {
		if value == false {
			return map[string]any{"not": map[string]any{}}
		}
		return map[string]any{}
	}
	out := map[string]any{}
	var conjuncts []map[string]any
	for _, keyword := range sortedKeys(object) { // sorted, so that the limit always cuts at the same place
		value := object[keyword]
		switch keyword {
		case "$ref":
			conjuncts = append(conjuncts, n.normalizeReference(value, within))
		case "allOf":
			for _, member := range value.([]any) {
				conjuncts = append(conjuncts, n.normalize(member, within))
			}
		case "anyOf":
			conjuncts = append(conjuncts, mergeAlternatives(n.normalizeAll(value, within)))
		case "oneOf":
			out[keyword] = sortedForms(n.normalizeAll(value, within))
		case "properties", "patternProperties":
			members := map[string]any{}
			for _, name := range sortedKeys(value.(map[string]any)) {
				members[name] = n.normalize(value.(map[string]any)[name], within)
			}
			if len(members) > 0 {
				out[keyword] = members
			}
		case "items", "additionalProperties", "contains":
			if form := n.normalize(value, within); !isTrivial(form) {
				out[keyword] = form
			}
		case "propertyNames":
			if form := n.normalize(value, within); !isTrivial(form) && canonicalJSON(form) != `{"type":"string"}` {
				out[keyword] = form
			}
		case "not", "if", "then", "else":
			out[keyword] = n.normalize(value, within)
		case "required":
			if list := sortedValues(value.([]any)); len(list) > 0 {
				out[keyword] = list
			}
		case "type":
			list, ok := value.([]any)
			if !ok {
				list = []any{value}
			}
			out[keyword] = typeValue(sortedValues(list))
		case "const":
			out["enum"] = []any{value}
		case "enum":
			out[keyword] = sortedValues(value.([]any))
		default:
			if !slices.Contains(annotations, keyword) {
				out[keyword] = value
			}
		}
	}
	dropImpliedType(out)
	if len(out) == 0 && len(conjuncts) == 1 {
		return conjuncts[0]
	}
	slices.SortFunc(conjuncts, compareForms)
	for _, conjunct := range conjuncts {
		out = mergeForms(out, conjunct)
	}
	return out
}

func (n *normalizer) normalizeAll(value any, within []string) []map[string]any {
	var forms []map[string]any
	for _, member := range value.([]any) {
		forms = append(forms, n.normalize(member, within))
	}
	return forms
}

func (n *normalizer) normalizeReference(value any, within []string) map[string]any {
	name, _ := refName(value.(string))
	if !n.inline[name] || slices.Contains(within, name) || n.left <= 0 {
		return map[string]any{"$ref": name}
	}
	form := n.normalize(n.definitions[name], append(slices.Clone(within), name))
	form[origin] = name
	return form
}

// mergeAlternatives merges alternatives if one schema can express them.
func mergeAlternatives(forms []map[string]any) map[string]any {
	if len(forms) == 1 {
		return forms[0]
	}
	var values, types []any
	bounds := map[string]any{}
	enums, plain := true, true
	for _, form := range forms {
		keys := sortedKeys(form)
		keys = slices.DeleteFunc(keys, func(k string) bool { return k == origin })
		if slices.Equal(keys, []string{"enum"}) {
			values = append(values, form["enum"].([]any)...)
		} else {
			enums = false
		}
		list := typeList(form["type"])
		if len(list) == 0 {
			plain = false
		}
		types = append(types, list...)
		for _, key := range keys {
			switch key {
			case "type":
			case "minimum", "maximum":
				// Bounds only restrict numbers, so they can be combined with other types.
				if _, twice := bounds[key]; twice || !slices.Contains(list, any("integer")) {
					plain = false
				}
				bounds[key] = form[key]
			default:
				plain = false
			}
		}
	}
	numbers := 0
	for _, t := range types {
		if t == "integer" || t == "number" {
			numbers++
		}
	}
	switch {
	case enums:
		return map[string]any{"enum": sortedValues(values)}
	case plain && (len(bounds) == 0 || numbers == 1):
		bounds["type"] = typeValue(sortedValues(types))
		return bounds
	}
	return map[string]any{"anyOf": sortedForms(forms)}
}

// mergeForms returns the conjunction of two normal forms. It may modify both.
func mergeForms(a, b map[string]any) map[string]any {
	delete(a, origin)
	delete(b, origin)
	if a["additionalProperties"] != nil && b["properties"] != nil ||
		b["additionalProperties"] != nil && a["properties"] != nil {
		return addConjunct(a, b) // additionalProperties refers only to the properties beside it
	}
	rest := map[string]any{}
	for _, key := range sortedKeys(b) {
		left, both := a[key]
		right := b[key]
		if !both {
			a[key] = right
			continue
		}
		if canonicalJSON(left) == canonicalJSON(right) {
			continue
		}
		switch key {
		case "required":
			a[key] = sortedValues(append(slices.Clone(left.([]any)), right.([]any)...))
		case "properties":
			properties := left.(map[string]any)
			for name, member := range right.(map[string]any) {
				if other, ok := properties[name].(map[string]any); ok {
					member = mergeForms(other, member.(map[string]any))
				}
				properties[name] = member
			}
		case "items", "additionalProperties":
			a[key] = mergeForms(left.(map[string]any), right.(map[string]any))
		case "type":
			if common := intersectValues(typeList(left), typeList(right)); len(common) > 0 {
				a[key] = typeValue(common)
			} else {
				rest[key] = right
			}
		case "enum":
			if common := intersectValues(left.([]any), right.([]any)); len(common) > 0 {
				a[key] = common
			} else {
				rest[key] = right
			}
		case "allOf":
			a[key] = sortedValues(append(slices.Clone(left.([]any)), right.([]any)...))
		default:
			rest[key] = right
		}
	}
	dropImpliedType(a)
	if len(rest) > 0 {
		return addConjunct(a, rest)
	}
	return a
}

// addConjunct adds b to the allOf of a.
func addConjunct(a, b map[string]any) map[string]any {
	list, _ := a["allOf"].([]any)
	a["allOf"] = sortedValues(append(slices.Clone(list), b))
	return a
}

// dropImpliedType drops a type that every value of the enum has.
func dropImpliedType(form map[string]any) {
	values, ok := form["enum"].([]any)
	if !ok {
		return
	}
	types := typeList(form["type"])
	for _, value := range values {
		implied := false
		switch value := value.(type) {
		case string:
			implied = slices.Contains(types, any("string"))
		case bool:
			implied = slices.Contains(types, any("boolean"))
		case nil:
			implied = slices.Contains(types, any("null"))
		case json.Number:
			whole := !strings.ContainsAny(value.String(), ".eE")
			implied = slices.Contains(types, any("number")) || whole && slices.Contains(types, any("integer"))
		}
		if !implied {
			return
		}
	}
	delete(form, "type")
}

// selectParts keeps the parts of a normal form that the JSON pointers name.
func selectParts(form map[string]any, pointers []string) map[string]any {
	out := map[string]any{}
	for _, pointer := range pointers {
		from, to := form, out
		steps := pointerSteps(pointer)
		for i, step := range steps {
			value, ok := from[step]
			if !ok {
				break
			}
			next, isObject := value.(map[string]any)
			if i == len(steps)-1 || !isObject {
				to[step] = value
				break
			}
			inner, ok := to[step].(map[string]any)
			if !ok {
				inner = map[string]any{}
				to[step] = inner
			}
			from, to = next, inner
		}
	}
	return out
}

func isTrivial(form map[string]any) bool {
	return len(form) == 0 || len(form) == 1 && form[origin] != nil
}

func typeList(value any) []any {
	switch value := value.(type) {
	case []any:
		return value
	case nil:
		return nil
	}
	return []any{value}
}

func typeValue(list []any) any {
	if len(list) == 1 {
		return list[0]
	}
	return list
}

func intersectValues(a, b []any) []any {
	var common []any
	for _, value := range a {
		if slices.ContainsFunc(b, func(other any) bool { return canonicalJSON(other) == canonicalJSON(value) }) {
			common = append(common, value)
		}
	}
	return common
}

// sortedValues sorts by canonical text and drops duplicates.
func sortedValues(list []any) []any {
	out := slices.Clone(list)
	slices.SortFunc(out, func(a, b any) int { return strings.Compare(canonicalJSON(a), canonicalJSON(b)) })
	return slices.CompactFunc(out, func(a, b any) bool { return canonicalJSON(a) == canonicalJSON(b) })
}

func sortedForms(forms []map[string]any) []any {
	list := make([]any, len(forms))
	for i, form := range forms {
		list[i] = form
	}
	return sortedValues(list)
}

func compareForms(a, b map[string]any) int {
	return strings.Compare(canonicalJSON(a), canonicalJSON(b))
}

// canonicalJSON returns the text of a normal form without reference marks.
func canonicalJSON(value any) string {
	text, err := json.Marshal(removeOrigin(value))
	if err != nil {
		return fmt.Sprint(value) // decoded JSON always encodes
	}
	return string(text)
}

func removeOrigin(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, member := range value {
			if key != origin {
				out[key] = removeOrigin(member)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, member := range value {
			out[i] = removeOrigin(member)
		}
		return out
	}
	return value
}
