// Package load reads Go packages for the generator: their own syntax and types, and of their
// dependencies the export data alone, because loading those from source takes twenty times as long.
package load

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// Config says what to load.
type Config struct {
	Dir      string   // absolute; patterns and paths in messages are relative to it
	Patterns []string // as for go list
	Tags     string   // build tags, comma-separated
	Output   string   // the base name of generated files, of which only the package clause is read
	Header   string   // the first line of a generated file
}

// Package is one loaded package.
type Package struct {
	*packages.Package

	Dir string
	// Generated tells that a generated file stands there; Foreign that a file of its name stands
	// there that somebody else wrote.
	Generated, Foreign bool
	// Files are the syntax of the files that people wrote.
	Files []*ast.File

	scopes *scopes
}

const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule

// Load loads the packages in the order of their paths. Type errors are no errors here: before the
// first generation, generated symbols are missing.
func Load(ctx context.Context, cfg Config) (*token.FileSet, []*Package, error) {
	fset := token.NewFileSet()
	config := &packages.Config{
		Context: ctx, Mode: mode, Dir: cfg.Dir, Fset: fset,
		ParseFile: func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
			if filepath.Base(name) == cfg.Output && IsGenerated(src, cfg.Header) {
				return clauseOnly(fset, name, src)
			}
			return parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		},
	}
	if cfg.Tags != "" {
		config.BuildFlags = []string{"-tags=" + cfg.Tags}
	}
	loaded, err := packages.Load(config, cfg.Patterns...)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot load %s: %w", strings.Join(cfg.Patterns, " "), err)
	}
	var problems diag.List
	var result []*Package
	shared := &scopes{config: *config, found: map[string]*types.Scope{}}
	for _, p := range loaded {
		reportErrors(&problems, cfg, p)
		for _, path := range slices.Sorted(maps.Keys(p.Imports)) {
			reportErrors(&problems, cfg, p.Imports[path]) // an import that cannot be found
		}
		pkg := &Package{Package: p, Dir: directory(p), scopes: shared}
		for _, file := range p.Syntax {
			name := fset.Position(file.FileStart).Filename
			if filepath.Base(name) != cfg.Output {
				pkg.Files = append(pkg.Files, file)
			}
		}
		if pkg.Dir != "" {
			src, err := os.ReadFile(filepath.Join(pkg.Dir, cfg.Output))
			pkg.Generated = err == nil && IsGenerated(src, cfg.Header)
			pkg.Foreign = err == nil && !pkg.Generated
		}
		result = append(result, pkg)
	}
	if err := problems.Err(cfg.Dir); err != nil {
		return nil, nil, err
	}
	if len(result) == 0 {
		return nil, nil, fmt.Errorf("no packages match %s; run mcptaskgen inside a Go module, with patterns as for go list", strings.Join(cfg.Patterns, " "))
	}
	return fset, result, nil
}

// IsGenerated tells whether a file starts with our header.
func IsGenerated(src []byte, header string) bool {
	for line := range bytes.Lines(src) {
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

// reportErrors keeps the list and parse errors of a package, except those of generated files.
func reportErrors(problems *diag.List, cfg Config, p *packages.Package) {
	for _, e := range p.Errors {
		if e.Kind == packages.TypeError {
			continue
		}
		pos := position(cfg.Dir, e.Pos)
		if filepath.Base(pos.Filename) == cfg.Output {
			continue
		}
		message := strings.TrimSpace(e.Msg)
		if strings.HasPrefix(message, "# ") {
			continue // what the compiler says, of which the type errors are a better record
		}
		message = strings.Join(strings.Fields(message), " ")
		if pos.Filename == "" && !strings.Contains(message, p.PkgPath) {
			message = p.PkgPath + ": " + message
		}
		problems.Add(pos, message, "")
	}
}

// position reads "file:line:column", "file:line" or "-".
func position(dir, text string) token.Position {
	var pos token.Position
	var numbers []int
	for len(numbers) < 2 {
		i := strings.LastIndexByte(text, ':')
		if i < 0 {
			break
		}
		n, err := strconv.Atoi(text[i+1:])
		if err != nil {
			break
		}
		numbers = append([]int{n}, numbers...)
		text = text[:i]
	}
	if text == "" || text == "-" {
		return pos
	}
	pos.Filename = text
	if !filepath.IsAbs(text) {
		pos.Filename = filepath.Join(dir, text)
	}
	if len(numbers) > 0 {
		pos.Line = numbers[0]
	}
	if len(numbers) > 1 {
		pos.Column = numbers[1]
	}
	return pos
}

func directory(p *packages.Package) string {
	for _, files := range [][]string{p.GoFiles, p.OtherFiles, p.IgnoredFiles} {
		if len(files) > 0 {
			return filepath.Dir(files[0])
		}
	}
	return ""
}
