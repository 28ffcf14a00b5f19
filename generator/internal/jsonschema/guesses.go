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

// guess is why a type is taken as an enum or not, if nothing decides it. Its text may be empty.
type guess struct {
	text   string
	isEnum bool
}

// noteGuess notes a guess about a type, if there is one and nothing decides it. A directive above the type decides it, but
// if the type is in another module, only the tag of each field can.
func (g *graph) noteGuess(named *types.Named, guess guess) {
	if guess.text == "" {
		return
	}
	r := g.reading
	way := "; decide it with //mcptask:enum or //mcptask:open above the type"
	if guess.isEnum {
		way = "; decide it with //mcptask:enum, //mcptask:enum strings or //mcptask:open above the type"
	}
	if r == nil || g.docs.isOwn(named.Obj()) {
		g.note(g.posOf(named.Obj()), guess.text+way)
		return
	}
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
	g.note(g.posOf(r.variable), guess.text+way)
}
