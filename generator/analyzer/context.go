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

// Context reports handlers that go on when their context has ended.
var Context = &analysis.Analyzer{
	Name: "mcptaskcontext",
	Doc: `report handlers that ignore their context

A cancel, the deadline and the ttl of a task reach its handler by the context alone. One that has no use
for it, but to tell its progress, and sleeps, waits, loops over calls, or calls what takes a context, goes
on after the task has ended. So does what gets context.Background() where the handler's own is at hand; a
deferred call may have it, and context.WithoutCancel(ctx) is for what must outlive the task.

Handlers are the methods of types that implement a //mcptask:service, and functions that are passed to
gosdk.AddTaskTool and mcptask.NewTool. A handler that is done at once needs no context.`,
	Run: func(pass *analysis.Pass) (any, error) {
		for _, h := range handlers(pass) {
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
	var own types.Object // nil where it has no name
	at := param.Pos()
	if len(param.Names) > 0 {
		own = pass.TypesInfo.Defs[param.Names[0]]
		if param.Names[0].Name == "_" {
			own = nil
		}
	}
	if own != nil {
		fresh := freshContexts(pass.TypesInfo, h.body)
		for _, call := range fresh {
			replaceContext(pass, h, own, call)
		}
		if len(fresh) > 0 || uses(pass.TypesInfo, h.body, own) {
			return
		}
	}
	if why := busy(pass.TypesInfo, h.body); why != "" {
		pass.Report(analysis.Diagnostic{
			Pos: at, End: param.End(),
			Message: fmt.Sprintf("%s ignores its context, and %s: it goes on when the task has ended", h.name, why),
		})
	}
}

// uses says whether a body has use for its context, beyond telling how far it is.
func uses(info *types.Info, body ast.Node, obj types.Object) bool {
	found := false
	ast.Inspect(body, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok && tells(info, call) {
			for _, arg := range call.Args[1:] {
				found = found || uses(info, arg, obj)
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

// freshContexts are the calls that make a context which never ends, but for deferred ones: what cleans
// up after a context has ended needs another.
func freshContexts(info *types.Info, body ast.Node) []*ast.CallExpr {
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
		Message: fmt.Sprintf("%s uses %s, where its own context ends with the task: use %s, or context.WithoutCancel(%[3]s) for what must outlive it",
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

// busy says what a body does that may take its time; "" where it is done at once.
func busy(info *types.Info, body ast.Node) string {
	why := ""
	polled := map[ast.Node]bool{} // operations on channels that do not wait
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
			} else if calls(info, node.Body) {
				why = "loops"
			}
		case *ast.ForStmt:
			if calls(info, node) {
				why = "loops"
			}
		case *ast.CallExpr:
			why = slow(info, node)
		}
		return true
	})
	return why
}

// waiting are functions that wait, and have no form that takes a context.
var waiting = map[string]bool{
	"time.Sleep": true, "(*sync.WaitGroup).Wait": true, "(*sync.Cond).Wait": true,
	"net.Dial": true, "net.DialTimeout": true, "net.LookupHost": true,
	"net/http.Get": true, "net/http.Head": true, "net/http.Post": true, "net/http.PostForm": true,
	"(*net/http.Client).Get": true, "(*net/http.Client).Head": true, "(*net/http.Client).Post": true,
	"(*net/http.Client).PostForm": true,
}

// tells says whether a call tells how far the task is: it is done at once, and does not stop the handler
// when the task has ended.
func tells(info *types.Info, call *ast.CallExpr) bool {
	f := typeutil.StaticCallee(info, call)
	return f != nil && telling[f.FullName()] && len(call.Args) > 0
}

var telling = map[string]bool{
	"(*" + declaration.Runtime + ".Task).Progress": true, "(*" + declaration.Runtime + ".Task).Message": true,
}

// slow says why a call may take its time.
func slow(info *types.Info, call *ast.CallExpr) string {
	if t := info.Types[call.Fun]; t.IsType() || t.IsBuiltin() || tells(info, call) {
		return ""
	}
	name := types.ExprString(ast.Unparen(call.Fun))
	if _, literal := ast.Unparen(call.Fun).(*ast.FuncLit); literal {
		name = "a function"
	}
	f := typeutil.StaticCallee(info, call)
	if f == nil { // of an interface, or a variable
		f, _ = typeutil.Callee(info, call).(*types.Func)
	}
	switch {
	case f != nil && f.Pkg() != nil && f.Pkg().Path() == "log/slog":
		return "" // its context is for values
	case f != nil && waiting[f.Origin().FullName()]:
		return "calls " + name + ", which waits"
	}
	if signature, ok := info.TypeOf(call.Fun).Underlying().(*types.Signature); ok && takesContext(signature) {
		return "calls " + name + ", which takes one"
	}
	if f == nil || f.Pkg() == nil {
		return ""
	}
	for _, suffix := range []string{"Context", "WithContext"} {
		if other := sibling(f, f.Name()+suffix); other != nil && takesContext(other.Signature()) {
			return "calls " + name + ", where " + other.Name() + " takes one"
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

// sibling is the function or method of another name beside one.
func sibling(f *types.Func, name string) *types.Func {
	if recv := f.Signature().Recv(); recv != nil {
		obj, _, _ := types.LookupFieldOrMethod(recv.Type(), true, f.Pkg(), name)
		other, _ := obj.(*types.Func)
		return other
	}
	other, _ := f.Pkg().Scope().Lookup(name).(*types.Func)
	return other
}

// quick are packages whose functions compute and are done: a loop over them needs no context.
var quick = map[string]bool{
	"bytes": true, "cmp": true, "encoding/base64": true, "encoding/hex": true, "encoding/json": true, "errors": true,
	"fmt": true, "log/slog": true, "maps": true, "math": true, "path": true, "path/filepath": true, "regexp": true,
	"slices": true, "sort": true, "strconv": true, "strings": true, "time": true, "unicode": true, "unicode/utf8": true,
}

// calls tells whether a loop calls anything that is not quick.
func calls(info *types.Info, loop ast.Node) bool {
	found := false
	ast.Inspect(loop, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || info.Types[call.Fun].IsType() || info.Types[call.Fun].IsBuiltin() || tells(info, call) {
			return !found
		}
		f, _ := typeutil.Callee(info, call).(*types.Func)
		found = found || f == nil || f.Pkg() != nil && !quick[f.Pkg().Path()] || slow(info, call) != ""
		return !found
	})
	return found
}
