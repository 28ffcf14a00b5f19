package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"
	sdktemporal "go.temporal.io/sdk/temporal"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/internal/flowwire"
)

// isEnded reports whether the error says that the workflow has ended without a result.
func isEnded(err error) bool {
	var ended *sdktemporal.WorkflowExecutionError
	return errors.As(err, &ended)
}

// typedFailure is the error of a workflow with a typed error in it.
type typedFailure struct {
	text  string
	typed *mcptask.ToolError
}

// Error implements error.
func (e *typedFailure) Error() string { return e.text }

// Unwrap returns the typed error, which the server passes on.
func (e *typedFailure) Unwrap() error { return e.typed }

// newFailure returns the error of a failed workflow, with the outermost typed error that taskflow.EncodeError has encoded.
func newFailure(err error, subject string) error {
	text := describeFailure(err, subject)
	for e := err; e != nil; e = errors.Unwrap(e) {
		app, ok := e.(*sdktemporal.ApplicationError) //nolint:errorlint // each layer is looked at
		if !ok || app.Type() != flowwire.TypedErrorType {
			continue
		}
		var typed flowwire.TypedError
		if app.Details(&typed) != nil {
			continue
		}
		if meta, err := value.Marshal(typed); err == nil {
			result := mcptask.ErrorResult(text)
			result.Meta = map[string]json.RawMessage{spec.MetaError: meta}
			return &typedFailure{text, &mcptask.ToolError{Tool: subject, Result: result}}
		}
	}
	return errors.New(text)
}

// describeFailure says in words for the model why a workflow, or a part of it, has failed. subject names it,
// such as "the workflow Build".
func describeFailure(err error, subject string) string {
	switch e := err.(type) { //nolint:errorlint // each layer has its own words
	case nil:
		return subject + " failed"
	case *sdktemporal.WorkflowExecutionError:
		return describeFailure(errors.Unwrap(e), subject)
	case *sdktemporal.ActivityError:
		return describeFailure(errors.Unwrap(e), "the activity "+e.ActivityType().GetName())
	case *sdktemporal.ChildWorkflowExecutionError:
		return describeFailure(errors.Unwrap(e), "the child workflow "+e.WorkflowType())
	case *sdktemporal.NexusOperationError:
		return describeFailure(errors.Unwrap(e), "the Nexus operation "+e.Operation)
	case *sdktemporal.ApplicationError:
		if words := describeMessage(e.Message(), errors.Unwrap(e)); words != "" {
			return words
		}
		return describeFailure(errors.Unwrap(e), subject)
	case *sdktemporal.TimeoutError:
		words := subject + describeTimeout(e.TimeoutType())
		if cause := errors.Unwrap(e); cause != nil && countCauses(cause) <= maxCauses {
			words += ": " + describeFailure(cause, subject)
		}
		return words
	case *sdktemporal.CanceledError:
		return subject + " was cancelled"
	case *sdktemporal.TerminatedError:
		return subject + " was terminated"
	case *sdktemporal.PanicError: // its text is the program's own
		return subject + " panicked"
	}
	if countCauses(err) > maxCauses {
		return describeFailure(errors.Unwrap(err), subject)
	}
	if words := describeMessage(err.Error(), errors.Unwrap(err)); words != "" {
		return words
	}
	return subject + " failed"
}

// describeTimeout says which time is over.
func describeTimeout(kind enumspb.TimeoutType) string {
	switch kind {
	case enumspb.TIMEOUT_TYPE_HEARTBEAT:
		return " stopped reporting"
	case enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
		return " was not started in time"
	}
	return " did not finish in time"
}

const (
	// maxCauses is how many errors may lie in one another until describeMessage, and a timeout, leave them alone. Each
	// Error of the SDK copies the texts of all causes, of which Temporal takes thousands.
	maxCauses = 20
	// maxMessage is how many bytes of a message the model gets.
	maxMessage = 16 << 10
)

// describeMessage returns the message of an error, without the words that Temporal puts around its cause.
func describeMessage(message string, cause error) string {
	message = strings.TrimSpace(message)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	if message == "" {
		return ""
	}
	if cause != nil && countCauses(cause) <= maxCauses {
		if text := strings.TrimSpace(cause.Error()); text != "" {
			if at := strings.LastIndex(message, text); at >= 0 {
				message = message[:at] + describeFailure(cause, "it") + message[at+len(text):]
			}
		}
	}
	for _, words := range temporalWords {
		message = words.ReplaceAllString(message, "")
	}
	return strings.TrimSpace(message)
}

// countCauses returns how many errors lie in one another, at most maxCauses+1.
func countCauses(err error) (n int) {
	for ; err != nil && n <= maxCauses; n++ {
		err = errors.Unwrap(err)
	}
	return n
}

// temporalWords are the words of the SDK's errors that name runs, workers and events. A workflow's error
// has them if its code has wrapped the error of an activity in one of its own.
var temporalWords = []*regexp.Regexp{
	regexp.MustCompile(`activity error \(type: .*?, scheduledEventID: \d+, startedEventID: \d+, identity: .*?\)(: |$)`),
	regexp.MustCompile(`child workflow execution error \(type: .*?, workflowID: .*?, runID: .*?, initiatedEventID: \d+, startedEventID: \d+\)(: |$)`),
	regexp.MustCompile(` \(endpoint: ".*?", service: ".*?", operation: ".*?", operation token: ".*?", scheduledEventID: \d+\)`),
	regexp.MustCompile(` \(type: [^()]*, retryable: (true|false)\)`),
}

// isOutage reports whether an error of a request may pass: Temporal does not answer, or has too much to do.
func isOutage(err error) bool {
	code, ok := readCode(err)
	if !ok {
		return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	}
	switch code {
	case codes.ResourceExhausted:
		return !isTooLarge(err)
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted, codes.Internal, codes.Unknown:
		return true
	}
	return false
}

// isCodecFailure reports whether an error comes from a data converter of the client's, such as one that encrypts and
// does not reach its keys. This may pass. That a value does not fit its type does not.
func isCodecFailure(err error) bool {
	if _, isService := readCode(err); isService || isEnded(err) {
		return false
	}
	return !slices.ContainsFunc(misfits, func(misfit error) bool { return errors.Is(err, misfit) })
}

// misfits are the errors of the SDK's converters for a value that does not fit its type or its encoding.
var misfits = []error{
	converter.ErrMetadataIsNotSet, converter.ErrEncodingIsNotSet, converter.ErrEncodingIsNotSupported,
	converter.ErrUnableToEncode, converter.ErrUnableToDecode, converter.ErrUnableToSetValue, converter.ErrUnableToFindConverter,
	converter.ErrTypeNotImplementProtoMessage, converter.ErrValuePtrIsNotPointer, converter.ErrValuePtrMustConcreteType,
	converter.ErrTypeIsNotByteSlice,
}

// mayPass reports whether an error may pass: Temporal, credentials or a data converter are away.
func mayPass(err error) bool { return isOutage(err) || isDenied(err) || isCodecFailure(err) }

// isDenied reports whether Temporal refuses the client. This may pass, because credentials are renewed.
func isDenied(err error) bool {
	code, _ := readCode(err)
	return code == codes.PermissionDenied || code == codes.Unauthenticated
}

// isNotFound reports whether Temporal answers that a workflow or an activity does not exist, or has ended.
func isNotFound(err error) bool {
	var notFound *serviceerror.NotFound
	return errors.As(err, &notFound)
}

// isTooLarge reports whether a message is larger than Temporal, or gRPC, takes.
func isTooLarge(err error) bool {
	text := err.Error()
	return strings.Contains(text, "larger than max") || strings.Contains(text, "message too large") || strings.Contains(text, "size exceeds limit")
}

// readCode returns the gRPC code of an error of Temporal's client. ok is false if the error does not come from
// the service.
func readCode(err error) (code codes.Code, ok bool) {
	var service serviceerror.ServiceError
	if errors.As(err, &service) {
		return service.Status().Code(), true
	}
	var carrier interface{ GRPCStatus() *status.Status }
	if errors.As(err, &carrier) {
		return carrier.GRPCStatus().Code(), true
	}
	return codes.Unknown, false
}

// describeRefusal says in words for the model why Temporal has refused a request. It names no hosts.
func describeRefusal(err error) string {
	var noNamespace *serviceerror.NamespaceNotFound
	code, ok := readCode(err)
	switch {
	case errors.As(err, &noNamespace):
		return "its namespace does not exist in Temporal"
	case !ok: // an argument or a result that was not encoded or decoded
		return err.Error()
	case isTooLarge(err):
		return "the data is too large for Temporal"
	case isDenied(err):
		return "Temporal refuses this server"
	case code == codes.NotFound:
		return "Temporal does not have it"
	case code == codes.InvalidArgument, code == codes.FailedPrecondition:
		return "Temporal refuses the request: " + status.Convert(err).Message()
	}
	return "Temporal refuses the request with the code " + code.String()
}
