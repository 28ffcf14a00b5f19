package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Exit codes of the commands that call a server.
const (
	exitUsage       = 2 // also an error that has no code of its own
	exitDenied      = 3
	exitUnreachable = 4
	exitFailed      = 5 // the tool or the server reports a failure
	exitCancelled   = 6
	exitGone        = 7  // expired, not known, or its worker was lost
	exitAsks        = 8  // an answer is needed
	exitTooMany     = 9  // the server has had too many requests
	exitMalformed   = 10 // the server's answer cannot be read
	exitTimeout     = 124
	exitInterrupted = 130
)

// failure is the error of a command.
type failure struct {
	error
	code int    // the exit code
	kind string // names the failure for programs
	task string // the task that goes on, or that has failed, or ""
	// question is the question that needs an answer, or nil.
	question *question
	// cause is the error of the tool or the server that has a code, or nil.
	cause *codedError
}

// codedError is the JSON form of an error with a code: the text of a tool's, or the number of a server's.
type codedError struct {
	Code any             `json:"code"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.error }

// question is the JSON form of a question.
type question struct {
	Key     string          `json:"key,omitempty"`
	Type    string          `json:"type,omitempty"`
	Method  string          `json:"method"`
	Message string          `json:"message"`
	URL     string          `json:"url,omitempty"`
	Schema  json.RawMessage `json:"schema,omitempty"`
}

// newQuestion returns the JSON form of a question.
func newQuestion(q mcptask.Question) *question {
	return &question{q.Key, q.Input, q.Method, q.Message, q.URL, q.Schema}
}

// encode returns the failure as JSON in one line.
func (f *failure) encode() string {
	type fields struct {
		Code     string      `json:"code"`
		Message  string      `json:"message"`
		Exit     int         `json:"exit"`
		Task     string      `json:"task,omitempty"`
		Question *question   `json:"question,omitempty"`
		Cause    *codedError `json:"cause,omitempty"`
	}
	line := map[string]fields{"error": {f.kind, f.Error(), f.code, f.task, f.question, f.cause}}
	text, err := json.Marshal(line)
	if err != nil { // a question's schema that is not JSON
		line["error"] = fields{f.kind, f.Error(), f.code, f.task, nil, f.cause}
		text, _ = json.Marshal(line)
	}
	return string(text)
}

// usageFailure returns the failure for an error of the person's.
func usageFailure(err error) *failure { return &failure{error: err, code: exitUsage, kind: "usage"} }

// describeFailure returns the failure in err, or else one for err. task is the task that it is about, or "".
func describeFailure(err error, task string) *failure {
	var known *failure
	if errors.As(err, &known) {
		return known
	}
	f := &failure{error: withoutSubject(err), task: task}
	var tool *mcptask.ToolError
	var wire *mcptask.Error
	var interrupted interruption
	if errors.As(err, &wire) {
		f.cause = &codedError{wire.Code, wire.Data}
	}
	switch {
	case errors.As(err, &interrupted):
		f.code, f.kind = interrupted.code(), "interrupted"
	case errors.Is(err, mcptask.ErrCancelled):
		f.code, f.kind = exitCancelled, "cancelled"
	case errors.Is(err, mcptask.ErrExpired), errors.Is(err, mcptask.ErrNotFound):
		f.code, f.kind = exitGone, "gone"
	case errors.Is(err, mcptask.ErrWorkerLost):
		f.code, f.kind = exitGone, "worker_lost"
	case errors.Is(err, mcptask.ErrDeadline):
		f.code, f.kind = exitFailed, "deadline"
	case errors.Is(err, mcptask.ErrChanged):
		f.code, f.kind, f.error = exitFailed, "declaration_changed", fmt.Errorf("%w; call the tool again with arguments that it takes now", f.error)
	case errors.As(err, &tool):
		f.code, f.kind = exitFailed, "tool_failed"
		if code := tool.ToolErrorCode(); code != "" {
			f.cause = &codedError{code, tool.Data()}
			f.error = fmt.Errorf("%w (code %s)", f.error, code)
		}
	case isTooMany(err):
		f.code, f.kind = exitTooMany, "too_many_requests"
		again := "later"
		var wait interface{ RetryAfter() time.Duration }
		if errors.As(err, &wait) {
			again = "in " + wait.RetryAfter().Round(time.Second).String()
		}
		f.error = fmt.Errorf("the server has had too many requests: try again %s: %w", again, withoutSteps(f.error))
	case slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden}, statusOf(err)):
		f.code, f.kind, f.error = exitDenied, "denied", withoutSteps(err)
	case wire != nil:
		f.code, f.kind = exitFailed, "server_error"
	case malformed.MatchString(err.Error()):
		f.code, f.kind, f.error = exitMalformed, "malformed", withoutSteps(f.error)
		if !strings.Contains(f.Error(), "is malformed") {
			f.error = fmt.Errorf("the server's answer is malformed: %w", f.error)
		}
	default:
		f.code, f.kind, f.error = exitUnreachable, "unreachable", withoutSteps(f.error)
	}
	return f
}

// statusOf returns the HTTP status with which a server refused a request, or 0.
func statusOf(err error) int {
	var refusal interface{ StatusCode() int }
	if errors.As(err, &refusal) {
		return refusal.StatusCode()
	}
	return 0
}

// isTooMany reports whether a server refuses a request because there were too many.
func isTooMany(err error) bool {
	var wire *mcptask.Error
	if errors.As(err, &wire) {
		limit := wire.Limit()
		return limit == "polls" || limit == "lists"
	}
	return statusOf(err) == http.StatusTooManyRequests
}

// malformed matches the errors of answers that cannot be read. Only the text of the SDK shows it.
var malformed = regexp.MustCompile(`is malformed|malformed message|failed to decode response|unmarshal|invalid message version tag|unsupported content type`)

// reworded is an error in other words.
type reworded struct {
	error
	words string
}

// Error implements error.
func (r reworded) Error() string { return r.words }

// Unwrap returns the error.
func (r reworded) Unwrap() error { return r.error }

// withoutSubject returns an error of a task that the person has named by its ID.
func withoutSubject(err error) error {
	if words, ok := strings.CutPrefix(err.Error(), "the task: "); ok {
		return reworded{err, words}
	}
	return err
}

// sdkSteps matches the steps of the SDK before an error, and the names of options of Go programs after it.
var sdkSteps = regexp.MustCompile(`(?s)^gosdk: connect to .* in [-\w]+(?:, then [-\w]+)?: |^gosdk: the server sent a malformed message: |^mcptask: |^.*(?:calling|sending) "[^"]*": |^.*: (the server(?: has| wrote|'s standard output cannot) .*)$| \(ClientOptions\..*\)$`)

// mostSteps bounds how many steps lie before one error.
const mostSteps = 10

// withoutSteps returns a transport error without the parts that only concern the programmer of a
// client.
func withoutSteps(err error) error {
	var transport *url.Error
	if errors.As(err, &transport) {
		return fmt.Errorf("the server cannot be reached: %w", transport.Err)
	}
	words := err.Error()
	for range mostSteps { // a server's text may have any number of what looks like steps
		words = sdkSteps.ReplaceAllString(words, "$1")
	}
	return reworded{err, words}
}
