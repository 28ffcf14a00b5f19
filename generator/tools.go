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

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/emit"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/toolschema"
)

// ToolsConfig selects a server's list of tools and what is generated from it.
type ToolsConfig struct {
	Dir  string // the working directory; empty means the process's own
	File string // the JSON file
	// Out is the generated file. Empty means File with _gen.go instead of .json.
	Out string
	// Package is the package name of the generated file. Empty means the package of the Go files
	// beside it, or else a name derived from its directory.
	Package string
	// Service is the name of the interface. Empty means the server's name if the file contains it,
	// or else the name of the file. For a file named tools.json, it is the name of its directory.
	Service string
	// Revisions are the revisions to call the server in, and those that a generated server declares
	// tasks in. Empty means all released ones. A list does not always tell which tools may be tasks;
	// then Start and Resume are left out for revisions in which it would.
	Revisions []string
	// ServerOnly leaves the client out and ClientOnly leaves the server out. Setting both is an
	// error.
	ServerOnly, ClientOnly bool
}

// GenerateTools reads a server's answer to tools/list and returns a file with a typed client, and with
// a function that binds an implementation to the tools. The input is what [RecordTools] returns, the
// result, its array of tools, the JSON-RPC response, a recorded session, or several pages, in one
// array or one after another. GenerateTools writes nothing. Its error lists every mistake of the
// file, one per line, as tools.json:12:3: message.
//
// A generated server lists the tools as the list has them. If the runtime cannot offer one of the
// tools, the server's half is left out with a note; with ServerOnly that is an error.
//
// The names of methods leave out a prefix that all of at least three tools have, unless it is a verb.
// A schema becomes a type by these rules:
//   - The input and output of a tool are structs named after its method. Types inside them are
//     named after their property, or after their key if they are under $defs. Equal types are one.
//     If different types want the same name, each is named after the type that contains it too.
//   - An optional property is omitted if it is zero. If zero is a valid value and not the default,
//     the field is a pointer. A slice or map is omitted if it is nil.
//   - nil stands for null. A property that may be null or missing is omitted if it is nil.
//   - An enum of strings is a type with constants. Other enums and bounds become comments.
//   - date-time is time.Time. An integer is int64 unless its format or bounds need another type. A
//     number is float64. Other formats are strings.
//   - allOf is merged. A union of objects is one struct with the properties of all of them; a
//     property is required if all require it. A union of strings, numbers or lists is the type that
//     holds all of them.
//   - If no Go type holds all valid values and few others, the type is json.RawMessage and a
//     comment says why. In an input, an alternative that says little does not count, and a comment
//     names it: any string beside a boolean, a list or an object, and any value beside a type.
//   - Additional properties are kept in AdditionalProperties if the schema mentions them, and are
//     ignored otherwise.
//   - A tool without an output schema returns its *mcptask.Result.
//   - Start and Resume are generated unless the list says that the tool is never a task. A list of
//     2025-11-25 says so if it does not state the tool's task support.
func GenerateTools(cfg ToolsConfig) (Output, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return Output{}, err
	}
	path := diag.Absolute(dir, cfg.File)
	text, err := os.ReadFile(path)
	if err != nil {
		return Output{}, fmt.Errorf("cannot read the list of tools: %w", err)
	}
	out := strings.TrimSuffix(path, filepath.Ext(path)) + "_gen.go"
	if cfg.Out != "" {
		out = diag.Absolute(dir, cfg.Out)
	}
	if err := checkTarget(dir, out); err != nil {
		return Output{}, err
	}
	pkg := cfg.Package
	if pkg == "" {
		pkg = findPackageName(out)
	}
	if !isPackageName(pkg) {
		return Output{}, fmt.Errorf("%q is not a valid package name; give one with --package", pkg)
	}
	if cfg.Service != "" && (!token.IsIdentifier(cfg.Service) || !token.IsExported(cfg.Service)) {
		return Output{}, fmt.Errorf("--service=%s is not an exported Go identifier, such as Search", cfg.Service)
	}
	flags := commandline.Flags{
		Tools: path, Out: out, Package: cfg.Package, Service: cfg.Service,
		ServerOnly: cfg.ServerOnly, ClientOnly: cfg.ClientOnly, Revisions: cfg.Revisions,
	}
	if err := flags.Check(nil); err != nil {
		return Output{}, err
	}
	revisions, err := Revisions(cfg.Revisions)
	if err != nil {
		return Output{}, err
	}
	protocol, err := readProtocol(revisions)
	if err != nil {
		return Output{}, err
	}
	var problems diag.List
	remote := toolschema.Read(toolschema.Config{Path: path, Package: pkg, Service: cfg.Service, Side: sideOf(flags), Revisions: cfg.Revisions}, text, &problems)
	if err := problems.Err(dir); err != nil {
		return Output{}, err
	}
	remote.Header = flags.Relative(dir, filepath.Dir(out)).Header()
	content, err := emit.Remote(remote, protocol)
	if err != nil {
		return Output{}, err
	}
	files := NewOutput(dir, map[string][]byte{out: content}, nil)
	files.Notes = problems.Notes(dir)
	return files, nil
}

func isPackageName(name string) bool { return token.IsIdentifier(name) && name != "_" }

// checkTarget refuses to replace files that others wrote, and the name of the file generated from
// declarations.
func checkTarget(dir, out string) error {
	name := diag.Relative(dir, out)
	if filepath.Ext(out) != ".go" || strings.HasSuffix(out, "_test.go") {
		return fmt.Errorf("%s is not the name of a Go file; give --out the name of the file to write", name)
	}
	if filepath.Base(out) == OutputName {
		return fmt.Errorf("%s is reserved for the package's own declarations; give --out another name", name)
	}
	text, err := os.ReadFile(out)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if _, generated := commandline.FindHeader(text); err == nil && !generated {
		err = fmt.Errorf("%s:1:1: this file was not written by mcptaskgen; move it, or give another name with --out", name)
	}
	return err
}

// findPackageName returns the name of the package that a file is written into. It prefers the
// package of the other Go files there, first those that the current build includes. Otherwise it
// derives a name from the directory.
func findPackageName(out string) string {
	dir := filepath.Dir(out)
	entries, err := os.ReadDir(dir)
	if err != nil {
		entries = nil // the directory does not exist yet
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

// isToolsClient reports whether a generated file comes from a list of tools. In a file of an earlier
// version, which did not record its flags, the comment says so. A run that reads declarations does not
// treat such a file as left over. The same goes for a file that cannot be read.
func isToolsClient(f load.GeneratedFile) bool {
	if f.Header.Recorded {
		return f.Header.Flags.ReadsTools()
	}
	file, err := parser.ParseFile(token.NewFileSet(), f.Path, nil, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil || len(file.Comments) == 0 {
		return err != nil && !errors.As(err, new(scanner.ErrorList))
	}
	return strings.Contains(strings.Join(strings.Fields(file.Comments[0].Text()), " "), "what a server answers to tools/list")
}
