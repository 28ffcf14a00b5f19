package jsonschema

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"go/types"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/directive"
)

// The directives above a type that give its schema.
const (
	schemaDirective = "schema" // its keywords, or the type that has its schema
	enumDirective   = "enum"   // its constants are all of its values
	openDirective   = "open"   // its constants are some of its values
)

// errReported is the problem of a type that [Deriver.CheckDeclared] has reported.
var errReported = errors.New("reported where the type is declared")

// CheckDeclared reports the faults of a directive above a type of the package.
func (d *Deriver) CheckDeclared(kind string, obj types.Object, at token.Pos, fail Fail) {
	named, ok := types.Unalias(obj.Type()).(*types.Named)
	if !ok {
		return
	}
	g := d.newGraph(Argument, at, fail)
	var err error
	if kind == schemaDirective {
		_, _, err = g.declaredSchema(named)
	} else {
		err = g.checkEnum(named, kind)
	}
	if err != nil {
		g.reportProblem(at, "", err)
	}
}

// ownError returns the error of a directive above a type, unless CheckDeclared has reported it.
func (g *graph) ownError(named *types.Named, err error) error {
	if err != nil && g.docs.isOwn(named.Obj()) {
		return errReported
	}
	return err
}

// declaredSchema returns the schema that the type gives itself, if it does: //mcptask:schema with
// the keywords of a jsonschema tag, or with as=T for the schema of the type T of its package.
func (g *graph) declaredSchema(named *types.Named) (s *schema, ok bool, err error) {
	note := g.docs.find(named.Obj())
	d := note.directives[schemaDirective]
	if d == nil {
		return nil, false, nil
	}
	where := "directive mcptask:schema of " + named.Obj().Name()
	var parts []part
	if name := namedSchema(d); name != "" {
		s, err := g.schemaAs(named, name)
		return s, true, err
	}
	for i, arg := range d.Args {
		if before := d.Args[max(0, i-1)]; !arg.HasValue && before.HasValue && !before.Quoted && nearestKeyword(arg.Key, "") == "" {
			return nil, true, &refusal{fmt.Sprintf("%q follows %s=%s in the %s", arg.Key, before.Key, before.Value, where),
				fmt.Sprintf("quote a value of several words: write %s=%q", before.Key, before.Value+" ...")}
		}
		p := part{text: arg.Key, key: arg.Key, value: arg.Value, hasValue: arg.HasValue}
		if p.hasValue {
			p.text += "=" + p.value
		}
		parts = append(parts, p)
	}
	switch s, err = readType(parts, where); {
	case err != nil:
		return nil, true, err
	case s == nil:
		return nil, true, &refusal{"the " + where + " does not say what the type is in JSON", "write type=string, or as=T for the schema of another type T"}
	}
	if problems := describe(s, parts, where); len(problems) > 0 {
		return nil, true, problems[0]
	}
	g.noteFormats(named.Obj(), named.Obj().Name(), parts)
	s.Description = cmp.Or(s.Description, note.doc)
	return s, true, nil
}

// namedSchema returns the name in as=, or "".
func namedSchema(d *directive.Directive) string {
	if d == nil || len(d.Args) != 1 || d.Args[0].Key != "as" {
		return ""
	}
	return d.Args[0].Value
}

// schemaAs returns the schema of another type in the package of a type.
func (g *graph) schemaAs(named *types.Named, name string) (*schema, error) {
	refuse := func(why, hint string) (*schema, error) {
		return nil, &refusal{fmt.Sprintf("mcptask:schema of %s names %s, %s", named.Obj().Name(), name, why), hint}
	}
	const form = "as= takes the name of a type without type parameters: declare type JSON = %s in package %s, and write as=JSON; or say what it is, such as type=string"
	pkg := named.Obj().Pkg()
	t := g.lookUpType(pkg, name)
	generic, _ := t.(interface{ TypeParams() *types.TypeParamList })
	other, _ := types.Unalias(t).(*types.Named)
	switch {
	case t == nil && token.IsIdentifier(name) && types.Universe.Lookup(name) == nil:
		return refuse("which is not a type of package "+pkg.Name(), "declare it, or correct the name")
	case t == nil:
		return refuse("which is not the name of a type of package "+pkg.Name(), fmt.Sprintf(form, name, pkg.Name()))
	case generic != nil && generic.TypeParams().Len() > 0:
		return refuse("which has type parameters", fmt.Sprintf(form, name+"[...]", pkg.Name()))
	case other != nil && g.docs.find(other.Obj()).directives[schemaDirective] != nil:
		return refuse("which has an mcptask:schema itself", "name a type with a schema of its own")
	}
	if cycle := g.findCycle(named); cycle != nil {
		return nil, g.refuseCycle(cycle)
	}
	return g.typeOf(t, true, nil)
}

// lookUpType returns a type of a package, or nil.
func (g *graph) lookUpType(pkg *types.Package, name string) types.Type {
	obj, ok := pkg.Scope().Lookup(name).(*types.TypeName)
	if !ok {
		if scope, err := g.scope(pkg); err == nil {
			obj, ok = scope.Lookup(name).(*types.TypeName)
		}
	}
	if !ok {
		return nil
	}
	return obj.Type()
}
