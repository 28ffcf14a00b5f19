// Package origin marks requests of a client in the server's own process. Only a transport can set the mark: nothing
// that a client sends sets it, and no name that a client has.
package origin

import "context"

type localKey struct{}

// WithLocal marks the context of a request of a client in the server's own process, such as a test. The request may
// have the principal of the client on a pipe.
func WithLocal(ctx context.Context) context.Context { return context.WithValue(ctx, localKey{}, true) }

// IsLocal reports whether WithLocal has marked the context.
func IsLocal(ctx context.Context) bool { return ctx.Value(localKey{}) != nil }
