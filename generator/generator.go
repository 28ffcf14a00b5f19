// Package generator turns Go declarations into the code that serves and calls MCP tools. A
// declaration is an interface marked with //mcptask:service.
//
// [Generate] is the entry point and has no side effects: it reads packages and returns files. The
// code that writes, compares and tests files starts from its result.
//
// The generator decides what a declaration leaves open:
//   - Methods of an embedded interface are tools too if the interface is declared in the same
//     package. Other embedded interfaces are errors, because their comments are not loaded.
//   - A service's prefix comes before the name of each of its tools, including names set with
//     name=, and before the names of its fallback tools.
//   - Input schemas are closed (additionalProperties: false), so that a model learns when it
//     misspells an argument. Output schemas are open, so that a server can add a field before its
//     clients do. Question schemas are open because clients add members to their answers.
//   - A type with MarshalJSON or UnmarshalJSON needs //mcptask:schema above it, or the file of a schema
//     on the tool (schema= for an input, outputschema= for an output). A field of such a type can say
//     jsonschema:"type=string" instead. The same holds for a type with only one of MarshalText and
//     UnmarshalText, because it cannot read what it writes.
//   - Comments become descriptions, without the Go names that they start with. Those of types
//     contribute their first sentence. Those of the standard library are left out because they change
//     with the Go release.
//   - A named string type with at least two constants in its package is an enum of these constants. So
//     is an integer type, unless they look like flags. That is a guess, which prints a note, unless
//     the type says //mcptask:enum or //mcptask:open. Types of the standard library are never enums.
//     Values without a constant are refused, including "". If a field may be empty, use omitempty or
//     declare a constant for the empty value. A field can be open with jsonschema:"type=string" or
//     "type=integer". A field's own enum= overrides the constants.
//   - A declaration behind a build constraint produces a generated file behind the same constraint.
//   - Generated files are not read, so that the output of a run does not depend on an earlier run.
//     For this reason, a tool's types cannot use a generated identifier.
package generator

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/declaration"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/emit"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// OutputName is the default name of the generated file in each package. [Config.Output] overrides
// it.
const OutputName = "mcptask_gen.go"

// Config selects the packages and what is generated for them. The zero value selects the package in
// the current directory.
type Config struct {
	Dir      string   // the working directory; empty means the process's own
	Patterns []string // packages in the syntax of go list; empty means the package in Dir
	Tags     string   // build tags, comma-separated
	// Output is the base name of generated files. Empty means [OutputName].
	Output string
	// Revisions are the protocol revisions that generated servers declare tasks in. Empty means all
	// released revisions that package schema knows.
	Revisions []string
	// Schemas are paths of published MCP schema files. Their revisions are added to Revisions.
	Schemas []string
	// ServerOnly leaves the client out and ClientOnly leaves the server out. Setting both is an
	// error.
	ServerOnly, ClientOnly bool
	// Step, if set, receives the duration of each step.
	Step func(name string, took time.Duration)
}

// Generate reads the packages and returns their generated files. It writes nothing.
//
// Its error lists every mistake of every package. Each has the form path/file.go:12:3: message,
// followed by the source line, a caret and a hint. The rest of a package does not need to compile
// or even parse, as long as the declarations and the types they use do.
//
// Generate is safe for concurrent use.
func Generate(ctx context.Context, cfg Config) (Output, error) {
	if err := cfg.check(); err != nil {
		return Output{}, err
	}
	in, err := readDeclarations(ctx, cfg)
	if err != nil {
		return Output{}, err
	}
	return in.renderFiles(cfg)
}

// Declared reads the declarations of the packages, as [Generate] does, and returns them sorted by
// import path. It writes nothing and is safe for concurrent use.
func Declared(ctx context.Context, cfg Config) ([]*model.Package, error) {
	in, err := readDeclarations(ctx, cfg)
	return in.models, err
}

// declarations holds what one run has read.
type declarations struct {
	dir      string // the working directory, absolute
	protocol emit.Protocol
	notes    []string // about the schema files and the declarations
	models   []*model.Package
	leftOver []string
}

// readDeclarations loads the packages and reads their declarations.
func readDeclarations(ctx context.Context, cfg Config) (in declarations, err error) {
	if in.dir, err = filepath.Abs(cfg.Dir); err != nil {
		return in, err
	}
	patterns := cfg.Patterns
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	if err := checkOutputName(cfg.outputName()); err != nil {
		return in, err
	}
	var revisions []string
	if revisions, in.notes, err = cfg.revisions(in.dir); err != nil {
		return in, err
	}
	if in.protocol, err = readProtocol(revisions); err != nil {
		return in, err
	}
	loaded := cfg.startStep("load")
	fset, packages, err := load.Load(ctx, load.Config{
		Dir: in.dir, Patterns: patterns, Tags: cfg.Tags, Output: cfg.outputName(), Header: emit.Header,
	})
	loaded()
	if err != nil {
		return in, err
	}
	defer cfg.startStep("read")()
	err = in.readPackages(fset, packages, cfg.outputName())
	if err == nil && len(in.models) == 0 && len(in.leftOver) == 0 {
		err = newNothingError(patterns, packages)
	}
	return in, err
}

// ErrNothing reports that the packages declare nothing and that no generated files are left over.
var ErrNothing = errors.New("no //mcptask:service")

// newNothingError returns [ErrNothing] with the patterns and a hint.
func newNothingError(patterns []string, packages []*load.Package) error {
	hint := "put the directive into the doc comment of an interface, or begin with mcptaskgen init"
	switch {
	case slices.ContainsFunc(packages, declaresElsewhere):
		hint = "files that build constraints leave out have directives: name build tags with --tags"
	case slices.ContainsFunc(packages, func(p *load.Package) bool { return slices.ContainsFunc(p.Generated, isToolsClient) }):
		hint = "clients of a list of tools are generated and checked only with --tools"
	}
	return fmt.Errorf("%w in %s; %s", ErrNothing, strings.Join(patterns, " "), hint)
}

// readPackages reads the declarations of the packages. It also finds generated files that this run
// does not write: files of packages that no longer declare anything, and files with another name.
func (in *declarations) readPackages(fset *token.FileSet, packages []*load.Package, output string) error {
	var problems diag.List
	for _, pkg := range packages {
		m := declaration.Read(fset, pkg, in.protocol.Names(), &problems)
		path := filepath.Join(pkg.Dir, output)
		switch {
		case m != nil && pkg.Foreign:
			problems.Add(token.Position{Filename: path, Line: 1, Column: 1}, "this file was not written by mcptaskgen",
				"move it, the generated file needs its name, or choose another name with --out")
		case m != nil:
			in.models = append(in.models, m)
		}
		others := slices.DeleteFunc(slices.Clone(pkg.Generated), func(name string) bool {
			return m != nil && name == path || isToolsClient(name)
		})
		if len(others) > 0 && !declaresElsewhere(pkg) {
			in.leftOver = append(in.leftOver, others...)
		}
	}
	in.notes = append(in.notes, problems.Notes(in.dir)...)
	return problems.Err(in.dir)
}

// declaresElsewhere reports whether a file that the build tags exclude has declarations. Generated
// files then belong to these declarations and are not left over.
func declaresElsewhere(pkg *load.Package) bool {
	for _, name := range pkg.IgnoredFiles {
		if slices.Contains(pkg.Generated, name) || filepath.Ext(name) != ".go" {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil || strings.Contains(string(src), "//mcptask:") {
			return true // keep the generated files if a source cannot be read
		}
	}
	return false
}

// readProtocol reads what every generated file says about MCP. A status that no released revision has
// is left out: the runtime never shows it.
func readProtocol(revisions []string) (emit.Protocol, error) {
	var protocol emit.Protocol
	surfaces, shown := map[string]*schema.Surface{}, map[string]bool{}
	for _, revision := range append(schema.ReleasedRevisions(), revisions...) {
		if surfaces[revision] != nil {
			continue
		}
		surface, err := schema.Load(revision)
		if err != nil {
			return protocol, err
		}
		surfaces[revision] = surface
		for _, s := range surface.Statuses {
			shown[s.Name] = shown[s.Name] || surface.Standing == schema.Released
		}
	}
	for _, revision := range revisions {
		surface := surfaces[revision]
		if len(surface.ServerCapabilities) > 0 {
			protocol.Capabilities = append(protocol.Capabilities, emit.Capability{Revision: revision, JSON: string(surface.ServerCapabilities)})
		}
		for _, s := range surface.Statuses {
			if shown[s.Name] && !slices.Contains(protocol.Statuses, s.Name) {
				protocol.Statuses = append(protocol.Statuses, s.Name)
			}
		}
		for _, c := range surface.ErrorCodes {
			if !slices.Contains(protocol.Codes, c.Name) {
				protocol.Codes = append(protocol.Codes, c.Name)
			}
		}
	}
	return protocol, nil
}

// renderFiles renders the generated files in memory.
func (in declarations) renderFiles(cfg Config) (Output, error) {
	defer cfg.startStep("render")()
	files := map[string][]byte{}
	for _, m := range in.models {
		m.Side = cfg.side()
		content, err := emit.File(m, in.protocol)
		if err != nil {
			return Output{}, err
		}
		files[filepath.Join(m.Dir, cfg.outputName())] = content
	}
	out := NewOutput(in.dir, files, in.leftOver)
	out.Notes = in.notes
	return out, nil
}

// Output holds generated files and their locations.
type Output struct {
	// Root is the directory that all paths are relative to: the deepest one that contains every
	// package and the working directory.
	Root string
	// Files holds the generated files by slash-separated path.
	Files output.Files
	// LeftOver lists files that have a generated file's header but that this run does not produce:
	// files of packages that no longer declare anything, and files with another name.
	LeftOver []string
	// Notes tells what the generator decided for the user, and which features of the run's schema
	// files generated code does not support. A note about a declaration is one line and begins with
	// its place, as in path/file.go:12:6: note: message.
	Notes []string

	dir string
}

// NewOutput returns an Output with the given files and left-over files, which are named by absolute
// path. dir is the absolute working directory.
func NewOutput(dir string, files map[string][]byte, leftOver []string) Output {
	out := Output{Root: dir, Files: output.Files{}, dir: dir}
	for path := range files {
		out.Root = commonDirectory(out.Root, filepath.Dir(path))
	}
	for _, path := range leftOver {
		out.Root = commonDirectory(out.Root, filepath.Dir(path))
	}
	for path, content := range files {
		out.Files[diag.Relative(out.Root, path)] = content
	}
	for _, path := range leftOver {
		out.LeftOver = append(out.LeftOver, diag.Relative(out.Root, path))
	}
	return out
}

// Merge combines the outputs of several runs. It shows paths relative to dir, an absolute path. A
// file is left over only if no run produces it.
func Merge(dir string, outputs []Output) Output {
	files := map[string][]byte{}
	var leftOver, notes []string
	for _, o := range outputs {
		for name, content := range o.Files {
			files[o.absolutePath(name)] = content
		}
		for _, name := range o.LeftOver {
			leftOver = append(leftOver, o.absolutePath(name))
		}
		for _, note := range o.Notes {
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	leftOver = slices.DeleteFunc(leftOver, func(path string) bool { return files[path] != nil })
	slices.Sort(leftOver)
	out := NewOutput(dir, files, slices.Compact(leftOver))
	out.Notes = notes
	return out
}

// absolutePath returns the absolute path of a file of the output.
func (o Output) absolutePath(name string) string {
	return filepath.Join(o.Root, filepath.FromSlash(name))
}

// commonDirectory returns the deepest directory that contains both a and b.
func commonDirectory(a, b string) string {
	for {
		rel, err := filepath.Rel(a, b)
		if err == nil && filepath.IsLocal(rel) || filepath.Dir(a) == a {
			return a
		}
		a = filepath.Dir(a)
	}
}

// relativePaths returns paths relative to the working directory, sorted.
func (o Output) relativePaths(names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = diag.Relative(o.dir, o.absolutePath(name))
	}
	slices.Sort(paths)
	return paths
}
