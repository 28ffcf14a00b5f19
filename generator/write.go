package generator

import (
	"cmp"
	"fmt"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/output"
)

// Output holds generated files and their locations.
type Output struct {
	// Dir is the absolute working directory.
	Dir string
	// Files holds the generated files by slash-separated path relative to Dir.
	Files map[string][]byte
	// Commands has the settings with which each of Files is generated.
	Commands map[string]Command
	// LeftOver lists files that have a generated file's header but that this run does not produce:
	// files of packages that no longer declare anything, and files with another name.
	LeftOver []Difference
	// Notes lists the generator's decisions, and the features of the run's schema files that
	// generated code does not support. A note about a declaration is one line and begins with its
	// place, as in path/file.go:12:6: note: message.
	Notes []string

	run  *generation      // nil for a reference
	own  bool             // each package decided about its flags
	stay map[string]bound // the bounds of files that the command line does not name, by path as in Files
}

// bound is the directory in which a file has to stay.
type bound struct {
	module string         // a directory
	at     token.Position // of the line or of the header that names the file, or the zero value
}

// newOutput returns an Output with files that are named by absolute path.
func newOutput(dir string, files map[string][]byte, commands map[string]Command) Output {
	out := Output{Dir: dir, Files: map[string][]byte{}, Commands: map[string]Command{}, stay: map[string]bound{}}
	for path, content := range files {
		name, c := diag.Relative(dir, path), commands[path]
		out.Files[name], out.Commands[name] = content, c
		if c.module != "" {
			out.stay[name] = bound{c.module, c.at}
		}
	}
	return out
}

// isOfVersionControl reports whether a path in a module lies in the directory of a version control system, such as that of
// its hooks. A clone does not bring these files, so only the person has written them.
func isOfVersionControl(module, path string) bool {
	rel, err := filepath.Rel(module, path)
	return err != nil || slices.ContainsFunc(strings.Split(filepath.ToSlash(rel), "/"), func(name string) bool {
		return slices.Contains([]string{".git", ".hg", ".jj", ".svn"}, strings.ToLower(name))
	})
}

// checkStay refuses to write files outside of the module that names them. A person who runs the command for someone else's
// packages has not read all of their lines.
func (o Output) checkStay(names []string) error {
	var problems diag.List
	for _, name := range names {
		stay, ok := o.stay[name]
		path := diag.Absolute(o.Dir, filepath.FromSlash(name))
		target := output.Resolve(path)
		module := output.Resolve(stay.module)
		if !ok || output.IsWithin(module, target) && !isOfVersionControl(module, target) {
			continue
		}
		problem := fmt.Sprintf("this writes %s, which is outside of the module in %s", target, stay.module)
		if output.IsWithin(module, target) {
			problem = fmt.Sprintf("this writes %s, which belongs to the version control of %s", target, stay.module)
		}
		hint := "change --out"
		switch {
		case stay.at.Filename == "":
			stay.at, hint = token.Position{Filename: path}, "remove the symbolic link"
		case stay.at.Filename == path: // a header
			hint = "remove the symbolic link"
		default:
			hint += "; go generate " + shownDirectory(o.Dir, filepath.Dir(stay.at.Filename)) + " runs the line as it is, if you trust it"
		}
		problems.Add(stay.at, problem, hint)
	}
	return problems.Err(o.Dir)
}

// Difference is a file that Write would write, or a left-over file.
type Difference struct {
	Path   string // slash-separated and relative to the working directory
	Reason string // such as "is stale"
	Remedy string // such as "run mcptaskgen"
}

// String returns the path, the reason and the remedy as one line.
func (d Difference) String() string { return d.Path + " " + d.Reason + "; " + d.Remedy }

// Compare lists the files that are not up to date, sorted by path. A file whose lines end in CRLF, as
// Git may check it out, is compared as if they ended in LF.
func (o Output) Compare() ([]Difference, error) {
	stale, err := output.Files(o.Files).Diff(o.Dir)
	if err != nil {
		return nil, err
	}
	differences := slices.Clone(o.LeftOver)
	for _, name := range stale {
		reason, err := o.describeStale(name)
		if err != nil {
			return nil, err
		}
		remedy, c := "run the same command without --check", o.Commands[name]
		switch {
		case c.Line.IsValid():
			remedy = "run go generate " + shownDirectory(o.Dir, filepath.Dir(c.Line.Filename))
		case o.own:
			remedy = "run mcptaskgen " + shownDirectory(o.Dir, c.Dir)
		}
		differences = append(differences, Difference{name, reason, remedy})
	}
	slices.SortFunc(differences, func(a, b Difference) int { return cmp.Compare(a.Path, b.Path) })
	return differences, nil
}

// describeStale returns the reason why a file is not up to date.
func (o Output) describeStale(name string) (string, error) {
	old, err := output.Read(o.Dir, name)
	if err != nil || old == nil {
		return "is missing", err
	}
	was, ok := commandline.FindHeader(old)
	is, _ := commandline.FindHeader(o.Files[name])
	if ok && was.Flags.String() != is.Flags.String() {
		return fmt.Sprintf("is stale: it was generated with %s, not with %s",
			cmp.Or(was.Flags.String(), "no flags"), cmp.Or(is.Flags.String(), "no flags")), nil
	}
	return "is stale", nil
}

// shownDirectory returns a directory as a pattern for the go command in the working directory.
func shownDirectory(working, dir string) string {
	rel := diag.Relative(working, dir)
	if rel == "." || strings.HasPrefix(rel, "../") || rel == ".." {
		return rel
	}
	return "./" + rel
}

// Write brings the generated files up to date and returns those it wrote. It writes all files or none,
// except if a prepared file cannot be moved into place. The error and the list then say which files
// were written.
//
// A //go:generate line, or the first line of a generated file, can name a file. Write does not write such a file
// outside of its module, nor into a directory of version control. It follows symbolic links to check that.
func (o Output) Write() ([]string, error) {
	stale, err := output.Files(o.Files).Diff(o.Dir)
	if err == nil {
		if err := o.checkStay(stale); err != nil {
			return nil, err
		}
	}
	changed, err := output.Files(o.Files).Write(o.Dir)
	switch {
	case err != nil && len(changed) == 0:
		err = fmt.Errorf("%w; nothing was changed", err)
	case err != nil:
		err = fmt.Errorf("%w; written before that: %s", err, strings.Join(changed, ", "))
	}
	return changed, err
}
