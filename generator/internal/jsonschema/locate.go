package jsonschema

import (
	"go/token"
	"go/types"
)

// Place is the Go code that a part of a derived schema comes from. A field of another package has no valid position.
type Place struct {
	Owner, Name string    // the struct and its field, such as In and In.Steps; empty for the whole schema
	Pos         token.Pos // of the field
	Type        string    // the type of the part, if it has a name
	// TypePos is the position of the type. It is not valid in a module that the user does not edit.
	TypePos token.Position
	Guessed bool // the type is taken as an enum although nothing decides it
}

// Locate finds the place of a part of the schema that [Deriver.Derive] returns for a type. The path has the keywords and
// names from the root to the part, and goes through references. If the path leaves the type, the place is the last field
// on it.
func (d *Deriver) Locate(t types.Type, path []string) Place {
	t = pointee(types.Unalias(t))
	var owner types.Type // of the last field
	var last field
	for len(path) > 0 {
		next, used := types.Type(nil), 1
		switch path[0] {
		case "properties":
			if f, ok := d.findField(t, path[1]); ok {
				owner, last, next = t, f, f.variable.Type()
			}
			used = 2
		case "patternProperties", "additionalProperties", "items":
			next = elemOf(t)
			if path[0] == "patternProperties" {
				used = 2
			}
		case "anyOf": // a value or null
			next, used = t, 2
		}
		if next == nil {
			return d.placeOf(owner, last)
		}
		t, path = innermost(next), path[used:]
	}
	place := d.placeOf(owner, last)
	if named, ok := t.(*types.Named); ok {
		place.Type = d.typeName(named)
		place.TypePos, _ = d.declarationOf(named)
		place.Guessed = d.isGuessed(named)
	}
	return place
}

// placeOf returns the place of a field of a type, or an empty one if the type is nil.
func (d *Deriver) placeOf(t types.Type, f field) Place {
	if t == nil {
		return Place{}
	}
	place := Place{Owner: "struct"}
	if named, ok := t.(*types.Named); ok {
		place.Owner = d.typeName(named)
	}
	place.Name = place.Owner + "." + f.variable.Name()
	if d.docs.isOwn(f.variable) {
		place.Pos = f.variable.Pos()
	}
	return place
}

// findField returns the field of a struct that has a name in JSON.
func (d *Deriver) findField(t types.Type, name string) (f field, ok bool) {
	st, ok := t.Underlying().(*types.Struct)
	if !ok {
		return field{}, false
	}
	named, known := d.fields[st]
	if !known {
		named = map[string]field{}
		fields, _ := jsonFields(st)
		for _, f := range fields {
			named[f.name] = f
		}
		d.fields[st] = named
	}
	f, ok = named[name]
	return f, ok
}

// innermost returns the type that pointers point to in the end.
func innermost(t types.Type) types.Type {
	t = types.Unalias(t)
	for range 100 { // a type such as type P *P has no end
		p, ok := t.Underlying().(*types.Pointer)
		if !ok {
			break
		}
		t = types.Unalias(p.Elem())
	}
	return t
}
