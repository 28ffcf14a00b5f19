// Package services has two services, with an input that both ask for.
package services

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Builds is the first service.
//
//mcptask:service prefix=builds_ ttl=1h onleave=keep
type Builds interface {
	// Run has a method of the same name in the other service.
	Run(ctx context.Context, task *mcptask.Task, in Job) (Report, error)
	// List lists.
	List(ctx context.Context) (Report, error)
}

// Releases is the second service.
//
//mcptask:service fallback=none prefix=releases. task=required readonly
type Releases interface {
	// Run asks before it runs.
	//
	//mcptask:tool readonly=false destructive
	Run(ctx context.Context, task *mcptask.Task, in Job, sure Sure) (Report, error)
	// Undo asks while it runs.
	Undo(ctx context.Context, task *mcptask.Task, in Job) (Report, error)
}

// Job is an input that both services take.
type Job struct {
	Name string `json:"name"`
}

// Report is an output that both services return.
type Report struct {
	Names []string `json:"names"`
}

// Sure is a question that both may ask.
//
//mcptask:input message="Are you sure?"
type Sure struct {
	Yes bool `json:"yes"`
}
