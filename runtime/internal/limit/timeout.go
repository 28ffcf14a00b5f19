package limit

import (
	"context"
	"time"
)

// Timeout returns a context that ends after a time, with a cause. 0 or less means no bound.
func Timeout(ctx context.Context, after time.Duration, cause error) (context.Context, context.CancelFunc) {
	if after <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, after, cause)
}
