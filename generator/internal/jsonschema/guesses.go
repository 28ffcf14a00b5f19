package jsonschema

import (
	"fmt"
	"go/types"
)

// fieldBeingRead is the field whose type is being derived.
type fieldBeingRead struct {
	field
	choosesByTag bool // its tag has enum=
}

// noteGuess notes a guess about a type, if there is one and nothing decides it. A directive above the type decides it, but
// if the type is in another module, only the tag of each field can.
func (g *graph) noteGuess(named *types.Named, guess string) {
	if guess == "" {
		return
	}
	r := g.reading
	if r == nil || g.docs.isOwn(named.Obj()) {
		g.note(g.posOf(named.Obj()), guess+decideAbove)
		return
	}
	way := decideAbove
	switch {
	case !g.isForeign(named.Obj().Pkg()):
	case r.choosesByTag:
		return
	case !g.docs.isOwn(r.variable):
		way = "; if that is wrong, " + byHandHint
	default:
		kind := "string"
		if named.Underlying().(*types.Basic).Info()&types.IsInteger != 0 {
			kind = "integer"
		}
		way = fmt.Sprintf("; decide it in the tag of the field, as the type is in another module: jsonschema:\"type=%s\" for any value, or an enum= for each choice; or declare a type of your own", kind)
	}
	g.note(g.posOf(r.variable), guess+way)
}

const decideAbove = "; decide it with //mcptask:enum or //mcptask:open above the type"
