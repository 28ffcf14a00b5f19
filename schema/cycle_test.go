package schema_test

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

func TestCycles(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"itself", `{"$defs": {"A": {"$ref": "#/$defs/A"}}}`, "A: the definition refers to itself: A -> A"},
		{"by others", `{"definitions": {"A": {"allOf": [{"type": "object"}, {"$ref": "#/definitions/B"}]}, "B": {"anyOf": [{"oneOf": [{"$ref": "#/definitions/C"}]}]}, "C": {"$ref": "#/definitions/B"}}}`,
			"B: the definition refers to itself: B -> C -> B"},
		{"a recursive type", `{"$defs": {"A": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/A"}}, {"properties": {"a": {"$ref": "#/$defs/A"}}}]}}}`, ""},
		{"two ways to the same", `{"$defs": {"A": {"allOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/C"}]}, "B": {"$ref": "#/$defs/C"}, "C": {}}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if _, err := schema.Parse([]byte(test.text)); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
