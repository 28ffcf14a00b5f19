package declaration

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/directive"
)

// place is what a comment group stands above.
type place struct {
	what string // for messages: "a function"
	node ast.Node
	kind string // the directive that may stand there; empty where none may
}

// belongs says for each kind of directive where it may stand.
var belongs = map[string]string{
	"service": "an interface type",
	"tool":    "a method of a service interface",
	"input":   "a struct type",
}

// attach reads every directive of a file and binds it to what it stands above.
func (r *reader) attach(file *ast.File) {
	places := map[*ast.CommentGroup]place{}
	add := func(group *ast.CommentGroup, p place) {
		if group != nil {
			places[group] = p
		}
	}
	add(file.Doc, place{what: "the package clause"})
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			add(decl.Doc, place{what: "a function"})
		case *ast.GenDecl:
			r.declPlaces(decl, add)
		}
	}
	for _, group := range file.Comments {
		p, attached := places[group]
		for _, comment := range group.List {
			if directive.Is(comment.Text) {
				r.bind(comment, p, attached)
			} else if stray, meant := directive.Meant(comment.Text); meant {
				form := directive.Prefix + stray.Kind
				if stray.Kind == "" {
					form = directive.Prefix + strings.Join(directive.Kinds, ", "+directive.Prefix)
				}
				r.fail(comment.Pos()+token.Pos(stray.Offset), "this looks like a directive but is none: "+stray.Problem,
					"write it as "+form+", on a line of its own, directly above what it belongs to")
			}
		}
	}
}

// declPlaces registers the comments of a declaration of types, constants or variables.
func (r *reader) declPlaces(decl *ast.GenDecl, add func(*ast.CommentGroup, place)) {
	if decl.Tok != token.TYPE {
		add(decl.Doc, place{what: "a declaration of " + decl.Tok.String()})
		return
	}
	if decl.Lparen.IsValid() {
		add(decl.Doc, place{what: "a group of types"})
	}
	for _, spec := range decl.Specs {
		spec := spec.(*ast.TypeSpec)
		doc := spec.Doc
		if !decl.Lparen.IsValid() && doc == nil {
			doc = decl.Doc
		}
		r.docs[spec] = doc // not into the tree, which an analyzer shares with others
		add(spec.Comment, place{what: "nothing: it trails a line"})
		switch t := spec.Type.(type) {
		case *ast.InterfaceType:
			add(doc, place{what: "an interface", node: spec, kind: "service"})
			for _, method := range t.Methods.List {
				add(method.Comment, place{what: "nothing: it trails a line"})
				if len(method.Names) == 0 {
					add(method.Doc, place{what: "an embedded interface"})
					continue
				}
				add(method.Doc, place{what: "a method of an interface", node: method, kind: "tool"})
			}
		case *ast.StructType:
			add(doc, place{what: "a struct", node: spec, kind: "input"})
			for _, field := range t.Fields.List {
				add(field.Doc, place{what: "a field of a struct"})
				add(field.Comment, place{what: "nothing: it trails a line"})
			}
		default:
			what := "a type that is neither an interface nor a struct"
			if spec.Assign.IsValid() {
				what = "an alias"
			}
			add(doc, place{what: what})
		}
	}
}

// bind reads one directive and keeps it for the node it stands above.
func (r *reader) bind(comment *ast.Comment, p place, attached bool) {
	d, errs := directive.Scan(comment.Pos(), comment.Text)
	if !slices.Contains(directive.Kinds, d.Kind) {
		hint := "the directives are " + directive.Prefix + strings.Join(directive.Kinds, ", "+directive.Prefix)
		if near := diag.Nearest(strings.ToLower(d.Kind), directive.Kinds); near != "" {
			hint = "did you mean " + directive.Prefix + near + "?"
		}
		r.fail(comment.Pos(), "unknown directive mcptask:"+d.Kind, hint)
		return
	}
	for _, e := range errs {
		r.fail(e.Pos, e.Message, e.Hint)
	}
	switch {
	case !attached:
		r.fail(comment.Pos(), fmt.Sprintf("mcptask:%s stands above nothing", d.Kind),
			fmt.Sprintf("put it directly above %s, without a blank line between", belongs[d.Kind]))
		return
	case p.kind != d.Kind:
		r.fail(comment.Pos(), fmt.Sprintf("mcptask:%s stands above %s", d.Kind, p.what),
			"it belongs above "+belongs[d.Kind])
		return
	}
	if r.found[p.node] == nil {
		r.found[p.node] = &block{pos: comment.Pos(), settings: settings{}}
	}
	r.merge(r.found[p.node].settings, d)
}
