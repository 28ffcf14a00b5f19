package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// Questions of 2025-11-25 are requests that the server sends. A client gets
// them on whatever stream it has open: that of a blocked tasks/result (C-51),
// else the session's standalone one (C-53). Each is on one stream at a time,
// and goes to the next when that one is dropped unanswered.

// channel is one live stream to a client.
type channel struct {
	outbox
	session *session
	task    string // of a blocked tasks/result; "" is the standalone stream
	// spoken is the revision of the request that the stream answers; nil is the one
	// in which the session knows each task.
	spoken dialect.Teller
}

// outbox holds messages until the stream's writer takes them.
type outbox struct {
	mu    sync.Mutex
	queue []outgoing
	wake  chan struct{} // has room for one: nobody who puts ever blocks
}

// outgoing is a question, the cancellation of one, or a task's status.
type outgoing struct {
	id   string
	data []byte
}

func (o *outbox) put(id string, data []byte) {
	o.mu.Lock()
	o.queue = append(o.queue, outgoing{id, data})
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// retract takes a question back that the writer has not taken yet, and says
// whether it could: so a client that does not read has no more in its outbox
// than is open.
func (o *outbox) retract(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	queued := len(o.queue)
	o.queue = slices.DeleteFunc(o.queue, func(m outgoing) bool { return m.id == id })
	return len(o.queue) < queued
}

func (o *outbox) take() []outgoing {
	o.mu.Lock()
	defer o.mu.Unlock()
	queue := o.queue
	o.queue = nil
	return queue
}

// questions knows which stream each question is on.
type questions struct {
	server *mcptask.Server
	legacy dialect.Teller

	mu    sync.Mutex
	known map[string]*knownTask
	// standalone are the sessions' own streams; shown, the tasks whose IDs a
	// session has shown.
	standalone map[*session][]*channel
	shown      map[*session]map[string]bool
	// kept is how many tasks each session is the keeper of.
	kept map[*session]int
	// fresh are the tasks that a session has yet to be told of, see hold. The value
	// says that a timer runs.
	fresh map[*session]map[string]bool
	// serial is of the last follow-up about a question that is a task.
	serial uint64
	// status is what the sessions have been told of their tasks.
	status statuses
	// sweeper runs while a task is known.
	sweeper *time.Timer
	// retries are the tasks that a failing store has kept from being looked at.
	retries retries
}

// knownTask is a task, not yet done, that some session has shown the ID of.
type knownTask struct {
	sessions map[*session]dialect.Teller // with the revision that it has shown the ID in
	keeper   *session                    // that has shown it last: the one that a flood of sessions does not end
	blocked  []*channel                  // streams of tasks/result
	sent     map[string]*channel         // by request ID
	remotes  map[string]*remote          // questions that are tasks at a client, by key
	again    map[string]uint64           // questions whose task a client has lost, by key
	version  int64                       // of the record that was seen last
	expires  time.Time
	held     map[string]*heldAnswer // answers that the store has not taken yet, by key
	pause    time.Duration          // before the store was tried last
}

func newQuestions(server *mcptask.Server, legacy dialect.Teller) *questions {
	return &questions{
		server:     server,
		legacy:     legacy,
		known:      map[string]*knownTask{},
		standalone: map[*session][]*channel{},
		shown:      map[*session]map[string]bool{},
		fresh:      map[*session]map[string]bool{},
		kept:       map[*session]int{},
	}
}

// know notes that a session has shown a task's ID, in a revision: it may get its
// questions.
func (q *questions) know(s *session, d dialect.Teller, r mcptask.Record) {
	q.mu.Lock()
	known := q.known[r.ID]
	joins := known == nil || known.sessions[s] == nil
	t := q.meet(s, d, r)
	if t == nil && !joins { // the reply tells the session
		q.status.note(s, r.ID, visibleOf(r))
	}
	q.mu.Unlock()
	switch {
	case t == nil: // another process may have ended it, which is news to other sessions
		q.look(r, true)
	case joins: // what has changed since it was read has passed unseen, the end too
		q.refresh([]string{r.ID})
	default:
		q.look(r, true)
	}
}

// meet makes a task known that is not done, to a session that is not over.
// q.mu is held.
func (q *questions) meet(s *session, d dialect.Teller, r mcptask.Record) *knownTask {
	if r.Done() || s.ended.Err() != nil { // what knows it now would never be forgotten
		return nil
	}
	t := q.known[r.ID]
	if t == nil {
		t = &knownTask{sessions: map[*session]dialect.Teller{}, sent: map[string]*channel{}, expires: r.ExpiresAt}
		q.known[r.ID] = t
		q.sweepLater()
	}
	if t.sessions[s] == nil && q.held(s, r.ID) { // the reply that tells of the task shows r
		q.status.note(s, r.ID, visibleOf(r))
	}
	t.sessions[s] = d
	q.keep(t, s)
	if q.shown[s] == nil {
		q.shown[s] = map[string]bool{}
	}
	q.shown[s][r.ID] = true
	return t
}

// keep makes a session the keeper of a task; nil takes the keeper away. A task has one
// keeper, so a caller cannot keep more sessions than it has tasks. q.mu is held.
func (q *questions) keep(t *knownTask, s *session) {
	if t.keeper != nil {
		if q.kept[t.keeper]--; q.kept[t.keeper] == 0 {
			delete(q.kept, t.keeper)
		}
	}
	if t.keeper = s; s != nil {
		q.kept[s]++
	}
}

// busy says whether a session keeps a task that has not ended.
func (q *questions) busy(s *session) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.kept[s] > 0
}

// told is the revision in which a session knows a task. q.mu is held.
func (q *questions) told(s *session, task string) dialect.Teller {
	if t := q.known[task]; t != nil && t.sessions[s] != nil {
		return t.sessions[s]
	}
	return q.legacy
}

// connect opens a stream; the questions that wait for one go out on it.
func (q *questions) connect(s *session, task string) *channel { return q.connectIn(nil, s, task) }

// connectIn opens the stream of a request that is spoken in a revision.
func (q *questions) connectIn(d dialect.Teller, s *session, task string) *channel {
	c, waiting := q.open(d, s, task)
	q.refresh(waiting)
	return c
}

// open opens a stream, and names the tasks to refresh, which may have something for it.
func (q *questions) open(d dialect.Teller, s *session, task string) (c *channel, waiting []string) {
	c = &channel{outbox: outbox{wake: make(chan struct{}, 1)}, session: s, task: task, spoken: d}
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting = []string{task}
	if task == "" {
		q.standalone[s] = append(q.standalone[s], c)
		waiting = slices.Collect(maps.Keys(q.shown[s]))
	} else if t := q.known[task]; t != nil {
		t.blocked = append(t.blocked, c)
	}
	q.payOwed(c)
	return c, waiting
}

// refreshers is how many tasks of a session are read at once for its new stream.
const refreshers = 8

// refreshBeside refreshes many tasks without waiting for them, until done.
func (q *questions) refreshBeside(done <-chan struct{}, tasks []string) {
	left := make(chan string, len(tasks))
	for _, id := range tasks {
		left <- id
	}
	close(left)
	for range min(refreshers, len(tasks)) {
		go func() {
			defer guard.Recover(q.server.Logger(), "looking for what a new stream is to say")
			for id := range left {
				select {
				case <-done:
					return
				default:
					q.refresh([]string{id})
				}
			}
		}()
	}
}

// disconnect closes a stream; what it left unanswered goes to another.
func (q *questions) disconnect(c *channel) {
	q.mu.Lock()
	waiting := []string{c.task}
	if c.task == "" {
		if q.standalone[c.session] = remove(q.standalone[c.session], c); len(q.standalone[c.session]) == 0 {
			delete(q.standalone, c.session)
		}
		waiting = slices.Collect(maps.Keys(q.shown[c.session]))
	}
	left := append(c.session.dropped(c), q.status.lost(c)...)
	for _, id := range waiting {
		t := q.known[id]
		if t == nil {
			continue
		}
		t.blocked = remove(t.blocked, c)
		had := len(t.sent)
		maps.DeleteFunc(t.sent, func(_ string, via *channel) bool { return via == c })
		if len(t.sent) < had {
			left = append(left, id)
		}
	}
	q.mu.Unlock()
	q.refresh(left)
}

func remove(list []*channel, c *channel) []*channel {
	return slices.DeleteFunc(list, func(other *channel) bool { return other == c })
}

// end drops a session that is over; what its streams left unanswered goes to
// those of other sessions.
func (q *questions) end(s *session) {
	q.mu.Lock()
	q.part(s)
	var left []string
	for id := range q.shown[s] {
		t := q.known[id]
		if t == nil {
			continue
		}
		delete(t.sessions, s)
		if t.keeper == s {
			q.keep(t, nil)
			for other := range t.sessions {
				q.keep(t, other)
				break
			}
		}
		if len(t.sessions) == 0 && len(t.held) == 0 {
			delete(q.known, id)
			delete(q.retries.due, id)
			continue
		}
		t.blocked = slices.DeleteFunc(t.blocked, func(c *channel) bool { return c.session == s })
		maps.DeleteFunc(t.sent, func(_ string, via *channel) bool { return via.session == s })
		left = append(left, id)
	}
	delete(q.shown, s)
	delete(q.fresh, s)
	q.status.end(s)
	q.mu.Unlock()
	q.refresh(left)
}

// drop forgets a task that is done or gone. q.mu is held.
func (q *questions) drop(id string) {
	if t := q.known[id]; t != nil {
		for id, via := range t.sent {
			via.takeBack(id)
		}
		for _, m := range t.remotes {
			q.leave(t, m)
		}
		for _, a := range t.held {
			q.dropAnswer(t, a)
		}
		delete(q.retries.due, id)
		q.keep(t, nil)
		for s := range t.sessions {
			q.status.forget(s, id)
			if delete(q.shown[s], id); len(q.shown[s]) == 0 {
				delete(q.shown, s)
			}
			if delete(q.fresh[s], id); len(q.fresh[s]) == 0 {
				delete(q.fresh, s)
			}
		}
		delete(q.known, id)
	}
}

// observe follows the server's tasks until it closes. The server does not keep the
// gateway: a process may make many, and drop them.
func (q *questions) observe() {
	known := weak.Make(q)
	stop := q.server.Observe(func(r mcptask.Record) {
		if q := known.Value(); q != nil {
			q.changed(r)
		}
	})
	over, end := context.WithCancel(q.server.Closing())
	cleanup := runtime.AddCleanup(q, func(end context.CancelFunc) { end() }, end)
	context.AfterFunc(over, func() {
		defer guard.Recover(nil, "the end of observing")
		stop()
		cleanup.Stop() // it would keep a closed server whose handlers hold the gateway
	})
}

// changed is the server's observer: it sends what is new of a task and takes
// back what is settled. It does not block.
func (q *questions) changed(r mcptask.Record) { q.look(r, false) }

// look compares a record with what is sent. One that is older than the last is
// passed over, since changes may be seen out of order; the same one again only
// counts where streams have changed.
func (q *questions) look(r mcptask.Record, again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.known[r.ID]
	gone := !time.Now().Before(r.ExpiresAt)
	switch {
	case t == nil, r.Version < t.version, r.Version == t.version && !again && !gone:
		return
	case gone:
		q.drop(r.ID)
		return
	}
	t.version = r.Version
	for _, in := range r.Inputs {
		if m := t.remotes[in.Key]; m != nil {
			q.follow(t, r, in, m)
			continue
		}
		id := t.questionID(r.ID, in.Key)
		via := t.sent[id]
		switch {
		case in.State != mcptask.InputOutstanding && via != nil:
			delete(t.sent, id)
			if in.State == mcptask.InputSuperseded {
				via.takeBack(id)
			} else {
				via.retract(id) // answered in another session
			}
		case in.State == mcptask.InputOutstanding && via == nil && t.held[in.Key] == nil:
			q.send(t, r, id, in)
		}
	}
	q.tell(t, r)
	if r.Done() {
		q.drop(r.ID)
	}
}

// takeBack tells the client that a question needs no answer any longer.
func (o *outbox) takeBack(id string) {
	if !o.retract(id) {
		o.put(id, cancelled(id, "the task no longer waits for the answer"))
	}
}

// send puts a question on the best stream there is. q.mu is held.
func (q *questions) send(t *knownTask, r mcptask.Record, id string, in mcptask.Input) {
	c := q.route(t, r, in)
	if c == nil {
		return
	}
	d := c.spoken
	if d == nil {
		d = q.told(c.session, r.ID)
	}
	request, err := questionRequest(d, id, r, in, t.augment(q.requestor(c.session, r.ID), r, in))
	if err != nil {
		q.server.Notice(slog.LevelError, "question not encoded", "task", mcptask.LogID(r.Principal, r.ID), "key", in.Key, "error", err)
		return
	}
	t.sent[id] = c
	c.put(id, request)
}

// route picks the stream for a question: only ever one of the task's owner's,
// and of a session that knows the ID and answers such questions.
func (q *questions) route(t *knownTask, r mcptask.Record, in mcptask.Input) *channel {
	fits := func(s *session) bool {
		return s.principal == r.Principal && mcptask.Caller{CanAsk: s.canAsk}.Answers(in)
	}
	for _, c := range t.blocked {
		if fits(c.session) {
			return c
		}
	}
	for s := range t.sessions {
		if len(q.standalone[s]) > 0 && fits(s) && !q.held(s, r.ID) {
			return q.standalone[s][0]
		}
	}
	return nil
}

// questionRequest makes the request; with a ttl it asks for a task.
func questionRequest(d dialect.Teller, id string, r mcptask.Record, in mcptask.Input, ttl time.Duration) ([]byte, error) {
	params, err := d.Question(r, in, ttl)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": in.Method, "params": params})
}

const notificationCancelled = "notifications/cancelled"

// cancelled takes a request back; id is a string, or any ID as JSON.
func cancelled(id any, reason string) []byte {
	data, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "method": notificationCancelled, "params": map[string]any{"requestId": id, "reason": reason},
	})
	if err != nil { // an ID always marshals
		return nil
	}
	return data
}
