// Package questions has tools that ask, before they start and after.
package questions

import (
	"context"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Asker asks.
//
//mcptask:service fallback=none
type Asker interface {
	// AskFirst asks twice before it starts.
	AskFirst(ctx context.Context, task *mcptask.Task, in Input, sure Sure, which Which) (Report, error)
	AskOnly(ctx context.Context, which Which) error
}

// Insider asks when its task is there.
//
//mcptask:service
type Insider interface {
	// AskInside asks for two things, for one of them twice.
	AskInside(ctx context.Context, task *mcptask.Task, in Input) (Report, error)
}

// Input is an ordinary input.
type Input struct {
	Name string `json:"name"`
}

// Report is an ordinary output.
type Report struct {
	Done bool `json:"done"`
}

// Sure is a question.
//
//mcptask:input message="Are you \"sure\"? It cannot be undone, and everything that was there before is gone for good, whoever needs it."
type Sure struct {
	Yes bool `json:"yes"`
}

// Which is a question of every kind.
//
//mcptask:input message="Which?"
type Which struct {
	// One is one of them.
	One   string    `json:"one" jsonschema:"enum=a,enum=b"`
	Many  []string  `json:"many" jsonschema:"enum=a,enum=b,minItems=1"`
	Count int       `json:"count,omitempty" jsonschema:"minimum=1"`
	When  time.Time `json:"when"`
	Note  *string   `json:"note,omitempty" jsonschema:"maxLength=100"`
}
