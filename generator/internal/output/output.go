// Package output writes generated files to disk. It writes only files whose content changed, and
// never writes a file partly.
package output

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Files maps slash-separated paths, relative to one directory, to file contents. A path may lead out of
// the directory.
type Files map[string][]byte

// Write brings the files under dir up to date and returns the paths of those it wrote, sorted. It
// creates missing directories.
//
// Write stores all new content in temporary files before it replaces the first file. A full disk or
// a read-only directory therefore leaves every file unchanged. Each file is replaced atomically. If
// a replacement fails, the earlier ones stay and are returned.
func (f Files) Write(dir string) (changed []string, err error) {
	return f.writeWith(dir, os.Rename)
}

func (f Files) writeWith(dir string, rename func(from, to string) error) (changed []string, err error) {
	stale, err := f.Diff(dir)
	if err != nil {
		return nil, err
	}
	waiting := make([]string, 0, len(stale)) // temporary files, by their index in stale
	defer func() {
		for _, temporary := range waiting[len(changed):] {
			err = errors.Join(err, os.Remove(temporary))
		}
	}()
	for _, name := range stale {
		temporary, err := writeTemporary(join(dir, name), f[name])
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		waiting = append(waiting, temporary)
	}
	for i, name := range stale {
		if err := rename(waiting[i], join(dir, name)); err != nil {
			return changed, fmt.Errorf("write %s: %w", name, err)
		}
		changed = append(changed, name)
	}
	return changed, nil
}

// Diff returns the paths of the files that Write would write, sorted: those that are missing under
// dir or have other content. Lines may end in CRLF there, as Git checks files out on Windows. Diff
// writes nothing.
func (f Files) Diff(dir string) ([]string, error) {
	var stale []string
	for name, content := range f {
		old, err := Read(dir, name)
		if err != nil {
			return nil, err
		}
		if old == nil || !bytes.Equal(old, content) && !bytes.Equal(WithoutCR(old), content) {
			stale = append(stale, name)
		}
	}
	slices.Sort(stale)
	return stale, nil
}

// WithoutCR returns a text whose lines end in LF instead of CRLF.
func WithoutCR(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }

// Read returns the content of the file at a slash-separated path, relative to dir. It returns nil if
// the file does not exist.
func Read(dir, name string) ([]byte, error) {
	content, err := os.ReadFile(join(dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case content == nil:
		return []byte{}, nil
	}
	return content, nil
}

// join returns the path of a file. A symbolic link stays, and the file that it names is written.
func join(dir, name string) string {
	path := filepath.FromSlash(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// Resolve returns an absolute path with all symbolic links in it followed. The end of the path may not exist yet.
func Resolve(path string) string {
	rest := ""
	for begin := path; ; begin = filepath.Dir(begin) {
		if target, err := filepath.EvalSymlinks(begin); err == nil {
			return filepath.Join(target, rest)
		}
		if begin == filepath.Dir(begin) {
			return path
		}
		rest = filepath.Join(filepath.Base(begin), rest)
	}
}

// IsWithin reports whether a path leads into a directory. Both are as Resolve returns them.
func IsWithin(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func writeTemporary(path string, content []byte) (string, error) {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	directory := filepath.Dir(path)
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return "", err
	}
	// If the file is left behind, Go tools ignore its name.
	temporary, err := os.CreateTemp(directory, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return "", err
	}
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Chmod(mode), temporary.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(temporary.Name()))
	}
	return temporary.Name(), nil
}
