// Package load reads Go packages for the generator: their own syntax and types, and of their
// dependencies the export data alone, because loading those from source takes twenty times as long.
package load

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
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
	Output   string   // the base name of generated files
	Header   string   // the first line of a generated file, of which only the package clause is read
}

// Package is one loaded package.
type Package struct {
	*packages.Package

	Dir string
	// Generated are the paths of the files that carry the header, whatever their name, sorted;
	// those that build constraints leave out too.
	Generated []string
	// Foreign tells that a file with the name of a generated one stands there that somebody else
	// wrote.
	Foreign bool
	// Files are the syntax of the files that people wrote.
	Files []*ast.File
	// Mistakes are the errors of files without declarations, which Load does not return.
	Mistakes []Mistake

	scopes *scopes
}

const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule |
	packages.NeedExportFile

// Load loads the packages in the order of their paths. Type errors are no errors here: before the
// first generation, generated symbols are missing. What is wrong in files without declarations is kept
// in Mistakes.
func Load(ctx context.Context, cfg Config) (*token.FileSet, []*Package, error) {
	fset := token.NewFileSet()
	generated := &generatedFiles{paths: map[string]bool{}}
	config := &packages.Config{
		Context: ctx, Mode: mode, Dir: cfg.Dir, Fset: fset,
		ParseFile: func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
			if IsGenerated(src, cfg.Header) {
				generated.add(name)
				return clauseOnly(fset, name, src)
			}
			return withoutBodies(parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution))
		},
	}
	if cfg.Tags != "" {
		config.BuildFlags = []string{"-tags=" + cfg.Tags}
	}
	loaded, err := packages.Load(config, cfg.Patterns...)
	if err == nil {
		// This is slow, so it is done only where it has to be.
		if config.Overlay = renamed(loaded, cfg.Header); len(config.Overlay) > 0 {
			loaded, err = packages.Load(config, cfg.Patterns...)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot load %s: %w", strings.Join(cfg.Patterns, " "), err)
	}
	var problems diag.List
	var result []*Package
	shared := &scopes{config: *config, found: map[string]*types.Scope{}}
	for _, p := range loaded {
		pkg := &Package{Package: p, Dir: directory(p), scopes: shared}
		pkg.reportErrors(&problems, cfg, generated, p)
		for _, path := range slices.Sorted(maps.Keys(p.Imports)) {
			pkg.reportErrors(&problems, cfg, generated, p.Imports[path]) // an import that cannot be found
		}
		for _, file := range p.Syntax {
			name := fset.Position(file.FileStart).Filename
			if !generated.has(name) {
				pkg.Files = append(pkg.Files, file)
			}
		}
		pkg.findGenerated(cfg, generated)
		result = append(result, pkg)
	}
	if err := problems.Err(cfg.Dir); err != nil {
		return nil, nil, err
	}
	if len(result) == 0 {
		return nil, nil, fmt.Errorf("no packages match %s; run mcptaskgen inside a Go module, with patterns as for go list", strings.Join(cfg.Patterns, " "))
	}
	// As go list has them, they stand in the order of the patterns.
	slices.SortFunc(result, func(a, b *Package) int { return strings.Compare(a.PkgPath, b.PkgPath) })
	return fset, result, nil
}

// withoutBodies takes the bodies of functions away before they are checked: nothing is declared in them
// that a tool could use, and where many packages match they are most of the work.
func withoutBodies(file *ast.File, err error) (*ast.File, error) {
	if file != nil {
		for _, decl := range file.Decls {
			if function, ok := decl.(*ast.FuncDecl); ok {
				function.Body = nil
			}
		}
	}
	return file, err
}

// reportErrors keeps the list and parse errors of the package or of one that it imports, except those
// of generated files, and holds back those that may not matter.
func (p *Package) reportErrors(problems *diag.List, cfg Config, generated *generatedFiles, from *packages.Package) {
	for _, e := range from.Errors {
		if e.Kind == packages.TypeError {
			continue
		}
		pos := position(cfg.Dir, e.Pos)
		if generated.has(pos.Filename) {
			continue
		}
		message := strings.TrimSpace(e.Msg)
		if strings.HasPrefix(message, "# ") {
			continue // what the compiler says, of which the type errors are a better record
		}
		message = strings.Join(strings.Fields(message), " ")
		if pos.Filename == "" {
			pos = p.place(message, from)
		}
		if pos.Filename == "" && !strings.Contains(message, from.PkgPath) {
			message = from.PkgPath + ": " + message
		}
		if !p.holdBack(pos, message) {
			problems.Add(pos, message, hint(cfg, message))
		}
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
