package load

import (
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// locateError finds a position for an error without one: the import of the package that the error
// is about, or an import in a cycle.
func (p *Package) locateError(message string, about *packages.Package) token.Position {
	for _, file := range p.Syntax {
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue
			}
			cycle := strings.Contains(message, "import cycle") && strings.Contains(message, p.PkgPath+" "+path+" ")
			if cycle || about != p.Package && path == about.PkgPath {
				return p.Fset.Position(spec.Path.Pos())
			}
		}
	}
	return token.Position{}
}

// hintFor returns a hint for an error of the go command, or "" if the message says enough.
func hintFor(cfg Config, message string) string {
	switch {
	case strings.Contains(message, "build constraints exclude all Go files"):
		return "name build tags with --tags; GOOS, GOARCH and CGO_ENABLED are those of the environment"
	case strings.Contains(message, "no Go files in"):
		return "name packages, such as ./..., or begin with mcptaskgen init"
	case strings.Contains(message, "found packages"):
		return "a directory holds one package, and its tests; if it has a new name, remove the generated file, which has the old one"
	}
	for _, pattern := range cfg.Patterns {
		if !strings.HasPrefix(message, "package "+pattern+" is not in std") {
			continue
		}
		if info, err := os.Stat(filepath.Join(cfg.Dir, pattern)); err == nil && info.IsDir() {
			return "did you mean ./" + pattern + "? Without ./ it is an import path"
		}
		return "a package is given as ./" + pattern + " or by its import path; mcptaskgen --help lists the commands"
	}
	return ""
}
