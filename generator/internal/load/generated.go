package load

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// IsGenerated tells whether a file starts with our header.
func IsGenerated(src []byte, header string) bool {
	for line := range bytes.Lines(bytes.TrimPrefix(src, []byte("\ufeff"))) { // which some editors put there
		text := string(bytes.TrimSpace(line))
		if text == header {
			return true
		}
		// A build constraint may stand above the header, or the mark of a merge conflict.
		if text != "" && !strings.HasPrefix(text, "//") && !strings.HasPrefix(text, "<<<<<<<") {
			return false
		}
	}
	return false
}

// clauseOnly keeps what this run writes from depending on what an earlier one wrote, and lets a
// file with conflict markers be generated anew.
func clauseOnly(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
	return parser.ParseFile(fset, name, src, parser.PackageClauseOnly|parser.SkipObjectResolution)
}

// generatedFiles are the files with the header that were met while packages were parsed, which
// happens on several goroutines.
type generatedFiles struct {
	mu    sync.Mutex
	paths map[string]bool
}

func (g *generatedFiles) add(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paths[path] = true
}

func (g *generatedFiles) has(path string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.paths[path]
}

// findGenerated fills in what generated files stand in the folder of a package. Those that were
// parsed are known; those that a build constraint leaves out have to be read.
func (p *Package) findGenerated(cfg Config, parsed *generatedFiles) {
	if p.Dir == "" {
		return
	}
	output := filepath.Join(p.Dir, cfg.Output)
	for _, path := range append(slices.Clone(p.IgnoredFiles), output) {
		src, err := os.ReadFile(path)
		switch {
		case err != nil || filepath.Ext(path) != ".go":
		case IsGenerated(src, cfg.Header):
			parsed.add(path)
		case path == output:
			p.Foreign = true
		}
	}
	for _, path := range append(append(slices.Clone(p.GoFiles), p.IgnoredFiles...), output) {
		if parsed.has(path) {
			p.Generated = append(p.Generated, path)
		}
	}
	slices.Sort(p.Generated)
	p.Generated = slices.Compact(p.Generated)
}
