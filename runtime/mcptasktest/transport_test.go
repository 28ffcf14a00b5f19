package mcptasktest

import (
	"net/http"
	"testing"
)

// TestHandlerThatEndsAtOnce checks that a reply is read even if its handler ends at once.
func TestHandlerThatEndsAtOnce(t *testing.T) {
	wire := &handlerTransport{handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })}
	for range 20_000 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://mcptasktest/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := wire.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	wire.requests.Wait()
}
