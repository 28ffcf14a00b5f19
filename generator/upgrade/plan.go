// Package upgrade moves packages with declared tools to other revisions of the protocol, and says what
// that means for them.
package upgrade

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/emit"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// Config says which packages are to be moved to which revisions.
type Config struct {
	Dir      string   // the working directory; empty for the process's own
	Patterns []string // packages as go list takes them; none is the one in Dir
	Tags     string   // build tags, comma-separated
	// Revisions are those that the packages are to be generated for; at least one.
	Revisions []string
	// Check says that nothing is going to be written: the report is put so.
	Check bool
}

// Upgrade is what moves packages to other revisions.
type Upgrade struct {
	// Output has the generated files, and the sources whose go:generate lines name other revisions now.
	generator.Output
	// Report says as Markdown what changes for the tools and what is to be done.
	Report string
}

// Plan generates packages for other revisions of the protocol, with the flags that their lines for go
// generate have. It writes nothing. A line that names revisions names the new ones; one that names none
// stays as it is, and makes all released revisions. A package without a line is generated in the halves
// that its generated file has. Its errors are those of [generator.Generate].
func Plan(ctx context.Context, cfg Config) (Upgrade, error) {
	if len(cfg.Revisions) == 0 {
		return Upgrade{}, fmt.Errorf("say which revision to upgrade to, with --revision; the known ones are %s", strings.Join(schema.Revisions(), ", "))
	}
	wanted, err := generator.Revisions(cfg.Revisions)
	if err != nil {
		return Upgrade{}, err
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return Upgrade{}, err
	}
	u := upgrader{cfg: cfg, wanted: wanted, dir: dir, files: map[string][]byte{}, found: commandline.Lines{Dir: dir}, lines: map[string][]int{}}
	models, err := u.declared(ctx)
	if err != nil {
		return Upgrade{}, err
	}
	if len(models) == 0 {
		return Upgrade{}, errors.New("no //mcptask:service in the packages; there is nothing to upgrade")
	}
	for _, m := range models {
		if err := u.prepare(m); err != nil {
			return Upgrade{}, err
		}
	}
	if err := u.generate(ctx); err != nil {
		return Upgrade{}, err
	}
	if err := u.rewriteLines(); err != nil {
		return Upgrade{}, err
	}
	return u.finish()
}

// upgrader gathers what an upgrade changes.
type upgrader struct {
	cfg      Config
	wanted   []string
	dir      string
	packages []movedPackage
	runs     []run
	files    map[string][]byte // the new content of files, by their path
	found    commandline.Lines
	lines    map[string][]int // the numbers of the go:generate lines to rewrite, by their file
}

// run is one run of the generator, for the packages that have the same flags.
type run struct {
	cfg      generator.Config
	packages []int // indices into upgrader.packages
}

// declared reads what the packages declare, each with the build tags that its lines name.
func (u *upgrader) declared(ctx context.Context) ([]*model.Package, error) {
	patterns := map[string][]string{} // by the tags
	for _, folder := range load.Folders(ctx, load.Config{Dir: u.dir, Patterns: u.cfg.Patterns, Tags: u.cfg.Tags}) {
		var lines []*commandline.Line
		if folder.Dir != "" {
			var err error
			if lines, err = u.found.For(folder.Dir, folder.Path); err != nil {
				return nil, err
			}
		}
		if len(lines) == 0 {
			patterns[u.cfg.Tags] = append(patterns[u.cfg.Tags], folder.Pattern)
		}
		for _, line := range lines {
			tags := cmp.Or(line.Config.Tags, u.cfg.Tags)
			patterns[tags] = append(patterns[tags], folder.Pattern)
		}
	}
	if _, asked := patterns[u.cfg.Tags]; len(patterns) == 0 || len(patterns) == 1 && asked {
		patterns = map[string][]string{u.cfg.Tags: u.cfg.Patterns} // which are shorter than what they match
	}
	var models []*model.Package
	var nothing error
	var errs []error
	for _, tags := range slices.Sorted(maps.Keys(patterns)) {
		found, err := generator.Declared(ctx, generator.Config{Dir: u.dir, Patterns: patterns[tags], Tags: tags})
		if errors.Is(err, generator.ErrNothing) {
			nothing, err = err, nil // which is no mistake where others declare something
		}
		errs = append(errs, err)
		for _, m := range found {
			if !slices.ContainsFunc(models, func(other *model.Package) bool { return other.Dir == m.Dir }) {
				models = append(models, m)
			}
		}
	}
	if len(models) == 0 {
		errs = append(errs, nothing)
	}
	slices.SortFunc(models, func(a, b *model.Package) int { return strings.Compare(a.Path, b.Path) })
	return models, diag.Join(errs...)
}

// prepare reads how a package is generated, and what from.
func (u *upgrader) prepare(m *model.Package) error {
	lines, err := u.found.For(m.Dir, m.Path)
	if err != nil {
		return err
	}
	pkg := movedPackage{model: m, shown: diag.Relative(u.dir, m.Dir), gone: map[string][]token.Position{}}
	index := len(u.packages)
	for _, line := range lines {
		cfg := line.Config
		cfg.Schemas, cfg.Tags = nil, cmp.Or(cfg.Tags, u.cfg.Tags)
		before, _, err := u.emitted(m, cfg)
		if err != nil {
			return err
		}
		place := fmt.Sprintf("%s:%d", diag.Relative(u.dir, line.File), line.Number)
		switch {
		case len(cfg.Revisions) > 0:
			cfg.Revisions = u.wanted
			u.lines[line.File] = append(u.lines[line.File], line.Number)
		case !u.released():
			cfg.Revisions = u.wanted
			pkg.notes = append(pkg.notes, fmt.Sprintf("Add `--revision %s` to `%s`, which names no revision and so means the released ones alone.", strings.Join(u.wanted, ","), place))
		}
		if len(line.Config.Schemas) > 0 {
			pkg.notes = append(pkg.notes, fmt.Sprintf("`%s` takes a revision from a file with `--schema`: see whether it still should.", place))
		}
		u.add(index, cfg, m)
		pkg.merge(before, cfg)
	}
	if len(lines) == 0 {
		cfg := generator.Config{Output: generator.OutputName, Tags: u.cfg.Tags}
		before, halves, err := u.emitted(m, cfg)
		if err != nil {
			return err
		}
		cfg.ServerOnly, cfg.ClientOnly = halves.serves && !halves.calls, halves.calls && !halves.serves
		if !u.released() || len(before) > 0 && !slices.Equal(before, schema.ReleasedRevisions()) {
			cfg.Revisions = u.wanted
			pkg.notes = append(pkg.notes, fmt.Sprintf("No `//go:generate` line for `%s` was found: give `--revision %s` where mcptaskgen is run for it.", pkg.shown, strings.Join(u.wanted, ",")))
		}
		u.add(index, cfg, m)
		pkg.merge(before, cfg)
	}
	u.packages = append(u.packages, pkg)
	return nil
}

// released tells whether what is wanted is generated where no revision is named.
func (u *upgrader) released() bool {
	return !slices.ContainsFunc(u.wanted, func(revision string) bool { return !slices.Contains(schema.ReleasedRevisions(), revision) })
}

// merge adds to what a package was and is generated for.
func (p *movedPackage) merge(before []string, cfg generator.Config) {
	after := cfg.Revisions
	if len(after) == 0 {
		after = schema.ReleasedRevisions()
	}
	union := func(a, b []string) []string { // of known ones, the oldest first
		return slices.DeleteFunc(schema.Revisions(), func(revision string) bool {
			return !slices.Contains(a, revision) && !slices.Contains(b, revision)
		})
	}
	p.before, p.after = union(p.before, before), union(p.after, after)
}

// emitted reads the generated file of a package; before is nil where there is none. A file for clients
// alone names no revision: it was generated for those that its line names, or else for the released ones.
func (u *upgrader) emitted(m *model.Package, cfg generator.Config) (before []string, e emitted, err error) {
	src, err := output.Read(m.Dir, cfg.Output)
	if err != nil || src == nil || !load.IsGenerated(src, emit.Header) {
		return nil, e, err
	}
	e = readEmitted(src)
	switch {
	case e.serves:
		return e.revisions, e, nil
	case len(cfg.Revisions) > 0:
		return cfg.Revisions, e, nil
	}
	return schema.ReleasedRevisions(), e, nil
}

// add puts a package to those that are generated with the same flags.
func (u *upgrader) add(index int, cfg generator.Config, m *model.Package) {
	i := slices.IndexFunc(u.runs, func(r run) bool {
		return r.cfg.Output == cfg.Output && r.cfg.Tags == cfg.Tags && r.cfg.ServerOnly == cfg.ServerOnly &&
			r.cfg.ClientOnly == cfg.ClientOnly && slices.Equal(r.cfg.Revisions, cfg.Revisions)
	})
	if i < 0 {
		i = len(u.runs)
		cfg.Dir = u.dir
		u.runs = append(u.runs, run{cfg: cfg})
	}
	u.runs[i].cfg.Patterns = append(u.runs[i].cfg.Patterns, m.Path)
	u.runs[i].packages = append(u.runs[i].packages, index)
}

// generate makes the new files, and finds the names that they no longer have.
func (u *upgrader) generate(ctx context.Context) error {
	for _, r := range u.runs {
		out, err := generator.Generate(ctx, r.cfg)
		if err != nil {
			return err
		}
		for name, content := range out.Files {
			u.files[filepath.Join(out.Root, filepath.FromSlash(name))] = content
		}
		for _, i := range r.packages {
			pkg := &u.packages[i]
			_, was, err := u.emitted(pkg.model, r.cfg)
			if err != nil {
				return err
			}
			is := readEmitted(u.files[filepath.Join(pkg.model.Dir, r.cfg.Output)])
			gone := slices.DeleteFunc(was.names, func(name string) bool { return slices.Contains(is.names, name) })
			if err := u.findUses(pkg, gone); err != nil {
				return err
			}
		}
	}
	return nil
}

// findUses notes where the files that people wrote use names that are gone.
func (u *upgrader) findUses(pkg *movedPackage, gone []string) error {
	if len(gone) == 0 {
		return nil
	}
	entries, err := os.ReadDir(pkg.model.Dir)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, entry := range entries {
		path := filepath.Join(pkg.model.Dir, entry.Name())
		if filepath.Ext(path) != ".go" {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if load.IsGenerated(src, emit.Header) {
			continue
		}
		// A file that does not parse is read as far as it does.
		if file, _ := parser.ParseFile(fset, diag.Relative(u.dir, path), src, parser.SkipObjectResolution); file != nil {
			files = append(files, file)
		}
	}
	uses := findNames(fset, files, gone)
	for _, name := range gone {
		pkg.gone[name] = uses[name]
	}
	return nil
}

// rewriteLines names the new revisions in go:generate lines that name any.
func (u *upgrader) rewriteLines() error {
	for path, numbers := range u.lines {
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		u.files[path] = []byte(rewrite(string(src), numbers, u.wanted))
	}
	return nil
}

// finish makes the report of what has been gathered.
func (u *upgrader) finish() (Upgrade, error) {
	out := generator.NewOutput(u.dir, u.files, nil)
	names, err := out.Files.Diff(out.Root)
	if err != nil {
		return Upgrade{}, err
	}
	var changed []changedFile
	for _, name := range names {
		old, err := output.Read(out.Root, name)
		if err != nil {
			return Upgrade{}, err
		}
		file := changedFile{Shown: diag.Relative(u.dir, filepath.Join(out.Root, filepath.FromSlash(name)))}
		file.Added, file.Removed = countLines(diff.Diff("old", old, "new", out.Files[name]))
		changed = append(changed, file)
	}
	text, err := report(u.packages, changed, u.wanted, u.cfg.Check)
	return Upgrade{out, text}, err
}

// countLines counts the lines that a unified diff adds and removes.
func countLines(text []byte) (added, removed int) {
	inside := false
	for line := range bytes.Lines(text) {
		switch {
		case bytes.HasPrefix(line, []byte("@@")):
			inside = true
		case inside && line[0] == '+':
			added++
		case inside && line[0] == '-':
			removed++
		}
	}
	return added, removed
}
