package analyzer

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/cfg"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/declaration"
)

// Step reports questions in one function that share a step name.
var Step = &analysis.Analyzer{
	Name: "mcptaskstep",
	Doc: `report a second question under one step name

A question is stored under its step name, so that a handler that runs again gets the stored answer. If two
questions share a name, the second one gets a number in the order of asking. After a restart that takes
another path, one question may get the other's answer. One question in a loop, asked again on purpose, is
fine. So are two questions of which a run reaches only one.`,
	Run: func(pass *analysis.Pass) (any, error) {
		for _, file := range findWritten(pass) {
			for _, decl := range file.Decls {
				if decl, ok := decl.(*ast.FuncDecl); ok && decl.Body != nil {
					checkSteps(pass, decl.Body)
				}
			}
		}
		return nil, nil
	},
}

// question is a call that asks the user.
type question struct {
	step ast.Expr
	// way lists the function bodies around the question, outermost first. Each is paired with the
	// node in it that contains the question: the call, or the function literal around it.
	way []hold
}

type hold struct {
	body *ast.BlockStmt
	node ast.Node
}

// key identifies questions that share an answer.
type key struct {
	task any // the task variable's object, or else its expression
	step string
}

func checkSteps(pass *analysis.Pass, body *ast.BlockStmt) {
	order, asked := collectQuestions(pass.TypesInfo, body)
	graphs := map[*ast.BlockStmt]*cfg.CFG{}
	for _, k := range order {
		for i, second := range asked[k] {
			first := slices.IndexFunc(asked[k][:i], func(first question) bool { return canAskBoth(pass.TypesInfo, graphs, first, second) })
			if first < 0 {
				continue
			}
			before := asked[k][first].step
			pass.Report(analysis.Diagnostic{
				Pos: second.step.Pos(), End: second.step.End(),
				Message: fmt.Sprintf("the step %q also names the question on line %d: when the handler runs again, one may get the other's answer; give each question its own step name",
					k.step, pass.Fset.Position(before.Pos()).Line),
				Related: []analysis.RelatedInformation{{Pos: before.Pos(), End: before.End(), Message: "the other question"}},
			})
		}
	}
}

// collectQuestions returns the questions in a body by key, and the keys in source order.
func collectQuestions(info *types.Info, body *ast.BlockStmt) (order []key, asked map[key][]question) {
	asked = map[key][]question{}
	ast.PreorderStack(body, nil, func(node ast.Node, stack []ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		if k, step, ok := readQuestion(info, call); ok {
			if asked[k] == nil {
				order = append(order, k)
			}
			asked[k] = append(asked[k], question{step, findWay(body, stack, call)})
		}
		return true
	})
	return order, asked
}

// findWay returns the way to a call. stack has the nodes around it.
func findWay(body *ast.BlockStmt, stack []ast.Node, call *ast.CallExpr) (way []hold) {
	for _, node := range stack {
		if literal, ok := node.(*ast.FuncLit); ok {
			way = append(way, hold{body, literal})
			body = literal.Body
		}
	}
	return append(way, hold{body, call})
}

// readQuestion reads a call that asks a question with a constant step name.
func readQuestion(info *types.Info, call *ast.CallExpr) (k key, step ast.Expr, ok bool) {
	f := typeutil.StaticCallee(info, call)
	if f == nil || f.Pkg() == nil {
		return k, nil, false
	}
	var task ast.Expr
	switch params := f.Signature().Params(); {
	case f.Signature().Recv() != nil:
		selector, isSelector := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		asks := isTask(f.Signature().Recv().Type()) && slices.Contains([]string{"AskURL", "Roots", "Sample"}, f.Name())
		if !isSelector || !asks || len(call.Args) < 2 {
			return k, nil, false
		}
		task, step = selector.X, call.Args[1]
	case f.Pkg().Path() == declaration.Runtime && f.Name() == "Ask" && len(call.Args) == 5:
		task, step = call.Args[1], call.Args[3]
	case strings.HasPrefix(f.Name(), "Ask") && len(call.Args) == 4 && params.Len() == 4 &&
		isContext(params.At(0).Type()) && isTask(params.At(1).Type()) && isString(params.At(2).Type()) && isString(params.At(3).Type()):
		task, step = call.Args[1], call.Args[2]
	default:
		return k, nil, false
	}
	value := info.Types[step].Value
	if value == nil || value.Kind() != constant.String {
		return k, nil, false
	}
	k = key{task: types.ExprString(task), step: constant.StringVal(value)}
	if id, isIdent := ast.Unparen(task).(*ast.Ident); isIdent {
		k.task = info.Uses[id]
	}
	return k, step, true
}

func isTask(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	return ok && declaration.IsNamed(p.Elem(), declaration.Runtime, "Task")
}

func isString(t types.Type) bool { return types.Identical(t, types.Typ[types.String]) }

// canAskBoth reports whether one run may ask both questions. A question in a function literal
// counts as asked at the position of the literal.
func canAskBoth(info *types.Info, graphs map[*ast.BlockStmt]*cfg.CFG, a, b question) bool {
	i := 0
	for i+1 < min(len(a.way), len(b.way)) && a.way[i] == b.way[i] {
		i++
	}
	body := a.way[i].body
	if graphs[body] == nil {
		graphs[body] = cfg.New(body, func(call *ast.CallExpr) bool { return !neverReturns(info, call) })
	}
	return mayFollow(graphs[body], a.way[i].node, b.way[i].node) || mayFollow(graphs[body], b.way[i].node, a.way[i].node)
}

func neverReturns(info *types.Info, call *ast.CallExpr) bool {
	switch f := typeutil.Callee(info, call).(type) {
	case *types.Builtin:
		return f.Name() == "panic"
	case *types.Func:
		return f.FullName() == "os.Exit" || f.FullName() == "runtime.Goexit"
	}
	return false
}

func mayFollow(graph *cfg.CFG, a, b ast.Node) bool {
	from, i := locateNode(graph, a)
	to, j := locateNode(graph, b)
	if from == nil || to == nil {
		return false // unreachable
	}
	if from == to && (i < j || i == j && a.Pos() < b.Pos()) {
		return true
	}
	seen := map[*cfg.Block]bool{}
	queue := slices.Clone(from.Succs)
	for len(queue) > 0 {
		block := queue[0]
		queue = queue[1:]
		if block == to {
			return true
		}
		if !seen[block] {
			seen[block] = true
			queue = append(queue, block.Succs...)
		}
	}
	return false
}

// locateNode finds the block that contains a node, and the index in it. Nodes of a graph may
// contain each other, so it picks the narrowest one.
func locateNode(graph *cfg.CFG, node ast.Node) (*cfg.Block, int) {
	var in *cfg.Block
	at, width := 0, token.Pos(0)
	for _, block := range graph.Blocks {
		for i, n := range block.Nodes {
			if w := n.End() - n.Pos(); block.Live && n.Pos() <= node.Pos() && node.End() <= n.End() && (in == nil || w < width) {
				in, at, width = block, i, w
			}
		}
	}
	return in, at
}
