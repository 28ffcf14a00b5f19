package jsonschema

import (
	"fmt"
	"go/token"
	"go/types"
)

// encodingMethods are the methods by which a type encodes itself.
var encodingMethods = []string{"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText"}

// hasMethod reports whether a type or a pointer to it has one of the methods. Methods of an
// interface do not count, because encoding/json encodes the value in it.
func hasMethod(t types.Type, names ...string) bool {
	_, name := findMethod(t, names...)
	return name != ""
}

// findMethod finds the first of the methods that a type or a pointer to it has. from is the
// embedded field that provides it, or nil. A method that encoding/json would call must have the
// right signature.
func findMethod(t types.Type, names ...string) (from *types.Var, name string) {
	if types.IsInterface(t) {
		return nil, ""
	}
	set := types.NewMethodSet(types.NewPointer(t))
	for _, name := range names {
		found := set.Lookup(nil, name)
		if found == nil || !matchesSignature(found) {
			continue
		}
		if st, ok := t.Underlying().(*types.Struct); ok && len(found.Index()) > 1 {
			from = st.Field(found.Index()[0])
		}
		return from, name
	}
	return nil, ""
}

// valueHasMethod reports whether a value of a type has a method without taking its address.
func valueHasMethod(t types.Type, name string) bool {
	found := types.NewMethodSet(t).Lookup(nil, name)
	return found != nil && matchesSignature(found)
}

// The signatures that encoding/json requires.
var (
	textVar    = types.NewParam(token.NoPos, nil, "", types.NewSlice(types.Typ[types.Byte]))
	errorVar   = types.NewParam(token.NoPos, nil, "", types.Universe.Lookup("error").Type())
	marshals   = types.NewSignatureType(nil, nil, nil, nil, types.NewTuple(textVar, errorVar), false)
	unmarshals = types.NewSignatureType(nil, nil, nil, types.NewTuple(textVar), types.NewTuple(errorVar), false)
	signatures = map[string]types.Type{"MarshalJSON": marshals, "MarshalText": marshals, "UnmarshalJSON": unmarshals, "UnmarshalText": unmarshals}
)

func matchesSignature(method *types.Selection) bool {
	want := signatures[method.Obj().Name()]
	return want == nil || types.Identical(method.Type(), want)
}

// isTextual reports whether encoding/json encodes and decodes a type as text by its methods. A type
// with only one of the two methods has no schema that is right for both directions. It has one if no client is
// generated, so that values go in one direction: results are encoded, and all others are decoded.
func (g *graph) isTextual(t types.Type) (bool, error) {
	writes, reads := hasMethod(t, "MarshalText"), hasMethod(t, "UnmarshalText")
	if writes == reads || g.ServerOnly && writes == (g.use == Result) {
		return writes || reads, nil
	}
	has, lacks, form, so, where := "MarshalText", "UnmarshalText", "([]byte) error", "its own output cannot be decoded", "results"
	if reads {
		has, lacks, form, so, where = lacks, has, "() ([]byte, error)", "it decodes text but does not encode it", "arguments"
	}
	return true, &refusal{fmt.Sprintf("%s has a method %s but no %s, so %s", types.TypeString(t, (*types.Package).Name), has, lacks, so),
		fmt.Sprintf(`add %s%s, or set the type of the field with jsonschema:"type=string"; for a type that only %s have, --server-only is enough`, lacks, form, where)}
}
