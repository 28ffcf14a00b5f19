package taskserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/cause"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// newInternalOutcome makes the outcome of a fault that is not told to the caller.
func newInternalOutcome() *taskstore.Outcome {
	return &taskstore.Outcome{Kind: taskstore.OutcomeError, Error: newInternalError()}
}

// newMisfitOutcome makes the outcome of a result that does not fit its tool's schema. The caller learns which properties are
// at fault, but none of their values, which are only in the log.
func newMisfitOutcome(properties []string) *taskstore.Outcome {
	misfit := mcptask.Errorf(mcptask.CodeInternalError, "the tool's output does not fit its schema: %s", strings.Join(properties, ", "))
	if len(properties) == 0 {
		misfit.Message = "the tool's output does not fit its schema"
	}
	return &taskstore.Outcome{Kind: taskstore.OutcomeError, Error: misfit}
}

// newFailureOutcome makes the outcome of a handler's error. An *Error is a JSON-RPC
// error, unless a typed error wraps it. Any other error after the end of the context
// counts as the cancellation or the missed deadline that ended it. All others are tool
// errors, which the model reads.
func (b *Backend) newFailureOutcome(ctx context.Context, t *registeredTool, err error) *taskstore.Outcome {
	var coded cause.Coded
	_ = errors.As(err, &coded)
	var wire *mcptask.Error
	if !errors.As(coded, &wire) && errors.As(err, &wire) && wire != nil {
		return &taskstore.Outcome{Kind: taskstore.OutcomeError, Error: b.replaceReserved(t, wire)}
	}
	if ctx.Err() != nil {
		if errors.Is(context.Cause(ctx), mcptask.ErrDeadline) {
			missed := mcptask.Errorf(mcptask.CodeInternalError, "%s did not finish within its deadline of %v", t.Spec.Name, t.Spec.Policy.Deadline)
			return &taskstore.Outcome{Kind: taskstore.OutcomeError, Error: withReason(missed, cause.Deadline)}
		}
		return &taskstore.Outcome{Kind: taskstore.OutcomeCancelled}
	}
	if errors.Is(err, cause.ErrNotEncoded) { // the words of encoding/json are for the server's author
		b.Notice(slog.LevelError, "output not encoded", "tool", t.Spec.Name, "error", err)
		return &taskstore.Outcome{Kind: taskstore.OutcomeError, Error: mcptask.Errorf(mcptask.CodeInternalError, "the tool's %v", cause.ErrNotEncoded)}
	}
	result := mcptask.ErrorResult(err.Error())
	if failed, ok := coded.(*mcptask.ToolError); ok && failed != nil && failed.Result != nil {
		result = passToolError(ctx, t, err, failed)
	} else if coded != nil {
		b.addCode(t, result, coded)
	}
	t.emptyNils(result)
	data, encodeErr := value.Marshal(result)
	if encodeErr != nil { // a ToolError whose result is not valid JSON
		b.Notice(slog.LevelError, "error of a handler not encoded", "tool", t.Spec.Name, "error", encodeErr)
		return newInternalOutcome()
	}
	if !isBounded(result, false) {
		return &taskstore.Outcome{Kind: taskstore.OutcomeError, Error: errUnbounded}
	}
	return &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: data, IsError: true}
}

// typedError is a typed error in the _meta of a result.
type typedError struct {
	Code string          `json:"code"`
	Data json.RawMessage `json:"data,omitempty"`
}

// emptyNils writes the nil lists and maps in the fields of a typed error as its schema has them.
func (t *registeredTool) emptyNils(result *mcptask.Result) {
	typed, err := value.Decode[typedError](result.Meta[spec.MetaError])
	schema := t.errors[typed.Code]
	if err != nil || schema == nil || typed.Data == nil {
		return
	}
	typed.Data = schema.PlainResult(typed.Data)
	if meta, err := value.Marshal(typed); err == nil {
		result.Meta[spec.MetaError] = meta
	}
}

// addCode adds the code and the fields of a typed error to its result. Fields that cannot be sent are left out.
func (b *Backend) addCode(t *registeredTool, result *mcptask.Result, coded cause.Coded) {
	typed := typedError{Code: coded.ToolErrorCode()}
	if typed.Code == "" {
		return
	}
	var err error
	if typed.Data, err = value.Marshal(coded); err == nil && !validate.Bounded(typed.Data) {
		err = errUnbounded
	}
	if err != nil {
		b.Notice(slog.LevelError, "the fields of a handler's error cannot be sent", "tool", t.Spec.Name, "code", typed.Code, "error", err)
		typed.Data = nil
	}
	if meta, err := value.Marshal(typed); err == nil {
		result.Meta = map[string]json.RawMessage{spec.MetaError: meta}
	}
}

// passToolError returns the result in a ToolError that a handler returns within err. If err has more to say, its text
// takes the place of those in the result. The members of _meta that are about another task are left out, and structured
// content that does not fit the tool's own schema.
func passToolError(ctx context.Context, t *registeredTool, err error, failed *mcptask.ToolError) *mcptask.Result {
	passed := *failed.Result
	passed.IsError = true
	if err != error(failed) || passed.Text() == "" { //nolint:errorlint // whether the error is wrapped
		text := strings.TrimPrefix(err.Error(), t.Spec.Name+": ") // to which clients add it
		passed.Content = []mcptask.Content{mcptask.TextContent(text)}
		for _, c := range failed.Result.Content {
			if c.Text() == "" {
				passed.Content = append(passed.Content, c)
			}
		}
	}
	if t.output != nil {
		var misfit error
		if passed.Structured, _, misfit = t.output.CheckResult(ctx, passed.Structured); misfit != nil {
			passed.Structured = nil
		}
	}
	passed.Meta = maps.Clone(passed.Meta)
	maps.DeleteFunc(passed.Meta, func(key string, _ json.RawMessage) bool {
		owner, _, _ := strings.Cut(key, "/")
		return key != spec.MetaError && (owner == "io.modelcontextprotocol" || owner == "io.github.mcptaskgen")
	})
	return &passed
}

// Codes that JSON-RPC and MCP reserve. A client may take one of a handler for an error of the protocol.
const firstReserved, lastReserved = -32768, -32000

// passedCodes are reserved codes that a handler may use: they tell a client what to do.
var passedCodes = []int{
	mcptask.CodeInvalidParams, mcptask.CodeInternalError, spec.CodeMissingClientCapability,
	-32042, // a person has to visit a page first, in 2025-11-25
}

// replaceReserved returns a handler's JSON-RPC error with the code of an internal error if its own code is reserved. The
// log says so once for each code. The handlers of requests other than tools/call, and those of an SDK, may use all codes.
func (b *Backend) replaceReserved(t *registeredTool, e *mcptask.Error) *mcptask.Error {
	_, isAdopted := t.service.Impl.(interface{ Adopted() })
	switch {
	case e.Code < firstReserved || e.Code > lastReserved, slices.Contains(passedCodes, e.Code):
		return e
	case t.IsBare || isAdopted:
		return e
	}
	type reserved int
	if _, known := b.attached.LoadOrStore(reserved(e.Code), nil); !known {
		b.logger.Error("a handler returned an error with a reserved code, which is replaced by -32603: use one outside of -32768 to -32000",
			"tool", t.Spec.Name, "code", e.Code, "error", e.Message)
	}
	replaced := *e
	replaced.Code = mcptask.CodeInternalError
	return &replaced
}

// checkResult checks the structured content of a handler's result, and returns the result with the nil lists and maps in
// it as the tool's output schema has them. With an error, it also returns the properties that do not fit.
func (t *registeredTool) checkResult(ctx context.Context, result *mcptask.Result) (plain *mcptask.Result, misfits []string, err error) {
	structured, misfits, err := t.output.CheckResult(ctx, result.Structured)
	if err != nil || bytes.Equal(structured, result.Structured) {
		return result, misfits, err
	}
	changed := *result // the handler may keep and share its own
	changed.Structured, changed.Content = structured, slices.Clone(result.Content)
	for i, c := range changed.Content {
		if c.Text() == string(result.Structured) { // which it repeats for clients that read only text
			changed.Content[i] = mcptask.TextContent(string(structured))
		}
	}
	return &changed, nil, nil
}

// encodeResult writes a result as JSON. The result of a raw tool is its structured
// content.
func encodeResult(raw bool, result *mcptask.Result) (json.RawMessage, error) {
	if !raw {
		return value.Marshal(result)
	}
	if len(result.Structured) == 0 {
		return nil, cause.ErrNoResult
	}
	return value.Marshal(result.Structured) // checks it and writes it as one line
}

// errUnbounded is the outcome of a result that would cost its readers too much.
var errUnbounded = mcptask.Errorf(mcptask.CodeInternalError, "the tool's result has more than %d objects and arrays within each other, or a number of more than %d characters or with an exponent that is not from %d to %d",
	validate.MaxDepth, validate.MaxNumber, validate.MinExponent, validate.MaxExponent)

// isBounded reports whether all parts of an encoded result are within the bounds of arguments. isChecked says
// that a schema has checked the structured content.
func isBounded(r *mcptask.Result, isChecked bool) bool {
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

// repairOutcome makes a handler's outcome fit to be stored and sent: valid JSON in UTF-8, of one line. Only the broken
// parts are lost.
func (b *Backend) repairOutcome(tool string, task *mcptask.Task, o *taskstore.Outcome) *taskstore.Outcome {
	switch {
	case o.Error != nil:
		e := *o.Error
		if len(e.Data) > 0 && (!json.Valid(e.Data) || !validate.Bounded(e.Data)) {
			b.Notice(slog.LevelError, "the data of a handler's error is not JSON, or beyond the bounds of a result", "tool", tool, "task", taskstore.LogID(task.Principal(), task.ID()))
			e.Data = nil
		}
		e.Message = strings.ToValidUTF8(e.Message, "\uFFFD")
		e.Data = repairUTF8(e.Data)
		return &taskstore.Outcome{Kind: o.Kind, Error: &e}
	case o.Kind == taskstore.OutcomeResult:
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
func (b *Backend) limitOutcome(ctx context.Context, caller Caller, id, tool string, o *taskstore.Outcome) *taskstore.Outcome {
	if most := b.options.Limits.Result; o.Size() > most {
		return &taskstore.Outcome{Kind: taskstore.OutcomeError, Error: b.Limited(ctx, caller, "result", most, "tool", tool, "task", taskstore.LogID(caller.Principal, id))}
	}
	return o
}

// readFirstText returns the first text in the content blocks of a tool's result,
// or "".
func readFirstText(result json.RawMessage) string {
	var r struct {
		Content []struct{ Type, Text string } `json:"content"`
	}
	_ = json.Unmarshal(result, &r) // any other JSON has no text
	for _, block := range r.Content {
		if block.Type == "text" {
			return block.Text
		}
	}
	return ""
}
