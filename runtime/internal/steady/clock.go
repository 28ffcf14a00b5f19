// Package steady has a clock that a short jump of the machine's clock does not move. It knows nothing of
// tasks.
package steady

import (
	"sync"
	"time"
)

const (
	// Hold is how long the machine's clock has to be ahead until a Clock believes it.
	Hold = time.Minute
	// slack is how far ahead the machine's clock may be at once, such as by a small correction.
	slack = time.Second
)

// Clock tells a time that has surely come. It is never later than the machine's clock. If the machine's
// clock jumps ahead, Clock goes on at its own pace, and follows once the jump has lasted for Hold. If the
// machine's clock is set back, Clock follows at once. It is safe for concurrent use.
//
// After the machine was asleep or its clock was set ahead, deadlines by a Clock pass up to Hold late. They
// never pass early because the machine's clock was wrong for a moment.
type Clock struct {
	read func() (wall time.Time, elapsed time.Duration)

	mu    sync.Mutex
	start time.Time     // the Clock's time is elapsed after it
	ahead bool          // the machine's clock is ahead
	since time.Duration // the elapsed time at which that began
	least time.Duration // the smallest lead that was seen from then on
}

// New returns a Clock that begins with the time that now returns. It takes the passed time from the
// monotonic readings of now, if there are any.
func New(now func() time.Time) *Clock {
	first := now()
	return NewReader(func() (time.Time, time.Duration) {
		t := now()
		return t.Round(0), t.Sub(first)
	})
}

// NewReader is like New, but takes both times from read: the machine's, and the time that has passed by
// another clock, which never jumps.
func NewReader(read func() (wall time.Time, elapsed time.Duration)) *Clock {
	wall, elapsed := read()
	return &Clock{read: read, start: wall.Add(-elapsed)}
}

// Doubt sets the Clock back to the last time that is known to have come, as if the machine's clock had
// jumped ahead from there.
func (c *Clock) Doubt(known time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wall, elapsed := c.read(); known.Before(wall) {
		c.start = known.Add(-elapsed)
	}
}

// Now returns the time, without a monotonic reading.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, elapsed := c.read()
	more := wall.Sub(c.start.Add(elapsed))
	switch {
	case more <= slack:
		c.start, c.ahead = c.start.Add(more), false
	case !c.ahead:
		c.ahead, c.since, c.least = true, elapsed, more
	default:
		if c.least = min(c.least, more); elapsed-c.since < Hold {
			break
		}
		c.start = c.start.Add(c.least)
		more -= c.least // another jump, which has not lasted as long
		c.ahead, c.since, c.least = more > slack, elapsed, more
	}
	return c.start.Add(elapsed)
}
