// Package server has the server's half alone.
package server

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen --server-only

// Jobs runs jobs.
//
//mcptask:service fallback=none
type Jobs interface {
	// Run runs one.
	Run(ctx context.Context, task *mcptask.Task, in Job) (Done, error)
	// Plan says when one would run. It is a workflow, which the client does not see.
	//
	//mcptask:tool workflow=PlanJob
	Plan(ctx context.Context, task *mcptask.Task, in Job) (Done, error)
}

// Job says what to run.
type Job struct {
	// Name is the name of the job.
	Name string `json:"name"`
}

// Done says how it went.
type Done struct {
	// Text is what there is to say.
	Text string `json:"text"`
}

// Approval is asked for before a job runs.
//
//mcptask:input message="Run it?"
type Approval struct {
	// Approve must be true to go on.
	Approve bool `json:"approve"`
}

// Locked says that another job holds the lock.
//
//mcptask:error code=locked
type Locked struct {
	// Holder is the job with the lock.
	Holder string `json:"holder"`
}

// Error implements error.
func (l *Locked) Error() string { return "locked by " + l.Holder }
