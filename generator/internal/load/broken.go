package load

import (
	"bytes"
	"go/token"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/packages"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// deferError keeps an error for later if it is in a file without declarations, because people
// generate code while they work on the rest of a package. It does not keep errors of files that the
// go command cannot list.
func (p *Package) deferError(pos token.Position, message string) bool {
	if pos.Line == 0 || !slices.Contains(p.GoFiles, pos.Filename) {
		return false
	}
	src, err := os.ReadFile(pos.Filename)
	if err != nil || bytes.Contains(src, []byte("mcptask:")) {
		return false
	}
	p.Mistakes = append(p.Mistakes, diag.Problem{Pos: pos, Message: message})
	return true
}

// ReportMistakes adds the deferred errors to problems.
func (p *Package) ReportMistakes(problems *diag.List) {
	for _, m := range p.Mistakes {
		problems.Add(m.Pos, m.Message, "")
	}
}

// BrokenFiles lists the files without declarations that do not parse.
func (p *Package) BrokenFiles() []string {
	var names []string
	for _, e := range p.Errors {
		if e.Kind == packages.ParseError {
			name := parsePosition("", e.Pos).Filename
			if !slices.Contains(names, name) && filepath.IsAbs(name) {
				names = append(names, name)
			}
		}
	}
	return names
}
