package released_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/golden/compat/internal/released"
)

const unreleased = "# Changelog\n\n## [Unreleased] - 0.2.0\n"

// put writes a file of the sample.
func put(t *testing.T, compat, name, text string) {
	t.Helper()
	path := filepath.Join(compat, "next", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func freeze(t *testing.T, compat, changelog, version, want string) {
	t.Helper()
	done, err := released.Freeze(compat, changelog, version)
	if err != nil {
		done = err.Error()
	}
	if !strings.Contains(done, want) {
		t.Errorf("%s: %s, want %s", version, done, want)
	}
}

// TestFreeze releases three versions, one of which writes the same as the one before.
func TestFreeze(t *testing.T) {
	compat := t.TempDir()
	put(t, compat, "a/a.go", "package a\n\nimport \"m/golden/compat/next/b\"\n\n//go:generate go tool mcptaskgen\n\n// A is B.\ntype A = b.B\n")
	put(t, compat, "a/mcptask_gen.go", "package a\n\nconst first = 1\n")
	put(t, compat, "b/b.go", "package b\n\n//go:generate go tool mcptaskgen\n")
	put(t, compat, "b/b_test.go", "package b\n") // stays in the sample

	freeze(t, compat, unreleased, "v0.1", "not a version")
	freeze(t, compat, unreleased, "../v0.1.0", "not a version")
	freeze(t, compat, unreleased, "v0.1.0", "v0.1.0 is kept in v0_1_0, 3 files")
	want := map[string][]byte{
		"a/a.go":           []byte("package a\n\nimport \"m/golden/compat/v0_1_0/b\"\n\n// A is B.\ntype A = b.B\n"),
		"a/mcptask_gen.go": []byte("package a\n\nconst first = 1\n"),
		"b/b.go":           []byte("package b\n"),
	}
	first, err := released.Files(filepath.Join(compat, "v0_1_0"))
	if d := cmp.Diff(want, first); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}

	// Not released yet, so it may be replaced, here without a file that the sample no longer has.
	put(t, compat, "a/mcptask_gen.go", "package a\n\nconst second = 2\n")
	if err := os.Remove(filepath.Join(compat, "next", "b", "b.go")); err != nil {
		t.Fatal(err)
	}
	freeze(t, compat, unreleased, "v0.1.0", "v0.1.0 is kept in v0_1_0, 2 files")

	const changelog = unreleased + "\n## [0.1.0] - 2027-01-01\n"
	freeze(t, compat, changelog, "v0.1.0", "v0.1.0 is released")
	freeze(t, compat, changelog, "v0.1.1", "v0.1.1 writes what is in v0_1_0")
	put(t, compat, "a/mcptask_gen.go", "package a\n\nconst third = 3\n")
	freeze(t, compat, changelog, "v0.2.0", "v0.2.0 is kept in v0_2_0, 2 files")
	versions, err := released.Versions(compat)
	if err != nil || len(versions) != 3 {
		t.Fatalf("%v: %v", versions, err)
	}
	for i, want := range []released.Version{{Name: "v0.1.0", Dir: "v0_1_0"}, {Name: "v0.1.1", Dir: "v0_1_0"}, {Name: "v0.2.0", Dir: "v0_2_0"}} {
		files, err := released.Files(filepath.Join(compat, versions[i].Dir))
		want.Hash = released.Hash(files)
		if d := cmp.Diff(want, versions[i]); d != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
	}
	if versions[0].Hash != versions[1].Hash || versions[0].Hash == versions[2].Hash {
		t.Errorf("hashes: %v", versions)
	}
}

func TestInChangelog(t *testing.T) {
	got := released.InChangelog("## [Unreleased] - 0.3.0\n\n## [0.2.0] - 2027-02-01\n\n### Added\n\n## [0.1.10] - 2027-01-01\nsee [0.1.1]\n")
	if d := cmp.Diff([]string{"v0.2.0", "v0.1.10"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
