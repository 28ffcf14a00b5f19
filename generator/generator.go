// Package generator turns the declarations of Go packages, interfaces marked with //mcptask:service,
// into the code that serves and calls them.
//
// [Generate] is the whole of it, and pure: it reads packages and returns files. Writing, checking
// and testing share its result.
//
// What the declaration leaves open is settled so:
//   - The methods of an interface that a service embeds are tools too where it stands in the same
//     package; others are refused, because their comments are not there to read.
//   - A service's prefix stands before the name of every tool of its, a name= included, and before
//     those of its fallback tools.
//   - An input schema is closed (additionalProperties: false), so that a model that misspells an
//     argument is told so; an output schema is open, so that a server may grow a field before its
//     clients do; a question's is open, because clients add to their answers.
//   - A type with MarshalJSON or UnmarshalJSON needs schema=, the file of an input's schema, or
//     outputschema=, that of an output's; in a field, jsonschema:"type=string" will do.
//     The same goes for one with MarshalText or UnmarshalText alone, which writes what it cannot read.
//   - Comments of fields are descriptions, of types their first sentence; comments of the standard
//     library are left out, because they change with the Go release.
//   - A named string or integer with constants of its type in its package is an enum of them, unless
//     they are flags; of the standard library's types none is. What no constant names is refused, ""
//     too: where a field may be empty, say omitempty or declare a constant for it. A field that is
//     open after all says jsonschema:"type=string" or "type=integer"; its own enum= wins as well.
//   - A declaration behind a build constraint gives a generated file behind the same one.
//   - Generated files are not read: what a run writes does not depend on what an earlier one wrote.
//     So the type of a tool cannot use a generated identifier.
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

// OutputName is the file that a package with declarations gets where [Config.Output] says nothing.
const OutputName = "mcptask_gen.go"

// Config says what to generate from. The zero value is the package in the current folder.
type Config struct {
	Dir      string   // the working directory; empty for the process's own
	Patterns []string // packages as go list takes them; none is the one in Dir
	Tags     string   // build tags, comma-separated
	// Output is the base name of generated files; empty is OutputName.
	Output string
	// Revisions are those of the protocol that generated servers declare tasks in; none is all
	// released ones that package schema knows.
	Revisions []string
	// Schemas are schema files of MCP, as published; their revisions are added to Revisions.
	Schemas []string
	// ServerOnly and ClientOnly leave the other half out; not both.
	ServerOnly, ClientOnly bool
	// Step, where it is set, is told how long each step took.
	Step func(name string, took time.Duration)
}

// Generate reads the packages and returns what their generated files should be. It writes nothing.
// Its error lists every mistake of every package, as path/file.go:12:3: message, with the line of the
// source, a caret and a hint below. The rest of a package need not compile or even parse, as long as
// the declarations and the types that they use do.
// Generate is safe for concurrent use.
func Generate(ctx context.Context, cfg Config) (Output, error) {
	if err := cfg.check(); err != nil {
		return Output{}, err
	}
	in, err := readDeclarations(ctx, cfg)
	if err != nil {
		return Output{}, err
	}
	return in.render(cfg)
}

// render writes the generated files.
func (in declarations) render(cfg Config) (Output, error) {
	defer cfg.step("render")()
	files := map[string][]byte{}
	for _, m := range in.models {
		m.Side = cfg.side()
		content, err := emit.File(m, in.protocol)
		if err != nil {
			return Output{}, err
		}
		files[filepath.Join(m.Dir, cfg.output())] = content
	}
	out := NewOutput(in.dir, files, in.leftOver)
	out.Notes = in.notes
	return out, nil
}

// Declared reads what the packages declare, as [Generate] does, in the order of their import paths. It
// writes nothing. It is safe for concurrent use.
func Declared(ctx context.Context, cfg Config) ([]*model.Package, error) {
	in, err := readDeclarations(ctx, cfg)
	return in.models, err
}

// declarations are what the packages of a run declare.
type declarations struct {
	dir      string // the working directory, absolute
	protocol emit.Protocol
	notes    string // of the schema files
	models   []*model.Package
	leftOver []string
}

// readDeclarations loads the packages and reads what they declare.
func readDeclarations(ctx context.Context, cfg Config) (in declarations, err error) {
	if in.dir, err = filepath.Abs(cfg.Dir); err != nil {
		return in, err
	}
	patterns := cfg.Patterns
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	if err := checkOutputName(cfg.output()); err != nil {
		return in, err
	}
	var revisions []string
	if revisions, in.notes, err = cfg.revisions(in.dir); err != nil {
		return in, err
	}
	if in.protocol, err = readProtocol(revisions); err != nil {
		return in, err
	}
	loaded := cfg.step("load")
	fset, packages, err := load.Load(ctx, load.Config{
		Dir: in.dir, Patterns: patterns, Tags: cfg.Tags, Output: cfg.output(), Header: emit.Header,
	})
	loaded()
	if err != nil {
		return in, err
	}
	defer cfg.step("read")()
	in.models, in.leftOver, err = read(fset, packages, in.protocol, in.dir, cfg.output())
	if err == nil && len(in.models) == 0 && len(in.leftOver) == 0 {
		err = errNothing(patterns, packages)
	}
	return in, err
}

// ErrNothing is the error of packages that declare nothing, and for which nothing was generated before.
var ErrNothing = errors.New("no //mcptask:service")

// errNothing says that packages declare nothing, and what to do.
func errNothing(patterns []string, packages []*load.Package) error {
	hint := "put the directive into the doc comment of an interface, or begin with mcptaskgen init"
	switch {
	case slices.ContainsFunc(packages, declaresElsewhere):
		hint = "files that build constraints leave out have directives: name build tags with --tags"
	case slices.ContainsFunc(packages, func(p *load.Package) bool { return slices.ContainsFunc(p.Generated, isFromTools) }):
		hint = "what --tools made of a list is made and checked with --tools alone"
	}
	return fmt.Errorf("%w in %s; %s", ErrNothing, strings.Join(patterns, " "), hint)
}

// read reads the declarations of the packages, and finds generated files that a run does not write:
// of packages that declare nothing any more, and of another name.
func read(fset *token.FileSet, packages []*load.Package, protocol emit.Protocol, dir, output string) (models []*model.Package, leftOver []string, err error) {
	var problems diag.List
	for _, pkg := range packages {
		m := declaration.Read(fset, pkg, protocol.Names(), &problems)
		path := filepath.Join(pkg.Dir, output)
		switch {
		case m != nil && pkg.Foreign:
			problems.Add(token.Position{Filename: path, Line: 1, Column: 1}, "this file was not written by mcptaskgen",
				"move it, the generated file needs its name, or choose another name with --out")
		case m != nil:
			models = append(models, m)
		}
		others := slices.DeleteFunc(slices.Clone(pkg.Generated), func(name string) bool {
			return m != nil && name == path || isFromTools(name)
		})
		if len(others) > 0 && !declaresElsewhere(pkg) {
			leftOver = append(leftOver, others...)
		}
	}
	return models, leftOver, problems.Err(dir)
}

// declaresElsewhere tells whether a file that this run's build tags leave out has declarations: the
// generated file is theirs then.
func declaresElsewhere(pkg *load.Package) bool {
	for _, name := range pkg.IgnoredFiles {
		if slices.Contains(pkg.Generated, name) || filepath.Ext(name) != ".go" {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil || strings.Contains(string(src), "//mcptask:") {
			return true // what cannot be read is not removed
		}
	}
	return false
}

// readProtocol reads what every generated file says about MCP. Where revisions describe a thing
// differently, the newest has the word.
func readProtocol(revisions []string) (emit.Protocol, error) {
	var protocol emit.Protocol
	statuses, codes := map[string]int{}, map[string]int{}
	for _, revision := range revisions {
		surface, err := schema.Load(revision)
		if err != nil {
			return protocol, err
		}
		if len(surface.ServerCapabilities) > 0 {
			protocol.Capabilities = append(protocol.Capabilities, emit.Capability{Revision: revision, JSON: string(surface.ServerCapabilities)})
		}
		for _, s := range surface.Statuses {
			put(&protocol.Statuses, statuses, s.Name, emit.Status{Name: s.Name, Doc: s.Doc})
		}
		for _, c := range surface.ErrorCodes {
			put(&protocol.Codes, codes, c.Name, emit.Code{Name: c.Name, Value: c.Code, Doc: c.Doc})
		}
	}
	return protocol, nil
}

// put replaces the item of a name, or appends it.
func put[T any](list *[]T, index map[string]int, name string, item T) {
	if i, ok := index[name]; ok {
		(*list)[i] = item
		return
	}
	index[name] = len(*list)
	*list = append(*list, item)
}

// Output is what the generated files should be.
type Output struct {
	// Root is the folder that all paths are relative to: the deepest that holds every package and
	// the working directory.
	Root string
	// Files are the generated files by their slash-separated path.
	Files output.Files
	// LeftOver are files with the header of generated ones that this run does not produce: of packages
	// that declare nothing any more, and of another name.
	LeftOver []string
	// Notes says, in lines, what the schema files of the run have that generated code does without;
	// empty where that is nothing.
	Notes string

	dir string
}

// NewOutput is an output of files, and of files that are left over, by their absolute path; dir is the
// working directory, absolute.
func NewOutput(dir string, files map[string][]byte, leftOver []string) Output {
	out := Output{Root: dir, Files: output.Files{}, dir: dir}
	for path := range files {
		out.Root = common(out.Root, filepath.Dir(path))
	}
	for _, path := range leftOver {
		out.Root = common(out.Root, filepath.Dir(path))
	}
	for path, content := range files {
		out.Files[diag.Relative(out.Root, path)] = content
	}
	for _, path := range leftOver {
		out.LeftOver = append(out.LeftOver, diag.Relative(out.Root, path))
	}
	return out
}

// Merge is the output of several runs, with paths shown relative to a working directory, absolute. Left
// over is what none of them produces.
func Merge(dir string, outputs []Output) Output {
	files := map[string][]byte{}
	var leftOver, notes []string
	for _, o := range outputs {
		for name, content := range o.Files {
			files[o.path(name)] = content
		}
		for _, name := range o.LeftOver {
			leftOver = append(leftOver, o.path(name))
		}
		if !slices.Contains(notes, o.Notes) {
			notes = append(notes, o.Notes)
		}
	}
	leftOver = slices.DeleteFunc(leftOver, func(path string) bool { return files[path] != nil })
	slices.Sort(leftOver)
	out := NewOutput(dir, files, slices.Compact(leftOver))
	out.Notes = strings.Join(notes, "")
	return out
}

// path is where a file of the output stands.
func (o Output) path(name string) string { return filepath.Join(o.Root, filepath.FromSlash(name)) }

// common is the deepest folder that holds both.
func common(a, b string) string {
	for {
		rel, err := filepath.Rel(a, b)
		if err == nil && filepath.IsLocal(rel) || filepath.Dir(a) == a {
			return a
		}
		a = filepath.Dir(a)
	}
}

// shown makes paths relative to the working directory, sorted.
func (o Output) shown(names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = diag.Relative(o.dir, o.path(name))
	}
	slices.Sort(paths)
	return paths
}
