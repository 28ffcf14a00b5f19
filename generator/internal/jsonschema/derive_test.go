package jsonschema_test

import (
	"context"
	"encoding/json"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	invopop "github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema/testdata/kinds"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
)

// loadedKinds loads package kinds once for all tests.
var loadedKinds = sync.OnceValues(func() (*load.Package, error) {
	dir, err := filepath.Abs("testdata/kinds")
	if err != nil {
		return nil, err
	}
	_, packages, err := load.Load(context.Background(), load.Config{Dir: dir, Patterns: []string{"."}})
	if err != nil {
		return nil, err
	}
	return packages[0], nil
})

// derive returns a function that derives the schema of a type of package kinds.
func derive(t *testing.T) func(name string, use jsonschema.Use) string {
	t.Helper()
	pkg, err := loadedKinds()
	if err != nil {
		t.Fatal(err)
	}
	deriver := jsonschema.New(pkg.Fset, pkg, func(token.Pos, string) {})
	return func(name string, use jsonschema.Use) string {
		t.Helper()
		obj := pkg.Types.Scope().Lookup(name)
		if obj == nil {
			t.Fatalf("no type %s", name)
		}
		return deriver.Derive(obj.Type(), use, obj.Pos(), func(pos token.Pos, message, hint string) {
			t.Errorf("%s: %s; %s", pkg.Fset.Position(pos), message, hint)
		})
	}
}

// normal removes the corrections that derivation makes, which Derive documents.
func normal(value any) any {
	switch v := value.(type) {
	case bool:
		if v {
			return map[string]any{}
		}
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case map[string]any:
		delete(v, "$schema")
		if v["description"] == "In nanoseconds." {
			delete(v, "description")
		}
		if list, ok := v["type"].([]any); ok {
			v["type"] = list[0]
		}
		for key, inner := range v {
			if key != "default" && key != "uniqueItems" && key != "readOnly" {
				v[key] = normal(inner)
			}
		}
	}
	return value
}

func decodeJSON(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

// TestEnumsAdmitWhatIsWritten validates the JSON that encoding/json writes for enums: for zero values, which have the
// nulls, and for values that random text rarely hits. TestShapesAdmitValues has all other types.
func TestEnumsAdmitWhatIsWritten(t *testing.T) {
	schema := derive(t)
	for _, value := range []any{
		kinds.Enums{Rank: kinds.RankB}, kinds.EnumMaps{},
		kinds.Enums{
			Mode: kinds.ModeFast, Level: -1, Modes: []kinds.Mode{"", "slow"}, Nested: [][]kinds.Mode{nil, {"fast"}},
			Tagged: "slow", Typed: "any", Bits: 5, Bytes: []kinds.Ranks{1, 9}, Month: 13, Plain: "any",
		},
		kinds.EnumMaps{
			Values: map[string]kinds.Mode{"a": "", "b": "fast"}, Keys: map[kinds.Mode]int{"": 1, "slow": 2},
			Deep: map[string][]*kinds.Mode{"a": {nil}}, Text: "slow", Page: kinds.Page[kinds.Mode]{Items: []kinds.Mode{"fast"}},
		},
	} {
		for _, use := range []jsonschema.Use{jsonschema.Argument, jsonschema.Result} {
			text := schema(reflect.TypeOf(value).Name(), use)
			sent, refused := encodeSent(t, text, use, value)
			if err := checkSchema(t, text).Validate(decodeJSON(t, sent)); refused != (err != nil) {
				t.Errorf("%s: %v", sent, err)
			}
		}
	}
}

// TestEnumsLikeTags compares the schema derived from constants with the one that invopop
// reflects from a type that names the same choices in its tags.
func TestEnumsLikeTags(t *testing.T) {
	reflector := invopop.Reflector{Anonymous: true, DoNotReference: true}
	reflected, err := json.Marshal(reflector.Reflect(kinds.EnumsByTag{}))
	if err != nil {
		t.Fatal(err)
	}
	want := normal(decodeJSON(t, string(reflected)))
	properties := want.(map[string]any)["properties"].(map[string]any)
	// Tags do not reach the items of an array, or their items.
	modes := []any{"fast", "slow", ""}
	properties["pair"].(map[string]any)["items"].(map[string]any)["enum"] = modes
	properties["nested"].(map[string]any)["items"].(map[string]any)["items"].(map[string]any)["enum"] = modes
	// Reflection requires a pointer without omitempty.
	names, _ := want.(map[string]any)["required"].([]any)
	want.(map[string]any)["required"] = slices.DeleteFunc(names, func(name any) bool { return name == "pointer" })
	properties["bits"] = map[string]any{"type": "integer", "minimum": 0.0, "maximum": 255.0} // flags
	got := normal(decodeJSON(t, derive(t)("Enums", jsonschema.Argument)))
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("schema (-reflection +derived):\n%s", d)
	}
}

// TestEnumsRefuse checks that a schema refuses values that are not in its enum.
func TestEnumsRefuse(t *testing.T) {
	schema := derive(t)
	fine := `{"values": {"a": "fast"}, "keys": {"fast": 1}, "levels": {"-1": [1]}, "quoted": "1", "text": "\"fast\"", "lost": "1", "page": {"Items": ["fast"]}}`
	compiled := checkSchema(t, schema("EnumMaps", jsonschema.Argument))
	if err := compiled.Validate(decodeJSON(t, fine)); err != nil {
		t.Error(err)
	}
	for _, change := range [][2]string{
		{`"a": "fast"`, `"a": "secret"`}, {`{"fast": 1}`, `{"else": 1}`}, {`"-1"`, `"7"`}, {`[1]`, `[7]`},
		{`"quoted": "1"`, `"quoted": "7"`}, {`"quoted": "1"`, `"quoted": 1`}, {`\"fast\"`, `fast`}, {`["fast"]`, `["else"]`},
	} {
		text := strings.Replace(fine, change[0], change[1], 1)
		if err := compiled.Validate(decodeJSON(t, text)); err == nil {
			t.Errorf("%s is admitted", text)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"object"}`:   "",
		`{"type":"array"}`:    `its root has no "type": "object"`,
		`[]`:                  `its root has no "type": "object"`,
		`{`:                   "the file ends inside a JSON value",
		`{"type":"object"} 1`: "there is text after the JSON value",
		`{"type":"object","properties":{"a":{"pattern":"(?i)a"}}}`:                 "write both cases",
		`{"type":"object","properties":{"pattern":{"const":{"pattern":"(?i)a"}}}}`: "",
		`{"type":"object","type":"object"}`:                                        "duplicate member",
		`{"type":"object","required":1}`:                                           "got number, want array",
		`{"type":"object","$ref":"http://example.com"}`:                            "is another document",
	} {
		_, err := jsonschema.Parse([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func checkSchema(t *testing.T, schema string) *validator.Schema {
	t.Helper()
	doc, err := validator.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := validator.NewCompiler()
	if err := c.AddResource("schema:///", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema:///")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}
