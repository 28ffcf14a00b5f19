package gosdk_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// The benchmarks stand beside a floor of the same run: an HTTP handler that
// decodes a JSON body and encodes it again. Read the figures as ratios to it.

func BenchmarkFloorJSONEcho(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var v any
		if json.NewDecoder(r.Body).Decode(&v) == nil {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v)
		}
	}))
	defer server.Close()
	body := modernBody("tasks/get", `"taskId":"ABCDEFGHIJKLMNOPQRSTUVWXYZ"`)
	benchmarkPosts(b, server.URL, nil, body)
}

func BenchmarkTasksGet20260728(b *testing.B) {
	url, _ := serve(b, mcptask.Options{})
	id := createModern(b, url)
	headers := modernHeaders("tasks/get", id)
	benchmarkPosts(b, url, headers, modernBody("tasks/get", fmt.Sprintf(`"taskId":%q`, id)))
}

func BenchmarkTasksGet20251125(b *testing.B) {
	url, _ := serve(b, mcptask.Options{})
	headers := http.Header{"Mcp-Protocol-Version": {mcptask.Revision20251125}}
	response := post(b, url, nil, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`)
	headers.Set("Mcp-Session-Id", response.header.Get("Mcp-Session-Id"))
	post(b, url, headers, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	created := post(b, url, headers, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"endless"},"task":{}}}`)
	var task struct {
		Task struct{ TaskID string } `json:"task"`
	}
	created.result(b, &task)
	benchmarkPosts(b, url, headers, fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":%q}}`, task.Task.TaskID))
}

func BenchmarkCreateTask20260728(b *testing.B) {
	url, _ := serve(b, mcptask.Options{Concurrency: 4096})
	benchmarkPosts(b, url, modernHeaders("tools/call", "run_pipeline"),
		modernBody("tools/call", `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"refused"}`))
}

func BenchmarkPlainCall20260728(b *testing.B) {
	url, _ := serve(b, mcptask.Options{})
	benchmarkPosts(b, url, modernHeaders("tools/call", "lint_file"), modernBody("tools/call", `"name":"lint_file","arguments":{"path":"main.go"}`))
}

// benchmarkPosts sends the same request from several connections.
func benchmarkPosts(b *testing.B, url string, headers http.Header, body string) {
	b.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	b.ReportAllocs()
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader([]byte(body)))
			if err != nil {
				b.Error(err)
				return
			}
			setHeaders(r, headers)
			response, err := client.Do(r)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				b.Errorf("HTTP %d", response.StatusCode)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

func setHeaders(r *http.Request, headers http.Header) {
	for name, values := range headers {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
}

func modernHeaders(method, name string) http.Header {
	return http.Header{"Mcp-Protocol-Version": {mcptask.Revision20260728}, "Mcp-Method": {method}, "Mcp-Name": {name}}
}

func modernBody(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, method, params)
}

// createModern starts an endless task and returns its ID.
func createModern(tb testing.TB, url string) string {
	tb.Helper()
	response := post(tb, url, modernHeaders("tools/call", "run_pipeline"),
		modernBody("tools/call", `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"endless"}`))
	var task struct{ TaskID string }
	response.result(tb, &task)
	return task.TaskID
}

// answer is the response to one POST.
type answer struct {
	header http.Header
	body   []byte
}

func post(tb testing.TB, url string, headers http.Header, body string) answer {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		tb.Fatal(err)
	}
	setHeaders(r, headers)
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

// result decodes the result of a JSON or SSE response.
func (a answer) result(tb testing.TB, v any) {
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
