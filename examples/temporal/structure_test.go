package main_test

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/mcptaskgen/mcptaskgen/golden/structure"
)

var update = flag.Bool("update", false, "rewrite the files in runtime/temporal/testdata/api")

// module precedes the import paths of the repository's packages.
const module = "github.com/mcptaskgen/mcptaskgen/"

// imports are the packages that those of the module runtime/temporal may import besides the standard library. "/..."
// means all below as well.
var imports = map[string][]string{
	"runtime/temporal": {
		module + "runtime", module + "runtime/taskserver", module + "runtime/temporal/internal/flowwire",
		module + "runtime/internal/cause", module + "runtime/internal/guard", module + "runtime/internal/spec", module + "runtime/internal/value",
		"go.temporal.io/...", "go.opentelemetry.io/otel/...", "google.golang.org/grpc/...",
	},
	// Workflows link it, and a program that only runs workflows.
	"runtime/temporal/taskflow": {
		module + "runtime", module + "runtime/internal/cause", module + "runtime/internal/value", module + "runtime/temporal/internal/flowwire",
		"go.temporal.io/api/...", "go.temporal.io/sdk/temporal", "go.temporal.io/sdk/workflow",
	},
	"runtime/temporal/taskflowtest": {module + "runtime/temporal/internal/flowwire", "go.temporal.io/sdk/testsuite"},
}

// TestStructure checks the module runtime/temporal as tests in golden/structure check the runtime: the exported names
// are those in its testdata/api, goroutines begin with a recover, and each package imports only the packages that it
// may. It is here so that the users of that module do not need the modules that it imports.
func TestStructure(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
	}, module+"runtime/temporal/...")
	if err != nil {
		t.Fatal(err)
	}
	if n := packages.PrintErrors(loaded); n > 0 {
		t.Fatalf("%d errors in packages", n)
	}
	if len(loaded) < len(imports) {
		t.Errorf("only %d packages were loaded", len(loaded))
	}
	structure.CheckGoroutines(t, loaded, nil)
	for _, p := range loaded {
		path := strings.TrimPrefix(p.PkgPath, module)
		allowed, ok := imports[path]
		if !ok && strings.Contains(path, "/internal/") {
			continue // its own matter, and no one's API
		}
		if !ok {
			t.Errorf("%s has no line in imports: add one", path)
		}
		file := filepath.Join(root, "runtime", "temporal", "testdata", "api", strings.ReplaceAll(path, "/", "-")+".txt")
		structure.CheckAPI(t, p, file, *update, "go -C examples/temporal test . -run TestStructure -update")
		for imported := range p.Imports {
			covered := slices.ContainsFunc(allowed, func(pattern string) bool {
				directory, below := strings.CutSuffix(pattern, "/...")
				return imported == directory || below && strings.HasPrefix(imported, directory+"/")
			})
			if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") && !covered {
				t.Errorf("%s imports %s, which its line in imports does not allow", path, imported)
			}
		}
	}
}
