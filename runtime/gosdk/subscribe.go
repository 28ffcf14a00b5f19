package gosdk

import (
	"context"
	"encoding/json"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	"github.com/modelcontextprotocol/go-sdk/mcp"

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
	return c.lifetime.Err() != nil || c.current != nil && c.current.endCause != nil && c.current.endCause() != nil
}

// notificationFunc receives the method and the params of a notification.
type notificationFunc func(method string, params json.RawMessage)

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
	return l.subscribe(ctx, d.Subscription(ids), func(method string, params json.RawMessage) {
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
			c.watches.deliverState(true, state)
		}
	})
}

// subscribe opens a subscription and hears until it ends. Over HTTP it opens its own stream,
// because the SDK drops what comes on one.
func (l *link) subscribe(ctx context.Context, params map[string]any, hear notificationFunc) error {
	if l.listen == nil {
		_, err := l.send(context.WithValue(ctx, hearKey{}, hear), protocol.Listen, params)
		return err
	}
	params["_meta"] = l.meta
	return l.listen(ctx, params, hear)
}

// hearKey is the context key of the function that hears a subscription on a pipe.
type hearKey struct{}

// requestMeta returns what the SDK puts into the _meta of each request.
func (c *conn) requestMeta(revision string) map[string]any {
	capabilities := c.answerCapabilities()
	capabilities["extensions"] = map[string]any{spec.ExtensionTasks: struct{}{}}
	return map[string]any{
		mcp.MetaKeyProtocolVersion:  revision,
		mcp.MetaKeyClientInfo:       c.options.Implementation,
		spec.MetaClientCapabilities: capabilities,
	}
}
