// Package tracetest tests that the trace of a call goes on in Temporal, with the interceptor that Temporal's SDK has
// for OpenTelemetry.
package tracetest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	spantest "go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/mcptaskgen/mcptaskgen/examples/temporal/internal/temporalserver"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// The trace of the calls, as their client names it.
const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
	parent  = "00-" + traceID + "-" + spanID + "-01"
	state   = "vendor=a:b"
)

// TestTraceOfExecutor checks that the workflow and the activity of a task, and its handler, belong to the trace of the
// call that made it.
func TestTraceOfExecutor(t *testing.T) {
	s := newSetup(t)
	for name, c := range namings {
		t.Run(name, func(t *testing.T) {
			s.spans.Reset()
			queue := t.Name() + rand.Text()
			tasks := s.serve(t, taskserver.Options{Executor: temporal.NewExecutor(s.client, temporal.Options{TaskQueue: queue})},
				mcptask.Policy{Task: mcptask.TaskRequired}, func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
					_, span := s.tracer.Start(ctx, "handler")
					defer span.End()
					return spanText(ctx), nil
				})
			got := c.call(t, tasks)
			if err := s.client.GetWorkflow(t.Context(), got.task, "").Get(t.Context(), nil); err != nil { // it ends after the task
				t.Fatal(err)
			}
			run := s.wantSpans(t, "StartWorkflow:mcptask.Task", "RunWorkflow:mcptask.Task", "StartActivity:mcptask.Run", "RunActivity:mcptask.Run", "handler")
			if want := run["RunActivity:mcptask.Run"]; got.text != want {
				t.Errorf("the handler was in the span %s, want %s", got.text, want)
			}
		})
	}
}

// TestTraceOfRun checks that a workflow that a handler runs belongs to the trace of the call, if the handler is one of
// a task and if it is that of a plain call.
func TestTraceOfRun(t *testing.T) {
	s := newSetup(t)
	queue := t.Name() + rand.Text()
	w := worker.New(s.client, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) (span string, err error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		return span, workflow.ExecuteActivity(ctx, "Work").Get(ctx, &span)
	}, workflow.RegisterOptions{Name: "Traced"})
	w.RegisterActivityWithOptions(func(ctx context.Context) (string, error) { return spanText(ctx), nil }, activity.RegisterOptions{Name: "Work"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	for _, policy := range []mcptask.Policy{{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost}, {Task: mcptask.TaskForbidden}} {
		for name, c := range namings {
			t.Run(fmt.Sprint(policy.Task, ", ", name), func(t *testing.T) {
				s.spans.Reset()
				tasks := s.serve(t, taskserver.Options{}, policy, func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
					if trace.SpanContextFromContext(ctx).IsValid() {
						return "", fmt.Errorf("the handler has the span %s", spanText(ctx))
					}
					return temporal.Run[string](ctx, task, s.client, temporal.WorkflowOptions{TaskQueue: queue}, "Traced")
				})
				got := c.call(t, tasks)
				run := s.wantSpans(t, "StartWorkflow:Traced", "RunWorkflow:Traced", "StartActivity:Work", "RunActivity:Work")
				if want := run["RunActivity:Work"]; got.text != want {
					t.Errorf("the activity was in the span %s, want %s", got.text, want)
				}
			})
		}
	}
}

// namings are the ways in which a call names its trace.
var namings = map[string]call{
	"by headers": {header: http.Header{"Traceparent": {parent}, "Tracestate": {state}}},
	"by _meta":   {meta: fmt.Sprintf(`"traceparent":%q,"tracestate":%q,`, parent, state)},
}

// setup is a client of Temporal with a tracing interceptor, whose spans it keeps.
type setup struct {
	client client.Client
	tracer trace.Tracer
	spans  *spantest.InMemoryExporter
}

func newSetup(t *testing.T) *setup {
	t.Helper()
	server := temporalserver.ForTest(t)
	s := &setup{spans: spantest.NewInMemoryExporter()}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans))
	s.tracer = provider.Tracer("test")
	tracing, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{Tracer: s.tracer, DisableQueryTracing: true})
	if err != nil {
		t.Fatal(err)
	}
	s.client, err = client.DialContext(t.Context(), client.Options{
		HostPort: server.Address(), Logger: quiet{}, Interceptors: []interceptor.ClientInterceptor{tracing},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	return s
}

// served is a server of the tool "traced".
type served struct {
	url   string
	tasks *taskserver.Server
}

// serve starts a server of the tool "traced".
func (s *setup) serve(t *testing.T, options taskserver.Options, policy mcptask.Policy, handler func(context.Context, *mcptask.Task, struct{}) (string, error)) served {
	t.Helper()
	options.Store = taskstore.NewMemory()
	tasks, err := taskserver.New(options, mcptask.Tools{Service: "S", Impl: struct{}{}, Fallback: mcptask.FallbackNone, Tools: []mcptask.Tool{
		mcptask.NewTool(mcptask.ToolSpec{Name: "traced", InputSchema: `{"type":"object"}`, Policy: policy}, handler),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
	})
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	gosdk.AddTools(server, tasks)
	listening := httptest.NewServer(wirecheck.Handler(t, gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return server }, nil)))
	t.Cleanup(listening.Close)
	return served{listening.URL, tasks}
}

// call is a tools/call of 2026-07-28 that names its trace.
type call struct {
	header http.Header
	meta   string // members of _meta, with a comma behind
}

// called is the result of a call of the tool.
type called struct{ task, text string }

// call calls the tool and waits for its result.
func (c call) call(t *testing.T, s served) called {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"traced","arguments":{},"_meta":{` + c.meta +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range c.header {
		r.Header[name] = values
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "traced",
	} {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if i := strings.LastIndex(string(data), "data: "); i >= 0 { // a stream, whose last event is the answer
		data = data[i+len("data: "):]
	}
	var answer struct {
		Result struct {
			mcptask.Result
			TaskID string
		}
	}
	if err := json.Unmarshal(data, &answer); err != nil || answer.Result.IsError {
		t.Fatalf("%s: %v", data, err)
	}
	id := answer.Result.TaskID
	if id == "" {
		return called{text: answer.Result.Text()}
	}
	record, err := s.tasks.Backend().Await(t.Context(), taskserver.Caller{}, id)
	if err != nil {
		t.Fatal(err)
	}
	var result mcptask.Result
	if record.Outcome.Kind != taskstore.OutcomeResult || record.Outcome.IsError || json.Unmarshal(record.Outcome.Result, &result) != nil {
		t.Fatalf("%+v", record.Outcome)
	}
	return called{id, result.Text()}
}

// wantSpans fails the test unless the spans are these, each the child of the one before, and the first the child of the
// call's span. It returns them as spanText does, by name.
func (s *setup) wantSpans(t *testing.T, names ...string) map[string]string {
	t.Helper()
	spans := s.spans.GetSpans()
	byName := map[string]string{}
	last := traceID + "-" + spanID
	for _, name := range names {
		i := slices.IndexFunc(spans, func(span spantest.SpanStub) bool { return span.Name == name })
		if i < 0 {
			t.Errorf("there is no span %s", name)
			continue
		}
		span := spans[i]
		if got := formatSpan(span.Parent); got != last {
			t.Errorf("%s has the parent %s, want %s", name, got, last)
		}
		if got := span.SpanContext.TraceState().String(); got != state {
			t.Errorf("%s has the state %q", name, got)
		}
		last = formatSpan(span.SpanContext)
		byName[name] = last
	}
	if len(spans) != len(names) || t.Failed() {
		for _, span := range spans {
			t.Errorf("%s of %s in %s", formatSpan(span.SpanContext), span.Name, formatSpan(span.Parent))
		}
	}
	return byName
}

// spanText returns the trace and the span of a context.
func spanText(ctx context.Context) string { return formatSpan(trace.SpanContextFromContext(ctx)) }

func formatSpan(span trace.SpanContext) string {
	return span.TraceID().String() + "-" + span.SpanID().String()
}

// quiet is a log.Logger of Temporal's SDK that drops everything.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
