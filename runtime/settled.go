package mcptask

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"
)

// pollsAtOnce is how many requests one Settled has under way.
const pollsAtOnce = 16

// Settled yields each call when it is done, in the order in which that is
// seen, with the error that its Wait would return (nil for success). One watcher
// polls all of them, each at its own interval. When ctx ends, a nil call with
// the context's error is the last.
func Settled[Out any](ctx context.Context, calls ...*Call[Out]) iter.Seq2[*Call[Out], error] {
	type watched struct {
		call *Call[Out]
		due  time.Time
		done bool
		err  error
	}
	return func(yield func(*Call[Out], error) bool) {
		waiting := make([]*watched, len(calls))
		for i, call := range calls {
			waiting[i] = &watched{call: call}
		}
		for len(waiting) > 0 {
			slices.SortStableFunc(waiting, func(a, b *watched) int { return a.due.Compare(b.due) })
			if err := sleepUntil(ctx, waiting[0].due); err != nil {
				yield(nil, err)
				return
			}
			now := time.Now()
			var polls sync.WaitGroup
			batch := waiting[:min(len(waiting), pollsAtOnce)]
			for _, w := range batch {
				if w.due.After(now) {
					break
				}
				polls.Go(func() {
					snapshot, err := w.call.p.step(ctx)
					w.err = err
					w.done = err != nil || snapshot.Done()
					w.due = w.call.p.next()
				})
			}
			polls.Wait()
			var settled []*watched
			waiting = slices.DeleteFunc(waiting, func(w *watched) bool {
				if w.done {
					settled = append(settled, w)
				}
				return w.done
			})
			for _, w := range settled {
				if ctx.Err() != nil {
					yield(nil, ctx.Err())
					return
				}
				if w.err == nil {
					_, w.err = w.call.Wait(ctx) // done: returns at once
				}
				if !yield(w.call, w.err) {
					return
				}
			}
		}
	}
}

// sleepUntil waits until t, at most until ctx ends.
func sleepUntil(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
