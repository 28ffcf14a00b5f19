package dialect

import (
	"context"
	"errors"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// firstRetry and longestRetry bound the pause of [RetryRead], which doubles each time.
const (
	firstRetry   = 50 * time.Millisecond
	longestRetry = 10 * time.Second
)

// Gone says whether an error of the server's is that there is no such task, or no longer.
// Any other error says nothing of the task: the store may have failed.
func Gone(err error) bool {
	var wire *mcptask.Error
	return errors.As(err, &wire) && wire.Code == mcptask.CodeInvalidParams
}

// RetryRead reads a task again and again until the store has said what has become of it, for as
// long as ctx and the server last. It is for requests that wait anyway: a store that fails
// costs them time only.
func RetryRead(ctx context.Context, s *mcptask.Server, read func() (mcptask.Record, error)) (mcptask.Record, error) {
	for pause := firstRetry; ; pause = min(2*pause, longestRetry) {
		r, err := read()
		if err == nil || Gone(err) || ctx.Err() != nil || s.Closing().Err() != nil {
			return r, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-s.Closing().Done():
		}
		timer.Stop()
	}
}
