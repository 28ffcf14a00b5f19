package mcptask

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mcptaskgen/mcptaskgen/"

// goList runs go list at the module's root.
func goList(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = ".."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}

// under says whether a package is path or lies below it.
func under(pkg, path string) bool { return pkg == path || strings.HasPrefix(pkg, path+"/") }

// TestLinksLittle: a program that imports this package links no HTTP, no SDK
// and no driver.
func TestLinksLittle(t *testing.T) {
	deps := strings.Fields(string(goList(t, "-deps", "./runtime")))
	if len(deps) < 50 || !slices.Contains(deps, module+"runtime") {
		t.Fatalf("go list tells too little: %v", deps)
	}
	for _, dep := range deps {
		for _, heavy := range []string{
			"net", "database/sql", "os/exec", "testing", "github.com/modelcontextprotocol", "github.com/invopop", "github.com/dave/jennifer",
			"golang.org/x/tools", "modernc.org", "github.com/jackc", "go.opentelemetry.io", "pgregory.net", module + "generator",
		} {
			if under(dep, heavy) && dep != "net/url" && dep != "net/netip" { // these two open no connection
				t.Errorf("the package links %s", dep)
			}
		}
	}
}

// TestArrows: cmd to generator to schema and templates, generated code to
// runtime, gateway to dialect to runtime, and never back.
func TestArrows(t *testing.T) {
	// What a package below the first may not import, directly: since each of
	// the packages in between is checked as well, not indirectly either.
	forbidden := []struct {
		from  string
		to    []string
		tests bool
	}{
		{from: "runtime", to: []string{"generator", "cmd", "templates"}, tests: true},
		{from: "runtime", to: []string{"golden", "examples"}},
		{from: "generator", to: []string{"runtime", "cmd", "golden", "examples"}, tests: true},
		{from: "schema", to: []string{"runtime", "generator", "cmd", "golden"}, tests: true},
		{from: "templates", to: []string{"runtime", "generator", "cmd", "golden"}, tests: true},
		{from: "runtime/internal/dialect", to: []string{"runtime/gateway", "runtime/gosdk"}, tests: true},
		{from: "runtime/internal/wire", to: []string{"runtime/internal/dialect", "runtime/gateway", "runtime/gosdk"}, tests: true},
		{from: "runtime/gateway", to: []string{"runtime/gosdk"}},
	}
	// Parts of package mcptask that know nothing of tasks.
	var leaves []string
	for _, leaf := range []string{"guard", "index", "limit", "pace", "plain", "pool", "token", "validate"} {
		leaves = append(leaves, module+"runtime/internal/"+leaf)
	}
	type pkg struct {
		ImportPath                         string
		Imports, TestImports, XTestImports []string
	}
	packages := json.NewDecoder(bytes.NewReader(goList(t, "-json=ImportPath,Imports,TestImports,XTestImports", "./...")))
	checked := map[string]int{}
	for {
		var p pkg
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, arrow := range forbidden {
			if !under(p.ImportPath, module+arrow.from) {
				continue
			}
			checked[arrow.from]++
			imports := p.Imports
			if arrow.tests {
				imports = slices.Concat(p.Imports, p.TestImports, p.XTestImports)
			}
			for _, imported := range imports {
				for _, to := range arrow.to {
					if under(imported, module+to) {
						t.Errorf("%s imports %s", p.ImportPath, imported)
					}
				}
			}
		}
		switch { // the package itself knows nothing of its subpackages but the leaves, which know each other alone
		case p.ImportPath == module+"runtime":
			for _, imported := range p.Imports {
				if under(imported, module+"runtime") && !slices.Contains(leaves, imported) {
					t.Errorf("%s imports %s", p.ImportPath, imported)
				}
			}
		case slices.Contains(leaves, p.ImportPath):
			for _, imported := range p.Imports {
				if strings.HasPrefix(imported, module) && !slices.Contains(leaves, imported) {
					t.Errorf("%s imports %s", p.ImportPath, imported)
				}
			}
		}
	}
	for _, arrow := range forbidden {
		if checked[arrow.from] == 0 {
			t.Errorf("no package lies below %s", arrow.from)
		}
	}
}
