package gateway

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

const opened = ": open\n\n"

// TestCallResponse checks how the answer to a call comes to the client, whatever the SDK writes and when.
func TestCallResponse(t *testing.T) {
	const event = "event: message\ndata: {\"id\":1}\n\n"
	for _, c := range []struct {
		name        string
		accept      string
		contentType string // of the SDK's response
		code        int
		answer      string
		after       time.Duration
		wantCode    int
		wantType    string
		want        string
	}{
		{"JSON at once", "text/event-stream", "application/json", 200, `{"id":1}`, 0, 200, "application/json", `{"id":1}`},
		{"JSON later", "text/event-stream", "application/json", 200, "{\n \"id\": 1}\n", time.Second, 200, "text/event-stream", opened + "event: message\ndata: {\"id\":1}\n\n"},
		{"an event at once", "text/event-stream", "text/event-stream", 200, event, 0, 200, "text/event-stream", event},
		{"an event later", "text/event-stream", "text/event-stream", 200, event, 16 * time.Second, 200, "text/event-stream", opened + ": waiting\n\n" + event},
		{"an error at once", "text/event-stream", "text/plain", 404, "no session", 0, 404, "text/plain", "no session"},
		{"an error later", "text/event-stream", "text/plain", 404, "no session", time.Second, 200, "text/event-stream",
			opened + "event: message\n" + `data: {"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"the call was not answered: no session"}}` + "\n\n"},
		{"nothing", "text/event-stream", "", 0, "", time.Second, 200, "text/event-stream",
			opened + "event: message\n" + `data: {"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"the call was not answered: its session has ended"}}` + "\n\n"},
		{"a client that takes no stream", "application/json", "application/json", 200, `{"id":1}`, time.Minute, 200, "application/json", `{"id":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
				r.Header.Set("Accept", c.accept)
				x := &httpExchange{w: boundResponse(w), r: r, m: &message{Message: &wire.Message{ID: []byte("7")}}}
				response := x.respondToCall()
				response.startKeepAlive()
				time.Sleep(c.after)
				if c.code != 0 {
					response.Header().Set("Content-Type", c.contentType)
					response.WriteHeader(c.code)
					_, _ = response.Write([]byte(c.answer))
					response.Flush()
				}
				response.end()
				time.Sleep(time.Hour)
				_, _ = response.Write([]byte("too late"))
				if got := w.Header().Get("Content-Type"); w.Code != c.wantCode || got != c.wantType || w.Body.String() != c.want {
					t.Errorf("%d %s %q, want %d %s %q", w.Code, got, w.Body, c.wantCode, c.wantType, c.want)
				}
			})
		})
	}
}

// TestCallResponseInformed checks that an informational response does not count as the SDK's response.
func TestCallResponseInformed(t *testing.T) {
	w := &statusRecorder{ResponseRecorder: httptest.NewRecorder()}
	p := newSharedResponse(w)
	p.WriteHeader(http.StatusEarlyHints)
	p.WriteHeader(http.StatusNotFound)
	if !slices.Equal(w.statuses, []int{http.StatusEarlyHints, http.StatusNotFound}) {
		t.Errorf("statuses %v", w.statuses)
	}
}

// lateRecorder fails the test if it is used after the handler has returned, as net/http does.
type lateRecorder struct {
	*httptest.ResponseRecorder
	t        *testing.T
	returned bool
}

// Write implements http.ResponseWriter.
func (w *lateRecorder) Write(data []byte) (int, error) {
	if w.returned {
		w.t.Errorf("%q is written late", data)
	}
	return w.ResponseRecorder.Write(data)
}

// SetWriteDeadline implements the interface of http.ResponseController.
func (w *lateRecorder) SetWriteDeadline(time.Time) error {
	if w.returned {
		w.t.Error("a deadline is set late")
	}
	return nil
}

// TestCallResponseEnded checks that a timer that fires at the end of a call leaves its writer alone.
func TestCallResponseEnded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := &lateRecorder{ResponseRecorder: httptest.NewRecorder(), t: t}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		r.Header.Set("Accept", "text/event-stream")
		x := &httpExchange{w: boundResponse(w), r: r, m: &message{Message: &wire.Message{ID: []byte("7")}}}
		response := x.respondToCall()
		response.startKeepAlive()
		response.mu.Lock() // as end does
		time.Sleep(openAfter)
		response.over, w.returned = true, true
		response.mu.Unlock()
		time.Sleep(time.Minute)
	})
}

// TestCallResponseUnread checks that a client that does not read does not hold who writes for ever.
func TestCallResponseUnread(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := memnet.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			x := &httpExchange{w: boundResponse(w), r: r, m: &message{Message: &wire.Message{ID: []byte("7")}}}
			response := x.respondToCall()
			for begun := time.Now(); response.send(make([]byte, 1<<20)); {
				if waited := time.Since(begun); waited > 0 {
					if waited > 2*time.Minute {
						t.Errorf("a write took %v", waited)
					}
					break
				}
			}
			response.end()
		}), nil)
		defer server.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/event-stream")
		client := &http.Client{Transport: memnet.NewTransport()}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		res.Body.Close()
	})
}

// statusRecorder is a response that notes every status.
type statusRecorder struct {
	*httptest.ResponseRecorder
	statuses []int
}

// WriteHeader implements http.ResponseWriter.
func (r *statusRecorder) WriteHeader(status int) { r.statuses = append(r.statuses, status) }

// TestSharedResponse checks that an informational response does not count as the beginning of the
// SDK's stream, and that nothing is written after the end.
func TestSharedResponse(t *testing.T) {
	w := &statusRecorder{ResponseRecorder: httptest.NewRecorder()}
	r, opened := newSharedResponse(w), 0
	r.opened = func() { opened++ }
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
