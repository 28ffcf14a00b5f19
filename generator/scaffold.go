package generator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/declaration"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/templates"
)

// commandPath is the import path of mcptaskgen, as a tool line in go.mod names it.
const commandPath = "github.com/mcptaskgen/mcptaskgen/cmd/mcptaskgen"

// declarationPackage is the directory and package name of a scaffold's declaration.
const declarationPackage = "reports"

// Scaffold is a first program for a new user: a declaration, its implementation, a main and a test.
type Scaffold struct {
	// Files holds the files by slash-separated path within the directory.
	Files map[string][]byte

	dir     string // absolute
	shown   string // as the caller wrote it
	hasTool bool   // go.mod names the command
}

// NewScaffold renders a scaffold for a directory. Empty means the current one. The directory does
// not need to exist, but it must be in a module and contain no Go files. NewScaffold writes
// nothing.
func NewScaffold(ctx context.Context, dir string) (Scaffold, error) {
	s := Scaffold{Files: map[string][]byte{}, shown: filepath.Clean(dir)}
	var err error
	if s.dir, err = filepath.Abs(dir); err != nil {
		return s, err
	}
	mod, err := findModule(ctx, s.dir)
	if err != nil {
		return s, err
	}
	s.hasTool = mod.Module.Path+"/cmd/mcptaskgen" == commandPath ||
		slices.ContainsFunc(mod.Tool, func(t struct{ Path string }) bool { return t.Path == commandPath })
	rel, err := filepath.Rel(mod.dir, s.dir)
	if err != nil {
		return s, err
	}
	if err := checkElements(rel); err != nil {
		return s, err
	}
	importPath := path.Join(mod.Module.Path, filepath.ToSlash(rel))
	data := map[string]string{
		"Package": path.Join(importPath, declarationPackage), "Runtime": declaration.Runtime, "Command": filepath.Base(s.dir),
	}
	for name, template := range map[string]string{
		declarationPackage + "/" + declarationPackage + ".go": "reports.go.tmpl",
		"main.go":         "main.go.tmpl",
		"service.go":      "service.go.tmpl",
		"service_test.go": "service_test.go.tmpl",
	} {
		text, err := templates.Render("init/"+template, data)
		if err != nil {
			return s, err
		}
		// Sort the imports: their order depends on the user's module path.
		if s.Files[name], err = format.Source([]byte(text)); err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, s.checkNoGoFiles()
}

// directoryName matches directory names that the go command accepts as a package.
var directoryName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~+-]*$`)

// checkElements refuses a directory that cannot be imported or that ./... skips.
func checkElements(rel string) error {
	if rel == "." {
		return nil
	}
	for _, name := range strings.Split(filepath.ToSlash(rel), "/") {
		if !directoryName.MatchString(name) || name == "testdata" || name == "vendor" {
			return fmt.Errorf("the go command finds no package in a directory named %q; use letters, digits, -, . and _, with a letter or digit first", name)
		}
	}
	return nil
}

// checkNoGoFiles refuses Go files that the scaffold would replace or that would become part of its
// packages.
func (s Scaffold) checkNoGoFiles() error {
	var found []string
	for _, directory := range []string{s.dir, filepath.Join(s.dir, declarationPackage)} {
		names, err := filepath.Glob(filepath.Join(escapeGlob(directory), "*.go"))
		if err != nil {
			return err
		}
		for _, name := range names {
			found = append(found, filepath.ToSlash(filepath.Join(s.shown, diag.Relative(s.dir, name))))
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	return fmt.Errorf("init does not replace existing Go code: %s; name a directory without any, such as mcptaskgen init %s",
		strings.Join(found, ", "), filepath.ToSlash(filepath.Join(s.shown, "hello")))
}

func escapeGlob(path string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(path)
}

// Write writes all files or none. It returns instructions for the next steps.
func (s Scaffold) Write() (next string, err error) {
	written, err := Output{Dir: s.dir, Files: s.Files}.Write()
	if err != nil {
		return "", err
	}
	data := struct {
		Files              []string
		Chdir, Declaration string
		Tool               string
		HasTool            bool
	}{Tool: commandPath, HasTool: s.hasTool, Declaration: declarationPackage + "/" + declarationPackage + ".go"}
	for _, name := range written {
		data.Files = append(data.Files, filepath.ToSlash(filepath.Join(s.shown, name)))
	}
	if s.shown != "." {
		data.Chdir = filepath.ToSlash(s.shown)
	}
	return templates.Render("init/next.txt.tmpl", data)
}

// goModule is the part of a go.mod file that a scaffold needs.
type goModule struct {
	Module struct{ Path string }
	Tool   []struct{ Path string }

	dir string
}

// findModule finds the module that contains a directory. The directory may not exist yet.
func findModule(ctx context.Context, dir string) (goModule, error) {
	var mod goModule
	at := dir
	for {
		info, err := os.Stat(at)
		if err == nil && !info.IsDir() {
			return mod, fmt.Errorf("%s is a file; mcptaskgen init takes a directory", at)
		}
		if err == nil || filepath.Dir(at) == at {
			break
		}
		at = filepath.Dir(at)
	}
	file, err := goCommand(ctx, at, "env", "GOMOD")
	if err != nil {
		return mod, err
	}
	name := strings.TrimSpace(string(file))
	if name == "" || name == os.DevNull {
		return mod, fmt.Errorf("%s is not in a module; run go mod init example.com/%s there first", at, filepath.Base(at))
	}
	mod.dir = filepath.Dir(name)
	text, err := goCommand(ctx, at, "mod", "edit", "-json", name)
	if err != nil {
		return mod, err
	}
	if err := json.Unmarshal(text, &mod); err != nil {
		return mod, fmt.Errorf("read %s: %w", name, err)
	}
	return mod, nil
}

func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	text, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) && len(failed.Stderr) > 0 {
		return nil, fmt.Errorf("go %s: %s", strings.Join(args, " "), strings.TrimSpace(string(failed.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return text, nil
}
