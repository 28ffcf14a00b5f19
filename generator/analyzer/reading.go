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
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/directive"
)

// generation generates the files of the package once, for the analyzers that need them.
var generation = &analysis.Analyzer{
	Name:             "mcptaskread",
	Doc:              "generate what a package declares, for other analyzers",
	Run:              readPackage,
	ResultType:       reflect.TypeFor[*findings](),
	RunDespiteErrors: true,
}

// findings are the mistakes in a package's declarations, and its stale files.
type findings struct {
	mistakes, stale []analysis.Diagnostic
}

// reader generates the files of one package and collects findings.
type reader struct {
	findings

	pass *analysis.Pass
	src  generator.Source
	// first is the position of the first comment that is or resembles a directive. It is invalid if
	// there is none.
	first token.Pos
	// concerned is set if the package has directives, generated files or lines for mcptaskgen.
	concerned bool
}

// directiveMention matches text that may be a directive.
var directiveMention = regexp.MustCompile(`(?i)mcptask[ \t]*:`)

func readPackage(pass *analysis.Pass) (any, error) {
	r := &reader{pass: pass, src: newSource(pass)}
	if len(pass.TypeErrors) > 0 && !r.filesParse() {
		return &r.findings, nil // the generator does not read incomplete syntax trees
	}
	for _, file := range pass.Files {
		r.scanComments(file)
	}
	if len(r.src.Files) == 0 {
		return &r.findings, nil
	}
	if r.concerned {
		r.generate()
	}
	return &r.findings, nil
}

// newSource returns the package in the form that the generator needs.
func newSource(pass *analysis.Pass) generator.Source {
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
		if src.Dir == "" && filepath.Base(name) != "_cgo_gotypes.go" { // that file is in another directory
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

// fileName returns the absolute path of a file. For a file that cgo generated, it returns the path
// of the source.
func fileName(pass *analysis.Pass, file *ast.File) string {
	name := pass.Fset.Position(file.Package).Filename
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

// filesParse reports whether all files parse, for a package that does not compile.
func (r *reader) filesParse() bool {
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

// readFile reads a file through the driver, which may have an editor's unsaved text.
func (r *reader) readFile(path string) ([]byte, error) {
	if src, err := r.pass.ReadFile(path); err == nil {
		return src, nil
	}
	return os.ReadFile(path)
}

// scanComments looks for directives in a file, and for what else concerns the generator.
func (r *reader) scanComments(file *ast.File) {
	if generator.HasHeader(file) {
		r.concerned = true
		return
	}
	test := strings.HasSuffix(fileName(r.pass, file), "_test.go")
	for _, group := range file.Comments {
		for _, comment := range group.List {
			switch {
			case !directiveMention.MatchString(comment.Text):
				r.concerned = r.concerned || strings.HasPrefix(comment.Text, "//go:generate") && strings.Contains(comment.Text, "mcptaskgen")
			case !test:
				r.concerned = true
				if !r.first.IsValid() {
					r.first = comment.Pos()
				}
			case directive.IsDirective(comment.Text):
				r.addMistake(comment.Pos(), "the generator does not read directives in test files", "move the declaration into a file that is not a test")
			}
		}
	}
}

// addMistake reports a mistake once, with a fix if there is one.
func (r *reader) addMistake(pos token.Pos, message, hint string) *analysis.Diagnostic {
	if hint != "" {
		message += "; " + hint
	}
	if slices.ContainsFunc(r.mistakes, func(o analysis.Diagnostic) bool { return o.Pos == pos && o.Message == message }) {
		return nil
	}
	r.mistakes = append(r.mistakes, analysis.Diagnostic{Pos: pos, Message: message, SuggestedFixes: r.suggestSpelling(pos)})
	return &r.mistakes[len(r.mistakes)-1]
}

// generate generates the package again, and reports mistakes or files that differ.
func (r *reader) generate() {
	out, err := generator.GenerateSource(context.Background(), r.src)
	if err == nil {
		if err = r.compareFiles(out); err == nil {
			return
		}
	}
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	for _, err := range errs {
		r.addError(err)
	}
}

// addError reports an error of the generator.
func (r *reader) addError(err error) {
	var list *diag.Error
	if !errors.As(err, &list) {
		message, _, _ := strings.Cut(err.Error(), "\n")
		r.addMistake(r.fallbackPosition(), "mcptaskgen fails here: "+message, "")
		return
	}
	for _, p := range list.Problems {
		pos, ok := r.findPosition(p.Pos)
		if !ok {
			p.Message = fmt.Sprintf("%s: %s", p.Pos, p.Message)
			pos = r.fallbackPosition()
		}
		if d := r.addMistake(pos, p.Message, p.Hint); d != nil && ok && p.Old != "" && r.hasText(pos, p.Old) {
			d.SuggestedFixes = []analysis.SuggestedFix{{
				Message:   "write " + p.New,
				TextEdits: []analysis.TextEdit{{Pos: pos, End: pos + token.Pos(len(p.Old)), NewText: []byte(p.New)}},
			}}
		}
	}
}

// fallbackPosition returns the position for messages without one: the first directive, or else the
// first file.
func (r *reader) fallbackPosition() token.Pos {
	if r.first.IsValid() {
		return r.first
	}
	return r.src.Files[0].Package
}

// findPosition converts a position in the generator's message.
func (r *reader) findPosition(p token.Position) (token.Pos, bool) {
	name := diag.Absolute(r.src.Dir, filepath.FromSlash(p.Filename))
	for _, file := range r.pass.Files {
		if fileName(r.pass, file) != name {
			continue
		}
		f := r.pass.Fset.File(file.FileStart)
		for n := 1; n <= f.LineCount(); n++ { // search, because cgo moves lines
			start := f.LineStart(n)
			if at := r.pass.Fset.Position(start); at.Line == p.Line && filepath.Base(at.Filename) == filepath.Base(name) {
				return min(start+token.Pos(max(p.Column-1, 0)), file.FileEnd), true
			}
		}
		return file.Package, true
	}
	return token.NoPos, false
}
