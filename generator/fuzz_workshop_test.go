package generator

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/packages"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/declaration"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/emit"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/reference"
)

// runtimeStub replaces the runtime. Tests of the generator only need its names.
const runtimeStub = `package mcptask

import (
	"context"
	"time"
)

const (
	GeneratedV1 = true
	NoArguments = "{}"

	StatusWorking, StatusInputRequired, StatusCompleted, StatusFailed, StatusCancelled Status = "w", "i", "c", "f", "x"

)

type (
	Task          struct{}
	Result        struct{}
	ToolError     struct{}
	WorkflowRunner interface {
		RunWorkflow(ctx context.Context, task *Task, workflow string, out any, args ...any) error
	}
	Error         struct{}
	Token         string
	Status        string
	TaskSupport   string
	Lost          string
	Change        string
	Leave         string
	Fallback      string
	Conn          interface{ Close() error }
	CallOption    func()
	Call[Out any] struct{}
	Question      struct{}
	Answerer      struct{}
	Capabilities  map[string]string
	Tool          struct{}
	Policy        struct {
		Task                             TaskSupport
		TTL, Poll, Grace, Wait, Deadline time.Duration
		Concurrency                      int
		OnLost                           Lost
		OnChange                         Change
		OnLeave                          Leave
		Attempts                         int
		Immediate                        string
	}
	Annotations struct{ ReadOnly, Destructive, Idempotent, OpenWorld *bool }
	InputSpec   struct{ Name, Message, Schema string }
	ErrorSpec   struct{ Code, Description, Schema string }
	ToolSpec    struct {
		Entry string
		Name, Title, Description, InputSchema, OutputSchema string
		Was                                                 []string
		Annotations                                         Annotations
		Policy                                              Policy
		Questions                                           []InputSpec
	}
	Tools struct {
		Service, Prefix string
		Impl            any
		Fallback        Fallback
		Asks            bool
		Capabilities    Capabilities
		Errors          []ErrorSpec
		Tools           []Tool
	}
)

const (
	TaskForbidden, TaskOptional, TaskRequired TaskSupport = "", "o", "r"
	RestartWhenLost                           Lost        = "r"
	RunOnChange                               Change      = "r"
	KeepOnLeave                               Leave       = "k"
	FallbackTools                             Fallback    = "t"
)

func (t Token) Renamed(string, ...string) Token { return t }

func Hint(v bool) *bool { return &v }

func NewTool[In, Out any](ToolSpec, func(context.Context, *Task, In) (Out, error)) (t Tool) { return }

func Ask[T any](context.Context, *Task, InputSpec, string, string) (t T, err error) { return }

func Asked[T any](*Task, int) (t T, err error) { return }
func EncodeObject[T any](any, map[string]T) (data []byte, err error) { return }
func DecodeObject[T any]([]byte, any, *map[string]T) (err error) { return }

func Answer[T any](InputSpec, func(context.Context, Question) (T, error)) (a Answerer) { return }

func RunWorkflow[Out any](ctx context.Context, runner WorkflowRunner, task *Task, workflow string, args ...any) (out Out, err error) {
	return
}

func Run[Out any](context.Context, Conn, string, any, ...CallOption) (out Out, err error) { return }

func Start[Out any](context.Context, Conn, string, any, ...CallOption) (call *Call[Out], err error) { return }

func WithoutNull[In any](in In, _ string) any { return in }

func Resume[Out any](Conn, string, Token, ...CallOption) (call *Call[Out], err error) { return }
`

// workshop runs the generator on declarations in memory. The go command takes longer than
// everything else, so it runs only once, for the packages that declarations may import. A
// workshop is not safe for concurrent use.
type workshop struct {
	dir      string // the package's directory on disk, for code that reads files
	fset     *token.FileSet
	imports  map[string]*types.Package
	protocol emit.Protocol
}

func newWorkshop(tb testing.TB) *workshop {
	tb.Helper()
	std, err := loadStd()
	if err != nil {
		tb.Fatal(err)
	}
	w := &workshop{dir: tb.TempDir(), fset: stdFiles, imports: maps.Clone(std)}
	stub, failures := w.check(tb, declaration.Runtime, map[string][]byte{"runtime.go": []byte(runtimeStub)})
	if len(failures) > 0 {
		tb.Fatal(failures)
	}
	w.imports[declaration.Runtime] = stub
	if w.protocol, err = readProtocol(nil); err != nil {
		tb.Fatal(err)
	}
	return w
}

// stdFiles has the positions of the packages of loadStd and of the files that workshops read.
var stdFiles = token.NewFileSet()

// loadStd loads the packages of the standard library that declarations may import. It does so
// once for all workshops.
var loadStd = sync.OnceValues(func() (map[string]*types.Package, error) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedTypes | packages.NeedExportFile, Fset: stdFiles},
		"context", "encoding", "encoding/json", "errors", "fmt", "iter", "log/slog", "math/big", "net", "net/netip", "net/url", "os", "slices",
		"strings", "sync", "time")
	if err != nil {
		return nil, err
	}
	std := map[string]*types.Package{"unsafe": types.Unsafe}
	for _, p := range loaded {
		if !p.Types.Complete() {
			return nil, fmt.Errorf("%s: %v", p.PkgPath, p.Errors)
		}
		std[p.PkgPath] = p.Types
	}
	return std, nil
})

// Import returns a package that newWorkshop has loaded.
func (w *workshop) Import(path string) (*types.Package, error) {
	if p, ok := w.imports[path]; ok {
		return p, nil
	}
	return nil, errors.New("no such package")
}

// check type-checks sources in the order of their names.
func (w *workshop) check(tb testing.TB, path string, sources map[string][]byte) (pkg *types.Package, failures []types.Error) {
	tb.Helper()
	var files []*ast.File
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		file, err := parser.ParseFile(w.fset, name, sources[name], parser.SkipObjectResolution)
		if file != nil && path != declaration.Runtime {
			defer w.fset.RemoveFile(w.fset.File(file.FileStart))
		}
		if err != nil && name != sourceName {
			tb.Fatalf("%v:\n%s", err, sources[name])
		}
		files = append(files, file)
	}
	config := types.Config{Importer: w, GoVersion: "go1.25", Error: func(err error) {
		var failure types.Error
		if errors.As(err, &failure) {
			failures = append(failures, failure)
		}
	}}
	pkg, _ = config.Check(path, w.fset, files, nil) // Error collects all of them
	return pkg, failures
}

// The names of the files of a package.
const sourceName, otherName = "a.go", "b.go"

// load loads a package as package load does, without the go command. It returns nil if the source
// does not parse.
func (w *workshop) load(tb testing.TB, source []byte, problems *diag.List) *load.Package {
	tb.Helper()
	path := filepath.Join(w.dir, sourceName)
	if err := os.WriteFile(path, source, 0o600); err != nil {
		tb.Fatal(err)
	}
	file, err := parser.ParseFile(w.fset, path, source, parser.ParseComments|parser.SkipObjectResolution)
	var list scanner.ErrorList
	if errors.As(err, &list) {
		for _, e := range list {
			problems.Add(e.Pos, e.Msg, "")
		}
		return nil
	}
	defer func() {
		if r := recover(); r != nil { // struct{ A int; A struct{ A T[struct{}] } }, for one, crashes the compiler too
			tb.Skipf("go/types cannot check this: %v", r)
		}
	}()
	info := &types.Info{Implicits: map[ast.Node]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if imported := w.imports[name]; err == nil && imported != nil {
			pkgName := types.NewPkgName(spec.Pos(), nil, imported.Name(), imported)
			info.Implicits[spec] = pkgName
			if spec.Name != nil {
				info.Defs[spec.Name] = pkgName
			}
		}
	}
	return load.Check(tb.Context(), &analysis.Pass{
		Fset: w.fset, Files: []*ast.File{file}, Pkg: types.NewPackage("example.com/p", "p"), TypesInfo: info, TypesSizes: types.SizesFor("gc", "amd64"),
	})
}

// generate returns the file of a declaration and the reference of its tools. It returns nothing
// if the declaration is invalid or declares nothing.
func (w *workshop) generate(tb testing.TB, source []byte) (content []byte, docs string) {
	tb.Helper()
	base := w.fset.Base()
	defer func() {
		if file := w.fset.File(token.Pos(base)); file != nil {
			w.fset.RemoveFile(file)
		}
	}()
	var problems diag.List
	pkg := w.load(tb, source, &problems)
	if pkg == nil {
		checkError(tb, problems.Err(w.dir), sourceName, source)
		return nil, ""
	}
	m := declaration.Read(w.fset, pkg, w.protocol.Names(), false, &problems)
	if err := problems.Err(w.dir); err != nil {
		checkError(tb, err, sourceName, source)
		return nil, ""
	}
	if m == nil {
		return nil, ""
	}
	m.Header = commandline.Flags{}.Header()
	content, err := emit.File(m, w.protocol)
	if err != nil {
		tb.Fatalf("%v\n%s", err, source)
	}
	if docs, err = reference.Write([]*model.Package{m}); err != nil {
		tb.Fatalf("%v\n%s", err, source)
	}
	return content, docs
}

// checkError checks an error about a file. It must list problems with their positions, in order,
// and in text that a terminal can show.
func checkError(tb testing.TB, err error, name string, source []byte) {
	tb.Helper()
	var all *diag.Error
	if !errors.As(err, &all) || len(all.Problems) == 0 {
		tb.Fatalf("no problems: %v\n%s", err, source)
	}
	checkProblems(tb, all.Problems, name, source)
}

// checkProblems checks the problems of a file.
func checkProblems(tb testing.TB, problems []diag.Problem, name string, source []byte) {
	tb.Helper()
	lines := bytes.Split(source, []byte("\n"))
	for i, p := range problems {
		switch {
		case p.Message == "" || strings.TrimSpace(p.Message) != p.Message:
			tb.Errorf("no message: %q", p.Message)
		case p.Pos.Filename != name:
			tb.Errorf("%s is not about the file", p)
		case p.Pos.Line < 1 || p.Pos.Line > len(lines) || p.Pos.Column < 1 || p.Pos.Column > len(lines[p.Pos.Line-1])+2: // the parser puts EOF behind a line break
			tb.Errorf("the position is outside the file: %s", p)
		case i > 0 && cmp.Or(cmp.Compare(problems[i-1].Pos.Line, p.Pos.Line), cmp.Compare(problems[i-1].Pos.Column, p.Pos.Column)) > 0:
			tb.Errorf("not in order: %s", p)
		}
		for _, text := range []string{p.Message, p.Hint} {
			if strings.ContainsFunc(text, unicode.IsControl) || !utf8.ValidString(text) || len(text) > 4000 {
				tb.Errorf("a terminal cannot show this: %.4000q", text)
			}
		}
	}
	if tb.Failed() {
		tb.Fatalf("the file:\n%s", source)
	}
}

// checkDeclaration generates from a declaration and checks the result as checkList does.
func (w *workshop) checkDeclaration(tb testing.TB, source []byte) (content []byte) {
	tb.Helper()
	bounded(tb, len(source), func() {
		var docs string
		content, docs = w.generate(tb, source)
		again, docsAgain := w.generate(tb, source)
		if !bytes.Equal(content, again) || docs != docsAgain {
			tb.Fatalf("a second run differs:\n%s\n-- and --\n%s", content, again)
		}
		if content != nil {
			w.checkGo(tb, source, content)
		}
	})
	return content
}

// checkGo checks a generated file next to its source. If the source does not compile, the
// generated file must still have no mistake of its own.
func (w *workshop) checkGo(tb testing.TB, source, content []byte) *types.Package {
	tb.Helper()
	broken := false
	formatted, err := format.Source(content)
	if err != nil || !bytes.Equal(formatted, content) {
		tb.Fatalf("gofmt changes it: %v\n%s\n-- becomes --\n%s", err, content, formatted)
	}
	files := map[string][]byte{otherName: content}
	if source != nil {
		_, failures := w.check(tb, "example.com/p", map[string][]byte{sourceName: source})
		broken = len(failures) > 0
		files[sourceName] = source
	}
	pkg, failures := w.check(tb, "example.com/p", files)
	for _, f := range failures {
		if !broken || f.Fset.Position(f.Pos).Filename == otherName && !strings.Contains(f.Msg, "redeclared in this block") {
			tb.Fatalf("%v\n%s\n-- becomes --\n%s", f, source, content)
		}
	}
	return pkg
}

// patience is the time that one input may take on a busy machine.
const patience = time.Minute

// bounded runs f. It fails the test if f does not end, or if it allocates more than the size of its input justifies.
func bounded(tb testing.TB, size int, f func()) {
	tb.Helper()
	timer := time.AfterFunc(patience, func() { panic("this takes too long") })
	defer timer.Stop()
	before := allocated()
	f()
	if n, limit := allocated()-before, uint64(256<<20+size*4096); n > limit {
		tb.Fatalf("%d bytes of input allocate %d MB, want at most %d", size, n>>20, limit>>20)
	}
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
