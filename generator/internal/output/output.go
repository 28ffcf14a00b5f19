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
// that it wrote, sorted. Folders are made where they are missing. Each file is
// replaced atomically; after an error, the files before the failed one are
// written and named.
func (f Files) Write(dir string) (changed []string, err error) {
	stale, err := f.Diff(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range stale {
		if err := replace(filepath.Join(dir, filepath.FromSlash(name)), f[name]); err != nil {
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
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, fmt.Errorf("the path %q leads out of its folder", name)
		}
		old, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if err != nil || !bytes.Equal(old, content) {
			stale = append(stale, name)
		}
	}
	slices.Sort(stale)
	return stale, nil
}

// replace writes a temporary file in the same folder and renames it.
func replace(path string, content []byte) error {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	// The name ends in a way that no Go tool reads, should it ever be left over.
	temporary, err := os.CreateTemp(folder, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Chmod(mode), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}
