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

// A failing store costs only time. A question that must move to another stream moves when its task
// can be read. A client's answer is kept until the store accepts it.

const (
	// readers limits how many tasks are read at once.
	readers = 8
	// firstRetry and longestRetry bound the pause between attempts for tasks whose reading failed.
	// The pause doubles while the store fails.
	firstRetry   = 50 * time.Millisecond
	longestRetry = 10 * time.Second
)

// retries holds the tasks that are tried again because the store failed. One round tries them all.
// The hub's lock guards it.
type retries struct {
	tasks map[string]bool
	pause time.Duration // before the next round
	timer *time.Timer   // of the next round
	busy  bool          // a round is running; its end sets the timer
}

// Refresh reads tasks whose questions may have to move, and passes them to the sessions.
func (h *Hub) Refresh(tasks ...string) { h.refresh(context.Background(), tasks) }

// refresh reads tasks until ctx ends.
func (h *Hub) refresh(ctx context.Context, tasks []string) {
	h.forEach(tasks, func(task string) {
		if ctx.Err() == nil {
			h.refreshTask(task)
		}
	})
}

// forEach calls f for each task, several at a time, and waits.
func (h *Hub) forEach(tasks []string, f func(task string)) {
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

// retryLater schedules another attempt for a task. h.mu is held.
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
		h.retryAfter(firstRetry) // a new failure does not wait for tasks that have failed for long
	}
}

// retryAfter starts the next round after a pause. h.mu is held.
func (h *Hub) retryAfter(pause time.Duration) {
	q := &h.retries
	q.pause = pause
	if q.timer == nil {
		q.timer = time.AfterFunc(pause, h.retry)
	} else {
		q.timer.Reset(pause)
	}
}

// retry runs one round. For each task it stores the held answers, then refreshes the task.
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
	h.forEach(tasks, func(task string) {
		defer guard.Then(h.server.Logger(), "retry of a task", func() { // else no other round would begin
			h.mu.Lock()
			defer h.mu.Unlock()
			h.retryLater(task)
		})
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
