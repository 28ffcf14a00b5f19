// Package upgrade moves packages with declared tools to other revisions of the protocol and reports
// what changes for them.
package upgrade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
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
// lines or of the first lines of their generated files. It writes nothing.
//
// Flags that name revisions name the new ones afterwards, in the line too. Flags that name none stay
// unchanged and still mean all released revisions. Packages whose files do not change are not in the
// report. Errors are those of [generator.Generate].
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
	u := upgrader{cfg: cfg, wanted: wanted, dir: dir, packages: map[string]*movedPackage{}, files: map[string][]byte{}}
	out, models, err := generator.GenerateDeclared(ctx, generator.Config{
		Dir: dir, Patterns: cfg.Patterns, Flags: commandline.Flags{Tags: cfg.Tags}, Own: true,
		Revise: u.revise,
	})
	if err != nil {
		return Upgrade{}, err
	}
	if len(models) == 0 {
		return Upgrade{}, errors.New("no //mcptask:service in the packages; there is nothing to upgrade")
	}
	for _, m := range models {
		u.packageIn(m.Dir).model = m
	}
	for _, name := range slices.Sorted(maps.Keys(out.Files)) {
		if err := u.addFile(filepath.Join(out.Root, filepath.FromSlash(name)), out.Files[name], out.Commands[name]); err != nil {
			return Upgrade{}, err
		}
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
	packages map[string]*movedPackage // by directory
	files    map[string][]byte        // the new content of files by path
}

func (u *upgrader) packageIn(dir string) *movedPackage {
	if u.packages[dir] == nil {
		u.packages[dir] = &movedPackage{dir: dir, shown: diag.Relative(u.dir, dir), gone: map[string][]token.Position{}}
	}
	return u.packages[dir]
}

// revise returns the flags with the wanted revisions, and notes what people must do so that they stay.
func (u *upgrader) revise(c generator.Command) commandline.Flags {
	pkg, flags, wanted := u.packageIn(c.Dir), c.Flags, strings.Join(u.wanted, ",")
	place := fmt.Sprintf("%s:%d", diag.Relative(u.dir, c.Line.Filename), c.Line.Line)
	flags.Schemas = nil
	switch {
	case len(flags.Revisions) == 0 && !u.wantsUnreleased():
		return flags
	case !c.Line.IsValid():
		pkg.lineless = true
	case len(flags.Revisions) == 0:
		pkg.notes = append(pkg.notes, fmt.Sprintf("Add `--revision %s` to `%s`: the line names no revision, so it means only the released ones.", wanted, place))
	default:
		pkg.lines = append(pkg.lines, c.Line)
	}
	if len(c.Schemas) > 0 {
		pkg.notes = append(pkg.notes, fmt.Sprintf("`%s` takes a revision from a file with `--schema`: check whether it is still needed.", place))
	}
	flags.Revisions = u.wanted
	return flags
}

// wantsUnreleased reports whether a wanted revision is generated only if it is named.
func (u *upgrader) wantsUnreleased() bool {
	return slices.ContainsFunc(u.wanted, func(revision string) bool { return !slices.Contains(schema.ReleasedRevisions(), revision) })
}

// addFile adds a generated file, and notes what its package was generated for and which names it no
// longer has.
func (u *upgrader) addFile(path string, content []byte, c generator.Command) error {
	pkg := u.packages[c.Dir]
	if pkg == nil || pkg.model == nil || filepath.Ext(path) != ".go" || c.ReadsTools() {
		return nil // a list of tools, or a reference
	}
	u.files[path] = content
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	was, is := parseGeneratedFile(old), parseGeneratedFile(content)
	header, generated := commandline.FindHeader(old)
	if generated {
		pkg.before = sortRevisions(append(pkg.before, was.declaredRevisions(header.Flags)...))
	}
	pkg.after = sortRevisions(append(pkg.after, is.declaredRevisions(c.Flags)...))
	gone := slices.DeleteFunc(was.names, func(name string) bool { return slices.Contains(is.names, name) })
	return u.findUses(pkg, gone)
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
		if _, generated := commandline.FindHeader(src); generated {
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
	for _, pkg := range u.packages {
		for _, at := range pkg.lines {
			src, rewritten := u.files[at.Filename]
			if !rewritten {
				var err error
				if src, err = os.ReadFile(at.Filename); err != nil {
					return err
				}
			}
			u.files[at.Filename] = []byte(rewrite(string(src), at.Line, u.wanted))
		}
	}
	return nil
}

// buildUpgrade compares the files with those on disk and renders the report.
func (u *upgrader) buildUpgrade() (Upgrade, error) {
	out := generator.NewOutput(u.dir, u.files, nil)
	names, err := output.Files(out.Files).Diff(out.Root)
	if err != nil {
		return Upgrade{}, err
	}
	var changed []changedFile
	for _, name := range names {
		old, err := output.Read(out.Root, name)
		if err != nil {
			return Upgrade{}, err
		}
		path := filepath.Join(out.Root, filepath.FromSlash(name))
		file := changedFile{Shown: diag.Relative(u.dir, path)}
		file.Added, file.Removed = countLines(diff.Diff("old", old, "new", out.Files[name]))
		changed = append(changed, file)
		u.packageIn(filepath.Dir(path)).changes = true
	}
	var packages []movedPackage
	isAbove := func(pkg *movedPackage, dir string) bool {
		rel, err := filepath.Rel(pkg.dir, dir)
		return err == nil && filepath.IsLocal(rel) && len(pkg.lines) > 0
	}
	for _, dir := range slices.Sorted(maps.Keys(u.packages)) {
		pkg := u.packages[dir]
		if pkg.lineless && !slices.ContainsFunc(slices.Collect(maps.Values(u.packages)), func(other *movedPackage) bool { return isAbove(other, dir) }) {
			pkg.notes = append(pkg.notes, fmt.Sprintf("No `//go:generate` line for `%s` was found: pass `--revision %s` when you run mcptaskgen for it.", pkg.shown, strings.Join(u.wanted, ",")))
		}
		if pkg.model != nil && (pkg.changes || len(pkg.notes) > 0) {
			packages = append(packages, *pkg)
		}
	}
	text, err := renderReport(packages, changed, u.wanted, u.cfg.Check)
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
