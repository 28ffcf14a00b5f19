package model

import "go/types"

// Remote is another program's server, read from its list of tools. It is a package with one service
// whose types the generated file declares.
type Remote struct {
	Package

	Source string // the name of the file with the list
	Types  []*DeclaredType
}

// DeclaredType is a type that the generated file declares.
type DeclaredType struct {
	Name, Doc string
	// Type is the underlying type. It is nil for a struct, which has Fields.
	Type   types.Type
	Fields []*Field
	Consts []Const
	// Filled lists the fields whose nil value is encoded as an empty list or map.
	Filled []*Field
}

// Field is a field of a struct.
type Field struct {
	Name, Doc string
	JSON      string // the property's name
	Optional  bool   // omitted if zero
	Rest      bool   // collects additional properties; only the last field does
	Type      types.Type
}
