package validate

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// TestNulls checks what a null stands for in arguments, and in a result.
func TestNulls(t *testing.T) {
	const list, dict, bytes = `{"type":"array","minItems":1,"items":{"type":"string"}}`, `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"type":"string","contentEncoding":"base64"}`
	const refused = ""
	for _, c := range []struct{ name, schema, value, arguments, result string }{
		{"no null", `{"properties":{"a":{"type":"string"}}}`, `{ "a" : "null" }`, `{ "a" : "null" }`, `{ "a" : "null" }`},
		{"an optional value", `{"properties":{"a":{"type":"string"}}}`, `{"a":null}`, `{}`, refused},
		{"a required value", `{"properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":null}`, refused, refused},
		{"with a default", `{"properties":{"a":{"type":"string","default":"b"}}}`, `{"a":null}`, `{"a":"b"}`, refused},
		{"of an enum", `{"properties":{"a":{"enum":["b"]}}}`, `{"a":null}`, `{}`, refused},
		{"that is admitted", `{"properties":{"a":{"type":["string","null"],"default":"b"},"c":{},"d":{"enum":[null]}}}`, `{"a":null,"c":null,"d":null}`, `{"a":null,"c":null,"d":null}`, `{"a":null,"c":null,"d":null}`},
		{"of a name without a schema", `{"additionalProperties":false}`, `{"a":null}`, refused, refused},
		{"the first", `{"properties":{"a":{"type":"string"}}}`, `{ "a" : null , "b": 1}`, `{  "b": 1}`, refused},
		{"the last", `{"properties":{"a":{"type":"string"}}}`, `{"b": 1 , "a" : null }`, `{"b": 1  }`, refused},
		{"most", `{"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"}}}`, `{"a":null,"b":null,"x":1,"c":null,"y":2,"d":null}`, `{"x":1,"y":2}`, refused},
		{"all", `{"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, `{"a":null,"b":null}`, `{}`, refused},
		{"an optional list", `{"properties":{"a":` + list + `}}`, `{"a":null}`, `{}`, refused},
		{"a required list with a bound", `{"properties":{"a":` + list + `},"required":["a"]}`, `{"a":null}`, refused, refused},
		{"a required list", `{"properties":{"a":{"type":"array"}},"required":["a"]}`, `{"a":null}`, `{"a":[]}`, `{"a":[]}`},
		{"a required map", `{"properties":{"a":` + dict + `},"required":["a"]}`, `{"a":null}`, `{"a":{}}`, `{"a":{}}`},
		{"required bytes", `{"properties":{"a":` + bytes + `},"required":["a"]}`, `{"a":null}`, `{"a":""}`, `{"a":""}`},
		{"a required object", `{"properties":{"a":{"type":"object","properties":{"b":{}}}},"required":["a"]}`, `{"a":null}`, refused, refused},
		{"in a map", `{"properties":{"a":` + dict + `}}`, `{"a":{"b":null,"c":1}}`, `{"a":{"c":1}}`, refused},
		{"in a map of lists", `{"properties":{"a":{"type":"object","additionalProperties":{"type":"array"}}}}`, `{"a":{"b":null}}`, `{"a":{"b":[]}}`, `{"a":{"b":[]}}`},
		{"in a list", `{"properties":{"a":` + list + `}}`, `{"a":["b",null]}`, refused, refused},
		{"in a list of lists", `{"properties":{"a":{"type":"array","items":{"type":"array"}}}}`, `{"a":[null,[1],null]}`, `{"a":[[],[1],[]]}`, `{"a":[[],[1],[]]}`},
		{"in a list of objects", `{"properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"string"}}}}}}`, `{"a":[{"b":null},{"b":"c"}]}`, `{"a":[{},{"b":"c"}]}`, refused},
		{"by references", `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"allOf":[{"type":"array"}]}}}`, `{"a":null}`, `{}`, `{"a":[]}`},
		{"in itself", `{"properties":{"a":{"$ref":"#"},"b":{"type":"string"}}}`, `{"a":{"a":{"b":null}}}`, `{"a":{"a":{}}}`, refused},
	} {
		s := compile(t, `{"type":"object",`+c.schema[1:], false)
		check := func(what, want string, got json.RawMessage, err error) {
			if want == refused && err == nil || want != refused && (err != nil || string(got) != want) {
				t.Errorf("%s, in %s: %s, %v, want %q", c.name, what, got, err, want)
			}
		}
		got, err := s.CheckAndFill(t.Context(), json.RawMessage(c.value))
		check("arguments", c.arguments, got, err)
		got, _, err = s.CheckResult(t.Context(), json.RawMessage(c.value))
		check("a result", c.result, got, err)
		plain := s.PlainArguments(json.RawMessage(c.value))
		if filled, err := s.CheckAndFill(t.Context(), plain); c.arguments != refused && (string(filled) != c.arguments || err != nil) {
			t.Errorf("%s: %s is sent, which is read as %s, %v, want %s", c.name, plain, filled, err, c.arguments)
		}
	}
}

// TestNullsAreEditedOnce edits random values by random schemas: what comes out is JSON without such nulls, and all that
// fitted before still fits.
func TestNullsAreEditedOnce(t *testing.T) {
	edited := 0
	for seed := range uint64(6000) {
		random := rand.New(rand.NewPCG(seed, 41))
		data := make([]byte, 60+random.IntN(200))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		c := &choices{data: data}
		s, err := Compile(`{"type":"object","allOf":[`+c.schema()+`]}`, false)
		value := json.RawMessage(`{"a":` + c.value() + `,"b":null,"c":[null,` + c.value() + `,{"a":null,"x1":null}]}`)
		if err != nil {
			continue
		}
		plain := s.PlainArguments(value)
		if again := s.PlainArguments(plain); !json.Valid(plain) || string(again) != string(plain) {
			t.Fatalf("seed %d: %s becomes %s, and then %s", seed, value, plain, again)
		}
		if string(plain) != string(value) {
			edited++
			if s.Check(t.Context(), value) == nil {
				t.Fatalf("seed %d: %s fits, and becomes %s", seed, value, plain)
			}
		}
	}
	if edited < 100 {
		t.Errorf("only %d values were edited", edited)
	}
}

// TestPlainAnswer checks which members of a form say that a property is left out.
func TestPlainAnswer(t *testing.T) {
	const schema = `{"type":"object","required":["must"],"properties":{
		"must":{"type":"string","enum":["a"]},
		"listed":{"type":"string","enum":["a","b"],"default":"a"},
		"none":{"type":"string","enum":["","b"]},
		"titled":{"type":"string","oneOf":[{"const":"a","title":"A"}]},
		"any":{"anyOf":[{"const":"a"},{"const":"b"}]},
		"text":{"type":"string"},
		"short":{"type":"string","minLength":1},
		"count":{"type":"integer"},
		"nullable":{"type":["string","null"],"enum":["a",null]}}}`
	compiled, err := Compile(schema, true)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{ // "" for an object that stays as it is
		`{"listed":"","titled":"","any":"","text":"<"}`:   `{"text":"<"}`,
		`{"listed":null,"text":null,"count":null}`:        `{}`,
		`{"must":"","none":"","text":"","short":""}`:      "",
		`{"must":null,"nullable":null,"more":null}`:       "",
		`{"nullable":"","count":""}`:                      `{"count":""}`,
		`{"listed":"c","titled":" ","any":0,"count":"x"}`: "",
		`{"listed":"","listed":"a"}`:                      "",
		`[""]`:                                            "",
		`{`:                                               "",
	} {
		if want == "" {
			want = value
		}
		if got := string(compiled.PlainAnswer(t.Context(), json.RawMessage(value))); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}
