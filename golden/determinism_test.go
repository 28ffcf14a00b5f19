package golden_test

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

// copyModule copies packages of this folder into a module of their own, where a stub stands for the
// runtime, one after the other.
func copyModule(t *testing.T, dir string, packages []string) {
	t.Helper()
	writeFile(t, filepath.Join(dir, "mcptask", "go.mod"), "module github.com/mcptaskgen/mcptaskgen\n\ngo 1.26\n")
	writeFile(t, filepath.Join(dir, "mcptask", "runtime", "runtime.go"), runtimeStub)
	writeFile(t, filepath.Join(dir, "go.mod"), "module example.com/golden\n\ngo 1.26\n\n"+
		"require github.com/mcptaskgen/mcptaskgen v0.0.0\n\nreplace github.com/mcptaskgen/mcptaskgen => ./mcptask\n")
	for _, name := range packages {
		sources, err := filepath.Glob(filepath.Join(name, "*.go"))
		if err != nil || len(sources) == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		for _, source := range sources {
			if base := filepath.Base(source); strings.HasSuffix(base, "_test.go") || base == generator.OutputName {
				continue
			}
			content, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, source), strings.ReplaceAll(string(content), modulePath+"/golden/", "example.com/golden/"))
		}
	}
}

// TestDeterminism: neither the folder, nor the order of packages, nor how the go command is set up,
// nor how many processors there are, nor what an earlier run wrote, changes a byte.
func TestDeterminism(t *testing.T) {
	packages := []string{"enums/palette/shade", "enums/palette", "enums", "generics", "pipeline", "questions", "services"}
	chosen := []string{"./services", "./questions", "./pipeline", "./generics", "./enums"}
	backwards := slices.Clone(chosen)
	slices.Reverse(backwards)
	root := t.TempDir()
	first, second := filepath.Join(root, "here"), filepath.Join(root, "there", "as", "well")
	copyModule(t, first, packages)
	slices.Reverse(packages)
	copyModule(t, second, packages)

	type run struct {
		name, dir, flags string
		processors       int
		patterns         []string
	}
	var want map[string][]byte
	var docs string
	for _, r := range []run{
		{"first", first, "", 1, chosen},
		{"over what the first wrote, on eight processors, in another order, and some twice", first, "", 8, append(backwards, "./enums", "./...")},
		{"in another folder, with another way to treat go.mod", second, "-mod=mod", 1, chosen},
	} {
		t.Run(r.name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(r.processors))
			t.Setenv("GOFLAGS", r.flags)
			t.Setenv("GOPROXY", "off")
			cfg := generator.Config{Dir: r.dir, Patterns: r.patterns}
			out, err := generator.Generate(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			text, err := generator.Docs(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := out.Write(); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want, docs = maps.Clone(out.Files), text
				return
			}
			if d := cmp.Diff(want, map[string][]byte(out.Files)); d != "" {
				t.Errorf("the files (-first +this):\n%s", d)
			}
			if d := cmp.Diff(docs, text); d != "" {
				t.Errorf("the reference (-first +this):\n%s", d)
			}
		})
	}
}
