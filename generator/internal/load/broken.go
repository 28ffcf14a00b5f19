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

// Mistake is an error of a file without declarations: it counts only where what the file declares does.
type Mistake struct {
	Pos     token.Position
	Message string
}

// holdBack keeps an error for later where it stands in a file without declarations: people generate
// while they work on the rest of a package. A file that the go command cannot even list is no such file.
func (p *Package) holdBack(pos token.Position, message string) bool {
	if pos.Line == 0 || !slices.Contains(p.GoFiles, pos.Filename) {
		return false
	}
	src, err := os.ReadFile(pos.Filename)
	if err != nil || bytes.Contains(src, []byte("mcptask:")) {
		return false
	}
	p.Mistakes = append(p.Mistakes, Mistake{pos, message})
	return true
}

// Report adds the errors that were held back.
func (p *Package) Report(problems *diag.List) {
	for _, m := range p.Mistakes {
		problems.Add(m.Pos, m.Message, "")
	}
}

// BrokenFiles lists the files that do not parse, of those without declarations.
func (p *Package) BrokenFiles() []string {
	var names []string
	for _, e := range p.Errors {
		if e.Kind == packages.ParseError {
			name := position("", e.Pos).Filename
			if !slices.Contains(names, name) && filepath.IsAbs(name) {
				names = append(names, name)
			}
		}
	}
	return names
}
