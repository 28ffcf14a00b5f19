package jsonschema

import (
	"encoding/json"
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// noteZero notes a field of a result that is always written, but whose zero value is not one of its choices. Only numbers
// count: their zero is often forgotten, but a string type hardly ever has a constant for "".
func (g *graph) noteZero(f field, s *schema) {
	t, ok := f.variable.Type().Underlying().(*types.Basic)
	if g.use != Result || !ok || t.Info()&types.IsInteger == 0 || f.omitted || len(s.Enum) == 0 || !g.docs.isOwn(f.variable) {
		return
	}
	if zero, named := g.zeroName(f.variable.Type()); zero != nil || !named && slices.Contains(s.Enum, any(json.Number("0"))) {
		return
	}
	g.noteField(f, "may be 0, which is none of its choices, and then a call fails; write omitzero to leave out 0, or declare a constant for it")
}

// noteDigits notes the first field of a result that may have larger integers than JavaScript holds. There is one note for
// a package, because most such fields never get so large.
func (g *graph) noteDigits(f field, s *schema) {
	t := pointee(f.variable.Type())
	b, ok := t.Underlying().(*types.Basic)
	isWide := ok && (b.Kind() == types.Int64 || b.Kind() == types.Uint64) && s.Type == "integer" && !isDuration(t)
	if g.use != Result || !isWide || g.notedDigits || s.Enum != nil || s.Maximum != "" || s.ExclusiveMaximum != "" || !g.docs.isOwn(f.variable) {
		return
	}
	g.notedDigits = true
	g.noteField(f, fmt.Sprintf("is %s, and clients in JavaScript lose digits beyond 9007199254740991; if it may be larger, write json:\"%s,string\"; "+
		"other fields of the package get no such note", withArticle(b.Name()), f.name))
}

// checkOmitted refuses a field of a result that its tag requires, but that encoding/json leaves out when it is empty.
// In an argument, both together mean a list that a caller must send.
func (g *graph) checkOmitted(f field, tag tag) error {
	option := "omitempty"
	if strings.Contains(f.tag.Get("json"), "omitzero") {
		option = "omitzero"
	}
	if g.use != Result || !tag.required || !f.omitted || option == "omitempty" && isAlwaysWritten(f.variable.Type()) {
		return nil
	}
	r := &refusal{"its tag requires it, but " + option + " leaves it out of a result when it is empty, and then the call fails", byHandHint}
	if g.docs.isOwn(f.variable) {
		r.hint = "remove " + option + `, or "required"; if an input of this type needs both, give the output a type of its own`
	}
	return r
}
