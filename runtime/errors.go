package mcptask

import (
	"encoding/json"
	"errors"
	"fmt"
)

// What a call ends with when there is no result. Test with errors.Is.
var (
	// ErrCancelled says that the task was cancelled, by whomever.
	ErrCancelled = errors.New("mcptask: the task was cancelled")
	// ErrExpired says that the task outlived its ttl and is gone.
	ErrExpired = errors.New("mcptask: the task has expired")
	// ErrNotFound says that the server knows no such task, or that it belongs
	// to somebody else: the two cannot be told apart.
	ErrNotFound = errors.New("mcptask: there is no such task")
	// ErrWorkerLost says that the process that ran the task died and that the
	// tool does not allow a second run.
	ErrWorkerLost = errors.New("mcptask: the worker of the task was lost")
)

// ErrDisconnected says that the connection has ended and will not come back, as
// when a server that was started as a subprocess has exited. Nobody waits for
// its tasks any longer. Test with errors.Is.
var ErrDisconnected = errors.New("mcptask: the connection has ended")

// What a question ends with when there is no answer. Test with errors.Is.
var (
	// ErrDeclined says that the person refused.
	ErrDeclined = errors.New("mcptask: the question was declined")
	// ErrDismissed says that the person closed the question without choosing.
	ErrDismissed = errors.New("mcptask: the question was dismissed")
	// ErrCannotAsk says that nobody can be asked: the requestor did not
	// declare that it answers questions, or has no way to receive one.
	ErrCannotAsk = errors.New("mcptask: the requestor cannot be asked")
	// ErrInvalidAnswer says that the answer does not fit the question's schema.
	ErrInvalidAnswer = errors.New("mcptask: the answer does not fit its schema")
)

// ErrServerClosed says that the server no longer takes work.
var ErrServerClosed = errors.New("mcptask: the server is closed")

// Error is a JSON-RPC error. A handler that returns one (wrapped or not) ends
// its call or task with exactly this error; any other error becomes a tool
// error, which the model can read and act upon.
type Error struct {
	// Code is a JSON-RPC or MCP error code, such as [CodeInvalidParams].
	Code int `json:"code"`
	// Message is for people; it must not reveal internals.
	Message string `json:"message"`
	// Data is optional JSON for programs.
	Data json.RawMessage `json:"data,omitempty"`
}

// Errorf makes an Error with a formatted message.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Reasons that the runtime puts into an error's data.reason.
const (
	reasonWorkerLost = "worker_lost"
	reasonExpired    = "expired"
	reasonDeadline   = "deadline"
	reasonCancelled  = "cancelled"
)

// Is matches the sentinel that data.reason stands for, so that callers test
// errors.Is(err, ErrWorkerLost) without looking into JSON.
func (e *Error) Is(target error) bool {
	var reason string
	switch target {
	case ErrWorkerLost:
		reason = reasonWorkerLost
	case ErrExpired:
		reason = reasonExpired
	case ErrCancelled:
		reason = reasonCancelled
	default:
		return false
	}
	return e.Reason() == reason
}

// Reason is data.reason, or "" where the error carries none.
func (e *Error) Reason() string { return e.decodeData().Reason }

// Limit is data.limit, one of the names of [Limits], or "".
func (e *Error) Limit() string { return e.decodeData().Limit }

func (e *Error) decodeData() (data struct{ Reason, Limit string }) {
	_ = json.Unmarshal(e.Data, &data) // what is of another kind has neither
	return data
}

// withReason adds data.reason to an error.
func (e *Error) withReason(reason string) *Error {
	e.Data = json.RawMessage(fmt.Sprintf(`{"reason":%q}`, reason))
	return e
}

// ToolError is a tool result with isError: the tool ran and says what went
// wrong. It is what a typed client method returns for it.
type ToolError struct {
	// Tool is the name of the tool.
	Tool string
	// Result is the whole result, content included.
	Result *Result
}

// Error is the text of the result.
func (e *ToolError) Error() string {
	text := e.Result.Text()
	if text == "" {
		text = "the tool reported an error without a text"
	}
	return e.Tool + ": " + text
}

// wireError turns any error into one that may leave the process: an Error
// stays, everything else becomes an internal error that reveals nothing.
func hideInternals(err error) *Error {
	var wire *Error
	if errors.As(err, &wire) && wire != nil {
		return wire
	}
	return Errorf(CodeInternalError, "internal error")
}

// shuttingDown refuses what comes while the server closes.
func newShutdownError() *Error { return Errorf(CodeInternalError, "the server is shutting down") }
