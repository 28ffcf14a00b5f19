// Package hook calls the functions that a program wants to be called at the beginning and the end of something. Each
// call has a goroutine of its own. If a function panics or ends its goroutine, that is logged and does no harm.
package hook

import (
	"context"
	"log/slog"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// Begin is called at the beginning of an operation. It returns the context of the operation, and a function that is
// called at the end. Either may be nil.
type Begin[Info, End any] = func(context.Context, Info) (context.Context, func(End))

// Call calls the functions that pick returns of the hooks, unless they are nil, at the beginning of an operation. The
// first is the outermost: the context that it returns is the next one's. end calls the functions that they have
// returned, the last first. Call it once.
func Call[Hook, Info, End any](ctx context.Context, logger *slog.Logger, hooks []Hook, pick func(*Hook) Begin[Info, End], info Info) (_ context.Context, end func(End)) {
	var ends []func(End)
	for i := range hooks {
		if begin := pick(&hooks[i]); begin != nil {
			var ended func(End)
			if ctx, ended = callBegin(ctx, logger, begin, info); ended != nil {
				ends = append(ends, ended)
			}
		}
	}
	return ctx, func(result End) {
		for _, ended := range slices.Backward(ends) {
			Tell(logger, func() { ended(result) })
		}
	}
}

// callBegin calls one function. If it panics or returns no context, the context stays.
func callBegin[Info, End any](ctx context.Context, logger *slog.Logger, begin Begin[Info, End], info Info) (next context.Context, end func(End)) {
	next = ctx
	guard.Apart(logger, "hook", func() {
		var inner context.Context
		if inner, end = begin(ctx, info); inner != nil {
			next = inner //nolint:fatcontext // of one call
		}
	})
	return next, end
}

// Tell calls a function that returns nothing.
func Tell(logger *slog.Logger, f func()) {
	guard.Apart(logger, "hook", f)
}
