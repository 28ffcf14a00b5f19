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

// GenerateTools reads a server's answer to tools/list and returns a file with a typed client. The
// input can be the result, its array of tools, the JSON-RPC response, a recorded session, or
// several pages, in one array or one after another. GenerateTools writes nothing. Its error lists
// every mistake of the file, one per line, as tools.json:12:3: message.
//
// A schema becomes a type by these rules:
//   - The input and output of a tool are structs named after its method. Types inside them are
//     named after their path, or after their key if they are under $defs.
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
//     comment says why.
//   - Additional properties are kept in AdditionalProperties if the schema mentions them, and are
//     ignored otherwise.
//   - A tool without an output schema returns its *mcptask.Result.
//   - Start and Resume are generated unless the server says that the tool is never a task.
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
	half := Config{ServerOnly: cfg.ServerOnly, ClientOnly: cfg.ClientOnly}
	if err := half.check(); err != nil {
		return Output{}, err
	}
