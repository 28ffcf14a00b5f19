package taskserver

import (
	"encoding/json"
	"errors"
	"fmt"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// errEndedElsewhere is the cause if the task has ended without this run. errors.Is finds ErrSuperseded in it, but no
// other run goes on with the task.
var errEndedElsewhere error = endedElsewhere{}

type endedElsewhere struct{}

// Error implements error.
func (endedElsewhere) Error() string { return "the task has ended without this run" }

// Is makes it an ErrSuperseded for errors.Is.
func (endedElsewhere) Is(target error) bool { return target == mcptask.ErrSuperseded }

// withReason sets data.reason and returns the error.
func withReason(e *mcptask.Error, reason string) *mcptask.Error {
	e.Data = json.RawMessage(fmt.Sprintf(`{"reason":%q}`, reason))
	return e
}

// hideInternals returns an error that may leave the process: the *Error in err, or
// else an internal error that reveals nothing.
func hideInternals(err error) *mcptask.Error {
	var wire *mcptask.Error
	if errors.As(err, &wire) && wire != nil {
		return wire
	}
	return newInternalError()
}

// newInternalError makes the error of a fault that is not told to the caller.
func newInternalError() *mcptask.Error {
	return mcptask.Errorf(mcptask.CodeInternalError, "internal error")
}

// newShutdownError refuses a request while the server closes.
func newShutdownError() *mcptask.Error {
	return mcptask.Errorf(mcptask.CodeInternalError, "the server is shutting down")
}
