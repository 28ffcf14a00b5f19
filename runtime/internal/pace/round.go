package pace

import (
	"context"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// Round works on many things at once, each when it is due.
type Round struct {
	// AtOnce bounds the steps under way.
	AtOnce int
	// Due returns when the next step of a thing is due. It is called from one goroutine.
	// News says that this has changed for some things.
	Due  func(i int) time.Time
	News <-chan struct{}
	// Step does the next step of a thing and reports whether the thing is done.
	Step func(i int) (done bool)
	// Done is called for each thing that is done, from one goroutine. false ends the round.
	Done func(i int) (more bool)
}

// tick is the time within which steps that become due are taken together. Thousands of steps a
// second would otherwise wake the process one by one.
const tick = 50 * time.Millisecond

// nextTick returns the end of the tick in which a step becomes due. The zero time stays.
func nextTick(due time.Time) time.Time {
	if begin := due.Truncate(tick); begin.Before(due) {
		return due.Add(tick - due.Sub(begin)) // not begin.Add: that has only the wall clock, which may be set back
	}
	return due
}

// Run runs the round for n things until all are done. If ctx ends first, it returns the error of
// ctx, and steps may still be under way.
func (r Round) Run(ctx context.Context, n int) error {
	type thing struct {
		i    int
		due  time.Time
		done bool
	}
	byDue := func(a, b *thing) int { return a.due.Compare(b.due) }
	idle := make([]*thing, n) // sorted by due; at first all are due
	for i := range idle {
		idle[i] = &thing{i: i}
	}
	stepped := make(chan *thing, r.AtOnce)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for running := 0; running+len(idle) > 0; {
		for running < r.AtOnce && len(idle) > 0 && !time.Now().Before(idle[0].due) {
			w := idle[0]
			idle = idle[1:]
			running++
			go func() {
				defer guard.Then(nil, "a step", func() { w.done = true; stepped <- w })
				w.done = r.Step(w.i)
				stepped <- w
			}()
		}
		var due <-chan time.Time
		if running < r.AtOnce && len(idle) > 0 {
			timer.Reset(time.Until(idle[0].due))
			due = timer.C
		}
		select {
		case <-due:
		case w := <-stepped:
			running--
			if !w.done {
				w.due = nextTick(r.Due(w.i)) // in this goroutine, so that no news is missed before w is idle again
				i, _ := slices.BinarySearchFunc(idle, w, byDue)
				idle = slices.Insert(idle, i, w)
			} else if ctx.Err() == nil && !r.Done(w.i) {
				return nil
			}
		case <-r.News:
			for _, w := range idle {
				w.due = nextTick(r.Due(w.i))
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
