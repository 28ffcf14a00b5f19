package mcptask

import (
	"context"
	"encoding/json"
	"time"
)

// Conn is a client's connection to a server, in one revision. gosdk.Connect
// makes one. All methods are safe for concurrent use.
type Conn interface {
	// Revision is the protocol revision that was negotiated.
	Revision() string
	// ListTools lists the server's tools, all pages of it.
	ListTools(ctx context.Context) ([]ToolInfo, error)
	// CallTool calls a tool. The snapshot has a TaskID where the server made a
	// task, and is done where it answered at once. A *Error is the server's.
	CallTool(ctx context.Context, call ToolCall) (Snapshot, error)
	// Task reads a task; a snapshot that is done has its result or error.
	Task(ctx context.Context, taskID string) (Snapshot, error)
	// CancelTask asks the server to cancel a task.
	CancelTask(ctx context.Context, taskID string) error
	// Respond sends the responses to a task's questions, by key.
	Respond(ctx context.Context, taskID string, responses map[string]json.RawMessage) error
	// Answer answers a question; ok is false where nobody here can.
	Answer(ctx context.Context, q Question) (response json.RawMessage, ok bool, err error)
	// Close ends the connection; tasks go on.
	Close() error
}

// ToolInfo is a tool as a client sees it.
type ToolInfo struct {
	Name, Title, Description  string
	InputSchema, OutputSchema json.RawMessage
	// TaskSupport is what the server says; "" where the revision has no such
	// thing.
	TaskSupport TaskSupport
}

// ToolCall is a call of a tool.
type ToolCall struct {
	Tool      string
	Arguments json.RawMessage
	// Plain asks for no task.
	Plain bool
	// TTL is the retention wished for; 0 leaves it to the server. Only
	// 2025-11-25 can say it.
	TTL            time.Duration
	IdempotencyKey string
}

// Snapshot is a task at one moment, as its requestor sees it.
type Snapshot struct {
	// TaskID is "" where the call was answered without a task.
	TaskID string
	Status Status
	// Message is the server's text on the status.
	Message              string
	CreatedAt, UpdatedAt time.Time
	// TTL is how long the server keeps the task from CreatedAt; negative is
	// without limit.
	TTL time.Duration
	// Poll is the interval that the server asks for; 0 where it says nothing.
	Poll time.Duration
	// Result or Error is set once the task is done and was not cancelled.
	Result *Result
	Error  *Error
	// Questions wait for an answer.
	Questions []Question
}

// Done says whether the status is terminal.
func (s Snapshot) Done() bool { return s.Status.Terminal() }

// CallOption changes one call.
type CallOption func(*ToolCall)

// IdempotencyKey makes repeated calls of a tool, with the same key and by the
// same principal, share one task. Without authentication it needs 16 bytes.
func IdempotencyKey(key string) CallOption {
	return func(c *ToolCall) { c.IdempotencyKey = key }
}

// Plain calls without a task where the tool allows it; a required one runs as
// a task all the same.
func Plain() CallOption {
	return func(c *ToolCall) { c.Plain = true }
}

// TTL asks the server to keep the task this long from its creation. Servers of
// 2026-07-28 decide alone.
func TTL(ttl time.Duration) CallOption {
	return func(c *ToolCall) { c.TTL = ttl }
}
