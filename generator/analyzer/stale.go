package analyzer

import (
	"fmt"
	"go/ast"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/analysis"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
)

func (r *reader) compareFiles(out generator.Output) error {
	differences, err := out.Compare()
	for _, difference := range differences {
		path := diag.Absolute(r.dir, filepath.FromSlash(difference.Path))
		c, written := out.Commands[difference.Path]
		d := analysis.Diagnostic{Pos: r.fallbackPosition(), Message: difference.Path + " " + difference.Reason}
		if old, err := r.readFile(path); err == nil && written {
			line := firstDifference(output.WithoutCR(old), out.Files[difference.Path])
			if line > 1 { // the first line differs by its flags, which the reason tells
				d.Message += fmt.Sprintf(", from line %d on", line)
			}
			r.pointTo(&d, path, line)
		}
		switch file := r.fileOf(path); {
		case !written:
			d.Message += ": remove it"
			if file != nil && !r.first.IsValid() {
				d.Pos = file.Package
			}
		case c.Line.IsValid():
			d.Message += ": run go generate"
			if pos, ok := r.findPosition(c.Line); ok {
				d.Pos = pos
			}
		default:
			d.Message += ": run mcptaskgen " + r.pass.Pkg.Path()
		}
		r.stale = append(r.stale, d)
	}
	return err
}

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
	i := slices.IndexFunc(r.pass.Files, func(file *ast.File) bool { return load.FileName(r.pass.Fset, file) == path })
	if i < 0 {
		return nil
	}
	return r.pass.Files[i]
}
