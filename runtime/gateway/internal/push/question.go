package push

import (
	"log/slog"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// In 2025-11-25 the server sends a question as a request. It uses a stream that the client has
// open: the stream of a request that waits for the task (C-51), or else the session's own stream
// (C-53). Each question is on one stream at a time. If that stream closes without an answer, the
// question moves to the next stream. The stream of a plain call with a task behind it is an exception: it
// ends with the call's answer, and the client keeps the question. The file replica.go has one more rule,
// for sessions that other replicas serve too.

// question is a question that a session was asked. The mailbox's lock guards it.
type question struct {
	request sentRequest // the question itself
	// task is the client's task, if the client keeps the question as one.
	task *clientTask
	// again is the serial of a question that is asked again because the client has lost its task.
	again uint64
	// due is when the session's own stream may carry the question; see leaveToRequests. timer
	// has the task read then. It stops when the question no longer waits for that.
	due   time.Time
	timer *time.Timer
}

func (q *question) stopTimer() {
	if q.timer != nil {
		q.timer.Stop()
	}
}

// question returns a question that the session was asked, or a new one. v may be nil.
func (v *view) question(key string) *question {
	if v == nil || v.questions[key] == nil {
		return &question{}
	}
	return v.questions[key]
}

// isAsked reports whether the client has the question, as a request or as a task.
func (q *question) isAsked() bool { return q.request.id != "" || q.task != nil }

// sentRequest is a request to a client without a reply so far. The zero value means no request.
type sentRequest struct {
	on *Stream
	id string
	// replied says that the client has replied, and failed that its reply is an error which leaves the question open.
	replied, failed bool
}

// notAwaited is the reason that a client reads when a question is cancelled.
const notAwaited = "the task no longer waits for the answer"

// retract removes a request that no longer matters. It returns false if the client may have read it.
func (p *sentRequest) retract() (ok bool) {
	ok = p.on == nil || p.on.retract(p.id)
	*p = sentRequest{}
	return ok
}

// cancel is retract, but also tells a client that may have read the request.
func (p *sentRequest) cancel() {
	if sent := *p; !p.retract() {
		sent.on.put(sent.id, Cancelled(sent.id, notAwaited))
	}
}

// loseStream notes that a stream is closed. It returns true if a request was on it.
func (q *question) loseStream(c *Stream) (lost bool) {
	requests := []*sentRequest{&q.request}
	if q.task != nil {
		requests = append(requests, &q.task.get, &q.task.result)
	}
	for _, p := range requests {
		if p.on == c && (!c.call || p != &q.request || c.retract(p.id)) {
			*p, lost = sentRequest{}, true
		}
	}
	return lost
}

// noteReply notes that the client has replied to a question. m.mu is not held.
func (m *Mailbox) noteReply(ref RequestID, failed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.liveView(ref.task)
	q := v.question(ref.key)
	if q.request.id != ref.String() {
		return
	}
	q.request.replied = true
	if !failed {
		return
	}
	q.request.failed = true
	for _, c := range v.calls { // their model can use the tool that answers
		c.giveUp()
	}
}

// retryFailed has the questions that the client has failed to show asked again. m.mu is held.
func (m *Mailbox) retryFailed(v *view) {
	for key, q := range v.questions {
		if q.request.failed {
			q.stopTimer()
			delete(v.questions, key)
			m.hub.release(m, v.topic, key)
		}
	}
}

// updateQuestion sends a question that waits for its answer, follows one that the client keeps as a
// task, and takes back one that no longer waits. m.mu is held.
func (m *Mailbox) updateQuestion(v *view, r *taskstore.Record, in taskstore.Input) {
	q := v.questions[in.Key]
	isOpen := in.State == taskstore.InputOutstanding
	switch {
	case isOpen && (q == nil || !q.isAsked()):
		m.sendQuestion(v, r, in)
	case isOpen && q.task != nil:
		m.followClientTask(v, q)
	case !isOpen && q != nil: // the client of a call may show a form that a tool has answered
		isCall := v.hidden || q.request.on != nil && q.request.on.call
		m.endQuestion(v, q, in.Key, in.State == taskstore.InputSuperseded || isCall && !m.isPortable())
	}
}

// endQuestion takes back a question. cancel tells the client that the question needs no answer.
// Otherwise it was answered, perhaps in another session. m.mu is held.
func (m *Mailbox) endQuestion(v *view, q *question, key string, cancel bool) {
	switch on := q.request.on; {
	case !cancel || q.request.replied:
		q.request.retract()
	case on != nil && on.call && !slices.Contains(v.blocked, on): // the call is over
		m.send(q.request.id, Cancelled(q.request.id, notAwaited))
	default:
		q.request.cancel()
	}
	delete(v.questions, key)
	q.stopTimer()
	if q.task != nil {
		m.unfollowClientTask(q.task)
	}
}

// sendQuestion puts a question on the session's best stream, unless another session has been asked.
// m.mu is held.
func (m *Mailbox) sendQuestion(v *view, r *taskstore.Record, in taskstore.Input) {
	c := m.bestStream(v)
	switch {
	case c == nil || !m.canAnswer(in):
		return
	case c.task == "" && (v.hidden && len(v.calls) == 0 || m.leaveToRequests(v, r, in) || v.unsettled):
		return
	case c.call && in.Fetched:
		return
	case !m.hub.claimToAsk(m, v.topic, in, c.task != ""):
		return
	}
	d := v.revision
	if c.revision != nil {
		d = c.revision
	}
	q := v.question(in.Key)
	id := RequestID{task: r.ID, key: in.Key}
	if q.again > 0 {
		id.kind, id.serial = kindAgain, q.again
	}
	params, err := in.Params, error(nil)
	if !c.call && !v.hidden { // the client of a plain call may know no task
		params, err = d.Question(*r, in, m.clientTaskLifetime(v, q, r, in))
	}
	var request []byte
	if err == nil {
		request, err = EncodeRequest(id.String(), in.Method, params)
	}
	if err != nil {
		m.hub.release(m, v.topic, in.Key) // another session may have it in another revision
		m.logQuestion(slog.LevelError, "question not encoded", r.ID, in.Key, "error", err)
		return
	}
	v.questions[in.Key] = q
	q.request = sentRequest{on: c, id: id.String()}
	c.put(q.request.id, request)
	if c.task != "" {
		m.noteFetched(r.ID, in)
	}
}

// canAnswer reports whether the client answers such a question.
func (m *Mailbox) canAnswer(in taskstore.Input) bool {
	return taskserver.Caller{CanAsk: m.client.CanAsk()}.Answers(in.Request)
}

// clientTaskLifetime returns how long the client is asked to keep a question as a task: as long as
// the server's task can wait. 0 asks for a plain request (C-03, C-04).
func (m *Mailbox) clientTaskLifetime(v *view, q *question, r *taskstore.Record, in taskstore.Input) time.Duration {
	if q.again > 0 || !m.client.Requestor(v.revision).Augments(in.Method) {
		return 0
	}
	return max(r.ExpiresAt.Sub(m.hub.server.SureNow()), time.Millisecond)
}

// logQuestion logs an event about a question.
func (m *Mailbox) logQuestion(level slog.Level, message, task, key string, attrs ...any) {
	m.hub.server.Notice(level, message, append([]any{"task", taskstore.LogID(m.client.Principal(), task), "key", key}, attrs...)...)
}
