package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// TestHeadersSayOneThing checks that a request is refused if a protocol header occurs twice with
// different values, because two readers might see different requests.
func TestHeadersSayOneThing(t *testing.T) {
	server, err := mcptask.NewServer(mcptask.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	passed := 0
	behind := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed++ })
	g := New(Config{Server: server, Stateful: behind, Stateless: behind})
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	const modern = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, request := range []struct{ method, body string }{
		{"POST", ping}, {"POST", modern}, {"POST", "[" + ping + "]"}, {"POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`}, {"GET", ""}, {"DELETE", ""},
	} {
		for name, values := range map[string][]string{
			"Mcp-Session-Id":       {"mine", "yours"},
			"MCP-Protocol-Version": {"2026-07-28", "2025-11-25"},
			"mcp-method":           {"tools/call", "tasks/cancel"},
			"Mcp-Name":             {"x", ""},
			"Mcp-Param-Region":     {"eu", "us"},
		} {
			r := httptest.NewRequest(request.method, "/", strings.NewReader(request.body))
			r.Header.Set("Content-Type", "application/json")
			for _, value := range values {
				r.Header.Add(name, value)
			}
			w := httptest.NewRecorder()
			if g.ServeHTTP(w, r); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "stands twice") || passed > 0 {
				t.Errorf("%s %s with two %s: %d %s", request.method, request.body, name, w.Code, w.Body)
			}
			passed = 0
		}
	}
	r := httptest.NewRequest("POST", "/", strings.NewReader(modern))
	r.Header.Set("Content-Type", "application/json")
	r.Header["Mcp-Protocol-Version"] = []string{"2026-07-28", "2026-07-28"} // a proxy's, and harmless
	r.Header["X-Forwarded-For"] = []string{"a", "b"}
	w := httptest.NewRecorder()
	if g.ServeHTTP(w, r); passed != 1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
