package push

import (
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
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
// Questions of calls that are not tasks go through the SDK. Its types cannot ask for a task, so
// these questions remain ordinary requests.

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

// sentRequest is a request to a client without a reply so far. The zero value means no request.
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

// startFollowing follows a client's task. It cancels the task if the question is settled, or if
// another task or another session has the question by now.
func (m *Mailbox) startFollowing(r mcptask.Record, in mcptask.Input, requestor protocol.Requestor, started mcptask.Snapshot) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other := m.clientTasks[started.TaskID]; other != nil {
		if other.task != r.ID || other.key != in.Key {
			return errors.New("its ID is that of another question's task")
		}
		return nil // the client has told of it twice
	}
	now := time.Now()
	t := &clientTask{requestor: requestor, task: r.ID, key: in.Key, id: started.TaskID, lastPoll: now, lastSent: now}
	t.setState(started)
	t.wantsResult = t.requestor.ResultWaits() || t.hasEnded()
	var v *view
	if !r.Done() {
		v, _ = m.viewOf(m.revisionOf(r.ID), r)
	}
	if v == nil || v.clientTasks[t.key] != nil || v.askedAgain[t.key] > 0 || !m.hub.claim(m, t.task, t.key) {
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

// releaseUnsent lets another session be asked if no stream can carry requests about a client's
// task. It then returns true, and the caller must refresh the server's task. m.mu is held.
func (m *Mailbox) releaseUnsent(v *view, t *clientTask) bool {
	if m.bestStream(v) != nil {
		return false
	}
	m.hub.release(m, t.task, t.key)
	return true
}

// revisionOf returns the revision in which the session knows a task. m.mu is held.
func (m *Mailbox) revisionOf(task string) protocol.Teller {
	if v := m.liveView(task); v != nil {
		return v.revision
	}
	return m.hub.legacy
}

// setState stores what a client reports about its task.
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

// loseStream notes that a stream is closed. It returns true if a request was on it.
func (t *clientTask) loseStream(c *Stream) (lost bool) {
	for _, p := range []*sentRequest{&t.get, &t.result} {
		if p.on == c {
			*p, lost = sentRequest{}, true
		}
	}
	return lost
}

// followClientTask sends the next request about a client's task. It gives the task up if the
// question is settled or another session has been asked. m.mu is held.
func (m *Mailbox) followClientTask(v *view, in mcptask.Input, t *clientTask) {
	if in.State != mcptask.InputOutstanding {
		m.unfollowClientTask(v, t)
		return
	}
	if t.answered {
		return
	}
	c := m.bestStream(v)
	if c == nil { // the session's next stream continues, unless another session is asked first
		t.timer.Stop()
		return
	}
	if !m.hub.claim(m, t.task, t.key) {
		m.unfollowClientTask(v, t)
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

// bestStream returns the stream for requests about a client's task, or nil. It is always a stream
// of the session that told of the task. v may be nil. m.mu is held.
func (m *Mailbox) bestStream(v *view) *Stream {
	switch {
	case v != nil && len(v.blocked) > 0:
		return v.blocked[0]
	case len(m.streams) > 0:
		return m.streams[0]
	}
	return nil
}

// sendRequest sends a request about a client's task on a stream.
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

// takeAnswer returns the question's answer from the reply to tasks/result, or the error that the
// question failed with.
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

// takeResult takes the reply to tasks/result. It returns true if the reply answers the question. A
// result always does, whichever process has asked for it. After an error, the task's state tells
// whether the question or only this request has failed (C-39).
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
	if v.askedAgain == nil {
		v.askedAgain = map[string]uint64{}
	}
	v.askedAgain[t.key] = m.hub.serial.Add(1)
	t.status = mcptask.StatusCancelled // so that the client is not asked to cancel it
	m.unfollowClientTask(v, t)
	m.hub.release(m, t.task, t.key)
}

// clientTaskOf returns the client's task that a request was about, or nil if this session has none.
// m.mu is held.
func (m *Mailbox) clientTaskOf(ref RequestID) *clientTask {
	if v := m.liveView(ref.task); v != nil {
		return v.clientTasks[ref.key]
	}
	return nil
}

// logStale logs a reply that changes nothing: a repeated or late reply, or a reply for another
// session or another process, which keeps polling.
func (m *Mailbox) logStale(ref RequestID) {
	m.hub.log(slog.LevelInfo, "reply about a client's task not taken", "task", mcptask.LogID("", ref.task), "key", ref.key, "kind", ref.kind)
}

// unfollowClientTask stops following a client's task. It cancels the task if the task has not
// ended. m.mu is held.
func (m *Mailbox) unfollowClientTask(v *view, t *clientTask) {
	t.timer.Stop()
	t.get.retract()
	t.result.retract()
	delete(v.clientTasks, t.key)
	delete(m.clientTasks, t.id)
	if !t.hasEnded() {
		m.cancelClientTask(v, t)
	}
}

// maxPendingCancels limits the tasks that a session's client has yet to cancel. maxCancels limits
// how often the server sends each cancellation.
const (
	maxPendingCancels = 1024
	maxCancels        = 3
)

// pendingCancel is the tasks/cancel of a client's task, until the client replies.
type pendingCancel struct {
	sentRequest
	request []byte
	times   int // how often it was sent
}

// cancelClientTask cancels a task at its client. It uses tasks/cancel, because the request that
// created the task has been answered (C-73, C-74). v is nil if the server's task is gone. m.mu is
// held.
func (m *Mailbox) cancelClientTask(v *view, t *clientTask) {
	if !t.requestor.Cancels() || m.closed || m.pendingCancels[t.id] != nil {
		return
	}
	if len(m.pendingCancels) >= maxPendingCancels {
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
	// Prefer the session's own stream. A stream of tasks/result is about to close, and a message on
	// it could be lost.
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

// resendCancels sends on a new stream the cancellations that earlier streams may have lost. m.mu is
// held.
func (m *Mailbox) resendCancels(c *Stream) {
	for id, p := range m.pendingCancels {
		switch {
		case p.on != nil:
		case p.times >= maxCancels: // the client does not answer
			delete(m.pendingCancels, id)
		default:
			p.send(c)
		}
	}
}

// confirmCancel takes the reply to tasks/cancel. An error also confirms: the task has ended.
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
