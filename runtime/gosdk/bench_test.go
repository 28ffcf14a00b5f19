package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/oteltask"
)

// Each benchmark takes turns between its requests and those of a floor, and reports the ratio of the rates as of-floor.
// A machine that is slow for a while slows both.

// sender sends n requests, or n times several, on several connections.
type sender interface {
	send(b *testing.B, client *http.Client, n int)
}

// together calls once n times, on several goroutines. No two calls get the same number.
func together(n int, once func(number int64) error) error {
	var left atomic.Int64
	left.Store(int64(n))
	var sending sync.WaitGroup
	failed := make(chan error, 16)
	for range cap(failed) {
		sending.Go(func() {
			for {
				number := left.Add(-1)
				if number < 0 {
					return
				}
				if err := once(number); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	sending.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// serve serves the pipeline's tools on a loopback address. Other tests check each message; it does not.
func serve(b *testing.B, options mcptask.Options) (url string) {
	b.Helper()
	options.Logger = slog.New(slog.DiscardHandler)
	tasks, err := mcptask.NewServer(options, wiretest.AllRevisionsCITools())
	if err != nil {
		b.Fatal(err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	server := httptest.NewServer(gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	b.Cleanup(func() {
		_ = tasks.Close() // handlers that never end are cancelled
		server.Close()
		wiretest.EndSessions(sdk)
	})
	return server.URL
}

// posts is one request, sent many times.
type posts struct {
	url     string
	headers http.Header
	body    string
}

// echo is the floor for anything that answers JSON over HTTP: a handler that decodes the body and encodes it again.
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

// beside sends work b.N times, and floor as often. requests is the number of requests that one send of work makes.
func beside(b *testing.B, work sender, requests int, floor sender) {
	b.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	floor.send(b, client, 64) // the connections are there, and the caches warm
	work.send(b, client, 64)
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
		work.send(b, client, n)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N*requests)/b.Elapsed().Seconds(), "req/s")
	b.ReportMetric(float64(b.N)/floorTime.Seconds(), "floor-req/s")
	b.ReportMetric(float64(requests)*float64(floorTime)/float64(b.Elapsed()), "of-floor")
}

// send implements sender.
func (p posts) send(b *testing.B, client *http.Client, n int) {
	if err := together(n, func(number int64) error {
		_, err := p.post(client, number)
		return err
	}); err != nil {
		b.Error(err)
	}
}

// post sends the request with a number. Requests that a session has under way need different IDs.
func (p posts) post(client *http.Client, number int64) (answer []byte, err error) {
	body := strings.Replace(p.body, `"id":1,`, fmt.Sprintf(`"id":%d,`, number), 1)
	r, err := http.NewRequest(http.MethodPost, p.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	wiretest.SetHeaders(r, p.headers)
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"error"`))) {
		err = fmt.Errorf("HTTP %d: %s", response.StatusCode, answer)
	}
	return answer, err
}

// life is a task's whole life: the call that makes it, and the request that gets its result.
type life struct{ create, result posts }

// send implements sender.
func (l life) send(b *testing.B, client *http.Client, n int) {
	if err := together(n, func(number int64) error { return l.live(client, number) }); err != nil {
		b.Error(err)
	}
}

func (l life) live(client *http.Client, number int64) error {
	created, err := l.create.post(client, number)
	if err != nil {
		return err
	}
	_, rest, _ := bytes.Cut(created, []byte(`"taskId":"`))
	id, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok {
		return fmt.Errorf("there is no task in %s", created)
	}
	p := posts{l.result.url, l.result.headers.Clone(), strings.Replace(l.result.body, "TASK", string(id), 1)}
	if p.headers.Get("Mcp-Name") != "" {
		p.headers.Set("Mcp-Name", string(id))
	}
	for {
		answer, err := p.post(client, number)
		if err != nil || !bytes.Contains(answer, []byte(`"status":"working"`)) {
			return err
		}
	}
}

// BenchmarkTasksGet polls a task beside a bare echo.
func BenchmarkTasksGet(b *testing.B) {
	b.Run(mcptask.Revision20260728, func(b *testing.B) {
		url := serve(b, unlimited())
		id := wiretest.CreateModern(b, url)
		p := posts{url, wiretest.ModernHeaders("tasks/get", id), wiretest.ModernBody("tasks/get", fmt.Sprintf(`"taskId":%q`, id))}
		beside(b, p, 1, p.echo(b))
	})
	b.Run(mcptask.Revision20251125, func(b *testing.B) {
		url := serve(b, unlimited())
		headers := wiretest.LegacyHeaders(b, url)
		created := wiretest.Post(b, url, headers, wiretest.LegacyBody("tools/call", `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"endless"},"task":{}`))
		var task struct {
			Task struct{ TaskID string } `json:"task"`
		}
		created.Result(b, &task)
		p := posts{url, headers, wiretest.LegacyBody("tasks/get", fmt.Sprintf(`"taskId":%q`, task.Task.TaskID))}
		beside(b, p, 1, p.echo(b))
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
				Claim: mcptask.Claim{Worker: "another"},
			}, mcptask.Quota{}); err != nil {
				b.Fatal(err)
			}
		}
		options := unlimited()
		options.Store, options.Principal = store, func(context.Context) (string, error) { return "alice", nil }
		url := serve(b, options)
		return posts{url, wiretest.LegacyHeaders(b, url), wiretest.LegacyBody("tasks/list", "")}
	}
	beside(b, list(100_000), 1, list(1000))
}

type runInput struct {
	Repository string `json:"repository"`
	Branch     string `json:"branch"`
}

const createParams = `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"main"}`

// unlimited returns the options of a server that refuses no request, however fast they come.
func unlimited() mcptask.Options {
	limits := wiretest.NoPollLimits
	limits.Tasks, limits.Running, limits.Bytes = -1, -1, -1
	limits.Server = mcptask.Totals{Tasks: -1, Running: -1, Bytes: -1}
	limits.Anonymous = limits.Server
	return mcptask.Options{Limits: limits, Concurrency: 4096}
}

// BenchmarkCreateTask makes tasks. Its floor is a plain call of a tool of the bare SDK that takes the same arguments. The
// benchmark plain measures that call itself, beside a bare echo.
func BenchmarkCreateTask(b *testing.B) {
	bare := func(b *testing.B, stateless bool) string {
		sdk := mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1.0.0"}, nil)
		mcp.AddTool(sdk, &mcp.Tool{Name: "run_pipeline"}, func(context.Context, *mcp.CallToolRequest, runInput) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
		})
		server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
		b.Cleanup(server.Close)
		return server.URL
	}
	modern := func(url string) posts {
		return posts{url, wiretest.ModernHeaders("tools/call", "run_pipeline"), wiretest.ModernBody("tools/call", createParams)}
	}
	legacy := func(b *testing.B, url, task string) posts {
		return posts{url, wiretest.LegacyHeaders(b, url), wiretest.LegacyBody("tools/call", createParams+task)}
	}
	b.Run(mcptask.Revision20260728, func(b *testing.B) {
		beside(b, modern(serve(b, unlimited())), 1, modern(bare(b, true)))
	})
	b.Run(mcptask.Revision20251125, func(b *testing.B) {
		beside(b, legacy(b, serve(b, unlimited()), `,"task":{}`), 1, legacy(b, bare(b, false), ""))
	})
	b.Run(mcptask.Revision20260728+"/plain", func(b *testing.B) {
		p := modern(bare(b, true))
		beside(b, p, 1, p.echo(b))
	})
	b.Run(mcptask.Revision20251125+"/plain", func(b *testing.B) {
		p := legacy(b, bare(b, false), "")
		beside(b, p, 1, p.echo(b))
	})
}

// BenchmarkTaskLife makes tasks that end at once, and gets their results, beside a bare echo of
// the call.
func BenchmarkTaskLife(b *testing.B) {
	b.Run(mcptask.Revision20260728, func(b *testing.B) {
		url := serve(b, unlimited())
		create := posts{url, wiretest.ModernHeaders("tools/call", "run_pipeline"), wiretest.ModernBody("tools/call", createParams)}
		beside(b, life{create, posts{url, wiretest.ModernHeaders("tasks/get", "TASK"), wiretest.ModernBody("tasks/get", `"taskId":"TASK"`)}}, 2, create.echo(b))
	})
	b.Run(mcptask.Revision20251125, func(b *testing.B) {
		url := serve(b, unlimited())
		create := posts{url, wiretest.LegacyHeaders(b, url), wiretest.LegacyBody("tools/call", createParams+`,"task":{}`)}
		beside(b, life{create, posts{url, create.headers, wiretest.LegacyBody("tasks/result", `"taskId":"TASK"`)}}, 2, create.echo(b))
	})
}

// BenchmarkHooks polls a task, and makes tasks that end at once and gets their results, with hooks of OpenTelemetry. The
// traces and metrics are made and thrown away. Its floor is the same without hooks.
func BenchmarkHooks(b *testing.B) {
	hooked := unlimited()
	hooked.Hooks = []mcptask.Hooks{oteltask.Hooks(
		oteltask.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithBatcher(discard{}))),
		oteltask.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))))}
	b.Run("poll", func(b *testing.B) {
		poll := func(options mcptask.Options) posts {
			url := serve(b, options)
			id := wiretest.CreateModern(b, url)
			return posts{url, wiretest.ModernHeaders("tasks/get", id), wiretest.ModernBody("tasks/get", fmt.Sprintf(`"taskId":%q`, id))}
		}
		beside(b, poll(hooked), 1, poll(unlimited()))
	})
	b.Run("life", func(b *testing.B) {
		create := func(options mcptask.Options) life {
			url := serve(b, options)
			return life{
				posts{url, wiretest.ModernHeaders("tools/call", "run_pipeline"), wiretest.ModernBody("tools/call", createParams)},
				posts{url, wiretest.ModernHeaders("tasks/get", "TASK"), wiretest.ModernBody("tasks/get", `"taskId":"TASK"`)},
			}
		}
		beside(b, create(hooked), 1, create(unlimited()))
	})
}

// discard is an exporter of spans to nowhere.
type discard struct{}

// ExportSpans implements sdktrace.SpanExporter.
func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }

// Shutdown implements sdktrace.SpanExporter.
func (discard) Shutdown(context.Context) error { return nil }
