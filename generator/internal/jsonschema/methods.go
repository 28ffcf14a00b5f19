package jsonschema

import (
	"fmt"
	"go/types"
)

// hasMethod tells whether a type or a pointer to it has one of the methods. An interface's do not
// count: its values are written as what they hold.
func hasMethod(t types.Type, names ...string) bool {
	_, name := findMethod(t, names...)
	return name != ""
}

// findMethod finds the first of the methods that a type or a pointer to it has, and the embedded field
// that it is from; nil where it is the type's own. One of encoding/json that takes or returns something
// else is none to it.
func findMethod(t types.Type, names ...string) (from *types.Var, name string) {
	if types.IsInterface(t) {
		return nil, ""
	}
	set := types.NewMethodSet(types.NewPointer(t))
	for _, name := range names {
		found := set.Lookup(nil, name)
		if found == nil || !fits(name, found.Type()) {
			continue
		}
		if st, ok := t.Underlying().(*types.Struct); ok && len(found.Index()) > 1 {
			from = st.Field(found.Index()[0])
		}
		return from, name
	}
	return nil, ""
}

// hasOfValue tells whether a value of a type has a method without being asked for its address.
func hasOfValue(t types.Type, name string) bool {
	found := types.NewMethodSet(t).Lookup(nil, name)
	return found != nil && fits(name, found.Type())
}

// signatures are those that encoding/json asks for.
var signatures = map[string]string{
	"MarshalJSON": "func() ([]byte, error)", "UnmarshalJSON": "func([]byte) error",
	"MarshalText": "func() ([]byte, error)", "UnmarshalText": "func([]byte) error",
}

func fits(name string, method types.Type) bool {
	want, known := signatures[name]
	if !known {
		return true
	}
	// Without the names of parameters, which the signature of a type has too.
	s := method.(*types.Signature)
	bare := types.NewSignatureType(nil, nil, nil, unnamed(s.Params()), unnamed(s.Results()), s.Variadic())
	return types.TypeString(bare, nil) == want
}

func unnamed(tuple *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range tuple.Variables() {
		vars = append(vars, types.NewParam(v.Pos(), v.Pkg(), "", types.Unalias(v.Type())))
	}
	return types.NewTuple(vars...)
}

// textual tells whether encoding/json writes and reads a type as the text that its methods make of it.
// Where it has one of them alone, it writes what it cannot read: no schema is right for both.
func textual(t types.Type) (bool, error) {
	const (
		marshal, unmarshal = "MarshalText", "UnmarshalText"
		way                = `, or set the type of the field with jsonschema:"type=string"`
	)
	writes, reads := hasMethod(t, marshal), hasMethod(t, unmarshal)
	name := types.TypeString(t, func(p *types.Package) string { return p.Name() })
	switch {
	case writes && !reads:
		return true, &refusal{fmt.Sprintf("%s has a method %s but no %s, so the text that it writes cannot be read", name, marshal, unmarshal),
			"give it " + unmarshal + "([]byte) error too" + way}
	case reads && !writes:
		return true, &refusal{fmt.Sprintf("%s has a method %s but no %s, so it reads text but does not write it", name, unmarshal, marshal),
			"give it " + marshal + "() ([]byte, error) too" + way}
	}
	return writes, nil
}
