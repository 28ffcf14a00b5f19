// Package output puts generated files on disk: everything is rendered before
// anything is written, a file is written only where its content changed, and
// never partly.
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

// Files maps a slash-separated path, relative to one folder, to a file's content.
type Files map[string][]byte

// Write brings the files under dir up to date and returns the paths of those
// that it wrote, sorted. Folders are made where they are missing. All content is
// on the disk before the first file is replaced, so that a disk that is full or
// a folder that may not be written to leaves every file as it was. Each file is
// replaced atomically; should that fail, those before it are written and named.
func (f Files) Write(dir string) (changed []string, err error) {
	return f.write(dir, os.Rename)
}

func (f Files) write(dir string, rename func(from, to string) error) (changed []string, err error) {
	stale, err := f.Diff(dir)
	if err != nil {
		return nil, err
	}
	waiting := make([]string, 0, len(stale)) // temporary files, by the index in stale
	defer func() {
		for _, temporary := range waiting[len(changed):] {
			err = errors.Join(err, os.Remove(temporary))
		}
	}()
	for _, name := range stale {
		temporary, err := stage(filepath.Join(dir, filepath.FromSlash(name)), f[name])
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		waiting = append(waiting, temporary)
	}
	for i, name := range stale {
		if err := rename(waiting[i], filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return changed, fmt.Errorf("write %s: %w", name, err)
		}
		changed = append(changed, name)
	}
	return changed, nil
}

// Diff returns the paths of the files that Write would write, sorted: those
// that are missing under dir or have another content. It writes nothing.
func (f Files) Diff(dir string) ([]string, error) {
	var stale []string
	for name, content := range f {
		old, err := Read(dir, name)
		if err != nil {
			return nil, err
		}
		if old == nil || !bytes.Equal(old, content) {
			stale = append(stale, name)
		}
	}
	slices.Sort(stale)
	return stale, nil
}

// Read returns what stands under dir at a slash-separated path that does not
// lead out of it; nil where there is no such file.
func Read(dir, name string) ([]byte, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, fmt.Errorf("the path %q leads out of its folder", name)
	}
	content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
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

// stage writes a temporary file in the folder of path, ready to be renamed.
func stage(path string, content []byte) (string, error) {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	// The name ends in a way that no Go tool reads, should it ever be left over.
	temporary, err := os.CreateTemp(folder, "."+filepath.Base(path)+".*.tmp")
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
