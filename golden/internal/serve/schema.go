package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
)

// checkSchema checks that official clients can read a schema. The TypeScript client refuses a whole list of tools if a
// property has the schema true.
func checkSchema(t *testing.T, where string, raw json.RawMessage) *validator.Schema {
	t.Helper()
	value, err := validator.UnmarshalJSON(bytes.NewReader(raw))
	root, ok := value.(map[string]any)
	if err != nil || !ok || root["type"] != "object" {
		t.Errorf("%s is no schema of an object: %v: %s", where, err, raw)
		return nil
	}
	if root["$schema"] != nil || root["$id"] != nil {
		t.Errorf("%s names a dialect or itself", where)
	}
	checkNode(t, where, root, root)
	c := validator.NewCompiler()
	c.DefaultDraft(validator.Draft2020)
	if err := c.AddResource("schema:///", value); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema:///")
	if err != nil {
		t.Errorf("%s: %v", where, err)
	}
	return compiled
}

func checkNode(t *testing.T, where string, node any, root map[string]any) {
	t.Helper()
	schema, ok := node.(map[string]any)
	if !ok {
		t.Errorf("the schema of %s is %v", where, node)
		return
	}
	if ref, ok := schema["$ref"].(string); ok && !resolves(ref, root) {
		t.Errorf("%s refers to %s, which is not there", where, ref)
	}
	for _, keyword := range []string{"properties", "patternProperties", "$defs"} {
		members, _ := schema[keyword].(map[string]any)
		for name, member := range members {
			checkNode(t, where+"."+name, member, root)
		}
	}
	for _, keyword := range []string{"items", "additionalProperties", "propertyNames"} {
		if inner, ok := schema[keyword]; ok && (inner != false || keyword != "additionalProperties") {
			checkNode(t, where+" "+keyword, inner, root)
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := schema[keyword].([]any)
		for i, inner := range list {
			checkNode(t, fmt.Sprintf("%s %s %d", where, keyword, i), inner, root)
		}
	}
}

func resolves(ref string, root map[string]any) bool {
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	if !ok {
		return false // some libraries do not read a reference to the root
	}
	defs, _ := root["$defs"].(map[string]any)
	return defs[name] != nil
}

// checkFlat checks that a question has only the keywords that the protocol allows, because clients have forms for
// nothing else.
func checkFlat(t *testing.T, where string, raw json.RawMessage) {
	t.Helper()
	var schema struct {
		Properties map[string]struct {
			Type  string
			Items struct {
				Type        string
				Enum        []string
				Description string
			}
		}
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Errorf("%s is not flat: %v", where, err)
		return
	}
	for name, p := range schema.Properties {
		switch p.Type {
		case "string", "integer", "number", "boolean":
		case "array":
			if p.Items.Type != "string" || len(p.Items.Enum) == 0 || p.Items.Description != "" {
				t.Errorf("%s.%s is no list of choices", where, name)
			}
		default:
			t.Errorf("%s.%s is a %q", where, name, p.Type)
		}
	}
}
