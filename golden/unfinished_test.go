package golden_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

// TestNeedNotCompile generates beside files that do not compile. Before the first generation no file of a package does.
func TestNeedNotCompile(t *testing.T) {
	declaration := readFile(t, "pipeline/pipeline.go")
	want := readFile(t, "pipeline/mcptask_gen.go")
	root := t.TempDir()
	writeStub(t, root)
	dir := filepath.Join(root, "packages")
	writeModule(t, dir, modulePath+"/golden")
	others := map[string]string{
		"alone":             "package pipeline\n",
		"generated symbols": "package pipeline\n\nvar shared = NewCIClient(nil)\n\nfunc helper() TaskStatus { a, _ := AskApproval(nil, nil, \"\", \"\"); return StatusWorking + a }\n",
		"type errors":       "package pipeline\n\nvar n int = \"text\"\n\ntype broken struct{ x missing }\n\nfunc helper() { undefined(1) }\n\nfunc helper() {}\n",
		"unused import":     "package pipeline\n\nimport \"fmt\"\n",
	}
	directory := func(name string) string { return strings.ReplaceAll(name, " ", "-") }
	for name, other := range others {
		writeFile(t, filepath.Join(dir, directory(name), "pipeline.go"), declaration)
		writeFile(t, filepath.Join(dir, directory(name), "other.go"), other)
	}
	out, err := generator.Generate(t.Context(), generator.Config{Dir: dir, Patterns: []string{"./..."}})
	if err != nil {
		t.Fatal(err)
	}
	for name := range others {
		t.Run(name, func(t *testing.T) {
			got := out.Files[directory(name)+"/"+generator.OutputName]
			if d := cmp.Diff(lines(want), lines(string(got))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
