package breaking

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
)

var anyValue = &jsontree.Node{Kind: jsontree.Boolean, Value: true}

// orAny returns the schema, or one that accepts everything if there is none.
func orAny(n *jsontree.Node) *jsontree.Node {
	if n == nil {
		return anyValue
	}
	return n
}

// annotations are the keywords that no value can break.
var annotations = []string{
	"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment", "$schema", "$id",
	"contentEncoding", "contentMediaType", "contentSchema",
}

// Keywords by their values: schemas by names, sets of values, and other values that are no schemas.
var (
	definitions = []string{"$defs", "definitions"}
	schemaMaps  = append([]string{"properties", "patternProperties", "dependentSchemas", "dependencies"}, definitions...)
	sets        = []string{"required", "enum", "type"}
	plainData   = []string{"const", "dependentRequired"}
)

// canonical returns a schema without annotations as a text that is the same for equal schemas.
func canonical(n *jsontree.Node, isMap bool) string {
	switch {
	case n == nil:
		return ""
	case n.Kind == jsontree.Array:
		var items []string
		for _, item := range n.Items {
			items = append(items, canonical(item, false))
		}
		return "[" + strings.Join(items, ",") + "]"
	case n.Kind != jsontree.Object:
		return n.Compact()
	}
	var parts []string
	for _, m := range n.Members {
		var value string
		switch {
		case isMap:
			value = canonical(m.Value, false)
		case slices.Contains(annotations, m.Name):
			continue
		case slices.Contains(sets, m.Name):
			items := compactItems(m.Value)
			slices.Sort(items)
			value = strings.Join(slices.Compact(items), ",")
		case slices.Contains(plainData, m.Name):
			value = m.Value.Compact()
		default:
			value = canonical(m.Value, slices.Contains(schemaMaps, m.Name))
		}
		parts = append(parts, strconv.Quote(m.Name)+":"+value)
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

// compactItems returns the items of an array, or a single value, as texts.
func compactItems(n *jsontree.Node) (texts []string) {
	switch {
	case n == nil:
		return nil
	case n.Kind != jsontree.Array:
		return []string{n.Compact()}
	}
	for _, item := range n.Items {
		texts = append(texts, item.Compact())
	}
	return texts
}

// refersOnly reports whether a schema refers to nothing, or else, with toDefinitions, to definitions only.
func refersOnly(n *jsontree.Node, toDefinitions bool) bool {
	if n == nil {
		return true
	}
	for _, m := range n.Members {
		target, isText := m.Value.Text()
		isRef := isText && (m.Name == "$ref" || m.Name == "$dynamicRef" || m.Name == "$recursiveRef")
		isDefinition := m.Name == "$ref" && (strings.HasPrefix(target, "#/$defs/") || strings.HasPrefix(target, "#/definitions/"))
		if isRef && !(toDefinitions && isDefinition) || !refersOnly(m.Value, toDefinitions) {
			return false
		}
	}
	return !slices.ContainsFunc(n.Items, func(item *jsontree.Node) bool { return !refersOnly(item, toDefinitions) })
}

// resolves reports whether what a schema refers to is in its root.
func resolves(n, root *jsontree.Node) bool {
	ref := n.Get("$ref")
	text, _ := ref.Text()
	return n.Get("$dynamicRef") == nil && (ref == nil || root.Follow(text) != nil)
}

// branchesOf returns the alternatives of a schema, or nil.
func branchesOf(n *jsontree.Node) []*jsontree.Node {
	for _, name := range []string{"anyOf", "oneOf"} {
		if items := n.ItemsOf(name); len(items) > 0 {
			return items
		}
	}
	return nil
}

// allTypes are the types of JSON Schema. An integer is a number too.
var allTypes = []string{"null", "boolean", "object", "array", "number", "string"}

// typesOf returns the types that the values of a schema may have.
func typesOf(n *jsontree.Node) []string {
	var types []string
	if t := n.Get("type"); t != nil {
		for _, item := range append([]*jsontree.Node{t}, t.Items...) {
			if s, ok := item.Text(); ok {
				types = append(types, s)
			}
		}
		return types
	}
	values, ok := valuesOf(n)
	if !ok {
		return allTypes
	}
	for _, v := range values {
		if t := typeOf(v); !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types
}

func typeOf(n *jsontree.Node) string {
	if number, ok := n.Value.(json.Number); ok && !strings.ContainsAny(number.String(), ".eE") {
		return "integer"
	}
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[n.Kind]
}

func acceptsType(types []string, t string) bool {
	return slices.Contains(types, t) || t == "integer" && slices.Contains(types, "number")
}

func overlap(a, b []string) bool {
	accepts := func(types []string) func(string) bool { return func(t string) bool { return acceptsType(types, t) } }
	return slices.ContainsFunc(a, accepts(b)) || slices.ContainsFunc(b, accepts(a))
}

func describeTypes(types []string) string {
	if len(types) == len(allTypes) {
		return "any value"
	}
	return strings.Join(types, " or ")
}

// valuesOf returns the only values of a schema, if it lists them.
func valuesOf(n *jsontree.Node) ([]*jsontree.Node, bool) {
	if v := n.Get("const"); v != nil {
		return []*jsontree.Node{v}, true
	}
	list := n.Get("enum")
	if list == nil || list.Kind != jsontree.Array {
		return nil, false
	}
	isOther := func(v *jsontree.Node) bool { return n.Get("type") != nil && !acceptsType(typesOf(n), typeOf(v)) }
	return slices.DeleteFunc(slices.Clone(list.Items), isOther), true
}

// countable are the types with few values.
var countable = map[string][]*jsontree.Node{"boolean": {anyValue, {Kind: jsontree.Boolean, Value: false}}, "null": {{}}}

// allValues returns all values of some types, or nil if these are too many.
func allValues(types []string) []*jsontree.Node {
	values := []*jsontree.Node{}
	for _, t := range types {
		if countable[t] == nil {
			return nil
		}
		values = append(values, countable[t]...)
	}
	return values
}

func describeValues(values []*jsontree.Node) string {
	return listFirst(compactItems(jsontree.NewArray(values...)))
}

// listFirst lists texts with commas. Of many it counts those after the first five.
func listFirst(texts []string) string {
	if more := len(texts) - 5; more > 0 {
		texts = append(slices.Clone(texts[:5]), fmt.Sprintf("%d others", more))
	}
	return strings.Join(texts, ", ")
}

// join returns a schema whose values include all that fit both a and b. Of two keywords that it cannot combine it keeps
// that of a.
func join(a, b *jsontree.Node) *jsontree.Node {
	switch {
	case a.Is(false) || b.Is(true) || b.Kind != jsontree.Object && b.Kind != jsontree.Boolean:
		return a
	case a.Kind != jsontree.Object || b.Is(false) || len(a.Members) == 0:
		return b
	}
	out := a.Without()
	for _, m := range b.Members {
		before, value := out.Get(m.Name), m.Value
		switch {
		case before == nil:
		case m.Name == "properties":
			value = before.Without()
			for _, p := range m.Value.Members {
				if was := before.Get(p.Name); was != nil {
					p.Value = jsontree.NewObject(jsontree.Member{Name: "allOf", Value: jsontree.NewArray(was, p.Value)})
				}
				value.Set(p.Name, p.Value)
			}
		case m.Name == "required":
			value = jsontree.NewArray(slices.Concat(before.Items, m.Value.Items)...)
		case m.Name == "type":
			value = jsontree.NewArray()
			for _, t := range typesOf(a) {
				if acceptsType(typesOf(b), t) {
					value.Items = append(value.Items, jsontree.NewString(t))
				}
			}
		case m.Name == "enum" || m.Name == "const" || m.Name == "additionalProperties" && m.Value.Is(false): // narrower in a branch
		default:
			continue
		}
		out.Set(m.Name, value)
	}
	return out
}
