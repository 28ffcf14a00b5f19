package golden_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// TestDocsRevisions finds a row for every revision in the list of revisions, which says whether it is released.
func TestDocsRevisions(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "reference", "revisions.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range schema.Revisions() {
		surface, err := schema.Load(revision)
		if err != nil {
			t.Fatal(err)
		}
		_, row, ok := strings.Cut(string(text), "\n| `"+revision+"` | ")
		row, _, _ = strings.Cut(row, "\n")
		released := surface.Standing == schema.Released
		if !ok || strings.HasPrefix(row, "released: ") != released || strings.HasSuffix(row, "; off unless it is named |") == released {
			t.Errorf("docs/reference/revisions.md says of %s, which is of standing %s: %q", revision, surface.Standing, row)
		}
	}
}
