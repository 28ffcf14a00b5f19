package output

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readFiles returns the files of a directory with their content.
func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[entry.Name()] = string(content)
	}
	return found
}

func put(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestWriteAllOrNothing checks that no file is replaced if one of them cannot be written.
func TestWriteAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a.go", "old")
	// The name is valid, but that of its temporary file is longer than file systems allow.
	files := Files{"a.go": []byte("new"), strings.Repeat("z", 250): []byte("z")}
	if changed, err := files.Write(dir); err == nil || changed != nil {
		t.Errorf("changed %v, %v", changed, err)
	}
	if d := cmp.Diff(map[string]string{"a.go": "old"}, readFiles(t, dir)); d != "" {
		t.Errorf("the directory (-want +got):\n%s", d)
	}
}

// TestWriteNamesWhatIsWritten checks the result if a file cannot be replaced after others were.
func TestWriteNamesWhatIsWritten(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "b.go", "old")
	full := errors.New("no more")
	files := Files{"a.go": []byte("a"), "b.go": []byte("b"), "c.go": []byte("c")}
	changed, err := files.writeWith(dir, func(from, to string) error {
		if filepath.Base(to) == "b.go" {
			return full
		}
		return os.Rename(from, to)
	})
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "write b.go") {
		t.Errorf("got %v", err)
	}
	if d := cmp.Diff([]string{"a.go"}, changed); d != "" {
		t.Errorf("changed (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]string{"a.go": "a", "b.go": "old"}, readFiles(t, dir)); d != "" {
		t.Errorf("the directory (-want +got):\n%s", d)
	}
}
