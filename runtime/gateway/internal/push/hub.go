// Package push tells clients of sessions what happens to their tasks: it sends them the
// questions that tasks ask, takes the answers, and sends the changes of their status.
//
// Each session has one [Mailbox]. Its lock guards all that concerns the session: its
// streams, the tasks that it knows, what it was told of each, and its open questions. The
// [Hub] only knows which mailboxes are interested in which task. A change of a task goes
// through the hub into these mailboxes; workers make messages of it.
//
// Locks are taken in one order: a mailbox's, then the hub's. The hub's is never held while
// messages are made or logged, the store is read, or a client is written to.
package push

import (
	"context"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// Hub is the index of the tasks that sessions know.
type Hub struct {
	server *mcptask.Server
	// legacy is the revision of a session that has shown a task in none.
	legacy dialect.Teller
	// serial is of the last follow-up about a question that is a task at a client.
	serial atomic.Uint64

	mu        sync.Mutex
	topics    map[string]*topic // by task ID
	mailboxes map[*Mailbox]bool // that are open
	ready     []*Mailbox        // that have notices, in the order in which they got them
	workers   int               // goroutines that empty the mailboxes in ready
	sweeper   *time.Timer       // set while there are topics
	retries   retries
	heldBytes int // of the answers in all topics
}

// topic is a task that has not ended and that some session knows, or that has answers
// for the store. The hub's lock guards it.
type topic struct {
	id      string
	version int64 // of the newest record that was posted
	expires time.Time
	// sessions have the number of their requests that wait for the task's end.
	sessions map[*Mailbox]int
	// keeper is the session that has shown the task last. A flood of sessions does not
	// end it. A task has one keeper, so a caller keeps no more sessions than it has tasks.
	keeper *Mailbox
	// claims say which session has been asked a question, by key. No other session is
	// asked until the claim is released.
	claims map[string]*Mailbox
	// held are answers that the store has not taken yet, by key.
	held map[string]*heldAnswer
}

// mostWorkers bounds the goroutines that make messages. They end when there is nothing
// to do.
const mostWorkers = 4

// New returns a hub that follows the tasks of a server. The server does not keep it: a
// process may make many hubs for one server, and drop them.
func New(server *mcptask.Server, legacy dialect.Teller) *Hub {
	h := &Hub{server: server, legacy: legacy, topics: map[string]*topic{}, mailboxes: map[*Mailbox]bool{}}
	weakly := weak.Make(h)
	stop := server.Observe(func(r mcptask.Record) {
		if h := weakly.Value(); h != nil {
			h.Observe(r)
		}
	})
	over, end := context.WithCancel(server.Closing())
	cleanup := runtime.AddCleanup(h, func(end context.CancelFunc) { end() }, end)
	context.AfterFunc(over, func() {
		defer guard.Recover(nil, "the end of observing")
		stop()
		cleanup.Stop() // it would keep a closed server whose handlers hold the gateway
	})
	return h
}

// Observe hands a version of a task to the sessions that know the task. Handlers' writes
// call it, so it does nothing else: it does not block and makes no message. Versions may
// come twice or late.
func (h *Hub) Observe(r mcptask.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[r.ID]; t != nil && (r.Version > t.version || r.Version == t.version && hasExpired(r.ExpiresAt)) {
		h.post(t, r)
	}
}

func hasExpired(at time.Time) bool { return !time.Now().Before(at) }

// post puts a record into the mailboxes of all sessions that know the task, and forgets
// the task if it is over. h.mu is held.
func (h *Hub) post(t *topic, r mcptask.Record) {
	t.version, t.expires = r.Version, r.ExpiresAt
	if hasExpired(r.ExpiresAt) {
		h.drop(r.ID)
		return
	}
	for m := range t.sessions {
		h.put(m, t, &r)
	}
	if r.Done() {
		h.remove(r.ID, t)
	}
	h.startWorkers()
}

// put puts a record, or nil for a task that is gone, into a mailbox. What the mailbox has
// not looked at yet is replaced. h.mu is held.
func (h *Hub) put(m *Mailbox, t *topic, r *mcptask.Record) {
	if m.inbox == nil {
		m.inbox = map[*topic]*mcptask.Record{}
	}
	m.inbox[t] = r
	if !m.scheduled {
		m.scheduled = true
		h.ready = append(h.ready, m)
	}
}

// startWorkers has what was put looked at. h.mu is held.
func (h *Hub) startWorkers() {
	if len(h.ready) > 0 && h.workers < mostWorkers {
		h.workers++
		go h.work()
	}
}

// work empties mailboxes until there are none that have something.
func (h *Hub) work() {
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

// takeInbox empties a mailbox. m.mu is held, so that one caller handles all of it before the
// next takes more.
func (h *Hub) takeInbox(m *Mailbox) map[*topic]*mcptask.Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	inbox := m.inbox
	m.inbox = nil
	return inbox
}

// join makes a session one of those that know a task that has not ended, and the task's
// keeper. waiting are its requests that wait for the task. isNew says that it was not one:
// then changes may have passed that it must hear of. Else a newer record is posted, since
// another process may have changed the task.
func (h *Hub) join(m *Mailbox, r mcptask.Record, waiting int) (t *topic, isNew bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t = h.topics[r.ID]
	if t == nil {
		t = &topic{id: r.ID, expires: r.ExpiresAt, sessions: map[*Mailbox]int{}}
		h.topics[r.ID] = t
		if h.sweeper == nil {
			h.sweeper = time.AfterFunc(sweepEvery, h.sweep)
		}
	}
	_, known := t.sessions[m]
	isNew = !known
	t.sessions[m] = waiting
	t.setKeeper(m)
	if !isNew && r.Version > t.version {
		h.post(t, r)
	}
	return t, isNew
}

// setKeeper makes a session the keeper; nil makes none. The hub's lock is held.
func (t *topic) setKeeper(m *Mailbox) {
	if t.keeper != nil {
		t.keeper.kept.Add(-1)
	}
	if t.keeper = m; m != nil {
		m.kept.Add(1)
	}
}

// leave takes a session out of all its tasks and returns those that others still know.
// These are to be refreshed: what the session has left unanswered is for the others.
func (h *Hub) leave(m *Mailbox, tasks []string) (left []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.mailboxes, m)
	for _, id := range tasks {
		t := h.topics[id]
		if t == nil {
			continue
		}
		delete(t.sessions, m)
		if t.keeper == m {
			t.setKeeper(nil)
			for other := range t.sessions {
				t.setKeeper(other)
				break
			}
		}
		maps.DeleteFunc(t.claims, func(_ string, by *Mailbox) bool { return by == m })
		if !h.removeUnused(id, t) {
			left = append(left, id)
		}
	}
	return left
}

// removeUnused removes a task that no session knows and no answer waits for. It returns
// whether it did. h.mu is held.
func (h *Hub) removeUnused(id string, t *topic) bool {
	if len(t.sessions)+len(t.held) > 0 {
		return false
	}
	h.remove(id, t)
	return true
}

// remove forgets a task. h.mu is held.
func (h *Hub) remove(id string, t *topic) {
	for _, a := range t.held {
		h.heldBytes -= a.size
	}
	t.setKeeper(nil)
	delete(h.topics, id)
	delete(h.retries.tasks, id)
}

// drop forgets a task that is gone, and has the sessions forget it. h.mu is held.
func (h *Hub) drop(id string) {
	t := h.topics[id]
	if t == nil {
		return
	}
	for m := range t.sessions {
		h.put(m, t, nil)
	}
	h.remove(id, t)
	h.startWorkers()
}

// setWaiting notes how many requests of a session wait for a task: questions go out on
// their streams first.
func (h *Hub) setWaiting(t *topic, m *Mailbox, waiting int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.sessions[m] = waiting
}

// claim makes a session the one that is asked a question, or whose client has made a task
// of it. It returns false if another session is that already.
func (h *Hub) claim(m *Mailbox, task, key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[task]
	return t != nil && t.claim(m, key)
}

func (t *topic) claim(m *Mailbox, key string) bool {
	if by := t.claims[key]; by != nil {
		return by == m
	}
	if t.claims == nil {
		t.claims = map[string]*Mailbox{}
	}
	t.claims[key] = m
	return true
}

// claimToAsk is claim for a question that is to be sent. It returns false as well if the
// answer waits for the store, or if another session has a request that waits for the task,
// unless this one has, too (waits): its stream comes first (C-51).
func (h *Hub) claimToAsk(m *Mailbox, task string, in mcptask.Input, waits bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[task]
	if t == nil || t.held[in.Key] != nil {
		return false
	}
	if t.claims[in.Key] == nil && !waits {
		for other, waiting := range t.sessions {
			if waiting > 0 && other.answers(in) {
				return false
			}
		}
	}
	return t.claim(m, in.Key)
}

// release gives up a session's claim. The task is to be refreshed afterwards, so that
// another session is asked.
func (h *Hub) release(m *Mailbox, task, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[task]; t != nil && t.claims[key] == m {
		delete(t.claims, key)
	}
}

// sweepEvery is how often the tasks are searched for those that are over. Nearly none is
// found: what this process ends, deletes or is asked for is forgotten at once. The sweep
// is for tasks that another process ends, and that nobody asks for in a session that stays open.
const sweepEvery = time.Minute

func (h *Hub) sweep() {
	defer guard.Recover(h.server.Logger(), "the sweep of tasks")
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, t := range h.topics {
		if hasExpired(t.expires) {
			h.drop(id)
		}
	}
	if h.sweeper = nil; len(h.topics) > 0 {
		h.sweeper = time.AfterFunc(sweepEvery, h.sweep)
	}
}

// Counts is how much a hub holds at a moment.
type Counts struct {
	// Streams are open, Watched are tasks that some session knows, and Followed are tasks
	// at clients that are followed or are to be cancelled.
	Streams, Watched, Followed int
}

// Count counts. It may be called at any time.
func (h *Hub) Count() (c Counts) {
	h.mu.Lock()
	c.Watched = len(h.topics)
	mailboxes := make([]*Mailbox, 0, len(h.mailboxes))
	for m := range h.mailboxes {
		mailboxes = append(mailboxes, m)
	}
	h.mu.Unlock()
	for _, m := range mailboxes {
		m.count(&c)
	}
	return c
}
