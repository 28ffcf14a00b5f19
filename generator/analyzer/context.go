package analyzer

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/declaration"
)

// Context reports handlers that continue after their context has ended.
var Context = &analysis.Analyzer{
	Name: "mcptaskcontext",
	Doc: `report handlers that ignore their context

A cancel, a deadline and an expired ttl reach a task's handler only through its context. A handler is
reported if it uses its context only to report progress, and also sleeps, waits, loops over calls, or calls
a function that takes a context: it would continue after the task has ended. Passing context.Background()
to a call is reported too if the handler's own context is available. Deferred calls may use it, and
context.WithoutCancel(ctx) is for work that must outlive the task.

Handlers are the methods of types that implement a //mcptask:service, and functions passed to
gosdk.AddTaskTool and mcptask.NewTool. A handler that returns at once does not need its context.`,
	Run: func(pass *analysis.Pass) (any, error) {
		for _, h := range findHandlers(pass) {
			checkContext(pass, h)
		}
		return nil, nil
	},
}

func checkContext(pass *analysis.Pass, h handler) {
	if len(h.t.Params.List) == 0 || !isContext(pass.TypesInfo.TypeOf(h.t.Params.List[0].Type)) {
		return
	}
	param := h.t.Params.List[0]
	var own types.Object // nil if the parameter has no name
	at := param.Pos()
	if len(param.Names) > 0 {
		own = pass.TypesInfo.Defs[param.Names[0]]
		if param.Names[0].Name == "_" {
			own = nil
		}
	}
	if own != nil {
		fresh := findFreshContexts(pass.TypesInfo, h.body)
		for _, call := range fresh {
			replaceContext(pass, h, own, call)
		}
		if len(fresh) > 0 || usesContext(pass.TypesInfo, h.body, own) {
			return
		}
	}
	if why := findSlowWork(pass.TypesInfo, h.body); why != "" {
		pass.Report(analysis.Diagnostic{
			Pos: at, End: param.End(),
			Message: fmt.Sprintf("%s ignores its context and %s: it continues after the task has ended", h.name, why),
		})
	}
}

// usesContext reports whether a body uses its context for more than reporting progress.
func usesContext(info *types.Info, body ast.Node, obj types.Object) bool {
	found := false
	ast.Inspect(body, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok && reportsProgress(info, call) {
			for _, arg := range call.Args[1:] {
				found = found || usesContext(info, arg, obj)
			}
			return false
		}
		if id, ok := node.(*ast.Ident); ok && info.Uses[id] == obj {
			found = true
		}
		return !found
	})
	return found
}

// findFreshContexts returns the calls that make a context that never ends. It skips deferred calls,
// because cleaning up after a context has ended needs another one.
func findFreshContexts(info *types.Info, body ast.Node) []*ast.CallExpr {
	var calls []*ast.CallExpr
	ast.Inspect(body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.DeferStmt:
			return false
		case *ast.CallExpr:
			if f := typeutil.StaticCallee(info, node); f != nil && (f.FullName() == "context.Background" || f.FullName() == "context.TODO") {
				calls = append(calls, node)
			}
		}
		return true
	})
	return calls
}

func replaceContext(pass *analysis.Pass, h handler, own types.Object, call *ast.CallExpr) {
	d := analysis.Diagnostic{
		Pos: call.Pos(), End: call.End(),
		Message: fmt.Sprintf("%s uses %s, but its own context ends with the task: use %s, or context.WithoutCancel(%[3]s) for work that must outlive it",
			h.name, types.ExprString(call), own.Name()),
	}
	scope := pass.Pkg.Scope().Innermost(call.Pos())
	if scope != nil {
		if _, obj := scope.LookupParent(own.Name(), call.Pos()); obj == own {
			d.SuggestedFixes = []analysis.SuggestedFix{{
				Message:   "use " + own.Name(),
				TextEdits: []analysis.TextEdit{{Pos: call.Pos(), End: call.End(), NewText: []byte(own.Name())}},
			}}
		}
	}
	pass.Report(d)
}

// findSlowWork describes what a body does that may take long. It returns "" if the body returns at
// once.
func findSlowWork(info *types.Info, body ast.Node) string {
	why := ""
	polled := map[ast.Node]bool{} // channel operations in a select with a default
	ast.Inspect(body, func(node ast.Node) bool {
		if why != "" || polled[node] {
			return false
		}
		switch node := node.(type) {
		case *ast.SelectStmt:
			for _, clause := range node.Body.List {
				if clause.(*ast.CommClause).Comm == nil { // default
					for _, other := range node.Body.List {
						polled[other.(*ast.CommClause).Comm] = true
					}
				}
			}
			delete(polled, nil)
		case *ast.SendStmt:
			why = "waits on a channel"
		case *ast.UnaryExpr:
			if node.Op == token.ARROW {
				why = "waits on a channel"
			}
		case *ast.RangeStmt:
			if _, ok := info.TypeOf(node.X).Underlying().(*types.Chan); ok {
				why = "waits on a channel"
			} else if callsSlowCode(info, node.Body) {
				why = "loops"
			}
		case *ast.ForStmt:
			if callsSlowCode(info, node) {
				why = "loops"
			}
		case *ast.CallExpr:
			why = describeSlowCall(info, node)
		}
		return true
	})
	return why
}

// waitingFunctions are functions that wait and have no variant with a context.
var waitingFunctions = map[string]bool{
	"time.Sleep": true, "(*sync.WaitGroup).Wait": true, "(*sync.Cond).Wait": true,
	"net.Dial": true, "net.DialTimeout": true, "net.LookupHost": true,
	"net/http.Get": true, "net/http.Head": true, "net/http.Post": true, "net/http.PostForm": true,
	"(*net/http.Client).Get": true, "(*net/http.Client).Head": true, "(*net/http.Client).Post": true,
	"(*net/http.Client).PostForm": true,
}

// reportsProgress reports whether a call reports the progress of a task. Such a call returns at
// once and does not stop the handler when the task has ended.
func reportsProgress(info *types.Info, call *ast.CallExpr) bool {
	f := typeutil.StaticCallee(info, call)
	return f != nil && progressMethods[f.FullName()] && len(call.Args) > 0
}

var progressMethods = map[string]bool{
	"(*" + declaration.Runtime + ".Task).Progress": true, "(*" + declaration.Runtime + ".Task).Message": true,
}

// returnsAtOnce reports whether a call is a conversion, of a builtin, or a report of progress.
func returnsAtOnce(info *types.Info, call *ast.CallExpr) bool {
	t := info.Types[call.Fun]
	return t.IsType() || t.IsBuiltin() || reportsProgress(info, call)
}

// describeSlowCall says why a call may take long. It returns "" if it does not.
func describeSlowCall(info *types.Info, call *ast.CallExpr) string {
	if returnsAtOnce(info, call) {
		return ""
	}
	name := types.ExprString(ast.Unparen(call.Fun))
	if _, literal := ast.Unparen(call.Fun).(*ast.FuncLit); literal {
		name = "a function"
	}
	f, _ := typeutil.Callee(info, call).(*types.Func)
	switch {
	case f != nil && f.Pkg() != nil && f.Pkg().Path() == "log/slog":
		return "" // its context only carries values
	case f != nil && waitingFunctions[f.Origin().FullName()]:
		return "calls " + name + ", which waits"
	}
	if signature, ok := info.TypeOf(call.Fun).Underlying().(*types.Signature); ok && takesContext(signature) {
		return "calls " + name + ", which takes one"
	}
	if f == nil || f.Pkg() == nil {
		return ""
	}
	for _, suffix := range []string{"Context", "WithContext"} {
		if other := lookupSibling(f, f.Name()+suffix); other != nil && takesContext(other.Signature()) {
			return "calls " + name + " instead of " + other.Name() + ", which takes one"
		}
	}
	return ""
}

func takesContext(signature *types.Signature) bool {
	for param := range signature.Params().Variables() {
		if isContext(param.Type()) {
			return true
		}
	}
	return false
}

// lookupSibling finds the function or method with another name in the same scope as f.
func lookupSibling(f *types.Func, name string) *types.Func {
	if recv := f.Signature().Recv(); recv != nil {
		obj, _, _ := types.LookupFieldOrMethod(recv.Type(), true, f.Pkg(), name)
		other, _ := obj.(*types.Func)
		return other
	}
	other, _ := f.Pkg().Scope().Lookup(name).(*types.Func)
	return other
}

// quickPackages are packages whose functions only compute. A loop over them needs no context.
var quickPackages = map[string]bool{
	"bytes": true, "cmp": true, "encoding/base64": true, "encoding/hex": true, "encoding/json": true, "errors": true,
	"fmt": true, "log/slog": true, "maps": true, "math": true, "path": true, "path/filepath": true, "regexp": true,
	"slices": true, "sort": true, "strconv": true, "strings": true, "time": true, "unicode": true, "unicode/utf8": true,
}

// callsSlowCode reports whether a loop calls code outside quickPackages.
func callsSlowCode(info *types.Info, loop ast.Node) bool {
	found := false
	ast.Inspect(loop, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || returnsAtOnce(info, call) {
			return !found
		}
		f, _ := typeutil.Callee(info, call).(*types.Func)
		found = found || f == nil || f.Pkg() != nil && !quickPackages[f.Pkg().Path()] || describeSlowCall(info, call) != ""
		return !found
	})
	return found
}
