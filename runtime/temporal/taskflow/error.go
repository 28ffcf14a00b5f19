package taskflow

import (
	"errors"

	"go.temporal.io/sdk/temporal"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/cause"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/internal/flowwire"
)

// EncodeError returns an error that keeps the code and the fields of the typed error in err, a type under
// //mcptask:error, on its way through Temporal: errors.As finds the type again in the handler of temporal.Run and in the
// client. Of any other error of a workflow or an activity, only the text arrives. Activities may call EncodeError too:
// what a workflow wraps or returns of their errors keeps the code. If err has no typed error, EncodeError returns err.
//
// Temporal retries the error as any other one, unless the type mcptask.Error is among the NonRetryableErrorTypes of the
// retry policy.
//
//workflowcheck:ignore
func EncodeError(err error) error {
	var coded cause.Coded
	if !errors.As(err, &coded) || coded.ToolErrorCode() == "" {
		return err
	}
	typed := flowwire.TypedError{Code: coded.ToolErrorCode()}
	if failed, ok := coded.(*mcptask.ToolError); ok {
		typed.Data = failed.Data()
	} else if data, encodeErr := value.Marshal(coded); encodeErr == nil { // else the code goes alone
		typed.Data = data
	}
	return temporal.NewApplicationErrorWithOptions(err.Error(), flowwire.TypedErrorType, temporal.ApplicationErrorOptions{Details: []any{typed}})
}
