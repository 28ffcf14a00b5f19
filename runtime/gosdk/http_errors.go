package gosdk

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// isTransient reports whether a status comes from a server, or a proxy before it, that may soon work again. The body is
// then not the answer to the request.
func isTransient(status int) bool {
	switch status {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// statusError is the HTTP status of a response without a message.
type statusError int

func (e statusError) Error() string {
	return fmt.Sprintf("the server answered with HTTP status %d (%s)", int(e), http.StatusText(int(e)))
}

// StatusCode returns the status.
func (e statusError) StatusCode() int { return int(e) }

// retryLaterError is an error with the pause that the server asks for.
type retryLaterError struct {
	error
	after time.Duration
}

func (e retryLaterError) Unwrap() error { return e.error }

// RetryAfter returns the pause.
func (e retryLaterError) RetryAfter() time.Duration { return e.after }

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

// maxBegin bounds the beginning of a body that an error repeats, in bytes.
const maxBegin = 100

// describeBody describes the body of a response that is not a message.
func describeBody(response *http.Response, body []byte) string {
	kind := "no content type"
	if named := response.Header.Get("Content-Type"); named != "" {
		kind = fmt.Sprintf("the content type %.60q", named)
	}
	body = bytes.TrimSpace(body)
	begins := fmt.Sprintf("begins with %q", body[:min(len(body), maxBegin)])
	switch {
	case len(body) == 0:
		begins = "is empty"
	case len(body) <= maxBegin:
		begins = fmt.Sprintf("is %q", body)
	}
	return fmt.Sprintf("the answer has the HTTP status %d and %s, and %s", response.StatusCode, kind, begins)
}
