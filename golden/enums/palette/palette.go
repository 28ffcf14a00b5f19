// Package palette has colours, for the tools of another package.
package palette

//go:generate go tool mcptaskgen

import "github.com/mcptaskgen/mcptaskgen/golden/enums/palette/shade"

// Color is a colour that a wall can have.
type Color string

// The colours that are in stock.
const (
	Red   Color = "red"   // like a brick
	Green Color = "green" // Green is like the grass.
	Blue  Color = "blue"
)

// Finish is how a wall shines.
//
//mcptask:enum strings
type Finish uint8

// The finishes.
const (
	FinishMatt   Finish = iota + 1 // like chalk
	FinishSatin                    // FinishSatin is like an eggshell, between FinishMatt and FinishGlossy.
	FinishGlossy                   // like a mirror
)

// Paint is a colour in a shade.
type Paint struct {
	Color Color      `json:"color"`
	Tone  shade.Tone `json:"tone,omitempty"`
	// Finish is how it dries.
	Finish Finish `json:"finish,omitzero"`
}
