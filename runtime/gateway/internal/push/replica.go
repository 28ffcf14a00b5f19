package push

import (
	"log/slog"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// With a session key, several replicas serve one session at the same time. Each has a mailbox for
// it. The replica that has the session's own stream looks for the session's tasks, whichever replica
// creates them: their IDs have a mark of the session, which it finds in the feed of the store. When
// the stream opens, and when the feed may have missed something, it asks the store. So the questions
// and the status of a task go out on that stream. An answer may arrive anywhere, since the ID of a
// question names its task and its key.
//
// A client that also has a request waiting for the task at another replica gets the question on that
// request's stream too, with the same request ID, because the replicas do not know of each other's
// streams. The first answer counts, and the other one changes nothing.

const (
	// foundDelay is how long the questions of a task that another replica has created stay off the
	// session's own stream, so that the reply with the task's ID comes first.
	foundDelay = time.Second
	// clockMargin is how far the clock of the replica that began a session may be ahead of the
	// store's. Only a store that is not an Inspector depends on it.
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
			defer guard.Recover(m.hub.server.Logger(), "looking for the tasks of a session")
			m.findTasks(name, began)
		}()
	}
	if m.unfollowSession == nil {
		mark := mcptask.MarkOfSession(name)
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

// findTasks adds the session's unfinished tasks in the store that the session does not know here.
func (m *Mailbox) findTasks(name string, began time.Time) {
	caller := mcptask.Caller{Principal: m.client.Principal(), Session: name}
	found, err := m.hub.server.FindTasksOfSession(m.hub.server.Closing(), caller, began.Add(-clockMargin))
	if err != nil && m.hub.server.Closing().Err() == nil {
		m.hub.log(slog.LevelWarn, "tasks of a session not found", "principal", m.client.Principal(), "error", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range found {
		m.addFound(&r, unknownState) // the client may have missed its status
	}
}

// addFound adds an unfinished task that the session has created, and that it does not know here.
// The session's client is taken to know the state shown. m.mu is held.
func (m *Mailbox) addFound(r *mcptask.Record, shown visible) {
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
	if settles {
		m.Settle(task, nil)
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

// postFound passes a task that no session knows here to the session that has created it. h.mu is
// held.
func (h *Hub) postFound(r mcptask.Record) {
	m := h.marks[mcptask.MarkOfTask(r.ID)]
	if m == nil || r.Done() || hasPassed(r.ExpiresAt) {
		return
	}
	if m.found == nil {
		m.found = map[string]mcptask.Record{}
	}
	m.found[r.ID] = r
	h.schedule(m)
	h.startWorker()
}
