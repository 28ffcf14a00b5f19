package load

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/go/packages"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// Directory describes the directory of a package.
type Directory struct {
	Dir     string // absolute; empty for Go files, and if Load will report that the package is missing
	Path    string // the import path; empty outside modules
	Pattern string // matches only this package if it was found
}

// Directories lists the directories of the packages that match the patterns, without loading the
// packages. It runs the go command only for patterns that do not name a directory.
func Directories(ctx context.Context, cfg Config) []Directory {
	patterns := cfg.Patterns
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	var directories []Directory
	var others []string
	for _, pattern := range patterns {
		local := pattern == "." || pattern == ".." || strings.HasPrefix(pattern, "./") || strings.HasPrefix(pattern, "../")
		if !local || strings.Contains(pattern, "...") {
			others = append(others, pattern)
			continue
		}
		directory := Directory{Pattern: pattern}
		dir := filepath.Join(cfg.Dir, filepath.FromSlash(pattern))
		if info, err := os.Stat(dir); err == nil && info.IsDir() { // otherwise a Go file, or a mistake
			directory.Dir, directory.Path = dir, findImportPath(dir)
		}
		directories = append(directories, directory)
	}
	if len(others) == 0 {
		return directories
	}
	config := &packages.Config{Context: ctx, Mode: packages.NeedName | packages.NeedFiles, Dir: cfg.Dir}
	if cfg.Tags != "" {
		config.BuildFlags = []string{"-tags=" + cfg.Tags}
	}
	found, err := packages.Load(config, others...)
	files := func(p *packages.Package) bool { return p.PkgPath == "command-line-arguments" }
	if err != nil || slices.ContainsFunc(found, files) { // Go files as arguments do not tell which package they form
		for _, pattern := range others {
			directories = append(directories, Directory{Pattern: pattern})
		}
		return directories
	}
	for _, p := range found {
		directory := Directory{packageDir(p), p.PkgPath, p.PkgPath}
		if rel, err := filepath.Rel(cfg.Dir, directory.Dir); err == nil && filepath.IsLocal(rel) {
			directory.Pattern = strings.TrimSuffix("./"+filepath.ToSlash(rel), "/.")
		}
		directories = append(directories, directory)
	}
	return directories
}

// findImportPath returns the import path of the package in a directory, according to go.mod. It
// returns "" outside a module.
func findImportPath(dir string) string {
	for root := dir; ; root = filepath.Dir(root) {
		text, err := os.ReadFile(filepath.Join(root, "go.mod"))
		if err == nil {
			return path.Join(modfile.ModulePath(text), diag.Relative(root, dir))
		}
		if filepath.Dir(root) == root {
			return ""
		}
	}
}
