package generator

import "github.com/mcptaskgen/mcptaskgen/generator/internal/model"

// isPortable reports whether tools that hosts or providers of models do not take are mistakes in a file.
func (g *generation) isPortable(c Command) bool { return c.Portable || g.cfg.Portable }

// reportRefused notes the parts of a package's tools that hosts or providers of models do not take, or reports them as
// mistakes.
func (g *generation) reportRefused(m *model.Package, c Command) {
	for _, refused := range m.Refused {
		if g.isPortable(c) {
			g.problems.Add(refused.Pos, refused.Message, refused.WayOut)
		} else {
			g.problems.AddNote(refused.Pos, refused.Message+"; "+refused.WayOut)
		}
	}
}
