package declaration

import (
	"go/token"
	"go/types"
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

// refusals collects the parts of tools that hosts or providers do not take, in order: once for each row of the table and
// each type, service or file.
type refusals struct {
	groups []*refusal
	known  map[refusalKey]*refusal
}

// refusal is a row with the places of one type, service or file that have its construct.
type refusal struct {
	row    *portable.Row
	pos    token.Position // of the first place
	places []string
	detail string // of all places, or ""
	wayOut string
}

type refusalKey struct {
	row   *portable.Row
	owner string
}

// add adds a place that belongs to an owner.
func (rs *refusals) add(found portable.Finding, owner, place string, pos token.Position, wayOut string) {
	key := refusalKey{found.Row, owner}
	group := rs.known[key]
	if group == nil {
		if rs.known == nil {
			rs.known = map[refusalKey]*refusal{}
		}
		group = &refusal{row: found.Row, pos: pos, detail: found.Detail, wayOut: wayOut}
		rs.known[key] = group
		rs.groups = append(rs.groups, group)
	}
	if !slices.Contains(group.places, place) {
		group.places = append(group.places, place)
	}
	if group.detail != found.Detail {
		group.detail = ""
	}
}

func (rs *refusals) list() []model.Refused {
	var list []model.Refused
	for _, g := range rs.groups {
		list = append(list, model.Refused{Pos: g.pos, Message: g.row.Message(g.places, g.detail), WayOut: g.wayOut})
	}
	return list
}

// checkRefused finds the parts of a tool that hosts or providers of models do not take.
func (r *reader) checkRefused(service *model.Service, tool *model.Tool, sig signature) {
	of := portable.Tool{
		Name: tool.Name, Description: tool.Description,
		Input: r.schemaNode(schemaOf{tool, false}), Output: r.schemaNode(schemaOf{tool, true}),
	}
	for _, found := range portable.Check(of) {
		written := r.schemaFiles[schemaOf{tool, found.Output}]
		switch {
		case found.At == nil:
			r.refused.add(found, service.Name, tool.Name, tool.Pos, found.Row.Declaration)
		case written != nil:
			pos := written.Position(found.At.Offset)
			r.refused.add(found, pos.Filename, tool.Name, pos, found.Row.Schema)
		case !found.Output: // derived outputs have nothing to find
			r.addRefused(found, tool, tool.In, sig.in.Pos())
		}
	}
}

// addRefused adds a finding in the schema of a type that is at a position in the declaration.
func (r *reader) addRefused(found portable.Finding, tool *model.Tool, t types.Type, at token.Pos) {
	place := r.deriver.Locate(t, found.Path)
	pos := place.Pos
	if found.Row.OfType && place.TypePos.IsValid() {
		place.Owner, place.Name, pos = place.Type, place.Type, place.TypePos
	}
	if place.Name == "" {
		place.Owner, place.Name = tool.Name, tool.Name
	}
	if !pos.IsValid() {
		pos = at
	}
	r.refused.add(found, place.Owner, place.Name, r.fset.Position(pos), found.Row.Declaration)
}

// checkToolCount finds out whether a server with all tools of the package has too many.
func (r *reader) checkToolCount(out *model.Package) {
	count := 0
	for _, service := range out.Services {
		count += len(service.Tools)
	}
	for _, found := range portable.CheckCount(count) {
		r.refused.add(found, "", "the package", out.Services[0].Pos, found.Row.Declaration)
	}
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
