// Package released keeps the output of each released version of the generator, and knows which names of the runtime
// that output needs. Directories are those of golden/compat.
package released

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Next is the directory of the sample as today's generator writes it.
const Next = "next"

// Version is a version with the directory of its output. Versions whose output is the same share one.
type Version struct {
	Name string // such as v0.1.0
	Dir  string // such as v0_1_0
	Hash string // of the generated files
}

const (
	listName = "versions.txt"
	listHead = "# Version, directory of its output, hash of the generated files there. Written by make freeze.\n"
)

// Versions reads the list of the versions whose output is kept.
func Versions(compat string) ([]Version, error) {
	text, err := os.ReadFile(filepath.Join(compat, listName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var versions []Version
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "#"):
		case len(fields) == 3:
			versions = append(versions, Version{fields[0], fields[1], fields[2]})
		default:
			return nil, fmt.Errorf("%s: %q has not three columns", listName, line)
		}
	}
	return versions, nil
}

func write(compat string, versions []Version) error {
	var b strings.Builder
	b.WriteString(listHead)
	for _, v := range versions {
		fmt.Fprintf(&b, "%s %s %s\n", v.Name, v.Dir, v.Hash)
	}
	return os.WriteFile(filepath.Join(compat, listName), []byte(b.String()), 0o644)
}

var heading = regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\]`)

// InChangelog lists the released versions of a changelog, such as v0.1.0.
func InChangelog(text string) []string {
	var names []string
	for _, match := range heading.FindAllStringSubmatch(text, -1) {
		names = append(names, "v"+match[1])
	}
	return names
}

// Hash returns a hash of generated files, which shows whether they have changed.
func Hash(files map[string][]byte) string {
	var names []string
	for name := range files {
		if strings.HasSuffix(name, "_gen.go") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		fmt.Fprintf(h, "%s %x\n", name, sha256.Sum256(files[name]))
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// Files reads the files of a directory and of those below it, by paths with slashes.
func Files(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		files[filepath.ToSlash(name)] = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
		return err
	})
	return files, err
}
