package upgrade

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
)

// emitted is what a generated file says of itself.
type emitted struct {
	revisions     []string // that it declares tasks in; none in a file for clients only
	names         []string // its exported constants of the protocol: states and error codes
	serves, calls bool     // which halves it has
}

// readEmitted reads a generated file; one that does not parse says nothing.
func readEmitted(src []byte) (e emitted) {
	file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return emitted{}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Name.Name == "taskCapabilities" {
				e.serves, e.revisions = true, keys(decl.Body)
			}
			e.calls = e.calls || decl.Recv != nil
		case *ast.GenDecl:
			if decl.Tok != token.CONST {
				continue
			}
			for _, spec := range decl.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && v.Names[0].IsExported() {
					e.names = append(e.names, v.Names[0].Name)
				}
			}
		}
	}
	slices.Sort(e.names)
	return e
}

// keys are the strings that are keys of a literal.
func keys(body ast.Node) (found []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.BasicLit); ok && key.Kind == token.STRING {
				if text, err := strconv.Unquote(key.Value); err == nil {
					found = append(found, text)
				}
			}
		}
		return true
	})
	return found
}

// findNames finds where the files of a package use names that the generated file has.
func findNames(fset *token.FileSet, files []*ast.File, names []string) map[string][]token.Position {
	found := map[string][]token.Position{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && slices.Contains(names, id.Name) {
				found[id.Name] = append(found[id.Name], fset.Position(id.Pos()))
			}
			return true
		})
	}
	return found
}
