package gateway

import (
	"log/slog"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// mostOwed bounds the tasks that a session's client has yet to cancel, mostSent
// how often it is told to.
const (
	mostOwed = 1024
	mostSent = 3
)

// owed is the tasks/cancel of a client's task, until the client answers it.
type owed struct {
	pending
	request []byte
	sent    int
}

// owe cancels a task at its client: by tasks/cancel, since the request that made
// it is over (C-73, C-74). t is nil where our task is gone. q.mu is held.
func (q *questions) owe(t *knownTask, m *remote) {
	s := m.session
	if !m.requestor.Cancels() || s.ended.Err() != nil || s.owed[m.id] != nil {
		return
	}
	if len(s.owed) >= mostOwed {
		q.server.Notice(slog.LevelWarn, "a client's task is left to its retention: too many are to be cancelled", "task", mcptask.LogID(s.principal, m.task), "key", m.key)
		return
	}
	method, params := m.requestor.Cancel(m.id)
	o := &owed{}
	o.id, o.request = q.followUp(m, kindCancel, method, params)
	if s.owed == nil {
		s.owed = map[string]*owed{}
	}
	s.owed[m.id] = o
	// A stream of tasks/result is about to end, and with it whether we know that
	// this has arrived.
	c := q.stream(nil, s)
	if c == nil {
		c = q.stream(t, s)
	}
	if c != nil {
		o.pay(c)
	}
}

func (o *owed) pay(c *channel) {
	o.via = c
	o.sent++
	c.put(o.id, o.request)
}

// payOwed sends on a new stream what earlier ones may have lost. q.mu is held.
func (q *questions) payOwed(c *channel) {
	for id, o := range c.session.owed {
		switch {
		case o.via != nil:
		case o.sent >= mostSent: // the client does not answer
			delete(c.session.owed, id)
		default:
			o.pay(c)
		}
	}
}

// paid takes the reply to tasks/cancel. An error is one too: the task has ended.
func (q *questions) paid(s *session, ref requestRef) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, o := range s.owed {
		if o.id == ref.String() {
			delete(s.owed, id)
			return
		}
	}
	q.stale(ref)
}
