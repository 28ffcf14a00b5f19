package declaration

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"os"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// jsonMethods are the methods that change how a type is represented in JSON.
var jsonMethods = []string{
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText",
	"JSONSchema", "JSONSchemaExtend", "JSONSchemaAlias", "JSONSchemaProperty", "GetFieldDocString",
}

// mayNeedBrokenFiles reports whether a file that does not parse may declare something the tools
// depend on: a type, or a constant or method of a type.
func (r *reader) mayNeedBrokenFiles(out *model.Package) bool {
	broken := r.pkg.BrokenFiles()
	if len(broken) == 0 {
		return false
	}
	used := usedNames{pkg: r.pkg.Types, names: map[string]bool{}, seen: map[types.Type]bool{}}
	for _, service := range out.Services {
		for _, tool := range service.Tools {
			used.addType(tool.In)
			used.addType(tool.Out)
		}
	}
	for _, input := range out.Inputs {
		used.addType(input.Type)
	}
	for _, spec := range r.interfaces {
		if iface, ok := spec.Type.(*ast.InterfaceType); ok && r.readInterface[iface] {
			used.names[spec.Name.Name] = true
		}
	}
	for _, name := range broken {
		src, err := os.ReadFile(name)
		if err != nil || used.mayBeDeclaredIn(src) {
			return true
		}
	}
	return false
}

// usedNames collects the names that types refer to in one package.
type usedNames struct {
	pkg   *types.Package
	names map[string]bool
	seen  map[types.Type]bool
}

func (u *usedNames) addType(t types.Type) {
	if t == nil || u.seen[t] {
		return
	}
	u.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		u.addName(t.Obj())
		u.addType(types.Unalias(t))
	case *types.Named:
		u.addName(t.Obj())
		for arg := range t.TypeArgs().Types() {
			u.addType(arg)
		}
		u.addType(t.Underlying())
	case *types.Struct:
		for field := range t.Fields() {
			u.addType(field.Type())
		}
	case *types.Map:
		u.addType(t.Key())
		u.addType(t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays
		u.addType(t.Elem())
	}
}

func (u *usedNames) addName(obj types.Object) {
	if obj.Pkg() == u.pkg {
		u.names[obj.Name()] = true
	}
}

// mayBeDeclaredIn reports whether a source may declare one of the names, or its methods or
// constants.
func (u *usedNames) mayBeDeclaredIn(src []byte) bool {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, src, nil, 0)
	words := map[string]bool{}
	before := token.ILLEGAL
	group := false // inside type ( ... )
	for {
		_, tok, text := s.Scan()
		switch {
		case tok == token.EOF:
			for _, method := range jsonMethods {
				words["const"] = words["const"] || words[method]
			}
			for name := range u.names {
				if words["const"] && words[name] {
					return true
				}
			}
			return false
		case tok == token.IDENT && u.names[text] && (before == token.TYPE || group && (before == token.LPAREN || before == token.SEMICOLON)):
			return true
		case tok == token.IDENT:
			words[text] = true
		case tok == token.CONST:
			words["const"] = true
		case tok == token.LPAREN && before == token.TYPE:
			group = true
		case tok == token.FUNC || tok == token.VAR:
			group = false
		}
		before = tok
	}
}
