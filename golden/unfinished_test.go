package golden_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

// TestNeedNotCompile: what is generated does not depend on the rest of a package that people are at work
// on: before the first generation, nothing of it compiles.
func TestNeedNotCompile(t *testing.T) {
	declaration, err := os.ReadFile("pipeline/pipeline.go")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("pipeline/mcptask_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	writeStub(t, root)
	for name, other := range map[string]string{
		"alone":                    "package pipeline\n",
		"generated symbols":        "package pipeline\n\nvar shared = NewCIClient(nil)\n\nfunc helper() TaskStatus { a, _ := AskApproval(nil, nil, \"\", \"\"); return StatusWorking + a }\n",
		"type errors":              "package pipeline\n\nvar n int = \"text\"\n\ntype broken struct{ x missing }\n\nfunc helper() { undefined(1) }\n\nfunc helper() {}\n",
		"syntax error":             "package pipeline\n\ntype service struct{}\n\nfunc (service) LintFile(in LintInput) {\n\tif in.Path ==\n",
		"syntax error in a method": "package pipeline\n\ntype Step2 struct{ Step; x int }\n\nfunc (s Step2 String() string {\n",
		"import of nothing":        "package pipeline\n\nimport \"example.com/nowhere\"\n\nvar x nowhere.T\n",
		"import clause":            "package pipeline\n\nimport \"fmt\n\nvar x fmt.Stringer\n",
		"package clause":           "package\n\nvar x int\n",
		"unused import":            "package pipeline\n\nimport \"fmt\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(root, name)
			writeModule(t, dir, "github.com/mcptaskgen/mcptaskgen/golden/pipeline")
			writeFile(t, filepath.Join(dir, "pipeline.go"), string(declaration))
			writeFile(t, filepath.Join(dir, "other.go"), other)
			out, err := generator.Generate(t.Context(), generator.Config{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(lines(want), lines(out.Files[generator.OutputName])); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
