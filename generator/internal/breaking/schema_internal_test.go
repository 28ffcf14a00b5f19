package breaking

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
)

func parse(t *testing.T, text string) *jsontree.Node {
	t.Helper()
	n, err := jsontree.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

// describe returns faults as "kind path", with commas between them.
func describe(faults []fault) string {
	var texts []string
	for _, f := range faults {
		texts = append(texts, strings.TrimSpace(f.kind+" "+strings.Join(f.path, ".")))
	}
	return strings.Join(texts, ", ")
}

// object returns the schema of an object: p is its properties, and required its required ones.
func object(p string, required ...string) string {
	list, _ := json.Marshal(append([]string{}, required...))
	return `{"type":"object","properties":{` + p + `},"required":` + string(list) + `,"additionalProperties":false}`
}

// TestSchemas compares pairs of schemas in both directions. Input is what old arguments meet in the new schema, and result
// what readers of the old schema meet in new results.
func TestSchemas(t *testing.T) {
	const str, num, list = `"a":{"type":"string"}`, `"a":{"type":"integer"}`, `"a":{"type":"array","items":{"type":"string"}}`
	a := func(schema string) string { return object(`"a":` + schema) }
	defs := func(ref, def string) string {
		return `{"$ref":"` + ref + `","$defs":{"T":` + def + `}}`
	}
	tree := func(leaf string) string {
		return defs("#/$defs/T", object(`"left":{"$ref":"#/$defs/T"},"leaf":`+leaf))
	}
	for _, test := range []struct{ name, old, now, input, result string }{
		// Members.
		{"equal", object(str), object(str), "", ""},
		{"annotations", a(`{"type":"string","description":"x","default":"y","title":"t"}`), object(str), "", ""},
		{"a property named title", object(`"title":{"type":"string"}`), object(`"title":{"type":"integer"}`), "type title", "type title"},
		{"new and optional", object(``), object(str), "", "form a"},
		{"new and required", object(``), object(str, "a"), "required a", "form a"},
		{"required now", object(str), object(str, "a"), "required a", ""},
		{"optional now", object(str, "a"), object(str), "", "optional a"},
		{"gone", object(str), object(``), "gone a", "gone a"},
		{"gone and required", object(str, "a"), object(``), "gone a", "gone a"},
		{"renamed", object(str), object(`"b":{"type":"string"}`, "b"), "required b, gone a", "gone a, form b"},
		{"order", object(str+`,"b":{}`, "a", "b"), object(`"b":{},`+str, "b", "a"), "", ""},
		{"gone from an open object", `{"properties":{"a":{"type":"string"}}}`, `{"properties":{}}`, "gone a", "gone a"},
		{"false before", a(`false`), object(``), "", "gone a"},
		{"closed", `{"type":"object"}`, object(``), "form", ""},
		{"opened", object(``), `{"type":"object"}`, "", "form"},
		{"more members", `{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"object","additionalProperties":{"type":"integer"}}`, "type *", "type *"},
		{"map to struct", `{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"object","properties":{"a":{"type":"integer"}}}`, "type a", "type a, type *"},
		{"nested", a(object(``)), a(object(`"b":{}`, "b")), "required a.b", "form a.b"},
		{"in a list", a(`{"type":"array","items":` + object(``) + `}`), a(`{"type":"array","items":` + object(`"b":{}`, "b") + `}`), "required a.[].b", "form a.[].b"},
		{"fewer members", `{"type":"object","maxProperties":3}`, `{"type":"object","maxProperties":2}`, "bounds", ""},
		{"patterns of names", `{"type":"object"}`, `{"type":"object","propertyNames":{"pattern":"^a"}}`, "form", ""},
		// Types.
		{"another type", object(str), object(num), "type a", "type a"},
		{"integer to number", object(num), a(`{"type":"number"}`), "", "type a"},
		{"number to integer", a(`{"type":"number"}`), object(num), "type a", ""},
		{"null too", object(str), a(`{"type":["string","null"]}`), "", "type a"},
		{"null no more", a(`{"type":["string","null"]}`), object(str), "", ""},
		{"null no more, required", object(`"a":{"type":["string","null"]}`, "a"), object(str, "a"), "type a", ""},
		{"null no more, a required list", object(`"a":{"type":["array","null"],"items":{"type":["string","null"]}}`, "a"), object(list, "a"), "type a.[]", ""},
		{"null no more, a required map", object(`"a":{"anyOf":[{"type":"object","additionalProperties":{"type":["string","null"]}},{"type":"null"}]}`, "a"), object(`"a":{"type":"object","additionalProperties":{"type":"string"}}`, "a"), "", ""},
		{"null no more, of a choice", a(`{"type":["string","null"],"enum":["x",null]}`), a(`{"type":"string","enum":["x"]}`), "", ""},
		{"anything now", object(str), a(`{}`), "", "type a"},
		{"anything before", a(`{}`), object(str), "type a", ""},
		{"true", a(`true`), object(str), "type a", ""},
		{"refused", object(str), a(`false`), "form a", ""},
		{"list of another type", object(list), a(`{"type":"array","items":{"type":"integer"}}`), "type a.[]", "type a.[]"},
		{"one to list", object(str), object(list), "type a", "type a"},
		{"types in another order", a(`{"type":["null","string"]}`), a(`{"type":["string","null"]}`), "", ""},
		{"no type for the same", a(`{"minLength":1}`), a(`{"type":["string","number","boolean","null","array","object"],"minLength":1}`), "", ""},
		// Values.
		{"a value more", a(`{"enum":["x"]}`), a(`{"enum":["x","y"]}`), "", "values a"},
		{"a value less", a(`{"enum":["x","y"]}`), a(`{"enum":["x"]}`), "values a", ""},
		{"enum now", object(str), a(`{"type":"string","enum":["x"]}`), "values a", ""},
		{"no enum now", a(`{"type":"string","enum":["x"]}`), object(str), "", "values a"},
		{"const to enum", a(`{"const":"x"}`), a(`{"enum":["x","y"]}`), "", "values a"},
		{"enum order", a(`{"enum":["x","y"]}`), a(`{"enum":["y","x"]}`), "", ""},
		{"values within bounds", a(`{"enum":["x","y"]}`), a(`{"type":"string","minLength":1}`), "", "values a"},
		{"values beyond bounds", a(`{"enum":["","y"]}`), a(`{"type":"string","minLength":1}`), "values a", "values a"},
		{"value of another type", a(`{"type":"string","enum":["x",1]}`), a(`{"type":"string","enum":["x"]}`), "", ""},
		{"boolean and both values", a(`{"type":"boolean"}`), a(`{"enum":[true,false]}`), "", ""},
		{"boolean and one value", a(`{"type":"boolean"}`), a(`{"type":"boolean","const":true}`), "values a", ""},
		{"boolean and null", a(`{"type":["boolean","null"]}`), a(`{"enum":[true,false,null]}`), "", ""},
		{"integer and its values", a(`{"enum":[1,2]}`), a(`{"type":"integer","maximum":1}`), "values a", "values a"},
		// Bounds.
		{"minimum new", object(num), a(`{"type":"integer","minimum":1}`), "bounds a", ""},
		{"minimum gone", a(`{"type":"integer","minimum":1}`), object(num), "", ""},
		{"minimum up", a(`{"type":"integer","minimum":1}`), a(`{"type":"integer","minimum":2}`), "bounds a", ""},
		{"maximum down", a(`{"type":"integer","maximum":9}`), a(`{"type":"integer","maximum":8.5}`), "bounds a", ""},
		{"maximum up", a(`{"type":"integer","maximum":9}`), a(`{"type":"integer","maximum":10}`), "", ""},
		{"maximum as float", a(`{"type":"integer","maximum":10}`), a(`{"type":"integer","maximum":1e1}`), "", ""},
		{"maximum of 64 bits", a(`{"type":"integer","maximum":9223372036854775807}`), a(`{"type":"integer","maximum":9223372036854775806}`), "bounds a", ""},
		{"exclusive now", a(`{"type":"number","minimum":1}`), a(`{"type":"number","exclusiveMinimum":1}`), "bounds a", ""},
		{"exclusive before", a(`{"type":"number","exclusiveMinimum":1}`), a(`{"type":"number","minimum":1}`), "", ""},
		{"exclusive at the stricter of two", a(`{"type":"number","minimum":3,"exclusiveMinimum":1}`), a(`{"type":"number","exclusiveMinimum":3}`), "bounds a", ""},
		{"between them", a(`{"type":"number","minimum":3,"exclusiveMinimum":1}`), a(`{"type":"number","exclusiveMinimum":2.5}`), "", ""},
		{"exclusive below", a(`{"type":"number","minimum":2}`), a(`{"type":"number","exclusiveMinimum":1}`), "", ""},
		{"exclusive before, of integers", a(`{"type":"integer","exclusiveMinimum":0}`), a(`{"type":"integer","minimum":1}`), "", ""},
		{"exclusive before, of numbers", a(`{"type":"number","exclusiveMinimum":0}`), a(`{"type":"number","minimum":1}`), "bounds a", ""},
		{"exclusive maximum of integers", a(`{"type":"integer","exclusiveMaximum":-1}`), a(`{"type":"integer","maximum":-2}`), "", ""},
		{"exclusive maximum up to it", a(`{"type":"integer","exclusiveMaximum":5}`), a(`{"type":"integer","maximum":3}`), "bounds a", ""},
		{"fraction of integers", a(`{"type":"integer","minimum":-1.5}`), a(`{"type":"integer","exclusiveMinimum":-2}`), "", ""},
		{"multiple of less", a(`{"type":"integer","multipleOf":4}`), a(`{"type":"integer","multipleOf":2}`), "", ""},
		{"multiple of more", a(`{"type":"number","multipleOf":0.1}`), a(`{"type":"number","multipleOf":0.2}`), "bounds a", ""},
		{"multiple", object(num), a(`{"type":"integer","multipleOf":2}`), "bounds a", ""},
		{"shorter", a(`{"type":"string","maxLength":9}`), a(`{"type":"string","maxLength":8}`), "bounds a", ""},
		{"not empty now", object(str), a(`{"type":"string","minLength":1}`), "bounds a", ""},
		{"at least none", object(str), a(`{"type":"string","minLength":0}`), "", ""},
		{"fewer items", object(list), a(`{"type":"array","items":{"type":"string"},"maxItems":2}`), "bounds a", ""},
		{"unique items", object(list), a(`{"type":"array","items":{"type":"string"},"uniqueItems":true}`), "bounds a", ""},
		{"bound of another type", object(str), a(`{"type":"string","minimum":3}`), "", ""},
		{"tuple", a(`{"type":"array","prefixItems":[{"type":"string"}]}`), a(`{"type":"array","prefixItems":[{"type":"integer"}]}`), "type a.[]", "type a.[]"},
		{"tuple of draft 7", a(`{"type":"array","items":[{"type":"string"}]}`), a(`{"type":"array","items":[{"type":"integer"}]}`), "form a", "form a"},
		{"the same tuple of draft 7", a(`{"type":"array","items":[{"type":"string"}]}`), a(`{"type":"array","items":[{"type":"string","title":"x"}],"minItems":0}`), "", ""},
		{"other items of draft 7", a(`{"type":"array","items":[true]}`), a(`{"type":"array","items":[true],"additionalItems":false}`), "form a", ""},
		{"list to tuple of draft 7", object(list), a(`{"type":"array","items":[{"type":"integer"}]}`), "form a", "type a.[]"},
		// Form.
		{"dependencies", `{"type":"object"}`, `{"type":"object","dependencies":{"title":["b"]}}`, "form", ""},
		{"other dependencies", `{"type":"object","dependencies":{}}`, `{"type":"object","dependencies":{"title":["b"]}}`, "form", "form"},
		{"pattern new", object(str), a(`{"type":"string","pattern":"^a"}`), "form a", ""},
		{"pattern changed", a(`{"type":"string","pattern":"^b"}`), a(`{"type":"string","pattern":"^a"}`), "form a", ""},
		{"pattern gone", a(`{"type":"string","pattern":"^b"}`), object(str), "", ""},
		{"format new", object(str), a(`{"type":"string","format":"date-time"}`), "form a", ""},
		{"format gone", a(`{"type":"string","format":"date-time"}`), object(str), "", "type a"},
		{"not", object(str), a(`{"type":"string","not":{"const":"x"}}`), "form a", ""},
		{"not as before", a(`{"type":"string","not":{"const":"x"}}`), a(`{"type":"string","not":{"const":"x"},"minLength":0}`), "", ""},
		// Combinations.
		{"a branch more", a(`{"anyOf":[{"type":"string"}]}`), a(`{"anyOf":[{"type":"string"},{"type":"null"}]}`), "", "type a"},
		{"a branch less", a(`{"anyOf":[{"type":"string"},{"type":"boolean"}]}`), a(`{"anyOf":[{"type":"string"}]}`), "type a", ""},
		{"types to branches", a(`{"type":["string","null"]}`), a(`{"anyOf":[{"type":"null"},{"type":"string"}]}`), "", ""},
		{"branches in another order", a(`{"oneOf":[{"type":"null"},{"type":"string"}]}`), a(`{"oneOf":[{"type":"string"},{"type":"null"}]}`), "", ""},
		{"change in the only branch that fits", a(`{"anyOf":[{"type":"null"},` + object(``) + `]}`), a(`{"anyOf":[{"type":"null"},` + object(`"b":{}`, "b") + `]}`), "required a.b", "form a.b"},
		{"two branches that do not fit", a(`{"type":"string"}`), a(`{"anyOf":[{"type":"string","maxLength":2},{"type":"string","minLength":9}]}`), "form a", ""},
		{"allOf", a(`{"allOf":[{"type":"string"},{"minLength":3}]}`), a(`{"type":"string","minLength":2}`), "", ""},
		{"allOf more", object(str), a(`{"allOf":[{"type":"string"},{"minLength":3}]}`), "bounds a", ""},
		{"allOf of objects", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"required":["a"]}]}`, object(str, "a"), "form", ""},
		// References.
		{"inlined", defs("#/$defs/T", object(str)), object(str), "", ""},
		{"changed definition", defs("#/$defs/T", object(str)), defs("#/$defs/T", object(num)), "type a", "type a"},
		{"other name", defs("#/$defs/T", object(str)), `{"$ref":"#/$defs/U","$defs":{"U":` + object(str) + `}}`, "", ""},
		{"with text beside", `{"$ref":"#/$defs/T","description":"x","$defs":{"T":` + object(str) + `}}`, object(str), "", ""},
		{"recursive", tree(`{"type":"string"}`), tree(`{"type":"string","title":"x"}`), "", ""},
		{"recursive and changed", tree(`{"type":"string"}`), tree(`{"type":"integer"}`), "type leaf", "type leaf"},
		{"of itself", `{"$ref":"#"}`, `{"$ref":"#","description":"x"}`, "", ""},
		{"to a property", `{"properties":{"a":{"$ref":"#/properties/b"},"b":{"type":"string"}}}`, `{"properties":{"a":{"$ref":"#/properties/b"},"b":{"type":"integer"}}}`, "type a, type b", "type a, type b"},
		{"lost reference", object(str), a(`{"$ref":"#/$defs/X"}`), "form a", "form a"},
		{"elsewhere", object(str), a(`{"$ref":"https://example.com/x"}`), "form a", "form a"},
		{"escaped", `{"$ref":"#/$defs/a~1b","$defs":{"a/b":` + object(str) + `}}`, object(str), "", ""},
	} {
		old, now := parse(t, test.old), parse(t, test.now)
		if got := describe(findInputFaults(old, now, true)); got != test.input {
			t.Errorf("%s: as input %q, want %q", test.name, got, test.input)
		}
		if got := describe(findResultFaults(old, now)); got != test.result {
			t.Errorf("%s: as result %q, want %q", test.name, got, test.result)
		}
	}
}

// FuzzSchemas compares any two schemas. A schema fits itself, with a title too. If an old value fits the old schema and not
// the new one, there is a fault.
func FuzzSchemas(f *testing.F) {
	for _, seed := range [][3]string{
		{object(`"a":{"type":"string"}`), object(`"a":{"type":"string"}`, "a"), `{}`},
		{`{"anyOf":[{"type":"null"},{"$ref":"#/$defs/T"}],"$defs":{"T":{"allOf":[{"minimum":1},{"$ref":"#"}]}}}`, `{"enum":[1,null]}`, `null`},
		{`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"}}}`, `{"not":{}}`, `1`},
		{`{"type":["string","array"],"items":{"const":1},"prefixItems":[true]}`, `{"oneOf":[{"type":"string"},{"type":"array","maxItems":1}]}`, `[1,1]`},
		{`{"type":"number","minimum":1e999999999}`, `{"type":"number","exclusiveMinimum":-1}`, `5`},
		{`{"patternProperties":{"^a":{"type":"string"}},"additionalProperties":false}`, `{"type":"object","minProperties":1}`, `{}`},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, oldText, nowText, value string) {
		old, err := jsontree.Parse([]byte(oldText))
		if err != nil {
			return
		}
		now, err := jsontree.Parse([]byte(nowText))
		if err != nil {
			return
		}
		titled := old
		if old.Kind == jsontree.Object {
			titled = old.Without("title")
			titled.Set("title", jsontree.NewString("x"))
		}
		if got := append(findInputFaults(old, titled, true), findResultFaults(old, titled)...); len(got) > 0 {
			t.Errorf("%s does not fit itself: %v", oldText, got)
		}
		findResultFaults(old, now)
		faults := findInputFaults(old, now, false)
		from, err := old.CompileSchema()
		if err != nil {
			return
		}
		to, err := now.CompileSchema()
		v, valueErr := jsontree.Parse([]byte(value))
		if err != nil || valueErr != nil || len(faults) > 0 {
			return
		}
		if from.Refuse(v) == "" && to.Refuse(v) != "" {
			t.Errorf("%s fits %s and not %s, and there is no fault", value, oldText, nowText)
		}
	})
}
