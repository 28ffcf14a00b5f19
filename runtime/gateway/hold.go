package gateway

import (
	"net/http"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// settling is how long a new task's questions keep off a session's own stream,
// unless the client shows earlier that it has the task's ID. It is far more than
// the reply needs, and nothing to a person.
const settling = time.Second

// created notes a task whose ID is on its way to the session in a reply. Its
// questions would travel beside that reply, on another connection, and may
// overtake it; a client dismisses what it cannot lay to a task that it knows.
// So they wait for the first request that names the task, or for a while.
func (q *questions) created(s *session, d dialect.Teller, r mcptask.Record) {
	if r.Done() {
		return
	}
	q.mu.Lock()
	if q.fresh[s] == nil {
		q.fresh[s] = map[string]bool{}
	}
	q.fresh[s][r.ID] = true
	q.mu.Unlock()
	q.know(s, d, r)
	time.AfterFunc(settling, func() { defer guard.Recover(q.server.Logger(), "a held question"); q.settle(s, r.ID, nil) })
}

// settle lets the session's own stream have a task's questions and its status.
// seen is what the reply to a request shows of the task, or something earlier;
// nil is no reply.
func (q *questions) settle(s *session, task string, seen *mcptask.Record) {
	q.mu.Lock()
	held := q.fresh[s][task]
	if delete(q.fresh[s], task); len(q.fresh[s]) == 0 {
		delete(q.fresh, s)
	}
	late := q.status.takeLate(s, task)
	switch {
	case late != nil && (seen == nil || !seen.Done()) && len(q.standalone[s]) > 0:
		q.standalone[s][0].put(statusKey(task), late)
	case held && seen != nil && q.known[task] != nil && q.known[task].sessions[s] != nil:
		q.status.note(s, task, visibleOf(*seen))
	}
	q.mu.Unlock()
	if held {
		q.refresh([]string{task})
	}
}

// named settles a task that a request has named, once its reply is on its way: a
// published client that hears of a task while it asks for it drops the request.
func (g *Gateway) named(w http.ResponseWriter, s *session, seen mcptask.Record) {
	g.questions.mu.Lock()
	held := g.questions.fresh[s][seen.ID]
	g.questions.mu.Unlock()
	if held {
		_ = http.NewResponseController(w).Flush() // a client that has left
	}
	g.questions.settle(s, seen.ID, &seen)
}
