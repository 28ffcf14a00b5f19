package push

import (
	"log/slog"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// In 2025-11-25 the server sends a question as a request. It uses a stream that the client has
// open: the stream of a request that waits for the task (C-51), or else the session's own stream
// (C-53). Each question is on one stream at a time. If that stream closes without an answer, the
// question moves to the next stream.

// updateQuestion sends a question that waits for its answer, and takes back one that no longer
// waits. m.mu is held.
func (m *Mailbox) updateQuestion(v *view, r *mcptask.Record, in mcptask.Input) {
	sent, ok := v.sent[in.Key]
	switch {
	case in.State == mcptask.InputOutstanding && !ok:
		m.sendQuestion(v, r, in)
	case in.State == mcptask.InputOutstanding || !ok:
	case in.State == mcptask.InputSuperseded:
		delete(v.sent, in.Key)
		sent.on.cancel(sent.id)
	default: // answered, perhaps in another session
		delete(v.sent, in.Key)
		sent.on.retract(sent.id)
	}
}

// sendQuestion puts a question on the session's best stream, unless another session has been asked.
// m.mu is held.
func (m *Mailbox) sendQuestion(v *view, r *mcptask.Record, in mcptask.Input) {
	var c *Stream
	switch {
	case len(v.blocked) > 0:
		c = v.blocked[0]
	case len(m.streams) > 0 && !v.unsettled:
		c = m.streams[0]
	default:
		return
	}
	if !m.canAnswer(in) || !m.hub.claimToAsk(m, r.ID, in, c.task != "") {
		return
	}
	d := v.revision
	if c.revision != nil {
		d = c.revision
	}
	id := v.questionID(in.Key)
	params, err := d.Question(*r, in, m.clientTaskLifetime(v, r, in))
	var request []byte
	if err == nil {
		request, err = encodeRequest(id, in.Method, params)
	}
	if err != nil {
		m.hub.release(m, r.ID, in.Key) // another session may have it in another revision
		m.logQuestion(slog.LevelError, "question not encoded", r.ID, in.Key, "error", err)
		return
	}
	if v.sent == nil {
		v.sent = map[string]sentQuestion{}
	}
	v.sent[in.Key] = sentQuestion{id, c}
	c.put(id, request)
}

// canAnswer reports whether the client answers such a question.
func (m *Mailbox) canAnswer(in mcptask.Input) bool {
	return mcptask.Caller{CanAsk: m.client.CanAsk()}.Answers(in)
}

// questionID returns the request ID of a question.
func (v *view) questionID(key string) string {
	if serial := v.askedAgain[key]; serial > 0 {
		return RequestID{kindAgain, serial, v.task, key}.String()
	}
	return RequestID{task: v.task, key: key}.String()
}

// clientTaskLifetime returns how long the client is asked to keep a question as a task: as long as
// the server's task can wait. 0 asks for a plain request (C-03, C-04).
func (m *Mailbox) clientTaskLifetime(v *view, r *mcptask.Record, in mcptask.Input) time.Duration {
	if v.askedAgain[in.Key] > 0 || !m.client.Requestor(v.revision).Augments(in.Method) {
		return 0
	}
	return max(time.Until(r.ExpiresAt), time.Millisecond)
}

// logQuestion logs an event about a question.
func (m *Mailbox) logQuestion(level slog.Level, message, task, key string, attrs ...any) {
	m.hub.log(level, message, append([]any{"task", mcptask.LogID(m.client.Principal(), task), "key", key}, attrs...)...)
}
