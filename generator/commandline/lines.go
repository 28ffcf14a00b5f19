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

// Lines finds lines for go generate in files on the disk. It reads each folder once. The zero value is
// ready; it is not safe for concurrent use.
type Lines struct {
	Dir     string // absolute; paths in messages are relative to it
	folders map[string]folder
}

// folder has the lines of a folder, and what is wrong with others.
type folder struct {
	lines []*Line
	wrong diag.List
}

// For returns the lines that generate for the package in a folder, an absolute path: those in the
// folder itself, or, where there are none, those of [Lines.Above]. The error says which lines of the
// folder are wrong, or is that of reading a file.
func (l *Lines) For(dir, importPath string) ([]*Line, error) {
	own, err := l.in(dir)
	if err != nil {
		return nil, err
	}
	if err := own.wrong.Err(l.Dir); err != nil {
		return nil, err
	}
	if lines := covering(own.lines, dir, importPath); len(lines) > 0 {
		return lines, nil
	}
	return l.Above(dir, importPath)
}

// Above returns the lines that generate for the package in a folder and stand in the folders above
// it, up to that of the module, in the order in which go generate runs them. It leaves out lines that
// are wrong: they may be for others.
func (l *Lines) Above(dir, importPath string) (found []*Line, err error) {
	var above []string
	for at := dir; ; above = append(above, at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(at) == at { // in no module, and what is above is anybody's
			return nil, nil
		}
		at = filepath.Dir(at)
	}
	for _, at := range slices.Backward(above) {
		other, err := l.in(at)
		if err != nil {
			return nil, err
		}
		found = append(found, covering(other.lines, dir, importPath)...)
	}
	return found, nil
}

// Tools returns the lines in a folder that read a list of tools.
func (l *Lines) Tools(dir string) ([]*Line, error) {
	own, err := l.in(dir)
	return slices.DeleteFunc(slices.Clone(own.lines), func(line *Line) bool { return !line.ReadsTools() }), err
}

func covering(lines []*Line, dir, importPath string) []*Line {
	return slices.DeleteFunc(slices.Clone(lines), func(line *Line) bool { return !line.Covers(dir, importPath) })
}

// in returns the lines of a folder.
func (l *Lines) in(dir string) (folder, error) {
	if found, ok := l.folders[dir]; ok {
		return found, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return folder{}, err
	}
	var found folder
	for _, entry := range entries {
		// The go command reads no file that begins so. Editors leave some that nobody can read.
		if filepath.Ext(entry.Name()) != ".go" || strings.ContainsAny(entry.Name()[:1], "._") || entry.IsDir() {
			continue
		}
		if err := found.read(filepath.Join(dir, entry.Name())); err != nil {
			return folder{}, err
		}
	}
	if l.folders == nil {
		l.folders = map[string]folder{}
	}
	l.folders[dir] = found
	return found, nil
}

// read reads the lines of a file.
func (f *folder) read(name string) error {
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
		case err != nil && isRun(name):
			f.wrong.Add(token.Position{Filename: name, Line: number, Column: 1}, "go generate fails here: "+err.Error(), "")
		case line != nil:
			line.Number = number
			f.lines = append(f.lines, line)
		}
	}
	return nil
}

// isRun tells whether go generate runs the lines of a file here, by its build constraints.
func isRun(name string) bool {
	system := build.Default
	system.BuildTags = append(slices.Clone(system.BuildTags), "generate") // as go generate has it
	ok, err := system.MatchFile(filepath.Split(name))
	return ok && err == nil
}
