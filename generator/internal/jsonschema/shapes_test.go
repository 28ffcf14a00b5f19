package jsonschema_test

import (
	"encoding/json"
	"fmt"
	"go/types"
	"maps"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	invopop "github.com/invopop/jsonschema"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema/testdata/kinds"
)

// shapes are the types, by name, whose schemas are compared with reflection and with values.
var shapes = named(
	kinds.Scalars{}, kinds.Collections{}, kinds.Known{}, kinds.Inner{}, kinds.Inner2{}, kinds.Base{}, kinds.Embedding{},
	kinds.Generic{}, kinds.Anonymous{}, kinds.Corrected{}, kinds.Shadow{}, kinds.Lazy{},
	kinds.Bools{}, kinds.Signed{}, kinds.Unsigned{}, kinds.Floats{}, kinds.Strings{}, kinds.Quoted{}, kinds.Omits{},
	kinds.Named{}, kinds.Unexported{}, kinds.Empty{}, kinds.OnlyHidden{}, kinds.Slices{}, kinds.Arrays{}, kinds.Maps{},
	kinds.IntMaps{}, kinds.TextMaps{}, kinds.Bytes{}, kinds.Pointers{}, kinds.Times{}, kinds.Raws{}, kinds.JSONNumbers{},
	kinds.Anys{}, kinds.Addrs{}, kinds.URLs{}, kinds.Bigs{}, kinds.Levels{}, kinds.Texts{},
	kinds.EmbedsTwo{}, kinds.EmbedsDeep{}, kinds.EmbedsPointer{}, kinds.EmbedsPointerDeep{}, kinds.EmbedsNamed{},
	kinds.EmbedsAlias{}, kinds.EmbedsGeneric{}, kinds.EmbedsOther{}, kinds.EmbedsHidden{}, kinds.EmbedsHiddenNamed{},
	kinds.EmbedsScalar{}, kinds.EmbedsInterface{}, kinds.Overrides{}, kinds.Conflicts{}, kinds.ConflictA{}, kinds.ConflictB{},
	kinds.Tree{}, kinds.Ring{}, kinds.Link{}, kinds.HoldsTrees{}, kinds.TreeOfTrees{}, kinds.OtherNode{}, kinds.Node{},
	kinds.EmbedsItself{}, kinds.EmbedsNameless{}, kinds.EmbedsPointerToList{}, kinds.Lists{}, kinds.Letters{}, kinds.Ärger{}, kinds.Öl{}, kinds.Rose{}, kinds.Pairs{}, kinds.GenericAliases{}, kinds.Ranges{}, kinds.NamedInstance{},
	kinds.Redefined{}, kinds.RedefinedTwice{}, kinds.Aliases{}, kinds.Others{}, kinds.Nameless{},
	kinds.Tags{}, kinds.TextTags{}, kinds.NumberTags{}, kinds.TypeTags{}, kinds.RequiredTags{},
)

// instances are the types whose names are aliases.
var instances = map[string]reflect.Type{
	"IntTree": reflect.TypeFor[kinds.IntTree](), "PageOfInner": reflect.TypeFor[kinds.PageOfInner](),
	"PageOfPages": reflect.TypeFor[kinds.PageOfPages](), "Alias": reflect.TypeFor[kinds.Alias](),
}

// byTag are the types whose tags allow less than the Go type does.
var byTag = []string{"Tags", "TextTags", "NumberTags", "TypeTags", "RequiredTags"}

// argumentsOnly are the types that no result may have.
var argumentsOnly = []string{"RequiredTags"}

func named(values ...any) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, v := range values {
		all[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	maps.Copy(all, instances)
	return all
}

// TestShapesAreAll checks that every struct of package kinds is tested.
func TestShapesAreAll(t *testing.T) {
	elsewhere := []string{"Enums", "EnumsByTag", "EnumMaps", "Declared", "Dec", "Money", "Point", "Listed", "MyTime"} // see TestEnumsLikeTags and TestDeclared
	loaded, err := loadedKinds()
	if err != nil {
		t.Fatal(err)
	}
	scope := loaded.Types.Scope()
	for _, name := range scope.Names() {
		obj, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || !obj.Exported() || slices.Contains(elsewhere, name) {
			continue
		}
		_, isStruct := obj.Type().Underlying().(*types.Struct)
		n, isNamed := types.Unalias(obj.Type()).(*types.Named)
		if alias, ok := obj.Type().(*types.Alias); ok && alias.TypeParams().Len() > 0 {
			continue
		}
		if isStruct && isNamed && n.TypeParams().Len() == n.TypeArgs().Len() && n.Obj().Name() != "Code" && n.Obj().Name() != "ByPointer" &&
			(shapes[name] == nil && shapes[n.Obj().Name()] == nil) {
			t.Errorf("%s is not among the shapes", name)
		}
	}
	if len(shapes) < 60 {
		t.Errorf("%d shapes, want 60 or more", len(shapes))
	}
}

// eachShape derives the schema of every shape for both uses.
func eachShape(t *testing.T, except []string, test func(t *testing.T, rt reflect.Type, text string, use jsonschema.Use)) {
	t.Helper()
	derive := derive(t)
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		if slices.Contains(except, name) {
			continue
		}
		for _, use := range []jsonschema.Use{jsonschema.Argument, jsonschema.Result} {
			if use == jsonschema.Result && slices.Contains(argumentsOnly, name) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, use), func(t *testing.T) { test(t, shapes[name], derive(name, use), use) })
		}
	}
}

// TestShapesLikeReflection compares every schema with the one that invopop reflects from the
// compiled type, except for the differences that [jsonschema.Deriver.Derive] documents. It
// checks that null is admitted exactly for nil pointers in results.
func TestShapesLikeReflection(t *testing.T) {
	except := []string{
		"EmbedsItself", "EmbedsNameless", // reflection does not end
		"Corrected", // reflection mistakes a hidden field for the one that hides it
	}
	eachShape(t, except, func(t *testing.T, rt reflect.Type, text string, use jsonschema.Use) {
		data, err := json.Marshal(reflector(use == jsonschema.Result).ReflectFromType(rt))
		if err != nil {
			t.Fatal(err)
		}
		d := differ{T: t, want: decodeJSON(t, string(data)).(map[string]any), got: decodeJSON(t, text).(map[string]any), seen: map[string]bool{}, use: use}
		d.compare(rt.Name(), d.want, d.got, rt, member{})
		if t.Failed() {
			t.Logf("reflected:\n%s\nderived:\n%s", data, text)
		}
	})
}

// reflector returns invopop's reflector, corrected as far as its options allow for types that
// encode themselves.
func reflector(open bool) *invopop.Reflector {
	r := &invopop.Reflector{Anonymous: true, AllowAdditionalProperties: open}
	r.Namer = func(t reflect.Type) string {
		if t.Name() == "" {
			return ""
		}
		return t.PkgPath() + "." + t.Name()
	}
	r.Mapper = func(t reflect.Type) *invopop.Schema {
		switch {
		case t == reflect.TypeFor[json.Number]():
			return &invopop.Schema{Type: "number"}
		case t == reflect.TypeFor[big.Int]():
			return &invopop.Schema{Type: "integer"}
		case t.String() != "time.Time" && writesText(t):
			return &invopop.Schema{Type: "string"}
		}
		return nil
	}
	return r
}

// differ compares two schemas that may contain themselves, each with its own $defs.
type differ struct {
	*testing.T

	want, got map[string]any
	seen      map[string]bool
	use       jsonschema.Use
}

func (d *differ) compare(path string, w, g any, rt reflect.Type, m member) {
	d.Helper()
	want, isSchema := w.(map[string]any)
	if w == true {
		want, isSchema = map[string]any{}, true
	}
	got, ok := g.(map[string]any)
	if !isSchema || !ok {
		if !cmp.Equal(w, g) {
			d.Errorf("%s: derived %v, reflected %v", path, g, w)
		}
		return
	}
	// Pairs that were compared before count as equal, so that the comparison of recursive types ends.
	key := fmt.Sprintf("%p %p %v %v", want, got, rt, m)
	if d.seen[key] {
		return
	}
	d.seen[key] = true
	want, got = maps.Clone(resolve(d.want, want)), maps.Clone(resolve(d.got, got))
	got = d.withoutNull(path, got, rt, m)
	for rt != nil && rt.Kind() == reflect.Pointer {
		rt = rt.Elem()
	}
	addBounds(want, rt)
	if m.quoted && want["type"] == "string" && want["enum"] == nil { // TestShapesReadWhatTheyAdmit has values of both
		delete(got, "pattern")
		delete(got, "enum")
	}
	for _, keyword := range []string{"$schema", "$defs"} {
		delete(want, keyword)
		delete(got, keyword)
	}
	if want["description"] == nil {
		delete(got, "description") // comments, which reflection does not see
	}
	if want["additionalProperties"] == true && got["additionalProperties"] == nil {
		delete(want, "additionalProperties")
	}
	isMap := rt != nil && rt.Kind() == reflect.Map && !writesText(rt)
	if patterns, ok := got["patternProperties"].(map[string]any); ok && isMap && len(patterns) == 1 { // see TestKeyPatterns
		pattern := slices.Collect(maps.Keys(patterns))[0]
		if reflected, ok := want["patternProperties"].(map[string]any); ok {
			want["patternProperties"] = renamePatterns(reflected, pattern)
		} else {
			values := want["additionalProperties"]
			if values == nil {
				values = true
			}
			want["patternProperties"], want["additionalProperties"] = map[string]any{pattern: values}, false
		}
	}
	d.required(path, want, got, rt)
	for _, keyword := range slices.Sorted(maps.Keys(merge(want, got))) {
		at := path + " " + keyword
		switch inner, _ := want[keyword].(map[string]any); keyword {
		case "properties":
			derived, _ := got[keyword].(map[string]any)
			members := membersOf(rt)
			for _, name := range slices.Sorted(maps.Keys(merge(inner, derived))) {
				if d.encodesOtherwise(rt, name, inner, derived) {
					continue
				}
				d.compare(path+"."+name, inner[name], derived[name], members[name].field.Type, members[name])
			}
		case "items":
			d.compare(path+"[]", want[keyword], got[keyword], elemOf(rt), member{})
		case "patternProperties":
			derived, _ := got[keyword].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(merge(inner, derived))) {
				d.compare(at, inner[name], derived[name], elemOf(rt), member{})
			}
		case "additionalProperties":
			if isMap {
				d.compare(at, want[keyword], got[keyword], elemOf(rt), member{})
			} else if want[keyword] != got[keyword] {
				d.Errorf("%s: derived %v, reflected %v", at, got[keyword], want[keyword])
			}
		default:
			if diff := cmp.Diff(want[keyword], got[keyword]); diff != "" {
				d.Errorf("%s (-reflected +derived):\n%s", at, diff)
			}
		}
	}
}

// withoutNull removes null from a schema, and reports an error unless the schema admits null
// exactly for a nil pointer in a result.
func (d *differ) withoutNull(path string, got map[string]any, rt reflect.Type, m member) map[string]any {
	d.Helper()
	if rt == nil || len(got) == 0 {
		return got
	}
	nullable := false
	for kind := rt; !writesText(kind) && kind != reflect.TypeFor[json.RawMessage](); kind = kind.Elem() {
		if kind.Kind() != reflect.Pointer {
			break
		}
		nullable = d.use == jsonschema.Result && (nullable || !m.empty || kind != rt)
	}
	if strings.Contains(string(m.field.Tag), "type=") {
		return got // the tag decides, as with reflection
	}
	admits := false
	if list, ok := got["type"].([]any); ok {
		admits = slices.Contains(list, any("null"))
		got["type"] = list[0]
	}
	if choices, ok := got["enum"].([]any); ok && admits {
		got["enum"] = choices[:len(choices)-1]
	}
	if list, ok := got["anyOf"].([]any); ok && len(list) == 2 && cmp.Equal(list[1], any(map[string]any{"type": "null"})) {
		admits = true
		delete(got, "anyOf")
		inner := maps.Clone(resolve(d.got, list[0].(map[string]any)))
		maps.Copy(inner, got)
		got = inner
	}
	if admits != nullable {
		d.Errorf("%s admits null: %v, want %v", path, admits, nullable)
	}
	return got
}

// required compares the required members. Reflection ignores embedded pointers, and requires pointers in arguments.
func (d *differ) required(path string, want, got map[string]any, rt reflect.Type) {
	d.Helper()
	if rt == nil || rt.Kind() != reflect.Struct || writesText(rt) {
		return
	}
	members := membersOf(rt)
	names := func(schema map[string]any) map[string]bool {
		set := map[string]bool{}
		list, _ := schema["required"].([]any)
		for _, name := range list {
			set[name.(string)] = true
		}
		delete(schema, "required")
		return set
	}
	w, g := names(want), names(got)
	for name := range w {
		m, ok := members[name]
		if !ok || m.omits && !strings.Contains(string(m.field.Tag), "required") {
			delete(w, name)
		}
	}
	for name, m := range members {
		if d.use == jsonschema.Argument && m.field.Type.Kind() == reflect.Pointer && !strings.Contains(string(m.field.Tag), "required") {
			delete(w, name)
		} else if !m.omits && m.field.Tag.Get("jsonschema") != "-" {
			w[name] = true
		}
	}
	if diff := cmp.Diff(w, g); diff != "" {
		d.Errorf("%s required (-reflected +derived):\n%s", path, diff)
	}
}

// encodesOtherwise reports whether only one of the schemas has a property, and checks that
// encoding/json agrees with the derived one. Reflection does not follow it for the name "-," and
// for names that hide each other.
func (d *differ) encodesOtherwise(rt reflect.Type, name string, reflected, derived map[string]any) bool {
	d.Helper()
	_, inReflected := reflected[name]
	_, inDerived := derived[name]
	if inReflected == inDerived {
		return false
	}
	m, member := membersOf(rt)[name]
	if member && m.field.Tag.Get("jsonschema") == "-" {
		member = false
	}
	if member != inDerived {
		d.Errorf("%s of %s: derived %v, member %v", name, rt, inDerived, member)
	}
	return true
}

// addBounds adds the bounds of a kind of integer, which reflection leaves out.
func addBounds(schema map[string]any, rt reflect.Type) {
	if rt == nil || !rt.ConvertibleTo(reflect.TypeFor[int]()) || schema["type"] != "integer" || schema["enum"] != nil {
		return
	}
	bounds := map[string]float64{}
	switch bits := rt.Bits(); {
	case rt.Kind() >= reflect.Uint && bits <= 32:
		bounds["minimum"], bounds["maximum"] = 0, math.Pow(2, float64(bits))-1
	case rt.Kind() >= reflect.Uint:
		bounds["minimum"] = 0
	case bits <= 32:
		bounds["minimum"], bounds["maximum"] = -math.Pow(2, float64(bits-1)), math.Pow(2, float64(bits-1))-1
	}
	for keyword, value := range bounds {
		if schema[keyword] == nil {
			schema[keyword] = value
		}
	}
}

func elemOf(rt reflect.Type) reflect.Type {
	if rt == nil {
		return nil
	}
	switch rt.Kind() {
	case reflect.Array, reflect.Slice, reflect.Map, reflect.Pointer:
		return rt.Elem()
	}
	return nil
}

func merge(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return all
}

func renamePatterns(patterns map[string]any, name string) map[string]any {
	renamed := map[string]any{}
	for _, values := range patterns {
		renamed[name] = values
	}
	return renamed
}

// withoutNulls removes the members that are null, because a nil pointer behind a pointer is
// decoded as nil.
func withoutNulls(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	case map[string]any:
		for name, member := range v {
			if v[name] = withoutNulls(member); member == nil {
				delete(v, name)
			}
		}
	}
	return value
}

const samplesEach = 40

// TestShapesAdmitValues checks that a schema admits the JSON that is sent for a value, and that decoding it gives the
// same value.
func TestShapesAdmitValues(t *testing.T) {
	eachShape(t, byTag, func(t *testing.T, rt reflect.Type, text string, use jsonschema.Use) {
		schema := checkSchema(t, text)
		for seed := range samplesEach {
			v, back := reflect.New(rt), reflect.New(rt)
			if seed > 0 { // otherwise the zero value
				newSamples(seed).fill(v.Elem(), 4)
			}
			first, refused := encodeSent(t, text, use, v.Interface())
			if err := schema.Validate(decodeJSON(t, first)); refused != (err != nil) {
				t.Fatalf("seed %d: %s: %v\n%s", seed, first, err, text)
			}
			if err := json.Unmarshal([]byte(first), back.Interface()); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, first, err)
			}
			second, _ := encodeSent(t, text, use, back.Interface())
			if !cmp.Equal(withoutNulls(decodeJSON(t, first)), withoutNulls(decodeJSON(t, second))) {
				t.Fatalf("seed %d: %s is read as %s", seed, first, second)
			}
		}
	})
}

// TestShapesReadWhatTheyAdmit checks that the Go type decodes the values that the schema admits,
// and that the schema admits them when they are encoded again.
func TestShapesReadWhatTheyAdmit(t *testing.T) {
	eachShape(t, byTag, func(t *testing.T, rt reflect.Type, text string, use jsonschema.Use) {
		schema, root := checkSchema(t, text), decodeJSON(t, text).(map[string]any)
		for seed := range samplesEach {
			value := newSamples(seed).admitted(root, root, rt, false, 4)
			data, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(decodeJSON(t, string(data))); err != nil {
				t.Fatalf("seed %d: this makes %s, which is not admitted: %v\n%s", seed, data, err, text)
			}
			v := reflect.New(rt)
			if err := json.Unmarshal(data, v.Interface()); err != nil {
				t.Fatalf("seed %d: %s is admitted, but not read: %v\n%s", seed, data, err, text)
			}
			again, _ := encodeSent(t, text, use, v.Interface())
			if err := schema.Validate(decodeJSON(t, again)); err != nil {
				t.Fatalf("seed %d: %s becomes %s, which is not admitted: %v\n%s", seed, data, again, err, text)
			}
		}
	})
}
