package load

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/tools/go/packages"
)

// severalPackages is what the go command says of a folder whose files name two packages.
var severalPackages = regexp.MustCompile(`found packages (\S+) \((.+)\) and (\S+) \((.+)\) in (.+)$`)

// renamed finds generated files that still name the package as it was called before, and which keep
// the go command from loading it: with what their folder's other files name instead.
func renamed(loaded []*packages.Package, header string) map[string][]byte {
	overlay := map[string][]byte{}
	for _, p := range loaded {
		for _, e := range p.Errors {
			found := severalPackages.FindStringSubmatch(e.Msg)
			if found == nil {
				continue
			}
			first, second := filepath.Join(found[5], found[2]), filepath.Join(found[5], found[4])
			for path, name := range map[string]string{first: found[3], second: found[1]} {
				if src, err := os.ReadFile(path); err == nil && IsGenerated(src, header) {
					overlay[path] = clause(src, name)
				}
			}
		}
	}
	return overlay
}

// clause is a generated file that names a package and has nothing else. Build constraints stay.
func clause(src []byte, name string) []byte {
	var out []byte
	for line := range bytes.Lines(src) {
		if bytes.HasPrefix(line, []byte("package ")) {
			break
		}
		out = append(out, line...)
	}
	return append(out, "package "+name+"\n"...)
}
