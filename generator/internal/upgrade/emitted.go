package upgrade

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// generatedFile is what a generated file declares.
type generatedFile struct {
	revisions []string // the revisions it declares tasks in; empty for a file without a server of tasks
	names     []string // its exported protocol constants: states and error codes
}

// declaredRevisions returns the revisions that a file with the given flags was generated for. A file
// without a server of tasks does not say so itself.
func (e generatedFile) declaredRevisions(flags commandline.Flags) []string {
	switch {
	case len(e.revisions) > 0:
		return e.revisions
	case len(flags.Revisions) > 0:
		return flags.Revisions
	}
	return schema.ReleasedRevisions()
}

// AddFile notes the revisions of a generated file, which has the flags now, and returns the exported
// constants that it no longer has.
func (p *Package) AddFile(old, content []byte, flags commandline.Flags) (gone []string) {
	was, is := parseGeneratedFile(old), parseGeneratedFile(content)
	if header, generated := commandline.FindHeader(old); generated {
		p.Before = commandline.SortRevisions(append(p.Before, was.declaredRevisions(header.Flags)...))
	}
	p.Serves = p.Serves || len(was.revisions)+len(is.revisions) > 0
	p.After = commandline.SortRevisions(append(p.After, is.declaredRevisions(flags)...))
	return slices.DeleteFunc(was.names, func(name string) bool { return slices.Contains(is.names, name) })
}

// parseGeneratedFile reads a generated file. If the file does not parse, the result is empty.
func parseGeneratedFile(src []byte) (e generatedFile) {
	file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return generatedFile{}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Name.Name == "taskCapabilities" {
				e.revisions = findStringKeys(decl.Body)
			}
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

func findStringKeys(body ast.Node) (found []string) {
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

// FindNames returns the positions at which the files use each of the names.
func FindNames(fset *token.FileSet, files []*ast.File, names []string) map[string][]token.Position {
	found := map[string][]token.Position{}
	for _, name := range names {
		found[name] = nil
	}
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
