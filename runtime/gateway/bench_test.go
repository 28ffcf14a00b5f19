package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// BenchmarkParse reads the message of the polling path.
func BenchmarkParse(b *testing.B) {
	body := []byte(`{"jsonrpc":"2.0","id":12,"method":"tasks/get","params":{"taskId":"NOSUCHTASKNOSUCHTASKNOSUCH","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := parseMessage(body); err != nil {
			b.Fatal(err)
		}
	}
}

// benchedGateway serves one task tool. The SDK behind the gateway reads each request and
// gives the same answer to all of them, so that a benchmark measures the gateway alone.
func benchedGateway(b *testing.B) *Gateway {
	b.Helper()
	tool := mcptask.NewTool(mcptask.ToolSpec{Name: "t", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
		func(context.Context, *mcptask.Task, struct{}) (string, error) { return "", nil })
	server, err := mcptask.NewServer(mcptask.Options{}, mcptask.Tools{Service: "S", Impl: struct{}{}, Tools: []mcptask.Tool{tool}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	sdk := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
	return New(Config{Server: server, Stateful: sdk, Stateless: sdk})
}

// benchArguments are arguments of about so many bytes: many small values, as in a list of records.
func benchArguments(bytes int) string {
	const record = `{"name":"a file","path":"src/main/file.go","size":12345,"changed":true}`
	return `{"files":[` + strings.Repeat(record+",", bytes/(len(record)+1)) + record + `]}`
}

func benchCalls(b *testing.B, g *Gateway, params string, headers http.Header) {
	b.Helper()
	for _, kB := range []int{1, 100} {
		b.Run(fmt.Sprintf("%dkB", kB), func(b *testing.B) {
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":` + benchArguments(kB<<10) + params + `}}`
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/", strings.NewReader(body))
				for name, values := range headers {
					r.Header[name] = values
				}
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				if g.ServeHTTP(w, r); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"result"`) {
					b.Fatalf("HTTP %d: %s", w.Code, w.Body)
				}
			}
		})
	}
}

// BenchmarkModernCall passes calls of a task tool in 2026-07-28 to the SDK.
func BenchmarkModernCall(b *testing.B) {
	benchCalls(b, benchedGateway(b), `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`,
		http.Header{"Mcp-Protocol-Version": {mcptask.Revision20260728}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"t"}})
}

// BenchmarkLegacyCall passes calls of a task tool in a session of 2025-11-25 to the SDK.
func BenchmarkLegacyCall(b *testing.B) {
	g := benchedGateway(b)
	s := &session{id: "s"}
	s.setNegotiated(g, mcptask.Revision20251125, nil)
	g.trackSession(httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/", nil), s, nil)
	b.Cleanup(func() { g.sessions.end("s") })
	benchCalls(b, g, `,"task":{}`, http.Header{"Mcp-Session-Id": {"s"}})
}
