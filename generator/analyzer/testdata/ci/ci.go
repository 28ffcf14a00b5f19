// Package ci declares a service.
package ci

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

type CI interface {
	Run(ctx context.Context, task *mcptask.Task, in Input) error
	Lint(ctx context.Context, in Input) error
}

type Input struct{}

type Approval struct{}

// CITools stands for the generated function.
func CITools(impl CI) mcptask.Tools { return mcptask.Tools{Impl: impl} }

// AskApproval stands for the generated function.
func AskApproval(ctx context.Context, task *mcptask.Task, step, message string) (Approval, error) {
	return Approval{}, nil
}

// Other is no service: nothing is generated for it.
type Other interface {
	Other(ctx context.Context)
}
