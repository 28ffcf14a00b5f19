package jsonschema

import (
	"encoding/json"
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// null marks a schema that admits null beside what it says; assemble turns it into JSON Schema. No
// keyword has this name.
const null = "\x00null"

// correct walks a schema beside the type it was derived from and puts right what the reflector does
// not know: where null may stand, which integers are keys, and which constants are all the values.
func (g *graph) correct(t types.Type, node *object, optional bool) *object {
	t = types.Unalias(t)
	if named, ok := t.(*types.Named); ok {
		if _, ok := special[qualified(named)]; ok {
			return node
		}
	}
	if hasMethod(t, "MarshalText", "UnmarshalText") {
		return node
	}
	g.enumerate(t, node)
	nullable := false
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		node = g.correct(u.Elem(), node, false) // what it points to is written where the pointer is not nil
		nullable = true
	case *types.Slice:
		nullable = true
		if items, ok := node.child("items"); ok {
			node.set("items", g.correct(u.Elem(), items, false))
		}
	case *types.Array:
		if items, ok := node.child("items"); ok {
			node.set("items", g.correct(u.Elem(), items, false))
		}
	case *types.Map:
		nullable = true
		g.correctMap(u, node)
	}
	if nullable && !optional {
		node.set(null, true)
	}
	return node
}

func (g *graph) correctMap(m *types.Map, node *object) {
	if values, ok := node.child("additionalProperties"); ok {
		node.set("additionalProperties", g.correct(m.Elem(), values, false))
	}
	keys := newObject()
	if g.enumerate(m.Key(), keys); keys.has("enum") {
		quoteNumbers(keys)
		node.set("propertyNames", keys)
	}
	key, err := mapKey(m.Key())
	if err != nil || key == special["log/slog.Level"] { // a string
		return
	}
	pattern := "^[0-9]+$"
	if b, ok := m.Key().Underlying().(*types.Basic); ok && b.Info()&types.IsUnsigned == 0 {
		pattern = "^-?[0-9]+$"
	}
	values := newObject()
	if patterns, ok := node.child("patternProperties"); ok {
		values, _ = patterns.child(patterns.keys[0])
		values = g.correct(m.Elem(), values, false)
	} else if found, ok := node.child("additionalProperties"); ok {
		values = found
	}
	node.set("patternProperties", newObject(pattern, values))
	node.set("additionalProperties", false)
}

// typedDefault gives the default of a list the type of its items; the reflector makes it strings.
func typedDefault(property *object) {
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

// flat refuses a question's field that a client has no form for.
func flat(f field, property *object) error {
	t := types.Unalias(f.variable.Type())
	if isDuration(t) {
		return &refusal{"a time.Duration is a bare integer of nanoseconds, which nobody can be asked for",
			"take a number whose name tells the unit, as Minutes int does, or a string"}
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		if !f.optional {
			return &refusal{"a pointer in an input may be left out, but not null", "add omitempty to its json tag"}
		}
		t = types.Unalias(p.Elem())
	}
	property.remove(null)
	switch property.get("type") {
	case "string":
		if property.has("contentEncoding") {
			return &refusal{"an input has no bytes", notFlat}
		}
		if format, ok := property.get("format").(string); ok && !slices.Contains(formats, format) {
			return &refusal{fmt.Sprintf("format=%s is none that a client has a form for", format), "it is one of " + strings.Join(formats, ", ")}
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
		return &refusal{"an input has lists of choices only",
			`name the choices of a []string in its tag: jsonschema:"enum=a,enum=b", or take a slice of a string type with constants`}
	}
	return &refusal{"an input is flat", notFlat}
}

// formats are those that the protocol allows in a question.
var formats = []string{"date", "date-time", "email", "uri"}

const notFlat = "its fields are strings, numbers, booleans, time.Time, enums and slices of enums"
