package gateway

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// errCallerGone ends a response that lasts longer than the credentials of its request.
var errCallerGone = errors.New("the credentials of the request are no longer valid")

// endWithCaller returns a context that ends with the credentials of a request: when they expire, or when
// Principal no longer returns the principal. It asks Principal once every keepAlive. Call stop when the
// request ends.
//
// A stream, a subscription and a request that waits for a task need it. A call does not: it was allowed when it
// began, and its work would be lost.
func (g *Gateway) endWithCaller(ctx context.Context, principal string) (_ context.Context, stop func()) {
	var expires time.Time
	if g.config.Expires != nil {
		expires = g.config.Expires(ctx)
	}
	if !expires.IsZero() && time.Until(expires) <= 0 {
		expires = time.Now().Add(keepAlive) // the credentials were accepted all the same: clocks differ
	}
	valid, cancel := context.WithCancelCause(ctx)
	go func() {
		defer guard.Then(g.server.Logger(), "the check of a caller", func() { cancel(errCallerGone) })
		for {
			wait := keepAlive
			if !expires.IsZero() {
				wait = min(wait, time.Until(expires))
			}
			select {
			case <-valid.Done():
				return
			case <-time.After(wait):
			}
			if !expires.IsZero() && time.Until(expires) <= 0 {
				cancel(errCallerGone)
				return
			}
			switch now, err := g.identify(ctx); {
			case valid.Err() != nil:
				return
			case err != nil || now != principal:
				g.server.Notice(slog.LevelInfo, "request ended, because its caller has changed", "principal", principal, "error", err)
				cancel(errCallerGone)
				return
			}
		}
	}()
	return valid, func() { cancel(nil) }
}
