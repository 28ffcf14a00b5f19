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
// directory; none where everything is up to date.
func (o Output) Stale() ([]string, error) {
	stale, err := o.Files.Diff(o.Root)
	if err != nil {
		return nil, err
	}
	return o.shown(append(stale, o.LeftOver...)), nil
}

// Diff returns what Write and Prune would change, as a unified diff with paths relative to the working
// directory; empty where everything is up to date.
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
		shown := o.shown([]string{name})[0]
		from, to := "a/"+shown, "b/"+shown
		content, written := o.Files[name]
		if old == nil {
			from = "/dev/null"
		}
		if !written {
			to = "/dev/null"
		}
		text := diff.Diff(from, old, to, content)
		// The line that it begins with is of no use to patch, nor to people.
		_, text, _ = bytes.Cut(text, []byte("\n"))
		b.Write(text)
	}
	return b.String(), nil
}

// Write brings the generated files up to date and returns those that it wrote, relative to the
// working directory. Either all are written or none, but where a file can be made and not be put in
// its place: then the error and the list say which were.
func (o Output) Write() ([]string, error) {
	changed, err := o.Files.Write(o.Root)
	return o.shown(changed), o.explain(changed, err)
}

// Prune removes the files that are left over, and returns those that it removed, relative to the
// working directory. They carry the header of a generated file.
func (o Output) Prune() ([]string, error) {
	var removed []string
	for _, name := range o.LeftOver {
		if err := os.Remove(o.path(name)); err != nil {
			return o.shown(removed), fmt.Errorf("remove %s: %w", name, err)
		}
		removed = append(removed, name)
	}
	return o.shown(removed), nil
}

// ShownLeftOver lists what Prune would remove, relative to the working directory.
func (o Output) ShownLeftOver() []string { return o.shown(o.LeftOver) }

// explain adds to an error what a run has changed before.
func (o Output) explain(changed []string, err error) error {
	switch {
	case err == nil:
		return nil
	case len(changed) == 0:
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return fmt.Errorf("%w; written before that: %s", err, strings.Join(o.shown(changed), ", "))
}
