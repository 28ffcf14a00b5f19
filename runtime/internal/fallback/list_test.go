package fallback

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestWiden checks that a widened schema admits what it admitted before, whatever it refers to, and
// also a running task.
func TestWiden(t *testing.T) {
	running := `{"task":"t","status":"input_required","statusMessage":"Ship it?","pollIntervalMs":1,` +
		`"questions":[{"key":"ship","text":"Ship it?","schema":{"type":"object"}}],"next":{"tool":"task_answer","arguments":{"task":"t","question":"ship"}}}`
	for name, test := range map[string]struct{ schema, good, bad string }{
		"plain":          {`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}},"required":["n"]}`, `{"n":9007199254740993}`, `{"n":9007199254740994}`},
		"closed":         {`{"type":"object","additionalProperties":false}`, `{}`, `{"n":1}`},
		"draft":          {`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["n"]}`, `{"n":1}`, `{}`},
		"definitions":    {`{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"required":["n"],"$defs":{"n":{"$ref":"#/$defs/m"},"m":{"type":"integer"}}}`, `{"n":1}`, `{"n":"1"}`},
		"a property":     {`{"type":"object","properties":{"a":{"type":"integer"},"b":{"$ref":"#/properties/a"}},"required":["b"]}`, `{"b":1}`, `{"b":"1"}`},
		"itself":         {`{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}`, `{"next":{"next":{}}}`, `{"next":{"n":1}}`},
		"its own id":     {`{"$id":"https://example.com/out","type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"required":["n"],"$defs":{"n":{"type":"integer"}}}`, `{"n":1}`, `{"n":"1"}`},
		"an anchor":      {`{"type":"object","properties":{"n":{"$ref":"#n"}},"required":["n"],"$defs":{"n":{"$anchor":"n","type":"integer"}}}`, `{"n":1}`, `{"n":"1"}`},
		"task as theirs": {`{"type":"object","properties":{"task":{"type":"integer"}},"required":["task"]}`, `{"task":1}`, `{"task":"t"}`},
	} {
		t.Run(name, func(t *testing.T) {
			wide, err := widen(json.RawMessage(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			for _, schema := range []string{test.schema, string(wide)} {
				for value, want := range map[string]bool{test.good: true, test.bad: false} {
					if err := valid(t, schema, value); (err == nil) != want {
						t.Errorf("%s of %s: %v", value, schema, err)
					}
				}
			}
			if err := valid(t, string(wide), running); err != nil {
				t.Error(err)
			}
			var root struct{ Type string }
			if err := json.Unmarshal(wide, &root); err != nil || root.Type != "object" {
				t.Errorf("%s", wide) // the protocol asks for it, and clients refuse others
			}
		})
	}
}

func valid(t *testing.T, schema, value string) error {
	t.Helper()
	c := jsonschema.NewCompiler()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("schema:tool", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema:tool")
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(v)
}
