package mcptask

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/cause"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
)

// The errors of a call without a result. Test with errors.Is. The texts of these errors
// and of those below have no prefix, because most of them come within an error that names
// the tool or the question.
var (
	// ErrCancelled means that the task was cancelled.
	ErrCancelled = errors.New("the task was cancelled")
	// ErrExpired means that the task's ttl has passed and the task is gone.
	ErrExpired = errors.New("the task has expired")
	// ErrNotFound means that the server has no such task, or that the task belongs to
	// another principal. The two cannot be told apart.
	ErrNotFound = errors.New("there is no such task")
	// ErrWorkerLost means that the process that ran the task died and that the
	// tool does not allow a second run.
	ErrWorkerLost = errors.New("the worker of the task was lost")
	// ErrDeadline means that the handler worked for longer than the tool's deadline.
	ErrDeadline = errors.New("the task exceeded the tool's deadline")
	// ErrChanged means that the tool's declaration differs from the one under which the task was stored, and the task's
	// arguments do not fit it.
	ErrChanged = errors.New("the task was started under another declaration")
)

// ErrDisconnected means that the connection has ended for good, for example because a
// server that was started as a subprocess has exited. Calls no longer wait for its
// tasks. Test with errors.Is.
var ErrDisconnected = errors.New("the connection has ended")

// The errors of a question without an answer. Test with errors.Is.
var (
	// ErrDeclined means that the person refused.
	ErrDeclined = errors.New("the question was declined")
	// ErrDismissed means that the person closed the question without choosing.
	ErrDismissed = errors.New("the question was dismissed")
	// ErrCannotAsk means that the requestor cannot be asked: it did not declare that it
	// answers such questions, it failed to answer, or there is no way to send it one.
	ErrCannotAsk = errors.New("the requestor cannot be asked")
	// ErrInvalidAnswer means that the answer does not fit the question's schema.
	ErrInvalidAnswer = errors.New("the answer does not fit its schema")
)

// ErrSuperseded is the cause of the end of a run's context if another run has the task, such as one at another server
// that has taken this server for lost, or if the task has ended without this run. The result of the superseded run is
// dropped.
var ErrSuperseded = errors.New("another run has the task")

// ErrServerClosed means that the server is closed and takes no work.
var ErrServerClosed = errors.New("the server is closed")

// Error is a JSON-RPC error. A handler that returns one, wrapped or not, ends its
// call or task with exactly this error. Any other error becomes a tool error, which
// the model can read and act on.
type Error struct {
	// Code is a JSON-RPC or MCP error code. The codes from -32768 to -32000 are reserved: of them, a handler may return
	// only [CodeInvalidParams], [CodeInternalError], -32021 for a capability that the client lacks, and -32042 for a page
	// that a person has to visit. The server replaces any other by CodeInternalError.
	Code int `json:"code"`
	// Message is for people. It must not reveal internals.
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

// Is reports whether data.reason stands for the target: ErrWorkerLost, ErrDeadline, ErrChanged,
// ErrExpired or ErrCancelled.
func (e *Error) Is(target error) bool {
	var reason string
	switch target {
	case ErrWorkerLost:
		reason = cause.WorkerLost
	case ErrDeadline:
		reason = cause.Deadline
	case ErrChanged:
		reason = cause.Changed
	case ErrExpired:
		reason = cause.Expired
	case ErrCancelled:
		reason = cause.Cancelled
	default:
		return false
	}
	return e.Reason() == reason
}

// Reason returns data.reason, or "".
func (e *Error) Reason() string { return e.decodeData().Reason }

// Limit returns data.limit, one of the names of taskserver.Limits, or "".
func (e *Error) Limit() string { return e.decodeData().Limit }

// decodeData reads the members of the data that the runtime knows.
func (e *Error) decodeData() (data struct{ Reason, Limit string }) {
	_ = json.Unmarshal(e.Data, &data) // any other JSON has neither member
	return data
}

// ToolError is a tool result with isError: the tool ran and reports its failure. A typed client method returns it as
// its error. [errors.As] finds a type under //mcptask:error in it if the tool has returned that error.
//
// A handler that returns a ToolError, such as that of a tool it has called, passes on its result.
type ToolError struct {
	// Tool is the name of the tool.
	Tool string
	// Result is the whole result, content included.
	Result *Result
}

// Error returns the tool's name and the text of the result.
func (e *ToolError) Error() string {
	text := e.Result.Text()
	if text == "" {
		text = "the tool reported an error without a text"
	}
	return e.Tool + ": " + text
}

// ToolErrorCode returns the code of the tool's error, or "" if it has none.
func (e *ToolError) ToolErrorCode() string { return e.decodeMeta().Code }

// Data returns the fields of an error with a code, as JSON, or nil.
func (e *ToolError) Data() json.RawMessage { return e.decodeMeta().Data }

// decodeMeta reads the code and the fields of a typed error.
func (e *ToolError) decodeMeta() (typed struct {
	Code string
	Data json.RawMessage
}) {
	if e != nil && e.Result != nil {
		_ = json.Unmarshal(e.Result.Meta[spec.MetaError], &typed) // any other JSON has no code
	}
	return typed
}

// As implements the interface of [errors.As]: it sets target if its type has the error's code and the fields fit it.
func (e *ToolError) As(target any) (found bool) {
	defer guard.Then(nil, "the decoding of an error", func() { found = false })
	typed := e.decodeMeta()
	into := reflect.ValueOf(target).Elem()
	t, isPointer := into.Type(), into.Kind() == reflect.Pointer
	if isPointer {
		t = t.Elem()
	}
	if typed.Code == "" || t.Kind() != reflect.Struct {
		return false
	}
	pointer := reflect.New(t)
	decoded := pointer
	if !isPointer {
		decoded = pointer.Elem()
	}
	if coded, ok := decoded.Interface().(cause.Coded); !ok || coded.ToolErrorCode() != typed.Code {
		return false
	}
	if typed.Data != nil {
		data, _ := validate.PlainIntegers(typed.Data)
		if json.Unmarshal(data, pointer.Interface()) != nil {
			return false
		}
	}
	into.Set(decoded)
	return true
}

// CodeOf returns the code of the typed error in err: that of a type under //mcptask:error, or of a [ToolError]. It
// returns "" if there is none.
func CodeOf(err error) string {
	var coded cause.Coded
	if !errors.As(err, &coded) {
		return ""
	}
	return coded.ToolErrorCode()
}
