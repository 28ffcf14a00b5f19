package declaration

import (
	"fmt"
	"go/ast"
	"go/types"
	"os"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/description"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// readSchemas derives the schemas of a tool, or reads them from the files that the declaration
// names.
func (r *reader) readSchemas(tool *model.Tool, sig signature, b *block) {
	if s, ok := b.get("schema"); ok {
		tool.InputSchema, tool.InputWritten = r.readSchemaFile(s, schemaOf{tool, false}), true
		tool.InputWritesNull = tool.In != nil
	} else if tool.In != nil && !b.has("schema") {
		tool.InputSchema = r.deriver.Derive(tool.In, jsonschema.Argument, sig.in.Pos(), r.addProblem)
		tool.InputWritesNull = r.deriver.WritesNull(tool.In)
	}
	if tool.InputSchema == jsonschema.Empty {
		tool.InputSchema = "" // an empty struct
	}
	s, ok := b.get("outputschema")
	switch {
	case ok && tool.OutKind != model.Structured:
		r.addProblem(s.pos, tool.Method+" has no structured output", "remove outputschema=")
	case ok:
		tool.OutputSchema, tool.OutputWritten = r.readSchemaFile(s, schemaOf{tool, true}), true
	case tool.OutKind == model.Structured && !b.has("outputschema"):
		tool.OutputSchema = r.deriver.Derive(tool.Out, jsonschema.Result, sig.out.Pos(), r.addProblem)
	}
}

// readSchemaFile reads a hand-written schema. Its path is relative to the package.
func (r *reader) readSchemaFile(s setting, of schemaOf) string {
	path := diag.Absolute(r.pkg.Dir, s.text)
	src, err := os.ReadFile(path)
	if err != nil {
		r.addProblem(s.valuePos, fmt.Sprintf("cannot read the schema %s", s.text), "the path is relative to the package's directory")
		return ""
	}
	schema, err := jsonschema.Parse(src)
	if err != nil {
		r.addProblem(s.valuePos, fmt.Sprintf("%s%s is not a schema for a tool: %v", s.text, jsonschema.PlaceOf(src, err), err), "write a JSON Schema with \"type\": \"object\" at its root")
	} else if file, err := jsontree.Read(path, src, jsontree.MaxDepth); err == nil { // Parse has read it
		r.schemaFiles[of] = file
	}
	return schema
}

// readInputs reads the types marked with //mcptask:input.
func (r *reader) readInputs(out *model.Package) {
	for _, spec := range r.specs {
		b := r.directives[spec]
		if b == nil || b.kind != "input" || !r.checkDeclared(spec, "an input", "the functions that ask for it are named after it") {
			continue
		}
		name, obj := spec.Name.Name, r.objectOf(spec.Name)
		input := &model.Input{Name: name, Type: obj.Type(), Pos: r.fset.Position(spec.Name.Pos()), Allows: r.allowed(spec)}
		input.Description = description.Value(name, name, description.Read(r.docs[spec]).Text, nil)
		if s, ok := b.get("message"); ok {
			input.Message = s.text
		} else if b.has("message") {
			input.Message = name // already reported
		}
		r.inputs[obj] = input
		r.positions[input] = spec.Name.Pos()
		out.Inputs = append(out.Inputs, input)
		if _, bad := findInvalid(obj.Type(), map[types.Type]bool{}); bad {
			r.reportInvalid(param{t: obj.Type(), expr: spec.Name}, "the input")
			continue
		}
		input.Schema = r.deriver.Derive(obj.Type(), jsonschema.Question, spec.Name.Pos(), r.addProblem)
	}
}

// checkDeclared reports whether a type may be an input or an error: a named struct without type parameters.
func (r *reader) checkDeclared(spec *ast.TypeSpec, what, why string) bool {
	name := spec.Name.Name
	switch {
	case spec.TypeParams != nil:
		r.addProblem(spec.TypeParams.Pos(), name+" is generic", what+" cannot have type parameters")
	case name == "_" || r.objectOf(spec.Name) == nil:
		r.addProblem(spec.Name.Pos(), what+" needs a name", why)
	case spec.Assign.IsValid():
		r.addProblem(spec.Name.Pos(), name+" is an alias", "declare "+what+" as a new type: remove the =")
	default:
		return true
	}
	return false
}
