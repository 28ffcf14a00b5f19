package generator

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRandomLists makes valid lists of tools with schemas that no person would write.
func TestRandomLists(t *testing.T) {
	w := newWorkshop(t)
	const lists = 150
	valid := 0
	for seed := range uint64(lists) {
		r := &schemaWriter{rand.New(rand.NewPCG(seed, 0))}
		var tools []any
		for range 1 + r.IntN(3) {
			tools = append(tools, map[string]any{
				"name": r.name(), "description": r.text(), "inputSchema": r.root(), "outputSchema": r.root(),
			})
		}
		list, err := json.Marshal(tools)
		if err != nil {
			t.Fatal(err)
		}
		if w.checkList(t, "p", "", list) != nil {
			valid++
		}
	}
	if valid < lists/3 {
		t.Errorf("only %d of %d lists are valid", valid, lists)
	}
}

// schemaWriter writes random schemas.
type schemaWriter struct{ *rand.Rand }

func (r *schemaWriter) name() string {
	return pick(r, "id", "ID", "Id", "user_id", "userId", "type", "func", "a,b", "", "-", "größe", "天気", "🎉", "v1.5", "X", "err",
		"string", "a_name_that_goes_on_for_a_while_longer", "MarshalJSON", "StartX", "x-y.z/w", strings.Repeat("long ", 14), `q"q`)
}

func (r *schemaWriter) text() string {
	return pick(r, "", "Text", "# Heading", "a\n\n- b\n- c\n\nd", "[a]: http://b", "//go:build x\n\n+build y", "    code\n\tmore", "1. x\n2. y\nz",
		strings.Repeat("word ", 40), strings.Repeat("w", 200), "a\n \n*/ \u202e \x00 `", "Deprecated: no", "- only", "=====", "a:\n  - b\n    - c")
}

func (r *schemaWriter) root() map[string]any {
	s := r.object(0)
	s["type"] = "object"
	s["$defs"] = map[string]any{"A": r.schema(1), "b": r.schema(1), "天": r.schema(1)}
	return s
}

func (r *schemaWriter) object(depth int) map[string]any {
	properties := map[string]any{}
	var required []any
	for range r.IntN(5) {
		name := r.name()
		properties[name] = r.schema(depth + 1)
		if r.IntN(2) == 0 {
			required = append(required, name)
		}
	}
	s := map[string]any{"properties": properties}
	if required != nil {
		s["required"] = required
	}
	if r.IntN(3) == 0 {
		s["additionalProperties"] = r.schema(depth + 1)
	}
	return s
}

func (r *schemaWriter) schema(depth int) any {
	if depth > 5 {
		return pick[any](r, true, false, map[string]any{"type": "string"}, map[string]any{"$ref": "#/$defs/A"})
	}
	s := map[string]any{}
	switch r.IntN(12) {
	case 0:
		return pick[any](r, true, false)
	case 1:
		return map[string]any{"$ref": pick(r, "#", "#/$defs/A", "#/$defs/b", "#/$defs/天", "other.json")}
	case 2:
		s["enum"] = []any{r.name(), r.name(), pick[any](r, nil, 1, 2.5, "x", true)}
	case 3:
		s["const"] = pick[any](r, nil, 1, 2.5, "x", true, r.name())
	case 4, 5:
		var list []any
		for range 1 + r.IntN(3) {
			list = append(list, r.schema(depth+1))
		}
		s[pick(r, "anyOf", "oneOf", "allOf")] = list
		if r.IntN(3) == 0 {
			s["type"] = pick(r, "object", "string")
		}
	case 6:
		s["type"], s["items"] = "array", r.schema(depth+1)
	case 7, 8:
		s = r.object(depth)
	case 9:
		s["type"], s["minimum"] = pick(r, "integer", "number"), pick[any](r, 0, 1, -1e300, 1e300)
	case 10:
		s["type"] = []any{pick(r, "string", "integer", "object"), pick(r, "null", "array", "boolean")}
	default:
		s["type"] = pick(r, "string", "boolean", "null", "object", "array")
		s["format"] = pick(r, "date-time", "uri", "int32", "uuid")
	}
	s["description"], s["title"] = r.text(), r.text()
	s["default"] = pick[any](r, nil, 0, "", false, "x", []any{}, strings.Repeat("d", 150))
	return s
}

func pick[T any](r *schemaWriter, items ...T) T { return items[r.IntN(len(items))] }
