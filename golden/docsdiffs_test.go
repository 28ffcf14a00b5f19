//go:build long

package golden_test

import (
	"path"
	"path/filepath"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/golden/internal/diffs"
)

// TestDocsDiffs is TestDiffs of the reference: the unified diffs are those in diffs/docs. Each reference takes a run.
func TestDocsDiffs(t *testing.T) {
	declaration := readFile(t, "pipeline/pipeline.go")
	root := t.TempDir()
	writeStub(t, root)
	before := pipelineDocs(t, filepath.Join(root, "before"), declaration)
	set := diffs.New(t, "diffs/docs", *update)
	for _, edit := range edits {
		t.Run(edit.name, func(t *testing.T) {
			before, after := before, pipelineDocs(t, filepath.Join(root, path.Base(edit.name)), applyEdit(t, declaration, edit.name))
			if base := path.Dir(edit.name); base != "." {
				before = pipelineDocs(t, filepath.Join(root, "before-"+path.Base(edit.name)), applyEdit(t, declaration, base))
			}
			set.Check(t, path.Base(edit.name), "reference.md", before, after)
		})
	}
}

// pipelineDocs makes a module of the declaration and returns its reference.
func pipelineDocs(t *testing.T, dir, declaration string) string {
	t.Helper()
	writeModule(t, dir, "github.com/mcptaskgen/mcptaskgen/golden/pipeline")
	writeFile(t, filepath.Join(dir, "pipeline.go"), declaration)
	docs, err := generator.Docs(t.Context(), generator.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return docs
}
