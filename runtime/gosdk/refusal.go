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

// refusal is what HTTP says of a request, for who sent it.
type refusal struct {
	after time.Duration // where it was refused
	taken bool          // it was not, and the answer is to come
	id    json.RawMessage
	// tooLong is set, beside who sent it, where the answer was.
	tooLong atomic.Bool
}

// refusalOf is the refusal in the context of a request of ours, a new one for any
// other.
func refusalOf(ctx context.Context) *refusal {
	if note, ok := ctx.Value(refusalKey{}).(*refusal); ok {
		return note
	}
	return &refusal{}
}

// unanswered is the end of a session in which a request was taken.
type unanswered struct{ error }

func (e unanswered) Unwrap() error { return e.error }

// refusalKey is the key of the refusal in the context of a request.
type refusalKey struct{}

// retryLater is an error with the time that the server asks for.
type retryLater struct {
	error
	after time.Duration
}

func (e retryLater) Unwrap() error { return e.error }

// RetryAfter is how long the server wants to be left alone.
func (e retryLater) RetryAfter() time.Duration { return e.after }

// refused reads a response that says "too many" or "not now". The SDK drops the
// JSON-RPC error of the first, with the limit that was hit, and takes some of
// the second for the end of the session.
func refused(r *http.Request, response *http.Response) (*http.Response, error) {
	note := refusalOf(r.Context())
	if response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError {
		note.taken = response.StatusCode < http.StatusMultipleChoices
		return response, nil
	}
	note.after = retryAfter(response.Header.Get("Retry-After"))
	body, err := io.ReadAll(io.LimitReader(response.Body, captureLimit))
	_ = response.Body.Close() // it is read
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

// sessionLost takes the text out of a response that says that the session is not
// there: the SDK knows that by its status, but where the text is a JSON-RPC error,
// as that of our own servers is, it takes it for the answer to the request.
func sessionLost(r *http.Request, response *http.Response) {
	if response.StatusCode != http.StatusNotFound || r.Header.Get("Mcp-Session-Id") == "" {
		return
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, captureLimit))
	_ = response.Body.Close() // it is read
	var m struct {
		Error *mcptask.Error `json:"error"`
	}
	if err != nil || json.Unmarshal(body, &m) != nil || m.Error == nil || m.Error.Code != mcptask.CodeMethodNotFound {
		body = nil
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.ContentLength = int64(len(body))
}

// retryAfter reads the header of that name: seconds, or a time.
func retryAfter(text string) time.Duration {
	after := time.Duration(0)
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		after = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		after = time.Until(at)
	}
	return min(max(after, 0), longestRetry)
}
