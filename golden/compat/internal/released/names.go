package released

import (
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const runtimePath = "github.com/mcptaskgen/mcptaskgen/runtime"

// Handshake is the name of a constant that generated code names.
var Handshake = regexp.MustCompile(`^GeneratedV[1-9]\d*$`)

// Use has the names of the runtime that one generated file uses.
type Use struct {
	Path string
	// Handshakes are the constants that require a minimum version of the runtime. There is one.
	Handshakes []string
	// Names are the others, sorted: Run, and Policy.TTL for fields and methods.
	Names []string
}

// Uses reads the generated files of the packages that match. They need not compile.
func Uses(dir string, patterns ...string) ([]Use, error) {
	loaded, err := packages.Load(&packages.Config{
		Dir: dir,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	var uses []Use
	for _, pkg := range loaded {
		if pkg.TypesInfo == nil || pkg.Types == nil {
			return nil, fmt.Errorf("%s cannot be read: %v", pkg.PkgPath, pkg.Errors)
		}
		members := map[types.Object]string{}
		for _, imported := range pkg.Types.Imports() {
			if imported.Path() == runtimePath {
				members = membersOf(imported)
			}
		}
		for _, file := range pkg.Syntax {
			path := pkg.Fset.File(file.Pos()).Name()
			if !strings.HasSuffix(path, "_gen.go") {
				continue
			}
			use := Use{Path: path}
			for _, name := range namesIn(file, pkg.TypesInfo, members) {
				if Handshake.MatchString(name) {
					use.Handshakes = append(use.Handshakes, name)
				} else {
					use.Names = append(use.Names, name)
				}
			}
			uses = append(uses, use)
		}
	}
	return uses, nil
}

// namesIn are the names of the runtime in a file, sorted. A name that the runtime no longer has is a selector without
// an object.
func namesIn(file *ast.File, info *types.Info, members map[types.Object]string) []string {
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			if imported, ok := info.Uses[x].(*types.PkgName); ok && imported.Imported().Path() == runtimePath {
				names = append(names, n.Sel.Name)
			}
		case *ast.Ident:
			switch used := info.Uses[n].(type) {
			case *types.Var:
				names = append(names, members[used.Origin()])
			case *types.Func:
				names = append(names, members[used.Origin()])
			}
		}
		return true
	})
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// membersOf are the fields and methods of the types of a package, such as Policy.TTL.
func membersOf(pkg *types.Package) map[types.Object]string {
	members := map[types.Object]string{}
	for _, name := range pkg.Scope().Names() {
		t, ok := pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok {
			continue
		}
		if named, ok := t.Type().(*types.Named); ok {
			for method := range named.Methods() {
				members[method] = name + "." + method.Name()
			}
		}
		switch underlying := t.Type().Underlying().(type) {
		case *types.Struct:
			for field := range underlying.Fields() {
				members[field] = name + "." + field.Name()
			}
		case *types.Interface:
			for method := range underlying.Methods() {
				members[method] = name + "." + method.Name()
			}
		}
	}
	return members
}

// Exported are the names that the runtime has: Run, and Policy.TTL for fields and methods.
func Exported(dir string) (map[string]bool, error) {
	loaded, err := packages.Load(&packages.Config{
		Dir: dir, Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedExportFile,
	}, runtimePath)
	if err != nil {
		return nil, err
	}
	if len(loaded) != 1 || len(loaded[0].Errors) > 0 {
		return nil, fmt.Errorf("the runtime cannot be read: %v", loaded[0].Errors)
	}
	names := map[string]bool{}
	for _, name := range loaded[0].Types.Scope().Names() {
		names[name] = true
	}
	for _, name := range membersOf(loaded[0].Types) {
		names[name] = true
	}
	return names, nil
}

// Promised reads the names of a runtime that has a constant: those of the constant's list, and of the lists of all
// constants before it.
func Promised(compat, handshake string) ([]string, error) {
	var n int
	if _, err := fmt.Sscanf(handshake, "GeneratedV%d", &n); err != nil {
		return nil, fmt.Errorf("%q is no constant such as GeneratedV1", handshake)
	}
	var names []string
	for i := range n {
		text, err := os.ReadFile(filepath.Join(compat, fmt.Sprintf("GeneratedV%d.txt", i+1)))
		if errors.Is(err, os.ErrNotExist) {
			continue // nothing was new, or it is not written yet
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") {
				names = append(names, strings.TrimSpace(line))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
