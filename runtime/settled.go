package mcptask

import (
	"context"
	"iter"
	"slices"
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
		ctx, stop := context.WithCancel(ctx)
		defer stop()                         // what nobody watches is not polled
		idle := make([]*watched, len(calls)) // by due
		for i, call := range calls {
			idle[i] = &watched{call: call}
		}
		results := make(chan *watched, pollsAtOnce)
		timer := time.NewTimer(0)
		defer timer.Stop()
		for polling := 0; polling+len(idle) > 0; {
			var due <-chan time.Time
			if polling < pollsAtOnce && len(idle) > 0 {
				timer.Reset(time.Until(idle[0].due))
				due = timer.C
			}
			select {
			case <-due:
				w := idle[0]
				idle = idle[1:]
				polling++
				go func() {
					snapshot, err := w.call.p.step(ctx)
					if w.done, w.err = err != nil || snapshot.Done(), err; err == nil && w.done {
						_, w.err = decodeOutput[Out](w.call.p.spec.Tool, snapshot)
					}
					w.due = w.call.p.next()
					results <- w
				}()
			case w := <-results:
				polling--
				if !w.done {
					i, _ := slices.BinarySearchFunc(idle, w.due, func(w *watched, due time.Time) int { return w.due.Compare(due) })
					idle = slices.Insert(idle, i, w)
				} else if ctx.Err() == nil && !yield(w.call, w.err) {
					return
				}
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
		}
	}
}
