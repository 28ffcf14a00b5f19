package push

import (
	"log/slog"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// With a session key, several replicas serve one session at the same time. Each has a mailbox for
// it. The replica that has the session's own stream looks for the session's tasks, whichever replica
// creates them: their IDs have a mark of the session, which it finds in the feed of the store. When
// the stream opens, and when the feed may have missed something, it asks the store. So the status of
// a task goes out on that stream. An answer may arrive anywhere, since the ID of a question names its
// task and its key.
//
// A request that waits for the task may be at another replica than the session's own stream, and
// many clients have both. Requests have precedence there too (C-51): the replica that sends a
// question on the stream of a request sets Fetched in the task's record. The session's own stream
// carries a question (C-53) only if Fetched is not set after a while. That is for clients that never
// send such a request: they poll, and listen on their own stream.

const (
	// foundDelay is how long the status of a task that another replica has created stays off the
	// session's own stream, so that the reply with the task's ID comes first.
	foundDelay = time.Second
	// fetchMargin is how long after the client's next poll a question stays off the session's own
	// stream. A client that sends a request for it does so when that poll tells of the question.
	fetchMargin = 2 * time.Second
	// clockMargin is how far the time at which a session began may be ahead of the store's. A replica
	// knows the store's time only roughly, and before its first renewal of the lease not at all. Only
	// a store that is not an Inspector depends on it.
	clockMargin = 10 * time.Minute
)

// followSession begins to look for the session's tasks, unless it does so already. m.mu is held.
func (m *Mailbox) followSession() {
	name, began := m.client.Session()
	if name == "" || m.closed {
		return
	}
	find := func() {
		go func() {
			defer guard.Then(m.hub.server.Logger(), "looking for the tasks of a session", m.giveUpFinding)
			for ok := m.beginFinding(); ok; ok = m.endFinding() {
				m.findTasks(name, began)
			}
		}()
	}
	if m.unfollowSession == nil {
		mark := taskserver.MarkOfSession(name)
		m.hub.setMark(mark, m)
		unfollow := m.hub.server.FollowSession(name, find)
		m.unfollowSession = func() {
			unfollow()
			m.hub.clearMark(mark, m)
		}
	}
	find()
}

// stopFollowingSession ends the search. m.mu is held.
func (m *Mailbox) stopFollowingSession() {
	if m.unfollowSession != nil {
		m.unfollowSession()
		m.unfollowSession = nil
	}
}

// beginFinding reports whether to look for the session's tasks. If another goroutine does so, that
// one looks again, since it may have begun too early.
func (m *Mailbox) beginFinding() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.findAgain = m.finding
	m.finding = true
	return !m.findAgain
}

// endFinding reports whether to look for the session's tasks again.
func (m *Mailbox) endFinding() (again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finding, m.findAgain = m.findAgain && m.unfollowSession != nil, false
	return m.finding
}

// giveUpFinding ends what a panic has cut off.
func (m *Mailbox) giveUpFinding() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finding, m.findAgain = false, false
}

// findTasks adds the session's unfinished tasks in the store that the session does not know here. Few
// sessions look at once: missed news concerns all of them.
func (m *Mailbox) findTasks(name string, began time.Time) {
	if !m.hub.takeTurn() {
		return
	}
	defer m.hub.giveBackTurn()
	caller := taskserver.Caller{Principal: m.client.Principal(), Session: name}
	found, err := m.hub.server.FindTasksOfSession(m.hub.server.Closing(), caller, began.Add(-clockMargin))
	if err != nil && m.hub.server.Closing().Err() == nil {
		m.hub.server.Notice(slog.LevelWarn, "tasks of a session not found", "principal", m.client.Principal(), "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range found {
		m.addFound(&r, unknownState) // the client may have missed its status
	}
}

// addFound adds an unfinished task that the session has created, and that it does not know here.
// The session's client is taken to know the state shown. m.mu is held.
func (m *Mailbox) addFound(r *taskstore.Record, shown visible) {
	if r.Revision != m.hub.legacy.Revision() || m.liveView(r.ID) != nil || m.unfollowSession == nil {
		return
	}
	v, _ := m.viewOf(m.hub.legacy, *r)
	if v == nil {
		return
	}
	v.setShown(shown, nil)
	m.setUnsettled(v, true)
	v.found = true
	time.AfterFunc(foundDelay, func() {
		defer guard.Recover(m.hub.server.Logger(), "settling of a task")
		m.settleFound(r.ID)
	})
}

// settleFound settles a task that another replica has created. A task whose reply this replica
// writes is settled after that instead.
func (m *Mailbox) settleFound(task string) {
	m.mu.Lock()
	v := m.views[task]
	settles := v != nil && v.found
	m.mu.Unlock()
	if settles && m.settleTask(task, nil) {
		m.hub.refreshInTurn(task)
	}
}

// setMark makes a mailbox the one that gets the tasks with a mark.
func (h *Hub) setMark(mark string, m *Mailbox) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks[mark] = m
}

func (h *Hub) clearMark(mark string, m *Mailbox) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.marks[mark] == m {
		delete(h.marks, mark)
	}
}

// postFound passes a task to the session that has created it, if that does not know the task here.
// t is nil if no session does. h.mu is held.
func (h *Hub) postFound(t *topic, r taskstore.Record) {
	m := h.marks[taskserver.MarkOfTask(r.ID)]
	if m == nil || r.Done() || h.hasExpired(r.ExpiresAt) {
		return
	}
	if t != nil {
		if _, knows := t.sessions[m]; knows {
			return
		}
	}
	if m.found == nil {
		m.found = map[string]taskstore.Record{}
	}
	m.found[r.ID] = r
	h.schedule(m)
	h.startWorker()
}

// leaveToRequests reports whether a question stays off the session's own stream because a request,
// perhaps at another replica, has got it or may still come for it. It starts a timer that looks at the
// question again. m.mu is held.
func (m *Mailbox) leaveToRequests(v *view, r *taskstore.Record, in taskstore.Input) bool {
	switch {
	case !m.isPortable():
		return false
	case in.Fetched:
		v.question(in.Key).stopTimer()
		return true
	}
	q := v.question(in.Key)
	v.questions[in.Key] = q
	if q.due.IsZero() {
		wait, task := r.Poll+fetchMargin, r.ID // the timer must not keep the record
		q.due = time.Now().Add(wait)
		q.timer = time.AfterFunc(wait, func() {
			defer guard.Recover(m.hub.server.Logger(), "a question for a session's own stream")
			m.hub.refreshInTurn(task)
		})
	}
	return time.Now().Before(q.due)
}

// noteFetched sets Fetched of a question that is on the stream of a request, if other replicas have
// to know. It does not wait.
func (m *Mailbox) noteFetched(task string, in taskstore.Input) {
	if !m.isPortable() || in.Fetched {
		return
	}
	go func() {
		defer guard.Recover(m.hub.server.Logger(), "noting that a question is fetched")
		closing := m.hub.server.Closing()
		if err := m.hub.server.NoteFetched(closing, task, in.Key); err != nil && closing.Err() == nil {
			m.logQuestion(slog.LevelWarn, "a client may get a question twice: not noted that it has been fetched", task, in.Key, "error", err)
		}
	}()
}

// isPortable reports whether other replicas serve the session too.
func (m *Mailbox) isPortable() bool {
	name, _ := m.client.Session()
	return name != ""
}
