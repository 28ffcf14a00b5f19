package generator

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
)

// Output holds generated files and their locations.
type Output struct {
	// Root is the directory that all paths are relative to: the deepest one that contains every
	// package and the working directory.
	Root string
	// Files holds the generated files by slash-separated path.
	Files map[string][]byte
	// Commands says how each of Files is generated.
	Commands map[string]Command
	// LeftOver lists files that have a generated file's header but that this run does not produce:
	// files of packages that no longer declare anything, and files with another name.
	LeftOver []string
	// Notes tells what the generator decided for the user, and which features of the run's schema
	// files generated code does not support. A note about a declaration is one line and begins with
	// its place, as in path/file.go:12:6: note: message.
	Notes []string

	dir string
	own bool // each package decided about its flags
}

// NewOutput returns an Output with the given files and left-over files, which are named by absolute
// path. dir is the absolute working directory.
func NewOutput(dir string, files map[string][]byte, leftOver []string) Output {
	out := Output{Root: dir, Files: map[string][]byte{}, Commands: map[string]Command{}, dir: dir}
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

// relativePath returns the path of a file of the output relative to the working directory.
func (o Output) relativePath(name string) string { return diag.Relative(o.dir, o.absolutePath(name)) }

// relativePaths returns paths relative to the working directory, sorted.
func (o Output) relativePaths(names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = o.relativePath(name)
	}
	slices.Sort(paths)
	return paths
}

// Difference is a file that Write would write or Prune would remove.
type Difference struct {
	Path   string // relative to the working directory
	Reason string // such as "is stale"
	Remedy string // what to do
}

// String says what is wrong with the file and what to do.
func (d Difference) String() string { return d.Path + " " + d.Reason + "; " + d.Remedy }

// Compare lists the files that are not up to date, sorted by path. A file whose lines end in CRLF, as
// Git may check it out, is compared as if they ended in LF.
func (o Output) Compare() ([]Difference, error) {
	stale, err := output.Files(o.Files).Diff(o.Root)
	if err != nil {
		return nil, err
	}
	var differences []Difference
	for _, name := range stale {
		reason, err := o.describeStale(name)
		if err != nil {
			return nil, err
		}
		remedy, c := "run the same command without --check", o.Commands[name]
		switch {
		case c.Line.IsValid():
			remedy = "run go generate " + o.shownDirectory(filepath.Dir(c.Line.Filename))
		case o.own:
			remedy = "run mcptaskgen " + o.shownDirectory(c.Dir)
		}
		differences = append(differences, Difference{o.relativePath(name), reason, remedy})
	}
	for _, name := range o.LeftOver {
		remedy := "remove it, or run the same command with --prune"
		if o.own {
			remedy = "remove it, or run mcptaskgen --prune " + o.shownDirectory(filepath.Dir(o.absolutePath(name)))
		}
		differences = append(differences, Difference{o.relativePath(name), "is left over, because nothing produces it any more", remedy})
	}
	slices.SortFunc(differences, func(a, b Difference) int { return cmp.Compare(a.Path, b.Path) })
	return differences, nil
}

// describeStale says why a file is not up to date.
func (o Output) describeStale(name string) (string, error) {
	old, err := output.Read(o.Root, name)
	if err != nil || old == nil {
		return "is missing", err
	}
	was, ok := commandline.FindHeader(old)
	is, _ := commandline.FindHeader(o.Files[name])
	if ok && was.Recorded && was.Flags.String() != is.Flags.String() {
		return fmt.Sprintf("is stale: it was generated with %s, not with %s",
			cmp.Or(was.Flags.String(), "no flags"), cmp.Or(is.Flags.String(), "no flags")), nil
	}
	return "is stale", nil
}

// shownDirectory returns the path of a directory as a pattern for the go command.
func (o Output) shownDirectory(dir string) string {
	rel := diag.Relative(o.dir, dir)
	if rel == "." || strings.HasPrefix(rel, "../") || rel == ".." {
		return rel
	}
	return "./" + rel
}

// Diff returns what Write and Prune would change, as a unified diff with paths relative to the
// working directory. The diff is empty if everything is up to date.
func (o Output) Diff() (string, error) {
	stale, err := output.Files(o.Files).Diff(o.Root)
	if err != nil {
		return "", err
	}
	names := append(stale, o.LeftOver...)
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		old, err := output.Read(o.Root, name)
		if err != nil {
			return "", err
		}
		shown := o.relativePath(name)
		from, to := "a/"+shown, "b/"+shown
		content, written := o.Files[name]
		if old == nil {
			from = "/dev/null"
		}
		if !written {
			to = "/dev/null"
		}
		text := diff.Diff(from, output.WithoutCR(old), to, content)
		// Drop the first line, "diff a b": neither patch nor people need it.
		_, text, _ = bytes.Cut(text, []byte("\n"))
		b.Write(text)
	}
	return b.String(), nil
}

// Write brings the generated files up to date and returns those it wrote, relative to the working
// directory. It writes all files or none, except if a prepared file cannot be moved into place. The
// error and the list then say which files were written.
func (o Output) Write() ([]string, error) {
	changed, err := output.Files(o.Files).Write(o.Root)
	return o.relativePaths(changed), o.explainWriteError(changed, err)
}

// Prune removes the left-over files and returns those it removed, relative to the working
// directory. Each of them has the header of a generated file.
func (o Output) Prune() ([]string, error) {
	var removed []string
	for _, name := range o.LeftOver {
		if err := os.Remove(o.absolutePath(name)); err != nil {
			return o.relativePaths(removed), fmt.Errorf("remove %s: %w", name, err)
		}
		removed = append(removed, name)
	}
	return o.relativePaths(removed), nil
}

// ShownLeftOver lists the files that Prune would remove, relative to the working directory.
func (o Output) ShownLeftOver() []string { return o.relativePaths(o.LeftOver) }

// explainWriteError adds to an error which files were already changed.
func (o Output) explainWriteError(changed []string, err error) error {
	switch {
	case err == nil:
		return nil
	case len(changed) == 0:
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return fmt.Errorf("%w; written before that: %s", err, strings.Join(o.relativePaths(changed), ", "))
}
