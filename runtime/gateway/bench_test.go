package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// BenchmarkParse reads the message of the polling path.
func BenchmarkParse(b *testing.B) {
	body := []byte(`{"jsonrpc":"2.0","id":12,"method":"tasks/get","params":{"taskId":"NOSUCHTASKNOSUCHTASKNOSUCH",` + taskMeta + `}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseMessage(body); err != nil {
			b.Fatal(err)
		}
	}
}

// benchedGateway serves one task tool. The SDK behind the gateway reads each request and
// gives the same answer to all of them, so that a benchmark measures the gateway alone.
func benchedGateway(b *testing.B) *Gateway {
	b.Helper()
	sdk := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
	return New(Config{Server: newServer(b, taskserver.Options{}, idleTool()).Backend(), Stateful: sdk, Stateless: sdk})
}

// benchArguments returns arguments of about so many bytes. They have many small values, as a list of
// records has.
func benchArguments(bytes int) string {
	const record = `{"name":"a file","path":"src/main/file.go","size":12345,"changed":true}`
	return `{"files":[` + strings.Repeat(record+",", bytes/(len(record)+1)) + record + `]}`
}

func benchCalls(b *testing.B, g *Gateway, params string, headers ...string) {
	b.Helper()
	for _, kB := range []int{1, 100} {
		b.Run(fmt.Sprintf("%dkB", kB), func(b *testing.B) {
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":` + benchArguments(kB<<10) + params + `}}`
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				r := newRequest(b.Context(), http.MethodPost, body, headers...)
				if w := serve(g, r); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"result"`) {
					b.Fatalf("HTTP %d: %s", w.Code, w.Body)
				}
			}
		})
	}
}

// BenchmarkModernCall passes calls of a task tool in 2026-07-28 to the SDK.
func BenchmarkModernCall(b *testing.B) {
	benchCalls(b, benchedGateway(b), `,`+taskMeta, versionHeader, mcptask.Revision20260728, methodHeader, "tools/call", nameHeader, "t")
}

// BenchmarkLegacyCall passes calls of a task tool in a session of 2025-11-25 to the SDK.
func BenchmarkLegacyCall(b *testing.B) {
	g := benchedGateway(b)
	openSession(b, g, mcptask.Revision20251125, "")
	benchCalls(b, g, `,"task":{}`, sessionHeader, "s")
}
