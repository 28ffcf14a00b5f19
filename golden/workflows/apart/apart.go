// Package apart has a tool whose workflow asks the question of another package, golden/workflows/questions.
// The service has the fallback tool task_answer nevertheless.
package apart

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Nightly releases versions by night.
//
//mcptask:service
type Nightly interface {
	// Release releases a version.
	//
	//mcptask:tool workflow=Release
	Release(ctx context.Context, task *mcptask.Task, in Version) (Version, error)
}

// Version is a version.
type Version struct {
	Name string `json:"name"`
}
