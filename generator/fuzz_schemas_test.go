package generator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/constant"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// schemaSeeds returns schemas with unusual content, and those of the revisions.
func schemaSeeds(tb testing.TB) [][]byte {
	tb.Helper()
	var seeds [][]byte
	for _, schema := range []string{
		`{"type":"object"}`,
		`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["a"]}`,
		`{"type":"object","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"properties":{"x":{"$ref":"#/$defs/a"}}}`,
		`{"type":"object","$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":["array","null"],"items":[{}]}},"properties":{"x":{"$ref":"#/definitions/a"}}}`,
		`{"type":"object","$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`,
		`{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","$id":"http://x/y","$anchor":"z","properties":{"a":{"$dynamicRef":"#z"}}}`,
		`{"type":"object","properties":{"a":{"minimum":1e400,"maximum":-1E+99999,"multipleOf":0.1,"default":123456789012345678901234567890}}}`,
		`{"type":"object","properties":{"a":{"pattern":"(["},"b":{"pattern":"(?!x)"},"c":{"minLength":1e2,"maxLength":-1}}}`,
		`{"type":"object","properties":{"a":{"enum":[]},"b":{"enum":[1,1.0,"1",null,{},[]]},"c":{"const":{"a":"` + "`" + `\ufeff\u2028"}}}}`,
		`{"type":"object","type":"object","properties":{"a":1,"a":NaN,"b":-0,"c":01}}`,
		`{"type":"object","patternProperties":{"^x":{"type":"string"},"(":true},"additionalProperties":{"not":{}},"dependentSchemas":{"a":false}}`,
		`{"type":"object","if":{"required":["a"]},"then":{"properties":{"a":{"format":"ipv4"}}},"else":false,"propertyNames":{"maxLength":3}}`,
		`{"type":"object","allOf":[{"$ref":"#/allOf/0"}],"$ref":"other.json#/a","unevaluatedProperties":false}`,
		`{"type":"object","anyOf":[{"anyOf":[{"properties":{"a":{"const":"x"}}},{"properties":{"a":{"const":2}}}]},{"required":["b"]}]}`,
		`{"type":"object","title":"t","description":"[a]: b\n- c\n\n    e\n# f\n//g","properties":{"":{},"-":{},"a,b":{},"\u0000":{"description":"\u001b[31m"}}}`,
		`{"type":"object","properties":{"d":` + strings.Repeat(`{"items":`, 60) + `{}` + strings.Repeat(`}`, 60) + `}}`,
		`[]`, `true`, `null`, ``, `{"type":"object"} x`, "\xef\xbb\xbf{\"type\":\"object\"}", `{"type":["object"]}`,
	} {
		seeds = append(seeds, []byte(schema))
	}
	paths, err := filepath.Glob("../schema/*/tasks.schema.json")
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no seeds: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		seeds = append(seeds, text)
	}
	return seeds
}

// FuzzSchemas checks any schema, in a file that a declaration names and in a list of tools. The
// constant in generated code is the same JSON value as the file.
func FuzzSchemas(f *testing.F) {
	for _, seed := range schemaSeeds(f) {
		f.Add(seed)
	}
	w := newWorkshop(f)
	source := []byte(`package p

import "context"

//mcptask:service
type S interface {
	//mcptask:tool schema=a.json outputschema=a.json
	Run(ctx context.Context, in In) (In, error)
}

type In struct{}
`)
	f.Fuzz(func(t *testing.T, schema []byte) {
		if err := os.WriteFile(filepath.Join(w.dir, "a.json"), schema, 0o600); err != nil {
			t.Fatal(err)
		}
		if content := w.checkDeclaration(t, source); content != nil {
			pkg := w.checkGo(t, source, content)
			checkConst(t, pkg, "sRunArguments", schema)
			checkConst(t, pkg, "sRunResult", schema)
		}
		w.checkList(t, "p", "S", listOf(schema))
	})
}

// FuzzTools checks any list of tools.
func FuzzTools(f *testing.F) {
	lists, err := filepath.Glob("../golden/tools/*/*.json")
	if err != nil || len(lists) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range lists {
		list, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(list)
	}
	for _, schema := range []string{
		`{"$ref":"#"}`, `{"type":"object","properties":{"a":{"$ref":"#"},"b":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["a"]}`,
		`{"anyOf":[{"anyOf":[{"properties":{"a":{"const":"x"}}},{"properties":{"a":{"const":2}}}]},{"required":["b"]}]}`,
		`{"$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}},"properties":{"a":{"$ref":"#/$defs/a"}}}`,
		`{"allOf":[{"properties":{"a":{"enum":["b"]}}},{"properties":{"a":{"type":"integer"}}}],"additionalProperties":{"type":["null"]}}`,
		`{"properties":{"a":{"description":"[a]: b\n- c\n1. d\n\n    e\n# f\n//g"},"fields":{"items":[{}]},"v":{"prefixItems":[1]}}}`,
		`{"properties":{"err":{"enum":["nil","","\u0000","A","a"]}},"patternProperties":{"a":{"enum":["x"]}}}`,
	} {
		f.Add(listOf([]byte(schema)))
	}
	w := newWorkshop(f)
	f.Fuzz(func(t *testing.T, list []byte) { w.checkList(t, "p", "", list) })
}

// listOf returns a list with one tool whose input and output have a schema.
func listOf(schema []byte) []byte {
	return fmt.Appendf(nil, `[{"name":"a","inputSchema":%s,"outputSchema":%[1]s}]`, schema)
}

// checkConst compares a constant with the JSON that it was generated from.
func checkConst(tb testing.TB, pkg *types.Package, name string, want []byte) {
	tb.Helper()
	obj, ok := pkg.Scope().Lookup(name).(*types.Const)
	if !ok {
		tb.Fatalf("no constant %s", name)
	}
	got := constant.StringVal(obj.Val())
	if !reflect.DeepEqual(exactly(tb, []byte(got)), exactly(tb, bytes.TrimPrefix(want, []byte("\ufeff")))) {
		tb.Fatalf("%s\n-- becomes --\n%s", want, got)
	}
}

// exactly decodes a JSON value and keeps the text of its numbers.
func exactly(tb testing.TB, text []byte) (value any) {
	tb.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		tb.Fatalf("%v\n%s", err, text)
	}
	return value
}
