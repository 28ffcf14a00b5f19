package commandline

import (
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// Lines finds //go:generate lines in files on disk. It reads each directory once. The zero value is
// ready to use. A Lines is not safe for concurrent use.
type Lines struct {
	Dir         string // the absolute directory that paths in messages are relative to
	directories map[string]directory
}

// directory holds the valid lines of a directory, and what is wrong with the others.
type directory struct {
	lines    []*Line
	mistakes diag.List
}

// For returns the lines that generate code for the package in dir, an absolute path: the lines in
// dir itself, or else those of [Lines.Above]. The error lists invalid lines in dir, or reports a
// file that cannot be read.
func (l *Lines) For(dir, importPath string) ([]*Line, error) {
	own, err := l.readDirectory(dir)
	if err != nil {
		return nil, err
	}
	if err := own.mistakes.Err(l.Dir); err != nil {
		return nil, err
	}
	if lines := filterCovering(own.lines, dir, importPath); len(lines) > 0 {
		return lines, nil
	}
	return l.Above(dir, importPath)
}

// Above returns the lines that generate code for the package in dir and are in a directory above
// it, up to the root of the module. They are in the order in which go generate runs them. Invalid
// lines are ignored because they may be for other packages.
func (l *Lines) Above(dir, importPath string) (found []*Line, err error) {
	var above []string
	for at := dir; ; above = append(above, at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(at) == at { // not in a module, so lines above belong to other code
			return nil, nil
		}
		at = filepath.Dir(at)
	}
	for _, at := range slices.Backward(above) {
		other, err := l.readDirectory(at)
		if err != nil {
			return nil, err
		}
		found = append(found, filterCovering(other.lines, dir, importPath)...)
	}
	return found, nil
}

// Tools returns the lines in a directory that read a list of tools.
func (l *Lines) Tools(dir string) ([]*Line, error) {
	own, err := l.readDirectory(dir)
	return slices.DeleteFunc(slices.Clone(own.lines), func(line *Line) bool { return !line.ReadsTools() }), err
}

func filterCovering(lines []*Line, dir, importPath string) []*Line {
	return slices.DeleteFunc(slices.Clone(lines), func(line *Line) bool { return !line.Covers(dir, importPath) })
}

// readDirectory returns the lines of a directory.
func (l *Lines) readDirectory(dir string) (directory, error) {
	if found, ok := l.directories[dir]; ok {
		return found, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return directory{}, err
	}
	var found directory
	for _, entry := range entries {
		// The go command ignores these names. Editors use them for temporary files, some of which
		// cannot be read.
		if filepath.Ext(entry.Name()) != ".go" || strings.ContainsAny(entry.Name()[:1], "._") || entry.IsDir() {
			continue
		}
		if err := found.readFile(filepath.Join(dir, entry.Name())); err != nil {
			return directory{}, err
		}
	}
	if l.directories == nil {
		l.directories = map[string]directory{}
	}
	l.directories[dir] = found
	return found, nil
}

// readFile adds the lines of a file.
func (f *directory) readFile(name string) error {
	src, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(src), "//go:generate") {
		return err
	}
	pkg := ""
	if file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.PackageClauseOnly); err == nil {
		pkg = file.Name.Name
	}
	number := 0
	for text := range strings.Lines(string(src)) {
		number++
		line, err := ParseLine(strings.TrimRight(text, "\n"), name, pkg)
		switch {
		case err != nil && isRunByGoGenerate(name):
			f.mistakes.Add(token.Position{Filename: name, Line: number, Column: 1}, "go generate fails here: "+err.Error(), "")
		case line != nil:
			line.Number = number
			f.lines = append(f.lines, line)
		}
	}
	return nil
}

// isRunByGoGenerate reports whether build constraints let go generate run the lines of a file.
func isRunByGoGenerate(name string) bool {
	system := build.Default
	system.BuildTags = append(slices.Clone(system.BuildTags), "generate") // go generate sets this tag
	ok, err := system.MatchFile(filepath.Split(name))
	return ok && err == nil
}
