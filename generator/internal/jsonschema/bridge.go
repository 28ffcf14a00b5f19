package jsonschema

import (
	"fmt"
	"go/types"
	"reflect"
	"strconv"
	"time"
)

// specialTypes maps types that encoding/json treats differently from their underlying type. Other
// types with such a treatment are recognized by their methods.
var specialTypes = map[string]reflect.Type{
	"time.Time":                reflect.TypeFor[time.Time](),
	"time.Duration":            reflect.TypeFor[int64](),
	"encoding/json.RawMessage": reflect.TypeFor[any](),
	"encoding/json.Number":     reflect.TypeFor[float64](),
	"math/big.Int":             reflect.TypeFor[int64](),
	"log/slog.Level":           reflect.TypeFor[string](),
}

var basicTypes = map[types.BasicKind]reflect.Type{
	types.Bool: reflect.TypeFor[bool](), types.String: reflect.TypeFor[string](),
	types.Int: reflect.TypeFor[int](), types.Int8: reflect.TypeFor[int8](), types.Int16: reflect.TypeFor[int16](),
	types.Int32: reflect.TypeFor[int32](), types.Int64: reflect.TypeFor[int64](),
	types.Uint: reflect.TypeFor[uint](), types.Uint8: reflect.TypeFor[uint8](), types.Uint16: reflect.TypeFor[uint16](),
	types.Uint32: reflect.TypeFor[uint32](), types.Uint64: reflect.TypeFor[uint64](),
	types.Float32: reflect.TypeFor[float32](), types.Float64: reflect.TypeFor[float64](),
}

// refusal says why a type has no schema.
type refusal struct {
	message, hint string
}

func (r *refusal) Error() string { return r.message }

// reflectType rebuilds a type for the reflector. A struct, and any type that contains itself,
// becomes a placeholder, which the reflector's Mapper turns into a reference. Otherwise, reflect
// could not build recursive types, and the reflector would merge types with the same name.
func (g *graph) reflectType(t types.Type) (reflect.Type, error) {
	t = types.Unalias(t)
	if named, ok := t.(*types.Named); ok {
		if rt, ok := specialTypes[qualifiedName(named)]; ok {
			return rt, nil
		}
	}
	if err := g.checkCustomMethods(t); err != nil {
		return nil, err
	}
	if text, err := isTextual(t); text {
		return reflect.TypeFor[string](), err
	}
	if named, ok := t.(*types.Named); ok && containsItself(named) {
		if _, pointer := t.Underlying().(*types.Pointer); pointer {
			return nil, &refusal{fmt.Sprintf("%s only points to itself", named.Obj().Name()), "use a struct"}
		}
		return g.placeholder(types.TypeString(t, nil), t), nil
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if rt, ok := basicTypes[u.Kind()]; ok {
			return rt, nil
		}
	case *types.Pointer:
		return g.reflectType(u.Elem())
	case *types.Slice:
		if isByte(u.Elem()) {
			return reflect.TypeFor[[]byte](), nil
		}
		inner, err := g.reflectType(u.Elem())
		if err != nil {
			return nil, err
		}
		if inner.Kind() == reflect.Uint8 { // a slice of pointers, which is not encoded as base64
			inner = reflect.TypeFor[uint16]()
		}
		return reflect.SliceOf(inner), nil
	case *types.Array:
		inner, err := g.reflectType(u.Elem())
		if err != nil {
			return nil, err
		}
		length := u.Len()
		for nested := inner; nested.Kind() == reflect.Array && length <= maxArrayItems; nested = nested.Elem() {
			length *= int64(nested.Len())
		}
		if length > maxArrayItems {
			return nil, &refusal{fmt.Sprintf("an array of %d items is too long for a tool", length), "use a slice"}
		}
		return reflect.ArrayOf(int(u.Len()), inner), nil
	case *types.Map:
		return g.reflectMap(u)
	case *types.Struct:
		if _, ok := t.(*types.Named); ok {
			return g.placeholder(types.TypeString(t, nil), t), nil
		}
		return g.anonymousPlaceholder(u, t), nil
	case *types.Interface:
		if u.NumMethods() > 0 && g.use != Result {
			return nil, &refusal{"an interface with methods cannot be decoded from JSON", "use a struct or any"}
		}
		return reflect.TypeFor[any](), nil
	}
	return nil, &refusal{fmt.Sprintf("%s cannot be represented in JSON", types.TypeString(t, types.RelativeTo(g.pkg))), `exclude the field with json:"-"`}
}

// maxArrayItems is the maximum number of items of an array, including nested arrays.
const maxArrayItems = 1 << 16

// anonymousPlaceholder returns the placeholder of an unnamed struct. Each occurrence gets its own,
// unless the struct contains itself by embedding a type that contains it.
func (g *graph) anonymousPlaceholder(st *types.Struct, t types.Type) reflect.Type {
	for outer := g.building; outer != ""; outer = g.enclosing[outer] {
		if types.Unalias(g.types[outer]) == st {
			return g.placeholder(outer, t)
		}
		if _, named := types.Unalias(g.types[outer]).(*types.Named); named {
			break
		}
	}
	key := fmt.Sprintf("struct %d", len(g.types))
	g.enclosing[key] = g.building
	return g.placeholder(key, t)
}

func (g *graph) reflectMap(m *types.Map) (reflect.Type, error) {
	key, err := mapKeyType(m.Key())
	if err != nil {
		return nil, err
	}
	if t := findPointerMarshaler(m.Elem(), map[types.Type]bool{}); t != nil {
		name := types.TypeString(t, func(p *types.Package) string { return p.Name() })
		return nil, &refusal{fmt.Sprintf("%s has a marshal method on its pointer, which encoding/json does not call for a map value", name), "use pointers as the values of the map"}
	}
	inner, err := g.reflectType(m.Elem())
	if err != nil {
		return nil, err
	}
	return reflect.MapOf(key, inner), nil
}

func mapKeyType(t types.Type) (reflect.Type, error) {
	b, basic := t.Underlying().(*types.Basic)
	if text, err := isTextual(t); text && (basic || valueHasMethod(t, "MarshalText")) { // encoding/json cannot take the address of a key
		return reflect.TypeFor[string](), err
	}
	if basic {
		switch {
		case b.Info()&types.IsString != 0:
			return reflect.TypeFor[string](), nil
		case b.Info()&types.IsUnsigned != 0 && b.Kind() != types.Uintptr:
			return reflect.TypeFor[uint64](), nil
		case b.Info()&types.IsInteger != 0 && b.Kind() != types.Uintptr:
			return reflect.TypeFor[int64](), nil
		}
	}
	return nil, &refusal{fmt.Sprintf("a map with keys of type %s cannot be represented in JSON", types.TypeString(t, nil)), "use string keys"}
}

// unembedHint is the hint for a struct that has the methods of an embedded type.
const unembedHint = "name the field instead of embedding it: a json tag alone does not hide its methods"

// checkCustomMethods refuses a type whose JSON only its own code knows. This includes an unnamed
// struct with the methods of an embedded type.
func (g *graph) checkCustomMethods(t types.Type) error {
	name := func() string {
		if named, ok := t.(*types.Named); ok {
			return named.Obj().Name()
		}
		return types.TypeString(t, types.RelativeTo(g.pkg))
	}
	for _, method := range []string{"MarshalJSON", "UnmarshalJSON"} {
		if from, found := findMethod(t, method); found != "" {
			out := "write the schema by hand and name its file with schema="
			if g.use == Result {
				out = "write the schema by hand and name its file with outputschema="
			}
			if from != nil {
				return &refusal{fmt.Sprintf("%s has the method %s of the embedded %s, so its schema cannot be derived", name(), method, from.Name()),
					unembedHint + "; or " + out}
			}
			return &refusal{fmt.Sprintf("%s has a method %s, so its schema cannot be derived", name(), method),
				out + `, or set the type of the field with jsonschema:"type=string"`}
		}
	}
	for _, method := range []string{"JSONSchema", "JSONSchemaExtend", "JSONSchemaAlias", "JSONSchemaProperty", "GetFieldDocString"} {
		if hasMethod(t, method) {
			return &refusal{fmt.Sprintf("%s has a method %s, which the generator cannot run", name(), method),
				"write the schema by hand and name its file with schema= or outputschema="}
		}
	}
	return nil
}

// containsItself reports whether a type contains itself without a struct in between, such as type
// Tree []Tree.
func containsItself(named *types.Named) bool {
	seen := map[types.Type]bool{}
	var visit func(types.Type) bool
	visit = func(t types.Type) bool {
		t = types.Unalias(t)
		if seen[t] {
			return types.Identical(t, named)
		}
		seen[t] = true
		switch u := t.Underlying().(type) {
		case *types.Slice:
			return visit(u.Elem())
		case *types.Array:
			return visit(u.Elem())
		case *types.Pointer:
			return visit(u.Elem())
		case *types.Map:
			return visit(u.Elem())
		}
		return false
	}
	return visit(named)
}

func qualifiedName(named *types.Named) string {
	if named.Obj().Pkg() == nil {
		return named.Obj().Name()
	}
	return named.Obj().Pkg().Path() + "." + named.Obj().Name()
}

func isDuration(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && qualifiedName(named) == "time.Duration"
}

// containsDuration reports whether a type is a duration, or a list or map of durations.
func containsDuration(t types.Type) bool {
	for seen := map[types.Type]bool{}; !isDuration(t); {
		inner, ok := t.Underlying().(interface{ Elem() types.Type })
		if _, channel := inner.(*types.Chan); !ok || channel || seen[t] { // it contains itself
			return false
		}
		seen[t] = true
		t = inner.Elem()
	}
	return true
}

// isByte reports whether encoding/json encodes a slice of t as a base64 string.
func isByte(t types.Type) bool {
	if hasMethod(t, "MarshalJSON", "MarshalText") {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.Uint8
}

// placeholderTag is the tag key of a placeholder's only field. Its value is the key of the type.
const placeholderTag = "mcptaskgen"

func (g *graph) placeholder(key string, t types.Type) reflect.Type {
	if _, known := g.types[key]; !known {
		g.types[key] = t
		g.queue = append(g.queue, key)
	}
	return reflect.StructOf([]reflect.StructField{{
		Name: "Placeholder", Type: reflect.TypeFor[struct{}](), Tag: reflect.StructTag(placeholderTag + ":" + strconv.Quote(key)),
	}})
}

// placeholderKey returns the key of a placeholder's type.
func placeholderKey(t reflect.Type) (string, bool) {
	if t.Kind() != reflect.Struct || t.NumField() != 1 {
		return "", false
	}
	return t.Field(0).Tag.Lookup(placeholderTag)
}
