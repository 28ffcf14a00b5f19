package analyzer

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/directive"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
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

type reader struct {
	findings

	pass  *analysis.Pass
	files []*ast.File // without tests
	dir   string
	// first is the position of the first comment that is or resembles a directive. It is invalid if
	// there is none.
	first token.Pos
	// concerned is set if the package has directives, generated files or lines for mcptaskgen.
	concerned bool
}

// directiveMention matches text that may be a directive.
var directiveMention = regexp.MustCompile(`(?i)mcptask[ \t]*:`)

func readPackage(pass *analysis.Pass) (any, error) {
	r := &reader{pass: pass}
	r.files, r.dir = load.FindSources(pass)
	if len(pass.TypeErrors) > 0 && !r.filesParse() {
		return &r.findings, nil // the generator does not read incomplete syntax trees
	}
	for _, file := range pass.Files {
		r.scanComments(file)
	}
	if r.concerned && len(r.files) > 0 {
		r.generate()
	}
	return &r.findings, nil
}

// filesParse reports whether all files parse, for a package that does not compile.
func (r *reader) filesParse() bool {
	for _, file := range r.files {
		name := load.FileName(r.pass.Fset, file)
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

// scanComments looks for directives, for the header of a generated file, and for go:generate lines
// of mcptaskgen.
func (r *reader) scanComments(file *ast.File) {
	if _, generated := load.FindHeader(file); generated {
		r.concerned = true
		return
	}
	test := strings.HasSuffix(load.FileName(r.pass.Fset, file), "_test.go")
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

func (r *reader) addMistake(pos token.Pos, message, hint string) {
	if hint != "" {
		message += "; " + hint
	}
	if slices.ContainsFunc(r.mistakes, func(o analysis.Diagnostic) bool { return o.Pos == pos && o.Message == message }) {
		return
	}
	r.mistakes = append(r.mistakes, analysis.Diagnostic{Pos: pos, Message: message})
}

// generate generates the package again, and reports mistakes or files that differ.
func (r *reader) generate() {
	out, err := generator.GeneratePass(context.Background(), r.pass)
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
		r.addMistake(pos, p.Message, p.Hint)
	}
}

// fallbackPosition returns the position for messages without one: the first directive, or else the
// first file.
func (r *reader) fallbackPosition() token.Pos {
	if r.first.IsValid() {
		return r.first
	}
	return r.files[0].Package
}

// findPosition converts a position in the generator's message.
func (r *reader) findPosition(p token.Position) (token.Pos, bool) {
	name := diag.Absolute(r.dir, filepath.FromSlash(p.Filename))
	for _, file := range r.pass.Files {
		if load.FileName(r.pass.Fset, file) != name {
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
