package declaration

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/token"
	"go/types"
	"path/filepath"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// noteGated notes each type of the package's tools, and each constant of such a type, that is declared behind a build
// constraint that does not hold wherever the generated file is built. Another build may have another declaration, which
// the generated file does not fit.
func (r *reader) noteGated(out *model.Package, files []*ast.File) {
	gates := map[*token.File]string{}
	for _, file := range files {
		if text := r.constraintOf(file); text != "" && !isImplied(out.Constraint, text) {
			gates[r.fset.File(file.Package)] = text
		}
	}
	if len(gates) == 0 {
		return
	}
	w := gateWalker{reader: r, gates: gates, whole: cmp.Or(out.Constraint, "no constraint"), seen: map[types.Type]bool{}}
	for _, service := range out.Services {
		for _, tool := range service.Tools {
			w.walk(tool.In)
			w.walk(tool.Out)
		}
	}
	for _, input := range out.Inputs {
		w.walk(input.Type)
	}
}

// gateWalker walks the types that the schemas of a package are derived from.
type gateWalker struct {
	*reader

	gates map[*token.File]string // the constraint of each file that not every build has
	whole string                 // the constraint of the generated file
	seen  map[types.Type]bool
}

func (w *gateWalker) walk(t types.Type) {
	if t == nil || w.seen[t] {
		return
	}
	w.seen[t] = true
	if named, ok := types.Unalias(t).(*types.Named); ok {
		if named.Obj().Pkg() != w.pkg.Types {
			return
		}
		w.note(named.Obj(), "another build may declare it otherwise")
		for _, name := range w.pkg.Types.Scope().Names() {
			if c, ok := w.pkg.Types.Scope().Lookup(name).(*types.Const); ok && c.Type() == named && w.note(c, "another build may have other values of "+named.Obj().Name()) {
				break
			}
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for field := range u.Fields() {
			w.walk(field.Type())
		}
	case *types.Map:
		w.walk(u.Key())
		w.walk(u.Elem())
	case *types.Chan:
	case interface{ Elem() types.Type }:
		w.walk(u.Elem())
	}
}

// note notes a declaration if it is behind a gate.
func (w *gateWalker) note(obj types.Object, why string) bool {
	gate := w.gates[w.fset.File(obj.Pos())]
	if gate != "" {
		w.addNote(obj.Pos(), fmt.Sprintf("%s is declared in %s behind the build constraint %s, but the generated file has %s, and %s; move it to a file without one, or give the file of the service the same one",
			obj.Name(), filepath.Base(w.fset.Position(obj.Pos()).Filename), gate, w.whole, why))
	}
	return gate != ""
}

// isImplied reports whether a build constraint holds wherever another one does. It compares the parts that && joins.
func isImplied(by, text string) bool {
	if by == "" {
		return false
	}
	given, err := constraint.Parse("//go:build " + by)
	wanted, invalid := constraint.Parse("//go:build " + text)
	return err == nil && invalid == nil && implies(given, wanted)
}

func implies(given, wanted constraint.Expr) bool {
	if both, ok := wanted.(*constraint.AndExpr); ok {
		return implies(given, both.X) && implies(given, both.Y)
	}
	if both, ok := given.(*constraint.AndExpr); ok {
		return implies(both.X, wanted) || implies(both.Y, wanted)
	}
	return given.String() == wanted.String()
}
