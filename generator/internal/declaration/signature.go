package declaration

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

const allowedSignature = "a tool has the signature func(ctx context.Context[, task *mcptask.Task][, in In][, questions ...]) ([out Out, ]err error)"

// param is one parameter or result and the expression of its type.
type param struct {
	t    types.Type
	expr ast.Expr
}

// signature holds the type expressions of a tool's input and output.
type signature struct {
	in, out ast.Expr // nil if there is none
}

// readSignature reads the parameters and results of a method. It reports whether they are valid for
// a tool.
func (r *reader) readSignature(tool *model.Tool, service *model.Service, field *ast.Field) (signature, bool) {
	before := r.problems.Len() + r.repeated
	var sig signature
	ft := field.Type.(*ast.FuncType)
	params, results := r.listTypes(ft.Params), r.listTypes(ft.Results)
	name := service.Name + "." + tool.Method
	bad := func(pos token.Pos, format string, args ...any) {
		r.addProblem(pos, name+" "+fmt.Sprintf(format, args...), allowedSignature)
	}

	if len(params) > 0 && isInvalid(params[0].t) && r.reportInvalid(params[0], name) {
		params = params[1:]
	} else if len(params) > 0 && isContextLike(params[0].t) {
		bad(params[0].expr.Pos(), "takes %s instead of context.Context", types.ExprString(params[0].expr))
		params = params[1:]
	} else if len(params) == 0 || !IsNamed(params[0].t, "context", "Context") {
		pos := ft.Params.Pos()
		if len(params) > 0 {
			pos = params[0].expr.Pos()
		}
		bad(pos, "does not take a context.Context first")
	} else {
		params = params[1:]
	}
	if len(params) > 0 && isTask(params[0].t) {
		tool.Task = true
		params = params[1:]
	}
	for _, p := range params {
		r.readParam(tool, &sig, name, p, bad)
	}
	r.readResults(tool, &sig, name, ft, results, bad)
	return sig, r.problems.Len()+r.repeated == before
}

func (r *reader) readParam(tool *model.Tool, sig *signature, name string, p param, bad func(token.Pos, string, ...any)) {
	pos := p.expr.Pos()
	if _, variadic := p.expr.(*ast.Ellipsis); variadic {
		bad(pos, "is variadic")
		return
	}
	written := types.ExprString(p.expr)
	switch input := r.inputOf(p.t); {
	case r.reportInvalid(p, name):
	case IsNamed(p.t, "context", "Context"):
		bad(pos, "takes more than one context.Context")
	case IsNamed(p.t, Runtime, "Task"):
		bad(pos, "takes mcptask.Task by value")
	case isTask(p.t) && tool.Task:
		bad(pos, "takes more than one *mcptask.Task")
	case isTask(p.t):
		bad(pos, "takes its *mcptask.Task after the input")
	case input != nil && isPointer(p.t):
		r.addProblem(pos, fmt.Sprintf("%s takes the question %s as a pointer", name, written), "take it by value: the handler runs only after the question is answered")
	case input != nil && input.Message == "":
		r.addProblem(pos, fmt.Sprintf("%s asks for %s, which has no message=", name, input.Name),
			fmt.Sprintf("a parameter of an input type is a question; set its text with //mcptask:input message=\"...\" above %s", input.Name))
	case input != nil:
		for _, q := range tool.Questions {
			if q == input {
				r.addProblem(pos, fmt.Sprintf("%s asks for %s twice", name, input.Name), "declare a second input type with its own message=")
			}
		}
		tool.Questions = append(tool.Questions, input)
	case len(tool.Questions) > 0:
		bad(pos, "takes its input after a question")
	case sig.in != nil:
		hint := "put them into one struct, or mark what a person answers with //mcptask:input message=\"...\""
		if named, ok := types.Unalias(p.t).(*types.Named); ok && named.Obj().Pkg() != r.pkg.Types {
			hint = "put them into one struct; a //mcptask:input type for a question must be in this package"
		}
		r.addProblem(pos, fmt.Sprintf("%s takes more than one input", name), hint)
	case !isStruct(p.t):
		sig.in = p.expr
		r.addProblem(pos, fmt.Sprintf("%s takes %s, which is not a struct", name, written), "take a struct with a field of this type: every argument needs a name")
	default:
		tool.In, sig.in = p.t, p.expr
	}
}

func (r *reader) readResults(tool *model.Tool, sig *signature, name string, ft *ast.FuncType, results []param, bad func(token.Pos, string, ...any)) {
	if len(results) == 0 {
		bad(ft.Params.End()-1, "returns nothing")
		return
	}
	last := results[len(results)-1]
	switch {
	case r.reportInvalid(last, name):
		return
	case !types.Identical(last.t, types.Universe.Lookup("error").Type()):
		bad(last.expr.Pos(), "does not return an error last")
		return
	case len(results) == 1:
		return
	case len(results) > 2:
		bad(results[1].expr.Pos(), "returns more than one output")
		return
	}
	out := results[0]
	pos, written := out.expr.Pos(), types.ExprString(out.expr)
	tool.Out, sig.out = out.t, out.expr
	basic, isBasic := types.Unalias(out.t).(*types.Basic)
	switch {
	case r.reportInvalid(out, name):
	case isBasic && basic.Kind() == types.String:
		tool.OutKind = model.Text
	case isPointer(out.t) && IsNamed(elementType(out.t), Runtime, "Result"):
		tool.OutKind = model.Content
	case IsNamed(out.t, Runtime, "Result"):
		bad(pos, "returns mcptask.Result by value, not *mcptask.Result")
	case isEmptyStruct(out.t):
		tool.OutKind = model.Nothing
	case isStruct(out.t):
		tool.OutKind = model.Structured
	case isString(out.t):
		r.addProblem(pos, fmt.Sprintf("%s returns %s", name, written), "return string for text, or a struct with a field of this type")
	default:
		r.addProblem(pos, fmt.Sprintf("%s returns %s, which is not a struct", name, written),
			"return a struct with a field of this type, a string for text, or *mcptask.Result for your own content")
	}
}

// listTypes pairs every parameter, named or not, with the expression of its type.
func (r *reader) listTypes(fields *ast.FieldList) []param {
	var list []param
	if fields == nil {
		return nil
	}
	for _, field := range fields.List {
		p := param{t: r.pkg.TypesInfo.TypeOf(field.Type), expr: field.Type}
		if p.t == nil {
			p.t = types.Typ[types.Invalid]
		}
		for range max(1, len(field.Names)) {
			list = append(list, p)
		}
	}
	return list
}

func (r *reader) specOf(obj types.Object) *ast.TypeSpec {
	for _, spec := range r.specs {
		if r.objectOf(spec.Name) == obj {
			return spec
		}
	}
	return nil
}

func (r *reader) inputOf(t types.Type) *model.Input {
	if named, ok := types.Unalias(elementType(t)).(*types.Named); ok {
		return r.inputs[named.Obj()]
	}
	return nil
}

// IsNamed reports whether a type is the named type of a package.
func IsNamed(t types.Type, path, name string) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == name && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == path
}

// isContextLike reports whether a type is not context.Context but was probably meant as one, because it has its
// methods.
func isContextLike(t types.Type) bool {
	if IsNamed(t, "context", "Context") {
		return false
	}
	for _, name := range []string{"Deadline", "Done", "Err", "Value"} {
		if obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name); obj == nil {
			return false
		}
	}
	return true
}

func isTask(t types.Type) bool { return isPointer(t) && IsNamed(elementType(t), Runtime, "Task") }

func isPointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

// elementType returns the element type of a pointer, or the type itself.
func elementType(t types.Type) types.Type {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

func isStruct(t types.Type) bool {
	_, ok := elementType(t).Underlying().(*types.Struct)
	return ok
}

func isEmptyStruct(t types.Type) bool {
	s, ok := types.Unalias(t).(*types.Struct)
	return ok && s.NumFields() == 0
}

func isString(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}
