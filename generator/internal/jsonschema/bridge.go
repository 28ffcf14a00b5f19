package jsonschema

import (
	"fmt"
	"go/types"
	"reflect"
	"strconv"
	"time"
)

// Mappings of types that encoding/json writes otherwise than their underlying type says. The rest
// of the types with methods for JSON or text are found by those.
var special = map[string]reflect.Type{
	"time.Time":                reflect.TypeFor[time.Time](),
	"time.Duration":            reflect.TypeFor[int64](),
	"encoding/json.RawMessage": reflect.TypeFor[any](),
	"encoding/json.Number":     reflect.TypeFor[float64](),
	"math/big.Int":             reflect.TypeFor[int64](),
	"log/slog.Level":           reflect.TypeFor[string](),
}

var basics = map[types.BasicKind]reflect.Type{
	types.Bool: reflect.TypeFor[bool](), types.String: reflect.TypeFor[string](),
	types.Int: reflect.TypeFor[int](), types.Int8: reflect.TypeFor[int8](), types.Int16: reflect.TypeFor[int16](),
	types.Int32: reflect.TypeFor[int32](), types.Int64: reflect.TypeFor[int64](),
	types.Uint: reflect.TypeFor[uint](), types.Uint8: reflect.TypeFor[uint8](), types.Uint16: reflect.TypeFor[uint16](),
	types.Uint32: reflect.TypeFor[uint32](), types.Uint64: reflect.TypeFor[uint64](),
	types.Float32: reflect.TypeFor[float32](), types.Float64: reflect.TypeFor[float64](),
}

// refusal is why a type has no schema.
type refusal struct {
	message, hint string
}

func (r *refusal) Error() string { return r.message }

// reflectType rebuilds a type for the reflector. A struct, and any type that holds itself, becomes a
// placeholder that the reflector's Mapper turns into a reference: reflect cannot build recursive
// types, and the reflector would merge types of one name.
func (g *graph) reflectType(t types.Type) (reflect.Type, error) {
	t = types.Unalias(t)
	if named, ok := t.(*types.Named); ok {
		if rt, ok := special[qualified(named)]; ok {
			return rt, nil
		}
	}
	if err := g.customised(t); err != nil {
		return nil, err
	}
	if hasMethod(t, "MarshalText", "UnmarshalText") {
		return reflect.TypeFor[string](), nil
	}
	if named, ok := t.(*types.Named); ok && holdsItself(named) {
		if _, pointer := t.Underlying().(*types.Pointer); pointer {
			return nil, &refusal{fmt.Sprintf("%s points to itself alone", named.Obj().Name()), "use a struct"}
		}
		return g.placeholder(types.TypeString(t, nil), t), nil
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if rt, ok := basics[u.Kind()]; ok {
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
		if inner.Kind() == reflect.Uint8 { // of pointers, which are not written as base64
			inner = reflect.TypeFor[uint16]()
		}
		return reflect.SliceOf(inner), nil
	case *types.Array:
		inner, err := g.reflectType(u.Elem())
		if err != nil {
			return nil, err
		}
		if u.Len() > 1<<16 {
			return nil, &refusal{fmt.Sprintf("an array of %d items is too long for a tool", u.Len()), "use a slice"}
		}
		return reflect.ArrayOf(int(u.Len()), inner), nil
	case *types.Map:
		return g.reflectMap(u)
	case *types.Struct:
		if _, ok := t.(*types.Named); ok {
			return g.placeholder(types.TypeString(t, nil), t), nil
		}
		return g.placeholder(fmt.Sprintf("struct %d", len(g.types)), t), nil
	case *types.Interface:
		if u.NumMethods() > 0 && g.use != Result {
			return nil, &refusal{"an interface with methods cannot be read from JSON", "use a struct or any"}
		}
		return reflect.TypeFor[any](), nil
	}
	return nil, &refusal{fmt.Sprintf("%s has no form in JSON", types.TypeString(t, types.RelativeTo(g.pkg))), `leave the field out with json:"-"`}
}

func (g *graph) reflectMap(m *types.Map) (reflect.Type, error) {
	key, err := mapKey(m.Key())
	if err != nil {
		return nil, err
	}
	inner, err := g.reflectType(m.Elem())
	if err != nil {
		return nil, err
	}
	return reflect.MapOf(key, inner), nil
}

func mapKey(t types.Type) (reflect.Type, error) {
	if hasMethod(t, "MarshalText", "UnmarshalText") {
		return reflect.TypeFor[string](), nil
	}
	if b, ok := t.Underlying().(*types.Basic); ok {
		switch {
		case b.Info()&types.IsString != 0:
			return reflect.TypeFor[string](), nil
		case b.Info()&types.IsUnsigned != 0 && b.Kind() != types.Uintptr:
			return reflect.TypeFor[uint64](), nil
		case b.Info()&types.IsInteger != 0 && b.Kind() != types.Uintptr:
			return reflect.TypeFor[int64](), nil
		}
	}
	return nil, &refusal{fmt.Sprintf("a map with keys of type %s has no form in JSON", types.TypeString(t, nil)), "use string keys"}
}

// customised refuses a type whose JSON only its own code knows. A struct without a name has the
// methods of what it embeds.
func (g *graph) customised(t types.Type) error {
	name := types.TypeString(t, types.RelativeTo(g.pkg))
	if named, ok := t.(*types.Named); ok {
		name = named.Obj().Name()
	}
	for _, method := range []string{"MarshalJSON", "UnmarshalJSON"} {
		if hasMethod(t, method) {
			out := "write the schema by hand and name its file with schema="
			if g.use == Result {
				out = "write the schema by hand and name its file with outputschema="
			}
			return &refusal{fmt.Sprintf("%s has a method %s, so its schema cannot be derived", name, method),
				out + `, or set the type of the field with jsonschema:"type=string"`}
		}
	}
	for _, method := range []string{"JSONSchema", "JSONSchemaExtend", "JSONSchemaAlias", "JSONSchemaProperty", "GetFieldDocString"} {
		if hasMethod(t, method) {
			return &refusal{fmt.Sprintf("%s has a method %s, which the generator cannot run", name, method),
				"write the schema by hand and name its file with schema= or outputschema="}
		}
	}
	return nil
}

// hasMethod tells whether a type or a pointer to it has one of the methods. An interface's do not
// count: its values are written as what they hold.
func hasMethod(t types.Type, names ...string) bool {
	if types.IsInterface(t) {
		return false
	}
	set := types.NewMethodSet(types.NewPointer(t))
	for _, name := range names {
		if set.Lookup(nil, name) != nil {
			return true
		}
	}
	return false
}

// holdsItself tells whether a type that is no struct contains itself without a struct between, as
// type Tree []Tree does.
func holdsItself(named *types.Named) bool {
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

func qualified(named *types.Named) string {
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
	return ok && qualified(named) == "time.Duration"
}

// holdsDuration tells whether a type is a duration, or a list or a map of them.
func holdsDuration(t types.Type) bool {
	for !isDuration(t) {
		inner, ok := t.Underlying().(interface{ Elem() types.Type })
		if _, channel := inner.(*types.Chan); !ok || channel || inner.Elem() == t {
			return false
		}
		t = inner.Elem()
	}
	return true
}

// isByte tells whether a slice of these is a string in base64.
func isByte(t types.Type) bool {
	if hasMethod(t, "MarshalJSON", "MarshalText") {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.Uint8
}

// marker is the tag of a placeholder's only field, with the key of its type.
const marker = "mcptaskgen"

func (g *graph) placeholder(key string, t types.Type) reflect.Type {
	if _, known := g.types[key]; !known {
		g.types[key] = t
		g.queue = append(g.queue, key)
	}
	return reflect.StructOf([]reflect.StructField{{
		Name: "Placeholder", Type: reflect.TypeFor[struct{}](), Tag: reflect.StructTag(marker + ":" + strconv.Quote(key)),
	}})
}

// placeholderKey is the way back.
func placeholderKey(t reflect.Type) (string, bool) {
	if t.Kind() != reflect.Struct || t.NumField() != 1 {
		return "", false
	}
	return t.Field(0).Tag.Lookup(marker)
}
