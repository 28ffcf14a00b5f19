package validate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func compile(t testing.TB, schema string, formats bool) *Schema {
	t.Helper()
	s, err := Compile(schema, formats)
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return s
}

// property is the schema of an object with one property, v.
func property(schema string) string {
	return `{"type":"object","properties":{"v":` + schema + `}}`
}

func TestNumbersAreBounded(t *testing.T) {
	schemas := map[string]*Schema{}
	for _, schema := range []string{
		`{"minimum":0}`, `{"maximum":9}`, `{"exclusiveMinimum":0}`, `{"exclusiveMaximum":9}`, `{"multipleOf":0.1}`, `{"type":"integer"}`,
		`{"type":"number"}`, `{"const":1}`, `{"enum":[1,2]}`, `{}`, `{"anyOf":[{"type":"string"},{"minimum":1}]}`,
	} {
		schemas[schema] = compile(t, property(schema), false)
	}
	for _, refused := range []struct{ literal, want string }{
		{"1e-9999999", "v: the number 1e-9999999 is out of range"},
		{"1e9999999", "v: the number 1e9999999 is out of range"},
		{"-0E+400", "v: the number -0E+400 is out of range"},
		{"1E400", "out of range: exponents from -307 to 308 are taken"},
		{"1e-308", "out of range"},
		{"5e-324", "out of range"},
		{"0.1e-307", "out of range"},
		{"12e308", "out of range"},
		{"0e309", "out of range"},
		{"1e99999999999999999999999999", "out of range"},
		{"1" + strings.Repeat("0", 5000), "1" + strings.Repeat("0", 63) + "… has 5001 characters: at most 1000 are taken"},
		{"0." + strings.Repeat("0", 999), "has 1001 characters"},
		{"1e" + strings.Repeat("0", 1<<16) + "1", "characters"},
	} {
		for schema, s := range schemas {
			value := json.RawMessage(`{"v":` + refused.literal + `}`)
			err := s.Check(t.Context(), value)
			if Bounded(value) {
				t.Errorf("%s passes for bounded", shorten(refused.literal))
			}
			if err == nil || !strings.Contains(err.Error(), refused.want) || len(err.Error()) > 300 {
				t.Errorf("%s: %s: %v", schema, shorten(refused.literal), err)
			}
		}
	}
	number := compile(t, property(`{"type":"number"}`), false)
	for _, taken := range []string{
		"0", "-0", "-0.0", "1e3", "1E+3", "1e-307", "0e-307", "2.5E-306", "1.7976931348623157e308", "1e0000000000000000000001",
		"1" + strings.Repeat("0", 300) + "e-300", "0." + strings.Repeat("0", 300) + "1e300",
		strings.Repeat("9", 1000), "0." + strings.Repeat("3", 998), "-" + strings.Repeat("7", 400) + "e-200",
	} {
		value := json.RawMessage(`{"v":` + taken + `,"s":"\"1e999[\\"}`)
		if err := number.Check(t.Context(), value); err != nil || !Bounded(value) {
			t.Errorf("%s: %v", taken, err)
		}
	}
	places := compile(t, `{"type":"object"}`, false)
	err := places.Check(t.Context(), json.RawMessage(`{"a":{"b\n":[1,{"c":2},[3,{"x":1e999}]]}}`))
	if err == nil || !strings.HasPrefix(err.Error(), "a.b\n.2.1.x: the number 1e999 ") {
		t.Errorf("%v", err)
	}
}

func TestSchemasHaveTheSameBounds(t *testing.T) {
	for _, schema := range []string{
		property(`{"minimum":1e-9999999}`), property(`{"multipleOf":1e9999999}`), property(`{"enum":[1e-9999999]}`),
		property(strings.Repeat(`{"items":`, 2000) + `{}` + strings.Repeat(`}`, 2000)),
	} {
		if _, err := Compile(schema, false); err == nil {
			t.Errorf("%s is taken", shorten(schema))
		}
	}
}

// TestDynamicReferencesAreRefused checks that a schema whose references depend on those who refer to it does not compile.
func TestDynamicReferencesAreRefused(t *testing.T) {
	for _, schema := range []string{
		property(`{"$dynamicRef":"#"}`), property(`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`),
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","properties":{"v":{"$recursiveRef":"#"}}}`,
	} {
		if _, err := Compile(schema, false); err == nil || !strings.Contains(err.Error(), "use $ref") {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestDepthIsBounded(t *testing.T) {
	s := compile(t, `{"type":"object","additionalProperties":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":"array","items":{"$ref":"#/$defs/n"}}}}`, false)
	nested := func(depth int) json.RawMessage {
		return json.RawMessage(`{"v":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`)
	}
	if err := s.Check(t.Context(), nested(MaxDepth)); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	for _, depth := range []int{MaxDepth + 1, 9000, 1 << 20} {
		if err := s.Check(t.Context(), nested(depth)); err == nil || len(err.Error()) > 300 {
			t.Errorf("depth %d: %v", depth, err)
		}
		if Bounded(nested(depth)) {
			t.Errorf("depth %d passes for bounded", depth)
		}
	}
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestMemoryIsInProportion sends values for which the library takes hundreds of bytes for each byte, or a big number
// for a small literal.
func TestMemoryIsInProportion(t *testing.T) {
	const size = 1 << 18
	fill := func(item string) string { return strings.TrimSuffix(strings.Repeat(item+",", size/(len(item)+1)), ",") }
	members := func(value string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, `"%d":%s,`, i, value)
		}
		return "{" + strings.TrimSuffix(b.String(), ",") + "}"
	}
	for _, tc := range []struct{ name, schema, value string }{
		{"elements of the wrong type", `{"items":{"type":"integer"}}`, `[` + fill(`""`) + `]`},
		{"elements that no alternative takes", `{"items":{"anyOf":[{"type":"integer"},{"type":"null"},{"type":"boolean"}]}}`, `[` + fill(`""`) + `]`},
		{"small fractions as integers", `{"items":{"type":"integer"}}`, `[` + fill(`1e-999999`) + `]`},
		{"fractions within the bound", `{"items":{"type":"integer","minimum":1e-300}}`, `[` + fill(`1e-307`) + `]`},
		{"fractions to divide", `{"items":{"multipleOf":1e-300}}`, `[` + fill(`1e-307`) + `]`},
		{"numbers to count once", `{"uniqueItems":true}`, `[` + fill(`1e300`) + `]`},
		{"no items to contain", `{"contains":{"type":"string","minLength":1}}`, `[` + fill(`1`) + `]`},
		{"members that are not allowed", `{"additionalProperties":false}`, members("1")},
		{"names that are not allowed", `{"propertyNames":{"maxLength":0}}`, members("1")},
		{"values that do not match", `{"items":{"pattern":"^b$"}}`, `["` + strings.Repeat("a", size) + `"]`},
	} {
		s := compile(t, property(tc.schema), false)
		value := json.RawMessage(`{"v":` + tc.value + `}`)
		var err error
		bytes := allocated(func() { err = s.Check(t.Context(), value) })
		if most := uint64(64*len(value)) + 1<<20; bytes > most {
			t.Errorf("%s: %d bytes for %d", tc.name, bytes, len(value))
		}
		if err == nil || len(err.Error()) > 2000 {
			t.Errorf("%s: %.3000v", tc.name, err)
		}
	}
}

// TestFaultsAreFew checks that a check reports the first faults and ends.
func TestFaultsAreFew(t *testing.T) {
	s := compile(t, property(`{"items":{"type":"integer"}}`), false)
	err := s.Check(t.Context(), json.RawMessage(`{"v":["a",1,"b","c","d","e","f","g"]}`))
	const want = "v.0: got string, want integer; v.2: got string, want integer; v.3: got string, want integer; " +
		"v.4: got string, want integer; v.5: got string, want integer; and more"
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	few, _ := s.check(t.Context(), json.RawMessage(`{"v":[`+strings.Repeat(`"",`, 100)+`1]}`), asGiven)
	many, _ := s.check(t.Context(), json.RawMessage(`{"v":[`+strings.Repeat(`"",`, 10_000)+`1]}`), asGiven)
	if few.steps != many.steps {
		t.Errorf("%d steps for 100 wrong elements, %d for 10,000", few.steps, many.steps)
	}
}

// TestProperties checks that the properties at fault are named without anything of the value.
func TestProperties(t *testing.T) {
	s := compile(t, `{"type":"object","required":["stages","level"],"properties":{
		"level":{"enum":[1,2]},
		"stages":{"type":"array","items":{"type":"object","required":["name"],"properties":{"name":{"minLength":3}}}},
		"labels":{"type":"object","propertyNames":{"maxLength":9},"additionalProperties":{"type":"object","properties":{"n":{"type":"integer"}}}},
		"closed":{"type":"object","additionalProperties":false}}}`, false)
	for value, want := range map[string][]string{
		`{"level":0,"stages":[]}`: {"level"},
		`{"level":1,"stages":[{"name":"abc"},{"name":"x"},{},{"name":"y"}]}`: {"stages[].name"},
		`{}`: {"stages", "level"},
		`{"level":1,"stages":[],"labels":{"secret":{"n":"secret"}}}`:                         {"labels.*.n"},
		`{"level":1,"stages":[],"labels":{"long secret":{}}}`:                                {"labels.*"},
		`{"level":1,"stages":[],"closed":{"secret":1}}`:                                      {"closed"},
		`{"level":1,"stages":[],"level":2}`:                                                  nil,
		`{"level":3,"stages":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`: nil,
		`[]`: nil,
	} {
		_, properties, err := s.CheckResult(t.Context(), json.RawMessage(value))
		if err == nil || !slices.Equal(properties, want) {
			t.Errorf("%.200s: %q, %.200v", value, properties, err)
		}
	}
	if _, properties, err := s.CheckResult(t.Context(), json.RawMessage(`{"level":1,"stages":[]}`)); err != nil || properties != nil {
		t.Errorf("%q, %v", properties, err)
	}
	var many []string
	for n := range 100 {
		many = append(many, fmt.Sprintf("%q", "p"+strings.Repeat("x", n)))
	}
	s = compile(t, `{"type":"object","required":[`+strings.Join(many, ",")+`]}`, false)
	if _, properties, err := s.CheckResult(t.Context(), json.RawMessage(`{}`)); err == nil || len(properties) != MaxFaults {
		t.Errorf("%q, %v", properties, err)
	}
}

// TestStepsAreInProportion sends values that take the library exponential or quadratic time.
func TestStepsAreInProportion(t *testing.T) {
	tree := `{"type":"object","properties":{"v":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[` +
		`{"type":"array","items":{"$ref":"#/$defs/n"}},{"type":"array","items":{"$ref":"#/$defs/n"}},{"type":"null"}]}}}`
	unique := `{"type":"object","properties":{"v":{"$ref":"#/$defs/n"}},"$defs":{"n":{"uniqueItems":true,"items":{"$ref":"#/$defs/n"}}}}`
	numbers := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d,", i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for _, tc := range []struct {
		name, schema, value string
		gaveUp              bool
	}{
		{"nested alternatives", tree, strings.Repeat("[", 900) + "1" + strings.Repeat("]", 900), true},
		{"nested lists without repetitions", unique, strings.Repeat("[[0],", 900) + numbers(20_000) + strings.Repeat("]", 900), true},
		{"many items without repetitions", unique, "[" + numbers(100_000) + "]", false},
	} {
		s := compile(t, tc.schema, false)
		value := json.RawMessage(`{"v":` + tc.value + `}`)
		c, err := s.check(t.Context(), value, asGiven)
		if errors.Is(err, errSteps) != tc.gaveUp {
			t.Errorf("%s: %v", tc.name, err)
		}
		if most := BaseSteps + StepsPerByte*len(value) + pollEvery + len(value); c.steps > most {
			t.Errorf("%s: %d steps for %d bytes", tc.name, c.steps, len(value))
		}
	}
}

// leaving is a context that is cancelled after some looks at it.
type leaving struct {
	context.Context
	looks int
}

func (l *leaving) Err() error {
	if l.looks--; l.looks < 0 {
		return context.Canceled
	}
	return nil
}

func TestCheckStopsWithItsCaller(t *testing.T) {
	s := compile(t, property(`{"items":{"type":"integer"}}`), false)
	value := json.RawMessage(`{"v":[` + strings.Repeat("1,", 1<<19) + `1]}`)
	whole, err := s.check(t.Context(), value, asGiven)
	if err != nil {
		t.Fatal(err)
	}
	looks := &leaving{Context: t.Context(), looks: 1 << 30}
	_, _ = read(looks, value)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone"))
	part, err := s.check(&leaving{ctx, 1<<30 - looks.looks + 3}, value, asGiven)
	if err == nil || err.Error() != "gone" || part.steps == 0 || part.steps > whole.steps/10 {
		t.Errorf("%d of %d steps, %v", part.steps, whole.steps, err)
	}
	if err := s.Check(ctx, value); err == nil || err.Error() != "gone" {
		t.Errorf("%v", err)
	}
}

func TestRepeatedMembersAreRefused(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"limits":{"properties":{"n":{"maximum":9}}}}}`, false)
	many := `{"limits":{`
	for i := range 50 {
		many += fmt.Sprintf(`"m%d":0,`, i)
	}
	for _, value := range []string{`{"limits":{"n":99},"limits":{}}`, `{"limits":{},"lim\u0069ts":{}}`, many + `"m7":1}}`, many + `"m\u0037":1}}`} {
		if err := s.Check(t.Context(), json.RawMessage(value)); err == nil || !strings.Contains(err.Error(), "limits") || !strings.Contains(err.Error(), "twice") {
			t.Errorf("%s: %v", value, err)
		}
	}
	if err := s.Check(t.Context(), json.RawMessage(many+`"limits":{"m7":1}}}`)); err != nil {
		t.Error(err)
	}
}

func TestNotJSON(t *testing.T) {
	s := compile(t, `{"type":"object"}`, false)
	for _, value := range []string{``, ` `, `{`, `{"n":1}{}`, `{"a":01}`, `nul`, "\x00", `{"a":}`, `[`, `"`, `{"a":1e}`} {
		if err := s.Check(t.Context(), json.RawMessage(value)); err == nil || !strings.HasPrefix(err.Error(), "it is not JSON: ") {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func TestPlainIntegers(t *testing.T) {
	for value, want := range map[string]string{
		`{"a":1.0,"b":[1e2, -12.50e1,0.0,-0.0],"1.0":"1.0\" 1e2"}`: `{"a":1,"b":[100, -125,0,0],"1.0":"1.0\" 1e2"}`,
		`9007199254740993.0`:  `9007199254740993`,
		`1e308`:               "1" + strings.Repeat("0", 308),
		`[1.5,1e-1,7,0.10e1]`: `[1.5,1e-1,7,1]`,
		`1.5`:                 `1.5`, `1e309`: `1e309`, `1e99999999999999999999`: `1e99999999999999999999`, `""`: `""`, ``: ``,
	} {
		plain, changed := PlainIntegers(json.RawMessage(value))
		if string(plain) != want || changed != (value != want) {
			t.Errorf("%s: %s, %v", value, plain, changed)
		}
	}
	many := "[" + strings.Repeat("1e308,", 100_000) + "1.0]"
	plain, _ := PlainIntegers(json.RawMessage(many))
	if len(plain) > 2*len(many)+MaxGrowth || !strings.HasSuffix(string(plain), ",1e308,1]") || !json.Valid(plain) {
		t.Errorf("%d bytes of %d", len(plain), len(many))
	}
}

// TestFormatsAreAsserted checks that a fault of a format names its place and shows a value that fits.
func TestFormatsAreAsserted(t *testing.T) {
	for format, bad := range map[string]string{
		"date": "2026-02-30", "date-time": "noon", "duration": "1h30m", "email": "ann", "hostname": "-a", "ipv4": "1.2.3", "ipv6": "::g",
		"iri": "/a", "iri-reference": "%", "json-pointer": "a", "period": "PT1H", "relative-json-pointer": "a", "semver": "1", "time": "15:04",
		"uri": "/a", "uri-reference": "%", "uri-template": "{", "uuid": "7",
	} {
		s := compile(t, property(fmt.Sprintf(`{"type":"string","format":%q}`, format)), true)
		err := s.Check(t.Context(), json.RawMessage(fmt.Sprintf(`{"v":%q}`, bad)))
		want := fmt.Sprintf("v: %q is not a valid %s: write one such as ", bad, format)
		example, ok := strings.CutPrefix(fmt.Sprint(err), want)
		if !ok {
			t.Errorf("%v, want %s…", err, want)
		}
		if err := s.Check(t.Context(), json.RawMessage(fmt.Sprintf(`{"v":%q}`, example))); err != nil {
			t.Errorf("the example: %v", err)
		}
	}
}

// TestFaultsAreInWordsOfJSON checks the words for each keyword.
func TestFaultsAreInWordsOfJSON(t *testing.T) {
	for _, tc := range []struct{ schema, value, want string }{
		{`{"type":"string"}`, `7`, `v: got number, want string`},
		{`{"type":["string","null"]}`, `{}`, `v: got object, want null or string`},
		{`{"type":"integer"}`, `1.5`, `v: got 1.5, want integer`},
		{`{"type":"integer","maximum":4294967295}`, `4294967296`, `v: got 4294967296, want at most 4294967295`},
		{`{"minimum":-9007199254740991}`, `-9007199254740992`, `v: got -9007199254740992, want at least -9007199254740991`},
		{`{"maximum":1e300}`, `12e300`, `v: got 12e300, want at most 1e+300`},
		{`{"minimum":0.000125}`, `-1.25E-9`, `v: got -1.25E-9, want at least 0.000125`},
		{`{"exclusiveMinimum":0}`, `0.0`, `v: got 0.0, want more than 0`},
		{`{"exclusiveMaximum":12.5e-30}`, `1`, `v: got 1, want less than 1.25e-29`},
		{`{"multipleOf":0.01}`, `0.005`, `v: got 0.005, want a multiple of 0.01`},
		{`{}`, `0e99999999999`, `v: the number 0e99999999999 is out of range: exponents from -307 to 308 are taken`},
		{`{"minLength":2}`, `"é"`, `v: got 1 character, want at least 2`},
		{`{"maxLength":2}`, `"abc"`, `v: got 3 characters, want at most 2`},
		{`{"pattern":"^\\d+\\.\"$"}`, `"a\"\\b"`, `v: "a\"\\b" does not match the pattern ^\d+\."$`},
		{`{"enum":["a","<b>",null,7,[1]]}`, `"c"`, `v: got "c", want "a", "<b>", null, 7 or [1]`},
		{`{"enum":[1]}`, `{"a":2}`, `v: got object, want 1`},
		{`{"const":{"a":1.50}}`, `"a"`, `v: got "a", want {"a":1.50}`},
		{`{"minItems":2}`, `[1]`, `v: got 1 item, want at least 2`},
		{`{"maxItems":0}`, `[1,2]`, `v: got 2 items, want at most 0`},
		{`{"prefixItems":[true],"items":false}`, `[1,2]`, `v.1: no value is allowed here`},
		{`{"uniqueItems":true}`, `[1,2,1.0]`, `v: items 0 and 2 are equal, want all different`},
		{`{"contains":{"const":1},"minContains":2}`, `[1]`, `v: got 1 fitting item, want at least 2`},
		{`{"contains":{"const":1}}`, `[]`, `v: got 0 fitting items, want at least 1`},
		{`{"contains":{"const":1},"maxContains":1}`, `[1,1]`, `v: got more fitting items, want at most 1`},
		{`{"required":["a"]}`, `{}`, `v: missing property "a"`},
		{`{"required":["a","b\"c"]}`, `{}`, `v: missing properties "a", "b\"c"`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `v: missing property "b", which "a" needs`},
		{`{"additionalProperties":false}`, `{"a'":1}`, `v: additional property "a'" is not allowed`},
		{`{"additionalProperties":false,"patternProperties":{"^\\d+$":true,"^x":true}}`, `{"a":1}`, `v: additional property "a" is not allowed: names match the pattern ^\d+$ or ^x`},
		{`{"additionalProperties":false}`, `{"a":1,"b":1}`, `v: additional properties "a", "b" are not allowed`},
		{`{"minProperties":1}`, `{}`, `v: got 0 members, want at least 1`},
		{`{"maxProperties":1}`, `{"a":1,"b":1}`, `v: got 2 members, want at most 1`},
		{`{"propertyNames":{"maxLength":2}}`, `{"abc":1}`, `v.abc: its name: got 3 characters, want at most 2`},
		{`{"not":{"type":"string"}}`, `"a"`, `v: its schema excludes this value`},
		{`{"oneOf":[{"type":"string"},{"minLength":1},{"type":"number"}]}`, `"a"`, `v: it fits alternatives 1 and 2 of its schema, want only one`},
		{`{"oneOf":[{"type":"integer","minimum":1},{"type":"null"}]}`, `0`, `v: got 0, want at least 1`},
		{`{"anyOf":[{"type":"integer","minimum":1},{"type":"null"}]}`, `"0"`, `v: got string, want integer or null`},
		{`{"oneOf":[{"const":"a","title":"A"},{"const":"b"},{"type":["integer","null"]}]}`, `"c"`, `v: got "c", want "a" or "b"`},
		{`{"oneOf":[{"const":"a"},{"const":"b"},{"type":"null"}]}`, `7`, `v: got 7, want "a", "b" or null`},
		{`{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"string"}]}`, `[1,2]`, `v.0: got number, want string; v.1: got number, want string`},
		{`{"format":"regex"}`, `"("`, `v: "(" is not a valid regex: missing closing )`},
	} {
		err := compile(t, property(tc.schema), true).Check(t.Context(), json.RawMessage(`{"v":`+tc.value+`}`))
		if fmt.Sprint(err) != tc.want {
			t.Errorf("%s: %s: %v, want %s", tc.schema, tc.value, err, tc.want)
		}
	}
}

// TestNamesThatDifferInCase sends names that encoding/json takes for those of properties.
func TestNamesThatDifferInCase(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"limit":{"maximum":10},"o":{"properties":{"Name":{}}},"p":{"required":["n"]}},"patternProperties":{"^LIM":{}}}`, true)
	for value, want := range map[string]string{
		`{"limit":3,"other":1}`:        "",
		`{"p":{"n":1}}`:                "",
		`{"limit":3,"Limit":1000}`:     `Limit: the name differs from "limit" only in case`,
		`{"o":{"Name":1,"names":2}}`:   "",
		`{"o":{"Name":1},"x":{"o":1}}`: "",
		`{"LIMIT":1000}`:               `LIMIT: the name differs from "limit" only in case`,
		`{"o":{"name":1}}`:             `o.name: the name differs from "Name" only in case`,
	} {
		_, err := s.CheckAndFill(t.Context(), json.RawMessage(value))
		if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
		if err := s.Check(t.Context(), json.RawMessage(value)); err != nil {
			t.Errorf("%s does not fit the schema: %v", value, err)
		}
	}
}
