package gosdk

import (
	"context"
	"encoding/json"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// Watch implements mcptask.Watcher. It asks a server of 2026-07-28 for a subscription (E-62),
// unless there is one for the task. It ignores the status notifications of 2025-11-25: they say no
// more than a poll, and clients must not rely on them (C-46).
func (c *conn) Watch(taskID string, heard func(bool, *mcptask.Snapshot)) (live bool, stop func()) {
	return c.watches.addWatch(taskID, heard)
}

// Ended implements mcptask.Watcher. A lost session does not end the connection.
func (c *conn) Ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lifetime.Err() != nil || c.current != nil && c.current.transport.endCause() != nil
}

// subscribe runs a subscription until it ends.
func (c *conn) subscribe(ctx context.Context, ids []string, s *subscription) error {
	l, err := c.connect(ctx, nil)
	if err != nil {
		return err
	}
	d, ok := l.protocol.(protocol.Subscriber)
	if !ok {
		return errNoSubscriptions
	}
	r, err := l.newRequest(ctx, protocol.Listen, d.Subscription(ids))
	if err != nil {
		return err
	}
	r.notified = func(method string, params json.RawMessage) {
		switch method {
		case protocol.Acknowledged:
			if agreed, tasks, err := d.Agreed(params); err == nil {
				s.recordAgreed(agreed, tasks)
			}
		case protocol.TaskChanged:
			state, err := d.Told(params)
			if err != nil { // the next poll shows the state
				c.options.Logger.Warn("a task's notification cannot be read", "error", err)
				return
			}
			c.logState(state)
			s.recordState(state)
			c.watches.deliverState(true, state)
		}
	}
	_, err = l.sendRequest(ctx, r)
	return err
}
