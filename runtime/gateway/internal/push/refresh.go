package push

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// A store that fails costs time only. A question that has to move to another stream moves
// once its task can be read, and a client's answer is kept until the store has taken it.

const (
	// readers is how many tasks are read at once.
	readers = 8
	// firstRetry and longestRetry bound the pause after which failed tasks are tried
	// again. The pause doubles while the store fails.
	firstRetry   = 50 * time.Millisecond
	longestRetry = 10 * time.Second
)

// retries are the tasks that are tried again, all in one round, since the store has failed.
// The hub's lock guards them.
type retries struct {
	tasks map[string]bool
	pause time.Duration // before the next round
	timer *time.Timer   // of the next round
	busy  bool          // a round is under way: its end sets the timer
}

// Refresh reads tasks whose questions may have to move, and lets the sessions look at them.
func (h *Hub) Refresh(tasks ...string) { h.refresh(context.Background(), tasks) }

// refresh is Refresh until ctx ends.
func (h *Hub) refresh(ctx context.Context, tasks []string) {
	h.each(tasks, func(task string) {
		if ctx.Err() == nil {
			h.refreshTask(task)
		}
	})
}

// each calls f for each task, for some at once, and waits.
func (h *Hub) each(tasks []string, f func(task string)) {
	if len(tasks) == 1 {
		f(tasks[0])
		return
	}
	var next atomic.Int64
	var reading sync.WaitGroup
	for range min(readers, len(tasks)) {
		reading.Go(func() {
			defer guard.Recover(h.server.Logger(), "reading of tasks")
			for i := next.Add(1); i <= int64(len(tasks)); i = next.Add(1) {
				f(tasks[i-1])
			}
		})
	}
	reading.Wait()
}

func (h *Hub) refreshTask(task string) {
	r, err := h.server.Peek(task)
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[task]
	switch {
	case t == nil:
	case errors.Is(err, mcptask.ErrNoRecord):
		h.drop(task)
	case err != nil:
		h.retryLater(task)
	case r.Version >= t.version:
		h.post(t, r)
	}
}

// retryLater has a task tried again after a pause. h.mu is held.
func (h *Hub) retryLater(task string) {
	q := &h.retries
	if h.topics[task] == nil || q.tasks[task] || h.server.Closing().Err() != nil {
		return
	}
	if q.tasks == nil {
		q.tasks = map[string]bool{}
	}
	q.tasks[task] = true
	if !q.busy {
		h.retryAfter(firstRetry) // it need not wait for those that fail for long
	}
}

// retryAfter has the next round begin after a pause. h.mu is held.
func (h *Hub) retryAfter(pause time.Duration) {
	q := &h.retries
	q.pause = pause
	if q.timer == nil {
		q.timer = time.AfterFunc(pause, h.retry)
	} else {
		q.timer.Reset(pause)
	}
}

// retry tries the tasks that have failed: it stores the answers that wait, then lets the
// sessions look at the tasks again.
func (h *Hub) retry() {
	defer guard.Recover(h.server.Logger(), "retry of the store")
	q := &h.retries
	h.mu.Lock()
	if q.busy {
		h.mu.Unlock()
		return
	}
	tasks := slices.Collect(maps.Keys(q.tasks))
	clear(q.tasks)
	q.busy = true
	h.mu.Unlock()
	h.each(tasks, func(task string) {
		if h.server.Closing().Err() == nil && h.storeHeld(task) {
			h.refreshTask(task)
		}
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	q.busy = false
	switch {
	case h.server.Closing().Err() != nil:
		clear(q.tasks)
	case slices.ContainsFunc(tasks, func(task string) bool { return q.tasks[task] }):
		h.retryAfter(min(2*q.pause, longestRetry))
	case len(q.tasks) > 0:
		h.retryAfter(firstRetry)
	}
}
