package analyzer

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/declaration"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
)

// handler is a function that runs a tool.
type handler struct {
	name string
	t    *ast.FuncType
	body *ast.BlockStmt
}

// findHandlers returns the handlers of the package: methods of its types that implement a service,
// and functions that it registers as tools. It skips tests and generated files, whose functions may
// have the signature of a handler without using all of it.
func findHandlers(pass *analysis.Pass) []handler {
	methods := findImplementations(pass)
	declared := map[*types.Func]*ast.FuncDecl{}
	written := findWritten(pass)
	var list []handler
	for _, file := range written {
		for _, decl := range file.Decls {
			decl, ok := decl.(*ast.FuncDecl)
			if !ok || decl.Body == nil {
				continue
			}
			if f, ok := pass.TypesInfo.Defs[decl.Name].(*types.Func); ok {
				declared[f] = decl
				if methods[f] {
					list = append(list, handler{decl.Name.Name, decl.Type, decl.Body})
				}
			}
		}
	}
	for _, file := range written {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch f := registeredHandler(pass.TypesInfo, call).(type) {
			case *ast.FuncLit:
				list = append(list, handler{"the handler", f.Type, f.Body})
			case *ast.Ident:
				if f, ok := pass.TypesInfo.Uses[f].(*types.Func); ok && declared[f.Origin()] != nil && !methods[f.Origin()] {
					decl := declared[f.Origin()]
					list = append(list, handler{decl.Name.Name, decl.Type, decl.Body})
					methods[f.Origin()] = true // list it once
				}
			}
			return true
		})
	}
	return list
}

// findWritten returns the files that are neither tests nor generated.
func findWritten(pass *analysis.Pass) []*ast.File {
	files, _ := load.FindSources(pass)
	return slices.DeleteFunc(files, ast.IsGenerated)
}

// findImplementations returns the methods of the package's types that implement services. A service
// is recognized by its generated function <Service>Tools. Its implementation does not need to be
// registered in this package.
func findImplementations(pass *analysis.Pass) map[*types.Func]bool {
	services := servicesOf(pass.Pkg)
	for _, pkg := range pass.Pkg.Imports() {
		services = append(services, servicesOf(pkg)...)
	}
	found := map[*types.Func]bool{}
	for _, name := range pass.Pkg.Scope().Names() {
		typeName, ok := pass.Pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || typeName.IsAlias() || types.IsInterface(typeName.Type()) {
			continue
		}
		if named, ok := typeName.Type().(*types.Named); !ok || named.TypeParams() != nil {
			continue
		}
		pointer := types.NewPointer(typeName.Type())
		for _, service := range services {
			if !types.Implements(pointer, service) {
				continue
			}
			for method := range service.Methods() {
				obj, _, _ := types.LookupFieldOrMethod(pointer, true, pass.Pkg, method.Name())
				if f, ok := obj.(*types.Func); ok {
					found[f.Origin()] = true
				}
			}
		}
	}
	return found
}

// servicesOf returns the interfaces of a package that have a generated <Service>Tools function.
func servicesOf(pkg *types.Package) []*types.Interface {
	var list []*types.Interface
	for _, name := range pkg.Scope().Names() {
		service, ok := strings.CutSuffix(name, "Tools")
		if !ok {
			continue
		}
		f, ok := pkg.Scope().Lookup(name).(*types.Func)
		if !ok || f.Signature().Params().Len() != 1 || f.Signature().Results().Len() != 1 ||
			!declaration.IsNamed(f.Signature().Results().At(0).Type(), declaration.Runtime, "Tools") {
			continue
		}
		param := f.Signature().Params().At(0).Type()
		if iface, ok := param.Underlying().(*types.Interface); ok && declaration.IsNamed(param, pkg.Path(), service) {
			list = append(list, iface)
		}
	}
	return list
}

// registeredHandler returns the function that a call registers as a handler, or nil if it registers
// none.
func registeredHandler(info *types.Info, call *ast.CallExpr) ast.Expr {
	f := typeutil.StaticCallee(info, call)
	if f == nil || f.Pkg() == nil {
		return nil
	}
	at := -1
	switch f.Pkg().Path() + "." + f.Name() {
	case declaration.Runtime + ".NewTool":
		at = 1
	case declaration.Runtime + "/gosdk.AddTaskTool":
		at = 3
	}
	if at < 0 || at >= len(call.Args) {
		return nil
	}
	arg := ast.Unparen(call.Args[at])
	switch instance := arg.(type) {
	case *ast.IndexExpr:
		arg = instance.X
	case *ast.IndexListExpr:
		arg = instance.X
	}
	if selector, ok := arg.(*ast.SelectorExpr); ok {
		return selector.Sel
	}
	return arg
}

func isContext(t types.Type) bool { return declaration.IsNamed(t, "context", "Context") }
