package analyzer

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"slices"

	"golang.org/x/tools/go/analysis"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// compareFiles reports files that differ from what the runs produced.
func (r *reader) compareFiles(m made) {
	for _, path := range slices.Sorted(maps.Keys(m.files)) {
		run, name := m.by[path], diag.Relative(r.src.Dir, path)
		d := analysis.Diagnostic{Pos: r.runPosition(run)}
		old, err := r.readFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			d.Message = name + " is missing: run go generate"
		case err != nil:
			d.Message = fmt.Sprintf("%s cannot be compared: %v", name, err)
		case bytes.Equal(old, m.files[path]):
			continue
		default:
			line := firstDifference(old, m.files[path])
			d.Message = fmt.Sprintf("%s is stale, from line %d on: run go generate", name, line)
			r.pointTo(&d, path, line)
		}
		r.stale = append(r.stale, d)
	}
	for _, path := range m.leftOver {
		name := diag.Relative(r.src.Dir, path)
		d := analysis.Diagnostic{Pos: r.first, Message: name + " is left over, because no declaration produces it any more: remove it, or run mcptaskgen --prune"}
		if file := r.fileOf(path); file != nil && !d.Pos.IsValid() {
			d.Pos = file.Package
		}
		if !d.Pos.IsValid() {
			d.Pos = r.src.Files[0].Package
		}
		r.stale = append(r.stale, d)
	}
}

// firstDifference returns the number of the first line in which two texts differ.
func firstDifference(a, b []byte) int {
	line := 1
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			break
		}
		if a[i] == '\n' {
			line++
		}
	}
	return line
}

// pointTo adds the position in the stale file if the driver has loaded it. It offers no fix,
// because drivers do not change generated files.
func (r *reader) pointTo(d *analysis.Diagnostic, path string, line int) {
	if file := r.fileOf(path); file != nil {
		f := r.pass.Fset.File(file.FileStart)
		pos := f.LineStart(min(line, f.LineCount()))
		d.Related = []analysis.RelatedInformation{{Pos: pos, Message: "the output of mcptaskgen differs from here on"}}
	}
}

func (r *reader) fileOf(path string) *ast.File {
	i := slices.IndexFunc(r.pass.Files, func(file *ast.File) bool { return fileName(r.pass, file) == path })
	if i < 0 {
		return nil
	}
	return r.pass.Files[i]
}
