package gateway

import (
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// settleNamed settles a task that a request has named, once its reply is on its way.
func (g *Gateway) settleNamed(x exchange, s *session, seen mcptask.Record) {
	box := g.mailbox(s)
	if box.HasUnsettled() {
		x.flush()
	}
	box.Settle(seen.ID, &seen)
}

// announcement waits for a call's task and for its reply. It calls then, with the task's ID, when
// the task is made and the reply is written. Either may come first: a client may leave before its
// call is answered. It is safe for concurrent use.
type announcement struct {
	then func(task string)

	mu      sync.Mutex
	task    string
	written bool
}

// made notes the task.
func (a *announcement) made(task string) {
	a.mu.Lock()
	a.task = task
	both := a.written
	a.mu.Unlock()
	if both {
		a.then(task)
	}
}

// wrote notes that the reply is written.
func (a *announcement) wrote() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.written = true
	task := a.task
	a.mu.Unlock()
	if task != "" {
		a.then(task)
	}
}
