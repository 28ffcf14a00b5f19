package taskserver

import (
	"context"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Hooks observe the work of a server or a client. Package oteltask turns them into OpenTelemetry traces and metrics.
// Any field may be nil.
//
// A hook that returns a context runs at the start of an operation. The operation continues with that context, which
// must be derived from the one given. The returned function, which may be nil, runs at the end of the operation, in the
// same process. Each call of a hook has a goroutine of its own, and the operation waits for it. A hook that panics or
// ends its goroutine is logged and ignored.
//
// Records passed to hooks hold arguments, results and the full IDs of anonymous tasks. Do not export these; see
// [taskstore.LogID].
type Hooks struct {
	// Server is called once with each server that has the hooks, before New returns.
	// [Server.Closing] ends when the server begins to close.
	Server func(*Server)
	// Request is called for each call of a tool, fallback tools included, and for each request about tasks, such as
	// tasks/get. It is not called for subscriptions, for requests that are refused before they reach a task, or for the
	// SDK's own requests, such as tools/list: the SDK has middleware for these. If the returned context has a trace,
	// see [WithTrace], the task of the call gets it.
	Request func(context.Context, RequestInfo) (context.Context, func(RequestResult))
	// ClientRequest is called for each request that a client sends to its server, except subscriptions. The request
	// carries the trace of the returned context, see [WithTrace], unless it polls a task.
	ClientRequest func(context.Context, RequestInfo) (context.Context, func(RequestResult))
	// Run is called for each run of a handler: for each attempt of a task, and for each plain call. The handler gets
	// the returned context.
	Run func(context.Context, RunInfo) (context.Context, func(RunResult))
	// Question is called when a handler begins to wait for the answer to a question. It is not called if an earlier
	// attempt already has the answer. The error says why there is no answer, or is nil: ErrCancelled, ErrExpired,
	// ErrServerClosed, ErrSuperseded if another run waits for the answer now, or any other error.
	Question func(context.Context, QuestionInfo) (context.Context, func(error))
	// Step is called when a handler begins the work of a step, see [mcptask.Step], or begins to sleep, see
	// [mcptask.Sleep]. The work gets the returned context. Step is not called if an earlier run has stored the result.
	// The error is that of the work or of storing its result, or nil.
	Step func(context.Context, StepInfo) (context.Context, func(error))
	// Store is called for each call of the store's methods Create, Get, Update, Steps, List, Delete, Expire, Waiting, Lease,
	// Beat, Release, Scan and Workers that the server makes. It is not called for the other methods, for users of [Server.Inspector],
	// or for the last calls of a server that closes with its store. The store gets the returned context. The error is
	// the store's, such as ErrConflict.
	Store func(ctx context.Context, method string) (context.Context, func(error))
	// Task is called after this process has stored a change of a task, with the context of the operation that changed
	// it. If several goroutines change a task, the events may come out of order.
	Task func(context.Context, TaskEvent)
	// Limit is called each time a limit refuses something, with the limit's name, such as "tasks"
	// (docs/reference/limits.md).
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
	// Trace is the trace that the requestor has named, in the form of [taskstore.Record.Trace], or "". It is "" for a
	// client.
	Trace string
	// Peer is the server's URL or command, for a client.
	Peer string
}

// RequestResult is how a request was answered.
type RequestResult struct {
	// Error is the error sent to the requestor, or nil. At a client it is the error that the call has returned. That of
	// a JSON-RPC response is an *Error.
	Error error
	// IsToolError says that the result of a tools/call has isError.
	IsToolError bool
	// TaskID is the ID of the task that the call created, as [taskstore.LogID] returns it, or "".
	TaskID string
}

// RunInfo describes a run of a handler.
type RunInfo struct {
	// Task is the task, as it is stored when the run begins. For a plain call it has no ID, and only Tool, Principal,
	// Revision, Trace, and 1 as the Attempt.
	Task taskstore.Record
	// IsAwaited says that the request that has begun the run waits for its end: a plain call does, and a call in which
	// the server decides whether there is a task, for a while.
	IsAwaited bool
}

// RunResult is how a run has ended.
type RunResult struct {
	// Outcome is the outcome that the handler has returned. It becomes the task's unless Cause is ErrSuperseded.
	Outcome taskstore.Outcome
	// Cause is why the context of the handler has ended before it returned, or nil: ErrCancelled, ErrDeadline, ErrExpired,
	// ErrSuperseded if another run has the task or goes on with it, context.Canceled if the server closes.
	Cause error
}

// QuestionInfo describes a question that a handler asks.
type QuestionInfo struct {
	// Task is the task as in RunInfo.
	Task taskstore.Record
	// Key is the question's, and Method that of its request, such as elicitation/create.
	Key, Method string
}

// StepInfo describes a step of a handler.
type StepInfo struct {
	// Task is the task as in RunInfo.
	Task taskstore.Record
	// Name is the step's key within its task.
	Name string
	// Kind is StepDone or StepSleep.
	Kind taskstore.StepKind
}

// TaskEvent is a change of a task that was stored.
type TaskEvent struct {
	Kind taskstore.EventKind
	// Task is the task after the change, or the one that was deleted.
	Task taskstore.Record
	// Outcome is how the task has ended, for EventEnded, in the words of the audit trail: result, tool_error, error,
	// cancelled, expired or abandoned.
	Outcome string
}

// traceKey is the context key of a trace.
type traceKey struct{}

// WithTrace returns a context that belongs to a trace, in the form of [taskstore.Record.Trace]. [Hooks] give their
// traces to tasks and requests by it.
func WithTrace(ctx context.Context, trace string) context.Context {
	return context.WithValue(ctx, traceKey{}, trace)
}

// TraceOf returns the trace of [WithTrace], or "".
func TraceOf(ctx context.Context) string {
	trace, _ := ctx.Value(traceKey{}).(string)
	return trace
}

// FormatTrace returns a W3C trace context in the form of [taskstore.Record.Trace]. It returns "" if traceparent is "".
// It does not check its arguments.
func FormatTrace(traceparent, tracestate string) string {
	if traceparent == "" || tracestate == "" {
		return traceparent
	}
	return traceparent + "\n" + tracestate
}

// SplitTrace returns the W3C trace context of a trace in the form of [taskstore.Record.Trace]. Either may be "".
func SplitTrace(trace string) (traceparent, tracestate string) {
	traceparent, tracestate, _ = strings.Cut(trace, "\n")
	return traceparent, tracestate
}
