package generator

import (
	"cmp"
	"errors"
	"fmt"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/emit"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/toolschema"
)

// ToolsConfig says what to make of a server's list of tools.
type ToolsConfig struct {
	Dir  string // the working directory; empty for the process's own
	File string // the JSON file
	// Out is the generated file; empty is File with _gen.go in the place of .json.
	Out string
	// Package is the name of its package; empty is that of the Go files beside it, else of its folder.
	Package string
	// Service is the name of the interface; empty is the server's name where the file has it, else
	// that of the file, or of its folder where the file is tools.json.
	Service string
}

// GenerateTools reads what a server answers to tools/list and returns the file with a typed client for
// it: the result, its array of tools, the JSON-RPC response, several pages of them in one array or one
// after another, or a recorded session. It writes nothing. Its error lists every mistake of the file,
// one a line, as tools.json:12:3: message.
//
// A schema becomes a type so:
//   - The input and output of a tool are structs that are named after its method; what stands in them is
//     named after its path, a schema under $defs after its key.
//   - A property that is not required is left out where it is zero. Where zero is a value of its own,
//     valid and not the default, its field is a pointer; a slice or a map is left out where it is nil.
//   - null is nil. A property that may be null or missing is left out.
//   - An enum of strings is a type with constants; other enums and bounds stand in comments.
//   - date-time is time.Time, an integer int64 unless its format or bounds need another type, a number
//     float64. Other formats are strings.
//   - allOf is merged. A union of objects is one struct with the properties of all of them, required
//     where all agree; of strings, numbers or lists it is what holds them all.
//   - Where Go has no type that holds all valid values and few others, it is json.RawMessage, and a
//     comment says why.
//   - What a schema allows beside its properties is in AdditionalProperties where it says so, and is
//     passed over where it does not.
//   - A tool without output schema gives its *mcptask.Result.
//   - Start and Resume are there unless the server says that the tool is never a task.
func GenerateTools(cfg ToolsConfig) (Output, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return Output{}, err
	}
	path := absolute(dir, cfg.File)
	text, err := os.ReadFile(path)
	if err != nil {
		return Output{}, fmt.Errorf("the list of tools cannot be read: %w", err)
	}
	out := strings.TrimSuffix(path, filepath.Ext(path)) + "_gen.go"
	if cfg.Out != "" {
		out = absolute(dir, cfg.Out)
	}
	if err := checkTarget(dir, out); err != nil {
		return Output{}, err
	}
	pkg := cfg.Package
	if pkg == "" {
		pkg = packageBeside(out)
	}
	if !isPackageName(pkg) {
		return Output{}, fmt.Errorf("%q is not the name of a package; give one with --package", pkg)
	}
	if cfg.Service != "" && (!token.IsIdentifier(cfg.Service) || !token.IsExported(cfg.Service)) {
		return Output{}, fmt.Errorf("--service=%s is not an exported Go identifier, such as Search", cfg.Service)
	}
	var problems diag.List
	remote := toolschema.Read(toolschema.Config{Path: path, Package: pkg, Service: cfg.Service}, text, &problems)
	if err := problems.Err(dir); err != nil {
		return Output{}, err
	}
	content, err := emit.Remote(remote)
	if err != nil {
		return Output{}, err
	}
	return NewOutput(dir, map[string][]byte{out: content}, nil), nil
}

func isPackageName(name string) bool { return token.IsIdentifier(name) && name != "_" }

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// checkTarget keeps files that others wrote, and the name of what declarations make.
func checkTarget(dir, out string) error {
	name := diag.Relative(dir, out)
	if filepath.Ext(out) != ".go" || strings.HasSuffix(out, "_test.go") {
		return fmt.Errorf("%s is not the name of a Go file; --out names the file that is written", name)
	}
	if filepath.Base(out) == OutputName {
		return fmt.Errorf("%s is the file of a package's own declarations; give --out another name", name)
	}
	text, err := os.ReadFile(out)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && !load.IsGenerated(text, emit.Header) {
		err = fmt.Errorf("%s:1:1: this file was not written by mcptaskgen; move it, or give another name with --out", name)
	}
	return err
}

// packageBeside is the name of the package that a file is written into: that of the other files there, of
// those that are built where there are any, else that of the folder.
func packageBeside(out string) string {
	dir := filepath.Dir(out)
	entries, err := os.ReadDir(dir)
	if err != nil {
		entries = nil // the folder is yet to be made
	}
	found := ""
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if filepath.Ext(path) != ".go" || path == out || strings.HasSuffix(path, "_test.go") {
			continue
		}
		if f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly); err == nil {
			if built, err := build.Default.MatchFile(dir, entry.Name()); err == nil && built {
				return f.Name.Name
			}
			found = cmp.Or(found, f.Name.Name)
		}
	}
	if found != "" {
		return found
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, filepath.Base(dir))
}

// isFromTools tells whether a generated file comes from a list of tools, by what remote.tmpl says in its
// header. Such a file is not left over where a run reads declarations. One that cannot be read is kept too.
func isFromTools(path string) bool {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil || len(file.Comments) == 0 {
		return err != nil && !errors.As(err, new(scanner.ErrorList))
	}
	header := strings.Join(strings.Fields(file.Comments[0].Text()), " ")
	return strings.Contains(header, "what a server answers to tools/list")
}
