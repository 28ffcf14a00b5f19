package storetest

import (
	"os"
	"slices"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

func openMemory(testing.TB) mcptask.Store { return mcptask.NewMemoryStore() }

// TestDocumented checks that the package comment describes each promise.
func TestDocumented(t *testing.T) {
	source, err := os.ReadFile("storetest.go")
	if err != nil {
		t.Fatal(err)
	}
	var documented, held []string
	for line := range strings.Lines(string(source)) {
		if rest, ok := strings.CutPrefix(line, "//   - "); ok {
			name, _, _ := strings.Cut(rest, ":")
			documented = append(documented, name)
		}
	}
	for _, p := range promises {
		held = append(held, p.name)
	}
	if !slices.Equal(documented, held) {
		t.Errorf("documented are %q, held %q", documented, held)
	}
}
