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
	// Run does nothing and ends at once.
	Run(ctx context.Context, task *mcptask.Task, in RunInput) (string, error)

	// Wait waits until the server closes.
	Wait(ctx context.Context, task *mcptask.Task) error

	// Report reports its progress again and again until the server closes.
	//
	//mcptask:tool poll=1ms
	Report(ctx context.Context, task *mcptask.Task) error
}

// RunInput names the work.
type RunInput struct {
	// Repository is the URL of a repository, such as https://example.com/web.git.
	Repository string `json:"repository"`
	// Branch is the name of a branch, such as main.
	Branch string `json:"branch"`
}
