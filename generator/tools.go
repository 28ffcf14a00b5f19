package generator

import (
	"cmp"
	"errors"
	"fmt"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/emit"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/toolschema"
)

func (g *generation) generateList(c Command) {
	content, err := g.renderList(c)
	if err != nil {
		g.fail(c, err)
		return
	}
	g.addFile(c.path(), content, c)
}

func (g *generation) renderList(c Command) ([]byte, error) {
	if c.Tools == "" {
		return nil, errors.New("name the list of tools with --tools")
	}
	list, out := diag.Absolute(c.Dir, c.Tools), c.path()
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of tools: %w; record it with mcptaskgen tools --out %s URL, or name another with --tools", err, diag.Relative(g.dir, list))
	}
	if err := checkTarget(g.dir, out); err != nil {
		return nil, err
	}
	pkg := cmp.Or(c.Package, findPackageName(out))
	if !isPackageName(pkg) {
		return nil, fmt.Errorf("%q is not a valid package name; give one with --package", pkg)
	}
	if c.Service != "" && (!token.IsIdentifier(c.Service) || !token.IsExported(c.Service)) {
		return nil, fmt.Errorf("--service=%s is not an exported Go identifier, such as Search", c.Service)
	}
	protocol, err := g.protocolFor(c)
	if err != nil {
		return nil, err
	}
	var problems diag.List
	remote := toolschema.Read(toolschema.Config{
		Path: list, Package: pkg, Service: c.Service, Side: sideOf(c.Flags), Revisions: c.Revisions, Portable: g.isPortable(c),
	}, text, &problems)
	if err := problems.Err(g.dir); err != nil {
		return nil, err
	}
	g.notes = append(g.notes, problems.Notes(g.dir)...)
	remote.Header = c.Relative(c.Dir, filepath.Dir(out)).Header()
	return emit.Remote(remote, protocol)
}

func isPackageName(name string) bool { return token.IsIdentifier(name) && name != "_" }

// checkTarget refuses to replace files that others wrote, and the name of the file generated from
// declarations.
func checkTarget(dir, out string) error {
	name := diag.Relative(dir, out)
	if filepath.Ext(out) != ".go" || strings.HasSuffix(out, "_test.go") {
		return fmt.Errorf("%s is not the name of a Go file; give --out the name of the file to write", name)
	}
	if filepath.Base(out) == OutputName {
		return fmt.Errorf("%s is reserved for the package's own declarations; give --out another name", name)
	}
	text, err := os.ReadFile(out)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if _, generated := commandline.FindHeader(text); err == nil && !generated {
		err = fmt.Errorf("%s:1:1: this file was not written by mcptaskgen; move it, or give another name with --out", name)
	}
	return err
}

// findPackageName returns the name of the package that a file is written into. It prefers the
// package of the other Go files there, first those that the current build includes. Otherwise it
// derives a name from the directory.
func findPackageName(out string) string {
	dir := filepath.Dir(out)
	entries, err := os.ReadDir(dir)
	if err != nil {
		entries = nil // the directory does not exist yet
	}
	found := ""
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if filepath.Ext(path) != ".go" || path == out || strings.HasSuffix(path, "_test.go") {
			continue
		}
		if f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly); err == nil {
			if built, err := build.Default.MatchFile(dir, entry.Name()); err == nil && built {
				return f.Name.Name
			}
			found = cmp.Or(found, f.Name.Name)
		}
	}
	if found != "" {
		return found
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, filepath.Base(dir))
}
