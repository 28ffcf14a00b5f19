package gateway

import (
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// settleAfterReply settles the task that a request has named, once its reply is sent.
func (g *Gateway) settleAfterReply(x exchange, s *session, seen taskstore.Record) {
	box := g.mailbox(s)
	if box.HasUnsettled() {
		x.flush()
	}
	box.Settle(seen.ID, &seen)
}

// announcement calls then with the ID of a call's task when the task exists and the reply is
// written. Either may happen first, because a client may disconnect before its call is answered. It
// is safe for concurrent use.
type announcement struct {
	then func(task string)

	mu      sync.Mutex
	task    string
	written bool
}

// noteTask notes that the task exists.
func (a *announcement) noteTask(task string) { a.note(func() { a.task = task }) }

// hasTask reports whether the reply is a task.
func (a *announcement) hasTask() bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.task != ""
}

// noteWritten notes that the reply is written.
func (a *announcement) noteWritten() {
	if a != nil {
		a.note(func() { a.written = true })
	}
}

// note notes one of the two, and calls then if the other is noted too.
func (a *announcement) note(set func()) {
	a.mu.Lock()
	set()
	task, both := a.task, a.written && a.task != ""
	a.mu.Unlock()
	if both {
		a.then(task)
	}
}
