package golden_test

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

// copyPackages writes the declarations of packages into a module that links against the stub.
func copyPackages(t *testing.T, root, dir string, packages []string) string {
	t.Helper()
	writeStub(t, root)
	dir = filepath.Join(root, dir)
	writeModule(t, dir, modulePath+"/golden")
	for _, name := range packages {
		sources, err := filepath.Glob(filepath.Join(name, "*.go"))
		if err != nil || len(sources) == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		for _, source := range sources {
			if filepath.Base(source) != generator.OutputName {
				writeFile(t, filepath.Join(dir, source), readFile(t, source))
			}
		}
	}
	return dir
}

// TestDeterminism generates golden packages in different ways. Neither the directory, nor the order of packages, nor
// the settings of the go command, nor the number of processors, nor the output of an earlier run changes a byte.
func TestDeterminism(t *testing.T) {
	packages := []string{"enums/palette/shade", "enums/palette", "enums", "generics", "pipeline", "questions", "services"}
	chosen := []string{"./services", "./questions", "./pipeline", "./generics", "./enums", "./enums/palette"}
	backwards := slices.Clone(chosen)
	slices.Reverse(backwards)
	root := t.TempDir()
	first := copyPackages(t, root, "here", packages)
	second := copyPackages(t, filepath.Join(root, "there", "as"), "well", packages)
	var docs string
	for _, run := range []struct {
		name, dir, flags string
		processors       int
		patterns         []string
	}{
		{"first", first, "", 1, chosen},
		{"over what the first wrote, on eight processors, in another order, and some twice", first, "", 8, append(backwards, "./enums", "./...")},
		{"in another directory, with another way to treat go.mod", second, "-mod=mod", 1, chosen},
	} {
		t.Run(run.name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(run.processors))
			t.Setenv("GOFLAGS", run.flags)
			t.Setenv("GOPROXY", "off")
			cfg := generator.Config{Dir: run.dir, Patterns: run.patterns}
			out, err := generator.Generate(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Files) != len(chosen) {
				t.Errorf("%d files, want %d", len(out.Files), len(chosen))
			}
			for path, content := range out.Files {
				if d := cmp.Diff(lines(readFile(t, path)), lines(string(content))); d != "" {
					t.Errorf("%s (-committed +generated):\n%s", path, d)
				}
			}
			text, err := generator.Docs(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if docs == "" {
				docs = text
			}
			if d := cmp.Diff(strings.Split(docs, "\n"), strings.Split(text, "\n")); d != "" {
				t.Errorf("the reference (-first +this):\n%s", d)
			}
			if _, err := out.Write(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
