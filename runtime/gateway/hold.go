package gateway

import (
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// A client dismisses a question if it does not know the task that it belongs to, and one
// published client drops its own request then. So the questions of a task, and its status, follow the
// reply that tells the session of its ID. On a pipe that is one line after the other. Over
// HTTP they travel on another connection than the reply and may overtake it: there they wait
// for the first request that names the task, or for a while.

// settling is how long, from the reply on, a new task's questions keep off a session's own
// stream over HTTP. It is far longer than the reply travels, and too short for a person to notice.
const settling = time.Second

// held says whether a session has yet to be told of a task. q.mu is held.
func (q *questions) held(s *session, task string) bool {
	_, ok := q.fresh[s][task]
	return ok
}

// hold keeps a task's questions off a session's own stream until settle is called. q.mu is held.
func (q *questions) hold(s *session, task string) {
	if q.fresh[s] == nil {
		q.fresh[s] = map[string]bool{}
	}
	if !q.held(s, task) {
		q.fresh[s][task] = false // no timer runs yet
	}
}

// created notes a task whose ID is on its way to the session in a reply.
func (q *questions) created(s *session, d dialect.Teller, r mcptask.Record) {
	if r.Done() {
		return
	}
	q.mu.Lock()
	q.hold(s, r.ID)
	q.mu.Unlock()
	q.know(s, d, r)
}

// asks notes a task that a request names, whose reply tells of it.
func (q *questions) asks(s *session, d dialect.Teller, r mcptask.Record) {
	q.mu.Lock()
	if t := q.known[r.ID]; t == nil || t.sessions[s] == nil {
		q.hold(s, r.ID)
	}
	q.mu.Unlock()
	q.know(s, d, r)
}

// settle lets the session's own stream have a task's questions and its status.
// seen is what the reply to a request shows of the task, or something earlier;
// nil is no reply.
func (q *questions) settle(s *session, task string, seen *mcptask.Record) {
	if q.release(s, task, seen) {
		q.refresh([]string{task})
	}
}

// settleSoon is settle for a caller who must not wait for the store.
func (q *questions) settleSoon(s *session, task string) {
	if q.release(s, task, nil) {
		q.refreshSoon(task)
	}
}

// settleLater settles a task after a while.
func (q *questions) settleLater(s *session, task string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, late := q.status.late[s][task] // it has ended by now, and nothing else is held of it
	if held := q.held(s, task); !held && !late || q.fresh[s][task] {
		return // a task has one timer, however often its call is repeated
	} else if held {
		q.fresh[s][task] = true
	}
	time.AfterFunc(settling, func() {
		defer guard.Recover(q.server.Logger(), "settling of a task")
		q.settle(s, task, nil)
	})
}

// release is settle without the questions: true says that they may go out now.
func (q *questions) release(s *session, task string, seen *mcptask.Record) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	held := q.held(s, task)
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
	return held
}

// named settles a task that a request has named, once its reply is on its way.
func (g *Gateway) named(x exchange, s *session, seen mcptask.Record) {
	g.questions.mu.Lock()
	held := g.questions.held(s, seen.ID)
	g.questions.mu.Unlock()
	if held {
		x.flush()
	}
	g.questions.settle(s, seen.ID, &seen)
}

// announcement waits for a call's task and for its reply. It calls then, with the task's ID, when
// the task is made and the reply is written. Either may come first: a client may leave before its
// call is answered. It is safe for concurrent use.
type announcement struct {
	then func(task string)

	mu      sync.Mutex
	task    string
	written bool
}

// made notes the task.
func (a *announcement) made(task string) {
	a.mu.Lock()
	a.task = task
	both := a.written
	a.mu.Unlock()
	if both {
		a.then(task)
	}
}

// wrote notes that the reply is written.
func (a *announcement) wrote() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.written = true
	task := a.task
	a.mu.Unlock()
	if task != "" {
		a.then(task)
	}
}
