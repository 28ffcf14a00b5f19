package mcptask

import "context"

// Hooks are told what a server or a client does while it does it. Package oteltask makes traces and metrics of it.
// Every field may be nil.
//
// A function that returns a context is called at the beginning of something. What follows runs with the context that it
// returns, which is the given one or made of it. The function that it returns beside the context is called at the end,
// in the same process; it may be nil. All functions are called from many goroutines and must return soon: what they are
// told of waits for them. A panic of theirs is logged, and what they are told of goes on.
//
// Beware of the records that they get: they have arguments, results, and the IDs of anonymous tasks, which are their
// only key; see [LogID].
type Hooks struct {
	// Server is called once with each server that has the hooks, before NewServer returns.
	// [Server.Closing] ends when it begins to close.
	Server func(*Server)
	// Request is called for each request that the server answers: calls of its tools, the fallback tools
	// included, and requests about tasks such as tasks/get. The SDK's own requests, such as tools/list, have the
	// SDK's middleware. If the context that it returns has a trace, see [WithTrace], the task of the call gets it.
	Request func(context.Context, RequestInfo) (context.Context, func(RequestResult))
	// ClientRequest is called for each request that a client sends to its server, but for subscriptions. The request carries
	// the trace of the context that it returns, see [WithTrace], unless it only reads a task.
	ClientRequest func(context.Context, RequestInfo) (context.Context, func(RequestResult))
	// Run is called for each run of a handler: for each attempt of a task, and for each plain call. The handler gets the
	// context that it returns.
	Run func(context.Context, RunInfo) (context.Context, func(RunResult))
	// Question is called when a handler begins to wait for the answer to a question. It is not called for a question
	// that an earlier attempt has the answer to. The error is why there is no answer, or nil: ErrCancelled, ErrExpired,
	// ErrServerClosed, ErrSuperseded if another run waits for it now, or another one.
	Question func(context.Context, QuestionInfo) (context.Context, func(error))
	// Store is called for each call of the store, with the name of the method. The store gets the context that it
	// returns. The error is the store's, such as ErrConflict.
	Store func(context.Context, string) (context.Context, func(error))
	// Task is called after this process has stored a change of a task, with the context of what has changed it. The
	// changes of one task may come out of their order if several goroutines make them.
	Task func(context.Context, TaskEvent)
	// Limit is called each time a limit refuses something, with its name, such as "tasks" (docs/reference/limits.md).
	Limit func(ctx context.Context, limit string)
}

// RequestInfo describes a request.
type RequestInfo struct {
	// Method is the method, such as tools/call.
	Method string
	// Tool is the tool that a tools/call names, or "".
	Tool string
	// IsFallback says that the tool is a fallback tool, such as task_status.
	IsFallback bool
	// Revision is the protocol revision of the request.
	Revision string
	// ID is the JSON-RPC ID of the request, as JSON. It is "" if the SDK chooses it.
	ID string
	// IsPipe says that the request comes or goes on a pipe, and not over HTTP.
	IsPipe bool
	// Trace is the trace that the requestor has named, in the form of [Record.Trace], or "". It is "" for a client.
	Trace string
	// Peer is the server's URL or command, for a client.
	Peer string
}

// RequestResult is how a request was answered.
type RequestResult struct {
	// Error is the error that the requestor gets or has got, or nil. That of a JSON-RPC response is an *Error.
	Error error
	// IsToolError says that the result of a tools/call has isError.
	IsToolError bool
	// TaskID is the task that a tools/call was answered with, as [LogID] returns it, or "".
	TaskID string
}

// RunInfo describes a run of a handler.
type RunInfo struct {
	// Task is the task, as it is stored when the run begins. For a plain call it has no ID, and only Tool, Principal,
	// Revision, Trace, and 1 as the Attempt.
	Task Record
	// IsAwaited says that the request that has begun the run waits for its end: a plain call does, and a call in which the
	// server decides whether there is a task, for a while.
	IsAwaited bool
}

// RunResult is how a run has ended.
type RunResult struct {
	// Outcome is what the handler has returned. It becomes the task's unless Cause tells that another run has the task.
	Outcome Outcome
	// Cause is why the context of the handler has ended before it returned, or nil: ErrCancelled, ErrExpired,
	// ErrSuperseded if another run has the task or goes on with it, context.Canceled if the server closes.
	Cause error
}

// QuestionInfo describes a question that a handler asks.
type QuestionInfo struct {
	// Task is the task as in RunInfo.
	Task Record
	// Key is the question's, and Method that of its request, such as elicitation/create.
	Key, Method string
}

// TaskEvent is a change of a task that was stored.
type TaskEvent struct {
	Kind EventKind
	// Task is the task after the change, or the one that was deleted.
	Task Record
	// Outcome is how the task has ended, for EventEnded, in the words of the audit trail: result, tool_error, error,
	// cancelled, expired or abandoned.
	Outcome string
}

// EventKind says what has happened to a task.
type EventKind string

// The kinds of events.
const (
	// EventCreated is the creation of a task, which waits in line or has started at once.
	EventCreated EventKind = "created"
	// EventStarted is the beginning of a run. The task's Attempt tells which one.
	EventStarted EventKind = "started"
	// EventReported is a progress report that was stored.
	EventReported EventKind = "reported"
	// EventAsked is a question.
	EventAsked EventKind = "asked"
	// EventAnswered is the answer to a question.
	EventAnswered EventKind = "answered"
	// EventWithdrawn is a question that is no longer asked.
	EventWithdrawn EventKind = "withdrawn"
	// EventStopping is the wish of a requestor that the task ends.
	EventStopping EventKind = "stopping"
	// EventLost is a task found that has lost its worker. It starts again or ends.
	EventLost EventKind = "lost"
	// EventLeft is a task that a closing server leaves to another one, or a run that ends until a question is answered.
	EventLeft EventKind = "left"
	// EventEnded is the end of a task: with an outcome, because its ttl is over, or because no client was told of it.
	EventEnded EventKind = "ended"
)

// traceKey is the context key of a trace.
type traceKey struct{}

// WithTrace returns a context that belongs to a trace, in the form of [Record.Trace]. [Hooks] give their traces to tasks
// and requests by it.
func WithTrace(ctx context.Context, trace string) context.Context {
	return context.WithValue(ctx, traceKey{}, trace)
}

// TraceOf returns the trace of [WithTrace], or "".
func TraceOf(ctx context.Context) string {
	trace, _ := ctx.Value(traceKey{}).(string)
	return trace
}
