package declaration

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"os"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// decisive are the methods that change what a type is in JSON.
var decisive = []string{
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText",
	"JSONSchema", "JSONSchemaExtend", "JSONSchemaAlias", "JSONSchemaProperty", "GetFieldDocString",
}

// needsBroken tells whether a file that does not parse may hold part of what the tools are made of: a
// type, a constant or a method of it that the parser has lost.
func (r *reader) needsBroken(out *model.Package) bool {
	broken := r.pkg.BrokenFiles()
	if len(broken) == 0 {
		return false
	}
	used := uses{pkg: r.pkg.Types, names: map[string]bool{}, seen: map[types.Type]bool{}}
	for _, service := range out.Services {
		for _, tool := range service.Tools {
			used.add(tool.In)
			used.add(tool.Out)
		}
	}
	for _, input := range out.Inputs {
		used.add(input.Type)
	}
	for _, spec := range r.interfaces {
		if r.readInterface[spec] {
			used.names[spec.Name.Name] = true
		}
	}
	for _, name := range broken {
		src, err := os.ReadFile(name)
		if err != nil || used.standIn(src) {
			return true
		}
	}
	return false
}

// uses are the names of a package that types are made of.
type uses struct {
	pkg   *types.Package
	names map[string]bool
	seen  map[types.Type]bool
}

func (u *uses) add(t types.Type) {
	if t == nil || u.seen[t] {
		return
	}
	u.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		u.name(t.Obj())
		u.add(types.Unalias(t))
	case *types.Named:
		u.name(t.Obj())
		for arg := range t.TypeArgs().Types() {
			u.add(arg)
		}
		u.add(t.Underlying())
	case *types.Struct:
		for field := range t.Fields() {
			u.add(field.Type())
		}
	case *types.Map:
		u.add(t.Key())
		u.add(t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays
		u.add(t.Elem())
	}
}

func (u *uses) name(obj types.Object) {
	if obj.Pkg() == u.pkg {
		u.names[obj.Name()] = true
	}
}

// standIn tells whether a source may declare one of the names, or a method or constants of one.
func (u *uses) standIn(src []byte) bool {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, src, nil, 0)
	words := map[string]bool{}
	before := token.ILLEGAL
	group := false // inside of type ( ... )
	for {
		_, tok, text := s.Scan()
		switch {
		case tok == token.EOF:
			for _, method := range decisive {
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

// noteInterface remembers an interface that gives a service its methods.
func (r *reader) noteInterface(iface *ast.InterfaceType) {
	for _, spec := range r.interfaces {
		if spec.Type == iface {
			r.readInterface[spec] = true
		}
	}
}
