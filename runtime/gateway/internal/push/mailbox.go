package push

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// Client is what a mailbox asks of the client of its session.
type Client interface {
	// Principal owns the session.
	Principal() string
	// CanAsk names the requests that the client answers.
	CanAsk() []string
	// Requestor is the server as the requestor of tasks at the client, in the revision
	// in which the session knows one of the server's tasks.
	Requestor(dialect.Teller) dialect.Requestor
}

// Mailbox is all that the server pushes to one session. It is safe for concurrent use.
type Mailbox struct {
	hub    *Hub
	client Client
	kept   atomic.Int64 // tasks that the session is the keeper of
	// unsettled counts the views that are unsettled.
	unsettled atomic.Int64

	// The hub's lock guards these: the newest records that the session has not looked at,
	// nil for tasks that are gone, and whether the hub has the mailbox among those that are
	// ready.
	inbox     map[*topic]*mcptask.Record
	scheduled bool

	mu      sync.Mutex
	closed  bool
	views   map[string]*view // by task ID
	streams []*Stream        // the session's own
	// clientTasks are the questions that are tasks at this client, and pendingCancels
	// those of its tasks that it has yet to cancel; both by their IDs there.
	clientTasks    map[string]*clientTask
	pendingCancels map[string]*pendingCancel
}

// view is what a session knows of one task. The mailbox's lock guards it.
type view struct {
	task     string
	revision dialect.Teller // in which the session has shown the ID
	topic    *topic
	version  int64     // of the record that was looked at last
	blocked  []*Stream // of requests that wait for the task

	// shown is the state that the session was told last, and shownOn the stream that it
	// was told on; nil is a reply.
	shown   visible
	shownOn *Stream
	// unsettled says that the reply which tells of the task is on its way. timed says
	// that a timer ends this, and late is the notification of the task's end, if the end
	// came meanwhile. Then the task is over, and the view stays for late alone.
	unsettled, timed, over bool
	late                   []byte

	// All by the question's key: what was sent on which stream, which are tasks at the
	// client, and the serials of those that are asked again since the client lost its task.
	sent        map[string]sentQuestion
	clientTasks map[string]*clientTask
	again       map[string]uint64
}

type sentQuestion struct {
	id string
	on *Stream
}

func (v *view) setShown(now visible, on *Stream) { v.shown, v.shownOn = now, on }

// Open returns the mailbox of a new session. It is to be closed with the session.
func (h *Hub) Open(client Client) *Mailbox {
	m := &Mailbox{hub: h, client: client, views: map[string]*view{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mailboxes[m] = true
	return m
}

// A client dismisses a question if it does not know the task that it belongs to, and one
// published client drops its own request then. So a task's questions and status follow the
// reply that tells the session of its ID. On a pipe that is one line after the other. Over
// HTTP they travel on another connection than the reply and may overtake it: there they wait
// for the first request that names the task, or for a while. Until then the task is unsettled.

// Know notes that the session has shown a task's ID, in a revision: it may get its questions.
func (m *Mailbox) Know(d dialect.Teller, r mcptask.Record) { m.know(d, r, false) }

// KnowUnsettled is Know for a task whose ID is on its way to the session in a reply. If the
// session does not know the task yet, it is unsettled.
func (m *Mailbox) KnowUnsettled(d dialect.Teller, r mcptask.Record) { m.know(d, r, true) }

func (m *Mailbox) know(d dialect.Teller, r mcptask.Record, unsettled bool) {
	m.mu.Lock()
	v := m.live(r.ID)
	isKnown, isNew := v != nil, false
	if r.Done() {
		if isKnown { // the reply tells the session
			v.setShown(visibleOf(&r), nil)
		}
	} else if v, isNew = m.viewOf(d, r); v != nil && !isKnown && unsettled {
		v.setShown(visibleOf(&r), nil) // by the reply
		m.setUnsettled(v, true)
	}
	unseen := isNew && !v.unsettled
	m.mu.Unlock()
	switch {
	case unseen: // what has changed since it was read, the end too; Settle looks for it otherwise
		m.hub.Refresh(r.ID)
	case r.Done(): // in another process, perhaps, which is news to other sessions
		m.hub.Observe(r)
	}
}

// viewOf returns the view of a task that has not ended, a new one if need be; nil if the
// session is over. isNew says that the hub has not known of it. m.mu is held.
func (m *Mailbox) viewOf(d dialect.Teller, r mcptask.Record) (v *view, isNew bool) {
	if m.closed || m.client.Principal() != r.Principal {
		return nil, false
	}
	if v = m.live(r.ID); v == nil {
		m.deleteView(m.views[r.ID])
		v = &view{task: r.ID}
		m.views[r.ID] = v
	}
	v.revision = d
	v.topic, isNew = m.hub.join(m, r, len(v.blocked))
	return v, isNew
}

// live returns the view of a task that is not over, or nil. m.mu is held.
func (m *Mailbox) live(task string) *view {
	if v := m.views[task]; v != nil && !v.over {
		return v
	}
	return nil
}

func (m *Mailbox) setUnsettled(v *view, unsettled bool) {
	switch {
	case unsettled && !v.unsettled:
		m.unsettled.Add(1)
	case !unsettled && v.unsettled:
		m.unsettled.Add(-1)
	}
	v.unsettled = unsettled
}

// deleteView forgets a view; nil is none. m.mu is held.
func (m *Mailbox) deleteView(v *view) {
	if v != nil {
		m.setUnsettled(v, false)
		delete(m.views, v.task)
	}
}

// Forget drops a task that the session has asked for in vain, if it knows it.
func (m *Mailbox) Forget(task string) {
	m.mu.Lock()
	v := m.live(task)
	m.mu.Unlock()
	if v != nil {
		m.hub.Refresh(task)
	}
}

// HasUnsettled says whether there is a task that the session has yet to be told of. It takes
// no lock.
func (m *Mailbox) HasUnsettled() bool { return m.unsettled.Load() > 0 }

// Settle lets the session's own stream have a task's questions and its status. seen is
// what the reply to a request shows of the task, or something earlier; nil is no reply.
func (m *Mailbox) Settle(task string, seen *mcptask.Record) {
	if m.HasUnsettled() && m.settle(task, seen) {
		m.hub.Refresh(task)
	}
}

// SettleAfter settles a task after a while, without waiting for it. A task has one timer,
// however often its call is repeated.
func (m *Mailbox) SettleAfter(task string, while time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.views[task]
	if v == nil || !v.unsettled || v.timed {
		return
	}
	v.timed = true
	time.AfterFunc(while, func() {
		defer guard.Recover(m.hub.server.Logger(), "settling of a task")
		m.Settle(task, nil)
	})
}

// settle is Settle without the questions. It returns whether they may go out now.
func (m *Mailbox) settle(task string, seen *mcptask.Record) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handleInbox() // the end, if it is there, comes before the reply
	v := m.views[task]
	if v == nil || !v.unsettled {
		return false
	}
	m.setUnsettled(v, false)
	switch {
	case !v.over:
		if seen != nil {
			v.setShown(visibleOf(seen), nil)
		}
		return true
	case v.late != nil && (seen == nil || !seen.Done()) && len(m.streams) > 0:
		m.streams[0].put(statusName(task), v.late)
	}
	m.deleteView(v)
	return false
}

// Connect opens a stream: the session's own, or with a task that of a request of a
// revision that waits for it. The questions that wait for one go out on it.
func (m *Mailbox) Connect(d dialect.Teller, task string) *Stream {
	c, waiting := m.connect(d, task)
	m.hub.Refresh(waiting...)
	return c
}

// ConnectBeside opens the session's own stream without waiting until its tasks are read.
// The reading ends with ctx.
func (m *Mailbox) ConnectBeside(ctx context.Context) *Stream {
	c, waiting := m.connect(nil, "")
	go func() {
		defer guard.Recover(m.hub.server.Logger(), "looking for what a new stream is to say")
		m.hub.refresh(ctx, waiting)
	}()
	return c
}

// connect opens a stream, and names the tasks to refresh, which may have something for it.
func (m *Mailbox) connect(d dialect.Teller, task string) (c *Stream, waiting []string) {
	c = &Stream{mailbox: m, task: task, revision: d, wake: make(chan struct{}, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return c, nil
	}
	if task == "" {
		m.streams = append(m.streams, c)
		waiting = slices.Collect(maps.Keys(m.views))
	} else if v := m.live(task); v != nil {
		v.blocked = append(v.blocked, c)
		m.hub.setWaiting(v.topic, m, len(v.blocked))
		waiting = []string{task}
	}
	m.resendCancels(c)
	return c, waiting
}

// Close closes a stream. What it left unanswered goes to another.
func (c *Stream) Close() { c.mailbox.hub.Refresh(c.mailbox.disconnect(c)...) }

// disconnect takes a stream away and names the tasks that have had something on it.
func (m *Mailbox) disconnect(c *Stream) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := map[string]bool{}
	views := m.views
	if c.task == "" {
		m.streams = remove(m.streams, c)
	} else {
		v := m.live(c.task)
		if views = nil; v != nil {
			views = map[string]*view{c.task: v}
			v.blocked = remove(v.blocked, c)
			m.hub.setWaiting(v.topic, m, len(v.blocked))
			left[c.task] = true // another session may have left the questions to this one
		}
	}
	for id, v := range views {
		if v.shownOn == c { // the last may be lost: the next stream gets the task as it is then
			v.setShown(unknownState, nil)
			if len(m.streams) > 0 { // which is open already
				left[id] = true
			}
		}
		for key, sent := range v.sent {
			if sent.on == c {
				delete(v.sent, key)
				m.hub.release(m, id, key)
				left[id] = true
			}
		}
	}
	for _, p := range m.pendingCancels {
		if p.on == c {
			p.on = nil
		}
	}
	for _, t := range m.clientTasks {
		if lost, unsent := t.loseStream(c), m.releaseUnsent(m.live(t.task), t); lost || unsent {
			left[t.task] = true
		}
	}
	return slices.Collect(maps.Keys(left))
}

func remove(list []*Stream, c *Stream) []*Stream {
	return slices.DeleteFunc(list, func(other *Stream) bool { return other == c })
}

// Close forgets a session that is over. What its streams left unanswered goes to those of
// other sessions.
func (m *Mailbox) Close() {
	m.mu.Lock()
	m.closed = true
	tasks := slices.Collect(maps.Keys(m.views))
	for _, t := range m.clientTasks {
		t.timer.Stop()
	}
	clear(m.views)
	m.unsettled.Store(0)
	m.streams, m.clientTasks, m.pendingCancels = nil, nil, nil
	left := m.hub.leave(m, tasks)
	m.mu.Unlock()
	m.hub.Refresh(left...)
}

// KeepsTasks says whether the session is the keeper of a task that has not ended. It takes
// no lock.
func (m *Mailbox) KeepsTasks() bool { return m.kept.Load() > 0 }

// Send sends a message on the session's own stream, if it has one.
func (m *Mailbox) Send(data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.streams) > 0 {
		m.streams[0].put("", data)
	}
}

// work looks at all that the hub has put in. Workers call it.
func (m *Mailbox) work() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handleInbox()
}

// handleInbox looks at all that the hub has put in. m.mu is held.
func (m *Mailbox) handleInbox() {
	for t, r := range m.hub.takeInbox(m) {
		if v := m.live(t.id); v != nil && v.topic == t {
			m.look(v, r)
		}
	}
}

// look compares a record with what the session was told. One that is older than the last
// is passed over, since changes may be seen out of order. m.mu is held.
func (m *Mailbox) look(v *view, r *mcptask.Record) {
	defer guard.Recover(m.hub.server.Logger(), "sending the news of a task")
	switch {
	case r == nil:
		m.dropView(v)
		return
	case r.Version < v.version:
		return
	}
	v.version = r.Version
	for _, in := range r.Inputs {
		if t := v.clientTasks[in.Key]; t != nil {
			m.follow(v, in, t)
		} else {
			m.ask(v, r, in)
		}
	}
	m.sendStatus(v, r)
	if r.Done() {
		m.dropView(v)
	}
}

// dropView forgets a task that is done or gone. m.mu is held.
func (m *Mailbox) dropView(v *view) {
	for _, sent := range v.sent {
		sent.on.cancel(sent.id)
	}
	for _, t := range v.clientTasks {
		m.unfollow(v, t)
	}
	if v.over = true; v.late == nil {
		m.deleteView(v)
	}
}

// count adds what the session holds.
func (m *Mailbox) count(c *Counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.Streams += len(m.streams)
	c.Followed += len(m.clientTasks) + len(m.pendingCancels)
	for _, v := range m.views {
		c.Streams += len(v.blocked)
	}
}
