package golden_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

// TestReference generates the reference of packages that use everything a declaration can have.
func TestReference(t *testing.T) {
	const path = "reference.md"
	got, err := generator.Docs(t.Context(), generator.Config{
		Patterns: []string{"./enums", "./failures", "./kinds", "./pipeline", "./questions", "./recursive", "./services"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		file, err := generator.DocsFile(path, got)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(lines(readFile(t, path)), lines(got)); d != "" {
		t.Errorf("%s is stale (-committed +generated):\n%s", path, d)
	}
}
