package pace

import (
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestRoundHearsNewsAfterAStep checks that a change while the end of a step is noted is acted on at
// once.
func TestRoundHearsNewsAfterAStep(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		began := time.Now()
		news := make(chan struct{}, 1)
		steps, asked, due := 0, 0, time.Time{}
		err := Round{
			AtOnce: 1, News: news,
			Step: func(int) bool {
				steps++
				due = began.Add(time.Hour)
				return steps == 2
			},
			Due: func(int) time.Time {
				told := due
				if asked++; asked == 1 { // the change comes just behind the look
					due = began
					news <- struct{}{}
					time.Sleep(time.Second)
				}
				return told
			},
			Done: func(int) bool { return true },
		}.Run(t.Context(), 1)
		if took := time.Since(began); err != nil || steps != 2 || took >= time.Hour {
			t.Errorf("%d steps in %v: %v", steps, took, err)
		}
	})
}

// TestTickIsMonotonic checks that no step waits for a clock that is set back.
func TestTickIsMonotonic(t *testing.T) {
	for i := range 10 {
		due := time.Now().Add(time.Duration(7*i) * time.Millisecond)
		next := nextTick(due)
		if !strings.Contains(next.String(), " m=+") || next.Before(due) || next.Sub(due) >= tick {
			t.Errorf("%v for %v", next, due)
		}
	}
}

// TestRoundTakesStepsTogether checks that steps that are due within a tick begin together, and none before it is due.
func TestRoundTakesStepsTogether(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		began := time.Now().Truncate(tick)
		var second [4]time.Time
		stepped := [len(second)]bool{}
		err := Round{
			AtOnce: len(second),
			Due:    func(i int) time.Time { return began.Add(time.Second + time.Duration(i)*tick/2) },
			Step: func(i int) bool {
				again := stepped[i]
				stepped[i], second[i] = true, time.Now()
				return again
			},
			Done: func(int) bool { return true },
		}.Run(t.Context(), len(second))
		if err != nil {
			t.Fatal(err)
		}
		for i, late := range []time.Duration{0, tick, tick, 2 * tick} {
			if after := second[i].Sub(began); after != time.Second+late {
				t.Errorf("step %d after %v", i, after)
			}
		}
	})
}
