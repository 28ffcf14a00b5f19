package form_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
)

// TestFormAdmits takes the schemas of the specification's own definitions, and those that the
// generator writes for an input.
func TestFormAdmits(t *testing.T) {
	for name, property := range map[string]string{
		"a string":          `{"type":"string","title":"Name","description":"d","minLength":3,"maxLength":50,"format":"email","default":"a@b.example"}`,
		"a pattern":         `{"type":"string","pattern":"^[a-z]+$"}`,
		"a number":          `{"type":"number","minimum":-1.5e3,"maximum":0.0,"default":0e5}`,
		"an integer":        `{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":10,"multipleOf":2}`,
		"a boolean":         `{"type":"boolean","default":false}`,
		"no default":        `{"type":"string","default":null}`,
		"choices":           `{"type":"string","enum":["a","b"],"default":"a"}`,
		"choices of old":    `{"type":"string","enum":["a","b"],"enumNames":["A","B"]}`,
		"titled choices":    `{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B","description":"d"}]}`,
		"several":           `{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1,"maxItems":2,"uniqueItems":true,"default":["a"]}`,
		"several, titled":   `{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]},"default":null}`,
		"numbers to choose": `{"type":"integer","enum":[1,2,3]}`,
		"an extension":      `{"type":"string","x-widget":{"anything":[{}]},"examples":["a"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			schema := `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"p":` + property +
				`},"required":["p"],"additionalProperties":true}`
			if err := form.Check(json.RawMessage(schema)); err != nil {
				t.Error(err)
			}
		})
	}
	for _, schema := range []string{``, `null`, `{}`, `{"type":"object"}`, `{"type":"object","properties":{}}`} {
		if err := form.Check(json.RawMessage(schema)); err != nil {
			t.Errorf("%q: %v", schema, err)
		}
	}
}

func TestFormRefuses(t *testing.T) {
	of := func(property string) string { return `{"type":"object","properties":{"p":` + property + `}}` }
	for name, c := range map[string]struct{ schema, says string }{
		"itself":                {`{"$ref":"#"}`, "$ref"},
		"itself, disguised":     {`{"$REF":"#"}`, "$REF"},
		"itself as a property":  {of(`{"type":"string","$ref":"#"}`), "properties.p.$ref"},
		"a dynamic reference":   {`{"$dynamicRef":"#"}`, "$dynamicRef"},
		"definitions":           {`{"type":"object","$defs":{}}`, "$defs"},
		"a union of itself":     {`{"type":"object","allOf":[{"$ref":"#"}]}`, "allOf"},
		"patterns of names":     {`{"patternProperties":{"(a*)*":true}}`, "patternProperties"},
		"rules for others":      {`{"additionalProperties":{"$ref":"#"}}`, "additionalProperties"},
		"an object in it":       {of(`{"type":"object","properties":{}}`), "must have a type"},
		"objects in it":         {of(`{"type":"array","items":{"type":"object"}}`), "items.type"},
		"a choice of schemas":   {of(`{"type":"string","oneOf":[{"$ref":"#"}]}`), "oneOf.0.$ref"},
		"choices of schemas":    {of(`{"type":"array","items":{"anyOf":[{"$ref":"#"}]}}`), "anyOf.0.$ref"},
		"types":                 {of(`{"type":["string","null"]}`), "must have a type"},
		"must have a type":      {of(`{}`), "must have a type"},
		"no property":           {of(`null`), "must have a type"},
		"a schema that is true": {of(`true`), "not an object"},
		"true":                  {`true`, "not an object"},
		"another root":          {`{"type":"array"}`, "type is not object"},
		"a tiny number":         {of(`{"type":"number","minimum":1e-9999999}`), "float64"},
		"a huge number":         {of(`{"type":"number","maximum":1e9999999}`), "float64"},
		"a tiny choice":         {of(`{"type":"number","enum":[0,1e-9999999]}`), "enum.1"},
		"a tiny default":        {of(`{"type":"integer","default":1e-9999999}`), "float64"},
		"a negative length":     {of(`{"type":"string","minLength":-1}`), "minLength"},
		"a length of tiny":      {of(`{"type":"string","minLength":1e-9999999}`), "minLength"},
		"a long pattern":        {of(`{"type":"string","pattern":"` + strings.Repeat("a{999}", 200) + `"}`), "1200 bytes"},
		"another format":        {of(`{"type":"string","format":"regex"}`), "format"},
		"a default of objects":  {of(`{"type":"array","items":{"type":"string","enum":["a"]},"default":[{}]}`), "default"},
		"deep nesting":          {strings.Repeat(`{"properties":`, 20000) + `1` + strings.Repeat(`}`, 20000), "bytes"},
		"too much":              {of(`{"type":"string","description":"` + strings.Repeat("x", form.MaxSize) + `"}`), "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := form.Check(json.RawMessage(c.schema)); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
		})
	}
}
