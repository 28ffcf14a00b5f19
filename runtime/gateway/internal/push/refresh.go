package push

import (
	"errors"
	"slices"
	"sync"
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
	timer *time.Timer   // of the next round; nil while there is none, or one is under way
	busy  bool          // a round is under way
}

// Refresh reads tasks whose questions may have to move, and lets the sessions look at them.
func (h *Hub) Refresh(tasks ...string) { h.refreshUntil(nil, tasks) }

// refreshUntil reads tasks until done is closed. It returns when all are read.
func (h *Hub) refreshUntil(done <-chan struct{}, tasks []string) {
	h.each(tasks, func(task string) {
		select {
		case <-done:
		default:
			h.refresh(task)
		}
	})
}

// each calls f for each task, for some at once.
func (h *Hub) each(tasks []string, f func(task string)) {
	if len(tasks) == 1 {
		f(tasks[0])
		return
	}
	left := make(chan string, len(tasks))
	for _, id := range tasks {
		left <- id
	}
	close(left)
	var reading sync.WaitGroup
	for range min(readers, len(tasks)) {
		reading.Go(func() {
			defer guard.Recover(h.server.Logger(), "reading of tasks")
			for id := range left {
				f(id)
			}
		})
	}
	reading.Wait()
}

func (h *Hub) refresh(task string) {
	r, err := h.server.Peek(task)
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[task]
	switch {
	case t == nil:
	case errors.Is(err, mcptask.ErrNoRecord):
		h.drop(task)
	case err != nil:
		h.retryLocked(task)
	case r.Version >= t.version:
		h.post(t, r)
	}
}

// retryLater has a task tried again after a pause.
func (h *Hub) retryLater(task string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retryLocked(task)
}

// retryLocked is retryLater for a caller who holds h.mu.
func (h *Hub) retryLocked(task string) {
	q := &h.retries
	if h.topics[task] == nil || q.tasks[task] || h.server.Closing().Err() != nil {
		return
	}
	if q.tasks == nil {
		q.tasks = map[string]bool{}
	}
	q.tasks[task] = true
	if !q.busy { // a task that has just failed need not wait for those that fail for long
		q.pause = firstRetry
		h.setRetryTimer()
	}
}

// setRetryTimer has the next round begin after the pause. h.mu is held.
func (h *Hub) setRetryTimer() {
	if q := &h.retries; q.timer == nil {
		q.timer = time.AfterFunc(q.pause, h.retry)
	} else {
		q.timer.Reset(q.pause)
	}
}

// retry tries the tasks that have failed: it stores the answers that wait, then looks at
// the questions again.
func (h *Hub) retry() {
	defer guard.Recover(h.server.Logger(), "retry of the store")
	q := &h.retries
	h.mu.Lock()
	if q.busy {
		h.mu.Unlock()
		return
	}
	q.busy = true
	tasks := make([]string, 0, len(q.tasks))
	for id := range q.tasks {
		tasks = append(tasks, id)
	}
	clear(q.tasks)
	h.mu.Unlock()
	h.each(tasks, func(task string) {
		switch {
		case h.server.Closing().Err() != nil:
		case h.storeHeld(task):
			h.refresh(task)
		default:
			h.retryLater(task)
		}
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if q.busy = false; len(q.tasks) == 0 || h.server.Closing().Err() != nil {
		clear(q.tasks)
		return
	}
	if slices.ContainsFunc(tasks, func(task string) bool { return q.tasks[task] }) {
		q.pause = min(2*q.pause, longestRetry)
	} else {
		q.pause = firstRetry
	}
	h.setRetryTimer()
}
