// Package jobs has a tool of every kind, and says everything that a declaration can.
package jobs

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Jobs has tools with tasks.
//
//mcptask:service fallback=tools prefix=jobs_ ttl=1h poll=100ms
type Jobs interface {
	// Build has a typed output, and is always a task.
	//
	//mcptask:tool title="Build it" task=required deadline=30m concurrency=8 onlost=restart attempts=3 onchange=run was=jobs_make immediate="It is being built."
	Build(ctx context.Context, task *mcptask.Task, in BuildInput) (*Report, error)
	// Deploy asks while it runs.
	//
	//mcptask:tool grace=5ms openworld onleave=keep
	Deploy(ctx context.Context, task *mcptask.Task, in BuildInput) (Report, error)
	// Remove asks before it begins.
	//
	//mcptask:tool destructive idempotent=false
	Remove(ctx context.Context, task *mcptask.Task, in BuildInput, sure Approval) (Report, error)
	// Render has content of its own.
	Render(ctx context.Context, task *mcptask.Task, in BuildInput) (*mcptask.Result, error)
	// Clean has neither input nor output.
	Clean(ctx context.Context, task *mcptask.Task) error
	// Hang works until it is cancelled.
	//
	//mcptask:tool wait=20ms
	Hang(ctx context.Context, task *mcptask.Task) error
}

// Files has tools without tasks.
//
//mcptask:service task=forbidden readonly
type Files interface {
	// Describe returns text.
	Describe(ctx context.Context, in BuildInput) (string, error)
	// Sort takes and returns instances of generic types, with enums.
	Sort(ctx context.Context, in Page[Mode]) (Page[Entry[Mode, Priority]], error)
}

// BuildInput says what to build.
type BuildInput struct {
	// Name is the name of the job.
	Name string `json:"name" jsonschema:"minLength=1"`
	Mode Mode   `json:"mode,omitempty" jsonschema:"default=fast"`
}

// Report says how it went.
type Report struct {
	// Done tells whether it was done.
	Done bool   `json:"done"`
	Note string `json:"note,omitempty"`
}

// Mode is how a job runs.
type Mode string

// The modes.
const (
	// ModeFast skips the tests.
	ModeFast Mode = "fast"
	ModeFull Mode = "full"
)

// Priority is the place in the queue.
//
//mcptask:enum
type Priority int

// The priorities.
const (
	PriorityLow Priority = iota + 1
	PriorityHigh
)

// Page is a page of a list.
type Page[T any] struct {
	Items []T `json:"items"`
}

// Entry has two parameters.
type Entry[K comparable, V any] struct {
	Key   K  `json:"key"`
	Value *V `json:"value,omitempty"`
}

// Approval is what a person answers.
//
//mcptask:input message="Are you sure?"
type Approval struct {
	// Approve must be true to go on.
	Approve bool `json:"approve"`
	Mode    Mode `json:"mode,omitempty"`
}

// Busy says that the queue is full.
//
//mcptask:error code=busy
type Busy struct {
	// Length is the number of jobs before this one.
	Length int `json:"length"`
}

// Error implements error.
func (b *Busy) Error() string { return "the queue is full" }
