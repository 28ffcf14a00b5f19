package gateway

import (
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// sweepEvery is how often what is known of tasks is searched for those that are
// over. Nearly none is found: what this process ends, deletes or is asked for is
// forgotten at once. It is for tasks that another one ends, and that nobody asks
// for any longer in a session that stays open.
const sweepEvery = time.Minute

// sweepLater has the sweeper run as long as there are tasks. q.mu is held.
func (q *questions) sweepLater() {
	if q.sweeper == nil {
		q.sweeper = time.AfterFunc(sweepEvery, q.sweep)
	}
}

func (q *questions) sweep() {
	defer guard.Recover(q.server.Logger(), "the sweep of questions")
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for id, t := range q.known {
		if !now.Before(t.expires) {
			q.drop(id)
		}
	}
	if q.sweeper = nil; len(q.known) > 0 {
		q.sweepLater()
	}
}

// lose drops a task that a session knows and has asked for in vain.
func (q *questions) lose(s *session, task string) {
	q.mu.Lock()
	knows := q.shown[s][task]
	q.mu.Unlock()
	if knows {
		q.refresh([]string{task})
	}
}
