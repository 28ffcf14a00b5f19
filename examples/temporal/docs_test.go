// Package main_test compiles the code of the page about Temporal. The tests of the root cannot: their module
// requires nothing of Temporal.
package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/pages"
	_ "github.com/mcptaskgen/mcptaskgen/runtime/temporal" // the page's code imports it
)

const root = "../.."

// TestDocsTemporal writes all files that docs/temporal.md puts code "In" into a module, generates and vets it, and runs
// its test. The module has the requirements of the example, and needs no module proxy.
func TestDocsTemporal(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, pages.Temporal))
	if err != nil {
		t.Fatal(err)
	}
	page, err := pages.Parse(pages.Temporal, string(content))
	if err != nil {
		t.Fatal(err)
	}
	dir := makeModule(t)
	written := map[string]bool{}
	for _, b := range page.Blocks {
		relation, name := b.File()
		if relation != "In" {
			continue
		}
		if written[name] {
			t.Errorf("%s: another block is In %s too", b.At, name)
		}
		written[name] = true
		writeFile(t, filepath.Join(dir, filepath.FromSlash(name)), b.Code)
	}
	if len(written) == 0 {
		t.Fatalf("%s puts no code In a file", pages.Temporal)
	}
	runGo(t, dir, "generate", "./...")
	runGo(t, dir, "vet", "./...")
	runGo(t, dir, "test", "./shipping") // in memory, without a server
}

// makeModule makes a module with the requirements of the example, with the modules of this checkout.
func makeModule(t *testing.T) string {
	t.Helper()
	const path = "github.com/mcptaskgen/mcptaskgen"
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), string(text))
	}
	edit := []string{"mod", "edit", "-module", "example.com/temporal", "-replace", path + "=" + checkout}
	for _, module := range []string{"examples", "runtime/mcpgo", "runtime/oteltask", "runtime/postgres", "runtime/sqlite", "runtime/temporal"} {
		edit = append(edit, "-replace", path+"/"+module+"="+filepath.Join(checkout, filepath.FromSlash(module)))
	}
	runGo(t, dir, edit...)
	return dir
}

// writeFile writes a file and makes its directory.
func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// runGo runs a command of go in a directory.
func runGo(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", cmd, err, out)
	}
}
