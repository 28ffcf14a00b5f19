package jsonschema

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	invopop "github.com/invopop/jsonschema"
	orderedmap "github.com/pb33f/ordered-map/v2"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
)

// keywordOrder is the order of the keywords of a schema: its type and description, its parts, its limits, all other
// keywords, and the definitions.
var keywordOrder = []string{
	"$ref", "type", "format", "title", "description", "enum", "const", "default", "properties",
	"patternProperties", "required", "additionalProperties", "items", "anyOf", "oneOf",
	"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
	"minItems", "maxItems", "uniqueItems", "propertyNames", "", "$defs",
}

func keywordRank(keyword string) int {
	if i := slices.Index(keywordOrder, keyword); i >= 0 {
		return i
	}
	return slices.Index(keywordOrder, "")
}

// toNode returns a schema as JSON, with its members in order. Its definitions are in the given order.
func toNode(s *schema, definitions []string) *jsontree.Node {
	n := jsontree.NewObject()
	for _, key := range slices.Sorted(maps.Keys(s.Extras)) {
		n.Set(key, toValue(s.Extras[key], nil))
	}
	v := reflect.ValueOf(*s)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if field := v.Field(i); name != "" && name != "-" && !field.IsZero() {
			n.Set(name, toValue(field.Interface(), definitions))
		}
	}
	slices.SortStableFunc(n.Members, func(a, b jsontree.Member) int {
		return cmp.Compare(keywordRank(a.Name), keywordRank(b.Name))
	})
	return n
}

// toValue returns the value of a keyword as JSON. Its definitions are in the given order.
func toValue(value any, order []string) *jsontree.Node {
	n := jsontree.NewObject()
	switch v := value.(type) {
	case *schema:
		if v != invopop.FalseSchema {
			return toNode(v, nil)
		}
	case *orderedmap.OrderedMap[string, *schema]:
		for pair := v.Oldest(); pair != nil; pair = pair.Next() {
			n.Set(pair.Key, toNode(pair.Value, nil))
		}
		return n
	case map[string]*schema:
		return toValue(invopop.Definitions(v), slices.Sorted(maps.Keys(v)))
	case invopop.Definitions:
		for _, name := range order {
			n.Set(name, toNode(v[name], nil))
		}
		return n
	case []*schema:
		list := jsontree.NewArray()
		for _, item := range v {
			list.Items = append(list.Items, toNode(item, nil))
		}
		return list
	}
	if text, err := json.Marshal(value); err == nil { // scalars and lists of them always encode
		n, _ = jsontree.Parse(text)
	}
	return n
}

// isEmpty reports whether a schema admits every value.
func isEmpty(s *schema) bool { return reflect.ValueOf(*s).IsZero() }

// formatSchema formats a schema for people. A value without parts is on one line if it is short.
func formatSchema(schema *jsontree.Node) string {
	return schema.Spread(func(m jsontree.Member) bool { return isOpen(m) || weight(m.Value) > maxWeight })
}

// maxWeight is the number of scalars that a value on one line may have.
const maxWeight = 3

// weight counts the scalars of a value. The scalars of a list count as one, unless there are many.
func weight(n *jsontree.Node) int {
	sum := 0
	for _, m := range n.Members {
		if sum += weight(m.Value); isOpen(m) {
			return maxWeight + 1
		}
		if m.Name == "description" {
			sum++ // it is long, and would hide the keywords after it
		}
	}
	for _, item := range n.Items {
		if len(n.Items) > 8 || item.Kind == jsontree.Object {
			return maxWeight + 1
		}
		sum = max(sum, weight(item))
	}
	if n.Kind != jsontree.Object {
		sum = max(sum, 1)
	}
	return sum
}

// isOpen reports whether each member of a keyword has a line of its own.
func isOpen(m jsontree.Member) bool {
	return len(m.Value.Members) > 0 && (m.Name == "properties" || m.Name == "$defs")
}
