package generator

import (
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

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/upgrade"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// UpgradeConfig selects the packages and the revisions.
type UpgradeConfig struct {
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
	Output
	// Report says in Markdown what changes for the tools and what to do.
	Report string
}

// PlanUpgrade generates packages for other revisions of the protocol, with the flags of their lines for
// go generate or of the first lines of their generated files. It writes nothing.
//
// Flags that name revisions, or schema files of revisions, name the new ones afterwards, in the line
// too. Flags that name none stay unchanged and still mean all released revisions. Packages whose files
// do not change are not in the report. Errors are those of [Generate].
func PlanUpgrade(ctx context.Context, cfg UpgradeConfig) (Upgrade, error) {
	if len(cfg.Revisions) == 0 {
		return Upgrade{}, fmt.Errorf("name the revision to upgrade to with --revision; known revisions are %s", strings.Join(schema.Revisions(), ", "))
	}
	wanted, err := findRevisions(cfg.Revisions)
	if err != nil {
		return Upgrade{}, err
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return Upgrade{}, err
	}
	u := upgrader{cfg: cfg, wanted: wanted, dir: dir, packages: map[string]*movedPackage{}, files: map[string][]byte{}}
	g, out, err := generate(ctx, Config{
		Dir: dir, Patterns: cfg.Patterns, Flags: commandline.Flags{Tags: cfg.Tags}, Own: true,
		revise: u.revise,
	})
	if err != nil {
		return Upgrade{}, err
	}
	if len(g.models) == 0 {
		return Upgrade{}, errors.New("no //mcptask:service in the packages; there is nothing to upgrade")
	}
	for _, m := range g.models {
		u.packageIn(m.Dir).Model = m
	}
	for _, name := range slices.Sorted(maps.Keys(out.Files)) {
		c := out.Commands[name]
		if c.docs != nil || c.ReadsTools() {
			continue
		}
		if err := u.addFile(diag.Absolute(dir, filepath.FromSlash(name)), out.Files[name], c); err != nil {
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
	cfg      UpgradeConfig
	wanted   []string
	dir      string
	packages map[string]*movedPackage // by directory
	files    map[string][]byte        // the new content of files by path
}

// movedPackage is a package that moves to other revisions.
type movedPackage struct {
	upgrade.Package

	dir      string           // absolute
	module   string           // the directory of its module
	lines    []token.Position // its //go:generate lines that name revisions
	lineless bool             // its flags name revisions, and no line of its own does
	changes  bool             // a file in its directory changes
}

func (u *upgrader) packageIn(dir string) *movedPackage {
	if u.packages[dir] == nil {
		u.packages[dir] = &movedPackage{
			Package: upgrade.Package{Shown: diag.Relative(u.dir, dir), Gone: map[string][]token.Position{}}, dir: dir,
		}
	}
	return u.packages[dir]
}

// revise returns the flags with the wanted revisions, and notes what people must do so that they stay.
func (u *upgrader) revise(c Command) commandline.Flags {
	pkg, flags, wanted := u.packageIn(c.Dir), c.Flags, strings.Join(u.wanted, ",")
	pkg.module = c.module
	place := fmt.Sprintf("`%s:%d`", diag.Relative(u.dir, c.at.Filename), c.at.Line)
	namesNone := len(flags.Revisions) == 0 && len(flags.Schemas) == 0
	switch {
	case namesNone && !u.wantsUnreleased():
		return flags
	case !c.Line.IsValid():
		pkg.lineless = true
	case namesNone:
		pkg.Notes = append(pkg.Notes, fmt.Sprintf("Add `--revision %s` to %s: the line names no revision, so it means only the released ones.", wanted, place))
	default:
		pkg.lines = append(pkg.lines, c.Line)
	}
	for _, file := range c.Schemas {
		pkg.Notes = append(pkg.Notes, fmt.Sprintf("`--schema %s` is gone from %s: `--revision %s` takes its place. Name the revision of that file too if it is to stay.", file, place, wanted))
	}
	flags.Schemas, flags.Revisions = nil, u.wanted
	return flags
}

// wantsUnreleased reports whether a wanted revision is generated only if it is named.
func (u *upgrader) wantsUnreleased() bool {
	return slices.ContainsFunc(u.wanted, func(revision string) bool { return !slices.Contains(schema.ReleasedRevisions(), revision) })
}

// addFile adds a generated file, and notes what its package was generated for and which names it no
// longer has.
func (u *upgrader) addFile(path string, content []byte, c Command) error {
	u.files[path] = content
	old, err := output.Read("", path)
	if err != nil {
		return err
	}
	return u.findUses(c.Dir, u.packageIn(c.Dir).AddFile(old, content, c.Flags))
}

// findUses finds hand-written code that uses names that are gone.
func (u *upgrader) findUses(dir string, gone []string) error {
	if len(gone) == 0 {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.go"))
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range names {
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
	maps.Copy(u.packageIn(dir).Gone, upgrade.FindNames(fset, files, gone))
	return nil
}

// rewriteLines replaces the revisions in go:generate lines that name some.
func (u *upgrader) rewriteLines() error {
	for _, pkg := range u.packages {
		for _, at := range pkg.lines {
			src := u.files[at.Filename] // another of its lines was rewritten
			if src == nil {
				var err error
				if src, err = os.ReadFile(at.Filename); err != nil {
					return err
				}
			}
			text, ok := upgrade.RewriteLine(string(src), at.Line, u.wanted)
			if !ok {
				return fmt.Errorf("%s:%d: the flag --revision or --schema is within quotes; write --revision %s here by hand",
					diag.Relative(u.dir, at.Filename), at.Line, strings.Join(u.wanted, ","))
			}
			u.files[at.Filename] = []byte(text)
		}
	}
	return nil
}

// buildUpgrade compares the files with those on disk and renders the report.
func (u *upgrader) buildUpgrade() (Upgrade, error) {
	out := newOutput(u.dir, u.files, nil)
	for name := range out.Files {
		path := diag.Absolute(u.dir, filepath.FromSlash(name))
		out.stay[name] = bound{u.packageIn(filepath.Dir(path)).module, token.Position{}}
	}
	names, err := output.Files(out.Files).Diff(out.Dir)
	if err != nil {
		return Upgrade{}, err
	}
	var changed []upgrade.File
	for _, name := range names {
		old, err := output.Read(out.Dir, name)
		if err != nil {
			return Upgrade{}, err
		}
		changed = append(changed, upgrade.CompareFile(name, old, out.Files[name]))
		u.packageIn(filepath.Dir(diag.Absolute(u.dir, filepath.FromSlash(name)))).changes = true
	}
	var packages []upgrade.Package
	isAbove := func(pkg *movedPackage, dir string) bool {
		rel, err := filepath.Rel(pkg.dir, dir)
		return err == nil && filepath.IsLocal(rel) && len(pkg.lines) > 0
	}
	for _, dir := range slices.Sorted(maps.Keys(u.packages)) {
		pkg := u.packages[dir]
		if pkg.lineless && !slices.ContainsFunc(slices.Collect(maps.Values(u.packages)), func(other *movedPackage) bool { return isAbove(other, dir) }) {
			pkg.Notes = append(pkg.Notes, fmt.Sprintf("No `//go:generate` line for `%s` was found: pass `--revision %s` when you run mcptaskgen for it.", pkg.Shown, strings.Join(u.wanted, ",")))
		}
		if pkg.Model != nil && (pkg.changes || len(pkg.Notes) > 0) {
			packages = append(packages, pkg.Package)
		}
	}
	text, err := upgrade.Report(packages, changed, u.wanted, u.cfg.Check)
	return Upgrade{out, text}, err
}
