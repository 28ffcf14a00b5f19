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

// noteGuess notes a guess about a type, if there is one and nothing decides it. The directive that decides it is above
// the type, unless that is in another module. Then the tag of each field decides.
func (g *graph) noteGuess(named *types.Named, guess string) {
	pos, way := g.posOf(named.Obj()), "//mcptask:enum or //mcptask:open above the type"
	if r := g.reading; guess != "" && r != nil && !g.docs.isOwn(named.Obj()) {
		pos = g.posOf(r.variable)
		if g.isForeign(named.Obj().Pkg()) {
			if r.choosesByTag {
				return
			}
			kind := "string"
			if named.Underlying().(*types.Basic).Info()&types.IsInteger != 0 {
				kind = "integer"
			}
			way = fmt.Sprintf("the tag of the field, jsonschema:\"type=%s\" for any value or an enum= for each choice, or use a type of your own, as the type is in another module", kind)
		}
	}
	if guess != "" {
		g.note(pos, guess+"; decide it with "+way)
	}
}
