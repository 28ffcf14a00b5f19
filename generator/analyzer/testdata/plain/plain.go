// Package plain declares a service with a mistake.
package plain

import "context"

//mcptask:service
type S interface {
	Run(ctx context.Context, n int) error // want `S.Run takes int, which is no struct; take a struct with it as a field`
}
