package toolschema_test

import (
	"bytes"
	"errors"
	"go/ast"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/emit"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/toolschema"
)

// runtimeStub stands for the runtime: the generated code needs its names alone.
const runtimeStub = `package mcptask

import "context"

const GeneratedV1 = true

type (
	Conn interface{ Close() error }
	CallOption func()
	Token string
	Result struct{}
	ToolError struct{}
	Error struct{}
	Call[Out any] struct{}
)

func Run[Out any](context.Context, Conn, string, any, ...CallOption) (out Out, err error) { return }

func Start[Out any](context.Context, Conn, string, any, ...CallOption) (call *Call[Out], err error) { return }

func Resume[Out any](Conn, string, Token, ...CallOption) (call *Call[Out], err error) { return }
`

// checker type-checks generated files. It is safe for concurrent use.
type checker struct {
	mu      sync.Mutex
	fset    *token.FileSet
	std     types.Importer
	runtime *types.Package
}

func (c *checker) Import(path string) (*types.Package, error) {
	if path == "github.com/mcptaskgen/mcptaskgen/runtime" {
		return c.runtime, nil
	}
	return c.std.Import(path)
}

func newChecker(tb testing.TB) *checker {
	tb.Helper()
	c := &checker{fset: token.NewFileSet()}
	c.std = importer.ForCompiler(c.fset, "gc", nil)
	c.runtime = c.check(tb, "runtime.go", []byte(runtimeStub))
	return c
}

func (c *checker) check(tb testing.TB, name string, source []byte) *types.Package {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	file, err := parser.ParseFile(c.fset, name, source, parser.ParseComments)
	if err != nil {
		tb.Fatalf("%v:\n%s", err, source)
	}
	if c.runtime != nil { // fuzzing goes on for long
		defer c.fset.RemoveFile(c.fset.File(file.FileStart))
	}
	pkg, err := (&types.Config{Importer: c}).Check(name, c.fset, []*ast.File{file}, nil)
	if err != nil {
		tb.Fatalf("%v:\n%s", err, source)
	}
	return pkg
}

// generate makes the file of a list, nil where the list is wrong; every mistake has its place then.
func generate(tb testing.TB, list []byte) []byte {
	tb.Helper()
	var problems diag.List
	remote := toolschema.Read(toolschema.Config{Path: "dir/tools.json", Package: "p"}, list, &problems)
	if err := problems.Err(""); err != nil || remote == nil {
		var all *diag.Error
		if !errors.As(err, &all) || remote != nil {
			tb.Fatalf("a model, or no error: %v", err)
		}
		for i, p := range all.Problems {
			if p.Pos.Line < 1 || p.Pos.Column < 1 || p.Message == "" {
				tb.Fatalf("no place: %v", p)
			}
			if i > 0 && all.Problems[i-1].Pos.Offset > p.Pos.Offset {
				tb.Fatalf("not in order: %v", all)
			}
			if strings.ContainsFunc(p.Message+p.Hint, unicode.IsControl) {
				tb.Fatalf("this is not for a terminal: %q", p.Message+p.Hint)
			}
		}
		return nil
	}
	source, err := emit.Remote(remote)
	if err != nil {
		tb.Fatal(err)
	}
	return source
}

// FuzzTools: whatever the list, there is valid, gofmt-stable Go that compiles, or an error with its
// place.
func FuzzTools(f *testing.F) {
	lists, err := filepath.Glob("../../../golden/tools/*/*.json")
	if err != nil || len(lists) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range lists {
		list, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(list)
	}
	for _, schema := range []string{
		`{"$ref":"#"}`, `{"type":"object","properties":{"a":{"$ref":"#"},"b":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["a"]}`,
		`{"anyOf":[{"anyOf":[{"properties":{"a":{"const":"x"}}},{"properties":{"a":{"const":2}}}]},{"required":["b"]}]}`,
		`{"$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/a"}}},"properties":{"a":{"$ref":"#/$defs/a"}}}`,
		`{"allOf":[{"properties":{"a":{"enum":["b"]}}},{"properties":{"a":{"type":"integer"}}}],"additionalProperties":{"type":["null"]}}`,
		`{"properties":{"a":{"description":"[a]: b\n- c\n1. d\n\n    e\n# f\n//g"},"fields":{"items":[{}]},"v":{"prefixItems":[1]}}}`,
		`{"properties":{"err":{"enum":["nil","","\u0000","A","a"]}},"patternProperties":{"a":{"enum":["x"]}}}`,
	} {
		f.Add([]byte(`[{"name":"a","inputSchema":` + schema + `,"outputSchema":` + schema + `}]`))
	}
	c := newChecker(f)
	f.Fuzz(func(t *testing.T, list []byte) {
		source := generate(t, list)
		if source == nil {
			return
		}
		formatted, err := format.Source(source)
		if err != nil || !bytes.Equal(formatted, source) {
			t.Fatalf("gofmt changes it: %v\n%s\n-- becomes --\n%s", err, source, formatted)
		}
		if again := generate(t, list); !bytes.Equal(again, source) {
			t.Fatalf("a second run differs:\n%s\n-- and --\n%s", source, again)
		}
		c.check(t, "tools_gen.go", source)
	})
}
