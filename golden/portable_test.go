package golden_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

// TestPortable compares what hosts and providers refuse in the golden packages with a file. Ordinary declarations have
// nothing in it.
func TestPortable(t *testing.T) {
	const path = "portable.txt"
	out, err := generator.Generate(t.Context(), generator.Config{Patterns: []string{
		"./embedded", "./enums", "./failures", "./foreign", "./generics", "./kinds", "./pipeline", "./questions", "./recursive", "./services", "./shapes", "./workflows",
	}})
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(` \[[a-z-]+\]; `)
	var got strings.Builder
	for _, note := range out.Notes {
		if row.MatchString(note) {
			got.WriteString(note + "\n")
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil { //nolint:gosec // a golden file
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(lines(readFile(t, path)), lines(got.String())); d != "" {
		t.Errorf("%s is stale (-committed +generated):\n%s", path, d)
	}
}
