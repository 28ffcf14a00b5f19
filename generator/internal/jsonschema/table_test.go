package jsonschema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema"
)

func TestFields(t *testing.T) {
	const schema = `{
		"type": "object",
		"properties": {
			"z": {"type": "string", "description": "Z is first.", "minLength": 1, "default": "x|y"},
			"when": {"type": ["string", "null"], "format": "date-time"},
			"mode": {"$ref": "#/$defs/a~1b", "description": "Nearest."},
			"stages": {"type": ["array", "null"], "items": {"$ref": "#/$defs/stage"}},
			"labels": {"type": "object", "additionalProperties": {"type": "object", "properties": {"v": {"type": "number"}}}},
			"any": {},
			"true": true,
			"union": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
			"self": {"$ref": "#"},
			"loop": {"$ref": "#/$defs/loop"},
			"lists": {"$ref": "#/$defs/lists"},
			"nested": {"type": "array", "items": {"type": ["integer", "null"]}}
		},
		"required": ["z", "mode"],
		"$defs": {
			"a/b": {"type": "string", "enum": ["fast", "safe"], "description": "Farther."},
			"loop": {"$ref": "#/$defs/loop"},
			"lists": {"type": "array", "items": {"$ref": "#/$defs/lists"}},
			"stage": {"type": "object", "properties": {
				"name": {"type": "string"},
				"then": {"type": "array", "items": {"$ref": "#/$defs/stage"}}
			}, "required": ["name"]}
		}
	}`
	want := []jsonschema.Field{
		{Path: "z", Type: "string", Required: true, Description: "Z is first.", Limits: []string{"minLength: 1", `default: "x|y"`}},
		{Path: "when", Type: "string (date-time) or null"},
		{Path: "mode", Type: `one of "fast", "safe"`, Required: true, Description: "Nearest."},
		{Path: "stages", Type: "list of object or null"},
		{Path: "stages[].name", Type: "string", Required: true},
		{Path: "stages[].then", Type: "list of object (as stages[])"},
		{Path: "labels", Type: "map of object"},
		{Path: "labels.*.v", Type: "number"},
		{Path: "any", Type: "any"},
		{Path: "true", Type: "any"},
		{Path: "union", Type: "integer or null"},
		{Path: "self", Type: "object (as the whole)"},
		{Path: "loop", Type: "any"},
		{Path: "lists", Type: "list of the same (as lists)"},
		{Path: "nested", Type: "list of (integer or null)"},
	}
	got, err := jsonschema.Fields(schema)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("fields (-want +got):\n%s", d)
	}
	for _, wrong := range []string{"", "[]", "true"} {
		if fields, err := jsonschema.Fields(wrong); err == nil {
			t.Errorf("%q: %v", wrong, fields)
		}
	}
}
