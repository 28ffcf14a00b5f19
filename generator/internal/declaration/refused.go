package declaration

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/portable"
)

// schemaOf identifies the input or the output of a tool.
type schemaOf struct {
	tool   *model.Tool
	output bool
}

// checkRefused finds the parts of a tool that hosts or providers of models do not take, except for those that
// directives above the nodes allow.
func (r *reader) checkRefused(service *model.Service, tool *model.Tool, sig signature, nodes ...ast.Node) {
	of := portable.Tool{
		Name: tool.Name, Description: tool.Description,
		Input: r.schemaNode(schemaOf{tool, false}), Output: r.schemaNode(schemaOf{tool, true}),
	}
	for _, found := range portable.Check(of) {
		written := r.schemaFiles[schemaOf{tool, found.Output}]
		switch {
		case r.allowsRow(found.Row, nodes...):
		case found.At == nil:
			r.refused.Add(found, service.Name, tool.Name, tool.Pos, found.Row.Declaration)
		case written != nil:
			pos := written.Position(found.At.Offset)
			r.refused.Add(found, pos.Filename, tool.Name, pos, found.Row.Schema)
		case !found.Output: // derived outputs have nothing to find
			r.addRefused(found, tool, tool.In, sig.in.Pos())
		}
	}
}

// addRefused adds a finding in the schema of a type that is at a position in the declaration.
func (r *reader) addRefused(found portable.Finding, tool *model.Tool, t types.Type, at token.Pos) {
	place, wayOut := r.deriver.Locate(t, found.Path), found.Row.Declaration
	if found.Row.OfType && place.TypePos.IsValid() {
		if place.Guessed {
			wayOut += ", or //mcptask:open if it is not an enum"
			r.refusedGuesses[place.TypePos] = true
		}
		r.refused.Add(found, place.Type, place.Type, place.TypePos, wayOut)
		return
	}
	if place.Name == "" {
		place.Owner, place.Name = tool.Name, tool.Name
	}
	if place.Pos.IsValid() {
		at = place.Pos
	}
	r.refused.Add(found, place.Owner, place.Name, r.fset.Position(at), wayOut)
}

// noteGuesses notes what was guessed about types. If a type is refused because of the guess, the way out of the refusal
// decides the guess too, so there is no second note.
func (r *reader) noteGuesses() {
	for _, guess := range r.deriver.Guesses() {
		if !r.refusedGuesses[guess.Pos] {
			r.problems.AddNote(guess.Pos, guess.Message)
		}
	}
}

// checkToolCount finds out whether a server with all tools of the package has too many.
func (r *reader) checkToolCount(out *model.Package) {
	count := 0
	for _, service := range out.Services {
		count += len(service.Tools)
	}
	for _, found := range portable.CheckCount(count) {
		if r.allowsRow(found.Row, slices.Collect(maps.Keys(r.allows))...) { // above any service
			continue
		}
		r.refused.Add(found, "", "the package", out.Services[0].Pos, found.Row.Declaration)
	}
}

// listRefused lists the refusals in all tools of the package.
func (r *reader) listRefused() []model.Refused {
	var list []model.Refused
	for _, refusal := range r.refused.List {
		list = append(list, model.Refused{Pos: refusal.At, Message: refusal.Message(), WayOut: refusal.WayOut})
	}
	return list
}

// schemaNode returns the schema of a tool, or nil if there is none.
func (r *reader) schemaNode(of schemaOf) *jsontree.Node {
	if file := r.schemaFiles[of]; file != nil && len(file.Values) > 0 {
		return file.Values[0]
	}
	text := of.tool.InputSchema
	if of.output {
		text = of.tool.OutputSchema
	}
	if text == "" {
		return nil // a tool without arguments has jsonschema.Empty
	}
	node, err := jsontree.Parse([]byte(text))
	if err != nil { // it is our own text
		return nil
	}
	return node
}
