package gateway

import (
	"context"
	"errors"
	"log/slog"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// A store that fails costs time only. A question that has to move to another stream moves
// once its task can be read, and a client's answer is kept until the store has taken it.
// One timer looks after all such tasks, however many there are.

const (
	// firstRetry and longestRetry bound the pause after which a task is tried again. The
	// pause doubles while the store fails.
	firstRetry   = 50 * time.Millisecond
	longestRetry = 10 * time.Second
	// mostHeld bounds the bytes of all answers that wait for the store. The client of one
	// that exceeds it is asked again.
	mostHeld = 16 << 20
)

// retries are the tasks that are tried again. It is guarded by questions.mu.
type retries struct {
	due   map[string]time.Time // by task
	timer *time.Timer          // nil until it is needed
	next  time.Time            // when the timer ends; zero if it is not set
	busy  bool                 // a round is under way
	held  int                  // bytes of answers
}

// heldAnswer is a client's answer that the store has not taken yet.
type heldAnswer struct {
	session *session
	ref     requestRef
	size    int
	deliver func(context.Context) error
}

// retryLater has a task tried again after a pause. q.mu is held.
func (q *questions) retryLater(task string) {
	t := q.known[task]
	if t == nil || q.server.Closing().Err() != nil {
		return
	}
	t.pause = min(max(2*t.pause, firstRetry), longestRetry)
	q.tryAt(task, time.Now().Add(t.pause))
}

// refreshSoon is refresh for a caller who must not wait for the store.
func (q *questions) refreshSoon(task string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known[task] != nil && q.server.Closing().Err() == nil {
		q.tryAt(task, time.Now())
	}
}

// tryAt has a task tried at a time. q.mu is held.
func (q *questions) tryAt(task string, at time.Time) {
	if q.retries.due == nil {
		q.retries.due = map[string]time.Time{}
	}
	q.retries.due[task] = at
	if q.retries.next.IsZero() || at.Before(q.retries.next) {
		q.setRetry(at)
	}
}

// setRetry sets the timer, unless a round is under way: its end sets it. q.mu is held.
func (q *questions) setRetry(at time.Time) {
	rt := &q.retries
	switch {
	case rt.busy:
		return
	case rt.timer == nil:
		rt.timer = time.AfterFunc(time.Until(at), q.retry)
	default:
		rt.timer.Reset(time.Until(at))
	}
	rt.next = at
}

// retry tries every task that is due. The store has answered for each before the next is
// tried, so that a store which comes back is not overrun.
func (q *questions) retry() {
	defer guard.Recover(q.server.Logger(), "retry of the store")
	rt := &q.retries
	q.mu.Lock()
	if rt.busy {
		q.mu.Unlock()
		return
	}
	rt.busy, rt.next = true, time.Time{}
	now := time.Now()
	var due []string
	for task, at := range rt.due {
		if !at.After(now) {
			due = append(due, task)
		}
	}
	q.mu.Unlock()
	for _, task := range due {
		if q.server.Closing().Err() == nil {
			q.retryTask(task)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if rt.busy = false; q.server.Closing().Err() != nil {
		clear(rt.due)
	}
	var next time.Time
	for _, at := range rt.due {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if !next.IsZero() {
		q.setRetry(next)
	}
}

// retryTask stores the answers that wait, then looks at the task's questions again.
func (q *questions) retryTask(task string) {
	defer guard.Recover(q.server.Logger(), "retry of a task")
	q.mu.Lock()
	delete(q.retries.due, task)
	var answers []*heldAnswer
	if t := q.known[task]; t != nil {
		for _, a := range t.held {
			answers = append(answers, a)
		}
	}
	q.mu.Unlock()
	for _, a := range answers {
		if !q.settleAnswer(a, a.deliver(q.server.Closing())) {
			return // refresh would fail as well
		}
	}
	q.refresh([]string{task})
}

// settleAnswer drops an answer that the store has taken, or that nothing waits for. It
// returns false if the store has failed again.
func (q *questions) settleAnswer(a *heldAnswer, err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.known[a.ref.task]
	if t == nil || t.held[a.ref.key] != a {
		return true
	}
	if err != nil && !dialect.Gone(err) {
		q.retryLater(a.ref.task)
		return false
	}
	q.dropAnswer(t, a)
	if err != nil {
		q.notTaken(a.session, a.ref, err)
	}
	if len(t.sessions) == 0 && len(t.held) == 0 { // it was kept for the answers
		q.drop(a.ref.task)
	}
	return true
}

// dropAnswer forgets an answer. q.mu is held.
func (q *questions) dropAnswer(t *knownTask, a *heldAnswer) {
	delete(t.held, a.ref.key)
	q.retries.held -= a.size
}

// store stores a client's answer, or keeps it until the store takes it. It returns false if
// the answer is lost, and then the question is asked again.
func (q *questions) store(ctx context.Context, s *session, ref requestRef, size int, deliver func(context.Context) error) bool {
	err := deliver(ctx)
	if err == nil || dialect.Gone(err) {
		if err != nil {
			q.mu.Lock()
			q.notTaken(s, ref, err)
			q.mu.Unlock()
		}
		q.refresh([]string{ref.task})
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.known[ref.task]
	if t == nil || t.sessions[s] == nil { // a task of another process, perhaps, or somebody else's
		q.notTaken(s, ref, err)
		return false
	}
	defer q.retryLater(ref.task)
	switch {
	case t.held[ref.key] != nil: // the first answer counts
		return true
	case q.retries.held+size <= mostHeld && q.server.Closing().Err() == nil && t.asked(s, ref):
		if t.held == nil {
			t.held = map[string]*heldAnswer{}
		}
		t.held[ref.key] = &heldAnswer{s, ref, size, deliver}
		q.retries.held += size
		return true
	}
	delete(t.sent, t.questionID(ref.task, ref.key))
	q.notTaken(s, ref, err)
	return false
}

// asked says whether a session has been asked a question, so that its answer is worth keeping.
func (t *knownTask) asked(s *session, ref requestRef) bool {
	if m := t.remotes[ref.key]; m != nil {
		return m.session == s
	}
	via := t.sent[t.questionID(ref.task, ref.key)]
	return via != nil && via.session == s
}

// notTaken notes an answer that is lost, and goes on with the task at the client that it is
// the answer of. q.mu is held.
func (q *questions) notTaken(s *session, ref requestRef, err error) {
	q.server.Notice(slog.LevelInfo, "response to a question not taken",
		"task", mcptask.LogID(s.principal, ref.task), "key", ref.key, "error", err)
	if m := q.remoteOf(s, ref); m != nil {
		m.settled, m.result = false, pending{}
	}
}

// refresh looks at tasks again whose questions may have to move.
func (q *questions) refresh(tasks []string) {
	for _, id := range tasks {
		r, err := q.server.Peek(id)
		switch {
		case err == nil:
			q.look(r, true)
			q.mu.Lock()
			if t := q.known[id]; t != nil && len(t.held) == 0 {
				t.pause = 0
			}
			q.mu.Unlock()
		case errors.Is(err, mcptask.ErrNoRecord):
			q.mu.Lock()
			q.drop(id)
			q.mu.Unlock()
		default:
			q.mu.Lock()
			q.retryLater(id)
			q.mu.Unlock()
		}
	}
}
