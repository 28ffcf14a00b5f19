package main

import (
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// named is 2026-07-28 as the base of a released revision, with texts replaced.
func named(t *testing.T, replace ...string) *schema.Surface {
	t.Helper()
	replacer := strings.NewReplacer(append(replace, `"revision": "2026-07-28"`, `"revision": "2027-03-01"`,
		`"protocolVersion": "2026-07-28"`, `"protocolVersion": "2027-03-01", "base": "2026-07-28"`)...)
	file := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("../../../schema/2026-07-28", name))
		if err != nil {
			t.Fatal(err)
		}
		return []byte(replacer.Replace(string(data)))
	}
	surface, err := schema.ParseSurface(file("tasks.schema.json"), file("surface.json"), file("provenance.json"))
	if err != nil {
		t.Fatal(err)
	}
	return surface
}

// TestRenamings: a revision with a base adds its name and what it declares to
// package mcptask, its names to the dialects, and nothing else, whatever it renames.
func TestRenamings(t *testing.T) {
	surfaces := all(t)
	before := mustRender(t, surfaces)
	own := named(t, `"ttlMs"`, `"retentionMs"`, `Task/ttlMs`, `Task/retentionMs`, `its ttlMs is`, `its retentionMs is`,
		`"input_required"`, `"awaiting_input"`, `-32021`, `-32031`, `io.modelcontextprotocol/subscriptionId`, `io.modelcontextprotocol/subscription`,
		`io.modelcontextprotocol/tasks`, `io.modelcontextprotocol/jobs`, `io.modelcontextprotocol~1tasks`, `io.modelcontextprotocol~1jobs`)
	after := mustRender(t, append(surfaces, own))
	for name, content := range after {
		switch name {
		case "wire_gen.go":
			var more []string
			for line := range strings.Lines(string(content)) {
				if !strings.Contains(string(before[name]), strings.TrimSpace(line)) {
					more = append(more, strings.Join(strings.Fields(line), " "))
				}
			}
			want := []string{
				"// Revision20270301 is MCP revision 2027-03-01.", `Revision20270301 = "2027-03-01"`,
				"// Declared20270301 is what a server of tasks adds to its capabilities in 2027-03-01.",
				"Declared20270301 = `{\"extensions\":{\"io.modelcontextprotocol/jobs\":{}}}`", "Revision20270301: Declared20270301,",
			}
			if diff := cmp.Diff(want, more); diff != "" {
				t.Errorf("what is new in %s (-want +got)\n%s", name, diff)
			}
		case "internal/dialect/renamings_gen.go":
			if formatted, err := format.Source(content); err != nil || string(formatted) != string(content) {
				t.Errorf("it is not formatted: %v", err)
			}
			for _, part := range []string{"mcptask.Revision20270301", `"ttlMs": "retentionMs"`, `"input_required": "awaiting_input"`, `"-32021": "-32031"`} {
				if !strings.Contains(string(content), part) {
					t.Errorf("it lacks %s", part)
				}
			}
		default:
			if string(content) != string(before[name]) {
				t.Errorf("%s changes", name)
			}
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files, %d before", len(after), len(before))
	}
}

// TestRenamingsRefused: nothing is written where a difference is more than names.
func TestRenamingsRefused(t *testing.T) {
	files, err := renderFiles(append(all(t), named(t, `"is-error": "completed"`, `"is-error": "failed"`)))
	if err == nil || !strings.Contains(err.Error(), "is-error: failed (before: completed)") || files != nil {
		t.Errorf("%v", err)
	}
}
