package push

import (
	"errors"
	"log/slog"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// A client may keep a question as a task (2025-11-25, the Task Patterns guide). The server then
// follows that task. It sends tasks/result at once, and the client answers when the person has
// answered. If the client refuses tasks/result or answers too early, or if the stream is dropped,
// the server polls with tasks/get until the task has ended (C-32, D-25).
//
// The follow-up requests use the streams that questions use. Their state is in memory, for each
// session. The record only knows that the question is open, so the question is asked again after a
// restart.
//
// The client of a plain call is not asked to keep its questions as tasks: it may not know the call's task.

const (
	// shortestPoll and longestPoll bound the polling interval that a client chooses.
	shortestPoll = 100 * time.Millisecond
	longestPoll  = time.Hour
	// replyWithin limits how long the server waits for a reply before it asks for the task's state.
	// Replies can get lost, and some clients never answer.
	replyWithin = 30 * time.Second
	// maxFailures limits how many replies about a client's task may fail.
	maxFailures = 3
	// longestTaskID limits a client's task ID in bytes, because every poll repeats it.
	longestTaskID = 1024
)

// clientTask is a question that the session's client keeps as a task. The mailbox's lock guards it.
type clientTask struct {
	requestor protocol.Requestor
	task, key string // the question
	id        string // the client's task

	status   mcptask.Status
	interval time.Duration
	lastPoll time.Time // when the state was last reported or requested
	lastSent time.Time // when a request was last sent
	timer    *time.Timer

	// wantsResult says that tasks/result is the next request to send.
	wantsResult bool
	get, result sentRequest
	// failedGets counts consecutive failed replies to tasks/get. failedResults counts failed
	// replies to tasks/result. failure is the last of the latter.
	failedGets, failedResults int
	failure                   *mcptask.Error
	// answered says that the question's answer is being stored.
	answered bool
}

// startFollowing follows a client's task. It cancels the task if the question is settled, or if
// another task or another session has the question by now.
func (m *Mailbox) startFollowing(r taskstore.Record, in taskstore.Input, requestor protocol.Requestor, started mcptask.Snapshot) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other := range m.clientTasks() {
		switch {
		case other.id != started.TaskID:
		case other.task != r.ID || other.key != in.Key:
			return errors.New("its ID is that of another question's task")
		default:
			return nil // the client has told of it twice
		}
	}
	now := time.Now()
	t := &clientTask{requestor: requestor, task: r.ID, key: in.Key, id: started.TaskID, lastPoll: now, lastSent: now}
	t.setState(started)
	t.wantsResult = t.requestor.ResultWaits() || t.hasEnded()
	var v *view
	if !r.Done() {
		v, _ = m.viewOf(m.revisionOf(r.ID), r)
	}
	q := v.question(t.key)
	if v == nil || q.task != nil || q.again > 0 || !m.hub.claim(m, v.topic, t.key) {
		m.cancelClientTask(t)
		return nil
	}
	v.questions[t.key] = q
	m.logQuestion(slog.LevelInfo, "a question is a task of the client's", t.task, t.key, "client_task", t.id)
	t.timer = time.AfterFunc(t.interval, func() {
		defer guard.Recover(m.hub.server.Logger(), "polling of a client's task")
		m.hub.Refresh(t.task)
	})
	q.request.retract()
	q.task = t
	if m.bestStream(v) == nil { // another session may be asked
		m.hub.release(m, v.topic, t.key)
	}
	return nil
}

// revisionOf returns the revision in which the session knows a task. m.mu is held.
func (m *Mailbox) revisionOf(task string) protocol.Teller {
	if v := m.liveView(task); v != nil {
		return v.revision
	}
	return m.hub.legacy
}

// setState stores a client's report about its task.
func (t *clientTask) setState(s mcptask.Snapshot) {
	t.status, t.interval = s.Status, mcptask.DefaultPoll
	if s.Poll > 0 {
		t.interval = min(max(s.Poll, shortestPoll), longestPoll)
	}
}

func (t *clientTask) hasEnded() bool { return mcptask.Snapshot{Status: t.status}.Done() }

// hasFailed reports whether the last error of tasks/result is the outcome of the question.
func (t *clientTask) hasFailed() bool {
	return t.failure != nil && (t.status == mcptask.StatusFailed || t.failedResults >= maxFailures)
}

// nextPoll returns the time of the next tasks/get: one interval after the last (C-30), or later if
// a reply is still missing.
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

// followClientTask sends the next request about a client's task. It gives the task up if another
// session has been asked. m.mu is held.
func (m *Mailbox) followClientTask(v *view, q *question) {
	t := q.task
	if t.answered {
		return
	}
	c := m.bestStream(v)
	if c == nil { // the session's next stream continues, unless another session is asked first
		t.timer.Stop()
		return
	}
	if !m.hub.claim(m, v.topic, t.key) {
		m.endQuestion(v, q, t.key, false)
		return
	}
	now := time.Now()
	switch {
	case t.wantsResult:
		t.wantsResult, t.lastSent = false, now
		m.sendRequest(c, t, &t.result, kindResult, t.requestor.Result)
	case !t.nextPoll().After(now):
		t.lastPoll, t.lastSent = now, now
		m.sendRequest(c, t, &t.get, kindGet, t.requestor.Get)
	}
	t.timer.Reset(time.Until(t.nextPoll()))
}

// sendRequest sends a request about a client's task on a stream, in place of an earlier one.
func (m *Mailbox) sendRequest(c *Stream, t *clientTask, p *sentRequest, kind requestKind, params func(string) (string, any)) {
	p.retract()
	id, data := m.encodeRequest(t, kind, params)
	*p = sentRequest{on: c, id: id}
	c.put(id, data)
}

func (m *Mailbox) encodeRequest(t *clientTask, kind requestKind, params func(string) (string, any)) (id string, data []byte) {
	id = RequestID{kind, m.hub.serial.Add(1), t.task, t.key}.String()
	method, values := params(t.id)
	data, _ = EncodeRequest(id, method, values) // strings always marshal
	return id, data
}

// requestorOf returns the server's side of the client's task that a response is about.
func (m *Mailbox) requestorOf(ref RequestID) protocol.Requestor {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.clientTaskOf(ref); t != nil {
		return t.requestor
	}
	return m.client.Requestor(m.revisionOf(ref.task))
}

// takeResult takes the reply to tasks/result. It returns the question's answer and true if the reply
// has it. A result always does, whichever process has asked for it. After an error, the task's state
// tells whether the question or only this request has failed (C-39).
func (m *Mailbox) takeResult(ref RequestID, reply Response) (answer Response, ok bool) {
	if answer.Error = reply.Error; reply.Error == nil {
		var err error
		if answer.Result, err = m.requestorOf(ref).Answer(reply.Result); err != nil && !errors.As(err, &answer.Error) {
			answer.Error = mcptask.Errorf(mcptask.CodeInternalError, "internal error")
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.clientTaskOf(ref)
	switch {
	case answer.Error == nil && t != nil:
		t.status, t.answered = mcptask.StatusCompleted, true
		return answer, true
	case answer.Error == nil:
		return answer, true
	case t == nil || t.result.id != ref.String():
		m.logStale(ref)
		return answer, false
	}
	t.result, t.failure = sentRequest{}, answer.Error
	t.failedResults++
	t.answered = t.hasFailed()
	return answer, t.answered
}

// takeState takes the reply to tasks/get. If the question has failed, it returns the error and
// true.
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
		if t.failedGets++; t.failedGets < maxFailures || t.result.id != "" {
			return nil, false
		}
		return mcptask.Errorf(mcptask.CodeInternalError, "the client does not tell of the question's task"), true
	}
	t.failedGets = 0
	t.setState(state)
	switch {
	case t.status == mcptask.StatusCancelled:
		// The task has no answer (T-25), not even that the person has dismissed the question.
		return mcptask.Errorf(mcptask.CodeInternalError, "the client cancelled the question's task"), true
	case t.status != mcptask.StatusWorking && t.hasFailed():
		return t.failure, true
	case t.hasEnded():
		t.wantsResult = true // do not rely on a tasks/result that still waits
	case t.status == mcptask.StatusInputRequired:
		t.wantsResult = t.requestor.ResultWaits() && t.result.id == "" // C-51
	}
	return nil, false
}

// askAgain gives up a task that the client has lost, by a restart or because its retention ended.
// The question is sent again as an ordinary request, which has no retention. m.mu is held.
func (m *Mailbox) askAgain(t *clientTask) {
	m.logQuestion(slog.LevelInfo, "a client has lost a question's task", t.task, t.key)
	v := m.liveView(t.task)
	t.status = mcptask.StatusCancelled // so that the client is not asked to cancel it
	m.endQuestion(v, v.questions[t.key], t.key, false)
	v.questions[t.key] = &question{again: m.hub.serial.Add(1)}
	m.hub.release(m, v.topic, t.key)
}

// clientTaskOf returns the client's task that a request was about, or nil if this session has none.
// m.mu is held.
func (m *Mailbox) clientTaskOf(ref RequestID) *clientTask {
	return m.liveView(ref.task).question(ref.key).task
}

// logStale logs a reply that changes nothing: a repeated or late reply, or a reply for another
// session or another process, which keeps polling.
func (m *Mailbox) logStale(ref RequestID) {
	m.logQuestion(slog.LevelInfo, "reply about a client's task not taken", ref.task, ref.key, "kind", ref.kind)
}

// unfollowClientTask stops following a client's task. It cancels the task if the task has not
// ended. m.mu is held.
func (m *Mailbox) unfollowClientTask(t *clientTask) {
	t.timer.Stop()
	t.get.retract()
	t.result.retract()
	if !t.hasEnded() {
		m.cancelClientTask(t)
	}
}

// cancelClientTask cancels a task at its client. It uses tasks/cancel, because the request that
// created the task has been answered (C-73, C-74). If the client has no stream, or loses the message
// with it, the task ends with its retention. m.mu is held.
func (m *Mailbox) cancelClientTask(t *clientTask) {
	if !t.requestor.Cancels() || m.closed {
		return
	}
	// Prefer the session's own stream. A stream of tasks/result is about to close, and a message on
	// it could be lost.
	c := m.bestStream(nil)
	if c == nil {
		c = m.bestStream(m.views[t.task])
	}
	if c != nil { // a client that does not read has one for each question
		name := "cancellation for " + t.task + "/" + t.key
		c.retract(name)
		_, data := m.encodeRequest(t, kindCancel, t.requestor.Cancel)
		c.put(name, data)
	}
}
