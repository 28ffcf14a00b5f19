package limit

import (
	"context"
	"time"
)

// Timeout ends a context after a time, with a cause; 0 and less is no bound.
func Timeout(ctx context.Context, after time.Duration, cause error) (context.Context, context.CancelFunc) {
	if after <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, after, cause)
}
