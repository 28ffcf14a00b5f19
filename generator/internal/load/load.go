// Package load reads Go packages for the generator. It loads their own syntax and types, but only
// export data for their dependencies, because loading dependencies from source takes twenty times
// as long.
package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// Config selects the packages to load.
type Config struct {
	Dir      string   // absolute; patterns and paths in messages are relative to it
	Patterns []string // in the syntax of go list
	Tags     string   // build tags, comma-separated
}

// Package is one loaded package.
type Package struct {
	*packages.Package

	Dir string
	// Generated lists all generated files, sorted by path. It includes files that build constraints
	// exclude. Apart from their headers, they are not read.
	Generated []GeneratedFile
	// Files holds the syntax of hand-written files.
	Files []*ast.File

	scopes *scopeCache
}

const mode = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule |
	packages.NeedExportFile

// Load loads the packages, sorted by path. It does not return type errors, because generated
// symbols are missing before the first generation.
func Load(ctx context.Context, cfg Config) (*token.FileSet, []*Package, error) {
	fset := token.NewFileSet()
	generated := &generatedFiles{}
	config := &packages.Config{
		Context: ctx, Mode: mode, Dir: cfg.Dir, Fset: fset,
		ParseFile: func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
			if header, ok := commandline.FindHeader(src); ok {
				generated.Store(name, header)
				return parseClauseOnly(fset, name, src)
			}
			return removeBodies(parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution))
		},
	}
	// Comments of other packages are in the files that export data names, so GOFLAGS=-trimpath must not cut the names.
	// Export data of a command would hold the state of its repository, which takes several runs of git to find.
	config.BuildFlags = []string{"-trimpath=false", "-buildvcs=false"}
	if cfg.Tags != "" {
		config.BuildFlags = append(config.BuildFlags, "-tags="+cfg.Tags)
	}
	loaded, err := packages.Load(config, cfg.Patterns...)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot load %s: %w", strings.Join(cfg.Patterns, " "), err)
	}
	var problems diag.List
	var result []*Package
	shared := &scopeCache{config: *config, loaded: map[string]*types.Scope{}}
	for _, p := range loaded {
		pkg := &Package{Package: p, Dir: packageDir(p), scopes: shared}
		pkg.reportErrors(&problems, cfg, generated, p)
		for _, path := range slices.Sorted(maps.Keys(p.Imports)) {
			pkg.reportErrors(&problems, cfg, generated, p.Imports[path]) // an import that was not found
		}
		for _, file := range p.Syntax {
			name := fset.Position(file.FileStart).Filename
			if !generated.has(name) {
				pkg.Files = append(pkg.Files, file)
			}
		}
		pkg.findGenerated(generated)
		result = append(result, pkg)
	}
	if err := problems.Err(cfg.Dir); err != nil {
		return nil, nil, err
	}
	if len(result) == 0 {
		return nil, nil, explainNothing(ctx, cfg)
	}
	// go list returns them in the order of the patterns.
	slices.SortFunc(result, func(a, b *Package) int { return strings.Compare(a.PkgPath, b.PkgPath) })
	return fset, result, nil
}

// ErrNoPackages means that the go command knows of no package.
var ErrNoPackages = errors.New("no packages match")

// explainNothing says why no packages were loaded. If the go command lists no package, its message is lost, such as
// that go.mod needs updates.
func explainNothing(ctx context.Context, cfg Config) error {
	patterns := strings.Join(cfg.Patterns, " ")
	list := exec.CommandContext(ctx, "go", slices.Concat([]string{"list", "-tags=" + cfg.Tags, "--"}, cfg.Patterns)...)
	list.Dir = cfg.Dir
	if said, err := list.CombinedOutput(); err != nil && len(said) > 0 {
		return fmt.Errorf("cannot load %s: %s", patterns, bytes.TrimSpace(said))
	}
	return fmt.Errorf("%w %s; run mcptaskgen inside a Go module, with patterns in the syntax of go list", ErrNoPackages, patterns)
}

// removeBodies removes function bodies before type checking. They declare nothing that a tool could
// use, and checking them is most of the work if many packages match.
func removeBodies(file *ast.File, err error) (*ast.File, error) {
	if file != nil {
		for _, decl := range file.Decls {
			if function, ok := decl.(*ast.FuncDecl); ok {
				function.Body = nil
			}
		}
	}
	return file, err
}

// reportErrors reports the list and parse errors of the package or of one it imports. It skips
// errors in generated files.
func (p *Package) reportErrors(problems *diag.List, cfg Config, generated *generatedFiles, from *packages.Package) {
	for _, e := range from.Errors {
		if e.Kind == packages.TypeError {
			continue
		}
		pos := parsePosition(cfg.Dir, e.Pos)
		if generated.has(pos.Filename) {
			continue
		}
		message := strings.TrimSpace(e.Msg)
		if strings.HasPrefix(message, "# ") {
			continue // compiler output; the type errors say the same more precisely
		}
		message = strings.Join(strings.Fields(message), " ")
		if pos.Filename == "" {
			pos = p.locateError(message, from)
		}
		if pos.Filename == "" && !strings.Contains(message, from.PkgPath) {
			message = from.PkgPath + ": " + message
		}
		problems.Add(pos, message, hintFor(cfg, message))
	}
}

// parsePosition parses "file:line:column", "file:line" or "-".
func parsePosition(dir, text string) token.Position {
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
	pos.Filename = diag.Absolute(dir, text)
	if len(numbers) > 0 {
		pos.Line = numbers[0]
	}
	if len(numbers) > 1 {
		pos.Column = numbers[1]
	}
	return pos
}

func packageDir(p *packages.Package) string {
	for _, files := range [][]string{p.GoFiles, p.OtherFiles, p.IgnoredFiles} {
		if len(files) > 0 {
			return filepath.Dir(files[0])
		}
	}
	return ""
}
