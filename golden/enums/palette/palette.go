// Package palette has colours, for the tools of another package.
package palette

import "github.com/mcptaskgen/mcptaskgen/golden/enums/palette/shade"

// Color is a colour that a wall can have.
type Color string

// The colours that are in stock.
const (
	Red   Color = "red"   // like a brick
	Green Color = "green" // Green is like the grass.
	Blue  Color = "blue"
)

// Paint is a colour in a shade.
type Paint struct {
	Color Color      `json:"color"`
	Tone  shade.Tone `json:"tone,omitempty"`
}
