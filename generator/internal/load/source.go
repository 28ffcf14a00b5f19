package load

import (
	"context"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/packages"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

// FileName returns the absolute path of a file. For a file that cgo generated, it returns the path of
// the source.
func FileName(fset *token.FileSet, file *ast.File) string {
	name := fset.Position(file.Package).Filename
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

// FindSources returns the files of an analysis that are not tests, and their directory.
func FindSources(pass *analysis.Pass) (files []*ast.File, dir string) {
	for _, file := range pass.Files {
		name := FileName(pass.Fset, file)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		files = append(files, file)
		if dir == "" && filepath.Base(name) != "_cgo_gotypes.go" { // that file is in another directory
			dir = filepath.Dir(name)
		}
	}
	return files, dir
}

// Check type-checks the package of an analysis without its generated files and tests, as Load does.
func Check(ctx context.Context, pass *analysis.Pass) *Package {
	generated := &generatedFiles{}
	files, dir := FindSources(pass)
	pkg := &Package{
		Package: &packages.Package{PkgPath: pass.Pkg.Path(), Fset: pass.Fset, IgnoredFiles: pass.IgnoredFiles, TypesSizes: pass.TypesSizes},
		Dir:     dir,
		scopes: &scopeCache{
			config:       packages.Config{Context: ctx, Dir: dir, Fset: pass.Fset},
			loaded:       map[string]*types.Scope{},
			askGoCommand: true,
		},
	}
	imports := importMap{}
	for _, file := range files {
		pkg.Name = file.Name.Name
		name := FileName(pass.Fset, file)
		pkg.GoFiles = append(pkg.GoFiles, name)
		if header, ok := FindHeader(file); ok {
			generated.Store(name, header)
		} else {
			pkg.Files = append(pkg.Files, file)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if name := pass.TypesInfo.PkgNameOf(spec); err == nil && name != nil {
				imports[path] = name.Imported()
			}
		}
	}
	pkg.findGenerated(generated)
	pkg.TypesInfo = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Instances: map[*ast.Ident]types.Instance{},
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	checker := types.Config{
		Importer: imports, Sizes: pass.TypesSizes, GoVersion: pass.Pkg.GoVersion(),
		IgnoreFuncBodies: true, // function bodies contain no tool's types
		FakeImportC:      true,
		Error: func(err error) {
			if e, ok := err.(types.Error); ok { //nolint:errorlint // go/types passes the value itself
				pkg.TypeErrors = append(pkg.TypeErrors, e)
			}
		},
	}
	// TypeErrors collects the errors, such as uses of the missing generated file.
	pkg.Types, _ = checker.Check(pkg.PkgPath, pass.Fset, pkg.Files, pkg.TypesInfo)
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
