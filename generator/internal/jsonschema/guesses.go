package jsonschema

import (
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"slices"
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

// Guess is a guess about the constants of a type. A directive above the type decides it.
type Guess struct {
	Pos     token.Position // of the type
	Type    string
	Message string
}

// Guesses returns the guesses about types of the modules that are being developed, in no order.
func (d *Deriver) Guesses() []Guess { return slices.Collect(maps.Keys(d.guessed)) }

// isGuessed reports whether a type is taken as an enum although nothing decides it.
func (d *Deriver) isGuessed(named *types.Named) bool {
	guess := d.guesses[qualifiedName(named)]
	return guess.isEnum && guess.text != ""
}

// noteGuess notes a guess about a type, if there is one and nothing decides it. A directive above the type decides it, but
// if the type is in another module, only the tag of each field can.
func (g *graph) noteGuess(named *types.Named, guess guess) {
	if guess.text == "" {
		return
	}
	if pos, ok := g.declarationOf(named); ok {
		way := "; decide it with //mcptask:enum or //mcptask:open above the type"
		if guess.isEnum {
			way = "; decide it with //mcptask:enum, //mcptask:enum strings or //mcptask:open above the type"
		}
		g.guessed[Guess{pos, g.typeName(named), guess.text + way}] = true
		return
	}
	switch r := g.reading; {
	case r != nil && r.choosesByTag:
	case r == nil || !g.docs.isOwn(r.variable):
		g.note(g.at, guess.text+"; if that is wrong, "+byHandHint)
	default:
		kind := "string"
		if named.Underlying().(*types.Basic).Info()&types.IsInteger != 0 {
			kind = "integer"
		}
		g.note(r.variable.Pos(), guess.text+fmt.Sprintf("; decide it in the tag of the field, as the type is in another module: jsonschema:\"type=%s\" for any value, or an enum= for each choice; or declare a type of your own", kind))
	}
}

// declarationOf returns the position of a type. ok is false if the type is in a module that the user does not edit.
func (d *Deriver) declarationOf(named *types.Named) (pos token.Position, ok bool) {
	obj := named.Obj()
	if !obj.Pos().IsValid() || !d.docs.isOwn(obj) && d.isForeign(obj.Pkg()) {
		return pos, false
	}
	pos = d.docs.fset.Position(obj.Pos())
	pos.Column = d.docs.find(obj).column // export data has none
	return pos, true
}
