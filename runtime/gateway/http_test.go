package gateway

import (
	"context"
	"net/http"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// TestForeignSession checks that nothing from another caller reaches the SDK in a session. Not every
// SDK knows who owns a session.
func TestForeignSession(t *testing.T) {
	g, passed := countPassed(t)
	openSession(t, g, "2025-03-26", "")
	g.principal = func(context.Context) (string, error) { return "another caller", nil }
	for _, request := range []struct {
		method, body string
		want         int
	}{
		{http.MethodPost, ping, http.StatusForbidden},
		{http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, http.StatusForbidden},
		{http.MethodPost, `{"jsonrpc":"2.0","id":1,"result":{}}`, http.StatusForbidden},
		{http.MethodPost, `{"jsonrpc":"2.0","id":"mcptask/TASK/step","result":{"action":"cancel"}}`, http.StatusForbidden},
		{http.MethodPost, `[` + ping + `]`, http.StatusBadRequest},
		{http.MethodGet, "", http.StatusForbidden},
		{http.MethodDelete, "", http.StatusForbidden},
	} {
		w := serve(g, newRequest(t.Context(), request.method, request.body, sessionHeader, "s"))
		if w.Code != request.want || *passed > 0 || g.sessions.get("s") == nil {
			t.Errorf("%s %s: %d %s, %d passed", request.method, request.body, w.Code, w.Body, *passed)
		}
	}
}

// TestErrorsAreShort checks that an error does not repeat a long text of the request.
func TestErrorsAreShort(t *testing.T) {
	g, _ := countPassed(t)
	openSession(t, g, mcptask.Revision20251125, "")
	long := strings.Repeat("ä", 100_000)
	modern := func(method, version string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + strings.Replace(taskMeta, mcptask.Revision20260728, version, 1) + `}}`
	}
	for body, session := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"tasks/` + long + `"}`:               "s",
		`{"jsonrpc":"2.0","id":1,"method":"notifications/tasks/` + long + `"}`: "s",
		modern("tasks/"+long, mcptask.Revision20260728):                        "",
		modern("tasks/get", long):                                              "",
		modern("notifications/tasks/"+long, mcptask.Revision20260728):          "",
	} {
		r := newRequest(t.Context(), http.MethodPost, body)
		if session != "" {
			r.Header.Set(sessionHeader, session)
		}
		if w := serve(wirecheck.Handler(t, g), r); !strings.Contains(w.Body.String(), `"error"`) || w.Body.Len() > 1000 {
			t.Errorf("%.100s: %d, %d bytes: %.200s", body, w.Code, w.Body.Len(), w.Body)
		}
	}
}

// TestHeadersSayOneThing checks that a request is refused if a protocol header occurs twice with
// different values, because two readers might see different requests.
func TestHeadersSayOneThing(t *testing.T) {
	g, passed := countPassed(t)
	const modern = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",` + taskMeta + `}}`
	for _, request := range []struct{ method, body string }{
		{"POST", ping}, {"POST", modern}, {"POST", "[" + ping + "]"}, {"POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`}, {"GET", ""}, {"DELETE", ""},
	} {
		for name, values := range map[string][2]string{
			"Mcp-Session-Id":       {"mine", "yours"},
			"MCP-Protocol-Version": {"2026-07-28", "2025-11-25"},
			"mcp-method":           {"tools/call", "tasks/cancel"},
			"Mcp-Name":             {"x", ""},
			"Mcp-Param-Region":     {"eu", "us"},
		} {
			w := serve(g, newRequest(t.Context(), request.method, request.body, name, values[0], name, values[1]))
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "stands twice") || *passed > 0 {
				t.Errorf("%s %s with two %s: %d %s", request.method, request.body, name, w.Code, w.Body)
			}
			*passed = 0
		}
	}
	// A proxy may repeat a header with the same value, and other headers may differ.
	w := serve(g, newRequest(t.Context(), http.MethodPost, modern, versionHeader, "2026-07-28", versionHeader, "2026-07-28", "X-Forwarded-For", "a", "X-Forwarded-For", "b"))
	if *passed != 1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
