package jsonschema_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema"
)

// sender writes the nulls of encoding/json as the runtime does. The generator does not import the runtime, so this is the
// rule once more. golden/internal/random checks the schemas with the runtime's own.
type sender struct {
	root    map[string]any
	use     jsonschema.Use
	refused bool // arguments have a nil pointer in a list
}

// encodeSent returns the JSON that is sent for a value whose type has the schema. The value is refused if it has
// arguments with a nil pointer in a list, for which their schema has no place.
func encodeSent(t *testing.T, schema string, use jsonschema.Use, value any) (sent string, refused bool) {
	t.Helper()
	written, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	numbers := json.NewDecoder(bytes.NewReader(written))
	numbers.UseNumber()
	var decoded any
	if err := numbers.Decode(&decoded); err != nil {
		t.Fatal(err)
	}
	s := sender{root: mapOf(decodeJSON(t, schema)), use: use}
	written, err = json.Marshal(s.send(s.root, decoded))
	if err != nil {
		t.Fatal(err)
	}
	return string(written), s.refused
}

func (s *sender) send(schema map[string]any, value any) any {
	schema = resolve(s.root, schema)
	if inner, ok := schema["anyOf"].([]any); ok {
		schema = resolve(s.root, mapOf(inner[0]))
	}
	switch v := value.(type) {
	case []any:
		items := mapOf(schema["items"])
		for i, item := range v {
			v[i] = s.send(items, item)
			s.refused = s.refused || v[i] == nil && s.use == jsonschema.Argument && len(items) > 0
		}
	case map[string]any:
		required, _ := schema["required"].([]any)
		for name, member := range v {
			inner, declared := mapOf(schema["properties"])[name]
			if !declared {
				inner = s.otherMembers(schema)
			}
			v[name] = s.send(mapOf(inner), member)
			optional := declared && !slices.Contains(required, any(name)) || v[name] == nil
			if member == nil && len(mapOf(inner)) > 0 && optional && s.use == jsonschema.Argument {
				delete(v, name)
			}
		}
	case nil:
		switch kind := schema["type"]; {
		case kind == "array":
			return []any{}
		case kind == "object" && schema["properties"] == nil:
			return map[string]any{}
		case kind == "string" && schema["contentEncoding"] != nil:
			return ""
		}
	}
	return value
}

// otherMembers returns the schema of the members without a property.
func (s *sender) otherMembers(schema map[string]any) any {
	for _, values := range mapOf(schema["patternProperties"]) {
		return values
	}
	return schema["additionalProperties"]
}

func mapOf(value any) map[string]any {
	object, _ := value.(map[string]any)
	return object
}
