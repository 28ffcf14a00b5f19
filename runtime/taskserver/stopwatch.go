package taskserver

import (
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// stopwatch counts the time that a handler works. It stands while the handler waits. It is safe for concurrent use.
type stopwatch struct {
	mu      sync.Mutex
	worked  time.Duration // before started
	started time.Time     // zero while it stands
	pauses  int           // how many goroutines of the handler wait

	limit time.Duration // when it rings; 0 means never
	ring  func()
	timer *time.Timer
}

// startStopwatch makes a stopwatch that goes on from worked, and calls ring when the time reaches a limit. A limit of 0
// or less means that it never rings.
func startStopwatch(worked, limit time.Duration, ring func()) *stopwatch {
	w := &stopwatch{worked: worked, limit: limit, ring: ring}
	w.start()
	return w
}

// start lets it run. w.mu is held, or w is new.
func (w *stopwatch) start() {
	w.started = time.Now()
	if w.limit > 0 {
		w.timer = time.AfterFunc(w.limit-w.worked, guard.Func(nil, "a deadline", w.ring))
	}
}

// halt lets it stand. w.mu is held.
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

// pause lets it stand until resume is called, and until all others that have paused it have resumed it.
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

// stop ends it.
func (w *stopwatch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.halt()
	w.pauses++ // no resume starts it again
}
