package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
)

// Each benchmark sends its requests in turn with those of a floor, and reports
// the ratio of the rates as of-floor: a machine that is slow for a while is slow
// for both.

// posts is one request, again and again.
type posts struct {
	url     string
	headers http.Header
	body    string
}

// echo is the floor of what answers JSON over HTTP: a handler that decodes the
// body and encodes it again.
func (p posts) echo(b *testing.B) posts {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var v any
		if json.NewDecoder(r.Body).Decode(&v) == nil {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v)
		}
	}))
	b.Cleanup(server.Close)
	return posts{server.URL, p.headers, p.body}
}

// beside sends work b.N times, and floor as often.
func (p posts) beside(b *testing.B, floor posts) {
	b.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	floor.send(b, client, 64) // the connections are there, and the caches warm
	p.send(b, client, 64)
	const rounds = 16
	var floorTime time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for round := range rounds {
		n := b.N*(round+1)/rounds - b.N*round/rounds
		b.StopTimer()
		began := time.Now()
		floor.send(b, client, n)
		floorTime += time.Since(began)
		b.StartTimer()
		p.send(b, client, n)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	b.ReportMetric(float64(b.N)/floorTime.Seconds(), "floor-req/s")
	b.ReportMetric(float64(floorTime)/float64(b.Elapsed()), "of-floor")
}

// send sends so many requests from several connections.
func (p posts) send(b *testing.B, client *http.Client, n int) {
	var left atomic.Int64
	left.Store(int64(n))
	var sending sync.WaitGroup
	for range 16 {
		sending.Go(func() {
			for {
				id := left.Add(-1) // a session's requests under way have IDs of their own
				if id < 0 {
					return
				}
				body := strings.Replace(p.body, `"id":1,`, fmt.Sprintf(`"id":%d,`, id), 1)
				r, err := http.NewRequest(http.MethodPost, p.url, strings.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				wiretest.SetHeaders(r, p.headers)
				response, err := client.Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				answer, _ := io.ReadAll(response.Body)
				_ = response.Body.Close()
				if response.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"error"`)) {
					b.Errorf("HTTP %d: %s", response.StatusCode, answer)
					return
				}
			}
		})
	}
	sending.Wait()
}

// BenchmarkTasksGet polls a task beside a bare echo.
func BenchmarkTasksGet(b *testing.B) {
	b.Run(mcptask.Revision20260728, func(b *testing.B) {
		url, _ := wiretest.Serve(b, mcptask.Options{})
		id := wiretest.CreateModern(b, url)
		p := posts{url, wiretest.ModernHeaders("tasks/get", id), wiretest.ModernBody("tasks/get", fmt.Sprintf(`"taskId":%q`, id))}
		p.beside(b, p.echo(b))
	})
	b.Run(mcptask.Revision20251125, func(b *testing.B) {
		url, _ := wiretest.Serve(b, mcptask.Options{})
		headers := wiretest.LegacyHeaders(b, url)
		created := wiretest.Post(b, url, headers, wiretest.LegacyBody("tools/call", `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"endless"},"task":{}`))
		var task struct {
			Task struct{ TaskID string } `json:"task"`
		}
		created.Result(b, &task)
		p := posts{url, headers, wiretest.LegacyBody("tasks/get", fmt.Sprintf(`"taskId":%q`, task.Task.TaskID))}
		p.beside(b, p.echo(b))
	})
}

// BenchmarkTasksList reads the first page of 100,000 tasks; its floor does so
// with 1,000.
func BenchmarkTasksList(b *testing.B) {
	list := func(tasks int) posts {
		store := mcptask.NewMemoryStore()
		now := time.Now().Truncate(time.Microsecond)
		for i := range tasks {
			at := now.Add(time.Duration(i) * time.Microsecond)
			if _, err := store.Create(b.Context(), mcptask.Record{
				ID: fmt.Sprintf("%026d", i), Principal: "alice", Phase: mcptask.PhaseQueued, CreatedAt: at, UpdatedAt: at, ExpiresAt: at.Add(time.Hour),
				Worker: "another", LeaseUntil: at.Add(time.Hour),
			}, mcptask.Quota{}); err != nil {
				b.Fatal(err)
			}
		}
		url, _ := wiretest.Serve(b, mcptask.Options{Store: store, Principal: func(context.Context) (string, error) { return "alice", nil }})
		return posts{url, wiretest.LegacyHeaders(b, url), wiretest.LegacyBody("tasks/list", "")}
	}
	list(100_000).beside(b, list(1000))
}

type runInput struct {
	Repository string `json:"repository"`
	Branch     string `json:"branch"`
}

// BenchmarkCreateTask makes tasks through the SDK, beside a plain call of a tool
// of the bare SDK that takes the same arguments.
func BenchmarkCreateTask(b *testing.B) {
	const params = `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"refused"}`
	bare := func(b *testing.B, stateless bool) string {
		sdk := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1.0.0"}, nil)
		mcp.AddTool(sdk, &mcp.Tool{Name: "run_pipeline"}, func(context.Context, *mcp.CallToolRequest, runInput) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
		})
		server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
		b.Cleanup(server.Close)
		return server.URL
	}
	unlimited := wiretest.NoPollLimits
	unlimited.Tasks, unlimited.Running = math.MaxInt32, math.MaxInt32
	b.Run(mcptask.Revision20260728, func(b *testing.B) {
		url, _ := wiretest.Serve(b, mcptask.Options{Limits: unlimited, Concurrency: 4096})
		p := posts{url, wiretest.ModernHeaders("tools/call", "run_pipeline"), wiretest.ModernBody("tools/call", params)}
		p.beside(b, posts{bare(b, true), p.headers, p.body})
	})
	b.Run(mcptask.Revision20251125, func(b *testing.B) {
		url, _ := wiretest.Serve(b, mcptask.Options{Limits: unlimited, Concurrency: 4096})
		plain := bare(b, false)
		p := posts{url, wiretest.LegacyHeaders(b, url), wiretest.LegacyBody("tools/call", params+`,"task":{}`)}
		p.beside(b, posts{plain, wiretest.LegacyHeaders(b, plain), wiretest.LegacyBody("tools/call", params)})
	})
}
