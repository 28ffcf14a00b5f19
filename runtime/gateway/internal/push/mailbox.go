package push

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Client describes the client of a session to its mailbox.
type Client interface {
	// Principal returns the owner of the session.
	Principal() string
	// CanAsk returns the methods of requests that the client answers.
	CanAsk() []string
	// Requestor returns the server's side of tasks at the client. The argument is the revision in
	// which the session knows the server's task.
	Requestor(protocol.Teller) protocol.Requestor
	// Session returns the name of a session that other replicas serve too, and when it began. The
	// name is "" if the session lives in this process alone.
	Session() (name string, began time.Time)
}

// Mailbox holds everything that the server sends to one session. It is safe for concurrent use.
type Mailbox struct {
	hub    *Hub
	client Client
	// unsettled counts the views that are unsettled.
	unsettled atomic.Int64

	// The hub's lock guards these fields. inbox holds the newest records that the session has not
	// looked at; nil stands for a task that is gone. scheduled says that the mailbox is in the
	// hub's ready list.
	inbox     map[*topic]*taskstore.Record
	scheduled bool
	// found are unfinished tasks that the session has created and that it does not know here, by ID.
	found map[string]taskstore.Record

	mu      sync.Mutex
	closed  bool
	views   map[string]*view // by task ID
	streams []*Stream        // the session's own
	unsent  []message        // of Post, without a stream so far
	// unfollowSession ends the search for tasks that other replicas create in the session. It is
	// nil if there is no search, because the session has no stream of its own here.
	unfollowSession func()
	// finding says that a goroutine looks for such tasks, and findAgain that it has to look again.
	finding, findAgain bool
}

// view is a session's knowledge of one task. The mailbox's lock guards it.
type view struct {
	topic     *topic
	revision  protocol.Teller      // in which the session has shown the task's ID
	blocked   []*Stream            // streams of requests that wait for the task
	calls     []*Stream            // those of calls under way, also if their clients have left
	questions map[string]*question // that the session was asked, by key

	// shown is the state that the session was told last. shownOn is the stream that carried it, or
	// nil if a reply did.
	shown   visible
	shownOn *Stream
	// unsettled says that the reply with the task's ID is still on its way. timed says that a timer
	// will end this. late is the notification of the task's end, if the task has ended in the
	// meantime. The view then exists only for late.
	unsettled, timed bool
	late             []byte
	// found says that the view is unsettled because another replica has created the task, or this
	// one has created it and has not yet encoded the reply.
	found bool
	// hidden says that the session does not know the task's ID. It is asked the task's questions while a call waits for the
	// task, and told nothing else.
	hidden bool
}

func (v *view) setShown(now visible, on *Stream) { v.shown, v.shownOn = now, on }

// Open returns the mailbox of a new session. Close it with the session.
func (h *Hub) Open(client Client) *Mailbox {
	m := &Mailbox{hub: h, client: client, views: map[string]*view{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mailboxes[m] = true
	return m
}

// A client dismisses a question if it does not know the question's task. One published client then
// even drops its own request. So a task's questions and status must follow the reply that tells the
// session the task's ID. On a pipe they are simply later lines. Over HTTP they use another
// connection than the reply and may overtake it. There they wait for the first request that names
// the task, or for a limited time. Until then the task is unsettled.

// Know notes that the session has shown a task's ID, in a revision. The session may then get the
// task's questions.
func (m *Mailbox) Know(d protocol.Teller, r taskstore.Record) { m.addTask(d, r, false) }

// KnowUnsettled notes a task whose ID is on its way to the session in a reply. If the session does
// not know the task yet, the task becomes unsettled.
func (m *Mailbox) KnowUnsettled(d protocol.Teller, r taskstore.Record) { m.addTask(d, r, true) }

func (m *Mailbox) addTask(d protocol.Teller, r taskstore.Record, unsettled bool) {
	if r.Done() {
		m.showEnd(&r)
		m.hub.observe(r) // another process may have ended it, which is news to other sessions
		return
	}
	m.mu.Lock()
	former := m.liveView(r.ID)
	isKnown := former != nil && !former.hidden
	v, unseen := m.viewOf(d, r)
	if v != nil {
		unseen, v.hidden = unseen || v.hidden, false
		if unsettled && (!isKnown || v.found) {
			v.setShown(m.visibleOf(&r), nil) // the reply shows this state
			m.setUnsettled(v, true)
			v.found = false
		}
		unseen = unseen && !v.unsettled
	}
	m.mu.Unlock()
	if unseen { // the task may have changed since it was read; if it is unsettled, Settle looks for changes
		m.hub.Refresh(r.ID)
	}
}

// showEnd notes that a reply shows the end of a task. An end in the inbox is told first.
func (m *Mailbox) showEnd(r *taskstore.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handleInbox()
	if v := m.liveView(r.ID); v != nil {
		v.setShown(m.visibleOf(r), nil)
	}
}

// viewOf returns the view of an unfinished task. It creates the view if needed, and returns nil if
// the session is over. isNew reports whether the session is new to the hub's topic. m.mu is held.
func (m *Mailbox) viewOf(d protocol.Teller, r taskstore.Record) (v *view, isNew bool) {
	if m.closed || m.client.Principal() != r.Principal {
		return nil, false
	}
	if v = m.liveView(r.ID); v == nil {
		m.deleteView(m.views[r.ID])
		v = &view{questions: map[string]*question{}}
		m.views[r.ID] = v
	}
	v.revision = d
	v.topic, isNew = m.hub.join(m, r, len(v.blocked))
	return v, isNew
}

// liveView returns the view of a task, or nil if there is none or the task has ended. m.mu is held.
func (m *Mailbox) liveView(task string) *view {
	if v := m.views[task]; v != nil && v.late == nil {
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

// deleteView removes a view, which may be nil. m.mu is held.
func (m *Mailbox) deleteView(v *view) {
	if v != nil {
		m.setUnsettled(v, false)
		delete(m.views, v.topic.id)
	}
}

// Forget checks a task that the session has asked for in vain, and forgets it if it is gone.
func (m *Mailbox) Forget(task string) {
	m.mu.Lock()
	v := m.liveView(task)
	m.mu.Unlock()
	if v != nil {
		m.hub.Refresh(task)
	}
}

// HasUnsettled reports whether some task is unsettled. It takes no lock.
func (m *Mailbox) HasUnsettled() bool { return m.unsettled.Load() > 0 }

// Settle allows a task's questions and status on the session's own stream. seen is the state that
// the reply to a request shows, or an earlier state. It is nil if there is no reply.
func (m *Mailbox) Settle(task string, seen *taskstore.Record) {
	if m.HasUnsettled() && m.settleTask(task, seen) {
		m.hub.Refresh(task)
	}
}

// SettleAfter settles a task after a time. It does not wait. A task has one timer, however often
// its call is repeated.
func (m *Mailbox) SettleAfter(task string, while time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.views[task]
	if v == nil || !v.unsettled || v.timed {
		return
	}
	v.timed = true
	time.AfterFunc(while, guard.Func(m.hub.server.Logger(), "settling of a task", func() {
		if m.settleTask(task, nil) {
			m.hub.refreshInTurn(task)
		}
	}))
}

// settleTask settles a task without refreshing it. It returns true if the task's questions may now
// be sent.
func (m *Mailbox) settleTask(task string, seen *taskstore.Record) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handleInbox() // a task's end that is in the inbox counts as earlier than the reply
	v := m.views[task]
	if v == nil || !v.unsettled {
		return false
	}
	m.setUnsettled(v, false)
	switch {
	case v.late == nil:
		if seen != nil {
			v.setShown(m.visibleOf(seen), nil)
		}
		return true
	case seen == nil || !seen.Done():
		m.send(statusName(task), v.late)
	}
	m.deleteView(v)
	return false
}

// Connect opens a stream and sends the questions that wait for one. With a task, it is the stream
// of a request that waits for the task, in the given revision. Without, it is the session's own
// stream.
func (m *Mailbox) Connect(d protocol.Teller, task string) *Stream {
	c := &Stream{task: task, revision: d}
	waiting := m.connect(c)
	m.hub.Refresh(waiting...)
	return c
}

// ConnectCall opens the stream of a call that waits for a task, which may end before its task does. The client need not
// know the task. A question that Take has returned stays with the client, and the session is not asked again, unless the
// client fails to show it. Then giveUp is called. isOpen says that the call has a stream. If not, the session's own carries
// the call's questions. Close the stream in any case.
func (m *Mailbox) ConnectCall(d protocol.Teller, r taskstore.Record, giveUp func(), isOpen bool) *Stream {
	c := &Stream{mailbox: m, task: r.ID, call: true, giveUp: giveUp, wake: make(chan struct{}, 1)}
	m.mu.Lock()
	v := m.liveView(r.ID)
	if v == nil {
		if v, _ = m.viewOf(d, r); v != nil {
			v.hidden = true
		}
	}
	if v != nil {
		v.calls = append(v.calls, c)
		m.retryFailed(v)
	}
	m.mu.Unlock()
	waiting := []string{r.ID}
	if isOpen {
		waiting = m.connect(c)
	}
	m.hub.Refresh(waiting...)
	return c
}

// Interrupt says that the client of a call has left. The session's own stream carries the messages that Take has not
// returned.
func (c *Stream) Interrupt() { c.mailbox.hub.Refresh(c.mailbox.disconnect(c, false)...) }

// HasStream reports whether a stream of the session's own is open.
func (m *Mailbox) HasStream() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.streams) > 0
}

// ConnectBeside opens the session's own stream without waiting for its tasks to be read. The
// reading ends with ctx. spare says that the stream is meant for calls. It carries other messages only for want of another.
func (m *Mailbox) ConnectBeside(ctx context.Context, spare bool) *Stream {
	c := &Stream{spare: spare}
	waiting := m.connect(c)
	guard.Go(m.hub.server.Logger(), "looking for what a new stream is to say", func() { m.hub.refresh(ctx, waiting) })
	return c
}

// connect opens a stream. It returns the tasks to refresh, which may have messages for it.
func (m *Mailbox) connect(c *Stream) (waiting []string) {
	c.mailbox, c.wake = m, make(chan struct{}, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	if c.task == "" {
		i := slices.IndexFunc(m.streams, func(other *Stream) bool { return other.spare && !c.spare })
		if i < 0 {
			i = len(m.streams)
		}
		m.streams = slices.Insert(m.streams, i, c)
		for _, each := range m.unsent {
			c.put(each.name, each.data)
		}
		m.unsent = nil
		if !c.spare {
			m.followSession()
		}
		waiting = slices.Collect(maps.Keys(m.views))
	} else if v := m.liveView(c.task); v != nil {
		v.blocked = append(v.blocked, c)
		m.hub.setWaiting(v.topic, m, len(v.blocked))
		waiting = []string{c.task}
	}
	return waiting
}

// Close closes a stream. Its unanswered questions move to another stream. A question that a client may have got on the
// stream of a call stays there.
func (c *Stream) Close() { c.mailbox.hub.Refresh(c.mailbox.disconnect(c, true)...) }

// disconnect removes a stream. over says that its request is over too. It returns the tasks whose messages may be lost
// with the stream.
func (m *Mailbox) disconnect(c *Stream, over bool) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := map[string]bool{}
	views := m.views
	if c.task == "" {
		m.streams = removeStream(m.streams, c)
		if len(m.streams) == 0 {
			m.stopFollowingSession()
		}
	} else {
		v := m.liveView(c.task)
		if views = nil; v != nil {
			views = map[string]*view{c.task: v}
			v.blocked = removeStream(v.blocked, c)
			if over {
				v.calls = removeStream(v.calls, c)
			}
			m.hub.setWaiting(v.topic, m, len(v.blocked))
			left[c.task] = true // another session may have given precedence to this stream
		}
	}
	for id, v := range views {
		if v.shownOn == c { // the last status may be lost: the next stream gets the current one
			v.setShown(unknownState, nil)
			if len(m.streams) > 0 { // the next stream is already open
				left[id] = true
			}
		}
		for key, q := range v.questions {
			lost, unsent := q.loseStream(c), q.task != nil && m.bestStream(v) == nil
			kept := c.call && q.request.on == c // another session's call may ask all the same
			if unsent || kept || lost && q.task == nil {
				m.hub.release(m, v.topic, key)
			}
			if unsent || kept || lost {
				left[id] = true
			}
		}
	}
	return slices.Collect(maps.Keys(left))
}

func removeStream(list []*Stream, c *Stream) []*Stream {
	return slices.DeleteFunc(list, func(other *Stream) bool { return other == c })
}

// Close removes a session that is over. Its unanswered questions move to other sessions.
func (m *Mailbox) Close() {
	m.mu.Lock()
	m.closed = true
	for t := range m.clientTasks() {
		t.timer.Stop()
	}
	for _, v := range m.views {
		for _, q := range v.questions {
			q.stopTimer()
		}
	}
	m.stopFollowingSession()
	left := m.hub.leave(m)
	clear(m.views)
	m.unsettled.Store(0)
	m.streams = nil
	m.mu.Unlock()
	m.hub.Refresh(left...)
}

// Send sends a message on the session's own stream, if one is open.
func (m *Mailbox) Send(data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.send("", data)
}

// Post sends a message on the session's own stream. If none is open, the next one carries it.
func (m *Mailbox) Post(name string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.streams) == 0 {
		m.unsent = append(m.unsent, message{name, data})
	}
	m.send(name, data)
}

// Retract takes back a message of Post. It returns false if the client may have read it.
func (m *Mailbox) Retract(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	posted := len(m.unsent)
	m.unsent = slices.DeleteFunc(m.unsent, func(each message) bool { return each.name == name })
	return len(m.unsent) < posted || slices.ContainsFunc(m.streams, func(c *Stream) bool { return c.retract(name) })
}

// send is Send for a message with a name in the queue. m.mu is held.
func (m *Mailbox) send(name string, data []byte) {
	if len(m.streams) > 0 {
		m.streams[0].put(name, data)
	}
}

// bestStream returns the stream for requests about a task, or nil. v may be nil. m.mu is held.
func (m *Mailbox) bestStream(v *view) *Stream {
	switch {
	case v != nil && len(v.blocked) > 0:
		return v.blocked[0]
	case len(m.streams) > 0:
		return m.streams[0]
	}
	return nil
}

// work handles the inbox. The hub's workers call it.
func (m *Mailbox) work() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handleInbox()
}

// handleInbox looks at every record in the inbox. m.mu is held.
func (m *Mailbox) handleInbox() {
	inbox, found := m.hub.takeInbox(m)
	for _, r := range found {
		m.addFound(&r, m.visibleOf(&r))
	}
	for t, r := range inbox {
		if v := m.liveView(t.id); v != nil && v.topic == t {
			m.sendChanges(v, r)
		}
	}
}

// sendChanges compares a record with the state that the session was told, and sends the changes. r is nil if
// the task is gone. m.mu is held.
func (m *Mailbox) sendChanges(v *view, r *taskstore.Record) {
	defer guard.Recover(m.hub.server.Logger(), "sending the news of a task")
	if r == nil {
		m.dropView(v)
		return
	}
	for _, in := range r.Inputs {
		m.updateQuestion(v, r, in)
	}
	m.sendStatus(v, r)
	if r.Done() {
		m.dropView(v)
	}
}

// dropView removes a task that has ended or is gone. m.mu is held.
func (m *Mailbox) dropView(v *view) {
	for key, q := range v.questions {
		m.endQuestion(v, q, key, true)
	}
	if v.late == nil {
		m.deleteView(v)
	}
}

// clientTasks returns the questions that the client keeps as tasks. m.mu is held.
func (m *Mailbox) clientTasks() iter.Seq[*clientTask] {
	return func(yield func(*clientTask) bool) {
		for _, v := range m.views {
			for _, q := range v.questions {
				if q.task != nil && !yield(q.task) {
					return
				}
			}
		}
	}
}

// addCounts adds the session's counts to c.
func (m *Mailbox) addCounts(c *Counts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.Streams += len(m.streams)
	for range m.clientTasks() {
		c.Followed++
	}
	for _, v := range m.views {
		c.Streams += len(v.blocked)
	}
}
