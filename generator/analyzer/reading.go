package analyzer

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/directive"
)

// reading generates what the package declares, once for the analyzers that need it.
var reading = &analysis.Analyzer{
	Name:             "mcptaskread",
	Doc:              "generate what a package declares, for other analyzers",
	Run:              read,
	ResultType:       reflect.TypeFor[*findings](),
	RunDespiteErrors: true,
}

// findings are what is wrong with the declarations of a package and with what was generated from them.
type findings struct {
	mistakes, stale []analysis.Diagnostic
}

// reader reads one package.
type reader struct {
	findings

	pass *analysis.Pass
	src  generator.Source
	// first is where the first directive stands, or what was meant as one; invalid where none does.
	first     token.Pos
	generated []*ast.File
	runs      []run
}

// run is one time that the generator runs.
type run struct {
	line *commandline.Line
	pos  token.Pos // of the line for go generate; invalid where it stands elsewhere or nowhere
}

// mentions finds what may be a directive.
var mentions = regexp.MustCompile(`(?i)mcptask[ \t]*:`)

func read(pass *analysis.Pass) (any, error) {
	r := &reader{pass: pass, src: source(pass)}
	if len(pass.TypeErrors) > 0 && !r.parses() {
		return &r.findings, nil // half a tree is not what the generator reads
	}
	for _, file := range pass.Files {
		r.scan(file)
	}
	if len(r.src.Files) == 0 {
		return &r.findings, nil
	}
	if err := r.chooseRuns(); err != nil {
		return nil, err
	}
	made := r.generate()
	if len(r.mistakes) == 0 {
		r.compare(made)
	}
	return &r.findings, nil
}

// source is what the generator needs of the package.
func source(pass *analysis.Pass) generator.Source {
	src := generator.Source{
		Path: pass.Pkg.Path(), Fset: pass.Fset, Ignored: pass.IgnoredFiles,
		Imports: map[string]*types.Package{}, Sizes: pass.TypesSizes, Version: pass.Pkg.GoVersion(),
	}
	for _, file := range pass.Files {
		name := fileName(pass, file)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src.Files = append(src.Files, file)
		if src.Dir == "" && filepath.Base(name) != "_cgo_gotypes.go" { // which is none of the folder
			src.Dir = filepath.Dir(name)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if name := pass.TypesInfo.PkgNameOf(spec); err == nil && name != nil {
				src.Imports[path] = name.Imported()
			}
		}
	}
	return src
}

// fileName is the absolute path of a file; of what cgo made, that of its source.
func fileName(pass *analysis.Pass, file *ast.File) string {
	name := pass.Fset.Position(file.Package).Filename
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

// parses tells whether the files of a package that does not compile are whole.
func (r *reader) parses() bool {
	for _, file := range r.src.Files {
		name := fileName(r.pass, file)
		src, err := r.readFile(name)
		if err != nil {
			return false
		}
		if _, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution); err != nil {
			return false
		}
	}
	return true
}

// readFile reads a file as the driver has it, an editor's unsaved text included.
func (r *reader) readFile(path string) ([]byte, error) {
	if src, err := r.pass.ReadFile(path); err == nil {
		return src, nil
	}
	return os.ReadFile(path)
}

// scan looks a file's comments over.
func (r *reader) scan(file *ast.File) {
	if generator.HasHeader(file) {
		r.generated = append(r.generated, file)
		return
	}
	name := fileName(r.pass, file)
	test := strings.HasSuffix(name, "_test.go")
	for _, group := range file.Comments {
		for _, comment := range group.List {
			switch {
			case mentions.MatchString(comment.Text):
				if test && directive.Is(comment.Text) {
					r.mistake(comment.Pos(), "a directive in a test file is not read", "move it, with what it belongs to, into a file that is no test")
				} else if !test && !r.first.IsValid() {
					r.first = comment.Pos()
				}
			case r.pass.Fset.Position(comment.Pos()).Column == 1:
				line, err := commandline.ParseLine(comment.Text, name, r.pass.Pkg.Name())
				if err != nil {
					r.mistake(comment.Pos(), "go generate fails here: "+err.Error(), "")
				} else if line != nil {
					r.runs = append(r.runs, run{line, comment.Pos()})
				}
			}
		}
	}
}

func (r *reader) mistake(pos token.Pos, message, hint string) {
	if hint != "" {
		message += "; " + hint
	}
	d := analysis.Diagnostic{Pos: pos, Message: message}
	if !slices.ContainsFunc(r.mistakes, func(o analysis.Diagnostic) bool { return o.Pos == pos && o.Message == message }) {
		d.SuggestedFixes = r.respell(pos)
		r.mistakes = append(r.mistakes, d)
	}
}

// chooseRuns leaves the runs of lines of the package that are for it, and finds another way where there
// are none, as long as there is anything to generate.
func (r *reader) chooseRuns() error {
	covers := func(run run) bool { return run.line.Covers(r.src.Dir, r.src.Path) }
	own := slices.ContainsFunc(r.runs, covers)
	r.runs = slices.DeleteFunc(r.runs, func(run run) bool { return !run.line.ReadsTools() && !covers(run) })
	if own || !r.first.IsValid() && len(r.generated) == 0 {
		return nil
	}
	above, err := new(commandline.Lines).Above(r.src.Dir, r.src.Path)
	if err != nil {
		return err
	}
	for _, line := range above {
		r.runs = append(r.runs, run{line: line})
	}
	if len(above) == 0 {
		plain, err := commandline.ParseLine("//go:generate mcptaskgen", filepath.Join(r.src.Dir, "x.go"), r.pass.Pkg.Name())
		if err != nil {
			return err
		}
		r.runs = append(r.runs, run{line: plain})
	}
	return nil
}

// made is what the runs make, by absolute path, and what none of them does.
type made struct {
	files    map[string][]byte
	by       map[string]run
	leftOver []string
}

// generate does every run.
func (r *reader) generate() made {
	m := made{files: map[string][]byte{}, by: map[string]run{}}
	var over []string // by every run so far
	first := true
	for _, run := range r.runs {
		var out generator.Output
		var err error
		if run.line.ReadsTools() {
			out, err = run.line.Generate(context.Background(), run.line.Packages)
		} else {
			out, err = run.line.GenerateSource(context.Background(), r.src)
		}
		if err != nil {
			r.refused(run, err)
			continue
		}
		for name, content := range out.Files {
			path := filepath.Join(out.Root, filepath.FromSlash(name))
			m.files[path], m.by[path] = content, run
		}
		if run.line.ReadsTools() {
			continue
		}
		var these []string
		for _, name := range out.LeftOver {
			path := filepath.Join(out.Root, filepath.FromSlash(name))
			if first || slices.Contains(over, path) {
				these = append(these, path)
			}
		}
		over, first = these, false
	}
	for _, path := range over {
		if m.files[path] == nil {
			m.leftOver = append(m.leftOver, path)
		}
	}
	return m
}

// refused reports what a run says is wrong.
func (r *reader) refused(run run, err error) {
	at := r.at(run)
	var list *diag.Error
	if !errors.As(err, &list) {
		message, _, _ := strings.Cut(err.Error(), "\n")
		r.mistake(at, "mcptaskgen fails here: "+message, "")
		return
	}
	for _, p := range list.Problems {
		pos, ok := r.position(p.Pos)
		if !ok {
			p.Message = fmt.Sprintf("%s: %s", p.Pos, p.Message)
			pos = at
		}
		r.mistake(pos, p.Message, p.Hint)
	}
}

// at is where a run is spoken of: its line, else the first directive, else the first file.
func (r *reader) at(run run) token.Pos {
	switch {
	case run.pos.IsValid():
		return run.pos
	case r.first.IsValid():
		return r.first
	}
	return r.src.Files[0].Package
}

// position finds a place that the generator names.
func (r *reader) position(p token.Position) (token.Pos, bool) {
	name := filepath.FromSlash(p.Filename)
	if !filepath.IsAbs(name) {
		name = filepath.Join(r.src.Dir, name)
	}
	for _, file := range r.pass.Files {
		if fileName(r.pass, file) != name {
			continue
		}
		f := r.pass.Fset.File(file.FileStart)
		for n := 1; n <= f.LineCount(); n++ { // cgo moves lines
			start := f.LineStart(n)
			if at := r.pass.Fset.Position(start); at.Line == p.Line && filepath.Base(at.Filename) == filepath.Base(name) {
				return min(start+token.Pos(max(p.Column-1, 0)), file.FileEnd), true
			}
		}
		return file.Package, true
	}
	return token.NoPos, false
}
