package protocol_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial"
)

// Servers and clients speak every revision that has wire types of its own.
func TestEveryRevisionIsSpoken(t *testing.T) {
	checkSpoken(t, ".", protocol.Servers(), protocol.Clients())
	checkSpoken(t, "unofficial", unofficial.Servers(), unofficial.Clients())
}

// checkSpoken fails the test unless the lists have every revision whose wire types are in a directory.
func checkSpoken(t *testing.T, directory string, servers []protocol.Server, clients []protocol.Client) {
	t.Helper()
	pathOf := func(revision string) string {
		return filepath.Join(directory, "wire"+strings.ToLower(strings.ReplaceAll(revision, "-", "")))
	}
	known := slices.Collect(maps.Keys(mcptask.Declared()))
	got := map[string][]string{}
	for _, d := range servers {
		got["servers"] = append(got["servers"], pathOf(d.Revision()))
		if !slices.Contains(known, d.Revision()) {
			t.Errorf("nothing is declared in %s", d.Revision())
		}
	}
	for _, d := range clients {
		got["clients"] = append(got["clients"], pathOf(d.Revision()))
	}
	dirs, err := filepath.Glob(filepath.Join(directory, "wire*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%v, %v", dirs, err)
	}
	for what, paths := range got {
		if slices.Sort(paths); !slices.Equal(paths, dirs) {
			t.Errorf("%s speak %v, there are %v", what, paths, dirs)
		}
	}
}
