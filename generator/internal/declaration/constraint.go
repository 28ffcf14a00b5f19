package declaration

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/build/constraint"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// readConstraint finds the build constraint that the generated file shares with the declarations.
func (r *reader) readConstraint(out *model.Package, files []*ast.File) {
	first := ""
	for i, file := range r.declaringFiles(files) {
		text := r.constraintOf(file)
		if i == 0 {
			first = text
		} else if text != first {
			r.addProblem(file.Package, fmt.Sprintf("the files that declare %s have different build constraints, %q and %q", out.Name, first, text),
				"give these files the same //go:build line, because they share one generated file")
			return
		}
	}
	out.Constraint = first
}

// declaringFiles returns the files that have directives for which code is generated.
func (r *reader) declaringFiles(files []*ast.File) []*ast.File {
	nodes := slices.Collect(maps.Keys(r.directives))
	for _, spec := range r.enums {
		nodes = append(nodes, spec)
	}
	var list []*ast.File
	for _, file := range files {
		if slices.ContainsFunc(nodes, func(n ast.Node) bool { return file.FileStart <= n.Pos() && n.Pos() < file.FileEnd }) {
			list = append(list, file)
		}
	}
	return list
}

// constraintOf returns the constraint of a file's name and //go:build line.
func (r *reader) constraintOf(file *ast.File) string {
	text := nameConstraint(filepath.Base(r.fset.Position(file.Package).Filename))
	for _, group := range file.Comments {
		if group.Pos() > file.Package {
			break
		}
		for _, comment := range group.List {
			expr, err := constraint.Parse(comment.Text)
			if err != nil || !constraint.IsGoBuild(comment.Text) {
				continue
			}
			if text == "" {
				text = expr.String()
			} else {
				text = "(" + expr.String() + ") && " + text
			}
		}
	}
	return text
}

// nameConstraint returns the constraint in a file name: linux for x_linux.go. Only go/build knows
// the names of systems, and it can only tell whether a file name matches one.
func nameConstraint(name string) string {
	fits := func(goos, goarch string) bool {
		context := build.Context{
			Compiler: "gc", GOOS: goos, GOARCH: goarch,
			OpenFile: func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("package p")), nil },
		}
		ok, err := context.MatchFile("", name)
		return ok && err == nil
	}
	const none = "none"
	words := strings.Split(strings.TrimSuffix(name, ".go"), "_")
	last := words[len(words)-1]
	switch {
	case fits(none, none):
		return ""
	case fits(last, none), fits(none, last):
		return last
	}
	return words[max(0, len(words)-2)] + " && " + last
}
