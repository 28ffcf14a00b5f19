package pace

import (
	"context"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// Round sees to many things at once, each when it is due.
type Round struct {
	// AtOnce is how many steps are under way at most.
	AtOnce int
	// Due is when a thing is to be seen to next; it is called from one goroutine.
	// News says that it has changed for some.
	Due  func(i int) time.Time
	News <-chan struct{}
	// Step sees to a thing and says whether it is done.
	Step func(i int) (done bool)
	// Done is called for each that is done, from one goroutine; false ends the
	// round.
	Done func(i int) (more bool)
}

// Run runs the round for n things until all are done, and returns the error of
// ctx where that ends first. Steps may be under way then.
func (r Round) Run(ctx context.Context, n int) error {
	type thing struct {
		i    int
		due  time.Time
		done bool
	}
	byDue := func(a, b *thing) int { return a.due.Compare(b.due) }
	idle := make([]*thing, n) // by due; at first each is
	for i := range idle {
		idle[i] = &thing{i: i}
	}
	stepped := make(chan *thing, r.AtOnce)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for running := 0; running+len(idle) > 0; {
		var due <-chan time.Time
		if running < r.AtOnce && len(idle) > 0 {
			timer.Reset(time.Until(idle[0].due))
			due = timer.C
		}
		select {
		case <-due:
			w := idle[0]
			idle = idle[1:]
			running++
			go func() {
				defer guard.Then(nil, "a step", func() { w.done = true; stepped <- w })
				w.done = r.Step(w.i)
				stepped <- w
			}()
		case w := <-stepped:
			running--
			if !w.done {
				w.due = r.Due(w.i) // here, so that no news comes between this and the line
				i, _ := slices.BinarySearchFunc(idle, w, byDue)
				idle = slices.Insert(idle, i, w)
			} else if ctx.Err() == nil && !r.Done(w.i) {
				return nil
			}
		case <-r.News:
			for _, w := range idle {
				w.due = r.Due(w.i)
			}
			slices.SortStableFunc(idle, byDue)
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
