// Package diffs compares what an edit changes in generated text with the unified diff that is kept of it.
package diffs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/diff"
)

// Set is the diffs that a test keeps in a folder.
type Set struct {
	folder string
	update bool
	used   map[string]bool
}

// New makes a set, which at the end of the test fails it for each diff in the folder that belongs to no edit. With
// update, the diffs are written instead of compared.
func New(t *testing.T, folder string, update bool) *Set {
	t.Helper()
	s := &Set{folder: folder, update: update, used: map[string]bool{}}
	t.Cleanup(func() {
		files, err := filepath.Glob(filepath.Join(folder, "*.diff"))
		if err != nil {
			t.Error(err)
		}
		for _, path := range files {
			if !s.used[path] {
				t.Errorf("%s belongs to no edit", path)
			}
		}
	})
	return s
}

// Check compares the diff of a file before and after an edit with NAME.diff in the folder, and the lines that it
// removes and adds with what the edit may change at most. An edit that changes nothing has no diff.
func (s *Set) Check(t *testing.T, name, file string, before, after []byte, most int) {
	t.Helper()
	got := string(diff.Diff("a/"+file, before, "b/"+file, after))
	_, got, _ = strings.Cut(got, "\n") // the command that would make it
	path := filepath.Join(s.folder, name+".diff")
	s.used[path] = got != ""
	if n := changed(got); n > most {
		t.Errorf("%d lines of %s change, want at most %d", n, file, most)
	}
	if s.update && got != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil && got != "" {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("the diff of %s differs (-want +got):\n%s", file, d)
	}
}

// changed counts the lines that a diff removes and adds.
func changed(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "+++ ") || strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "--- ") {
			n++
		}
	}
	return n
}
