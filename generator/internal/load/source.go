package load

import (
	"context"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/packages"
)

// Source is a package that somebody else has parsed, and whose imports are loaded.
type Source struct {
	Path    string // the import path
	Dir     string // absolute
	Fset    *token.FileSet
	Files   []*ast.File // with comments, without tests; they stay as they are
	Ignored []string    // the paths of files that build constraints leave out
	Imports map[string]*types.Package
	Sizes   types.Sizes
	Version string // of the language, such as go1.26; empty for the newest
}

// Check type-checks a package anew, as Load does: without its generated files. cfg.Patterns and cfg.Tags
// have no effect.
func Check(ctx context.Context, cfg Config, src Source) *Package {
	generated := &generatedFiles{paths: map[string]bool{}}
	pkg := &Package{
		Package: &packages.Package{PkgPath: src.Path, Fset: src.Fset, IgnoredFiles: src.Ignored, TypesSizes: src.Sizes},
		Dir:     src.Dir,
		scopes: &scopes{
			config: packages.Config{Context: ctx, Dir: src.Dir, Fset: src.Fset},
			found:  map[string]*types.Scope{},
			ask:    true,
		},
	}
	for _, file := range src.Files {
		pkg.Name = file.Name.Name
		name := src.Fset.Position(file.Package).Filename // where cgo has the package clause from
		pkg.GoFiles = append(pkg.GoFiles, name)
		if HasHeader(file, cfg.Header) {
			generated.add(name)
		} else {
			pkg.Files = append(pkg.Files, file)
		}
	}
	pkg.findGenerated(cfg, generated)
	pkg.TypesInfo = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Instances: map[*ast.Ident]types.Instance{},
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	checker := types.Config{
		Importer: imports(src.Imports), Sizes: src.Sizes, GoVersion: src.Version,
		IgnoreFuncBodies: true, // no tool's type stands there
		FakeImportC:      true,
		Error: func(err error) {
			if e, ok := err.(types.Error); ok { //nolint:errorlint // go/types gives it as it is
				pkg.TypeErrors = append(pkg.TypeErrors, e)
			}
		},
	}
	// What does not compile is in TypeErrors: what uses the generated file does not.
	pkg.Types, _ = checker.Check(src.Path, src.Fset, pkg.Files, pkg.TypesInfo)
	return pkg
}

// HasHeader is [IsGenerated] of a file that was parsed with its comments.
func HasHeader(file *ast.File, header string) bool {
	for _, group := range file.Comments {
		if group.Pos() > file.Package {
			break
		}
		for _, comment := range group.List {
			if comment.Text == header {
				return true
			}
		}
	}
	return false
}

// imports are the packages that a package imports, by what its import declarations say.
type imports map[string]*types.Package

// Import implements types.Importer.
func (i imports) Import(path string) (*types.Package, error) {
	if pkg := i[path]; pkg != nil {
		return pkg, nil
	}
	return nil, fmt.Errorf("package %s is not loaded", path)
}
