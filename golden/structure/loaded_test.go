package structure_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/packages"
)

// module precedes the import paths of our packages.
const module = "github.com/mcptaskgen/mcptaskgen/"

// publicPackages are the packages whose exported names users depend on.
var publicPackages = []string{
	"runtime", "runtime/taskserver", "runtime/taskstore", "runtime/storetest", "runtime/executortest", "runtime/gateway", "runtime/gosdk", "runtime/mcpgo", "runtime/console", "runtime/mcptasktest", "runtime/oteltask",
	"generator", "generator/analyzer", "generator/commandline",
}

// modulesBelow are the modules below package mcptask that go.work joins, but for those of tests.
var modulesBelow = []string{"runtime/mcpgo", "runtime/oteltask", "runtime/postgres", "runtime/sqlite"}

// loadPackages returns the public packages and all below runtime, with their types, by their
// paths in the module. The tests of the code's structure share one load.
func loadPackages(t *testing.T) map[string]*packages.Package {
	t.Helper()
	loaded, err := loadOnce()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

var loadOnce = sync.OnceValues(func() (map[string]*packages.Package, error) {
	patterns := []string{"./runtime/..."}
	for _, module := range modulesBelow {
		patterns = append(patterns, "./"+module+"/...")
	}
	for _, path := range publicPackages {
		patterns = append(patterns, "./"+path)
	}
	list, err := packages.Load(&packages.Config{
		Dir:  filepath.Join("..", ".."),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	if n := packages.PrintErrors(list); n > 0 {
		return nil, fmt.Errorf("%d errors in packages", n)
	}
	loaded := map[string]*packages.Package{}
	for _, p := range list {
		loaded[strings.TrimPrefix(p.PkgPath, module)] = p
	}
	return loaded, nil
})

// listedPackage is a package as go list describes it.
type listedPackage struct {
	ImportPath                         string
	Standard                           bool
	Imports, TestImports, XTestImports []string
}

// listPackages returns all packages of the modules in go.work, and all that they link, by import path.
func listPackages(t *testing.T) map[string]listedPackage {
	t.Helper()
	listed, err := listOnce()
	if err != nil {
		t.Fatal(err)
	}
	return listed
}

// findLinked returns the packages that a program links if it imports the given ones.
func findLinked(listed map[string]listedPackage, imports ...string) map[string]bool {
	linked := map[string]bool{}
	var visit func(path string)
	visit = func(path string) {
		if linked[path] {
			return
		}
		linked[path] = true
		for _, imported := range listed[path].Imports {
			visit(imported)
		}
	}
	for _, path := range imports {
		visit(path)
	}
	return linked
}

var listOnce = sync.OnceValues(func() (map[string]listedPackage, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,TestImports,XTestImports", "work")
	cmd.Dir = filepath.Join("..", "..")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	listed := map[string]listedPackage{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return listed, nil
		} else if err != nil {
			return nil, err
		}
		listed[p.ImportPath] = p
	}
})
