// Package missing has not been generated yet, so that it does not compile.
package missing

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

/* want `^mcptask_gen.go is missing: run mcptaskgen example.com/app/missing$` */ //mcptask:service
type S interface {
	Run(ctx context.Context) error
}

var _ mcptask.Tools = STools(nil)
