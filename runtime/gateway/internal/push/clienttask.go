package push

import (
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// A client may make a task of a question (2025-11-25, the Task Patterns guide). The
// server then follows that task: tasks/result goes out at once and waits at the client
// until the person has answered. If it is refused, or does not wait, or the stream that
// it went out on is dropped, the server polls with tasks/get until the task has ended
// (C-32, D-25).
//
// All of it travels as the question did, and is in memory, for a session: the record only
// knows that the question is open, so that after a restart it is asked again.
//
// Questions of plain calls go through the SDK, whose types cannot ask for a task: they
// stay plain requests.

const (
	// shortestPoll and longestPoll bound the interval that a client names.
	shortestPoll = 100 * time.Millisecond
	longestPoll  = time.Hour
	// replyWithin is how long a request may be unanswered before the task's state is
	// asked for: replies can get lost, and some clients never answer.
	replyWithin = 30 * time.Second
	// mostFailures is how many replies about a client's task may fail.
	mostFailures = 3
	// longestTaskID bounds a client's task ID in bytes: every poll repeats it.
	longestTaskID = 1024
)

// clientTask is a question that is a task at the session's client. The mailbox's lock
// guards it.
type clientTask struct {
	requestor dialect.Requestor
	task, key string // the question
	id        string // the client's task

	status   mcptask.Status
	interval time.Duration
	lastPoll time.Time // when the state was told or asked for last
	lastSent time.Time // when anything was asked for last
	timer    *time.Timer

	// wantsResult says that tasks/result is the next thing to send.
	wantsResult bool
	get, result sentRequest
	// failedGets counts the failed replies to tasks/get in a row, failedResults those to
	// tasks/result. failure is the last of these.
	failedGets, failedResults int
	failure                   *mcptask.Error
	// answered says that the question's answer is on its way to the record.
	answered bool
}

// sentRequest is a request to a client that has no reply yet. The zero value is none.
type sentRequest struct {
	on *Stream
	id string
}

func (p *sentRequest) retract() {
	if p.on != nil {
		p.on.retract(p.id)
	}
	*p = sentRequest{}
}

// startFollowing follows a client's task. One that nobody needs is cancelled: of a question
// that is settled, or that another task or another session has been asked meanwhile.
func (m *Mailbox) startFollowing(r mcptask.Record, in mcptask.Input, requestor dialect.Requestor, started mcptask.Snapshot) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other := m.clientTasks[started.TaskID]; other != nil {
		if other.task != r.ID || other.key != in.Key {
			return errors.New("its ID is that of another question's task")
		}
		return nil // said twice
	}
	now := time.Now()
	t := &clientTask{requestor: requestor, task: r.ID, key: in.Key, id: started.TaskID, lastPoll: now, lastSent: now}
	t.setState(started)
	t.wantsResult = t.resultWaits() || t.hasEnded()
	var v *view
	if !r.Done() {
		v, _ = m.viewOf(m.revisionOf(r.ID), r)
	}
	if v == nil || v.clientTasks[t.key] != nil || v.again[t.key] > 0 || !m.hub.claim(m, t.task, t.key) {
		m.cancelClientTask(v, t)
		return nil
	}
	m.logQuestion(slog.LevelInfo, "a question is a task of the client's", t.task, t.key, "client_task", t.id)
	t.timer = time.AfterFunc(t.interval, func() {
		defer guard.Recover(m.hub.server.Logger(), "polling of a client's task")
		m.hub.Refresh(t.task)
	})
	if m.clientTasks == nil {
		m.clientTasks = map[string]*clientTask{}
	}
	if v.clientTasks == nil {
		v.clientTasks = map[string]*clientTask{}
	}
	m.clientTasks[t.id], v.clientTasks[t.key] = t, t
	if sent, ok := v.sent[t.key]; ok {
		sent.on.retract(sent.id)
		delete(v.sent, t.key)
	}
	m.releaseUnsent(v, t)
	return nil
}

// releaseUnsent lets another session be asked if there is no stream to follow a client's
// task on, and returns whether there is none. The task is to be refreshed then. m.mu is held.
func (m *Mailbox) releaseUnsent(v *view, t *clientTask) bool {
	if m.bestStream(v) != nil {
		return false
	}
	m.hub.release(m, t.task, t.key)
	return true
}

// revisionOf returns the revision in which the session knows a task. m.mu is held.
func (m *Mailbox) revisionOf(task string) dialect.Teller {
	if v := m.live(task); v != nil {
		return v.revision
	}
	return m.hub.legacy
}

// setState notes what a client says of its task.
func (t *clientTask) setState(s mcptask.Snapshot) {
	t.status, t.interval = s.Status, mcptask.DefaultPoll
	if s.Poll > 0 {
		t.interval = min(max(s.Poll, shortestPoll), longestPoll)
	}
}

// resultWaits says that tasks/result waits at the client until its task has ended.
func (t *clientTask) resultWaits() bool {
	_, polls := t.requestor.(dialect.Poller)
	return !polls
}

func (t *clientTask) hasEnded() bool { return mcptask.Snapshot{Status: t.status}.Done() }

// hasFailed says whether the last error of tasks/result is how the question ended.
func (t *clientTask) hasFailed() bool {
	return t.failure != nil && (t.status == mcptask.StatusFailed || t.failedResults >= mostFailures)
}

// nextPoll returns when the task's state is to be asked for: at its interval (C-30), and
// late if a reply is still to come.
func (t *clientTask) nextPoll() time.Time {
	next := t.lastPoll.Add(t.interval)
	if t.get.id == "" && t.result.id == "" {
		return next
	}
	if late := t.lastSent.Add(max(t.interval, replyWithin)); late.After(next) {
		return late
	}
	return next
}

// loseStream notes that a stream is gone, and returns whether a request was on it.
func (t *clientTask) loseStream(c *Stream) (lost bool) {
	for _, p := range []*sentRequest{&t.get, &t.result} {
		if p.on == c {
			*p, lost = sentRequest{}, true
		}
	}
	return lost
}

// follow sends what is next about a question that is a client's task, or gives the task up
// if the question is settled or another session has been asked. m.mu is held.
func (m *Mailbox) follow(v *view, in mcptask.Input, t *clientTask) {
	if in.State != mcptask.InputOutstanding {
		m.unfollow(v, t)
		return
	}
	if t.answered {
		return
	}
	c := m.bestStream(v)
	if c == nil { // the session's next stream goes on, unless another session is asked first
		t.timer.Stop()
		return
	}
	if !m.hub.claim(m, t.task, t.key) {
		m.unfollow(v, t)
		return
	}
	now := time.Now()
	switch {
	case t.wantsResult:
		t.wantsResult, t.lastSent = false, now
		t.result.retract()
		method, params := t.requestor.Result(t.id)
		t.result = m.sendRequest(c, t, kindResult, method, params)
	case !t.nextPoll().After(now):
		t.lastPoll, t.lastSent = now, now
		t.get.retract()
		method, params := t.requestor.Get(t.id)
		t.get = m.sendRequest(c, t, kindGet, method, params)
	}
	t.timer.Reset(time.Until(t.nextPoll()))
}

// bestStream returns the stream for what concerns a client's task: only ever one of the
// session in which the client told of it. v may be nil. m.mu is held.
func (m *Mailbox) bestStream(v *view) *Stream {
	switch {
	case v != nil && len(v.blocked) > 0:
		return v.blocked[0]
	case len(m.streams) > 0:
		return m.streams[0]
	}
	return nil
}

// sendRequest sends a follow-up on a stream.
func (m *Mailbox) sendRequest(c *Stream, t *clientTask, kind requestKind, method string, params any) sentRequest {
	id, data := m.encodeRequest(t, kind, method, params)
	c.put(id, data)
	return sentRequest{c, id}
}

func (m *Mailbox) encodeRequest(t *clientTask, kind requestKind, method string, params any) (id string, data []byte) {
	id = RequestID{kind, m.hub.serial.Add(1), t.task, t.key}.String()
	data, _ = encodeRequest(id, method, params) // strings always marshal
	return id, data
}

// takeAnswer reads what the reply to tasks/result says that the question was answered with,
// or failed with.
func (m *Mailbox) takeAnswer(ref RequestID, result json.RawMessage) (json.RawMessage, *mcptask.Error) {
	m.mu.Lock()
	requestor := m.client.Requestor(m.revisionOf(ref.task))
	if t := m.clientTaskOf(ref); t != nil {
		requestor = t.requestor
	}
	m.mu.Unlock()
	answer, err := requestor.Answer(result)
	if err == nil {
		return answer, nil
	}
	var wire *mcptask.Error
	if !errors.As(err, &wire) {
		wire = mcptask.Errorf(mcptask.CodeInternalError, "internal error")
	}
	return nil, wire
}

// takeResult takes the reply to tasks/result, and returns whether it answers the question.
// A result does, whichever process has asked for it. If it is an error, the task's state
// tells whether the question has failed, or only this request (C-39).
func (m *Mailbox) takeResult(ref RequestID, failed *mcptask.Error) (answers bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.clientTaskOf(ref)
	switch {
	case failed == nil && t != nil:
		t.status, t.answered = mcptask.StatusCompleted, true
		return true
	case failed == nil:
		return true
	case t == nil || t.result.id != ref.String():
		m.logStale(ref)
		return false
	}
	t.result, t.failure = sentRequest{}, failed
	t.failedResults++
	t.answered = t.hasFailed()
	return t.answered
}

// takeState takes the reply to tasks/get. It returns whether the question has failed, and how.
func (m *Mailbox) takeState(ref RequestID, reply Response) (failed *mcptask.Error, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.clientTaskOf(ref)
	if t == nil || t.get.id != ref.String() {
		m.logStale(ref)
		return nil, false
	}
	t.get = sentRequest{}
	defer func() { t.answered = t.answered || ok }()
	if reply.Error != nil && reply.Error.Code == mcptask.CodeInvalidParams {
		m.askAgain(t)
		return nil, false
	}
	state, err := t.requestor.Task(reply.Result)
	switch {
	case reply.Error != nil:
		err = reply.Error
	case err == nil && state.TaskID != t.id:
		err = errors.New("it is about another task")
	}
	if err != nil {
		m.logQuestion(slog.LevelWarn, "a client does not tell of its task", t.task, t.key, "error", err)
		if t.failedGets++; t.failedGets < mostFailures || t.result.id != "" {
			return nil, false
		}
		return mcptask.Errorf(mcptask.CodeInternalError, "the client does not tell of the question's task"), true
	}
	t.failedGets = 0
	t.setState(state)
	switch {
	case t.status == mcptask.StatusCancelled:
		// It has no answer (T-25), not even that the person has dismissed the question.
		return mcptask.Errorf(mcptask.CodeInternalError, "the client cancelled the question's task"), true
	case t.status != mcptask.StatusWorking && t.hasFailed():
		return t.failure, true
	case t.hasEnded():
		t.wantsResult = true // what waits at the client is too late to count on
	case t.status == mcptask.StatusInputRequired:
		t.wantsResult = t.resultWaits() && t.result.id == "" // C-51
	}
	return nil, false
}

// askAgain gives up a task that the client does not know any longer: it has restarted, or
// its retention is over. The question is asked once more, plainly, since a plain request
// has no retention. m.mu is held.
func (m *Mailbox) askAgain(t *clientTask) {
	m.logQuestion(slog.LevelInfo, "a client has lost a question's task", t.task, t.key)
	v := m.live(t.task)
	if v.again == nil {
		v.again = map[string]uint64{}
	}
	v.again[t.key] = m.hub.serial.Add(1)
	t.status = mcptask.StatusCancelled // as far as we are concerned
	m.unfollow(v, t)
	m.hub.release(m, t.task, t.key)
}

// clientTaskOf finds the task that a follow-up was about, nil if there is none in this
// session. m.mu is held.
func (m *Mailbox) clientTaskOf(ref RequestID) *clientTask {
	if v := m.live(ref.task); v != nil {
		return v.clientTasks[ref.key]
	}
	return nil
}

// logStale logs a reply that changes nothing: one that came twice or late, or from another
// session, or to another process, whose own polling goes on.
func (m *Mailbox) logStale(ref RequestID) {
	m.hub.server.Notice(slog.LevelInfo, "reply about a client's task not taken", "task", mcptask.LogID("", ref.task), "key", ref.key, "kind", ref.kind)
}

// unfollow stops to follow a client's task, and has it cancelled if its answer is of no
// use. m.mu is held.
func (m *Mailbox) unfollow(v *view, t *clientTask) {
	t.timer.Stop()
	t.get.retract()
	t.result.retract()
	delete(v.clientTasks, t.key)
	delete(m.clientTasks, t.id)
	if !t.hasEnded() {
		m.cancelClientTask(v, t)
	}
}

// mostPendingCancels bounds the tasks that a session's client has yet to cancel, mostCancels
// how often it is told to.
const (
	mostPendingCancels = 1024
	mostCancels        = 3
)

// pendingCancel is the tasks/cancel of a client's task, until the client answers it.
type pendingCancel struct {
	sentRequest
	request []byte
	times   int // it was sent
}

// cancelClientTask cancels a task at its client: by tasks/cancel, since the request that
// made it is over (C-73, C-74). v is nil if our task is gone. m.mu is held.
func (m *Mailbox) cancelClientTask(v *view, t *clientTask) {
	if !t.requestor.Cancels() || m.closed || m.pendingCancels[t.id] != nil {
		return
	}
	if len(m.pendingCancels) >= mostPendingCancels {
		m.logQuestion(slog.LevelWarn, "a client's task is left to its retention: too many are to be cancelled", t.task, t.key)
		return
	}
	method, params := t.requestor.Cancel(t.id)
	p := &pendingCancel{}
	p.id, p.request = m.encodeRequest(t, kindCancel, method, params)
	if m.pendingCancels == nil {
		m.pendingCancels = map[string]*pendingCancel{}
	}
	m.pendingCancels[t.id] = p
	// A stream of tasks/result is about to end, and with it whether we know that this
	// has arrived: the session's own stream comes first.
	c := m.bestStream(nil)
	if c == nil {
		c = m.bestStream(v)
	}
	if c != nil {
		p.send(c)
	}
}

func (p *pendingCancel) send(c *Stream) {
	p.on = c
	p.times++
	c.put(p.id, p.request)
}

// resendCancels sends on a new stream what earlier ones may have lost. m.mu is held.
func (m *Mailbox) resendCancels(c *Stream) {
	for id, p := range m.pendingCancels {
		switch {
		case p.on != nil:
		case p.times >= mostCancels: // the client does not answer
			delete(m.pendingCancels, id)
		default:
			p.send(c)
		}
	}
}

// confirmCancel takes the reply to tasks/cancel. An error is one too: the task has ended.
func (m *Mailbox) confirmCancel(ref RequestID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, p := range m.pendingCancels {
		if p.id == ref.String() {
			delete(m.pendingCancels, id)
			return
		}
	}
	m.logStale(ref)
}
