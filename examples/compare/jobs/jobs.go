// Package jobs declares the tools whose tasks are measured.
package jobs

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Jobs does no work, so that only the tasks take time.
//
//mcptask:service fallback=none task=required
type Jobs interface {
	// Run ends at once.
	Run(ctx context.Context, task *mcptask.Task, in RunInput) (string, error)

	// Wait runs until the server closes.
	Wait(ctx context.Context, task *mcptask.Task) error

	// Report reports its progress again and again until the server closes.
	//
	//mcptask:tool poll=1ms
	Report(ctx context.Context, task *mcptask.Task) error
}

// RunInput names the work.
type RunInput struct {
	// Repository is the URL of a repository.
	Repository string `json:"repository"`
	// Branch is the branch to run.
	Branch string `json:"branch"`
}
