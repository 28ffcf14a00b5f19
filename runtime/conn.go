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

// Watcher is a Conn whose server may tell of changes unasked. A call on one that
// is told polls rarely, to make sure; a call on any other Conn polls.
type Watcher interface {
	// Watch tells heard what the server says of a task until stop, which does not
	// wait: each state, and with live whether more may come. The result says so
	// for now. heard does not block; it is not called before Watch returns. It is
	// called without a state when the connection has ended.
	Watch(taskID string, heard func(live bool, state *Snapshot)) (live bool, stop func())
	// Ended says whether the connection has ended, so that every call fails.
	Ended() bool
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
	// TTL is the retention wished for, from the creation, in sep-1686 from the end;
	// 0 leaves it to the server. 2026-07-28 cannot say it.
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
	// without limit, or not told (sep-1686).
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

// differs says whether there is something new in other.
func (s Snapshot) differs(other Snapshot) bool {
	return s.Status != other.Status || s.Message != other.Message || !s.UpdatedAt.Equal(other.UpdatedAt)
}

// CallOption changes one call.
type CallOption func(*ToolCall)

// IdempotencyKey makes repeated calls of a tool, with the same key and by the
// same principal, share one task. Without authentication it needs 16 bytes.
func IdempotencyKey(key string) CallOption {
	return func(c *ToolCall) { c.IdempotencyKey = key }
}

// Plain calls without a task where the tool allows it; a required one runs as a
// task all the same. A handler that asks midway gets ErrCannotAsk in 2026-07-28.
func Plain() CallOption {
	return func(c *ToolCall) { c.Plain = true }
}

// TTL asks the server to keep the task this long from its creation (see ToolCall); 0
// leaves it to the server, less is an error. Servers of 2026-07-28 decide alone.
func TTL(ttl time.Duration) CallOption {
	return func(c *ToolCall) { c.TTL = ttl }
}
