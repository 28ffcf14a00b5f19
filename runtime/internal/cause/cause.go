// Package cause has the reasons for which a task, a run or a question ends, and for which a question is asked again, as
// packages mcptask and taskserver both know them.
package cause

import "errors"

// The reasons that stand in the data.reason of an error.
const (
	WorkerLost = "worker_lost"
	Expired    = "expired"
	Deadline   = "deadline"
	Cancelled  = "cancelled"
	Changed    = "declaration_changed"
)

// Coded is an error with a code, such as a type under //mcptask:error.
type Coded interface {
	error
	ToolErrorCode() string
}

// ErrWithdrawn says that an earlier attempt has withdrawn a question.
var ErrWithdrawn = errors.New("mcptask: the question was withdrawn")

// ErrAskedAnew is the cause of a context that ends the wait for an answer because the question is asked anew in another form,
// which withdraws it.
var ErrAskedAnew = errors.New("mcptask: the question is asked anew")

// ErrNoResult says that a handler has returned nothing.
var ErrNoResult = errors.New("the handler returned neither a result nor an error")

// ErrNotEncoded says that encoding/json cannot write the output of a handler.
var ErrNotEncoded = errors.New("output cannot be encoded")

// NewForm is the key of a context value. It says that a step asks its question again because the form has changed, so that
// the question keeps its key and does not take the step's next one.
type NewForm struct{}
