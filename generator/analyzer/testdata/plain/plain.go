// Package plain declares a service with a mistake.
package plain

import "context"

//mcptask:service
type S interface {
	Run(ctx context.Context, n int) error // want `S.Run takes int, which is not a struct; take a struct with a field of this type`
}
