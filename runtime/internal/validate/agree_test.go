package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// library compiles a schema as Compile does, for the library's own verdict.
func library(schema string) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("schema:tool", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema:tool")
}

// choices draws a schema or a value from bytes, so that a fuzzer shapes both.
type choices struct {
	data  []byte
	depth int
}

func (c *choices) pick(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % n
}

func (c *choices) of(values ...string) string { return values[c.pick(len(values))] }

func (c *choices) list(most int, item func() string) string {
	var items []string
	for range c.pick(most + 1) {
		items = append(items, item())
	}
	return strings.Join(items, ",")
}

func (c *choices) name() string { return c.of("a", "b", "c", "x1", "", "ü") }

func (c *choices) number() string {
	return c.of("0", "1", "2", "-1", "1.0", "0.1", "1e2", "100", "1.50", "15e-1", "-0", "1e-3", "12345678901234567890", "0.30", "2.5E1", "-2.5")
}

func (c *choices) string() string {
	return c.of(`"a"`, `""`, `"ab"`, `"\u0061"`, `"ü"`, `"2024-02-29T10:00:00Z"`, `"x1"`, `"`+"\xff"+`"`, `"a\"b"`, `"(["`)
}

// value draws a JSON value whose objects have no member twice.
func (c *choices) value() string {
	if c.depth++; c.depth > 6 {
		return "null"
	}
	defer func() { c.depth-- }()
	switch c.pick(8) {
	case 0:
		return c.of("null", "true", "false")
	case 1, 2:
		return c.number()
	case 3, 4:
		return c.string()
	case 5:
		return "[" + c.list(4, c.value) + "]"
	}
	members := map[string]bool{}
	var list []string
	for range c.pick(5) {
		if name := c.name(); !members[name] {
			members[name] = true
			list = append(list, fmt.Sprintf("%q:%s", name, c.value()))
		}
	}
	return "{" + strings.Join(list, ",") + "}"
}

// schema draws a schema of 2020-12.
func (c *choices) schema() string {
	if c.depth++; c.depth > 5 {
		return c.of("true", "false", "{}")
	}
	defer func() { c.depth-- }()
	keywords := map[string]string{}
	small := func() string { return c.of("0", "1", "2", "3") }
	schemas := func() string { return "[" + c.schema() + strings.TrimSuffix(","+c.list(2, c.schema), ",") + "]" }
	named := func(value func() string) string {
		members := map[string]string{}
		for range 1 + c.pick(3) {
			members[c.name()] = value()
		}
		var list []string
		for name, value := range members {
			list = append(list, fmt.Sprintf("%q:%s", name, value))
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	names := func() string { return c.of(`["a"]`, `["a","b"]`, `["x1"]`, `[]`) }
	for range c.pick(5) {
		switch c.pick(33) {
		case 0, 1:
			keywords["type"] = c.of(`"object"`, `"array"`, `"string"`, `"number"`, `"integer"`, `"null"`, `["string","null"]`, `["array","object"]`, `["integer","boolean"]`)
		case 2, 3:
			keywords["properties"] = named(c.schema)
		case 4:
			keywords["required"] = names()
		case 5:
			keywords["additionalProperties"] = c.schema()
		case 6:
			keywords["patternProperties"] = fmt.Sprintf(`{%q:%s}`, c.of("^x", "a|b", "."), c.schema())
		case 7:
			keywords["propertyNames"] = c.schema()
		case 8:
			keywords[c.of("minProperties", "maxProperties")] = small()
		case 9:
			keywords["dependentRequired"] = named(names)
		case 10:
			keywords["dependentSchemas"] = named(c.schema)
		case 11, 12:
			keywords["items"] = c.schema()
		case 13:
			keywords["prefixItems"] = schemas()
		case 14:
			keywords[c.of("minItems", "maxItems")] = small()
		case 15:
			keywords["uniqueItems"] = "true"
		case 16:
			keywords["contains"] = c.schema()
		case 17:
			keywords["contains"], keywords[c.of("minContains", "maxContains")] = c.schema(), small()
		case 18:
			keywords[c.of("minLength", "maxLength")] = small()
		case 19:
			keywords["pattern"] = c.of(`"^a"`, `"b"`, `"ü"`)
		case 20, 21:
			keywords[c.of("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")] = c.number()
		case 22:
			keywords["multipleOf"] = c.of("1", "0.1", "2", "0.5", "1e-3")
		case 23:
			keywords["const"] = c.value()
		case 24:
			keywords["enum"] = "[" + c.value() + strings.TrimSuffix(","+c.list(3, c.value), ",") + "]"
		case 25:
			keywords["format"] = c.of(`"date-time"`, `"regex"`, `"ipv4"`, `"unknown"`)
		case 26:
			keywords[c.of("allOf", "anyOf", "oneOf")] = schemas()
		case 27:
			keywords["not"] = c.schema()
		case 28:
			keywords["if"], keywords[c.of("then", "else")] = c.schema(), c.schema()
		case 29:
			keywords["unevaluatedProperties"], keywords[c.of("allOf", "anyOf", "oneOf")] = c.schema(), schemas()
		case 30:
			keywords["unevaluatedItems"], keywords[c.of("allOf", "anyOf", "oneOf")] = c.schema(), schemas()
		case 31:
			keywords["$ref"] = c.of(`"#/$defs/tree"`, `"#/$defs/list"`, `"#/$defs/drawn"`, `"#/properties/v"`)
		case 32:
			keywords["default"] = c.value()
		}
	}
	var list []string
	for name, value := range keywords {
		list = append(list, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(list, ",") + "}"
}

// root draws a schema with the definitions that others refer to.
func (c *choices) root() string {
	return `{"type":"object","properties":{"v":` + c.schema() + `},"$defs":{` +
		`"tree":{"anyOf":[{"type":"object","additionalProperties":{"$ref":"#/$defs/tree"}},{"type":["number","string"]}]},` +
		`"list":{"type":"array","items":{"$ref":"#/$defs/list"},"uniqueItems":true},` +
		`"drawn":` + c.schema() + `}}`
}

// agree compares the verdict of a check with that of the library.
func agree(t testing.TB, data []byte) {
	t.Helper()
	c := &choices{data: data}
	schema := c.root()
	theirs, err := library(schema)
	if err != nil {
		return // such as a reference that leads nowhere
	}
	ours, err := Compile(schema, true)
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	for range 3 {
		value := `{"v":` + c.value() + `}`
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
		if err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		c, got := ours.check(t.Context(), json.RawMessage(value), asGiven)
		if steps := c.steps; steps > BaseSteps+StepsPerByte*len(value)+2*pollEvery {
			t.Fatalf("%s\n%s: %d steps", schema, value, steps)
		}
		if errors.Is(got, errSteps) {
			continue
		}
		if want := theirs.Validate(doc); (got == nil) != (want == nil) {
			t.Fatalf("schema %s\nvalue %s\nlibrary: %v\ncheck: %v", schema, value, want, got)
		}
		if got != nil && got.Error() == "" {
			t.Fatalf("schema %s\nvalue %s: a fault without words", schema, value)
		}
		// A value with defaults filled in fits too, also if it was not checked again.
		plain := ours.PlainArguments(json.RawMessage(value))
		_, got = ours.check(t.Context(), plain, asGiven)
		filled, err := ours.CheckAndFill(t.Context(), json.RawMessage(value))
		_, again := ours.check(t.Context(), filled, asGiven)
		if got != nil && err == nil || len(filled) < len(plain) || err == nil && again != nil && !errors.Is(again, errSteps) {
			t.Fatalf("schema %s\nvalue %s: filled %s, %v, %v", schema, value, filled, err, again)
		}
	}
}

// TestAgreesWithLibrary compares verdicts over schemas and values at random, always the same.
func TestAgreesWithLibrary(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 800 {
		data := make([]byte, 40+random.IntN(400))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		agree(t, data)
	}
}

// FuzzAgree compares verdicts over schemas and values that the fuzzer shapes.
func FuzzAgree(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		data := make([]byte, 200)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		agree(t, data[:min(len(data), 2000)])
	})
}

// fuzzSchemas have the keywords that hostile values aim at.
var fuzzSchemas = []string{
	property(`{"type":"integer","minimum":0,"maximum":100}`),
	property(`{"items":{"type":"number","multipleOf":0.01,"exclusiveMinimum":-1e300}}`),
	property(`{"items":{"enum":["a",1,null,{"a":[1]}]},"uniqueItems":true,"contains":{"const":1.5}}`),
	property(`{"additionalProperties":false,"properties":{"a":{"type":"string","pattern":"^(a|b)*$","maxLength":9}},"required":["a","b"]}`),
	property(`{"patternProperties":{"^x":{"maxProperties":2}},"propertyNames":{"maxLength":5},"unevaluatedProperties":{"type":"integer"}}`),
	`{"type":"object","properties":{"v":{"$ref":"#/$defs/n"}},"$defs":{"n":{"uniqueItems":true,"anyOf":[` +
		`{"type":"array","items":{"$ref":"#/$defs/n"}},{"type":"object","additionalProperties":{"$ref":"#/$defs/n"}},{"type":"array","items":{"$ref":"#/$defs/n"}},{"type":"null"}]}}}`,
	`{"type":"object","properties":{"v":{"$ref":"#"}},"unevaluatedProperties":false,"oneOf":[{"required":["v"]},{"properties":{"w":{"$ref":"#"}}}]}`,
	property(`{"format":"regex","not":{"minLength":3}}`),
	property(`{"contains":{"type":"integer"},"minContains":2,"maxContains":3,"unevaluatedItems":{"type":"string"}}`),
	property(`{"anyOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"integer"}}}],"unevaluatedProperties":false}`),
}

// FuzzCheck checks that no value costs more than its bytes allow, and that benign values get the library's verdict.
func FuzzCheck(f *testing.F) {
	for _, value := range []string{
		`7`, `1e-9999999`, `1E400`, `-0`, `[1e-307,1e308,100.00,-0.0]`, strings.Repeat("9", 2000), `0.` + strings.Repeat("0", 900) + `1`,
		`["a",1,1.0,null]`, `[1,"a",2,3,4]`, `[1,2,3]`, `[1,2,3,4]`, `[0.01,0.02,"x"]`, `{"a":1,"b":1}`, `{"a":"x","b":1}`, `{"a":1,"b":1,"c":1}`, `{"a":"abab","c":1,"c":2}`, `{"x":{"a":1,"b":2,"c":3},"toolong":1.5}`,
		strings.Repeat(`[`, 60) + strings.Repeat(`]`, 60), strings.Repeat(`[[],`, 40) + `{}` + strings.Repeat(`]`, 40), strings.Repeat(`{"v":`, 1200) + `1` + strings.Repeat(`}`, 1200),
		`[` + strings.Repeat(`"",`, 300) + `{}]`, `"((a{100}){100}){100}"`, `{"properties":{"a":{"type":"nonsense"}}}`, `"` + "\xff\\ud800" + `"`,
	} {
		f.Add(value)
	}
	ours := make([]*Schema, len(fuzzSchemas))
	theirs := make([]*jsonschema.Schema, len(fuzzSchemas))
	for i, schema := range fuzzSchemas {
		ours[i] = compile(f, schema, true)
		var err error
		if theirs[i], err = library(schema); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, value string) {
		data := json.RawMessage(`{"v":` + value + `}`)
		for i := range ours {
			c, err := ours[i].check(t.Context(), data, asGiven)
			if steps := c.steps; steps > BaseSteps+StepsPerByte*len(data)+2*pollEvery+len(data) {
				t.Errorf("%s: %d steps for %d bytes", fuzzSchemas[i], steps, len(data))
			}
			if err != nil && len(err.Error()) > 4000 {
				t.Errorf("%s: %d bytes of faults", fuzzSchemas[i], len(err.Error()))
			}
			// The library may spend hours on a value that is refused at a bound.
			_, beyond := read(t.Context(), data)
			if json.Valid(data) && Bounded(data) != (beyond == nil) {
				t.Errorf("%s: bounded %v, read %v", data, Bounded(data), beyond)
			}
			if beyond != nil || errors.Is(err, errSteps) || len(data) > 2000 || bytes.Count(data, []byte("[")) > 12 || err != nil && strings.HasSuffix(err.Error(), "twice") {
				continue
			}
			doc, _ := jsonschema.UnmarshalJSON(bytes.NewReader(data))
			if want := theirs[i].Validate(doc); (err == nil) != (want == nil) {
				t.Errorf("schema %s\nvalue %s\nlibrary: %v\ncheck: %v", fuzzSchemas[i], data, want, err)
			}
		}
	})
}
