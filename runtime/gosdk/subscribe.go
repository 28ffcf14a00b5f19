package gosdk

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// Watch implements mcptask.Watcher. A server of 2026-07-28 is asked for a
// subscription (E-62) where there is none for the task yet; the status
// notifications of 2025-11-25 say nothing that a poll does not, and nobody may
// rely on them (C-46): they are not read.
func (c *conn) Watch(taskID string, heard func(bool, *mcptask.Snapshot)) (live bool, stop func()) {
	return c.watches.watch(taskID, heard)
}

// Ended implements mcptask.Watcher. A session that is lost is no end.
func (c *conn) Ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lasts.Err() != nil || c.current != nil && c.current.ended != nil && c.current.ended() != nil
}

// notified takes the method and the params of a notification.
type notified func(method string, params json.RawMessage)

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
				s.agreed(agreed, tasks)
			}
		case protocol.TaskChanged:
			state, err := d.Told(params)
			if err != nil { // the next poll shows what it is
				c.options.Logger.Warn("a task's notification cannot be read", "error", err)
				return
			}
			c.logState(state)
			s.told(state)
		}
	})
}

// subscribe opens a subscription and hears until it ends. Over HTTP the SDK
// would drop what comes on the stream, so the stream is our own.
func (l *link) subscribe(ctx context.Context, params map[string]any, hear notified) error {
	if l.listen == nil {
		_, err := l.send(context.WithValue(ctx, hearKey{}, hear), protocol.Listen, params)
		return err
	}
	params["_meta"] = l.meta
	return l.listen(ctx, params, hear)
}

// hearKey is the key of what hears a subscription on a pipe.
type hearKey struct{}

// requestMeta is what the SDK puts into the _meta of each request.
func (c *conn) requestMeta(revision string) map[string]any {
	capabilities := c.plainCapabilities()
	capabilities["extensions"] = map[string]any{mcptask.ExtensionTasks: struct{}{}}
	return map[string]any{
		mcp.MetaKeyProtocolVersion:     revision,
		mcp.MetaKeyClientInfo:          c.options.Implementation,
		mcptask.MetaClientCapabilities: capabilities,
	}
}
