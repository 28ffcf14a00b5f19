package golden_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// TestReadmeRevisions holds that the README has a row for every revision, which says whether it is released.
func TestReadmeRevisions(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### Revisions of the protocol\n")
	section, _, ok := strings.Cut(section, "\n#")
	if !ok {
		t.Fatal("the section is missing")
	}
	for _, revision := range schema.Revisions() {
		surface, err := schema.Load(revision)
		if err != nil {
			t.Fatal(err)
		}
		_, row, ok := strings.Cut(section, "\n| `"+revision+"` | ")
		row, _, _ = strings.Cut(row, "\n")
		released := surface.Standing == schema.Released
		if !ok || strings.HasPrefix(row, "released: ") != released || strings.HasSuffix(row, "; off unless it is named |") == released {
			t.Errorf("README.md says of %s, which is of standing %s: %q", revision, surface.Standing, row)
		}
	}
}
