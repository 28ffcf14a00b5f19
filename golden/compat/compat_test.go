// Package compat_test checks that the output of released versions goes on working, and that generated code reports a
// runtime that is too old. It imports none of the packages below it, so that it can report why one of them does not
// compile. With -update it writes the list of the names that a constant promises, unless the constant is released.
package compat_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/compat/internal/released"
)

var update = flag.Bool("update", false, "write the golden files")

// TestFrozen checks that the output of every released version is kept, that it is unchanged, and that nothing generates
// it again.
func TestFrozen(t *testing.T) {
	versions := versions(t)
	directories := map[string]bool{}
	for _, version := range versions {
		directories[version.Dir] = true
		files, err := released.Files(version.Dir)
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %v", version.Name, err)
			continue
		}
		if released.Hash(files) != version.Hash {
			t.Errorf("golden/compat/%s is no longer what %s wrote: put it back, with git log -- golden/compat/%[1]s/; "+
				"if %[2]s is not released yet, make freeze VERSION=%[2]s", version.Dir, version.Name)
		}
		for name, text := range files {
			if strings.Contains(string(text), "//go:generate") || strings.Contains(string(text), "golden/compat/"+released.Next+"/") {
				t.Errorf("%s/%s is generated again, or uses what is", version.Dir, name)
			}
		}
	}
	dirs, err := filepath.Glob("v*_*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if !directories[dir] {
			t.Errorf("golden/compat/%s is in no line of versions.txt", dir)
		}
	}
	for _, name := range inChangelog(t) {
		if !slices.ContainsFunc(versions, func(v released.Version) bool { return v.Name == name }) {
			t.Errorf("CHANGELOG.md has released %s, whose output is not kept: make freeze VERSION=%[1]s", name)
		}
	}
}

// TestSampleIsWhole checks that the sample uses everything of the runtime that generated code can use. The kept output
// of a version then stands for all its output.
func TestSampleIsWhole(t *testing.T) {
	sample := map[string]bool{}
	for _, use := range uses(t, "./"+released.Next+"/...") {
		for _, name := range use.Names {
			sample[name] = true
		}
	}
	for _, use := range uses(t, "../...", "../../examples/...") {
		if !strings.HasPrefix(use.Path, "..") {
			continue // below this directory
		}
		for _, name := range use.Names {
			if !sample[name] {
				t.Errorf("%s uses mcptask.%s, and nothing in golden/compat/next does: declare there what brings it, "+
					"or generate the file again if it is stale", use.Path, name)
			}
		}
	}
}

// TestPromises compares the names of the runtime that generated code uses with those that its constant promises, and
// checks that the runtime has all of these.
func TestPromises(t *testing.T) {
	exported, err := released.Exported(".")
	if err != nil {
		t.Fatal(err)
	}
	var settled []string // the constants that released versions name
	for _, version := range versions(t) {
		if slices.Contains(inChangelog(t), version.Name) {
			for _, use := range uses(t, "./"+version.Dir+"/...") {
				settled = append(settled, use.Handshakes...)
			}
		}
	}
	next := uses(t, "./"+released.Next+"/...")
	if *update {
		writePromises(t, next, settled)
	}
	lists, err := filepath.Glob("GeneratedV*.txt")
	if err != nil || len(lists) == 0 {
		t.Fatalf("no lists: %v", err)
	}
	for _, list := range lists {
		handshake := strings.TrimSuffix(list, ".txt")
		for _, name := range append(promised(t, handshake), handshake) {
			if !exported[name] {
				t.Errorf("package mcptask has no %s any more. Generated code that names mcptask.%s needs it, and is in "+
					"other people's repositories: put it back, if need be as a deprecated name for what stands in its place", name, handshake)
			}
		}
	}
	used := map[string]bool{}
	written := next
	if len(versions(t)) > 0 {
		written = append(written, uses(t, "./v...")...)
	}
	for _, use := range written {
		if len(use.Handshakes) != 1 {
			t.Errorf("%s names the constants %v, want one", use.Path, use.Handshakes)
			continue
		}
		handshake := use.Handshakes[0]
		names := promised(t, handshake)
		for _, name := range use.Names {
			used[name] = true
			switch {
			case slices.Contains(names, name):
			case slices.Contains(settled, handshake):
				t.Errorf("%s uses mcptask.%s, which runtimes with mcptask.%s need not have: raise the constant, as runtime/handshake.go says",
					use.Path, name, handshake)
			default:
				t.Errorf("%s uses mcptask.%s, which is not in %s.txt; no release has that constant yet, so make golden adds it", use.Path, name, handshake)
			}
		}
	}
	for _, list := range lists {
		for _, name := range promised(t, strings.TrimSuffix(list, ".txt")) {
			if !used[name] {
				t.Errorf("no generated code uses mcptask.%s, which %s promises", name, list)
			}
		}
	}
}

// writePromises writes the list of the constant that the generator writes today, unless it is released.
func writePromises(t *testing.T, next []released.Use, settled []string) {
	t.Helper()
	handshake := next[0].Handshakes[0]
	if slices.Contains(settled, handshake) {
		return
	}
	path := handshake + ".txt"
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	before := promised(t, handshake)
	var names []string
	for _, use := range next {
		for _, name := range use.Names {
			if !slices.Contains(before, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	text := "# What generated code that names mcptask." + handshake + " uses of the runtime, beside what is listed for the constants\n" +
		"# before it. These names stay.\n" + strings.Join(slices.Compact(names), "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// versions lists the versions whose output is kept: none before the first release.
func versions(t *testing.T) []released.Version {
	t.Helper()
	versions, err := released.Versions(".")
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

func inChangelog(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	return released.InChangelog(string(text))
}

func uses(t *testing.T, patterns ...string) []released.Use {
	t.Helper()
	uses, err := released.Uses(".", patterns...)
	if err != nil || len(uses) == 0 {
		t.Fatalf("%v: no generated files: %v", patterns, err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for i := range uses {
		if uses[i].Path, err = filepath.Rel(here, uses[i].Path); err != nil {
			t.Fatal(err)
		}
	}
	return uses
}

func promised(t *testing.T, handshake string) []string {
	t.Helper()
	names, err := released.Promised(".", handshake)
	if err != nil {
		t.Fatal(err)
	}
	return names
}
