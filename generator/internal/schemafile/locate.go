package schemafile

import (
	"go/token"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
)

// place names a definition, or a property inside it.
type place struct{ definition, property string }

// maxDepth is the maximum nesting depth of a file, ten times that of published ones. The time to
// compare schemas grows with its square.
const maxDepth = 200

// findPlaces finds the positions of definitions and their properties. If a definition has several
// properties with the same name, the first one counts.
func findPlaces(file *jsontree.File) map[place]token.Position {
	found := map[place]token.Position{}
	note := func(at place, m jsontree.Member) {
		if _, ok := found[at]; !ok {
			found[at] = file.Position(m.Offset)
		}
	}
	for _, keyword := range []string{"$defs", "definitions"} {
		definitions := file.Values[0].Get(keyword)
		if definitions == nil {
			continue
		}
		for _, definition := range definitions.Members {
			note(place{definition: definition.Name}, definition)
			visitProperties(definition.Value, func(m jsontree.Member) { note(place{definition.Name, m.Name}, m) })
		}
	}
	return found
}

func visitProperties(n *jsontree.Node, visit func(jsontree.Member)) {
	for _, item := range n.Items {
		visitProperties(item, visit)
	}
	for _, m := range n.Members {
		if m.Name == "properties" {
			for _, property := range m.Value.Members {
				visit(property)
			}
		}
		visitProperties(m.Value, visit)
	}
}
