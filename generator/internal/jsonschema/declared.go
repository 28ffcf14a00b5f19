package jsonschema

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"go/types"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/directive"
)

// The directives above a type that say what its schema is.
const (
	schemaDirective = "schema" // its keywords, or the type that has its schema
	enumDirective   = "enum"   // its constants are all of its values
	openDirective   = "open"   // its constants are some of its values
)

// directive returns the directives of a kind as one, or nil.
func (n note) directive(kind string) *directive.Directive {
	var found *directive.Directive
	for _, d := range n.directives {
		switch {
		case d.Kind != kind:
		case found == nil:
			found = &d
		default:
			found.Args = append(found.Args[:len(found.Args):len(found.Args)], d.Args...)
		}
	}
	return found
}

// errReported is the problem of a type that [Deriver.CheckDeclared] has reported.
var errReported = errors.New("reported where the type is declared")

// declaredSchema returns the schema that the type gives itself, if it does: //mcptask:schema with
// the keywords of a jsonschema tag, or with as=T for the schema of the type T of its package.
func (g *graph) declaredSchema(named *types.Named) (s *schema, ok bool, err error) {
	note := g.docs.find(named.Obj())
	d := note.directive(schemaDirective)
	if d == nil {
		return nil, false, nil
	}
	where := "directive mcptask:schema of " + named.Obj().Name()
	var parts []part
	for _, arg := range d.Args {
		if arg.Key == "as" && len(d.Args) == 1 {
			s, err := g.schemaAs(named, arg.Value)
			return s, true, err
		}
		p := part{text: arg.Key, key: arg.Key, value: arg.Value, hasValue: arg.HasValue}
		if p.hasValue {
			p.text += "=" + p.value
		}
		parts = append(parts, p)
	}
	s, problems := readType(parts, where)
	if s == nil {
		return nil, true, cmp.Or(first(problems), error(&refusal{"the " + where + " does not say what the type is in JSON",
			"write type=string, or as=T for the schema of another type T"}))
	}
	if problems = append(problems, describe(s, parts, where)...); len(problems) > 0 {
		return nil, true, problems[0]
	}
	s.Description = cmp.Or(s.Description, note.doc)
	return s, true, nil
}

func first(problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	return problems[0]
}

// schemaAs returns the schema of another type in the package of a type.
func (g *graph) schemaAs(named *types.Named, name string) (*schema, error) {
	pkg := named.Obj().Pkg()
	obj, ok := pkg.Scope().Lookup(name).(*types.TypeName)
	if !ok {
		if scope, err := g.scope(pkg); err == nil {
			obj, ok = scope.Lookup(name).(*types.TypeName)
		}
	}
	if !ok {
		return nil, &refusal{fmt.Sprintf("there is no type %s in package %s, as mcptask:schema of %s says", name, pkg.Name(), named.Obj().Name()), ""}
	}
	if other, ok := types.Unalias(obj.Type()).(*types.Named); ok && g.docs.find(other.Obj()).directive(schemaDirective) != nil {
		return nil, &refusal{fmt.Sprintf("mcptask:schema of %s names %s, which has an mcptask:schema itself", named.Obj().Name(), name), "name a type with a schema of its own"}
	}
	return g.typeOf(obj.Type(), true, nil)
}

// CheckDeclared reports what is wrong with the schema that a type of the package gives itself.
func (d *Deriver) CheckDeclared(obj types.Object, at token.Pos, fail Fail) {
	named, ok := types.Unalias(obj.Type()).(*types.Named)
	if !ok {
		return
	}
	g := d.newGraph(Argument, at, fail)
	if _, _, err := g.declaredSchema(named); err != nil {
		g.reportProblem(at, "", err)
	}
}
