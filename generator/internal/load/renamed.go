package load

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/tools/go/packages"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
)

// severalPackages matches the go command's error for a directory whose files name two packages.
var severalPackages = regexp.MustCompile(`found packages (\S+) \((.+)\) and (\S+) \((.+)\) in (.+)$`)

// overlayRenamed finds generated files that still have the old name of a renamed package, which
// keeps the go command from loading it. It returns replacements with the new name.
func overlayRenamed(loaded []*packages.Package) map[string][]byte {
	overlay := map[string][]byte{}
	for _, p := range loaded {
		for _, e := range p.Errors {
			found := severalPackages.FindStringSubmatch(e.Msg)
			if found == nil {
				continue
			}
			first, second := filepath.Join(found[5], found[2]), filepath.Join(found[5], found[4])
			for path, name := range map[string]string{first: found[3], second: found[1]} {
				src, err := os.ReadFile(path)
				if _, generated := commandline.FindHeader(src); err == nil && generated {
					overlay[path] = replaceClause(src, name)
				}
			}
		}
	}
	return overlay
}

// replaceClause returns a generated file with another package clause and no declarations. Build
// constraints stay.
func replaceClause(src []byte, name string) []byte {
	var out []byte
	for line := range bytes.Lines(src) {
		if bytes.HasPrefix(line, []byte("package ")) {
			break
		}
		out = append(out, line...)
	}
	return append(out, "package "+name+"\n"...)
}
