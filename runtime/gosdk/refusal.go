package gosdk

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// refusal tells the sender of a request what HTTP says about it.
type refusal struct {
	after time.Duration // how long to wait, if the server refused the request
	taken bool          // the server has taken the request and will answer
	id    json.RawMessage
	// polled is the answer, if the poller has sent the request.
	polled *polled
	// tooLong is set, concurrently with the sender, if the answer is too long.
	tooLong atomic.Bool
}

// refusalFrom returns the refusal in the context of one of our requests, or a new one for any other
// request.
func refusalFrom(ctx context.Context) *refusal {
	if note, ok := ctx.Value(refusalKey{}).(*refusal); ok {
		return note
	}
	return &refusal{}
}

// unansweredError is the end of a session in which a request was taken but not answered.
type unansweredError struct{ error }

func (e unansweredError) Unwrap() error { return e.error }

// refusalKey is the context key of the refusal of a request.
type refusalKey struct{}

// retryLaterError is an error with the pause that the server asks for.
type retryLaterError struct {
	error
	after time.Duration
}

func (e retryLaterError) Unwrap() error { return e.error }

// RetryAfter returns the pause.
func (e retryLaterError) RetryAfter() time.Duration { return e.after }

// readRefusal reads a response with the status 429 or 5xx. For 429 the SDK drops the JSON-RPC error
// with the limit. Some 5xx make it end the session.
func readRefusal(r *http.Request, response *http.Response) (*http.Response, error) {
	note := refusalFrom(r.Context())
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
		note.taken = response.StatusCode < http.StatusMultipleChoices
		return response, nil
	}
	note.after = parseRetryAfter(response.Header.Get("Retry-After"))
	body, err := io.ReadAll(io.LimitReader(response.Body, captureLimit))
	_ = response.Body.Close() // the body has been read
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	var m struct {
		Error *mcptask.Error `json:"error"`
	}
	switch {
	case json.Unmarshal(body, &m) != nil || m.Error == nil || m.Error.Code == 0:
		return nil, fmt.Errorf("the server answered with HTTP status %d", response.StatusCode)
	case response.StatusCode == http.StatusTooManyRequests:
		response.StatusCode, response.Status = http.StatusOK, "200 OK"
		response.Header.Set("Content-Type", "application/json")
	}
	return response, nil
}

// stripLostSession removes the body of a response whose status says that the session is lost. The
// SDK knows that by the status. But if the body is a JSON-RPC error, as from our own servers, the
// SDK takes it for the answer to the request.
func stripLostSession(r *http.Request, response *http.Response) {
	if response.StatusCode != http.StatusNotFound || r.Header.Get("Mcp-Session-Id") == "" {
		return
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, captureLimit))
	_ = response.Body.Close() // the body has been read
	var m struct {
		Error *mcptask.Error `json:"error"`
	}
	if err != nil || json.Unmarshal(body, &m) != nil || m.Error == nil || m.Error.Code != mcptask.CodeMethodNotFound {
		body = nil
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
}

// parseRetryAfter parses a Retry-After header: seconds, or a time.
func parseRetryAfter(text string) time.Duration {
	after := time.Duration(0)
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		after = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		after = time.Until(at)
	}
	return min(max(after, 0), longestRetry)
}
