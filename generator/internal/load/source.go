package load

import (
	"context"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/packages"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

// Source is a parsed package with loaded imports.
type Source struct {
	Path    string // the import path
	Dir     string // absolute
	Fset    *token.FileSet
	Files   []*ast.File // with comments, without tests; read-only
	Ignored []string    // the paths of files that build constraints exclude
	Imports map[string]*types.Package
	Sizes   types.Sizes
	Version string // the language version, such as go1.26; empty means the newest
}

// Check type-checks a package without its generated files, as Load does.
func Check(ctx context.Context, src Source) *Package {
	generated := &generatedFiles{}
	pkg := &Package{
		Package: &packages.Package{PkgPath: src.Path, Fset: src.Fset, IgnoredFiles: src.Ignored, TypesSizes: src.Sizes},
		Dir:     src.Dir,
		scopes: &scopeCache{
			config:       packages.Config{Context: ctx, Dir: src.Dir, Fset: src.Fset},
			loaded:       map[string]*types.Scope{},
			askGoCommand: true,
		},
	}
	for _, file := range src.Files {
		pkg.Name = file.Name.Name
		name := src.Fset.Position(file.Package).Filename // the source file, even for files that cgo generated
		pkg.GoFiles = append(pkg.GoFiles, name)
		if header, ok := FindHeader(file); ok {
			generated.add(name, header)
		} else {
			pkg.Files = append(pkg.Files, file)
		}
	}
	pkg.findGenerated(generated)
	pkg.TypesInfo = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Instances: map[*ast.Ident]types.Instance{},
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	checker := types.Config{
		Importer: importMap(src.Imports), Sizes: src.Sizes, GoVersion: src.Version,
		IgnoreFuncBodies: true, // function bodies contain no tool's types
		FakeImportC:      true,
		Error: func(err error) {
			if e, ok := err.(types.Error); ok { //nolint:errorlint // go/types passes the value itself
				pkg.TypeErrors = append(pkg.TypeErrors, e)
			}
		},
	}
	// TypeErrors collects the errors, such as uses of the missing generated file.
	pkg.Types, _ = checker.Check(src.Path, src.Fset, pkg.Files, pkg.TypesInfo)
	return pkg
}

// FindHeader is like [commandline.FindHeader] for a file that was parsed with comments.
func FindHeader(file *ast.File) (commandline.Header, bool) {
	for _, group := range file.Comments {
		if group.Pos() > file.Package {
			break
		}
		for _, comment := range group.List {
			if header, ok := commandline.ParseHeader(comment.Text); ok {
				return header, true
			}
		}
	}
	return commandline.Header{}, false
}

// importMap resolves import paths to loaded packages.
type importMap map[string]*types.Package

// Import implements types.Importer.
func (i importMap) Import(path string) (*types.Package, error) {
	if pkg := i[path]; pkg != nil {
		return pkg, nil
	}
	return nil, fmt.Errorf("package %s is not loaded", path)
}
