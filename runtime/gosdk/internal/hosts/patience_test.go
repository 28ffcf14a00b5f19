package hosts

import "time"

// signal is what a host sees of a request that is under way. Signals can be joined.
type signal int

const (
	sawHeaders  signal = 1 << iota // the headers of an HTTP response
	sawBytes                       // any bytes of the response, such as its headers or a comment
	sawProgress                    // a progress notification with the request's token
	sawQuestion                    // the host shows a question to its user
	sawAnswer                      // the question has gone: it is answered or withdrawn
	sawEnd                         // the response to the request
)

// timer is one reason for which a host gives a request up.
type timer struct {
	after time.Duration
	// endedBy are the signals that end the timer, resetBy those that start it again.
	endedBy, resetBy signal
	// pauses says that the timer stands still while a question is shown.
	pauses bool
}

// clock runs the timers of one request.
type clock struct {
	timers []timer
	due    []time.Time // when each timer fires; zero if it has ended
	asked  time.Time   // when the question that is shown came; zero if there is none
}

func startClock(timers []timer) *clock {
	c := &clock{timers: timers, due: make([]time.Time, len(timers))}
	for i, t := range timers {
		c.due[i] = time.Now().Add(t.after)
	}
	return c
}

// notice tells the timers of signals.
func (c *clock) notice(seen signal) {
	now := time.Now()
	for i, t := range c.timers {
		switch {
		case c.due[i].IsZero():
		case t.endedBy&seen != 0:
			c.due[i] = time.Time{}
		case t.resetBy&seen != 0:
			c.due[i] = now.Add(t.after)
		case t.pauses && seen&sawAnswer != 0 && !c.asked.IsZero():
			c.due[i] = c.due[i].Add(now.Sub(c.asked))
		}
	}
	switch {
	case seen&sawQuestion != 0:
		c.asked = now
	case seen&sawAnswer != 0:
		c.asked = time.Time{}
	}
}

// alarm returns a channel that fires when the next timer does. It is nil if none runs.
func (c *clock) alarm() <-chan time.Time {
	var first time.Time
	for i, due := range c.due {
		if due.IsZero() || c.timers[i].pauses && !c.asked.IsZero() {
			continue
		}
		if first.IsZero() || due.Before(first) {
			first = due
		}
	}
	if first.IsZero() {
		return nil
	}
	return time.After(time.Until(first))
}
