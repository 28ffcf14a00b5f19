package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

// TestErrors reads the list of each archive and compares the generator's errors with the file stderr.
func TestErrors(t *testing.T) {
	archives, err := filepath.Glob("errors/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil || len(archive.Files) == 0 {
				t.Fatalf("%d files: %v", len(archive.Files), err)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "tools.json"), archive.Files[0].Data, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err = generator.Generate(t.Context(), generator.Config{Dir: dir, Flags: commandline.Flags{Tools: "tools.json", Package: "p"}})
			if err == nil {
				t.Fatal("no error")
			}
			got := err.Error() + "\n"
			if *update {
				archive.Files = append(archive.Files[:1], txtar.File{Name: "stderr", Data: []byte(got)})
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want := ""
			if len(archive.Files) > 1 {
				want = string(archive.Files[1].Data)
			}
			if d := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); d != "" {
				t.Errorf("stderr (-want +got):\n%s", d)
			}
		})
	}
}
