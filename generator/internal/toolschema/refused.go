package toolschema

import (
	"cmp"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/portable"
)

// checkRefused notes the parts of the tools that hosts or providers of models do not take, once for each row of the table,
// at the first tool that has it. If asMistakes is set, it reports mistakes instead.
func (l *toolList) checkRefused(asMistakes bool) {
	var refused portable.Refusals[*jsontree.Node]
	for _, t := range l.tools {
		for _, found := range portable.Check(t.portable()) {
			refused.Add(found, "", t.name, cmp.Or(found.At, t.at), found.Row.Schema)
		}
	}
	for _, found := range portable.CheckCount(len(l.tools)) {
		refused.Add(found, "", "the list", l.tools[0].at, found.Row.Schema)
	}
	for _, r := range refused.List {
		if asMistakes {
			l.addProblem(r.At, r.Message(), r.WayOut)
		} else {
			l.problems.AddNote(l.file.Position(r.At.Offset), r.Message()+"; "+r.WayOut)
		}
	}
}

// portable returns the tool as [portable.Check] reads it.
func (t *tool) portable() portable.Tool {
	return portable.Tool{Name: t.name, Description: t.description, Input: t.input, Output: t.output}
}
