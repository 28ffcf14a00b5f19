package model

import "go/types"

// Remote is somebody else's server, read from its list of tools: a package with one service, whose
// types this module declares.
type Remote struct {
	Package

	Source string // the name of the file that it was read from
	Types  []*Declared
}

// Declared is a type that the generated file declares.
type Declared struct {
	Name, Doc string
	// Type is what it is made of; nil for a struct, which has Fields.
	Type   types.Type
	Fields []*Field
	Consts []Const
	// Rest is the type of the properties without a field, which the last field collects; nil where
	// there are none.
	Rest types.Type
	// Filled are the fields whose nil is written as an empty list or map.
	Filled []*Field
}

// Field is a field of a struct.
type Field struct {
	Name, Doc string
	JSON      string // the property's name
	Optional  bool   // left out where it is zero
	Rest      bool   // no property, but those without a field
	Type      types.Type
}

// Const is a value of an enum.
type Const struct {
	Name, Doc, Value string
}

// RestFuncs are the functions that write and read the properties without a field.
func RestFuncs(service string) (join, split string) {
	return lower(service) + "Join", lower(service) + "Split"
}
