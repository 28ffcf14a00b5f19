package declaration

import (
	"fmt"
	"go/token"
	"go/types"
	"regexp"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/description"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

var errorCode = regexp.MustCompile(`^[a-z0-9_]{1,64}$`)

// readErrors reads the types marked with //mcptask:error.
func (r *reader) readErrors(out *model.Package) {
	codes := map[string]token.Pos{}
	for _, spec := range r.specs {
		b := r.directives[spec]
		if b == nil || b.kind != "error" || !r.checkDeclared(spec, "an error", "its code is returned by a method of its type") {
			continue
		}
		name, obj := spec.Name.Name, r.objectOf(spec.Name)
		e := &model.Error{Name: name, Description: description.Read(r.docs[spec]).Text, Type: obj.Type(), Pos: r.fset.Position(spec.Name.Pos()), Allows: r.allowed(spec)}
		r.positions[e] = spec.Name.Pos()
		if e.Description == "" {
			r.addNote(spec.Name.Pos(), fmt.Sprintf("the error %s has no comment, so a reader of the reference sees no more than its code; write above it what it means", name))
		}
		r.readCode(e, b, codes)
		e.Description = description.Value(name, e.Code, e.Description, nil)
		if _, bad := findInvalid(obj.Type(), map[types.Type]bool{}); bad {
			r.reportInvalid(param{t: obj.Type(), expr: spec.Name}, "the error")
			continue
		}
		r.readErrorMethod(e, obj)
		e.Schema = r.deriver.Derive(obj.Type(), jsonschema.Result, spec.Name.Pos(), r.addProblem)
		out.Errors = append(out.Errors, e)
	}
}

// readCode sets the code of an error. codes has those of the errors before it.
func (r *reader) readCode(e *model.Error, b *block, codes map[string]token.Pos) {
	s, ok := b.get("code")
	before, taken := codes[s.text]
	switch {
	case !b.has("code"):
		r.addProblem(b.pos, fmt.Sprintf("%s has no code", e.Name), "clients know the error by it: write code="+words.SnakeCase(e.Name))
	case !ok: // already reported
	case !errorCode.MatchString(s.text):
		r.addProblem(s.valuePos, fmt.Sprintf("%q is not a valid code", s.text), "a code has 1 to 64 lowercase letters, digits and _")
	case taken:
		r.addProblem(s.valuePos, fmt.Sprintf("%s already declares the code %q", r.describeLine(before), s.text), "clients tell errors apart by their codes: choose another one")
	default:
		codes[s.text] = s.valuePos
		e.Code = s.text
	}
}

// readErrorMethod finds how a type implements error, and reports a type that does not or that has a name of its
// generated method.
func (r *reader) readErrorMethod(e *model.Error, obj types.Object) {
	pos := r.positions[e]
	implement := fmt.Sprintf("write func (e *%s) Error() string", e.Name)
	named, _ := obj.Type().(*types.Named)
	var method *types.Func
	for m := range named.Methods() {
		if m.Name() == "Error" {
			method = m
		}
	}
	if method == nil {
		r.addProblem(pos, fmt.Sprintf("%s has no method Error of its own", e.Name), implement)
		return
	}
	signature := method.Signature()
	want := types.NewSignatureType(nil, nil, nil, nil, types.NewTuple(types.NewVar(0, nil, "", types.Typ[types.String])), false)
	if !types.Identical(signature, want) {
		r.addProblem(method.Pos(), fmt.Sprintf("%s does not implement error: Error has the signature %s", e.Name, types.TypeString(signature, types.RelativeTo(obj.Pkg()))), implement)
		return
	}
	e.Pointer = isPointer(signature.Recv().Type())
	if other, path, _ := types.LookupFieldOrMethod(named, true, obj.Pkg(), model.CodeMethod); other != nil && len(path) == 1 {
		r.addProblem(other.Pos(), fmt.Sprintf("%s is declared here, but generated code declares it for error %s", model.CodeMethod, e.Name), "rename it")
	}
}
