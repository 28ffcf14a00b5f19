package calls

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Exit codes of the commands that call a server.
const (
	ExitUsage       = 2 // also an error that has no code of its own
	ExitDenied      = 3
	ExitUnreachable = 4
	ExitFailed      = 5 // the tool, or the server, says that it failed
	ExitCancelled   = 6
	ExitGone        = 7  // expired, not known, or its worker was lost
	ExitAsks        = 8  // an answer is needed
	ExitTooMany     = 9  // the server has had too many requests
	ExitMalformed   = 10 // the server's answer cannot be read
	ExitTimeout     = 124
	ExitInterrupted = 130
)

// Failure is the error of a command.
type Failure struct {
	// Code is the exit code.
	Code int
	// Kind names the failure for programs.
	Kind string
	Err  error
	// Task is the task that goes on, or that has failed. It may be "".
	Task string
	// Question is the question that needs an answer, or nil.
	Question *Question
}

// Error implements error.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Question is the JSON form of a question.
type Question struct {
	Key     string          `json:"key,omitempty"`
	Type    string          `json:"type,omitempty"`
	Method  string          `json:"method"`
	Message string          `json:"message"`
	URL     string          `json:"url,omitempty"`
	Schema  json.RawMessage `json:"schema,omitempty"`
}

// newQuestion returns the JSON form of a question.
func newQuestion(q mcptask.Question) *Question {
	return &Question{q.Key, q.Input, q.Method, q.Message, q.URL, q.Schema}
}

// JSON returns the failure in one line.
func (f *Failure) JSON() string {
	var line struct {
		Error struct {
			Code     string    `json:"code"`
			Message  string    `json:"message"`
			Exit     int       `json:"exit"`
			Task     string    `json:"task,omitempty"`
			Question *Question `json:"question,omitempty"`
		} `json:"error"`
	}
	line.Error.Code, line.Error.Message, line.Error.Exit = f.Kind, f.Err.Error(), f.Code
	line.Error.Task, line.Error.Question = f.Task, f.Question
	text, err := json.Marshal(line)
	if err != nil { // a question's schema that is not JSON
		line.Error.Question = nil
		text, _ = json.Marshal(line)
	}
	return string(text)
}

// usage returns the failure for an error of the person's.
func usage(err error) *Failure { return &Failure{Code: ExitUsage, Kind: "usage", Err: err} }

// describeFailure returns the failure in err, or else one for err. task is the task that it is about, or "".
func describeFailure(err error, task string) *Failure {
	var failure *Failure
	if errors.As(err, &failure) {
		return failure
	}
	f := &Failure{Err: withoutSubject(err), Task: task}
	var tool *mcptask.ToolError
	var wire *mcptask.Error
	var interrupted interruption
	switch {
	case errors.As(err, &interrupted):
		f.Code, f.Kind = interrupted.code(), "interrupted"
	case errors.Is(err, mcptask.ErrCancelled):
		f.Code, f.Kind = ExitCancelled, "cancelled"
	case errors.Is(err, mcptask.ErrExpired), errors.Is(err, mcptask.ErrNotFound):
		f.Code, f.Kind = ExitGone, "gone"
	case errors.Is(err, mcptask.ErrWorkerLost):
		f.Code, f.Kind = ExitGone, "worker_lost"
	case errors.As(err, &tool):
		f.Code, f.Kind = ExitFailed, "tool_failed"
	case isTooMany(err):
		f.Code, f.Kind = ExitTooMany, "too_many_requests"
		f.Err = fmt.Errorf("the server has had too many requests: try again later: %w", withoutSteps(f.Err))
	case errors.As(err, &wire):
		f.Code, f.Kind = ExitFailed, "server_error"
	case isDenied(err):
		f.Code, f.Kind = ExitDenied, "denied"
		f.Err = fmt.Errorf("%w; --token-env, --bearer or --header sends what the server asks for", withoutSteps(err))
	case malformed.MatchString(err.Error()):
		f.Code, f.Kind = ExitMalformed, "malformed"
		f.Err = fmt.Errorf("the server's answer is malformed: %w", withoutSteps(f.Err))
	default:
		f.Code, f.Kind, f.Err = ExitUnreachable, "unreachable", withoutSteps(f.Err)
	}
	return f
}

// isTooMany reports whether a server refuses a request because there were too many. Without an error of the protocol, the SDK
// and package gosdk say so only in words.
func isTooMany(err error) bool {
	var wire *mcptask.Error
	if errors.As(err, &wire) {
		limit := wire.Limit()
		return limit == "polls" || limit == "lists"
	}
	text := err.Error()
	return strings.Contains(text, http.StatusText(http.StatusTooManyRequests)) || strings.Contains(text, "HTTP status 429")
}

// malformed matches the errors of answers that cannot be read. The SDK says so only in words.
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
var sdkSteps = regexp.MustCompile(`(?s)^gosdk: connect to .* in [-\w]+(?:, then [-\w]+)?: |^.*(?:calling|sending) "[^"]*": |^.*: (the server(?: has| wrote|'s standard output cannot) .*)$| \(ClientOptions\..*\)$`)

// withoutSteps returns a transport error without what only concerns the programmer of a client.
func withoutSteps(err error) error {
	var transport *url.Error
	if errors.As(err, &transport) {
		return fmt.Errorf("the server cannot be reached: %w", transport.Err)
	}
	words := err.Error()
	for sdkSteps.MatchString(words) {
		words = sdkSteps.ReplaceAllString(words, "$1")
	}
	return reworded{err, words}
}

// isDenied reports whether a server wants to know who calls. The SDK says so only in words.
func isDenied(err error) bool {
	text := err.Error()
	return strings.Contains(text, http.StatusText(http.StatusUnauthorized)) || strings.Contains(text, http.StatusText(http.StatusForbidden))
}
