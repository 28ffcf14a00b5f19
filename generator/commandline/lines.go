package commandline

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Lines finds lines for go generate in files on the disk. It reads each folder once, and leaves out
// lines that are wrong: go generate says what is wrong with them. The zero value is ready; it is not
// safe for concurrent use.
type Lines struct {
	folders map[string][]*Line
}

// For returns the lines that generate for the package in a folder, an absolute path: those in the
// folder itself, or, where there are none, those of [Lines.Above]. The error is that of reading a file.
func (l *Lines) For(dir, importPath string) ([]*Line, error) {
	own, err := l.in(dir)
	if err != nil {
		return nil, err
	}
	if own = covering(own, dir, importPath); len(own) > 0 {
		return own, nil
	}
	return l.Above(dir, importPath)
}

// Above returns the lines that generate for the package in a folder and stand in the folders above
// it, up to that of the module; the nearest come first.
func (l *Lines) Above(dir, importPath string) (found []*Line, err error) {
	for at := dir; ; {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil || filepath.Dir(at) == at {
			return found, nil
		}
		at = filepath.Dir(at)
		lines, err := l.in(at)
		if err != nil {
			return nil, err
		}
		found = append(found, covering(lines, dir, importPath)...)
	}
}

// Tools returns the lines in a folder that read a list of tools.
func (l *Lines) Tools(dir string) ([]*Line, error) {
	lines, err := l.in(dir)
	return slices.DeleteFunc(slices.Clone(lines), func(line *Line) bool { return !line.ReadsTools() }), err
}

func covering(lines []*Line, dir, importPath string) []*Line {
	return slices.DeleteFunc(slices.Clone(lines), func(line *Line) bool { return !line.Covers(dir, importPath) })
}

// in returns the lines of a folder.
func (l *Lines) in(dir string) ([]*Line, error) {
	if lines, ok := l.folders[dir]; ok {
		return lines, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []*Line
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".go" || entry.IsDir() {
			continue
		}
		lines, err := read(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		found = append(found, lines...)
	}
	if l.folders == nil {
		l.folders = map[string][]*Line{}
	}
	l.folders[dir] = found
	return found, nil
}

// read returns the lines of a file.
func read(name string) (found []*Line, err error) {
	src, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(src), "//go:generate ") {
		return nil, err
	}
	pkg := ""
	if file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.PackageClauseOnly); err == nil {
		pkg = file.Name.Name
	}
	number := 0
	for text := range strings.Lines(string(src)) {
		number++
		if line, err := ParseLine(strings.TrimRight(text, "\n"), name, pkg); err == nil && line != nil {
			line.Number = number
			found = append(found, line)
		}
	}
	return found, nil
}
