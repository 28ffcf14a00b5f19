package golden_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLintReadsGeneratedFiles: users' linters read generated code, so ours do, and CI runs them on all
// packages.
func TestLintReadsGeneratedFiles(t *testing.T) {
	for path, lines := range map[string][]string{
		"../.golangci.yml": {"    generated: disable"},
		"../.ci/run": {
			`  go run "$golangci" run --allow-parallel-runners ./...`,
			`  (cd "$copy" && go run "$golangci" run --allow-parallel-runners $folders)`,
			`  (cd "$copy" && go run "$staticcheck" -checks 'all,-QF*,-ST1023' $folders)`,
		},
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if !strings.Contains(string(text), "\n"+line+"\n") {
				t.Errorf("%s does not say %q", path, strings.TrimSpace(line))
			}
		}
	}
}

// TestGeneratedLinesFit: every generated file of the repository can be read side by side with its diff. A
// tab counts for four columns.
func TestGeneratedLinesFit(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_gen.go") {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		for i, line := range strings.Split(string(text), "\n") {
			if n := len([]rune(strings.ReplaceAll(line, "\t", "    "))); n > 120 {
				t.Errorf("%s:%d has %d columns", path, i+1, n)
			}
		}
		return err
	})
	if err != nil || files < 10 {
		t.Errorf("%d generated files, %v", files, err)
	}
}
