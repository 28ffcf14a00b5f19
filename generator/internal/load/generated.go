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

// IsGenerated reports whether a file starts with the header.
func IsGenerated(src []byte, header string) bool {
	for line := range bytes.Lines(bytes.TrimPrefix(src, []byte("\ufeff"))) { // a byte order mark that some editors write
		text := string(bytes.TrimSpace(line))
		if text == header {
			return true
		}
		// A build constraint or the mark of a merge conflict may come before the header.
		if text != "" && !strings.HasPrefix(text, "//") && !strings.HasPrefix(text, "<<<<<<<") {
			return false
		}
	}
	return false
}

// parseClauseOnly parses a generated file's package clause and ignores the rest. The output of a
// run then does not depend on an earlier run, and a file with conflict markers can be generated
// again.
func parseClauseOnly(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
	return parser.ParseFile(fset, name, src, parser.PackageClauseOnly|parser.SkipObjectResolution)
}

// generatedFiles collects the files with the header while packages are parsed. Several goroutines
// call it.
type generatedFiles struct{ paths sync.Map }

func (g *generatedFiles) add(path string) { g.paths.Store(path, true) }

func (g *generatedFiles) has(path string) bool {
	_, ok := g.paths.Load(path)
	return ok
}

// findGenerated finds the generated files in the package's directory. Parsed files are known
// already. Files that a build constraint excludes are read here.
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
