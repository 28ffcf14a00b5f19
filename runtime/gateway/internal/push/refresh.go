package push

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// A failing store costs only time. A question that must move to another stream moves when its task
// can be read.

const (
	// readers limits how many tasks are read at once.
	readers = 8
	// firstRetry and longestRetry bound the pause between attempts for tasks whose reading failed.
	// The pause doubles while the store fails.
	firstRetry   = 50 * time.Millisecond
	longestRetry = 10 * time.Second
)

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

// refreshInTurn is Refresh for a timer. The timers of many tasks may end together, and the requests
// and the lease must not wait for all of them.
func (h *Hub) refreshInTurn(task string) {
	if h.takeTurn() {
		defer h.giveBackTurn()
	}
	h.Refresh(task) // without a turn the server closes, and the streams with it
}

// takeTurn waits for a turn to use the store. If it returns false, the server closes.
func (h *Hub) takeTurn() bool {
	select {
	case h.turns <- struct{}{}:
		return true
	case <-h.server.Closing().Done():
		return false
	}
}

func (h *Hub) giveBackTurn() { <-h.turns }

// forEach calls f for each task, several at a time, and waits.
func (h *Hub) forEach(tasks []string, f func(task string)) {
	if len(tasks) == 1 {
		f(tasks[0])
		return
	}
	var next atomic.Int64
	var reading sync.WaitGroup
	for range min(readers, len(tasks)) {
		reading.Go(guard.Func(h.server.Logger(), "reading of tasks", func() {
			for i := next.Add(1); i <= int64(len(tasks)); i = next.Add(1) {
				f(tasks[i-1])
			}
		}))
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
	case errors.Is(err, taskstore.ErrNoRecord):
		h.post(t, nil)
	case err != nil:
		h.scheduleRetry(t)
	default:
		t.pause = 0
		if r.Version >= t.version {
			h.post(t, &r)
		}
	}
}

// retryLater is scheduleRetry for a caller that does not hold h.mu.
func (h *Hub) retryLater(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.scheduleRetry(t)
}

// scheduleRetry reads a task again after a pause, because the store has failed. h.mu is held.
func (h *Hub) scheduleRetry(t *topic) {
	if t.retries || h.topics[t.id] != t || h.server.Closing().Err() != nil {
		return
	}
	t.retries = true
	t.pause = min(max(2*t.pause, firstRetry), longestRetry)
	time.AfterFunc(t.pause, guard.Func(h.server.Logger(), "retry of the store", func() {
		h.mu.Lock()
		t.retries = false
		h.mu.Unlock()
		h.refreshInTurn(t.id)
	}))
}
