//go:build linux && long

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSubject checks that both tools generate code for the package and that the package then
// compiles.
func TestSubject(t *testing.T) {
	s, err := prepareSubject(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{s.ours, s.stringer, s.large} {
		p, err := s.runOnce(t.Context(), command)
		if err != nil {
			t.Fatal(err)
		}
		if p.wall <= 0 || p.peak < 1e6 {
			t.Errorf("%s took %v and %.0f bytes", command[0], p.wall, p.peak)
		}
	}
	if _, err := runCommand(t.Context(), s.dir, "go", "build", "./..."); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"large/mcptask_gen.go": "type LargeClient struct",
		"mcptask_gen.go":       "type ReleasesClient struct",
		"server.go":            `"github.com/modelcontextprotocol/go-sdk/mcp"`,
		"state_string.go":      "func (i State) String() string",
	} {
		if text, err := os.ReadFile(filepath.Join(s.dir, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q: %v", name, want, err)
		}
	}
}
