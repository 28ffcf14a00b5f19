// Package golden_test checks the generated files of this module and the documents. With -update it writes the golden
// files.
package golden_test

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/golden/internal/diffs"
	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

const modulePath = "github.com/mcptaskgen/mcptaskgen"

var update = flag.Bool("update", false, "write the golden files")

// TestGenerated generates every file of this module with its own flags and compares every byte.
func TestGenerated(t *testing.T) {
	out, err := generator.Generate(t.Context(), generator.Config{Patterns: []string{"../..."}, Own: true})
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(out.Files, func(path string, _ []byte) bool {
		return strings.HasPrefix(path, "compat/v") // a released version wrote it; it stays
	})
	if *update {
		if _, err := out.Write(); err != nil {
			t.Fatal(err)
		}
	}
	if stale, err := out.Compare(); len(stale) > 0 || err != nil {
		t.Errorf("generated files are stale: %v\n%v", err, stale)
	}
}

// TestUnreleasedRevisions finds a package below variants for each revision that is off unless it is named.
func TestUnreleasedRevisions(t *testing.T) {
	declarations, err := filepath.Glob("variants/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, path := range declarations {
		source.WriteString(readFile(t, path))
	}
	for _, revision := range schema.Revisions() {
		if load(t, revision).Standing != schema.Released && !strings.Contains(source.String(), "mcptaskgen --revision "+revision+"\n") {
			t.Errorf("no package below variants is generated for %s", revision)
		}
	}
}

// TestLayout checks every generated file of the repository but those that released versions wrote.
func TestLayout(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_gen.go") && !strings.HasPrefix(filepath.ToSlash(path), "../golden/compat/v") {
			files++
			diffs.CheckLayout(t, path, readFile(t, path))
		}
		return err
	})
	if err != nil || files < 20 {
		t.Errorf("%d generated files, %v", files, err)
	}
}

// TestLongNames generates from names so long that the comments around them have to be broken over lines.
func TestLongNames(t *testing.T) {
	root := t.TempDir()
	writeStub(t, root)
	dir := filepath.Join(root, "long")
	writeModule(t, dir, "example.com/long")
	service := "AServiceWithANameThatGoesOnAndOnUntilNothingElse"
	writeFile(t, filepath.Join(dir, "long.go"), "package long\n\nimport (\n\t\"context\"\n\n"+
		"\tmcptask \"github.com/mcptaskgen/mcptaskgen/runtime\"\n)\n\n"+
		"// "+service+" works.\n//\n//mcptask:service fallback=tools\ntype "+service+" interface {\n"+
		"\t// WorkForALongTime works on "+strings.Repeat("a/path/", 20)+" and "+strings.Repeat("more and ", 20)+"more.\n"+
		"\tWorkForALongTime(ctx context.Context, task *mcptask.Task, in ALot, "+strings.Repeat("Sure", 10)+"OfIt Sure) (ALot, error)\n}\n\n"+
		"// Sure is asked for.\n//\n//mcptask:input message=\""+strings.Repeat("very ", 30)+"sure?\"\n"+
		"type Sure struct{ OK bool `json:\"ok\"` }\n\n"+
		"// ALot has a name.\ntype ALot struct {\n\tName string `json:\""+strings.Repeat("long_", 30)+"\"`\n}\n")
	out, err := generator.Generate(t.Context(), generator.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	diffs.CheckLayout(t, "long", string(out.Files[generator.OutputName]))
}

// TestNilImplementation binds nil, which must not panic: the server refuses it with an error.
func TestNilImplementation(t *testing.T) {
	server, err := taskserver.New(taskserver.Options{}, pipeline.CITools(nil))
	if err == nil {
		server.Close()
	}
	if want := "mcptask: service CI: the implementation is nil"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// runtimeStub stands for the runtime, so that a case needs no more of the module than its names.
const runtimeStub = `package mcptask

type Task struct{}

type Result struct{}
`

// writeStub writes the module that those of writeModule stand beside.
func writeStub(t *testing.T, root string) {
	t.Helper()
	writeFile(t, filepath.Join(root, "mcptask", "go.mod"), "module github.com/mcptaskgen/mcptaskgen\n\ngo 1.25\n")
	writeFile(t, filepath.Join(root, "mcptask", "runtime", "runtime.go"), runtimeStub)
}

// writeModule makes a directory a module that links against the stub.
func writeModule(t *testing.T, dir, path string) {
	t.Helper()
	writeFile(t, filepath.Join(dir, "go.mod"), "module "+path+"\n\ngo 1.25\n\n"+
		"require github.com/mcptaskgen/mcptaskgen v0.0.0\n\n"+
		"replace github.com/mcptaskgen/mcptaskgen => ../mcptask\n")
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFilesSay finds texts that other parts of the repository rely on.
func TestFilesSay(t *testing.T) {
	for _, test := range []struct{ path, pattern, why string }{
		{".golangci.yml", `(?m)^    generated: disable$`, "users' linters read generated code, so ours do"},
		{".ci/run", `(?m)^  each "\$joined \$apart" "\$scratch/tools/golangci-lint" run --allow-parallel-runners \./\.\.\.$`, "the linter reads all packages"},
		{".ci/run", `(?m)^ +\(cd "\$copy/\$module" && "\$scratch/tools/golangci-lint" run --allow-parallel-runners \$directories\)$`, "the linter reads generated code without its mark"},
		{".ci/run", `(?m)^ +\(cd "\$copy/\$module" && "\$scratch/tools/staticcheck" -checks 'all,-QF\*,-ST1023' \$directories\)$`, "staticcheck reads generated code without its mark"},
		{".ci/run", `-name '\*_gen\.go' -not -path '\*/golden/compat/v\*' -delete`, "CI generates everything again but what released versions wrote"},
		{"runtime/handshake.go", `// .*golden/compat`, "who raises the constant has to know when"},
		{"docs/dev/release.md", `(?s)make freeze VERSION=.*GeneratedV`, "who releases has to know when the constant is raised"},
	} {
		if !regexp.MustCompile(test.pattern).MatchString(readFile(t, "../"+test.path)) {
			t.Errorf("%s does not say %s: %s", test.path, test.pattern, test.why)
		}
	}
}

// readFile reads a file, whose path is relative to this directory.
func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func load(t *testing.T, revision string) *schema.Surface {
	t.Helper()
	surface, err := schema.Load(revision)
	if err != nil {
		t.Fatal(err)
	}
	return surface
}

func lines(content string) []string { return strings.Split(content, "\n") }
