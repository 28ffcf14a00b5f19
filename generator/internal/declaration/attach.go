package declaration

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/directive"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema"
)

// place describes the code that a comment group is attached to.
type place struct {
	what  string // for messages: "above a function"
	node  ast.Node
	kinds []string // the directives allowed there
}

// expectedPlaces names the code that must follow each kind of directive.
var expectedPlaces = map[string]string{
	"service": "an interface type",
	"tool":    "a method of a service interface",
	"input":   "a struct type",
	"error":   "a struct type",
	"schema":  "a type that is not an alias",
	"enum":    "a type with constants",
	"open":    "a type with constants",
	"allow":   "a service, a tool (for its arguments and its result too), a type under mcptask:input, or one under mcptask:error",
}

// attachDirectives reads the directives of a file and binds each to the declaration below it.
func (r *reader) attachDirectives(file *ast.File) {
	places := map[*ast.CommentGroup]place{}
	add := func(group *ast.CommentGroup, p place) {
		if group != nil {
			places[group] = p
		}
	}
	add(file.Doc, place{what: "above the package clause"})
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			add(decl.Doc, place{what: "above a function"})
		case *ast.GenDecl:
			r.addDeclPlaces(decl, add)
		}
	}
	for _, group := range file.Comments {
		p, attached := places[group]
		for _, comment := range group.List {
			if directive.IsDirective(comment.Text) {
				r.bindDirective(comment, p, attached)
			} else if stray, meant := directive.FindStray(comment.Text); meant {
				form := directive.Prefix + stray.Kind
				if stray.Kind == "" {
					form = directive.Prefix + strings.Join(directive.Kinds, ", "+directive.Prefix)
				}
				r.addProblem(comment.Pos()+token.Pos(stray.Offset), "this looks like a directive but is not one: "+stray.Problem,
					"write it as "+form+", on its own line, directly above what it belongs to")
			}
		}
	}
}

// addDeclPlaces registers the comments of a declaration of types, constants or variables.
func (r *reader) addDeclPlaces(decl *ast.GenDecl, add func(*ast.CommentGroup, place)) {
	if decl.Tok != token.TYPE {
		add(decl.Doc, place{what: "above a declaration of " + decl.Tok.String()})
		return
	}
	if decl.Lparen.IsValid() {
		add(decl.Doc, place{what: "above a group of types"})
	}
	for _, spec := range decl.Specs {
		spec := spec.(*ast.TypeSpec)
		doc := spec.Doc
		if !decl.Lparen.IsValid() && doc == nil {
			doc = decl.Doc
		}
		r.docs[spec] = doc // kept out of the syntax tree, which an analyzer shares with others
		add(spec.Comment, place{what: "at the end of a line"})
		switch t := spec.Type.(type) {
		case *ast.InterfaceType:
			add(doc, place{what: "above an interface", node: spec, kinds: []string{"service", "allow"}})
			for _, method := range t.Methods.List {
				add(method.Comment, place{what: "at the end of a line"})
				if len(method.Names) == 0 {
					add(method.Doc, place{what: "above an embedded interface"})
					continue
				}
				add(method.Doc, place{what: "above a method of an interface", node: method, kinds: []string{"tool", "allow"}})
			}
		case *ast.StructType:
			add(doc, place{what: "above a struct", node: spec, kinds: []string{"input", "error", "schema", "allow"}})
			for _, field := range t.Fields.List {
				add(field.Doc, place{what: "above a field of a struct"})
				add(field.Comment, place{what: "at the end of a line"})
			}
		default:
			p := place{what: "above a type that is neither an interface nor a struct", node: spec, kinds: []string{"schema", "enum", "open"}}
			if spec.Assign.IsValid() {
				p = place{what: "above an alias"}
			}
			add(doc, p)
		}
	}
}

// bindDirective reads one directive and stores it for the declaration it is attached to.
func (r *reader) bindDirective(comment *ast.Comment, p place, attached bool) {
	d, errs := directive.Scan(comment.Pos(), comment.Text)
	if !slices.Contains(directive.Kinds, d.Kind) {
		r.problems.AddMisspelling(r.fset.Position(comment.Pos()), "unknown directive mcptask:"+d.Kind, directive.Prefix, d.Kind, directive.Kinds,
			"the directives are "+directive.Prefix+strings.Join(directive.Kinds, ", "+directive.Prefix))
		return
	}
	for _, e := range errs {
		r.addProblem(e.Pos, e.Message, e.Hint)
	}
	switch {
	case !attached:
		r.addProblem(comment.Pos(), fmt.Sprintf("mcptask:%s is not above any declaration", d.Kind),
			fmt.Sprintf("put it directly above %s, without a blank line between", expectedPlaces[d.Kind]))
		return
	case !slices.Contains(p.kinds, d.Kind):
		r.addProblem(comment.Pos(), fmt.Sprintf("mcptask:%s is %s", d.Kind, p.what),
			"put it directly above "+expectedPlaces[d.Kind])
		return
	}
	switch d.Kind {
	case "allow":
		r.readAllow(p.node, d)
		return
	case "enum", "open":
		r.checkEnumArguments(d)
		fallthrough
	case "schema":
		r.deriver.CheckDeclared(d.Kind, r.objectOf(p.node.(*ast.TypeSpec).Name), comment.Pos(), r.addProblem)
		return
	}
	switch b := r.directives[p.node]; {
	case b == nil:
		r.directives[p.node] = &block{node: p.node, pos: comment.Pos(), kind: d.Kind, settings: settings{}}
	case b.kind != d.Kind:
		r.addProblem(comment.Pos(), fmt.Sprintf("mcptask:%s and mcptask:%s are above the same type", b.kind, d.Kind), "declare two types, or remove one of the two")
		return
	}
	r.mergeSettings(r.directives[p.node].settings, d)
}

// checkEnumArguments reports the arguments of mcptask:enum and mcptask:open other than "strings" of mcptask:enum.
func (r *reader) checkEnumArguments(d directive.Directive) {
	for i, arg := range d.Args {
		switch {
		case d.Kind == "open":
			r.addProblem(arg.Pos, "mcptask:open has no arguments", "")
		case i > 0 || arg.Key != jsonschema.NamesArgument || arg.HasValue:
			r.addProblem(arg.Pos, "mcptask:enum has no other argument than strings", "write //mcptask:enum strings above an integer type to write the names of its constants")
		}
	}
}
