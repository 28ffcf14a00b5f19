package gateway

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// statusRecorder is a response that notes every status.
type statusRecorder struct {
	*httptest.ResponseRecorder
	statuses []int
}

// WriteHeader implements http.ResponseWriter.
func (r *statusRecorder) WriteHeader(status int) { r.statuses = append(r.statuses, status) }

// TestSDKResponse checks that an informational response does not count as the beginning of the
// SDK's stream, and that nothing is written after the end.
func TestSDKResponse(t *testing.T) {
	w := &statusRecorder{ResponseRecorder: httptest.NewRecorder()}
	r, opened := newSDKResponse(w), 0
	r.open = func() { opened++ }
	r.WriteHeader(http.StatusEarlyHints)
	r.Header().Set("Content-Type", "text/event-stream")
	r.WriteHeader(http.StatusOK)
	const event = "data: 1\n\n"
	_, _ = r.Write([]byte(event))
	r.end()
	_, _ = r.Write([]byte(event))
	if !slices.Equal(w.statuses, []int{http.StatusEarlyHints, http.StatusOK}) || opened != 1 || w.Body.String() != event {
		t.Errorf("statuses %v, opened %d times: %q", w.statuses, opened, w.Body)
	}
}
