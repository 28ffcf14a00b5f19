package protocol_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// A revision with wire types of its own is spoken, by servers and by clients.
func TestEveryRevisionIsSpoken(t *testing.T) {
	named := func(revision string) string { return "wire" + strings.ToLower(strings.ReplaceAll(revision, "-", "")) }
	var servers, clients []string
	for _, d := range protocol.Servers() {
		servers = append(servers, named(d.Revision()))
	}
	for _, d := range protocol.Clients() {
		clients = append(clients, named(d.Revision()))
	}
	dirs, err := filepath.Glob("wire*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%v, %v", dirs, err)
	}
	for what, got := range map[string][]string{"Servers": servers, "Clients": clients} {
		if slices.Sort(got); !slices.Equal(got, dirs) {
			t.Errorf("%s speaks %v, there are %v", what, got, dirs)
		}
	}
	known := slices.Collect(maps.Keys(mcptask.Declared()))
	for _, d := range protocol.Servers() {
		if !slices.Contains(known, d.Revision()) {
			t.Errorf("nothing is declared in %s", d.Revision())
		}
	}
}
