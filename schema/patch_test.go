package schema_test

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// TestPatched compares files that have a patched mistake, which is no difference, or anything else in its place, which is.
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

// TestOwnDefinition compares a definition of our own: it is no difference, whatever a file says of it.
func TestOwnDefinition(t *testing.T) {
	own := minimal(t, `{"$defs": {"A": {"type": "string"}}}`, `"compared": {"A": []}, `)
	for _, official := range []string{`{"$defs": {}}`, `{"$defs": {"A": {"type": "number"}}}`} {
		if got := schema.Compare(own, parse(t, []byte(official))); len(got) != 0 {
			t.Errorf("%s: %v", official, got)
		}
	}
}
