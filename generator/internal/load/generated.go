package load

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

// GeneratedFile is a file that mcptaskgen wrote.
type GeneratedFile struct {
	Path   string
	Header commandline.Header
}

// parseClauseOnly parses a generated file's package clause and ignores the rest. The output of a
// run then does not depend on an earlier run, and a file with conflict markers can be generated
// again.
func parseClauseOnly(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
	return parser.ParseFile(fset, name, src, parser.PackageClauseOnly|parser.SkipObjectResolution)
}

// generatedFiles has the headers of generated files by path. Several goroutines add to it while packages
// are parsed.
type generatedFiles struct{ sync.Map }

func (g *generatedFiles) has(path string) bool {
	_, ok := g.Load(path)
	return ok
}

// findGenerated finds the generated files in the package's directory. The headers of parsed files are
// known already. Other files are read here: those that a build constraint excludes, and those that
// the go command cannot list.
func (p *Package) findGenerated(parsed *generatedFiles) {
	if p.Dir == "" {
		return
	}
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		return // nothing can be left over in a directory that cannot be read
	}
	for _, entry := range entries {
		name, path := entry.Name(), filepath.Join(p.Dir, entry.Name())
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.ContainsAny(name[:1], "._") {
			continue
		}
		header, ok := parsed.Load(path)
		if !ok && !slices.Contains(p.GoFiles, path) {
			if src, err := os.ReadFile(path); err == nil {
				header, ok = commandline.FindHeader(src)
			}
		}
		if ok {
			p.Generated = append(p.Generated, GeneratedFile{path, header.(commandline.Header)})
		}
	}
}

// FindGenerated returns the generated file with that path, or nil if there is none.
func (p *Package) FindGenerated(path string) *GeneratedFile {
	i := slices.IndexFunc(p.Generated, func(f GeneratedFile) bool { return f.Path == path })
	if i < 0 {
		return nil
	}
	return &p.Generated[i]
}
