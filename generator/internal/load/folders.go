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

// Folder is where a package stands.
type Folder struct {
	Dir     string // absolute; empty where none was found, which Load tells of, and for Go files
	Path    string // the import path; empty outside of modules
	Pattern string // which matches this package alone, where it was found
}

// Folders lists the folders of the packages that the patterns match, without loading any. It runs the go
// command only for patterns that do not name a folder.
func Folders(ctx context.Context, cfg Config) []Folder {
	patterns := cfg.Patterns
	if len(patterns) == 0 {
		patterns = []string{"."}
	}
	var folders []Folder
	var others []string
	for _, pattern := range patterns {
		local := pattern == "." || pattern == ".." || strings.HasPrefix(pattern, "./") || strings.HasPrefix(pattern, "../")
		if !local || strings.Contains(pattern, "...") {
			others = append(others, pattern)
			continue
		}
		folder := Folder{Pattern: pattern}
		dir := filepath.Join(cfg.Dir, filepath.FromSlash(pattern))
		if info, err := os.Stat(dir); err == nil && info.IsDir() { // else a Go file, or a mistake
			folder.Dir, folder.Path = dir, importPath(dir)
		}
		folders = append(folders, folder)
	}
	if len(others) == 0 {
		return folders
	}
	config := &packages.Config{Context: ctx, Mode: packages.NeedName | packages.NeedFiles, Dir: cfg.Dir}
	if cfg.Tags != "" {
		config.BuildFlags = []string{"-tags=" + cfg.Tags}
	}
	found, err := packages.Load(config, others...)
	files := func(p *packages.Package) bool { return p.PkgPath == "command-line-arguments" }
	if err != nil || slices.ContainsFunc(found, files) { // of which no folder tells what they make
		for _, pattern := range others {
			folders = append(folders, Folder{Pattern: pattern})
		}
		return folders
	}
	for _, p := range found {
		folder := Folder{directory(p), p.PkgPath, p.PkgPath}
		if rel, err := filepath.Rel(cfg.Dir, folder.Dir); err == nil && filepath.IsLocal(rel) {
			folder.Pattern = strings.TrimSuffix("./"+filepath.ToSlash(rel), "/.")
		}
		folders = append(folders, folder)
	}
	return folders
}

// importPath is that of the package in a folder, by the go.mod above; empty where there is none.
func importPath(dir string) string {
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
