// Package stale was generated from other declarations.
package stale

import "context"

/* want `^generated.go is stale, from line 2 on: run mcptaskgen example.com/app/stale$` */ //mcptask:service
type S interface {
	Run(ctx context.Context) error
}
