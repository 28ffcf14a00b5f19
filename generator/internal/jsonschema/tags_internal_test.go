package jsonschema

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPartsAreDocumented finds every part of a tag in the documents.
func TestPartsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/directives.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "### The parts of a `jsonschema` tag")
	table, _, _ = strings.Cut(table, "###")
	parts := slices.Collect(maps.Keys(keywords))
	for i := range parts {
		parts[i] += "="
	}
	for _, part := range append(parts, flagKeywords...) {
		if !strings.Contains(table, "`"+part) {
			t.Errorf("directives.md does not say what %s is", part)
		}
	}
}
