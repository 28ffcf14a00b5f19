package jsonschema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/types"
	"slices"
	"strings"

	invopop "github.com/invopop/jsonschema"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/description"
)

// buildDefinition builds the schema of one type, with references to others.
func (g *graph) buildDefinition(d *definition) {
	g.reading = nil
	st, ok := d.t.Underlying().(*types.Struct)
	if !ok {
		s, err := g.partsOf(d.t, nil)
		if err != nil {
			g.reportProblem(g.at, g.typeName(d.t), err)
			return
		}
		d.schema = s
		return
	}
	s := &schema{Type: "object", Properties: invopop.NewProperties()}
	if g.use == Argument {
		s.AdditionalProperties = invopop.FalseSchema
	}
	g.checkJSONTags(st)
	fields, clashes := jsonFields(st)
	for _, clash := range clashes {
		f, other := clash[1], clash[0]
		omitted := fmt.Sprintf("%s also has the JSON name %q, so encoding/json omits both", other.variable.Name(), f.name)
		switch {
		case !g.docs.isOwn(f.variable):
		case len(f.index) > 1: // embedding may hide fields on purpose
			g.noteField(f, "is left out: "+omitted)
		default:
			g.refuse(f, &refusal{omitted, "give one of them another name"})
		}
	}
	names := description.Names{}
	for _, f := range fields {
		names[f.variable.Name()] = f.name
	}
	for _, f := range fields {
		tag, property := g.readMember(f, names)
		if property == nil {
			continue
		}
		s.Properties.Set(f.name, property)
		required := tag.required || !f.optional && !g.mayBeNil(f)
		if required {
			s.Required = append(s.Required, f.name)
		}
		if property.Default != nil && g.use == Argument && g.docs.isOwn(f.variable) {
			g.noteDefault(f, property, tag, required)
		}
	}
	if named, ok := d.t.(*types.Named); ok {
		s.Description = g.docs.find(named.Obj()).doc
	}
	d.schema = s
}

// mayBeNil reports whether a field is left out of arguments when it is a nil pointer.
func (g *graph) mayBeNil(f field) bool {
	_, pointer := types.Unalias(f.variable.Type()).Underlying().(*types.Pointer)
	return pointer && g.use == Argument
}

// noteDefault adds a note if a default is never used, or if it takes the place of a value that clients in Go mean to
// send.
func (g *graph) noteDefault(f field, s *schema, tag tag, required bool) {
	wayOut := "make it optional with omitempty"
	if tag.required {
		wayOut = `remove "required" from the tag`
	}
	if required {
		g.noteField(f, "is required, so its default is never used; "+wayOut+", or remove the default")
		return
	}
	if !strings.Contains(f.tag.Get("json"), "omitzero") && isAlwaysWritten(f.variable.Type()) {
		g.noteField(f, "has a default, but a client in Go always sends it, because omitempty leaves out no value of its type; write omitzero")
		return
	}
	zero, named := g.zeroName(f.variable.Type())
	basic, _ := f.variable.Type().Underlying().(*types.Basic)
	switch n, isNumber := s.Default.(json.Number); {
	case basic == nil:
		return
	case named && zero != nil && zero != s.Default:
	case s.Default == true:
		zero = false
	case isNumber && basic.Info()&types.IsNumeric != 0 && rational(n).Sign() != 0:
		zero = json.Number("0")
	default:
		return
	}
	if compiled, err := toNode(s, nil).CompileSchema(); err == nil && compiled.Refuse(toValue(zero, nil)) == "" {
		g.noteField(f, fmt.Sprintf("has the default %s, so a client in Go cannot send %s, which it leaves out; make the field a pointer",
			toValue(s.Default, nil).Spaced(), toValue(zero, nil).Spaced()))
	}
}

// isAlwaysWritten reports whether a type has no value that omitempty leaves out.
func isAlwaysWritten(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		return true
	case *types.Array:
		return u.Len() > 0
	}
	return false
}

// readMember returns the tag and the schema of a field. The schema is nil if there is none, which is
// reported. The Go names of all fields are in names.
func (g *graph) readMember(f field, names description.Names) (tag, *schema) {
	tag, err := readTag(f.tag)
	if err != nil {
		return tag, g.refuse(f, err)
	}
	if err := g.checkOmitted(f, tag); err != nil {
		return tag, g.refuse(f, err)
	}
	g.reading = &fieldBeingRead{f, hasKey(tag.parts, "enum")}
	s, err := g.typeOf(f.variable.Type(), f.omitted, tag.leaf)
	if err != nil {
		return tag, g.refuse(f, err)
	}
	if f.quoted {
		if t := pointee(f.variable.Type()); g.writesNames(t) || hasMethod(t, "UnmarshalText") {
			return tag, g.refuse(f, &refusal{fmt.Sprintf(`%s is a text in JSON, which encoding/json cannot read with the option "string"`, g.typeName(t)), `remove "string" from the json tag`})
		}
		quote(s)
	}
	constants := g.constantsOf(s)
	own := s.Description // of its type
	s.Description = ""
	if hasKey(tag.parts, "enum") {
		delete(g.enumOf, s)
		own = ""
	}
	problems := describe(s, tag.parts, tagPlace)
	if len(problems) > 0 {
		return tag, g.refuse(f, problems...)
	}
	g.noteFormats(f.variable, g.fieldName(f), tag.parts)
	g.noteZero(f, s)
	g.noteDigits(f, s)
	if tag.nullable {
		g.nullable[s] = true
	}
	s.Description = cmp.Or(s.Description, f.tag.Get("jsonschema_description"), tag.description, g.describeField(f, names, constants))
	if e := g.enumOf[s]; e != nil {
		s.Description = e.appendMeanings(cmp.Or(s.Description, e.about))
	} else {
		s.Description = addForm(f.variable.Type(), cmp.Or(s.Description, own))
	}
	if g.use == Question {
		if err := g.checkQuestionField(f, s); err != nil {
			return tag, g.refuse(f, err)
		}
	}
	return tag, s
}

// constantsOf returns the names of the constants that a value or the elements of a list can be.
func (g *graph) constantsOf(s *schema) description.Names {
	for ; s != nil; s = s.Items {
		if e := g.enumOf[s]; e != nil {
			return e.names
		}
	}
	return nil
}

// describeField returns the description of a field by its comment.
func (g *graph) describeField(f field, names ...description.Names) string {
	about := g.docs.find(f.variable)
	if about.deprecated && g.docs.isOwn(f.variable) {
		g.noteField(f, "is deprecated, which models do not see; say so in the first paragraph of its comment, or remove the field")
	}
	basic, _ := pointee(f.variable.Type()).Underlying().(*types.Basic)
	boolean := basic != nil && basic.Info()&types.IsBoolean != 0
	return description.Field(f.variable.Name(), f.name, boolean, about.doc, names...)
}

// integerText is the text of an integer in JSON.
const integerText = "-?(0|[1-9][0-9]*)"

// quote changes the schema of a value to that of a string that holds it.
func quote(s *schema) {
	text := schema{Type: "string"}
	switch {
	case s.Enum != nil:
		text.Enum = s.Enum
		quoteChoices(&text)
	case s.Type == "integer" && s.Minimum == "0":
		text.Pattern = "^(0|[1-9][0-9]*)$"
	case s.Type == "integer":
		text.Pattern = "^" + integerText + "$"
	case s.Type == "number":
		text.Pattern = "^" + integerText + `(\.[0-9]+)?([Ee][+-]?[0-9]+)?$`
	case s.Type == "boolean":
		text.Enum = []any{"true", "false"}
	case s.Type == "string":
		text.Pattern = `^"([^"\\]|\\.)*"$`
	}
	text.Description = s.Description
	*s = text
}

// checkQuestionField refuses a question's field for which clients have no form.
func (g *graph) checkQuestionField(f field, s *schema) error {
	t := types.Unalias(f.variable.Type())
	if isDuration(t) {
		return &refusal{"a time.Duration is an integer of nanoseconds, which people cannot be asked for",
			"use a number with the unit in its name, such as Minutes int, or a string"}
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		if !f.optional {
			return &refusal{"a pointer in a question may be left out, but is never null", "add omitempty to its json tag"}
		}
		t = types.Unalias(p.Elem())
	}
	delete(g.nullable, s)
	switch s.Type {
	case "string":
		if s.ContentEncoding != "" {
			return &refusal{"an input cannot have bytes", flatHint}
		}
		if s.Format != "" && !slices.Contains(questionFormats, s.Format) {
			return &refusal{"clients have no form for format=" + s.Format, "use one of " + strings.Join(questionFormats, ", ")}
		}
		return nil
	case "integer", "number", "boolean":
		if s.Enum != nil {
			g.noteField(f, "asks for a choice among numbers, which clients show without the choices; use a string type, or write //mcptask:enum strings above this one")
		}
		return nil
	case "array":
		if _, slice := t.Underlying().(*types.Slice); !slice || s.Items.Type != "string" || s.Items.Enum == nil {
			return &refusal{"an input can only have lists of choices",
				`name the choices of a []string in its tag: jsonschema:"enum=a,enum=b", or take a slice of a string type with constants, or of a type under //mcptask:enum strings`}
		}
		// Clients show the description of the field.
		s.Description, s.Items.Description = joinLines(s.Description, s.Items.Description), ""
		return nil
	}
	return &refusal{"an input must be flat", flatHint}
}

// questionFormats are the formats that the protocol allows in a question.
var questionFormats = []string{"date", "date-time", "email", "uri"}

const flatHint = "its fields are strings, numbers, booleans, time.Time, enums and slices of enums"
