package generator

import "github.com/mcptaskgen/mcptaskgen/generator/internal/model"

// reportRefused tells what hosts and providers of models do not take in the tools of a package. With --portable, that is
// a mistake.
func (g *generation) reportRefused(m *model.Package, c Command) {
	for _, refused := range m.Refused {
		if c.Portable || g.cfg.Portable {
			g.problems.Add(refused.Pos, refused.Message, refused.WayOut)
		} else {
			g.problems.AddNote(refused.Pos, refused.Message+"; "+refused.WayOut)
		}
	}
}
