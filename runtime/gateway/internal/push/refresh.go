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
// can be read. A client's answer is kept until the store accepts it.

const (
	// readers limits how many tasks are read at once.
	readers = 8
	// firstRetry and longestRetry bound the pause between attempts for tasks whose reading failed.
	// The pause doubles while the store fails.
	firstRetry   = 50 * time.Millisecond
	longestRetry = 10 * time.Second
)

// retries holds the tasks that are tried again because the store failed. Each has a pause of its
// own, so a new failure neither waits for tasks that have failed for long nor hurries them. The
// hub's lock guards it.
type retries struct {
	topics map[*topic]bool
	timer  *time.Timer // of the next round
	at     time.Time   // when the timer fires
	busy   bool        // a round is running; its end sets the timer
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
		h.retryLater(task)
	default:
		if len(t.held) == 0 {
			t.pause = 0
		}
		if r.Version >= t.version {
			h.post(t, &r)
		}
	}
}

// retryLater schedules another attempt for a task. h.mu is held.
func (h *Hub) retryLater(task string) {
	q, t := &h.retries, h.topics[task]
	if t == nil || q.topics[t] || h.server.Closing().Err() != nil {
		return
	}
	q.topics[t] = true
	t.pause = min(max(2*t.pause, firstRetry), longestRetry)
	t.retryAt = time.Now().Add(t.pause)
	if !q.busy && (len(q.topics) == 1 || t.retryAt.Before(q.at)) {
		h.setRetry(t.retryAt)
	}
}

// setRetry sets the time of the next round. h.mu is held.
func (h *Hub) setRetry(at time.Time) {
	q := &h.retries
	q.at = at
	if q.timer == nil {
		q.timer = time.AfterFunc(time.Until(at), h.retry)
	} else {
		q.timer.Reset(time.Until(at))
	}
}

// retry runs one round. For each task whose pause is over it stores the held answers, then
// refreshes the task.
func (h *Hub) retry() {
	defer guard.Recover(h.server.Logger(), "retry of the store")
	tasks, ok := h.beginRound()
	if !ok {
		return
	}
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
	h.endRound()
}

// beginRound takes the tasks to try now. It returns false while another round is running.
func (h *Hub) beginRound() (tasks []string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.retries.busy {
		return nil, false
	}
	h.retries.busy = true
	for t := range h.retries.topics {
		if hasPassed(t.retryAt) {
			delete(h.retries.topics, t)
			tasks = append(tasks, t.id)
		}
	}
	return tasks, true
}

// endRound schedules the next round, if tasks are left.
func (h *Hub) endRound() {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := &h.retries
	q.busy = false
	if h.server.Closing().Err() != nil {
		clear(q.topics)
	}
	var next time.Time
	for t := range q.topics {
		if next.IsZero() || t.retryAt.Before(next) {
			next = t.retryAt
		}
	}
	if !next.IsZero() {
		h.setRetry(next)
	}
}
