// Package origin marks requests with what their transport knows of the client. Only a transport can set a mark:
// nothing that a client sends, and no name that it has, sets one.
package origin

import "context"

type localKey struct{}

// WithLocal marks the context of a request of a client in the server's own process, such as a test. Its principal may be
// that of a client on a pipe.
func WithLocal(ctx context.Context) context.Context { return context.WithValue(ctx, localKey{}, true) }

// IsLocal reports whether WithLocal has marked the context.
func IsLocal(ctx context.Context) bool { return ctx.Value(localKey{}) != nil }
