package declaration

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// reportInvalid reports a type that does not compile. It reports the same cause once.
func (r *reader) reportInvalid(p param, name string) bool {
	culprit, ok := findInvalid(p.t, map[types.Type]bool{})
	if !ok {
		return false
	}
	at, hint := r.explainInvalid(p, culprit)
	if r.faults[at] {
		r.repeated++
		return true
	}
	r.faults[at] = true
	r.addProblem(p.expr.Pos(), fmt.Sprintf("%s uses %s, which does not compile", name, types.ExprString(p.expr)), hint)
	return true
}

// explainInvalid finds the mistake that keeps a type from compiling, and a hint for it. culprit is the
// named type with the mistake, or nil.
func (r *reader) explainInvalid(p param, culprit types.Object) (token.Pos, string) {
	from, to := p.expr.Pos(), p.expr.End()
	if name, ok := p.expr.(*ast.Ident); ok && culprit == nil {
		culprit = r.pkg.TypesInfo.Uses[name] // such as an alias of itself
	}
	if culprit != nil {
		if spec := r.specOf(culprit); spec != nil {
			from, to = spec.Pos(), spec.End()
		}
	}
	imported, imports := token.NoPos, ""
	for _, e := range r.pkg.TypeErrors {
		switch {
		case e.Pos >= from && e.Pos < to:
			return e.Pos, r.describeLine(e.Pos) + ": " + e.Msg + r.suggestName(e.Msg)
		case imports == "" && strings.HasPrefix(e.Msg, "could not import"):
			imported, imports = e.Pos, r.describeLine(e.Pos)+": "+e.Msg
		}
	}
	if imports == "" && culprit != nil {
		if named, ok := culprit.Type().(*types.Named); ok && named.TypeParams().Len() > 0 {
			return culprit.Pos(), fmt.Sprintf("%s contains ever deeper instances of itself; inside %[1]s, use it only with its own type arguments", culprit.Name())
		}
	}
	return cmp.Or(imported, from), imports
}

// suggestName explains an undefined name that the generated file declares, and that of the runtime.
func (r *reader) suggestName(message string) string {
	name, _ := strings.CutPrefix(message, "undefined: ")
	if name == "mcptask" {
		return "; import mcptask " + strconv.Quote(Runtime)
	}
	if instead, ok := r.protocol[name]; ok {
		return "; the generated file declares it, and is not read for the types of tools: write mcptask." + instead
	}
	return ""
}

// isInvalid reports whether t is the invalid type.
func isInvalid(t types.Type) bool {
	basic, ok := t.(*types.Basic)
	return ok && basic.Kind() == types.Invalid
}

// findInvalid reports whether a type contains an invalid one, and in which named type.
func findInvalid(t types.Type, seen map[types.Type]bool) (types.Object, bool) {
	if seen[t] {
		return nil, false
	}
	seen[t] = true
	switch t := t.(type) {
	case *types.Basic:
		return nil, t.Kind() == types.Invalid
	case *types.Alias:
		if obj, ok := findInvalidArguments(t, t.Obj(), t.TypeArgs(), seen); ok {
			return obj, ok
		}
		return findInvalidWithin(t.Obj(), types.Unalias(t), seen)
	case *types.Named:
		if obj, ok := findInvalidArguments(t, t.Obj(), t.TypeArgs(), seen); ok {
			return obj, ok
		}
		return findInvalidWithin(t.Obj(), t.Underlying(), seen)
	case *types.Struct:
		for i := range t.NumFields() {
			if obj, ok := findInvalid(t.Field(i).Type(), seen); ok {
				return obj, ok
			}
		}
	case *types.Map:
		if obj, ok := findInvalid(t.Key(), seen); ok {
			return obj, ok
		}
		return findInvalid(t.Elem(), seen)
	case interface{ Elem() types.Type }: // pointers, slices, arrays
		return findInvalid(t.Elem(), seen)
	}
	return nil, false
}

// findInvalidArguments is findInvalid for the type arguments of an instance.
func findInvalidArguments(t types.Type, obj types.Object, args *types.TypeList, seen map[types.Type]bool) (types.Object, bool) {
	if nestsDeeper(t, maxInstanceDepth) {
		return obj, true // its own type arguments are even deeper, without end
	}
	for arg := range args.Types() {
		if culprit, ok := findInvalid(arg, seen); ok {
			return culprit, ok
		}
	}
	return nil, false
}

// maxInstanceDepth is how deep the arguments of a type may nest. Go itself refuses type G[T any]
// struct{ Next *G[[]T] }, but only in a package without other mistakes.
const maxInstanceDepth = 10

// nestsDeeper reports whether the arguments of a type nest deeper than limit.
func nestsDeeper(t types.Type, limit int) bool {
	if limit < 0 {
		return true
	}
	switch t := t.(type) {
	case *types.Named:
		return anyNestsDeeper(t.TypeArgs(), limit)
	case *types.Alias:
		return anyNestsDeeper(t.TypeArgs(), limit)
	case *types.Struct:
		for field := range t.Fields() {
			if nestsDeeper(field.Type(), limit-1) {
				return true
			}
		}
	case *types.Map:
		return nestsDeeper(t.Key(), limit-1) || nestsDeeper(t.Elem(), limit-1)
	case interface{ Elem() types.Type }:
		return nestsDeeper(t.Elem(), limit-1)
	}
	return false
}

func anyNestsDeeper(args *types.TypeList, limit int) bool {
	for arg := range args.Types() {
		if nestsDeeper(arg, limit-1) {
			return true
		}
	}
	return false
}

func findInvalidWithin(obj types.Object, t types.Type, seen map[types.Type]bool) (types.Object, bool) {
	inner, ok := findInvalid(t, seen)
	if ok && inner == nil {
		inner = obj
	}
	return inner, ok
}
