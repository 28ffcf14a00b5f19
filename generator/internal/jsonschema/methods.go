package jsonschema

import (
	"fmt"
	"go/types"
)

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
		if found == nil || !matchesSignature(name, found.Type()) {
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
	return found != nil && matchesSignature(name, found.Type())
}

// signatures are the signatures that encoding/json requires.
var signatures = map[string]string{
	"MarshalJSON": "func() ([]byte, error)", "UnmarshalJSON": "func([]byte) error",
	"MarshalText": "func() ([]byte, error)", "UnmarshalText": "func([]byte) error",
}

func matchesSignature(name string, method types.Type) bool {
	want, known := signatures[name]
	if !known {
		return true
	}
	// Drop the names of parameters, which are part of the string.
	s := method.(*types.Signature)
	bare := types.NewSignatureType(nil, nil, nil, removeNames(s.Params()), removeNames(s.Results()), s.Variadic())
	return types.TypeString(bare, nil) == want
}

func removeNames(tuple *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range tuple.Variables() {
		vars = append(vars, types.NewParam(v.Pos(), v.Pkg(), "", types.Unalias(v.Type())))
	}
	return types.NewTuple(vars...)
}

// isTextual reports whether encoding/json encodes and decodes a type as text by its methods. A type
// with only one of the two methods has no schema that is right for both directions.
func isTextual(t types.Type) (bool, error) {
	const (
		marshal, unmarshal = "MarshalText", "UnmarshalText"
		way                = `, or set the type of the field with jsonschema:"type=string"`
	)
	writes, reads := hasMethod(t, marshal), hasMethod(t, unmarshal)
	name := types.TypeString(t, func(p *types.Package) string { return p.Name() })
	switch {
	case writes && !reads:
		return true, &refusal{fmt.Sprintf("%s has a method %s but no %s, so its own output cannot be decoded", name, marshal, unmarshal),
			"add " + unmarshal + "([]byte) error" + way}
	case reads && !writes:
		return true, &refusal{fmt.Sprintf("%s has a method %s but no %s, so it decodes text but does not encode it", name, unmarshal, marshal),
			"add " + marshal + "() ([]byte, error)" + way}
	}
	return writes, nil
}
