// Package structure checks rules for the code of the runtime. It is for the tests of this module and of those below it.
package structure

import (
	"fmt"
	"go/ast"
	"go/types"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// CheckGoroutines checks that the function of every goroutine begins with a recover, by package guard or its own, and
// returns how many goroutines there are. The packages need their syntax and types. Those of unguarded need no guard:
// the keys are the directory's name, file and function, and the values are the reasons.
func CheckGoroutines(t *testing.T, loaded []*packages.Package, unguarded map[string]string) (found int) {
	t.Helper()
	bodies := map[string]*ast.BlockStmt{} // of named functions
	for _, p := range loaded {
		for _, file := range p.Syntax {
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					bodies[p.TypesInfo.Defs[f.Name].(*types.Func).FullName()] = f.Body
				}
			}
		}
	}
	used := map[string]bool{}
	for _, p := range loaded {
		for _, file := range p.Syntax {
			for _, d := range file.Decls {
				within, _ := d.(*ast.FuncDecl)
				ast.Inspect(d, func(n ast.Node) bool {
					started := startedBy(p.TypesInfo, n)
					if started == nil {
						return true
					}
					found++
					if guarded(p.TypesInfo, bodies, started) {
						return true
					}
					at := p.Fset.Position(n.Pos())
					name := shortName(at.Filename)
					if within != nil {
						name += " " + within.Name.Name
					}
					if unguarded[name] == "" {
						t.Errorf("%s:%d: the goroutine does not begin with a guard (%s)", at.Filename, at.Line, name)
					}
					used[name] = true
					return true
				})
			}
		}
	}
	for name := range unguarded {
		if !used[name] {
			t.Errorf("%s needs no exception", name)
		}
	}
	return found
}

// shortName returns a file's name with that of its directory.
func shortName(file string) string {
	directory, name := filepath.Split(file)
	return filepath.Base(directory) + "/" + name
}

// startedBy returns the function that a go statement, X.Go(f) or AfterFunc(when, f) runs in another
// goroutine. It returns nil for any other node.
func startedBy(info *types.Info, n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.GoStmt:
		return n.Call.Fun
	case *ast.CallExpr:
		called, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || len(n.Args) == 0 {
			return nil
		}
		last := n.Args[len(n.Args)-1]
		if isGuard(info, n) {
			return n
		}
		if _, ok := info.TypeOf(last).Underlying().(*types.Signature); !ok || called.Sel.Name != "Go" && called.Sel.Name != "AfterFunc" {
			return nil
		}
		return last
	}
	return nil
}

// isGuard reports whether a call is guard.Go or guard.Func.
func isGuard(info *types.Info, call *ast.CallExpr) bool {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = fmt.Sprint(info.Uses[f.Sel])
	case *ast.Ident: // in package guard
		name = fmt.Sprint(info.Uses[f])
	}
	return strings.Contains(name, "/runtime/internal/guard.Go(") || strings.Contains(name, "/runtime/internal/guard.Func(")
}

// guarded reports whether a function begins with a guard, or only ends a context.
func guarded(info *types.Info, bodies map[string]*ast.BlockStmt, f ast.Expr) bool {
	f = ast.Unparen(f)
	if call, ok := f.(*ast.CallExpr); ok && isGuard(info, call) {
		return true
	}
	if info.TypeOf(f).String() == "context.CancelFunc" {
		return true
	}
	var body *ast.BlockStmt
	switch f := f.(type) {
	case *ast.FuncLit:
		body = f.Body
	case *ast.Ident:
		if named, ok := info.Uses[f].(*types.Func); ok {
			body = bodies[named.FullName()]
		}
	case *ast.SelectorExpr:
		if named, ok := info.Uses[f.Sel].(*types.Func); ok {
			body = bodies[named.FullName()]
		}
	}
	if body == nil || len(body.List) == 0 {
		return false
	}
	first, ok := body.List[0].(*ast.DeferStmt)
	if !ok {
		return false
	}
	recovers := false
	switch called := ast.Unparen(first.Call.Fun).(type) {
	case *ast.SelectorExpr: // guard.Recover, guard.Then
		from, ok := info.Uses[called.Sel].(*types.Func)
		recovers = ok && from.Pkg() != nil && strings.HasSuffix(from.Pkg().Path(), "/runtime/internal/guard")
	case *ast.FuncLit:
		ast.Inspect(called.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && fmt.Sprint(call.Fun) == "recover" {
				recovers = true
			}
			return true
		})
	}
	return recovers
}
