// Package workflows has tools that are workflows.
package workflows

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Jobs has tools that are workflows, and one that is not.
//
//mcptask:service
type Jobs interface {
	// Run asks before it begins, and while it runs.
	//
	//mcptask:tool workflow=RunJob
	Run(ctx context.Context, task *mcptask.Task, in Job, sure Approval) (Done, error)
	// Clean has neither input nor output.
	//
	//mcptask:tool workflow=Clean
	Clean(ctx context.Context, task *mcptask.Task) error
	// Describe is not a workflow.
	Describe(ctx context.Context, in Job) (string, error)
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
