package schema_test

import (
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// TestPatched holds that what a patch is about is no difference, and that
// anything else in its place is one.
func TestPatched(t *testing.T) {
	const revision, nullable = "2025-11-25-rc", `"type": ["integer", "null"]`
	surface := load(t, revision)
	for official, want := range map[string]int{nullable: 0, `"type": "integer"`: 0, `"type": "number"`: 4, `"type": ["string", "null"]`: 4} {
		if got := schema.Compare(surface, mutate(t, revision, nullable, official)); len(got) != want {
			t.Errorf("%s: %d differences, want %d: %v", official, len(got), want, got)
		}
	}
	// The document itself stays as it was read.
	document := mutate(t, revision, nullable, `"type": "integer"`)
	before := fingerprints(load(t, "2025-11-25"), document)["Task"]
	schema.Compare(surface, document)
	if after := fingerprints(load(t, "2025-11-25"), document)["Task"]; before != after {
		t.Error("a comparison has changed the document")
	}
}

func TestPatchRefused(t *testing.T) {
	const defs, rest = `{"$defs": {"A": {"type": "string"}}}`, `"serverCapabilities": {}, "clientCapabilities": {}}`
	for surface, want := range map[string]string{
		`{"patched": [{"definition": "B", "pointer": "/type", "official": 1}], `:  `patched names the definition "B"`,
		`{"patched": [{"definition": "A", "pointer": "/items", "official": 1}], `: "patched: A has nothing at /items",
		`{"patched": [{"definition": "A", "pointer": "/type"}], `:                 "or the official value is missing",
		`{"standing": "draft", `: `standing is "draft"`,
	} {
		if _, err := schema.ParseSurface([]byte(defs), []byte(surface+rest), []byte(`{}`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", surface, err, want)
		}
	}
	// A definition of our own is no difference, whatever a file says of it.
	own, err := schema.ParseSurface([]byte(defs), []byte(`{"compared": {"A": []}, `+rest), []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, official := range []string{`{"$defs": {}}`, `{"$defs": {"A": {"type": "number"}}}`} {
		if got := schema.Compare(own, parse(t, []byte(official))); len(got) != 0 {
			t.Errorf("%s: %v", official, got)
		}
	}
}
