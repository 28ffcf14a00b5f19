package generator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"maps"
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

// commandModule is the path of the module that has the commands.
const commandModule = "github.com/mcptaskgen/mcptaskgen"

// commandPaths are the import paths of the commands that a scaffold uses, as tool lines in go.mod name them.
var commandPaths = []string{commandModule + "/cmd/mcptaskgen", commandModule + "/cmd/mcptask"}

// declarationPackage is the directory and package name of a scaffold's declaration.
const declarationPackage = "reports"

// declarationFile is the path of the declaration in a scaffold.
const declarationFile = declarationPackage + "/" + declarationPackage + ".go"

// scaffoldTemplate is a program that a scaffold can be. Its parts decide which files it has, and what is in them.
type scaffoldTemplate struct {
	name string
	// HTTP serves over HTTP, Token authenticates callers by a bearer token, and SQLite keeps the tasks in a file.
	HTTP, Token, SQLite bool
	// Full has all of these, and every other part. Its flags choose among them.
	Full bool
}

// scaffoldTemplates are the programs that a scaffold can be. The first is the default.
var scaffoldTemplates = []scaffoldTemplate{
	{name: "http", HTTP: true, SQLite: true},
	{name: "bearer", HTTP: true, Token: true, SQLite: true},
	{name: "stdio", SQLite: true},
	{name: "postgres", HTTP: true},
	{name: "full", HTTP: true, Token: true, SQLite: true, Full: true},
}

// ScaffoldTemplates returns the names of the programs that a scaffold can be. The first is the default.
func ScaffoldTemplates() []string {
	var names []string
	for _, t := range scaffoldTemplates {
		names = append(names, t.name)
	}
	return names
}

// files returns the files of the program, and for each the template of package templates that renders it.
func (t scaffoldTemplate) files() map[string]string {
	files := map[string]string{
		".gitignore": "gitignore", declarationFile: "reports.go", "main.go": "main.go", "service.go": "service.go", "service_test.go": "service_test.go",
	}
	if t.Token {
		files["auth.go"], files["auth_test.go"] = "auth.go", "auth_test.go"
	}
	if t.Full {
		for _, name := range []string{"store.go", "oauth.go", "operators.go", "telemetry.go", "Dockerfile", "compose.yaml"} {
			files[name] = name
		}
		files[".dockerignore"], files[".github/workflows/ci.yml"] = "dockerignore", "ci.yml"
	}
	return files
}

// ScaffoldConfig selects a scaffold and its place.
type ScaffoldConfig struct {
	// Dir is the directory. Empty means the current one. It does not need to exist, but it must be in a
	// module and contain no Go files. The template full is for the root of a module.
	Dir string
	// Template is one of [ScaffoldTemplates]. Empty means the first.
	Template string
	// Version is the version of the commands for go.mod, such as v0.1.0. Empty means the latest. It does not
	// count if go.mod names them already.
	Version string
}

// Scaffold is a first program for a new user: a declaration, its implementation, a server and a test.
type Scaffold struct {
	// Files holds the files by slash-separated path within the directory. It lacks those that are there already, such as
	// a .gitignore.
	Files map[string][]byte

	dir      string // absolute
	shown    string // as the caller wrote it
	template scaffoldTemplate
	kept     []string   // the files that are there already
	command  string     // the program's name
	prepare  [][]string // the arguments of go that make the files a program
}

// NewScaffold renders a scaffold. It writes nothing.
func NewScaffold(ctx context.Context, config ScaffoldConfig) (Scaffold, error) {
	s := Scaffold{Files: map[string][]byte{}, shown: filepath.Clean(config.Dir)}
	names := ScaffoldTemplates()
	i := slices.Index(names, cmp.Or(config.Template, names[0]))
	if i < 0 {
		return s, fmt.Errorf("there is no template %q; the templates are %s", config.Template, strings.Join(names, ", "))
	}
	s.template = scaffoldTemplates[i]
	var err error
	if s.dir, err = filepath.Abs(config.Dir); err != nil {
		return s, err
	}
	mod, err := findModule(ctx, s.dir)
	if err != nil {
		return s, err
	}
	get := []string{"get", "-tool"}
	for _, command := range commandPaths {
		if !mod.hasTool(command) {
			get = append(get, command+"@"+cmp.Or(config.Version, "latest"))
		}
	}
	if len(get) > 2 {
		s.prepare = append(s.prepare, get)
	}
	s.prepare = append(s.prepare, []string{"mod", "tidy"}, []string{"generate", "./..."})
	rel, err := filepath.Rel(mod.dir, s.dir)
	if err != nil {
		return s, err
	}
	if err := checkElements(rel); err != nil {
		return s, err
	}
	if s.template.Full && rel != "." {
		return s, fmt.Errorf("%s is not the root of its module, and the template full has files for the whole module, such as Dockerfile; run init in %s", s.dir, mod.dir)
	}
	importPath := path.Join(mod.Module.Path, filepath.ToSlash(rel))
	s.command = path.Base(majorVersion.ReplaceAllString(importPath, ""))
	if err := s.render(path.Join(importPath, declarationPackage)); err != nil {
		return s, err
	}
	if err := s.checkNoGoFiles(); err != nil {
		return s, err
	}
	return s, s.keepFiles()
}

// render renders the files. The declaration has an import path.
func (s Scaffold) render(declared string) error {
	data := struct {
		scaffoldTemplate
		Package, Runtime, Command string
	}{s.template, declared, declaration.Runtime, s.command}
	for name, template := range s.template.files() {
		text, err := templates.Render("init/"+template+".tmpl", data)
		if err != nil {
			return err
		}
		s.Files[name] = []byte(text)
		if path.Ext(name) != ".go" {
			continue
		}
		// Sort the imports: their order depends on the user's module path.
		if s.Files[name], err = format.Source(s.Files[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// keepFiles leaves out the files that are there already. They are not Go files: checkNoGoFiles refuses those.
func (s *Scaffold) keepFiles() error {
	for name := range s.Files {
		_, err := os.Lstat(filepath.Join(s.dir, filepath.FromSlash(name)))
		switch {
		case err == nil:
			s.kept = append(s.kept, name)
			delete(s.Files, name)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	slices.Sort(s.kept)
	return nil
}

// majorVersion matches the end of a module's path that is not part of a program's name.
var majorVersion = regexp.MustCompile(`/v[0-9]+$`)

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

// Write writes all files or none. They become a program by [Scaffold.Prepare].
func (s Scaffold) Write() error {
	_, err := Output{Dir: s.dir, Files: s.Files}.Write()
	return err
}

// Prepare adds the program's dependencies to go.mod, and generates. It calls step with each command before it runs it.
// The commands may download modules.
func (s Scaffold) Prepare(ctx context.Context, step func(command string)) error {
	for i, args := range s.prepare {
		step("go " + strings.Join(args, " "))
		if _, err := goCommand(ctx, s.dir, args...); err != nil {
			var rest strings.Builder
			for _, args := range s.prepare[i:] {
				fmt.Fprintf(&rest, "\n  go %s", strings.Join(args, " "))
			}
			return fmt.Errorf("%w\nThe files are written. To go on, run in %s:\n%s", err, filepath.ToSlash(s.shown), rest.String())
		}
	}
	return nil
}

// Next returns the text that lists the written files and the commands to run next.
func (s Scaffold) Next() (string, error) {
	data := struct {
		scaffoldTemplate
		Files, Kept                 []string
		Chdir, Command, Declaration string
	}{scaffoldTemplate: s.template, Kept: s.kept, Command: s.command, Declaration: declarationFile}
	names := append(slices.Collect(maps.Keys(s.Files)), path.Join(declarationPackage, OutputName))
	slices.Sort(names)
	for _, name := range names {
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

// hasTool reports whether go tool runs a command in the module.
func (m goModule) hasTool(command string) bool {
	return m.Module.Path == commandModule || slices.ContainsFunc(m.Tool, func(t struct{ Path string }) bool { return t.Path == command })
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
