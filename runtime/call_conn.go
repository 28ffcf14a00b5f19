package mcptask

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// Conn is a client's connection to a server, in one revision. gosdk.Connect makes
// one. All methods are safe for concurrent use.
type Conn interface {
	// Revision returns the protocol revision that was negotiated.
	Revision() string
	// ListTools lists the server's tools, from all pages.
	ListTools(ctx context.Context) ([]ToolInfo, error)
	// CallTool calls a tool. The snapshot has a TaskID if the server made a task, and is
	// done if the server answered at once. An *Error comes from the server.
	CallTool(ctx context.Context, call ToolCall) (Snapshot, error)
	// Task reads a task. A snapshot that is done has its result or error.
	Task(ctx context.Context, taskID string) (Snapshot, error)
	// CancelTask asks the server to cancel a task.
	CancelTask(ctx context.Context, taskID string) error
	// Respond sends the responses to a task's questions, by key.
	Respond(ctx context.Context, taskID string, responses map[string]json.RawMessage) error
	// Answer answers a question. ok is false if this client has no answerer for it.
	Answer(ctx context.Context, q Question) (response json.RawMessage, ok bool, err error)
	// Close ends the connection. Tasks go on.
	Close() error
}

// Watcher is a Conn whose server may send changes of tasks. While it does, a call
// polls only rarely, to be safe. A call on any other Conn polls.
type Watcher interface {
	// Watch calls heard with each state that the server sends of a task, until stop.
	// live reports whether more may come, and the result is its value at the start. When the
	// connection has ended, Watch calls heard without a state. heard does not block, and
	// is not called before Watch returns. stop does not wait for a call of heard.
	Watch(taskID string, heard func(live bool, state *Snapshot)) (live bool, stop func())
	// Ended reports whether the connection has ended, so that every call fails.
	Ended() bool
}

// Lister is a Conn that may list tasks. The Conn of package gosdk does in 2025-11-25. 2026-07-28 has no list.
type Lister interface {
	// ListTasks lists the tasks of the client's principal, from all pages, as far as the server keeps and shows them.
	// The snapshots have no results or errors. The error of ListTasks is an *Error with CodeMethodNotFound if the
	// server or the client has no list in the revision, or the client is anonymous.
	ListTasks(ctx context.Context) ([]Snapshot, error)
}

// ToolInfo is a tool as a client sees it.
type ToolInfo struct {
	Name, Title, Description  string
	InputSchema, OutputSchema json.RawMessage
	// TaskSupport is the server's declaration, or "" in revisions that do not have it.
	TaskSupport TaskSupport
}

// ToolCall is a call of a tool.
type ToolCall struct {
	Tool      string
	Arguments json.RawMessage
	// Plain asks for no task.
	Plain bool
	// TTL is the retention to ask for, counted from the creation; in sep-1686 from the
	// end. 0 leaves it to the server. 2026-07-28 has no way to ask.
	TTL            time.Duration
	IdempotencyKey string
}

// Snapshot is a task at one moment, as its requestor sees it.
type Snapshot struct {
	// TaskID is "" if the call was answered without a task.
	TaskID string
	// Tool is the name of the task's tool, or "". Only [Lister.ListTasks] at servers of this module knows it: whoever calls a
	// tool or resumes a call names the tool.
	Tool   string
	Status Status
	// Message is the server's text on the status.
	Message string
	// Progress is the handler's last report. Its Message is the Message above without the count: the question while one
	// is open, and usually "" at the end. Only servers of this module send Done and Total. They are 0 otherwise, and if a
	// task has succeeded after a last report below its total.
	Progress             ProgressReport
	CreatedAt, UpdatedAt time.Time
	// TTL is how long the server keeps the task from CreatedAt. A negative TTL means no
	// limit, or that the server does not say (sep-1686).
	TTL time.Duration
	// Poll is the interval that the server asks for, or 0 if it does not say.
	Poll time.Duration
	// Result or Error is set once the task is done and was not cancelled.
	Result *Result
	Error  *Error
	// Questions are the questions that wait for an answer.
	Questions []Question
	// Stale says why the server cannot run the task as it is stored, or is "": its tool is gone or was declared anew.
	// Only servers of this module say so.
	Stale string
}

// ProgressReport is the last report of a task's handler: done of total, in any unit, and a message. A Total of 0 means
// unknown.
type ProgressReport struct {
	Done, Total float64
	Message     string
}

// Done reports whether the status is terminal.
func (s Snapshot) Done() bool { return s.Status.Terminal() }

// looksOtherThan reports whether a person, or a program that keeps tokens, would see a difference between s and other.
// Their times count only for tasks that ask without sending the question, as in 2025-11-25: a new time means a new
// question.
func (s Snapshot) looksOtherThan(other Snapshot) bool {
	isSame := func(a, b Question) bool { return a.Key == b.Key }
	isAnotherQuestion := s.Status == StatusInputRequired && len(s.Questions) == 0 && !s.UpdatedAt.Equal(other.UpdatedAt)
	return s.Status != other.Status || s.Message != other.Message || s.Progress != other.Progress || s.TTL != other.TTL ||
		isAnotherQuestion || !slices.EqualFunc(s.Questions, other.Questions, isSame)
}

// differs reports whether other has a newer state.
func (s Snapshot) differs(other Snapshot) bool {
	return s.Status != other.Status || s.Message != other.Message || !s.UpdatedAt.Equal(other.UpdatedAt)
}
