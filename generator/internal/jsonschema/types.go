package jsonschema

import (
	"cmp"
	"errors"
	"fmt"
	"go/types"
	"reflect"
	"strings"

	invopop "github.com/invopop/jsonschema"
)

// schema is a typed JSON schema. Its Extras have the rest, such as several types.
type schema = invopop.Schema

// refusal is the reason why a type has no schema.
type refusal struct {
	message, hint string
}

func (r *refusal) Error() string { return r.message }

// asRefusal returns an error as a refusal, whose hint may be empty.
func asRefusal(err error) *refusal {
	if r := (*refusal)(nil); errors.As(err, &r) {
		return r
	}
	return &refusal{message: err.Error()}
}

// specialTypes are the types that encoding/json treats differently from their underlying type.
// Other types with such a treatment are recognized by their methods.
var specialTypes = map[string]schema{
	"time.Time":                {Type: "string", Format: "date-time"},
	"time.Duration":            {Type: "integer"},
	"encoding/json.RawMessage": {},
	"encoding/json.Number":     {Type: "number"},
	"math/big.Int":             {Type: "integer"},
	"log/slog.Level":           {Type: "string"},
}

// lostTypes are types that lose a part of their values in JSON.
var lostTypes = map[string]refusal{
	"error":       {"encoding/json writes an error without its text", "use a string, and set it to err.Error()"},
	"net/url.URL": {"url.URL is an object of its parts in JSON, without user and password", `use a string with jsonschema:"format=uri"`},
}

// basicTypes has the schema of each kind. See [dropBound] for the wide bounds.
var basicTypes = map[types.BasicKind]schema{
	types.Bool: {Type: "boolean"}, types.String: {Type: "string"},
	types.Int:     {Type: "integer", Minimum: minInt64, Maximum: maxInt64},
	types.Int8:    {Type: "integer", Minimum: "-128", Maximum: "127"},
	types.Int16:   {Type: "integer", Minimum: "-32768", Maximum: "32767"},
	types.Int32:   {Type: "integer", Minimum: "-2147483648", Maximum: "2147483647"},
	types.Int64:   {Type: "integer", Minimum: minInt64, Maximum: maxInt64},
	types.Uint:    {Type: "integer", Minimum: "0", Maximum: maxUint64},
	types.Uint8:   {Type: "integer", Minimum: "0", Maximum: "255"},
	types.Uint16:  {Type: "integer", Minimum: "0", Maximum: "65535"},
	types.Uint32:  {Type: "integer", Minimum: "0", Maximum: "4294967295"},
	types.Uint64:  {Type: "integer", Minimum: "0", Maximum: maxUint64},
	types.Float32: {Type: "number", Minimum: minFloat32, Maximum: maxFloat32}, types.Float64: {Type: "number"},
}

const (
	minInt64, maxInt64, maxUint64 = "-9223372036854775808", "9223372036854775807", "18446744073709551615"
	minFloat32, maxFloat32        = "-3.4028234663852886e+38", "3.4028234663852886e+38"
)

// typeOf returns the schema of the JSON that is sent for a type. In a result, it admits null for a nil pointer, unless
// omitted is set, because such a value is left out. The runtime writes nil lists and maps as empty ones, and leaves out nil
// pointers in arguments. If leaf is set, it is the schema of the values at the end: those of lists and maps, and those that
// pointers point to.
func (g *graph) typeOf(t types.Type, omitted bool, leaf *schema) (*schema, error) {
	t = types.Unalias(t)
	if g.encodesItself(t) {
		return g.leafOf(t, leaf)
	}
	_, pointer := t.Underlying().(*types.Pointer)
	var s *schema
	var err error
	if cycle := g.findCycle(t); cycle == nil {
		s, err = g.partsOf(t, leaf)
	} else if pointer || leaf != nil {
		err = g.refuseCycle(cycle)
	} else {
		s = g.refer(types.TypeString(t, nil), t)
	}
	if err != nil || omitted {
		return s, err
	}
	switch t.Underlying().(type) {
	case *types.Pointer:
		g.nullable[s] = g.use == Result
		g.writesNull = true
	case *types.Slice, *types.Map:
		g.writesNull = true
	}
	return s, nil
}

// partsOf returns the schema of a value that is not nil, without a look at the cycle that it is in.
func (g *graph) partsOf(t types.Type, leaf *schema) (*schema, error) {
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return g.typeOf(u.Elem(), false, leaf)
	case *types.Slice:
		if isByte(u.Elem()) && !g.writesNames(u.Elem()) {
			break
		}
		items, err := g.typeOf(u.Elem(), false, leaf)
		return &schema{Type: "array", Items: items}, err
	case *types.Array:
		if length := countItems(u); length > maxArrayItems {
			return nil, &refusal{fmt.Sprintf("an array of %d items is too long for a tool", length), "use a slice"}
		}
		items, err := g.typeOf(u.Elem(), false, leaf)
		length := uint64(u.Len())
		return &schema{Type: "array", Items: items, MinItems: &length, MaxItems: &length}, err
	case *types.Map:
		return g.mapOf(u, leaf)
	}
	return g.leafOf(t, leaf)
}

// encodesItself reports whether encoding/json does not look into a list, map or pointer, because the type gives its own
// JSON.
func (g *graph) encodesItself(t types.Type) bool {
	if named, ok := t.(*types.Named); ok && g.docs.find(named.Obj()).directives[schemaDirective] != nil {
		return true
	}
	_, special := specialTypes[qualifiedName(t)]
	return special || hasMethod(t, encodingMethods...)
}

// leafOf returns the schema of a type that is not a list, a map or a pointer. If given is set, it is
// the schema, and must not contradict the type.
func (g *graph) leafOf(t types.Type, given *schema) (*schema, error) {
	if given == nil {
		return g.scalarOf(t)
	}
	own := kindOf(t)
	if g.writesNames(t) {
		own = "string"
	}
	if own != "" && given.Type != "" && own != given.Type && (own != "number" || given.Type != "integer") {
		return nil, &refusal{fmt.Sprintf("%s is %s in JSON, not %s", g.typeName(t), withArticle(own), withArticle(given.Type)),
			"remove type=, or give the field another type"}
	}
	clone := *given
	return &clone, nil
}

// kindOf returns the JSON type of a type that is not a list, a map or a pointer. It is empty if values
// of several types are possible, or if only the type's methods know.
func kindOf(t types.Type) string {
	if s, ok := specialTypes[qualifiedName(t)]; ok {
		return s.Type
	}
	if hasMethod(t, encodingMethods...) {
		return ""
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		return "object"
	case *types.Slice:
		return "string"
	case *types.Basic:
		return basicTypes[u.Kind()].Type
	}
	return ""
}

// scalarOf returns the schema of a type that is not a list, a map or a pointer.
func (g *graph) scalarOf(t types.Type) (*schema, error) {
	if named, ok := t.(*types.Named); ok {
		if s, ok, err := g.declaredSchema(named); ok {
			return s, g.ownError(named, err)
		}
	}
	if g.writesNames(t) {
		s := schema{Type: "string"}
		return &s, g.addEnum(t, &s)
	}
	if s, ok := specialTypes[qualifiedName(t)]; ok {
		return &s, nil
	}
	if r, ok := lostTypes[qualifiedName(t)]; ok {
		return nil, &r
	}
	if inner := onlyEmbedded(t); inner != nil && hasMethod(inner, "MarshalJSON") && hasMethod(t, "MarshalJSON") && hasMethod(t, "UnmarshalJSON") {
		return g.scalarOf(inner)
	}
	if err := cmp.Or(g.checkMethods(t), g.checkEmbeddedNames(t)); err != nil {
		return nil, err
	}
	if text, err := g.isTextual(t); text {
		return &schema{Type: "string", Format: g.textFormat(t)}, err
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if s, ok := basicTypes[u.Kind()]; ok {
			return &s, g.addEnum(t, &s)
		}
		if u.Kind() == types.Uintptr {
			return nil, &refusal{"a uintptr is an address, which means nothing to others", "use uint64 for a number"}
		}
	case *types.Slice:
		return &schema{Type: "string", ContentEncoding: "base64"}, nil
	case *types.Struct:
		if err := checkHidden(u); err != nil {
			return nil, err
		}
		if _, ok := t.(*types.Named); ok {
			return g.refer(types.TypeString(t, nil), t), nil
		}
		return g.refer(g.keyOfUnnamed(u), t), nil
	case *types.Interface:
		if u.NumMethods() > 0 && g.use != Result {
			return nil, &refusal{"an interface with methods cannot be decoded from JSON", "use a struct or any"}
		}
		return &schema{}, nil
	}
	return nil, &refusal{g.typeName(t) + " cannot be represented in JSON", `exclude the field with json:"-"`}
}

// typeName names a type for a message.
func (d *Deriver) typeName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == d.pkg {
			return ""
		}
		return p.Name()
	})
}

// onlyEmbedded returns the type of a struct's only field, if that is embedded, or nil.
func onlyEmbedded(t types.Type) types.Type {
	st, ok := t.Underlying().(*types.Struct)
	if !ok || st.NumFields() != 1 || !st.Field(0).Embedded() {
		return nil
	}
	if _, pointer := st.Field(0).Type().Underlying().(*types.Pointer); pointer {
		return nil // encoding/json would call a method of nil
	}
	return types.Unalias(st.Field(0).Type())
}

// checkHidden refuses a struct that hides all of its fields, such as sync/atomic.Int64: it is written
// as {} and read as its zero value. A field that is excluded by its tag shows that this is meant.
func checkHidden(st *types.Struct) error {
	for i := range st.NumFields() {
		if reflect.StructTag(st.Tag(i)).Get("json") == "-" {
			return nil
		}
	}
	if fields, clashes := jsonFields(st); st.NumFields() == 0 || len(fields)+len(clashes) > 0 {
		return nil
	}
	return &refusal{"no field of this type is exported, so its values are lost in JSON", `use a type with exported fields, or exclude the field with json:"-"`}
}

// maxArrayItems is the maximum number of items of an array, including nested arrays.
const maxArrayItems = 1 << 16

func countItems(array *types.Array) int64 {
	length := array.Len()
	for inner, ok := array.Elem().Underlying().(*types.Array); ok && length <= maxArrayItems; inner, ok = inner.Elem().Underlying().(*types.Array) {
		length *= inner.Len()
	}
	return length
}

// refer returns a reference to the definition of a type, which is built later.
func (g *graph) refer(key string, t types.Type) *schema {
	d, known := g.definitions[key]
	if !known {
		d = &definition{key: key, t: t}
		g.definitions[key] = d
		g.queue = append(g.queue, d)
	}
	if g.building != nil {
		g.building.uses = append(g.building.uses, d)
	}
	s := &schema{}
	g.references[s] = d
	return s
}

// keyOfUnnamed returns the key of an unnamed struct. Each occurrence gets its own, unless the struct
// contains itself by embedding a type that contains it.
func (g *graph) keyOfUnnamed(st *types.Struct) string {
	for outer := g.building; outer != nil; outer = g.enclosing[outer.key] {
		if types.Unalias(outer.t) == st {
			return outer.key
		}
		if _, named := types.Unalias(outer.t).(*types.Named); named {
			break
		}
	}
	key := fmt.Sprintf("struct %d", len(g.definitions))
	g.enclosing[key] = g.building
	return key
}

func (g *graph) mapOf(m *types.Map, leaf *schema) (*schema, error) {
	pattern, err := g.keyPattern(m.Key())
	if err != nil {
		return nil, err
	}
	if t := findPointerMarshaler(m.Elem(), map[types.Type]bool{}); t != nil {
		return nil, &refusal{g.typeName(t) + " has a marshal method on its pointer, which encoding/json does not call for a map value", "use pointers as the values of the map"}
	}
	values, err := g.typeOf(m.Elem(), false, leaf)
	if err != nil {
		return nil, err
	}
	s := &schema{Type: "object"}
	switch _, anything := m.Elem().Underlying().(*types.Interface); {
	case pattern != "":
		s.PatternProperties, s.AdditionalProperties = map[string]*schema{pattern: values}, invopop.FalseSchema
	case !anything || leaf != nil:
		s.AdditionalProperties = values
	}
	keys := schema{}
	if err := g.addEnum(m.Key(), &keys); err != nil || keys.Enum == nil {
		return s, err
	}
	for i, value := range keys.Enum {
		keys.Enum[i] = fmt.Sprint(value)
	}
	s.PropertyNames = &keys
	return s, nil
}

// unembedHint is the hint for a struct that has the methods of an embedded type.
const unembedHint = "name the field instead of embedding it: a json tag alone does not hide its methods"

// checkMethods refuses a type whose JSON only its own code knows. This includes a struct with the
// methods of an embedded type.
func (g *graph) checkMethods(t types.Type) error {
	name := g.typeName(t)
	file := "schema="
	if g.use == Result {
		file = "outputschema="
	}
	for _, method := range []string{"MarshalJSON", "UnmarshalJSON"} {
		from, found := findMethod(t, method)
		switch {
		case found == "":
			continue
		case from != nil:
			return &refusal{fmt.Sprintf("%s has the method %s of the embedded %s, so its schema cannot be derived", name, method, from.Name()),
				unembedHint + "; or write the schema by hand and name its file with " + file}
		}
		return &refusal{fmt.Sprintf("%s has a method %s, so its schema cannot be derived", name, method),
			`write //mcptask:schema type=string above the type, or jsonschema:"type=string" in the tag of the field, or name the file of a schema with ` + file}
	}
	for _, method := range []string{"JSONSchema", "JSONSchemaExtend", "JSONSchemaAlias", "JSONSchemaProperty", "GetFieldDocString"} {
		if hasMethod(t, method) {
			return &refusal{fmt.Sprintf("%s has a method %s, which the generator cannot run", name, method),
				byHandHint}
		}
	}
	return nil
}

// findCycle returns the types between a named type and itself if no struct is in between, as in type
// Tree []Tree. It returns nil if there are none.
func (g *graph) findCycle(t types.Type) []types.Type {
	if _, named := t.(*types.Named); !named {
		return nil
	}
	cycle := []types.Type{t}
	seen := map[types.Type]bool{}
	for inner := t; !seen[inner]; {
		seen[inner] = true
		next := elemOf(inner)
		if named, ok := inner.(*types.Named); ok {
			if d := g.docs.find(named.Obj()).directives[schemaDirective]; d != nil {
				next = g.lookUpType(named.Obj().Pkg(), namedSchema(d))
			}
		}
		if next == nil {
			return nil
		}
		inner = types.Unalias(next)
		if _, named := inner.(*types.Named); named {
			cycle = append(cycle, inner)
		}
		if types.Identical(inner, t) {
			return cycle
		}
	}
	return nil
}

// elemOf returns the type in a list, map or pointer, or nil.
func elemOf(t types.Type) types.Type {
	switch u := t.Underlying().(type) {
	case *types.Chan:
	case interface{ Elem() types.Type }:
		return u.Elem()
	}
	return nil
}

func (g *graph) refuseCycle(cycle []types.Type) *refusal {
	names := make([]string, len(cycle))
	for i, t := range cycle {
		names[i] = g.typeName(t)
	}
	return &refusal{names[0] + " only contains itself: " + strings.Join(names, " -> "), "use a struct"}
}

// qualifiedName returns the name of a type with its import path, or "" for a type without a name.
func qualifiedName(t types.Type) string {
	named, ok := types.Unalias(t).(*types.Named)
	switch {
	case !ok:
		return ""
	case named.Obj().Pkg() == nil:
		return named.Obj().Name()
	}
	return named.Obj().Pkg().Path() + "." + named.Obj().Name()
}

func isDuration(t types.Type) bool { return qualifiedName(pointee(t)) == "time.Duration" }

// pointee returns the type that a pointer points to, or the type itself.
func pointee(t types.Type) types.Type {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	return types.Unalias(t)
}

// isByte reports whether encoding/json encodes a slice of t as a base64 string.
func isByte(t types.Type) bool {
	if hasMethod(t, "MarshalJSON", "MarshalText") {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.Uint8
}

func withArticle(kind string) string {
	if strings.ContainsRune("aio", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}
