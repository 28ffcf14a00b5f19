package toolschema

import (
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/portable"
)

// checkRefused notes the parts of the tools that hosts or providers of models do not take, once for each row of the table,
// at the first tool that has it. If asMistakes is set, it reports mistakes instead.
func (l *toolList) checkRefused(asMistakes bool) {
	type group struct {
		first portable.Finding
		at    *jsontree.Node
		tools []string
	}
	groups := map[*portable.Row]*group{}
	for _, t := range l.tools {
		for _, found := range portable.Check(t.portable()) {
			g := groups[found.Row]
			if g == nil {
				g = &group{first: found, at: found.At}
				if g.at == nil {
					g.at = t.at
				}
				groups[found.Row] = g
			}
			if last := len(g.tools) - 1; last < 0 || g.tools[last] != t.name {
				g.tools = append(g.tools, t.name)
			}
		}
	}
	for _, found := range portable.CheckCount(len(l.tools)) {
		groups[found.Row] = &group{first: found, at: l.tools[0].at, tools: []string{"the list"}}
	}
	for _, row := range portable.Rows() {
		g := groups[row]
		if g == nil {
			continue
		}
		message := row.Message(g.tools, g.first.Detail)
		if asMistakes {
			l.addProblem(g.at, message, row.Schema)
		} else {
			l.problems.AddNote(l.file.Position(g.at.Offset), message+"; "+row.Schema)
		}
	}
}

// portable returns the tool as [portable.Check] reads it.
func (t *tool) portable() portable.Tool {
	return portable.Tool{Name: t.name, Description: t.description, Input: t.input, Output: t.output}
}
