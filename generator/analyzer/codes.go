package analyzer

import (
	"go/ast"
	"go/constant"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/declaration"
)

// Code reports JSON-RPC error codes that are not a handler's to use.
var Code = &analysis.Analyzer{
	Name: "mcptaskcode",
	Doc: `report constant error codes that JSON-RPC and MCP reserve

The codes from -32768 to -32000 are reserved. A handler may use mcptask.CodeInvalidParams,
mcptask.CodeInternalError, -32021 and -32042 of them. The server replaces any other by mcptask.CodeInternalError. Calls of
mcptask.Errorf are checked, and literals of mcptask.Error.`,
	RunDespiteErrors: true,
	Run: func(pass *analysis.Pass) (any, error) {
		for _, file := range pass.Files {
			ast.Inspect(file, func(node ast.Node) bool {
				if code := findCode(pass.TypesInfo, node); code != nil {
					value, exact := constant.Int64Val(constant.ToInt(pass.TypesInfo.Types[code].Value))
					if exact && -32768 <= value && value <= -32000 && !slices.Contains(allowed, value) {
						pass.Reportf(code.Pos(), "the error code %d is reserved; use one outside of -32768 to -32000", value)
					}
				}
				return true
			})
		}
		return nil, nil //nolint:nilnil // it has no result
	},
}

// allowed are the reserved codes that handlers may use.
var allowed = []int64{-32602, -32603, -32021, -32042}

// findCode returns the constant code of an error that a node makes, or nil.
func findCode(info *types.Info, node ast.Node) ast.Expr {
	var code ast.Expr
	switch node := node.(type) {
	case *ast.CallExpr:
		name, _ := node.Fun.(*ast.SelectorExpr)
		if name != nil && len(node.Args) > 0 {
			if f, ok := info.Uses[name.Sel].(*types.Func); ok && f.Pkg() != nil && f.Pkg().Path() == declaration.Runtime && f.Name() == "Errorf" {
				code = node.Args[0]
			}
		}
	case *ast.CompositeLit:
		t := info.TypeOf(node)
		if pointer, ok := t.(*types.Pointer); ok { // in a list of pointers
			t = pointer.Elem()
		}
		if t != nil && declaration.IsNamed(t, declaration.Runtime, "Error") {
			for i, element := range node.Elts {
				if pair, ok := element.(*ast.KeyValueExpr); ok {
					if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "Code" {
						code = pair.Value
					}
				} else if i == 0 {
					code = element
				}
			}
		}
	}
	if code == nil || info.Types[code].Value == nil {
		return nil
	}
	return code
}
