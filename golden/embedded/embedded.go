// Package embedded has tools whose types embed others, which encoding/json flattens by its own rules.
package embedded

import (
	"context"

	"github.com/mcptaskgen/mcptaskgen/golden/foreign/other"
)

//go:generate go tool mcptaskgen

// Embedded takes types that embed others and returns them.
//
//mcptask:service
type Embedded interface {
	// Flat embeds by value, by pointer, from another package and under a name.
	Flat(ctx context.Context, in Flat) (Flat, error)
	// Hidden has names that hide each other.
	Hidden(ctx context.Context, in Hidden) (Hidden, error)
}

// Base is embedded.
type Base struct {
	// ID is the number of the row.
	ID int `json:"id"`
}

// Audit embeds in turn.
type Audit struct {
	Base

	By string `json:"by"`
}

// Flat has the fields of all that it embeds.
type Flat struct {
	Audit
	*other.Meta
	Named `json:"named"`
	Text

	Own string `json:"own"`
}

// Named is embedded under a name, so it is a member.
type Named struct {
	Deep bool `json:"deep"`
}

// Text is no struct, so it is a member too.
type Text string

// Left and Right have two names in common, of which then neither gives any.
type Left struct {
	Lost  string
	Same  string
	Shown string `json:"shown"`
}

// Right is beside Left.
type Right struct {
	Lost string
	Same string
}

// Hidden hides.
type Hidden struct {
	Left
	Right
	unexported

	// Same hides the other two.
	Same int
}

// unexported gives its exported fields.
type unexported struct {
	Inner string `json:"inner"`
	outer string
}

// Seen is a Hidden with all that gets through.
func Seen(inner, shown string, same int) Hidden {
	return Hidden{Left: Left{Shown: shown}, unexported: unexported{Inner: inner, outer: ""}, Same: same}
}
