// Package generator turns Go declarations into the code that serves and calls MCP tools. A
// declaration is an interface marked with //mcptask:service.
//
// [Generate] is the entry point. It changes nothing: it reads packages and returns files. The code that
// writes, compares and tests files starts from its result.
//
// A declaration leaves some choices open. The generator makes them:
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
//     UnmarshalText, because it cannot read what it writes, unless ServerOnly leaves out the code that reads it.
//   - Comments become descriptions for readers who do not see the code. The Go name at the beginning is removed, or
//     replaced by the name of the tool or property. Those of types contribute their first sentence. Those of the standard
//     library are left out because they change with the Go release.
//   - A pointer in an input is not required. Schemas of inputs have no null: the runtime takes one for left out, or for an
//     empty list or map. Results write nil lists and maps as empty ones, and nil pointers as null.
//   - A named string type with at least two constants in its package is an enum of these constants. So is an integer
//     type, unless they look like flags. The generator guesses that and prints a note, unless the type has
//     //mcptask:enum or //mcptask:open. Types of the standard library are never enums. Values without a constant are
//     refused, including "". If a field may be empty, use omitempty or declare a constant for the empty value. A field
//     can be open with jsonschema:"type=string" or "type=integer". A field's own enum= overrides the constants.
//   - An integer type under //mcptask:enum strings is an enum of the names of its constants. The generated file has
//     its MarshalText and UnmarshalText. The directive decides, also in other packages and before the methods exist.
//   - A tool with workflow= has onlost=restart, whatever its service says, because another server can wait for
//     the workflow as well. In a package with such a tool, the function that describes an input is
//     exported, unless only the client's half is generated.
//   - If hosts or the providers of their models refuse something in a tool, a note has the way out. With
//     Flags.Portable it is an error. See docs/reference/portability.md.
//   - A declaration behind a build constraint produces a generated file behind the same constraint.
//   - The generator reads only the first line of generated files, which records their flags. It uses these flags only
//     with Config.Own, so otherwise a run does not depend on earlier ones. A tool's types cannot use a generated
//     identifier.
//
// With Flags.Tools, the input is a server's list of tools. The file then has a typed client, and a function that binds
// an implementation to the tools. The list is the output of [RecordTools], the result of tools/list, its array of
// tools, the JSON-RPC response, a recorded session, or several pages, in one array or one after another.
//
// A generated server lists the tools as the list has them. If the runtime cannot offer one of the
// tools, the server's half is left out with a note; with ServerOnly that is an error.
//
// The names of methods leave out a prefix that all of at least three tools have, unless it is a verb.
// A schema becomes a type by these rules:
//   - The input and output of a tool are structs named after its method. Types inside them are
//     named after their property, or after their key if they are under $defs. Equal types become
//     one. If different types want the same name, each is named after the type that contains it
//     too.
//   - An optional property is omitted if it is zero. If zero is a valid value and not the default,
//     the field is a pointer. A slice or map is omitted if it is nil.
//   - nil stands for null. A property that may be null or missing is omitted if it is nil.
//   - An enum of strings is a type with constants. Other enums and bounds become comments.
//   - date-time is time.Time. An integer is int64 unless its format or bounds need another type. A
//     number is float64. Other formats are strings.
//   - allOf is merged. A union of objects is one struct with the properties of all of them; a
//     property is required if all require it. A union of strings, numbers or lists is the type that
//     holds all of them.
//   - If no Go type holds all valid values and few others, the type is json.RawMessage and a
//     comment gives the reason. In an input, a loose alternative does not count, and a comment
//     names it: any string beside a boolean, a list or an object, and any value beside a type.
//   - Additional properties are kept in AdditionalProperties if the schema mentions them, and are
//     ignored otherwise.
//   - A tool without an output schema returns its *mcptask.Result.
//   - Start and Resume are generated unless the tool is never a task by the list. In a list of
//     2025-11-25, that holds for a tool whose task support is not stated.
package generator

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/declaration"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/emit"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// OutputName is the default name of the generated file in each package. The flag Out overrides it.
const OutputName = commandline.OutputName

// Config selects the packages and the code that is generated for them. The zero value selects the
// package in the current directory.
type Config struct {
	Dir      string   // the working directory; empty means the process's own
	Patterns []string // packages in the syntax of go list; empty means the package in Dir
	// Flags select the code to generate. Their paths are relative to Dir. With Flags.Tools, a list of tools is read
	// instead of packages.
	commandline.Flags
	// Own takes the flags from each package: from its //go:generate lines, or else from the first lines of its
	// generated files. Such lines may also name lists of tools, and references to write with mcptaskgen docs. Of Flags,
	// only Tags and Portable are used: Tags for files that have no tags of their own, Portable for all.
	Own bool
	// Removed accepts packages that declare nothing, and directories without a package. [Output.Breaking] reports what
	// they declared before.
	Removed bool
	// Step, if set, receives the duration of each step.
	Step func(name string, took time.Duration)

	// revise, if set, returns other flags for a file that is generated from declarations.
	revise func(Command) commandline.Flags
}

// Generate reads the packages and returns their generated files. It writes nothing.
//
// The result depends on cfg and on these inputs: the packages and their dependencies, the comments of these
// dependencies' types, the first lines of generated files, and the files that flags and directives name. Packages are
// found by the go command with its environment. With cfg.Own, //go:generate lines may also refer to environment
// variables.
//
// Its error lists every mistake of every package. Each has the form path/file.go:12:3: message,
// followed by the source line, a caret and a hint. The rest of a package needs to parse, but not
// to compile, as long as the declarations and the types they use do.
//
// Generate is safe for concurrent use.
func Generate(ctx context.Context, cfg Config) (Output, error) {
	_, out, err := generate(ctx, cfg)
	return out, err
}

// generate is like [Generate] and also returns the run, which has the declarations.
func generate(ctx context.Context, cfg Config) (*generation, Output, error) {
	g, err := newGeneration(cfg)
	if err != nil {
		return nil, Output{}, err
	}
	if cfg.ReadsTools() {
		g.generateList(Command{Dir: g.dir, Flags: cfg.Flags})
	} else if err := g.readPackages(ctx); err != nil {
		return nil, Output{}, err
	}
	out, err := g.finish()
	return g, out, err
}

type generation struct {
	cfg       Config
	dir       string // the working directory, absolute
	problems  diag.List
	errs      []error // errors without a place in a source
	protocols map[string]emit.Protocol
	read      map[readKey]*model.Package // nil for packages that declare nothing
	retagged  map[string][]Command       // commands for which packages are loaded again, by build tags

	files    map[string][]byte // by path
	commands map[string]Command
	models   []*model.Package // one for each package, sorted by import path in the end
	notes    []string
	nothing  error    // says that the packages declare nothing
	stays    []string // generated files that may be left over unless this run writes them
}

type readKey struct {
	pkg   *load.Package
	fixed string // the identifiers that every generated file declares

	serverOnly bool
}

func newGeneration(cfg Config) (*generation, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	g := &generation{
		cfg: cfg, dir: dir,
		protocols: map[string]emit.Protocol{}, read: map[readKey]*model.Package{}, retagged: map[string][]Command{},
		files: map[string][]byte{}, commands: map[string]Command{},
	}
	if err := cfg.Check(cfg.Patterns); err != nil || cfg.ReadsTools() {
		return g, err
	}
	if err := checkOutputName(cfg.Output()); err != nil {
		return nil, err
	}
	_, err = g.protocolFor(Command{Dir: dir, Flags: cfg.Flags})
	return g, err
}

func (g *generation) readPackages(ctx context.Context) error {
	patterns := g.patterns()
	existing := patterns
	if g.cfg.Removed {
		existing = slices.DeleteFunc(slices.Clone(patterns), g.isRemoved)
	}
	var fset *token.FileSet
	var packages []*load.Package
	if len(existing) > 0 {
		var err error
		fset, packages, err = g.load(ctx, existing, g.cfg.Tags)
		if err != nil && !(g.cfg.Removed && errors.Is(err, load.ErrNoPackages)) {
			return err
		}
	}
	generated := g.startStep("generate")
	for _, pkg := range packages {
		g.addPackage(ctx, fset, pkg)
	}
	generated()
	g.generateRetagged(ctx)
	if len(g.files) == 0 && len(g.stays) == 0 && g.problems.Len() == 0 && len(g.errs) == 0 {
		g.nothing = newNothingError(patterns, packages)
	}
	if g.cfg.Removed {
		return nil
	}
	return g.nothing
}

// isRemoved reports whether a pattern names a directory that is gone, or that has no Go files.
func (g *generation) isRemoved(pattern string) bool {
	dir, below := strings.CutSuffix(filepath.ToSlash(pattern), "/...")
	if dir = filepath.FromSlash(g.patternDir(dir)); dir == "" || filepath.Ext(pattern) == ".go" {
		return false // an import path, or a file
	}
	if below {
		_, err := os.Stat(dir)
		return errors.Is(err, fs.ErrNotExist)
	}
	sources, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.go"))
	return err == nil && len(sources) == 0
}

func (g *generation) load(ctx context.Context, patterns []string, tags string) (*token.FileSet, []*load.Package, error) {
	defer g.startStep("load")()
	return load.Load(ctx, load.Config{Dir: g.dir, Patterns: patterns, Tags: tags})
}

func (g *generation) startStep(name string) (end func()) {
	if g.cfg.Step == nil {
		return func() {}
	}
	begin := time.Now()
	return func() { g.cfg.Step(name, time.Since(begin)) }
}

// addPackage generates the files of a package. It puts off those that need other build tags.
func (g *generation) addPackage(ctx context.Context, fset *token.FileSet, pkg *load.Package) {
	commands := []Command{{Dir: pkg.Dir, Flags: g.cfg.Flags.Relative(g.dir, pkg.Dir)}}
	if g.cfg.Own {
		commands = g.findCommands(fset, pkg)
	}
	if g.cfg.Out != "" || g.cfg.Own && isOfFiles(pkg) {
		g.checkOtherLines(fset, pkg, commands[0])
	}
	for _, c := range commands {
		c.module = moduleDir(pkg)
		switch {
		case c.ReadsTools():
			g.generateList(c)
		case c.Tags != "" && c.Tags != g.cfg.Tags:
			g.retagged[c.Tags] = append(g.retagged[c.Tags], c)
		default:
			g.generateFile(ctx, fset, pkg, c)
		}
	}
	for _, f := range pkg.Generated {
		// The list of a file with a client may be elsewhere.
		if !f.Header.Flags.ReadsTools() && !declaresElsewhere(pkg) {
			g.stays = append(g.stays, f.Path)
		}
	}
}

// checkOtherLines reports the lines of a package that write its declarations into another file than a
// command does.
func (g *generation) checkOtherLines(fset *token.FileSet, pkg *load.Package, c Command) {
	if !slices.ContainsFunc(pkg.Generated, func(f load.GeneratedFile) bool { return f.Path != c.path() }) {
		return // so that a line is not read for nothing
	}
	for _, line := range g.findLines(fset, pkg) {
		if line.docs == nil && !line.ReadsTools() && line.Tags == c.Tags && line.path() != c.path() && pkg.FindGenerated(line.path()) != nil {
			g.problems.Add(line.Line, fmt.Sprintf("this line writes %s, and %s would declare the same", filepath.Base(line.path()), filepath.Base(c.path())),
				"change --out here too, or run mcptaskgen without flags")
		}
	}
}

// generateRetagged generates the files that need build tags of their own.
func (g *generation) generateRetagged(ctx context.Context) {
	for _, tags := range slices.Sorted(maps.Keys(g.retagged)) {
		commands := g.retagged[tags]
		var patterns []string
		for _, c := range commands {
			if pattern := shownDirectory(g.dir, c.Dir); !slices.Contains(patterns, pattern) {
				patterns = append(patterns, pattern)
			}
		}
		fset, packages, err := g.load(ctx, patterns, tags)
		if err != nil {
			g.errs = append(g.errs, err)
			continue
		}
		generated := g.startStep("generate")
		for _, pkg := range packages {
			for _, c := range commands {
				if c.Dir == pkg.Dir {
					g.generateFile(ctx, fset, pkg, c)
				}
			}
		}
		generated()
	}
}

// generateFile generates one file from the declarations of a package.
func (g *generation) generateFile(ctx context.Context, fset *token.FileSet, pkg *load.Package, c Command) {
	if c.docs != nil {
		g.generateDocs(ctx, fset, pkg, c)
		return
	}
	if g.cfg.revise != nil {
		c.Flags = g.cfg.revise(c)
	}
	protocol, err := g.protocolFor(c)
	if err := cmp.Or(err, checkOutputName(c.Output())); err != nil {
		g.fail(c, err)
		return
	}
	m := g.readDeclarations(fset, pkg, protocol, c.ServerOnly)
	if m == nil {
		if c.mustDeclare && g.problems.Len() == 0 {
			g.fail(c, newNothingError([]string{shownDirectory(g.dir, c.Dir)}, []*load.Package{pkg}))
		}
		return
	}
	g.reportRefused(m, c)
	if g.problems.Len() > 0 {
		return // nothing is written, and a declaration with mistakes is not complete
	}
	path := filepath.Join(pkg.Dir, c.Output())
	if _, err := os.Stat(path); err == nil && pkg.FindGenerated(path) == nil {
		g.problems.Add(token.Position{Filename: path, Line: 1, Column: 1}, "this file was not written by mcptaskgen",
			"move it, the generated file needs its name, or choose another name with --out")
		return
	}
	if g.cfg.Own && c.Tags == "" && dependsOn(m.Constraint, g.cfg.Tags) {
		c.Tags = g.cfg.Tags
	}
	rendered := *m
	rendered.Side, rendered.Header = sideOf(c.Flags), c.Header()
	content, err := emit.File(&rendered, protocol)
	if err != nil {
		g.fail(c, err)
		return
	}
	for written, o := range g.commands {
		if o.docs == nil && !o.ReadsTools() && o.Tags == c.Tags && filepath.Dir(written) == pkg.Dir && written != path {
			g.fail(c, fmt.Errorf("%s and %s would declare the same; remove one", filepath.Base(written), filepath.Base(path)))
		}
	}
	g.addFile(path, content, c)
	g.models = append(g.models, m)
}

// addFile adds a generated file. If both a line and a header have its flags, the line wins.
func (g *generation) addFile(path string, content []byte, c Command) {
	if o, ok := g.commands[path]; ok {
		switch byLine := c.Line.IsValid(); {
		case !byLine && o.Line.IsValid():
			return
		case byLine == o.Line.IsValid() && !bytes.Equal(content, g.files[path]):
			g.fail(c, fmt.Errorf("%s:%d writes %s too; give one of the two another name with --out",
				diag.Relative(g.dir, o.at.Filename), o.at.Line, diag.Relative(g.dir, path)))
		}
	}
	g.files[path], g.commands[path] = content, c
}

// readDeclarations reads the declarations of a package once for all its files. It returns nil if the
// package declares nothing.
func (g *generation) readDeclarations(fset *token.FileSet, pkg *load.Package, protocol emit.Protocol, serverOnly bool) *model.Package {
	key := readKey{pkg, fmt.Sprint(protocol.Names()), serverOnly}
	m, ok := g.read[key]
	if !ok {
		m = declaration.Read(fset, pkg, protocol.Names(), serverOnly, &g.problems)
		g.read[key] = m
	}
	return m
}

func (g *generation) fail(c Command, err error) {
	var problems *diag.Error
	switch {
	case errors.As(err, &problems) || c.at.Filename == "":
		g.errs = append(g.errs, err)
	case strings.Contains(err.Error(), "\n"):
		g.errs = append(g.errs, fmt.Errorf("%s:%d: %w", diag.Relative(g.dir, c.at.Filename), c.at.Line, err))
	default:
		g.problems.Add(c.at, err.Error(), "")
	}
}

// finish returns the generated files, or all errors.
func (g *generation) finish() (Output, error) {
	if err := diag.Join(append([]error{g.problems.Err(g.dir)}, g.errs...)...); err != nil {
		return Output{}, err
	}
	out := newOutput(g.dir, g.files, g.commands)
	out.Notes, out.own, out.run = append(g.notes, g.problems.Notes(g.dir)...), g.cfg.Own, g
	slices.Sort(g.stays)
	for _, path := range slices.Compact(g.stays) {
		if g.files[path] == nil {
			out.LeftOver = append(out.LeftOver, Difference{
				Path: diag.Relative(g.dir, path), Reason: "is left over, because nothing produces it any more", Remedy: "remove it",
			})
		}
	}
	slices.SortStableFunc(g.models, func(a, b *model.Package) int { return strings.Compare(a.Path, b.Path) })
	g.models = slices.CompactFunc(g.models, func(a, b *model.Package) bool { return a.Dir == b.Dir })
	return out, nil
}

// newNothingError reports that the packages declare nothing and that no generated files are left over.
func newNothingError(patterns []string, packages []*load.Package) error {
	hint := "put the directive into the doc comment of an interface, or begin with mcptaskgen init"
	inTests := ""
	for _, p := range packages {
		inTests = cmp.Or(inTests, findTestDirectives(p.Dir))
	}
	switch {
	case slices.ContainsFunc(packages, declaresElsewhere):
		hint = "files that build constraints leave out have directives: name build tags with --tags"
	case inTests != "":
		hint = "the directives are in " + inTests + ", and test files are not read: move the declarations into a file whose name does not end in _test.go"
	case slices.ContainsFunc(packages, func(p *load.Package) bool {
		return slices.ContainsFunc(p.Generated, func(f load.GeneratedFile) bool { return f.Header.Flags.ReadsTools() })
	}):
		hint = "a client of a list of tools is generated with --tools, or by its own flags if none are given"
	}
	return fmt.Errorf("no //mcptask:service in %s; %s", strings.Join(patterns, " "), hint)
}

// findTestDirectives returns the name of a test file with directives, or "" if there is none.
func findTestDirectives(dir string) string {
	tests, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*_test.go"))
	if err != nil || dir == "" {
		return ""
	}
	for _, path := range tests {
		if src, err := os.ReadFile(path); err == nil && strings.Contains(string(src), "\n//mcptask:service") {
			return filepath.Base(path)
		}
	}
	return ""
}

// declaresElsewhere reports whether a file that the build tags exclude has declarations. Generated
// files then belong to these declarations and are not left over.
func declaresElsewhere(pkg *load.Package) bool {
	for _, name := range pkg.IgnoredFiles {
		if pkg.FindGenerated(name) != nil || filepath.Ext(name) != ".go" {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil || strings.Contains(string(src), "//mcptask:") {
			return true // keep the generated files if a source cannot be read
		}
	}
	return false
}
