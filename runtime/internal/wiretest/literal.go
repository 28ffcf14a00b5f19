package wiretest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// LegacyHeaders opens a session of 2025-11-25 and returns its headers.
func LegacyHeaders(tb testing.TB, url string) http.Header {
	tb.Helper()
	headers := http.Header{"Mcp-Protocol-Version": {mcptask.Revision20251125}}
	response := Post(tb, url, nil, LegacyBody("initialize", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}`))
	headers.Set("Mcp-Session-Id", response.header.Get("Mcp-Session-Id"))
	Post(tb, url, headers, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return headers
}

// LegacyBody returns a request of 2025-11-25.
func LegacyBody(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params)
}

// SetHeaders sets the headers of a POST.
func SetHeaders(r *http.Request, headers http.Header) {
	for name, values := range headers {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
}

// ModernHeaders returns the headers of a request of 2026-07-28.
func ModernHeaders(method, name string) http.Header {
	return http.Header{"Mcp-Protocol-Version": {mcptask.Revision20260728}, "Mcp-Method": {method}, "Mcp-Name": {name}}
}

// ModernBody returns a request of 2026-07-28.
func ModernBody(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, method, params)
}

// CreateModern starts an endless task and returns its ID.
func CreateModern(tb testing.TB, url string) string {
	tb.Helper()
	response := Post(tb, url, ModernHeaders("tools/call", "run_pipeline"),
		ModernBody("tools/call", `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"endless"}`))
	var task struct{ TaskID string }
	response.Result(tb, &task)
	return task.TaskID
}

// answer is the response to one POST.
type answer struct {
	header http.Header
	body   []byte
}

// Post posts a message and reads the response.
func Post(tb testing.TB, url string, headers http.Header, body string) answer {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		tb.Fatal(err)
	}
	SetHeaders(r, headers)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return answer{response.Header, data}
}

// Result decodes the result of a JSON or SSE response.
func (a answer) Result(tb testing.TB, v any) {
	tb.Helper()
	data := a.body
	if _, after, ok := bytes.Cut(data, []byte("data: ")); ok {
		data, _, _ = bytes.Cut(after, []byte("\n"))
	}
	var message struct {
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal(data, &message); err != nil || message.Error != nil {
		tb.Fatalf("%s: %v", a.body, err)
	}
	if err := json.Unmarshal(message.Result, v); err != nil {
		tb.Fatalf("%s: %v", message.Result, err)
	}
}
