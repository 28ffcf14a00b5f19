// Package stale was generated from other declarations.
package stale

import "context"

/* want `^generated.go is stale, from line 2 on: run go generate$` */ //mcptask:service
type S interface {
	Run(ctx context.Context) error
}
