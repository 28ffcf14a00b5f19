package jsonschema

import (
	"encoding/json"
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// nullMark marks a schema that also admits null. It is not a valid keyword, and assemble converts
// it to JSON Schema.
const nullMark = "\x00null"

// correctSchema walks a schema along with its type and corrects what the reflector does not know:
// which values may be null, which integers are map keys, and which types are enums.
func (g *graph) correctSchema(t types.Type, node *object, optional bool) *object {
	t = types.Unalias(t)
	if named, ok := t.(*types.Named); ok {
		if _, ok := specialTypes[qualifiedName(named)]; ok {
			return node
		}
	}
	if hasMethod(t, "MarshalText", "UnmarshalText") {
		return node
	}
	g.addEnum(t, node)
	nullable := false
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		node = g.correctSchema(u.Elem(), node, false) // its target is only encoded if the pointer is not nil
		nullable = true
	case *types.Slice:
		nullable = true
		if items, ok := node.child("items"); ok {
			node.set("items", g.correctSchema(u.Elem(), items, false))
		}
	case *types.Array:
		if items, ok := node.child("items"); ok {
			node.set("items", g.correctSchema(u.Elem(), items, false))
		}
	case *types.Map:
		nullable = true
		g.correctMap(u, node)
	}
	if nullable && !optional {
		node.set(nullMark, true)
	}
	return node
}

func (g *graph) correctMap(m *types.Map, node *object) {
	if values, ok := node.child("additionalProperties"); ok {
		node.set("additionalProperties", g.correctSchema(m.Elem(), values, false))
	}
	keys := newObject()
	if g.addEnum(m.Key(), keys); keys.has("enum") {
		quoteNumbers(keys)
		node.set("propertyNames", keys)
	}
	key, err := mapKeyType(m.Key())
	if err != nil || key == specialTypes["log/slog.Level"] { // a string key
		return
	}
	pattern := "^[0-9]+$"
	if b, ok := m.Key().Underlying().(*types.Basic); ok && b.Info()&types.IsUnsigned == 0 {
		pattern = "^-?[0-9]+$"
	}
	values := newObject()
	if patterns, ok := node.child("patternProperties"); ok {
		values, _ = patterns.child(patterns.keys[0])
		values = g.correctSchema(m.Elem(), values, false)
	} else if found, ok := node.child("additionalProperties"); ok {
		values = found
	}
	node.set("patternProperties", newObject(pattern, values))
	node.set("additionalProperties", false)
}

// convertDefault converts the items of a list's default from strings, which the reflector makes, to
// the type of the items.
func convertDefault(property *object) {
	items, ok := property.child("items")
	list, isList := property.get("default").([]any)
	if !ok || !isList {
		return
	}
	for i, item := range list {
		text, isText := item.(string)
		if !isText {
			continue
		}
		switch items.get("type") {
		case "integer", "number":
			list[i] = json.Number(text)
		case "boolean":
			list[i] = text == "true"
		}
	}
}

// checkQuestionField refuses a question's field for which clients have no form.
func checkQuestionField(f field, property *object) error {
	t := types.Unalias(f.variable.Type())
	if isDuration(t) {
		return &refusal{"a time.Duration is an integer of nanoseconds, which people cannot be asked for",
			"use a number with the unit in its name, such as Minutes int, or a string"}
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		if !f.optional {
			return &refusal{"a pointer in an input may be omitted, but not null", "add omitempty to its json tag"}
		}
		t = types.Unalias(p.Elem())
	}
	property.remove(nullMark)
	switch property.get("type") {
	case "string":
		if property.has("contentEncoding") {
			return &refusal{"an input cannot have bytes", flatHint}
		}
		if format, ok := property.get("format").(string); ok && !slices.Contains(questionFormats, format) {
			return &refusal{fmt.Sprintf("clients have no form for format=%s", format), "use one of " + strings.Join(questionFormats, ", ")}
		}
		return nil
	case "integer", "number", "boolean":
		return nil
	case "array":
		if _, slice := t.Underlying().(*types.Slice); slice {
			if items, ok := property.child("items"); ok && items.get("type") == "string" && items.has("enum") {
				return nil
			}
		}
		return &refusal{"an input can only have lists of choices",
			`name the choices of a []string in its tag: jsonschema:"enum=a,enum=b", or take a slice of a string type with constants`}
	}
	return &refusal{"an input must be flat", flatHint}
}

// questionFormats are the formats that the protocol allows in a question.
var questionFormats = []string{"date", "date-time", "email", "uri"}

const flatHint = "its fields are strings, numbers, booleans, time.Time, enums and slices of enums"
