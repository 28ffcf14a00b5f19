package mcptask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
)

// newInternalOutcome makes the outcome of a fault that is not told to the caller.
func newInternalOutcome() *Outcome {
	return &Outcome{Kind: OutcomeError, Error: newInternalError()}
}

// newFailureOutcome makes the outcome of a handler's error. An *Error is a JSON-RPC
// error. Any other error after the end of the context counts as the cancellation
// or the missed deadline that ended it. All others are tool errors, which the model
// reads.
func newFailureOutcome(ctx context.Context, t *registeredTool, err error) *Outcome {
	var wire *Error
	if errors.As(err, &wire) && wire != nil {
		return &Outcome{Kind: OutcomeError, Error: wire}
	}
	if ctx.Err() != nil {
		if errors.Is(context.Cause(ctx), errDeadlineOver) {
			missed := Errorf(CodeInternalError, "%s did not finish within its deadline of %v", t.spec.Name, t.spec.Policy.Deadline)
			return &Outcome{Kind: OutcomeError, Error: missed.withReason(reasonDeadline)}
		}
		return &Outcome{Kind: OutcomeCancelled}
	}
	result, encodeErr := marshalJSON(ErrorResult(err.Error()))
	if encodeErr != nil {
		return newInternalOutcome()
	}
	return &Outcome{Kind: OutcomeResult, Result: result, IsError: true}
}

// encodeResult writes a result as JSON. The result of a raw tool is its structured
// content.
func encodeResult(raw bool, result *Result) (json.RawMessage, error) {
	if !raw {
		return marshalJSON(result)
	}
	if len(result.Structured) == 0 {
		return nil, errNoResult
	}
	return marshalJSON(result.Structured) // checks it and writes it as one line
}

// errUnbounded is the outcome of a result that would cost its readers too much.
var errUnbounded = Errorf(CodeInternalError, "the tool's result has more than %d objects and arrays within each other, or a number of more than %d characters or with an exponent that is not from %d to %d",
	validate.MaxDepth, validate.MaxNumber, validate.MinExponent, validate.MaxExponent)

// isBounded reports whether all parts of an encoded result are within the bounds of arguments. isChecked says
// that a schema has checked the structured content.
func (r *Result) isBounded(isChecked bool) bool {
	for _, c := range r.Content {
		if !validate.Bounded(json.RawMessage(c)) {
			return false
		}
	}
	for _, m := range r.Meta {
		if !validate.Bounded(m) {
			return false
		}
	}
	return isChecked || validate.Bounded(r.Structured)
}

// repairOutcome makes a handler's outcome fit to be stored and sent: valid JSON in
// UTF-8, of one line. Only what is broken is lost.
func (s *Server) repairOutcome(tool string, task *Task, o *Outcome) *Outcome {
	switch {
	case o.Error != nil:
		e := *o.Error
		if len(e.Data) > 0 && (!json.Valid(e.Data) || !validate.Bounded(e.Data)) {
			s.Notice(slog.LevelError, "the data of a handler's error is not JSON, or beyond the bounds of a result", "tool", tool, "task", LogID(task.principal, task.id))
			e.Data = nil
		}
		e.Message = strings.ToValidUTF8(e.Message, "\uFFFD")
		e.Data = repairUTF8(e.Data)
		return &Outcome{Kind: o.Kind, Error: &e}
	case o.Kind == OutcomeResult:
		result := *o
		result.Result = repairUTF8(o.Result)
		return &result
	}
	return o
}

// repairUTF8 replaces bytes that are not UTF-8 in valid JSON, which has them only
// in strings.
func repairUTF8(data json.RawMessage) json.RawMessage {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\uFFFD"))
}

// limitOutcome returns the outcome of a handler, or the error that it is too big
// to be stored.
func (s *Server) limitOutcome(ctx context.Context, caller Caller, id, tool string, o *Outcome) *Outcome {
	size := len(o.Result)
	if o.Error != nil {
		size = o.Error.byteSize()
	}
	if most := s.options.Limits.Result; size > most {
		return &Outcome{Kind: OutcomeError, Error: s.Limited(ctx, caller, "result", most, "tool", tool, "task", LogID(caller.Principal, id))}
	}
	return o
}
