package mcptask

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pace"
)

// pollsAtOnce bounds the requests that one Settled has under way.
const pollsAtOnce = 16

// errPanicked is the error of a call whose connection panicked.
var errPanicked = errors.New("mcptask: the connection panicked, as the log says")

// Settled yields each call when it is done, in the order in which it learns of that,
// with the error that the call's Wait would return (nil for success). One watcher
// polls all calls, each at its own interval, or gets their changes (see Watcher). When
// ctx ends, Settled yields a nil call with the context's error and stops.
func Settled[Out any](ctx context.Context, calls ...*Call[Out]) iter.Seq2[*Call[Out], error] {
	return func(yield func(*Call[Out], error) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop() // ends the polls
		news := make(chan struct{}, 1)
		leave := make([]func(), len(calls))
		errs := make([]error, len(calls))
		for i, call := range calls {
			leave[i] = sync.OnceFunc(call.pending.startWaiting(ctx, news))
			defer leave[i]()
		}
		err := pace.Round{
			AtOnce: pollsAtOnce, News: news,
			Due: func(i int) time.Time { return calls[i].pending.nextDue() },
			Step: func(i int) bool {
				errs[i] = errPanicked // unless it returns
				snapshot, err := calls[i].pending.pollIfDue(ctx)
				done := err != nil || snapshot.Done()
				if err == nil && done {
					_, err = decodeOutput[Out](calls[i].pending.subject(), snapshot)
				}
				errs[i] = err
				return done
			},
			Done: func(i int) bool {
				leave[i]()
				return yield(calls[i], errs[i])
			},
		}.Run(ctx, len(calls))
		if err != nil {
			yield(nil, err)
		}
	}
}
