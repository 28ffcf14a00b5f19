package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// A client may make a task of a question (2025-11-25, the Task Patterns guide). The
// server then follows that task: tasks/result goes out at once and waits at the
// client until the person has answered. Where it is refused, or does not wait, or
// the stream that it went out on is dropped, the server polls with tasks/get until
// the task has ended (C-32, D-25).
// All of it travels as the question did, and is in memory, for a session: the
// record only knows that the question is open, so that after a restart it is
// asked again.
//
// Questions of plain calls go through the SDK, whose types cannot ask for a
// task: they stay plain requests.

const (
	// shortestPoll and longestPoll bound the interval that a client names.
	shortestPoll = 100 * time.Millisecond
	longestPoll  = time.Hour
	// patience is how long a request may be unanswered before the task's state is
	// asked for: replies can get lost, and some clients never answer.
	patience = 30 * time.Second
	// mostRefusals is how many replies about a client's task may fail.
	mostRefusals = 3
	// longestRemoteID bounds a client's task ID in bytes: every poll repeats it.
	longestRemoteID = 1024
)

// remote is a question that is a task at a client.
type remote struct {
	session   *session
	requestor dialect.Requestor
	task, key string // the question
	id        string // the client's task

	poll   time.Duration
	polled time.Time // when its state was told or asked for last
	asked  time.Time // when anything was
	timer  *time.Timer

	// want says that tasks/result is the next thing to send.
	want        bool
	get, result pending
	// mute counts the failed replies to tasks/get in a row, refusals those to
	// tasks/result; failure is the last of these.
	mute, refusals int
	failure        *mcptask.Error

	status mcptask.Status
	// settled says that the answer is on its way to the record.
	settled bool
}

// pending is a request to a client, zero where there is none.
type pending struct {
	via *channel
	id  string
}

// take takes a client's response to a request of ours. It comes from the
// session s; whether the caller owns the task is the server's to check. It returns
// false if the response was neither stored nor kept to be stored later.
func (g *Gateway) take(ctx context.Context, s *session, caller mcptask.Caller, ref requestRef, m *message) bool {
	m.Result, m.Error = taken(g.server, caller, m.Result, m.Error)
	q, response, failed, ok := g.questions, m.Result, m.Error, true
	switch ref.kind {
	case kindResult:
		if failed == nil {
			response, failed = q.answer(s, ref, response)
		}
		ok = q.ended(s, ref, failed)
	case kindGet:
		response = nil
		failed, ok = q.polled(s, ref, m)
	case kindCancel:
		q.paid(s, ref)
		return true
	}
	if !ok {
		q.refresh([]string{ref.task})
		return true
	}
	size := len(response)
	if failed != nil {
		size += len(failed.Message) + len(failed.Data)
	}
	return q.store(ctx, s, ref, size, func(ctx context.Context) error {
		if ref.kind == kindQuestion {
			if begun, err := g.began(ctx, s, caller, ref, m); begun || err != nil {
				return err
			}
		}
		return g.server.Respond(ctx, caller, ref.task, ref.key, response, failed)
	})
}

// requestor is the server as the requestor of tasks at a session's client, in the
// revision in which the session knows one of ours. q.mu is held.
func (q *questions) requestor(s *session, task string) dialect.Requestor {
	if d := q.told(s, task); d != q.legacy {
		return d.Requestor(s.capabilities)
	}
	return s.requestor
}

// answer is what the reply to tasks/result says that the question was answered
// with, or failed with.
func (q *questions) answer(s *session, ref requestRef, result json.RawMessage) (json.RawMessage, *mcptask.Error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	requestor := q.requestor(s, ref.task)
	if m := q.remoteOf(s, ref); m != nil {
		requestor = m.requestor
	}
	answer, err := requestor.Answer(result)
	if err != nil {
		return nil, wireError(err)
	}
	return answer, nil
}

// began takes the response to a question that tells of a task. It is false for
// any other, which is to be judged as the question's answer. An error is the server's.
func (g *Gateway) began(ctx context.Context, s *session, caller mcptask.Caller, ref requestRef, m *message) (bool, error) {
	g.questions.mu.Lock()
	requestor := g.questions.requestor(s, ref.task)
	g.questions.mu.Unlock()
	started, ok, err := requestor.Started(m.Result)
	if m.Error != nil || !ok {
		return false, nil
	}
	r, unread := g.server.Get(ctx, caller, ref.task)
	if unread != nil {
		return false, unread
	}
	for _, in := range r.Inputs {
		if in.Key != ref.key || !requestor.Augments(in.Method) {
			continue
		}
		if err == nil && len(started.TaskID) > longestRemoteID {
			err = errors.New("its ID is too long")
		}
		if err == nil {
			err = g.questions.begin(s, r, ref, started)
		}
		if err != nil {
			g.server.Notice(slog.LevelWarn, "a client's task for a question is not followed", "task", mcptask.LogID(caller.Principal, ref.task), "key", ref.key, "error", err)
		}
		return err == nil, nil
	}
	return false, nil
}

// begin follows a client's task. One that nobody needs is cancelled: of a
// question that is settled, or that the client has made a task of twice.
func (q *questions) begin(s *session, r mcptask.Record, ref requestRef, started mcptask.Snapshot) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if other := s.remotes[started.TaskID]; other != nil {
		if other.task != ref.task || other.key != ref.key {
			return errors.New("its ID is that of another question's task")
		}
		return nil // said twice
	}
	now := time.Now()
	m := &remote{
		session: s, requestor: q.requestor(s, ref.task), task: ref.task, key: ref.key, id: started.TaskID, polled: now, asked: now,
	}
	m.saw(started)
	m.want = m.waits() || m.done()
	t := q.meet(s, q.told(s, r.ID), r)
	if t == nil || t.remotes[m.key] != nil || t.again[m.key] > 0 {
		q.owe(t, m)
		return nil
	}
	q.server.Notice(slog.LevelInfo, "a question is a task of the client's", "task", mcptask.LogID(m.session.principal, m.task), "key", m.key, "client_task", m.id)
	m.timer = time.AfterFunc(m.poll, func() { defer guard.Recover(q.server.Logger(), "a poll of a client"); q.tick(m) })
	if s.remotes == nil {
		s.remotes = map[string]*remote{}
	}
	if t.remotes == nil {
		t.remotes = map[string]*remote{}
	}
	s.remotes[m.id], t.remotes[m.key] = m, m
	id := ref.String()
	if via := t.sent[id]; via != nil {
		via.retract(id)
		delete(t.sent, id)
	}
	return nil
}

// saw notes what a client says of its task.
func (m *remote) saw(s mcptask.Snapshot) {
	m.status, m.poll = s.Status, mcptask.DefaultPoll
	if s.Poll > 0 {
		m.poll = min(max(s.Poll, shortestPoll), longestPoll)
	}
}

// waits says that tasks/result waits at the client until its task has ended.
func (m *remote) waits() bool {
	_, polled := m.requestor.(dialect.Poller)
	return !polled
}

// done says that the client's task has ended.
func (m *remote) done() bool { return mcptask.Snapshot{Status: m.status}.Done() }

// due is when the task's state is to be asked for: at its interval (C-30), and
// late where a reply is still to come.
func (m *remote) due() time.Time {
	due := m.polled.Add(m.poll)
	if m.get.id == "" && m.result.id == "" {
		return due
	}
	if late := m.asked.Add(max(m.poll, patience)); late.After(due) {
		return late
	}
	return due
}

// follow sends what is next about a question that is a client's task, or leaves
// the task where it is settled. q.mu is held.
func (q *questions) follow(t *knownTask, r mcptask.Record, in mcptask.Input, m *remote) {
	if in.State != mcptask.InputOutstanding {
		q.leave(t, m)
		return
	}
	if m.settled {
		return
	}
	c := q.stream(t, m.session)
	if c == nil {
		m.timer.Stop()
		if q.route(t, r, in) != nil { // another session can be asked
			q.leave(t, m)
			q.send(t, r, t.questionID(r.ID, in.Key), in)
		}
		return // the session's next stream goes on
	}
	now := time.Now()
	switch {
	case m.want:
		m.want, m.asked = false, now
		m.result.retract()
		method, params := m.requestor.Result(m.id)
		m.result = q.request(c, m, kindResult, method, params)
	case !m.due().After(now):
		m.polled, m.asked = now, now
		m.get.retract()
		method, params := m.requestor.Get(m.id)
		m.get = q.request(c, m, kindGet, method, params)
	}
	m.timer.Reset(time.Until(m.due()))
}

// tick looks after a client's task when it is due.
func (q *questions) tick(m *remote) {
	defer guard.Recover(q.server.Logger(), "polling of a client's task")
	q.refresh([]string{m.task})
}

// stream picks the stream for what concerns a client's task: only ever one of
// the session in which the client told of it.
func (q *questions) stream(t *knownTask, s *session) *channel {
	if t != nil {
		for _, c := range t.blocked {
			if c.session == s {
				return c
			}
		}
	}
	if own := q.standalone[s]; len(own) > 0 {
		return own[0]
	}
	return nil
}

// request sends a follow-up on a stream.
func (q *questions) request(c *channel, m *remote, kind requestKind, method string, params any) pending {
	id, data := q.followUp(m, kind, method, params)
	c.put(id, data)
	return pending{c, id}
}

func (q *questions) followUp(m *remote, kind requestKind, method string, params any) (id string, data []byte) {
	q.serial++
	id = requestRef{kind, q.serial, m.task, m.key}.String()
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil { // strings always marshal
		return id, nil
	}
	return id, data
}

func (p *pending) retract() {
	if p.via != nil {
		p.via.retract(p.id)
	}
	*p = pending{}
}

// ended takes the reply to tasks/result; true is one that answers the question.
// A result does, whichever process has asked for it. Whether an error says that
// the question has failed, or only this request, is for the task's state to say
// (C-39).
func (q *questions) ended(s *session, ref requestRef, failed *mcptask.Error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.remoteOf(s, ref)
	switch {
	case failed == nil && m != nil:
		m.status, m.settled = mcptask.StatusCompleted, true
		return true
	case failed == nil:
		return true
	case m == nil || m.result.id != ref.String():
		q.stale(ref)
		return false
	}
	m.result, m.failure = pending{}, failed
	m.refusals++
	m.settled = m.over()
	return m.settled
}

// over says whether the last error of tasks/result is how the question ended.
func (m *remote) over() bool {
	return m.failure != nil && (m.status == mcptask.StatusFailed || m.refusals >= mostRefusals)
}

// polled takes the reply to tasks/get; true is a question that has failed, and
// how.
func (q *questions) polled(s *session, ref requestRef, reply *message) (failed *mcptask.Error, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.remoteOf(s, ref)
	if m == nil || m.get.id != ref.String() {
		q.stale(ref)
		return nil, false
	}
	m.get = pending{}
	defer func() { m.settled = m.settled || ok }()
	if reply.Error != nil && reply.Error.Code == mcptask.CodeInvalidParams {
		q.lost(m)
		return nil, false
	}
	state, err := m.requestor.Task(reply.Result)
	switch {
	case reply.Error != nil:
		err = reply.Error
	case err == nil && state.TaskID != m.id:
		err = errors.New("it is about another task")
	}
	if err != nil {
		q.server.Notice(slog.LevelWarn, "a client does not tell of its task", "task", mcptask.LogID(m.session.principal, m.task), "key", m.key, "error", err)
		if m.mute++; m.mute < mostRefusals || m.result.id != "" {
			return nil, false
		}
		return mcptask.Errorf(mcptask.CodeInternalError, "the client does not tell of the question's task"), true
	}
	m.mute = 0
	m.saw(state)
	switch {
	case m.status == mcptask.StatusCancelled:
		// It has no answer (T-25), not even that the person has dismissed the question.
		return mcptask.Errorf(mcptask.CodeInternalError, "the client cancelled the question's task"), true
	case m.status != mcptask.StatusWorking && m.over():
		return m.failure, true
	case m.done():
		m.want = true // what waits at the client is too late to count on
	case m.status == mcptask.StatusInputRequired:
		m.want = m.waits() && m.result.id == "" // C-51
	}
	return nil, false
}

// lost gives up a task that the client does not know any longer: it has
// restarted, or its retention is over. The question is asked once more, plainly,
// since a plain request has no retention. q.mu is held.
func (q *questions) lost(m *remote) {
	q.server.Notice(slog.LevelInfo, "a client has lost a question's task", "task", mcptask.LogID(m.session.principal, m.task), "key", m.key)
	t := q.known[m.task]
	if t.again == nil {
		t.again = map[string]uint64{}
	}
	q.serial++
	t.again[m.key] = q.serial
	m.status = mcptask.StatusCancelled // as far as we are concerned
	q.leave(t, m)
}

// questionID is the request ID of a question.
func (t *knownTask) questionID(task, key string) string {
	if serial := t.again[key]; serial > 0 {
		return requestRef{kindAgain, serial, task, key}.String()
	}
	return requestRef{task: task, key: key}.String()
}

// augment is for how long a question is to be kept as a task of the client's: as
// long as our task can wait for it. 0 asks for none (C-03, C-04).
func (t *knownTask) augment(requestor dialect.Requestor, r mcptask.Record, in mcptask.Input) time.Duration {
	if t.again[in.Key] > 0 || !requestor.Augments(in.Method) {
		return 0
	}
	return max(time.Until(r.ExpiresAt), time.Millisecond)
}

// remoteOf finds the task that a follow-up was about, where the reply comes from
// the session that it went to. q.mu is held.
func (q *questions) remoteOf(s *session, ref requestRef) *remote {
	if t := q.known[ref.task]; t != nil {
		if m := t.remotes[ref.key]; m != nil && m.session == s {
			return m
		}
	}
	return nil
}

// stale notes a reply that changes nothing: one that came twice or late, or from
// another session, or to another process, whose own polling goes on.
func (q *questions) stale(ref requestRef) {
	q.server.Notice(slog.LevelInfo, "reply about a client's task not taken", "task", mcptask.LogID("", ref.task), "key", ref.key, "kind", ref.kind)
}

// leave stops to follow a client's task, and has it cancelled where its answer
// is of no use. q.mu is held.
func (q *questions) leave(t *knownTask, m *remote) {
	m.timer.Stop()
	m.get.retract()
	m.result.retract()
	delete(t.remotes, m.key)
	delete(m.session.remotes, m.id)
	if !m.done() {
		q.owe(t, m)
	}
}

// dropped notes that a stream of the session's is gone, and returns the tasks
// that have waited on it. The lock of the questions is held.
func (s *session) dropped(c *channel) (left []string) {
	for _, o := range s.owed {
		if o.via == c {
			o.via = nil
		}
	}
	for _, m := range s.remotes {
		for _, p := range []*pending{&m.get, &m.result} {
			if p.via == c {
				*p = pending{}
				left = append(left, m.task)
			}
		}
	}
	return left
}

// part forgets what a session that is over has followed. q.mu is held.
func (q *questions) part(s *session) {
	for _, m := range s.remotes {
		m.timer.Stop()
		if t := q.known[m.task]; t != nil {
			delete(t.remotes, m.key)
		}
	}
	s.remotes, s.owed = nil, nil
}
