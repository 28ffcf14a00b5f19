package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// A batch of a session that has batches reaches the SDK unless it hides what the gateway answers
// or counts: that would not be counted, or be lost.
func TestBatchHidesNothing(t *testing.T) {
	server, err := mcptask.NewServer(mcptask.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	passed := 0
	behind := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ })
	g := New(Config{Server: server, Stateful: behind, Stateless: behind})
	s := &session{id: "s"}
	s.setNegotiated(g, "2025-03-26", nil)
	g.trackSession(httptest.NewRequest("POST", "/", nil), s, nil)
	defer g.sessions.end("s")
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for body, want := range map[string]int{
		`[` + ping + `]`: http.StatusOK,
		`[]`:             http.StatusOK, // which the SDK refuses
		`[` + ping + `,{"jsonrpc":"2.0","method":"notifications/progress","params":{}},{"jsonrpc":"2.0","id":"x","result":{}}]`: http.StatusOK,
		`[{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}]`:       http.StatusBadRequest,
		`[` + ping + `,{"jsonrpc":"2.0","method":"notifications/tasks","params":{}}]`:                                           http.StatusBadRequest,
		`[{"jsonrpc":"2.0","id":"mcptask/TASK/step","result":{"action":"accept"}}]`:                                             http.StatusBadRequest,
		`[{"jsonrpc":"2.0","id":1,"method":"ping","method":"subscriptions/listen"}]`:                                            http.StatusBadRequest,
		`[[` + ping + `]]`: http.StatusBadRequest,
		`[5]`:              http.StatusBadRequest,
		`[` + strings.Repeat(ping+",", 99) + ping + `]`:  http.StatusOK,
		`[` + strings.Repeat(ping+",", 100) + ping + `]`: http.StatusBadRequest,
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(sessionHeader, "s")
		w := httptest.NewRecorder()
		if g.ServeHTTP(w, r); w.Code != want || passed == 1 != (want == http.StatusOK) {
			t.Errorf("%.200s: %d %s", body, w.Code, w.Body)
		}
		passed = 0
	}
}

// An error does not say again what was too long to be read.
func TestErrorsAreShort(t *testing.T) {
	server, err := mcptask.NewServer(mcptask.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	g := New(Config{Server: server, Stateful: http.NotFoundHandler(), Stateless: http.NotFoundHandler()})
	s := &session{id: "s"}
	s.setNegotiated(g, mcptask.Revision20251125, nil)
	g.trackSession(httptest.NewRequest("POST", "/", nil), s, nil)
	defer g.sessions.end("s")
	long := strings.Repeat("ä", 100_000)
	modern := func(method, version string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientCapabilities":{}}}}`
	}
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tasks/` + long + `"}`, `{"jsonrpc":"2.0","id":1,"method":"notifications/tasks/` + long + `"}`,
		modern("tasks/"+long, "2026-07-28"), modern("tasks/get", long), modern("notifications/tasks/"+long, "2026-07-28"),
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if !strings.Contains(body, "_meta") {
			r.Header.Set(sessionHeader, "s")
		}
		w := httptest.NewRecorder()
		if wirecheck.Handler(t, g).ServeHTTP(w, r); !strings.Contains(w.Body.String(), `"error"`) || w.Body.Len() > 1000 {
			t.Errorf("%.100s: %d, %d bytes: %.200s", body, w.Code, w.Body.Len(), w.Body)
		}
	}
}
