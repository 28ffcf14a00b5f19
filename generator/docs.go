package generator

import (
	"context"
	"fmt"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/reference"
)

// Docs reads the packages as [Generate] does and returns the reference of their tools as Markdown. Of
// cfg.Flags it uses only Tags. Docs is safe for concurrent use.
func Docs(ctx context.Context, cfg Config) (string, error) {
	cfg.Flags = commandline.Flags{Tags: cfg.Tags, ServerOnly: true} // the reference needs no types that a client could decode
	g, _, err := generate(ctx, cfg)
	if err != nil {
		return "", err
	}
	models := slices.DeleteFunc(g.models, (*model.Package).HasOnlyEnums)
	if len(models) == 0 {
		return "", newNothingError(cfg.Patterns, nil)
	}
	return reference.Write(models)
}

// DocsFile returns the output that writes a reference to a file. It refuses to replace a file that
// mcptaskgen docs did not write.
func DocsFile(path, text string) (Output, error) {
	dir, err := filepath.Abs(".")
	if err != nil {
		return Output{}, err
	}
	path = diag.Absolute(dir, path)
	return newOutput(dir, map[string][]byte{path: []byte(text)}, nil), checkReference(dir, path)
}

// checkReference refuses to replace a file that mcptaskgen docs did not write.
func checkReference(dir, path string) error {
	old, err := output.Read(filepath.Dir(path), filepath.Base(path))
	if err == nil && old != nil && !strings.HasPrefix(string(old), reference.Header) {
		err = fmt.Errorf("%s was not written by mcptaskgen docs; remove it, or choose another --out", diag.Relative(dir, path))
	}
	return err
}

// generateDocs writes the reference that a line with mcptaskgen docs names.
func (g *generation) generateDocs(ctx context.Context, fset *token.FileSet, pkg *load.Package, c Command) {
	text, err := "", checkReference(g.dir, c.path())
	if err == nil {
		text, err = g.renderDocs(ctx, fset, pkg, c)
	}
	if err != nil {
		g.fail(c, err)
		return
	}
	g.addFile(c.path(), []byte(text), c)
}

func (g *generation) renderDocs(ctx context.Context, fset *token.FileSet, pkg *load.Package, c Command) (string, error) {
	if !c.mustDeclare {
		return Docs(ctx, Config{Dir: pkg.Dir, Patterns: c.docs.Packages, Flags: commandline.Flags{Tags: c.Tags}, Step: g.cfg.Step})
	}
	protocol, err := g.protocolFor(Command{Dir: g.dir})
	if err != nil {
		return "", err
	}
	m := g.readDeclarations(fset, pkg, protocol, true)
	if m == nil || m.HasOnlyEnums() {
		return "", newNothingError([]string{shownDirectory(g.dir, c.Dir)}, []*load.Package{pkg})
	}
	return reference.Write([]*model.Package{m})
}
