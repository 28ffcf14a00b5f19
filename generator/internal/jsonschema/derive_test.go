package jsonschema_test

import (
	"context"
	"encoding/json"
	"go/token"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	invopop "github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema/testdata/kinds"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
)

// loadedKinds are the kinds, loaded once for all tests.
var loadedKinds = sync.OnceValues(loadKinds)

func loadKinds() (*load.Package, error) {
	dir, err := filepath.Abs("testdata/kinds")
	if err != nil {
		return nil, err
	}
	_, packages, err := load.Load(context.Background(), load.Config{Dir: dir, Patterns: []string{"."}, Output: "none.go"})
	if err != nil {
		return nil, err
	}
	return packages[0], nil
}

// derive returns a function that derives the schema of one of the kinds.
func derive(t *testing.T) func(name string, use jsonschema.Use) string {
	t.Helper()
	pkg, err := loadedKinds()
	if err != nil {
		t.Fatal(err)
	}
	return deriveIn(t, pkg)
}

// deriveIn is derive in a package that is loaded.
func deriveIn(t *testing.T, pkg *load.Package) func(name string, use jsonschema.Use) string {
	t.Helper()
	deriver := jsonschema.New(pkg.Fset, pkg)
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

// TestAdmitsWhatIsWritten validates what encoding/json writes, of zero values above all: there are
// the nulls.
func TestAdmitsWhatIsWritten(t *testing.T) {
	schema := derive(t)
	text := "x"
	for _, value := range []any{
		kinds.Scalars{}, kinds.Collections{}, kinds.Known{}, kinds.Embedding{}, kinds.Generic{}, kinds.Anonymous{},
		kinds.Corrected{}, kinds.Enums{Rank: kinds.RankB}, kinds.EnumMaps{},
		kinds.Enums{
			Mode: kinds.ModeFast, Level: -1, Modes: []kinds.Mode{"", "slow"}, Nested: [][]kinds.Mode{nil, {"fast"}},
			Tagged: "slow", Typed: "any", Bits: 5, Bytes: []kinds.Ranks{1, 9}, Month: 13, Plain: "any",
		},
		kinds.EnumMaps{
			Values: map[string]kinds.Mode{"a": "", "b": "fast"}, Keys: map[kinds.Mode]int{"": 1, "slow": 2},
			Deep: map[string][]*kinds.Mode{"a": {nil}}, Text: "slow", Page: kinds.Page[kinds.Mode]{Items: []kinds.Mode{"fast"}},
		},
		kinds.Collections{
			Nested: [][]string{nil, {"a"}}, Bytes: []byte("b"), Structs: []kinds.Inner{{B: &kinds.Inner2{}}},
			Ptrs: []*kinds.Inner{nil, {}}, Pointer: &text, Deep: map[string][]kinds.Inner{"a": nil},
			Octets: [2]byte{1}, Loose: []*uint8{nil, new(uint8)},
		},
		kinds.Known{Time: time.Now(), Any: 1, Raw: json.RawMessage(`[1]`)},
		kinds.Corrected{
			IP: net.ParseIP("::1"), URL: url.URL{Scheme: "https", User: url.User("u")}, Addr: netip.MustParseAddr("10.0.0.1"),
			Numbers: map[int]string{-1: "a", 1: "b"}, Small: map[uint8]string{3: "c"},
			Addrs: map[netip.Addr]int{netip.MustParseAddr("::1"): 1}, Lazy: &kinds.Lazy{},
		},
	} {
		name := reflect.TypeOf(value).Name()
		t.Run(name, func(t *testing.T) {
			written, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			for _, use := range []jsonschema.Use{jsonschema.Argument, jsonschema.Result} {
				if err := checkSchema(t, schema(name, use)).Validate(decodeJSON(t, string(written))); err != nil {
					t.Errorf("%s: %v", written, err)
				}
			}
		})
	}
}

// TestEnumsLikeTags compares what is derived from constants with what invopop reflects of a type that
// names the same choices in its tags.
func TestEnumsLikeTags(t *testing.T) {
	reflector := invopop.Reflector{Anonymous: true, DoNotReference: true}
	reflected, err := json.Marshal(reflector.Reflect(kinds.EnumsByTag{}))
	if err != nil {
		t.Fatal(err)
	}
	want := normal(decodeJSON(t, string(reflected)))
	properties := want.(map[string]any)["properties"].(map[string]any)
	// Tags do not reach the items of an array, nor those of the items.
	modes := []any{"fast", "slow", ""}
	properties["pair"].(map[string]any)["items"].(map[string]any)["enum"] = modes
	properties["nested"].(map[string]any)["items"].(map[string]any)["items"].(map[string]any)["enum"] = modes
	// Reflection does not see that nil is written as null.
	properties["pointer"].(map[string]any)["enum"] = []any{-1.0, 0.0, 1.0, nil}
	got := normal(decodeJSON(t, derive(t)("Enums", jsonschema.Argument)))
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("schema (-reflection +derived):\n%s", d)
	}
}

// TestEnumsRefuse: an enum is all there is.
func TestEnumsRefuse(t *testing.T) {
	schema := derive(t)
	fine := `{"values": {"a": "fast"}, "keys": {"fast": 1}, "levels": {"-1": [1]}, "quoted": "1", "text": "\"fast\"", "lost": null, "page": {"Items": ["fast"]}}`
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

func TestClosedAndOpen(t *testing.T) {
	schema := derive(t)
	more := decodeJSON(t, `{"id": "1", "inner": {"A": 1, "more": 1}, "Own": "", "more": true}`)
	if err := checkSchema(t, schema("Embedding", jsonschema.Argument)).Validate(more); err == nil {
		t.Error("an argument that does not exist is admitted")
	}
	if err := checkSchema(t, schema("Embedding", jsonschema.Result)).Validate(more); err != nil {
		t.Errorf("a result with more members is refused: %v", err)
	}
}

func TestDeterministic(t *testing.T) {
	first := derive(t)("Collections", jsonschema.Argument)
	for range 5 {
		if again := derive(t)("Collections", jsonschema.Argument); again != first {
			t.Fatal(cmp.Diff(first, again))
		}
	}
	anew, err := loadKinds()
	if err != nil {
		t.Fatal(err)
	}
	if again := deriveIn(t, anew)("Collections", jsonschema.Argument); again != first {
		t.Fatal(cmp.Diff(first, again))
	}
	if strings.Contains(first, "$schema") || strings.Contains(first, "$id") {
		t.Error("the root has $schema or $id")
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"object"}`:                 "",
		`{"type":"array"}`:                  `its root has no "type": "object"`,
		`[]`:                                `its root has no "type": "object"`,
		`{`:                                 "it is not JSON",
		`{"type":"object"} 1`:               "it is not JSON",
		`{"type":"object","type":"object"}`: "duplicate member",
		`{"type":"object","required":1}`:    "not valid against metaschema",
		`{"type":"object","$ref":"http://example.com"}`: "no URLLoader",
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
