package generator

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
)

// Stale lists the files that Write would write and Prune would remove, relative to the working
// directory. The list is empty if everything is up to date.
func (o Output) Stale() ([]string, error) {
	stale, err := o.Files.Diff(o.Root)
	if err != nil {
		return nil, err
	}
	return o.relativePaths(append(stale, o.LeftOver...)), nil
}

// Diff returns what Write and Prune would change, as a unified diff with paths relative to the
// working directory. The diff is empty if everything is up to date.
func (o Output) Diff() (string, error) {
	stale, err := o.Files.Diff(o.Root)
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
		shown := o.relativePaths([]string{name})[0]
		from, to := "a/"+shown, "b/"+shown
		content, written := o.Files[name]
		if old == nil {
			from = "/dev/null"
		}
		if !written {
			to = "/dev/null"
		}
		text := diff.Diff(from, old, to, content)
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
	changed, err := o.Files.Write(o.Root)
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
