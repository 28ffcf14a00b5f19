package mcptask

import "time"

// CallOption changes one call.
type CallOption func(*ToolCall)

// IdempotencyKey makes repeated calls of a tool, with the same key and by the
// same principal, share one task. Without authentication it needs 16 bytes.
func IdempotencyKey(key string) CallOption {
	return func(c *ToolCall) { c.IdempotencyKey = key }
}

// Plain calls without a task if the tool allows it. A tool that requires a task runs
// as one all the same. In 2026-07-28 a call whose handler may ask can run as a task that the caller does not see.
func Plain() CallOption {
	return func(c *ToolCall) { c.Plain = true }
}

// TTL asks the server to keep the task this long from its creation (see ToolCall). 0
// leaves it to the server; a negative TTL is an error. Servers of 2026-07-28 decide
// alone. Servers of this module keep a task at least for its tool's ttl.
func TTL(ttl time.Duration) CallOption {
	return func(c *ToolCall) { c.TTL = ttl }
}
