// Package upgrade moves packages with declared tools to other revisions of the protocol and reports
// what changes for them.
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

// Config selects the packages and the revisions.
type Config struct {
	Dir      string   // the working directory; empty means the process's own
	Patterns []string // packages in the syntax of go list; empty means the package in Dir
	Tags     string   // build tags, comma-separated
	// Revisions are the revisions to generate for. At least one is required.
	Revisions []string
	// Check means that nothing will be written. It only affects the wording of the report.
	Check bool
}

// Upgrade holds the changed files and the report of an upgrade.
type Upgrade struct {
	// Output has the generated files, and the source files whose go:generate lines were changed.
	generator.Output
	// Report says in Markdown what changes for the tools and what to do.
	Report string
}

// Plan generates packages for other revisions of the protocol, with the flags of their go:generate
// lines. It writes nothing.
//
// A line that names revisions names the new ones afterwards. A line that names none stays unchanged
// and still means all released revisions. A package without a line is generated with the halves
// that its generated file has. Errors are those of [generator.Generate].
func Plan(ctx context.Context, cfg Config) (Upgrade, error) {
	if len(cfg.Revisions) == 0 {
		return Upgrade{}, fmt.Errorf("name the revision to upgrade to with --revision; known revisions are %s", strings.Join(schema.Revisions(), ", "))
	}
	wanted, err := generator.Revisions(cfg.Revisions)
	if err != nil {
		return Upgrade{}, err
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return Upgrade{}, err
	}
	u := upgrader{
		cfg: cfg, wanted: wanted, dir: dir,
		files: map[string][]byte{}, found: commandline.Lines{Dir: dir}, lines: map[string][]int{},
	}
	models, err := u.readModels(ctx)
	if err != nil {
		return Upgrade{}, err
	}
	if len(models) == 0 {
		return Upgrade{}, errors.New("no //mcptask:service in the packages; there is nothing to upgrade")
	}
	for _, m := range models {
		if err := u.preparePackage(m); err != nil {
			return Upgrade{}, err
		}
	}
	if err := u.generateFiles(ctx); err != nil {
		return Upgrade{}, err
	}
	if err := u.rewriteLines(); err != nil {
		return Upgrade{}, err
	}
	return u.buildUpgrade()
}

// upgrader collects the changes of an upgrade.
type upgrader struct {
	cfg      Config
	wanted   []string
	dir      string
	packages []movedPackage
	runs     []run
	files    map[string][]byte // the new content of files by path
	found    commandline.Lines
	lines    map[string][]int // the numbers of go:generate lines to rewrite, by file
}

// run is one run of the generator, for packages with the same flags.
type run struct {
	cfg      generator.Config
	packages []int // indices into upgrader.packages
}

// readModels reads the declarations of the packages, with the build tags that their lines name.
func (u *upgrader) readModels(ctx context.Context) ([]*model.Package, error) {
	patterns := map[string][]string{} // by build tags
	for _, directory := range load.Directories(ctx, load.Config{Dir: u.dir, Patterns: u.cfg.Patterns, Tags: u.cfg.Tags}) {
		var lines []*commandline.Line
		if directory.Dir != "" {
			var err error
			if lines, err = u.found.For(directory.Dir, directory.Path); err != nil {
				return nil, err
			}
		}
		if len(lines) == 0 {
			patterns[u.cfg.Tags] = append(patterns[u.cfg.Tags], directory.Pattern)
		}
		for _, line := range lines {
			tags := cmp.Or(line.Config.Tags, u.cfg.Tags)
			patterns[tags] = append(patterns[tags], directory.Pattern)
		}
	}
	if _, asked := patterns[u.cfg.Tags]; len(patterns) == 0 || len(patterns) == 1 && asked {
		patterns = map[string][]string{u.cfg.Tags: u.cfg.Patterns} // shorter than the packages they match
	}
	var models []*model.Package
	var nothing error
	var errs []error
	for _, tags := range slices.Sorted(maps.Keys(patterns)) {
		found, err := generator.Declared(ctx, generator.Config{Dir: u.dir, Patterns: patterns[tags], Tags: tags})
		if errors.Is(err, generator.ErrNothing) {
			nothing, err = err, nil // not a mistake if other packages declare something
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

// preparePackage decides how a package is generated, and notes what its current file was generated
// for.
func (u *upgrader) preparePackage(m *model.Package) error {
	lines, err := u.found.For(m.Dir, m.Path)
	if err != nil {
		return err
	}
	pkg := movedPackage{model: m, shown: diag.Relative(u.dir, m.Dir), gone: map[string][]token.Position{}}
	index := len(u.packages)
	for _, line := range lines {
		cfg := line.Config
		cfg.Schemas, cfg.Tags = nil, cmp.Or(cfg.Tags, u.cfg.Tags)
		before, _, err := u.readGeneratedFile(m, cfg)
		if err != nil {
			return err
		}
		place := fmt.Sprintf("%s:%d", diag.Relative(u.dir, line.File), line.Number)
		switch {
		case len(cfg.Revisions) > 0:
			cfg.Revisions = u.wanted
			u.lines[line.File] = append(u.lines[line.File], line.Number)
		case !u.wantsOnlyReleased():
			cfg.Revisions = u.wanted
			pkg.notes = append(pkg.notes, fmt.Sprintf("Add `--revision %s` to `%s`: the line names no revision, so it means only the released ones.", strings.Join(u.wanted, ","), place))
		}
		if len(line.Config.Schemas) > 0 {
			pkg.notes = append(pkg.notes, fmt.Sprintf("`%s` takes a revision from a file with `--schema`: check whether it is still needed.", place))
		}
		u.addToRun(index, cfg, m)
		pkg.mergeRevisions(before, cfg)
	}
	if len(lines) == 0 {
		cfg := generator.Config{Output: generator.OutputName, Tags: u.cfg.Tags}
		before, halves, err := u.readGeneratedFile(m, cfg)
		if err != nil {
			return err
		}
		cfg.ServerOnly, cfg.ClientOnly = halves.serves && !halves.calls, halves.calls && !halves.serves
		if !u.wantsOnlyReleased() || len(before) > 0 && !slices.Equal(before, schema.ReleasedRevisions()) {
			cfg.Revisions = u.wanted
			pkg.notes = append(pkg.notes, fmt.Sprintf("No `//go:generate` line for `%s` was found: pass `--revision %s` when you run mcptaskgen for it.", pkg.shown, strings.Join(u.wanted, ",")))
		}
		u.addToRun(index, cfg, m)
		pkg.mergeRevisions(before, cfg)
	}
	u.packages = append(u.packages, pkg)
	return nil
}

// wantsOnlyReleased reports whether all wanted revisions are generated without --revision.
func (u *upgrader) wantsOnlyReleased() bool {
	return !slices.ContainsFunc(u.wanted, func(revision string) bool { return !slices.Contains(schema.ReleasedRevisions(), revision) })
}

// mergeRevisions adds to the revisions that a package was and will be generated for.
func (p *movedPackage) mergeRevisions(before []string, cfg generator.Config) {
	after := cfg.Revisions
	if len(after) == 0 {
		after = schema.ReleasedRevisions()
	}
	p.before, p.after = sortRevisions(append(p.before, before...)), sortRevisions(append(p.after, after...))
}

// readGeneratedFile reads the generated file of a package. before is nil if there is no such file.
// A file with only a client names no revisions: it was generated for those that its line names, or
// for the released ones.
func (u *upgrader) readGeneratedFile(m *model.Package, cfg generator.Config) (before []string, e generatedFile, err error) {
	src, err := output.Read(m.Dir, cfg.Output)
	if err != nil || src == nil || !load.IsGenerated(src, emit.Header) {
		return nil, e, err
	}
	e = parseGeneratedFile(src)
	switch {
	case e.serves:
		return e.revisions, e, nil
	case len(cfg.Revisions) > 0:
		return cfg.Revisions, e, nil
	}
	return schema.ReleasedRevisions(), e, nil
}

// addToRun adds a package to the run with the same flags.
func (u *upgrader) addToRun(index int, cfg generator.Config, m *model.Package) {
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

// generateFiles generates the new files and finds the names that they no longer have.
func (u *upgrader) generateFiles(ctx context.Context) error {
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
			_, was, err := u.readGeneratedFile(pkg.model, r.cfg)
			if err != nil {
				return err
			}
			is := parseGeneratedFile(u.files[filepath.Join(pkg.model.Dir, r.cfg.Output)])
			gone := slices.DeleteFunc(was.names, func(name string) bool { return slices.Contains(is.names, name) })
			if err := u.findUses(pkg, gone); err != nil {
				return err
			}
		}
	}
	return nil
}

// findUses finds hand-written code that uses names that are gone.
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
		// The parser returns what it could read of an invalid file.
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

// rewriteLines replaces the revisions in go:generate lines that name some.
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

// buildUpgrade compares the files with those on disk and renders the report.
func (u *upgrader) buildUpgrade() (Upgrade, error) {
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
	text, err := renderReport(u.packages, changed, u.wanted, u.cfg.Check)
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
