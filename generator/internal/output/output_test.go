package output_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	files := output.Files{"b.go": []byte("b"), "deep/er/a.go": []byte("a")}

	diff := func(want ...string) {
		t.Helper()
		got, err := files.Diff(dir)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("Diff (-want +got):\n%s", d)
		}
	}
	write := func(want ...string) {
		t.Helper()
		got, err := files.Write(dir)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("Write (-want +got):\n%s", d)
		}
		for name, content := range files {
			if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != string(content) {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
		diff()
	}

	diff("b.go", "deep/er/a.go")
	write("b.go", "deep/er/a.go")

	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(filepath.Join(dir, "b.go"), old, old); err != nil {
		t.Fatal(err)
	}
	files["deep/er/a.go"] = []byte("A")
	write("deep/er/a.go")
	if info, err := os.Stat(filepath.Join(dir, "b.go")); err != nil || !info.ModTime().Equal(old) {
		t.Error("a file that did not change was written")
	}

	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestWriteKeepsMode(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (output.Files{"a": []byte("x")}).Write(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
}

// TestWriteFollowsLink checks that a symbolic link stays one.
func TestWriteFollowsLink(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(elsewhere, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir, "link")); err != nil {
		const what = "this system refuses symbolic links: on Windows, turn developer mode on"
		if os.Getenv("MCPTASK_REQUIRE") == "all" {
			t.Fatal(what, err)
		}
		t.Skip(what)
	}
	if _, err := (output.Files{"link": []byte("new")}).Write(dir); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(elsewhere); err != nil || string(content) != "new" {
		t.Errorf("the link's file holds %q, %v", content, err)
	}
	if _, err := os.Readlink(filepath.Join(dir, "link")); err != nil {
		t.Error(err)
	}
}

func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "taken"} {
		files := output.Files{name: []byte("x"), "fine": []byte("x")}
		if changed, err := files.Write(dir); err == nil {
			t.Errorf("%q: no error, changed %v", name, changed)
		}
		if _, err := os.Stat(filepath.Join(dir, "fine")); err == nil {
			t.Errorf("%q: something was written before the error", name)
		}
	}
}
