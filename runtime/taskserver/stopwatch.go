package taskserver

import (
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// stopwatch counts the time that a handler works. It stands still while any goroutine of the run waits, even if others
// work meanwhile. It is safe for concurrent use.
type stopwatch struct {
	mu      sync.Mutex
	worked  time.Duration // before started
	started time.Time     // zero while it stands still
	pauses  int           // how many goroutines of the handler wait

	limit  time.Duration // at which it calls expire; 0 means none
	expire func()
	timer  *time.Timer
}

// startStopwatch returns a stopwatch that counts on from worked. It calls expire when the time reaches the limit. A limit
// of 0 or less means no limit.
func startStopwatch(worked, limit time.Duration, expire func()) *stopwatch {
	w := &stopwatch{worked: worked, limit: limit, expire: expire}
	w.start()
	return w
}

// start begins to count. w.mu is held, or w is new.
func (w *stopwatch) start() {
	w.started = time.Now()
	if w.limit > 0 {
		w.timer = time.AfterFunc(w.limit-w.worked, guard.Func(nil, "a deadline", w.expire))
	}
}

// halt stops counting. w.mu is held.
func (w *stopwatch) halt() {
	if w.started.IsZero() {
		return
	}
	w.worked += time.Since(w.started)
	w.started = time.Time{}
	if w.timer != nil {
		w.timer.Stop()
	}
}

// pause stops the count until resume is called, and all others that have paused it have resumed it too.
func (w *stopwatch) pause() (resume func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pauses++
	w.halt()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.pauses--; w.pauses == 0 {
			w.start()
		}
	}
}

// read returns the time that the handler has worked.
func (w *stopwatch) read() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started.IsZero() {
		return w.worked
	}
	return w.worked + time.Since(w.started)
}

// stop ends the count for good.
func (w *stopwatch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.halt()
	w.pauses++ // no resume starts it again
}
