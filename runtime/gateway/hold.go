package gateway

import (
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// settling is how long a new task's questions keep off a session's own stream,
// unless the client shows earlier that it has the task's ID. It is far more than
// the reply needs, and nothing to a person.
const settling = time.Second

// created notes a task whose ID is on its way to the session in a reply. Its
// questions would travel beside that reply, on another connection, and may
// overtake it; a client dismisses what it cannot lay to a task that it knows.
// So they wait for the first request that names the task, or for a while.
func (q *questions) created(s *session, r mcptask.Record) {
	if r.Done() {
		return
	}
	q.mu.Lock()
	if q.fresh[s] == nil {
		q.fresh[s] = map[string]bool{}
	}
	q.fresh[s][r.ID] = true
	q.mu.Unlock()
	q.know(s, r)
	time.AfterFunc(settling, func() { q.settle(s, r.ID) })
}

// settle lets the session's own stream have a task's questions.
func (q *questions) settle(s *session, task string) {
	q.mu.Lock()
	held := q.fresh[s][task]
	if delete(q.fresh[s], task); len(q.fresh[s]) == 0 {
		delete(q.fresh, s)
	}
	q.mu.Unlock()
	if held {
		q.refresh([]string{task})
	}
}
