// Package push tells the clients of sessions about their tasks. It sends them the questions that
// tasks ask, takes the answers, and sends the changes of status.
//
// Each session has one [Mailbox]. Its lock guards everything about the session: its streams, the
// tasks that it knows, the state of each that it was told, and its open questions. The [Hub] only
// knows which mailboxes follow which task. A change of a task goes through the hub into these
// mailboxes. Workers then turn it into messages.
//
// Locks are taken in one order: a mailbox's lock, then the hub's. The hub's lock is never held
// while messages are made or logged, while the store is read, or while a client is written to.
package push

import (
	"context"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Hub indexes the tasks that sessions know.
type Hub struct {
	server *taskserver.Backend
	// legacy is the revision of a session that has not shown a task in another one.
	legacy protocol.Teller
	// serial numbers the requests about clients' tasks.
	serial atomic.Uint64
	// turns has an element for each use of the store that no request waits for.
	turns chan struct{}

	mu        sync.Mutex
	topics    map[string]*topic // by task ID
	mailboxes map[*Mailbox]bool // the open ones
	// marks has the sessions whose tasks the hub follows, whichever replica creates them, by the
	// mark that is part of the tasks' IDs.
	marks       map[string]*Mailbox
	ready       []*Mailbox  // with records to look at, oldest first
	workers     int         // counts the goroutines that empty the mailboxes in ready
	expiryTimer *time.Timer // runs while there are topics
}

// topic is an unfinished task that some session knows. The hub's lock guards it, but its ID never
// changes.
type topic struct {
	id string
	// unfollow ends the server's interest in the task's changes by other processes.
	unfollow func()
	version  int64 // of the newest posted record
	expires  time.Time
	// sessions maps each session to the number of its requests that wait for the task.
	sessions map[*Mailbox]int
	// claims records which session has been asked a question, by key. No other session is asked
	// until the claim is released.
	claims map[string]*Mailbox
	// retries says that the store has failed, and that the task is read again after pause.
	retries bool
	pause   time.Duration
}

// maxWorkers limits the goroutines that make messages. They end when there is nothing to do.
const maxWorkers = 4

// New returns a hub that follows the tasks of a server. The server holds only a weak reference to
// it, so a process may create many hubs for one server and drop them.
func New(server *taskserver.Backend, legacy protocol.Teller) *Hub {
	h := &Hub{server: server, legacy: legacy, topics: map[string]*topic{}, mailboxes: map[*Mailbox]bool{}, marks: map[string]*Mailbox{}, turns: make(chan struct{}, readers)}
	weakly := weak.Make(h)
	stop := server.Observe(func(r taskstore.Record) {
		if h := weakly.Value(); h != nil {
			h.observe(r)
		}
	})
	over, end := context.WithCancel(server.Closing())
	cleanup := runtime.AddCleanup(h, func(end context.CancelFunc) { end() }, end)
	context.AfterFunc(over, guard.Func(nil, "the end of observing", func() {
		stop()
		cleanup.Stop() // it would keep a closed server alive if its handlers hold the gateway
	}))
	return h
}

// observe passes a version of a task to the sessions that know the task. Every write of a handler
// calls it, so it neither blocks nor makes messages. Versions may arrive twice or late.
func (h *Hub) observe(r taskstore.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[r.ID]
	if len(h.marks) > 0 {
		h.postFound(t, r)
	}
	if t != nil && (r.Version > t.version || r.Version == t.version && h.hasExpired(r.ExpiresAt)) {
		posted := r // only this copy is on the heap
		h.post(t, &posted)
	}
}

// hasExpired reports whether a task has expired by the store's clock.
func (h *Hub) hasExpired(expires time.Time) bool { return !h.server.SureNow().Before(expires) }

// post puts a record into the mailboxes of all sessions that know the task. It replaces a record
// that a mailbox has not looked at yet. r is nil if the task is gone. post removes the task if it is
// over. h.mu is held.
func (h *Hub) post(t *topic, r *taskstore.Record) {
	if r != nil {
		t.version, t.expires = r.Version, r.ExpiresAt
		if h.hasExpired(r.ExpiresAt) {
			r = nil
		}
	}
	for m := range t.sessions {
		if m.inbox == nil {
			m.inbox = map[*topic]*taskstore.Record{}
		}
		m.inbox[t] = r
		h.schedule(m)
	}
	if r == nil || r.Done() {
		h.remove(t)
	}
	h.startWorker()
}

// schedule has a worker look at a mailbox. h.mu is held.
func (h *Hub) schedule(m *Mailbox) {
	if !m.scheduled {
		m.scheduled = true
		h.ready = append(h.ready, m)
	}
}

// startWorker starts a worker if there is something to do. h.mu is held.
func (h *Hub) startWorker() {
	if len(h.ready) > 0 && h.workers < maxWorkers {
		h.workers++
		go h.runWorker()
	}
}

// runWorker empties mailboxes until none has records left.
func (h *Hub) runWorker() {
	defer guard.Recover(h.server.Logger(), "sending the news of tasks")
	for m := h.nextReady(); m != nil; m = h.nextReady() {
		m.work()
	}
}

func (h *Hub) nextReady() *Mailbox {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ready) == 0 {
		h.ready = nil
		h.workers--
		return nil
	}
	m := h.ready[0]
	h.ready = h.ready[1:]
	m.scheduled = false
	return m
}

// takeInbox empties an inbox. The caller holds m.mu, so that it handles all records before the next
// caller takes more.
func (h *Hub) takeInbox(m *Mailbox) (inbox map[*topic]*taskstore.Record, found map[string]taskstore.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	inbox, found = m.inbox, m.found
	m.inbox, m.found = nil, nil
	return inbox, found
}

// join adds a session to those that know an unfinished task. waiting counts the session's requests
// that wait for the task. isNew reports whether the session did not know the task; it may then have
// missed changes. If the session did know it, join posts the record if it is newer, because another
// process may have changed the task.
func (h *Hub) join(m *Mailbox, r taskstore.Record, waiting int) (t *topic, isNew bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t = h.topics[r.ID]
	if t == nil {
		t = &topic{
			id: r.ID, unfollow: h.server.Follow(r.ID), version: r.Version, expires: r.ExpiresAt,
			sessions: map[*Mailbox]int{}, claims: map[string]*Mailbox{},
		}
		h.topics[r.ID] = t
		if h.expiryTimer == nil {
			h.expiryTimer = time.AfterFunc(expiryInterval, h.removeExpired)
		}
	}
	_, known := t.sessions[m]
	isNew = !known
	t.sessions[m] = waiting
	if !isNew && r.Version > t.version {
		posted := r
		h.post(t, &posted)
	}
	return t, isNew
}

// leave removes a session from all tasks that it knows. It returns those that other sessions still
// know. The caller must refresh them, so that the others get the unanswered questions.
func (h *Hub) leave(m *Mailbox) (left []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.mailboxes, m)
	for _, v := range m.views {
		t := v.topic
		if h.topics[t.id] != t {
			continue
		}
		delete(t.sessions, m)
		maps.DeleteFunc(t.claims, func(_ string, by *Mailbox) bool { return by == m })
		if !h.removeUnused(t) {
			left = append(left, t.id)
		}
	}
	return left
}

// removeUnused removes a task that no session knows. It returns true if it has removed the task. h.mu
// is held.
func (h *Hub) removeUnused(t *topic) bool {
	if len(t.sessions) > 0 {
		return false
	}
	h.remove(t)
	return true
}

// remove removes a task. h.mu is held.
func (h *Hub) remove(t *topic) {
	t.unfollow()
	delete(h.topics, t.id)
}

// setWaiting stores how many requests of a session wait for a task. Their streams get questions
// first.
func (h *Hub) setWaiting(t *topic, m *Mailbox, waiting int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.sessions[m] = waiting
}

// claim makes a session the one that is asked a question, or the one whose client keeps the
// question as a task. It returns false if another session has the claim.
func (h *Hub) claim(m *Mailbox, t *topic, key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.topics[t.id] == t && t.claim(m, key)
}

func (t *topic) claim(m *Mailbox, key string) bool {
	if t.claims[key] == nil {
		t.claims[key] = m
	}
	return t.claims[key] == m
}

// claimToAsk claims a question that is to be sent. Besides another session's claim, there is one
// reason to return false: another session has a request that waits for the task, whose stream comes
// first (C-51). That does not count if waits is true: then this session has such a request too.
func (h *Hub) claimToAsk(m *Mailbox, t *topic, in taskstore.Input, waits bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.topics[t.id] != t {
		return false
	}
	if t.claims[in.Key] == nil && !waits {
		for other, waiting := range t.sessions {
			if waiting > 0 && other.canAnswer(in) {
				return false
			}
		}
	}
	return t.claim(m, in.Key)
}

// release gives up a session's claim. The caller must refresh the task afterwards, so that another
// session is asked.
func (h *Hub) release(m *Mailbox, t *topic, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.claims[key] == m {
		delete(t.claims, key)
	}
}

// expiryInterval is the interval at which expired tasks are removed. There are few: the hub forgets
// a task at once if a process ends it, or if this process deletes it or is asked for it. The interval
// matters for tasks that another process has deleted and that no client asks for.
const expiryInterval = time.Minute

func (h *Hub) removeExpired() {
	defer guard.Recover(h.server.Logger(), "the removal of expired tasks")
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.topics {
		if h.hasExpired(t.expires) {
			h.post(t, nil)
		}
	}
	if h.expiryTimer = nil; len(h.topics) > 0 {
		h.expiryTimer = time.AfterFunc(expiryInterval, h.removeExpired)
	}
}

// Counts reports how much a hub holds at a moment.
type Counts struct {
	// Streams counts open streams. Watched counts tasks that some session knows. Followed counts
	// tasks at clients that the server follows.
	Streams, Watched, Followed int
}

// Count returns the current counts. It may be called at any time.
func (h *Hub) Count() (c Counts) {
	h.mu.Lock()
	c.Watched = len(h.topics)
	mailboxes := make([]*Mailbox, 0, len(h.mailboxes))
	for m := range h.mailboxes {
		mailboxes = append(mailboxes, m)
	}
	h.mu.Unlock()
	for _, m := range mailboxes {
		m.addCounts(&c)
	}
	return c
}
