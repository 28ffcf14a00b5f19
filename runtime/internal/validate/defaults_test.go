package validate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestCheckAndFill checks which properties get the defaults of their schemas.
func TestCheckAndFill(t *testing.T) {
	const n = `{"properties":{"n":{"type":"integer","minimum":1,"default":1}}}`
	for _, tc := range []struct{ name, schema, value, want string }{
		{"left out", n, `{}`, `{"n":1}`},
		{"beside others", n, ` { "a" : [1.0] }`, ` {"n":1, "a" : [1.0] }`},
		{"given", n, `{"n":5}`, `{"n":5}`},
		{"given with an escape", n, `{"\u006e":5}`, `{"\u006e":5}`},
		{"null", `{"properties":{"n":{"default":1}}}`, `{"n":null}`, `{"n":null}`},
		{"two", `{"properties":{"b":{"default":"<\"é>"},"a":{"default":[1.50,{}]},"c":{}}}`, `{}`, `{"a":[1.50,{}],"b":"<\"é>"}`},
		{"false, empty and null", `{"properties":{"a":{"default":false},"b":{"default":""},"c":{"default":null}}}`, `{}`, `{"a":false,"b":"","c":null}`},
		{"of another type", `{"properties":{"n":{"type":"integer","default":"1"}}}`, `{}`, `{}`},
		{"beyond a bound", `{"properties":{"n":{"minimum":1,"default":0}}}`, `{}`, `{}`},
		{"no format", `{"properties":{"n":{"format":"date","default":"today"}}}`, `{}`, `{}`},
		{"required", `{"properties":{"n":{"default":1},"m":{"default":2}},"required":["n"]}`, `{"n":3}`, `{"m":2,"n":3}`},
		{"within an object", `{"properties":{"o":` + n + `}}`, `{"o":{}}`, `{"o":{"n":1}}`},
		{"within an object that is left out", `{"properties":{"o":` + n + `}}`, `{}`, `{}`},
		{"within null", `{"properties":{"o":` + n + `}}`, `{"o":null}`, `{"o":null}`},
		{"within a default", `{"properties":{"o":{"default":{},"properties":{"p":{"default":{"q":2},"properties":{"n":{"default":1}}}}}}}`, `{}`, `{"o":{"p":{"n":1,"q":2}}}`},
		{"within items", `{"properties":{"l":{"prefixItems":[{}],"items":` + n + `}}}`, `{"l":[{},{},{"n":2},3,{"a":{}}]}`, `{"l":[{},{"n":1},{"n":2},3,{"n":1,"a":{}}]}`},
		{"within lists of lists", `{"properties":{"l":{"items":{"items":` + n + `}}}}`, `{"l":[[{}],[]]}`, `{"l":[[{"n":1}],[]]}`},
		{"within additional properties", `{"properties":{"o":{}},"additionalProperties":` + n + `}`, `{"o":{},"p":{}}`, `{"o":{},"p":{"n":1}}`},
		{"within pattern properties", `{"patternProperties":{"^x":` + n + `},"additionalProperties":false}`, `{"x1":{}}`, `{"x1":{"n":1}}`},
		{"by references", `{"properties":{"a":{"$ref":"#/$defs/a"},"b":{"$ref":"#/$defs/a","default":3}},"$defs":{"a":{"type":"integer","default":2}}}`, `{}`, `{"a":2,"b":3}`},
		{"in references", `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":` + n + `}}`, `{"a":{}}`, `{"a":{"n":1}}`},
		{"in itself", `{"properties":{"n":{"default":1},"inner":{"$ref":"#"}}}`, `{"inner":{"inner":{}}}`, `{"n":1,"inner":{"n":1,"inner":{"n":1}}}`},
		{"a default in itself", `{"properties":{"n":{"default":1},"inner":{"$ref":"#","default":{}}}}`, `{}`, `{"inner":{"inner":{},"n":1},"n":1}`},
		{"in allOf", `{"allOf":[` + n + `,{"properties":{"n":{"default":2},"m":{"default":3}}}]}`, `{}`, `{"n":1,"m":3}`},
		{"beside null", `{"properties":{"o":{"anyOf":[` + n + `,{"type":"null"}]},"p":{"oneOf":[{"type":"null"},{"$ref":"#/$defs/p"}]}},"$defs":{"p":` + n + `}}`, `{"o":{},"p":{}}`, `{"o":{"n":1},"p":{"n":1}}`},
		{"in alternatives", `{"anyOf":[` + n + `,{}]}`, `{}`, `{}`},
		{"beside alternatives", `{"oneOf":[{"required":["a"]},{"required":["n"]}],"properties":{"n":{"default":1}}}`, `{"a":1}`, `{"a":1}`},
		{"beside alternatives in allOf", `{"allOf":[` + n + `,{"not":{"required":["n"]}}]}`, `{}`, `{}`},
		{"with a bound of members", `{"properties":{"n":{"default":1}},"maxProperties":1}`, `{"a":1}`, `{"a":1}`},
		{"with dependents", `{"properties":{"n":{"default":1}},"dependentRequired":{"n":["a"]}}`, `{}`, `{}`},
		{"in a condition", `{"if":` + n + `,"properties":{"m":{"default":1}}}`, `{}`, `{"m":1}`},
		{"in equal items", `{"properties":{"l":{"uniqueItems":true,"items":` + n + `}}}`, `{"l":[{},{"n":1}]}`, `{"l":[{},{"n":1}]}`},
		{"beside a closed part", `{"allOf":[` + n + `,{"additionalProperties":false}]}`, `{}`, `{}`},
		{"in items beside closed items", `{"properties":{"l":{"allOf":[{"items":` + n + `},{"items":{"additionalProperties":false}}]}}}`, `{"l":[{}]}`, `{"l":[{}]}`},
		{"beside inner alternatives", `{"properties":{"n":{"anyOf":[{"type":"string"},{"type":"integer"}],"default":1}}}`, `{}`, `{"n":1}`},
		{"no defaults", `{"properties":{"n":{}}}`, `{"a":{}}`, `{"a":{}}`},
		{"in a long name", `{"properties":{"` + strings.Repeat("n", 100) + `":{"default":1}}}`, `{}`, `{"` + strings.Repeat("n", 100) + `":1}`},
	} {
		s := compile(t, `{"type":"object",`+tc.schema[1:], true)
		if got, err := s.CheckAndFill(t.Context(), json.RawMessage(tc.value)); string(got) != tc.want || err != nil {
			t.Errorf("%s: %s, want %s, %v", tc.name, got, tc.want, err)
		}
		if err := s.Check(t.Context(), json.RawMessage(tc.want)); err != nil {
			t.Errorf("%s: %s does not fit: %v", tc.name, tc.want, err)
		}
	}
}

// TestNestedDefaultsAreBounded checks a schema whose defaults would have a billion members.
func TestNestedDefaultsAreBounded(t *testing.T) {
	var definitions []string
	for i := range 30 {
		next := fmt.Sprintf(`{"$ref":"#/$defs/%d"}`, i+1)
		definitions = append(definitions, fmt.Sprintf(`"%d":{"default":{},"properties":{"a":%s,"b":%[2]s}}`, i, next))
	}
	s := compile(t, `{"type":"object","properties":{"v":{"$ref":"#/$defs/0"}},"$defs":{`+strings.Join(definitions, ",")+`,"30":{}}}`, true)
	got, err := s.CheckAndFill(t.Context(), json.RawMessage(`{"v":{"a":{}}}`))
	if len(got) > 3*maxPreset || err != nil || s.Check(t.Context(), got) != nil {
		t.Errorf("%d bytes: %.200s, %v", len(got), got, err)
	}
}

// TestFilledValuesAreBounded sends many small objects that get a long default each.
func TestFilledValuesAreBounded(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"l":{"items":{"properties":{"n":{"default":"`+strings.Repeat("x", 1000)+`"}}}}}}`, true)
	value := `{"l":[` + strings.Repeat("{},", 1<<16) + `{}]}`
	var err error
	bytes := allocated(func() { _, err = s.CheckAndFill(t.Context(), json.RawMessage(value)) })
	if most := 8 * (BaseFilled + FilledPerByte*len(value)); int(bytes) > most || err == nil || !strings.Contains(err.Error(), "send fewer objects") {
		t.Errorf("%d bytes for %d: %v", bytes, len(value), err)
	}
}
