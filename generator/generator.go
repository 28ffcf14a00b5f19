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
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/declaration"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/emit"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// OutputName is the file that a package with declarations gets.
const OutputName = "mcptask_gen.go"

// Config says what to generate from. The zero value is the package in the current folder.
type Config struct {
	Dir      string   // the working directory; empty for the process's own
	Patterns []string // packages as go list takes them; none is the one in Dir
	Tags     string   // build tags, comma-separated
}

// Generate reads the packages and returns what their generated files should be. It writes nothing.
// Its error lists every mistake of every package, one a line, as path/file.go:12:3: message.
// Generate is safe for concurrent use.
func Generate(ctx context.Context, cfg Config) (Output, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return Output{}, err
	}
	patterns := cfg.Patterns
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	protocol, err := readProtocol()
	if err != nil {
		return Output{}, err
	}
	fset, packages, err := load.Load(ctx, load.Config{
		Dir: dir, Patterns: patterns, Tags: cfg.Tags, Output: OutputName, Header: emit.Header,
	})
	if err != nil {
		return Output{}, err
	}
	models, leftOver, err := read(fset, packages, protocol, dir)
	if err != nil {
		return Output{}, err
	}
	if len(models) == 0 && len(leftOver) == 0 {
		return Output{}, fmt.Errorf("no //mcptask:service in %s; put the directive into the doc comment of an interface", strings.Join(patterns, " "))
	}
	files := map[string][]byte{}
	for _, m := range models {
		content, err := emit.File(m, protocol)
		if err != nil {
			return Output{}, err
		}
		files[filepath.Join(m.Dir, OutputName)] = content
	}
	return newOutput(dir, files, leftOver)
}

// read reads the declarations of the packages, and finds generated files of packages that have none
// any more.
func read(fset *token.FileSet, packages []*load.Package, protocol emit.Protocol, dir string) (models []*model.Package, leftOver []string, err error) {
	var problems diag.List
	for _, pkg := range packages {
		m := declaration.Read(fset, pkg, protocol.Names(), &problems)
		path := filepath.Join(pkg.Dir, OutputName)
		switch {
		case m != nil && pkg.Foreign:
			problems.Add(token.Position{Filename: path, Line: 1, Column: 1}, "this file was not written by mcptaskgen", "move it, the generated file needs its name")
		case m != nil:
			models = append(models, m)
		case pkg.Generated && !declaresElsewhere(pkg):
			leftOver = append(leftOver, path)
		}
	}
	return models, leftOver, problems.Err(dir)
}

// declaresElsewhere tells whether a file that this run's build tags leave out has declarations: the
// generated file is theirs then.
func declaresElsewhere(pkg *load.Package) bool {
	for _, name := range pkg.IgnoredFiles {
		if filepath.Base(name) == OutputName {
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
func readProtocol() (emit.Protocol, error) {
	var protocol emit.Protocol
	statuses, codes := map[string]int{}, map[string]int{}
	for _, revision := range schema.Revisions() {
		surface, err := schema.Load(revision)
		if err != nil {
			return protocol, err
		}
		for _, s := range surface.Statuses {
			put(&protocol.Statuses, statuses, s.Name, emit.Status{Name: s.Name, Doc: s.Doc})
		}
		for _, c := range surface.ErrorCodes {
			put(&protocol.Codes, codes, c.Name, emit.Code{Name: c.Name, Value: c.Code, Doc: c.Doc})
		}
		if len(surface.ServerCapabilities) > 0 {
			protocol.Capabilities = append(protocol.Capabilities, emit.Capability{Revision: revision, JSON: string(surface.ServerCapabilities)})
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
	// LeftOver are generated files of packages that declare nothing any more.
	LeftOver []string

	dir string
}

func newOutput(dir string, files map[string][]byte, leftOver []string) (Output, error) {
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
	return out, nil
}

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

// Diff lists the files that Write would write or remove, relative to the working directory; none
// where everything is up to date.
func (o Output) Diff() ([]string, error) {
	stale, err := o.Files.Diff(o.Root)
	if err != nil {
		return nil, err
	}
	return o.shown(append(stale, o.LeftOver...)), nil
}

// Write brings the generated files up to date, each of them whole or not at all, and removes those
// that are left over. It returns what it touched, relative to the working directory.
func (o Output) Write() ([]string, error) {
	changed, err := o.Files.Write(o.Root)
	if err != nil {
		return o.shown(changed), err
	}
	for _, name := range o.LeftOver {
		if err := os.Remove(filepath.Join(o.Root, filepath.FromSlash(name))); err != nil {
			return o.shown(changed), fmt.Errorf("remove %s: %w", name, err)
		}
		changed = append(changed, name)
	}
	return o.shown(changed), nil
}

// shown makes paths relative to the working directory, sorted.
func (o Output) shown(names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = diag.Relative(o.dir, filepath.Join(o.Root, filepath.FromSlash(name)))
	}
	slices.Sort(paths)
	return paths
}
