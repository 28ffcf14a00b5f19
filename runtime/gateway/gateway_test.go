package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// taskMeta is the _meta of a request of 2026-07-28 whose client declares tasks.
const taskMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// newServer returns a server that is closed with the test.
func newServer(t testing.TB, options taskserver.Options, tools ...mcptask.Tool) *taskserver.Server {
	t.Helper()
	var services []mcptask.Tools
	if len(tools) > 0 {
		services = []mcptask.Tools{{Service: "S", Impl: struct{}{}, Tools: tools}}
	}
	server, err := taskserver.New(options, services...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// idleTool returns the tool "t", which can be a task.
func idleTool() mcptask.Tool {
	return mcptask.NewTool(mcptask.ToolSpec{Name: "t", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
		func(context.Context, *mcptask.Task, struct{}) (string, error) { return "", nil })
}

// countPassed returns a gateway, and a count of the requests that reach the SDK behind it.
func countPassed(t testing.TB) (g *Gateway, passed *int) {
	t.Helper()
	passed = new(int)
	sdk := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { *passed++ })
	return New(Config{Server: newServer(t, taskserver.Options{}).Backend(), Stateful: sdk, Stateless: sdk}), passed
}

// openSession opens the session "s". It ends with the test.
func openSession(t testing.TB, g *Gateway, version, capabilities string) *session {
	t.Helper()
	s := &session{id: "s"}
	s.setNegotiated(g, version, []byte(capabilities), nil)
	g.trackSession(httptest.NewRequest(http.MethodPost, "/", nil), s, nil)
	t.Cleanup(func() { g.sessions.end("s") })
	return s
}

// newRequest returns a request with JSON. headers are names and values in turn.
func newRequest(ctx context.Context, method, body string, headers ...string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, method, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// serve returns the response to a request.
func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestLogStaysSmall checks that neither a caller who is refused nor a client on a pipe can fill the
// log.
func TestLogStaysSmall(t *testing.T) {
	const flood, most = 300, 10_000 // bytes of log: a few lines
	bubble.Run(t, "refused principals", func(t *testing.T) {
		var log strings.Builder
		g := New(Config{Server: newServer(t, taskserver.Options{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Principal: func(context.Context) (string, error) {
				return "", errors.New("who are you? " + strings.Repeat("x", 1000))
			},
		}).Backend()})
		ask := func() {
			if w := serve(wirecheck.Handler(t, g), newRequest(t.Context(), http.MethodPost, "")); w.Code != http.StatusForbidden {
				t.Fatal(w.Code)
			}
		}
		for range flood {
			ask()
		}
		time.Sleep(time.Second)
		ask()
		if text := log.String(); len(text) > most || !strings.Contains(text, "without a principal") || !strings.Contains(text, "omitted=299") {
			t.Errorf("%d bytes: %.1000s", len(text), text)
		}
	})
	bubble.Run(t, "a pipe", func(t *testing.T) {
		var log strings.Builder
		p := newPiped(t, newServer(t, taskserver.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}), 0)
		for range flood {
			p.say(`{"jsonrpc":"2.0","result":{}}`)
			p.say(`{"jsonrpc":"1.0","id":1,"result":{}}`)
		}
		if log.Len() > most {
			t.Errorf("%d bytes", log.Len())
		}
		_ = p.in.Close()
	})
}
