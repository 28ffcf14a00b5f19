// Package candidate declares tasks in the release candidate of 2025-11-25 alone.
package candidate

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen --revision 2025-11-25-rc

// Jobs runs jobs.
//
//mcptask:service fallback=none
type Jobs interface {
	// Run runs one.
	//
	//mcptask:tool task=required
	Run(ctx context.Context, task *mcptask.Task, in Job) (Done, error)

	// Ship ships what one has made, once a person agrees.
	Ship(ctx context.Context, task *mcptask.Task, in Job) (Done, error)

	// Look looks at one.
	//
	//mcptask:tool readonly
	Look(ctx context.Context, in Job) (Done, error)
}

// Job says which job is meant.
type Job struct {
	// Name is the name of the job.
	Name string `json:"name"`
}

// Done says how it went.
type Done struct {
	// Text is what there is to say.
	Text string `json:"text"`
}

// Approval is asked for before anything is shipped.
//
//mcptask:input message="Ship it?"
type Approval struct {
	// Approve must be true to go on.
	Approve bool `json:"approve"`
}
