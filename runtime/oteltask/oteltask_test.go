package oteltask_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/oteltask"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// studio is a server, its client, and their telemetry.
type studio struct {
	t      *testing.T
	spans  *tracetest.InMemoryExporter
	meters *metric.ManualReader
	tracer *sdktrace.TracerProvider
	log    bytes.Buffer
	server *taskserver.Server
	conn   mcptask.Conn
	// responded is closed when the client has the answer to its tasks/update. It is nil in a revision without that.
	responded chan struct{}
}

type renderInput struct {
	File string `json:"file"`
	Ask  bool   `json:"ask,omitempty"`
}

// open serves tools over HTTP, with hooks on both sides.
func open(t *testing.T, revision string, options ...oteltask.Option) *studio {
	t.Helper()
	s := &studio{t: t, spans: tracetest.NewInMemoryExporter(), meters: metric.NewManualReader()}
	s.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans))
	meters := metric.NewMeterProvider(metric.WithReader(s.meters))
	options = append([]oteltask.Option{oteltask.WithTracerProvider(s.tracer), oteltask.WithMeterProvider(meters)}, options...)
	hooks := []taskserver.Hooks{oteltask.Hooks(options...)}
	var err error
	s.server, err = taskserver.New(taskserver.Options{
		Hooks: hooks, Limits: taskserver.Limits{Arguments: 1000},
		Logger: slog.New(oteltask.LogHandler(slog.NewTextHandler(&s.log, nil))),
	}, mcptask.Tools{Service: "Studio", Impl: s, Capabilities: mcptask.Declared(), Tools: []mcptask.Tool{
		tool("render", mcptask.TaskRequired, s.render),
		tool("hold", mcptask.TaskRequired, func(ctx context.Context, _ *mcptask.Task, _ renderInput) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}),
		tool("check", mcptask.TaskForbidden, func(ctx context.Context, _ *mcptask.Task, in renderInput) (string, error) {
			if in.File == "" {
				return "", errors.New("no file")
			}
			return in.File + " is well", nil
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.server.Close() })
	sdk := mcp.NewServer(&mcp.Implementation{Name: "studio", Version: "1"}, nil)
	gosdk.AddTools(sdk, s.server)
	web := httptest.NewServer(wirecheck.Handler(t, gosdk.NewHandler(s.server, func(*http.Request) *mcp.Server { return sdk }, nil)))
	t.Cleanup(web.Close)
	if revision == mcptask.Revision20260728 {
		s.responded = make(chan struct{})
	}
	s.conn, err = gosdk.Connect(t.Context(), web.URL, gosdk.ClientOptions{
		Revision: revision, Hooks: append(hooks, taskserver.Hooks{ClientRequest: s.noteResponse}),
		Answer: mcptask.AnswerAny(func(context.Context, mcptask.Question) (json.RawMessage, error) {
			return json.RawMessage(`{"yes":true}`), nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.conn.Close() })
	return s
}

func tool(name string, support mcptask.TaskSupport, f func(context.Context, *mcptask.Task, renderInput) (string, error)) mcptask.Tool {
	return mcptask.NewTool(mcptask.ToolSpec{Name: name, InputSchema: wiretest.OpenObject,
		Policy: mcptask.Policy{Task: support, Poll: 10 * time.Millisecond}}, f)
}

type approval struct {
	Yes bool `json:"yes"`
}

// render is the handler of a task. Its own span shows that it has the context of its run.
func (s *studio) render(ctx context.Context, task *mcptask.Task, in renderInput) (string, error) {
	ctx, span := s.tracer.Tracer("studio").Start(ctx, "ffmpeg")
	defer span.End()
	if in.Ask {
		if _, err := mcptask.Ask[approval](ctx, task, mcptask.InputSpec{Name: "Approval", Schema: `{"type":"object","properties":{"yes":{"type":"boolean"}}}`}, "approve", "Render it?"); err != nil {
			return "", err
		}
		if s.responded != nil { // a client gives its response up when the task has ended before
			<-s.responded
		}
	}
	if err := mcptask.Sleep(ctx, task, "cool down", time.Millisecond); err != nil {
		return "", err
	}
	return mcptask.Step(ctx, task, "encode", func(ctx context.Context) (string, error) {
		_, span := s.tracer.Tracer("studio").Start(ctx, "x264")
		defer span.End()
		return in.File, nil
	})
}

// noteResponse is the hook of the client's requests.
func (s *studio) noteResponse(ctx context.Context, info taskserver.RequestInfo) (context.Context, func(taskserver.RequestResult)) {
	if info.Method != "tasks/update" {
		return ctx, nil
	}
	return ctx, func(taskserver.RequestResult) { close(s.responded) }
}

// call calls a tool within a span of its own, and returns the context of that span.
func (s *studio) call(ctx context.Context, tool string, in any) context.Context {
	s.t.Helper()
	ctx, span := s.tracer.Tracer("agent").Start(ctx, "agent")
	defer span.End()
	_, _ = mcptask.Run[string](ctx, s.conn, tool, in) // the spans tell how it has ended
	return ctx
}

// close ends the connection and the server, and so all spans.
func (s *studio) close() {
	s.t.Helper()
	if err := errors.Join(s.conn.Close(), s.server.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// tell returns the spans as lines, by their start. Those below another one are indented.
func (s *studio) tell() string {
	spans := s.spans.GetSpans()
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	names := map[trace.SpanID]string{}
	for _, span := range spans {
		names[span.SpanContext.SpanID()] = span.Name
	}
	var b strings.Builder
	var tell func(parent trace.SpanID, indent string)
	tell = func(parent trace.SpanID, indent string) {
		for _, span := range spans {
			if span.Parent.SpanID() != parent {
				continue
			}
			b.WriteString(indent + span.Name + " (" + span.SpanKind.String() + ")")
			for _, link := range span.Links {
				b.WriteString(" -> " + names[link.SpanContext.SpanID()])
			}
			for _, a := range span.Attributes {
				b.WriteString(" " + tellAttribute(a))
			}
			if span.Status.Code != 0 {
				b.WriteString(" [" + span.Status.Code.String() + "]")
			}
			for _, event := range span.Events {
				b.WriteString(" *" + event.Name)
			}
			b.WriteString("\n")
			tell(span.SpanContext.SpanID(), indent+"  ")
		}
	}
	tell(trace.SpanID{}, "")
	return b.String()
}

// tellAttribute returns an attribute without a value that differs from run to run.
func tellAttribute(a attribute.KeyValue) string {
	switch a.Key {
	case "mcptask.task.id", "server.port", "jsonrpc.request.id", "mcp.protocol.version":
		return string(a.Key)
	}
	return fmt.Sprintf("%s=%s", a.Key, a.Value.Emit())
}

var update = flag.Bool("update", false, "rewrite the files in testdata")

// checkGolden compares a text with a file of testdata.
func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // it is part of the source
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s has changed; to accept it, run go test ./runtime/oteltask -update (-want +got)\n%s", file, cmp.Diff(string(want), got))
	}
}

func TestSpans(t *testing.T) {
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		s := open(t, revision, oteltask.WithTrustRemote())
		s.call(t.Context(), "check", renderInput{File: "a"})
		s.call(t.Context(), "check", renderInput{})
		s.call(t.Context(), "render", renderInput{File: "b", Ask: true})
		s.call(t.Context(), "check", renderInput{File: strings.Repeat("c", 1000)})
		s.close()
		checkGolden(t, "spans-"+revision, s.tell())
	})
}

// tellMetrics returns the names of the metrics with their attributes, and the values of counts and gauges.
func (s *studio) tellMetrics() string {
	s.t.Helper()
	var all metricdata.ResourceMetrics
	if err := s.meters.Collect(s.t.Context(), &all); err != nil {
		s.t.Fatal(err)
	}
	var lines []string
	add := func(name string, set attribute.Set, value any) {
		line := name
		for _, a := range set.ToSlice() {
			line += " " + tellAttribute(a)
		}
		lines = append(lines, fmt.Sprintf("%s: %v", line, value))
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, "some")
				}
			}
		}
	}
	slices.Sort(lines)
	lines = slices.DeleteFunc(lines, func(line string) bool { // the clock decides whether these come
		has := func(text string) bool { return strings.Contains(line, text) }
		return has("store.operation") && !has("=Create") && !has("=Update") || has("conflict") || (has("tasks/get") || has("tasks/result")) && !has("-32602")
	})
	return strings.Join(lines, "\n") + "\n"
}

func TestMetrics(t *testing.T) {
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		s := open(t, revision)
		s.call(t.Context(), "render", renderInput{File: "b", Ask: true})
		s.call(t.Context(), "check", renderInput{})
		s.call(t.Context(), "check", renderInput{File: strings.Repeat("c", 1000)})
		if _, err := s.conn.Task(t.Context(), "unknown"); err == nil { // a poll
			t.Error("an unknown task was found")
		}
		s.close()
		checkGolden(t, "metrics-"+revision, s.tellMetrics())
	})
}

// TestUntrusted checks that a client that is not trusted does not decide to which trace a server's span belongs.
func TestUntrusted(t *testing.T) {
	s := open(t, mcptask.Revision20260728)
	ctx := s.call(t.Context(), "check", renderInput{File: "a"})
	s.close()
	agent := trace.SpanContextFromContext(ctx)
	for _, span := range s.spans.GetSpans() {
		if span.SpanKind != trace.SpanKindServer {
			continue
		}
		if span.Parent.IsValid() || span.SpanContext.TraceID() == agent.TraceID() || len(span.Links) != 1 || span.Links[0].SpanContext.TraceID() != agent.TraceID() {
			t.Errorf("parent %v, trace %v, links %v; the client's trace is %v", span.Parent, span.SpanContext.TraceID(), span.Links, agent.TraceID())
		}
		return
	}
	t.Error("the server made no span")
}

func TestLog(t *testing.T) {
	s := open(t, mcptask.Revision20260728, oteltask.WithTrustRemote())
	ctx := s.call(t.Context(), "render", renderInput{File: "a"})
	s.close()
	for _, message := range []string{`msg="task created"`, `msg="task ended"`} {
		i := strings.Index(s.log.String(), message)
		if i < 0 {
			t.Fatalf("the log lacks %s:\n%s", message, &s.log)
		}
		line, _, _ := strings.Cut(s.log.String()[i:], "\n")
		if want := "trace_id=" + trace.SpanContextFromContext(ctx).TraceID().String() + " span_id="; !strings.Contains(line, want) {
			t.Errorf("no %s in %s", want, line)
		}
	}
}

// TestFilter checks that a request that is left out has neither spans nor points of metrics, and that another one has.
func TestFilter(t *testing.T) {
	s := open(t, mcptask.Revision20260728,
		oteltask.WithFilter(func(_ context.Context, info taskserver.RequestInfo) bool { return info.Tool != "check" }))
	s.call(t.Context(), "check", renderInput{File: "a"})
	s.call(t.Context(), "render", renderInput{File: "a"})
	s.close()
	spans, metrics := s.tell(), s.tellMetrics()
	for tool, want := range map[string]int{"check": 0, "render": 1} {
		for _, side := range []string{"client", "server"} {
			if got := strings.Count(spans, "tools/call "+tool+" ("+side+")"); got != want {
				t.Errorf("%d spans of %s at the %s, want %d:\n%s", got, tool, side, want, spans)
			}
			points := regexp.MustCompile(`(?m)^mcp\.` + side + `\.operation\.duration .*gen_ai\.tool\.name=` + tool + `\b.*mcp\.method\.name=tools/call`)
			if got := len(points.FindAllString(metrics, -1)); got != want {
				t.Errorf("%d points of %s at the %s, want %d:\n%s", got, tool, side, want, metrics)
			}
		}
	}
}

func TestAttributeFilter(t *testing.T) {
	s := open(t, mcptask.Revision20260728,
		oteltask.WithAttributeFilter(func(a attribute.KeyValue) bool { return a.Key != "mcptask.task.id" && a.Key != "gen_ai.tool.name" }))
	s.call(t.Context(), "render", renderInput{File: "a"})
	s.close()
	for _, all := range []string{s.tell(), s.tellMetrics()} {
		if strings.Contains(all, "mcptask.task.id") || strings.Contains(all, "gen_ai.tool.name") || !strings.Contains(all, "gen_ai.operation.name") {
			t.Errorf("not left out, or too much:\n%s", all)
		}
	}
}

func TestWithout(t *testing.T) {
	s := open(t, mcptask.Revision20260728, oteltask.WithoutTracing())
	s.call(t.Context(), "render", renderInput{File: "a"})
	s.close()
	if spans, metrics := s.tell(), s.tellMetrics(); strings.Contains(spans, "server") || !strings.Contains(metrics, "mcptask.tasks.created") {
		t.Errorf("spans:\n%s\nmetrics:\n%s", spans, metrics)
	}
	s = open(t, mcptask.Revision20260728, oteltask.WithoutMetrics())
	s.call(t.Context(), "render", renderInput{File: "a"})
	s.close()
	if spans, metrics := s.tell(), s.tellMetrics(); !strings.Contains(spans, "server") || metrics != "\n" {
		t.Errorf("spans:\n%s\nmetrics:\n%s", spans, metrics)
	}
}

// TestActive checks the gauge of the tasks in the store.
func TestActive(t *testing.T) {
	s := open(t, mcptask.Revision20260728)
	if _, err := mcptask.Start[string](t.Context(), s.conn, "hold", renderInput{}); err != nil {
		t.Fatal(err)
	}
	if want, metrics := "mcptask.tasks.active gen_ai.tool.name=hold mcptask.phase=running: 1", s.tellMetrics(); !strings.Contains(metrics, want) {
		t.Errorf("no %s in\n%s", want, metrics)
	}
}

// TestActiveIsSummed leaves out the attributes that tell two tasks apart.
func TestActiveIsSummed(t *testing.T) {
	s := open(t, mcptask.Revision20260728, oteltask.WithAttributeFilter(func(a attribute.KeyValue) bool {
		return a.Key != "mcptask.phase" && a.Key != "gen_ai.tool.name"
	}))
	alice := taskserver.Caller{Principal: "alice", Revision: mcptask.Revision20260728, CanAsk: []string{"elicitation/create"}}
	for tool, phase := range map[string]taskstore.Phase{"hold": taskstore.PhaseRunning, "render": taskstore.PhaseInputRequired} {
		reply, err := s.server.Backend().Call(t.Context(), alice, tool, json.RawMessage(`{"file":"a","ask":true}`), taskserver.CallRequest{Mode: taskserver.ModeTask})
		if err != nil {
			t.Fatal(err)
		}
		record := *reply.Task
		for record.Phase != phase {
			if record, err = s.server.Backend().Changed(t.Context(), alice, record.ID, record.Version); err != nil {
				t.Fatal(err)
			}
		}
	}
	if want, metrics := "mcptask.tasks.active: 2", s.tellMetrics(); !strings.Contains(metrics, want) {
		t.Errorf("no %s in\n%s", want, metrics)
	}
}

// TestStoreErrors checks that failures of the store differ from its answers, and from calls whose requestor has left.
func TestStoreErrors(t *testing.T) {
	reader := metric.NewManualReader()
	hooks := oteltask.Hooks(oteltask.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	left, leave := context.WithCancel(t.Context())
	leave()
	for _, call := range []struct {
		ctx       context.Context
		operation string
		err       error
	}{
		{t.Context(), "a", taskstore.ErrNoRecord}, {t.Context(), "b", errors.New("interrupted")}, {t.Context(), "c", context.DeadlineExceeded},
		{left, "d", errors.New("interrupted")}, {left, "e", taskstore.ErrNoRecord}, {left, "f", nil},
	} {
		_, end := hooks.Store(call.ctx, call.operation)
		end(call.err)
	}
	got := readErrorTypes(t, reader, "mcptask.store.operation")
	want := map[string]string{"a": "no_record", "b": "_OTHER", "c": "_OTHER", "d": "cancelled", "e": "no_record", "f": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRequestErrors checks that requests that fail differ from those whose requestor has left.
func TestRequestErrors(t *testing.T) {
	reader := metric.NewManualReader()
	hooks := oteltask.Hooks(oteltask.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))), oteltask.WithoutTracing())
	for method, err := range map[string]error{
		"a": nil, "b": errors.New("broken"), "c": fmt.Errorf("left: %w", context.Canceled), "d": mcptask.Errorf(-32602, "unknown task"),
	} {
		_, end := hooks.Request(t.Context(), taskserver.RequestInfo{Method: method})
		end(taskserver.RequestResult{Error: err})
	}
	want := map[string]string{"a": "", "b": "_OTHER", "c": "cancelled", "d": "-32602"}
	if diff := cmp.Diff(want, readErrorTypes(t, reader, "mcp.method.name")); diff != "" {
		t.Error(diff)
	}
}

// TestStepErrors checks that a question without an answer and a step without a result are not measured as good ones, and
// that their spans have an error only if something has failed.
func TestStepErrors(t *testing.T) {
	late, end := context.WithCancelCause(t.Context())
	end(mcptask.ErrDeadline)
	want := map[string]string{
		"answered": "", "broken": "_OTHER", "refused": "_OTHER", "expired": "expired", "deadline": "deadline", "late": "deadline",
		"cancelled": "cancelled", "superseded": "cancelled", "closed": "cancelled", "left": "cancelled",
	}
	for kind, hook := range map[string]func(taskserver.Hooks, context.Context, string) func(error){
		"ask": func(h taskserver.Hooks, ctx context.Context, tool string) func(error) {
			_, end := h.Question(ctx, taskserver.QuestionInfo{Task: taskstore.Record{Tool: tool}, Key: tool})
			return end
		},
		"step": func(h taskserver.Hooks, ctx context.Context, tool string) func(error) {
			_, end := h.Step(ctx, taskserver.StepInfo{Task: taskstore.Record{Tool: tool}, Name: tool, Kind: taskstore.StepDone})
			return end
		},
	} {
		reader, spans := metric.NewManualReader(), tracetest.NewInMemoryExporter()
		hooks := oteltask.Hooks(oteltask.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))),
			oteltask.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))))
		for tool, err := range map[string]error{
			"answered": nil, "broken": errors.New("broken"), "refused": mcptask.ErrCannotAsk, "expired": mcptask.ErrExpired,
			"cancelled": fmt.Errorf("step: %w", mcptask.ErrCancelled), "superseded": mcptask.ErrSuperseded,
			"closed": mcptask.ErrServerClosed, "left": context.Canceled, "deadline": mcptask.ErrDeadline,
		} {
			hook(hooks, t.Context(), tool)(err)
		}
		hook(hooks, late, "late")(late.Err())
		if diff := cmp.Diff(want, readErrorTypes(t, reader, "gen_ai.tool.name")); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
		for _, span := range spans.GetSpans() {
			tool := strings.TrimPrefix(span.Name, "mcptask."+kind+" ")
			if isError := want[tool] != "" && want[tool] != "cancelled"; (span.Status.Code == codes.Error) != isError {
				t.Errorf("%s: the span has the status %v", span.Name, span.Status.Code)
			}
		}
	}
}

// TestPolls checks which calls of fallback tools have no span: those that only read.
func TestPolls(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	hooks := oteltask.Hooks(oteltask.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))), oteltask.WithoutMetrics())
	for _, info := range []taskserver.RequestInfo{
		{Tool: "slow_task_status", IsFallback: true}, {Tool: "task_result", IsFallback: true},
		{Tool: "slow_task_cancel", IsFallback: true}, {Tool: "task_answer", IsFallback: true}, {Tool: "check_task_status"},
	} {
		info.Method = "tools/call"
		_, end := hooks.Request(t.Context(), info)
		end(taskserver.RequestResult{})
	}
	var names []string
	for _, span := range spans.GetSpans() {
		names = append(names, span.Name)
	}
	want := []string{"tools/call slow_task_cancel", "tools/call task_answer", "tools/call check_task_status"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// readErrorTypes returns the error.type of each value that another attribute has, of the only metric.
func readErrorTypes(t *testing.T, reader *metric.ManualReader, key attribute.Key) map[string]string {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	types := map[string]string{}
	for _, p := range all.ScopeMetrics[0].Metrics[0].Data.(metricdata.Histogram[float64]).DataPoints {
		value, _ := p.Attributes.Value(key)
		failure, _ := p.Attributes.Value("error.type")
		types[value.AsString()] = failure.AsString()
	}
	return types
}

// TestBounds checks that the other side cannot make long attributes, or a series of metrics for each of its errors.
func TestBounds(t *testing.T) {
	spans, meters := tracetest.NewInMemoryExporter(), metric.NewManualReader()
	hooks := oteltask.Hooks(oteltask.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))),
		oteltask.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(meters))))
	_, end := hooks.Request(t.Context(), taskserver.RequestInfo{Method: "tools/call", Tool: "t", ID: `"` + strings.Repeat("é", 1<<20) + `"`})
	end(taskserver.RequestResult{})
	for code := range 1000 {
		_, end := hooks.ClientRequest(t.Context(), taskserver.RequestInfo{Method: "tools/call", Tool: "t"})
		end(taskserver.RequestResult{Error: mcptask.Errorf(code, "no")})
	}
	_, end = hooks.ClientRequest(t.Context(), taskserver.RequestInfo{Method: "tools/call", Tool: "t"})
	end(taskserver.RequestResult{Error: mcptask.Errorf(mcptask.CodeInvalidParams, "no")})
	for _, span := range spans.GetSpans() {
		for _, a := range span.Attributes {
			if value := a.Value.AsString(); len(value) > 100 {
				t.Errorf("%s has %d bytes", a.Key, len(value))
			}
		}
	}
	var all metricdata.ResourceMetrics
	if err := meters.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	isFound := false
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name != "mcp.client.operation.duration" {
			continue
		}
		isFound = true
		if h := m.Data.(metricdata.Histogram[float64]); len(h.DataPoints) != 2 {
			t.Errorf("%s has %d series, want 2: that of a reserved code, and that of all others", m.Name, len(h.DataPoints))
		}
	}
	if !isFound {
		t.Error("the requests of the client are not measured")
	}
}

// TestRunOfFilteredRequest checks that a client that is not trusted does not choose the trace of a run either.
func TestRunOfFilteredRequest(t *testing.T) {
	remote := "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
	for _, isTrusted := range []bool{false, true} {
		spans := tracetest.NewInMemoryExporter()
		options := []oteltask.Option{
			oteltask.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))), oteltask.WithoutMetrics(),
			oteltask.WithFilter(func(context.Context, taskserver.RequestInfo) bool { return false }),
		}
		if isTrusted {
			options = append(options, oteltask.WithTrustRemote())
		}
		hooks := oteltask.Hooks(options...)
		ctx, _ := hooks.Request(t.Context(), taskserver.RequestInfo{Method: "tools/call", Tool: "t", Trace: remote})
		_, end := hooks.Run(ctx, taskserver.RunInfo{Task: taskstore.Record{Tool: "t", Trace: remote, Attempt: 1}, IsAwaited: true})
		end(taskserver.RunResult{})
		run := spans.GetSpans()[0]
		if isChild := run.Parent.IsValid(); isChild != isTrusted || !isTrusted && len(run.Links) != 1 {
			t.Errorf("trusted %v: the run has the parent %v and %d links", isTrusted, run.Parent.SpanID(), len(run.Links))
		}
	}
}

// TestRunErrors checks that the span of a run says why it has failed.
func TestRunErrors(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	hooks := oteltask.Hooks(oteltask.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))), oteltask.WithoutMetrics())
	for want, outcome := range map[string]taskstore.Outcome{
		"error":               {Kind: taskstore.OutcomeError, Error: mcptask.Errorf(-32050, "locked")},
		"tool_error":          {Kind: taskstore.OutcomeResult, IsError: true},
		"declaration_changed": {Kind: taskstore.OutcomeError, Error: &mcptask.Error{Data: json.RawMessage(`{"reason":"declaration_changed"}`)}},
	} {
		spans.Reset()
		_, end := hooks.Run(t.Context(), taskserver.RunInfo{Task: taskstore.Record{Tool: "t", Attempt: 1}})
		end(taskserver.RunResult{Outcome: outcome})
		if got := spans.GetSpans()[0].Attributes; !slices.Contains(got, attribute.String("error.type", want)) {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

// TestRunOfExecutor checks that a run that no call waits for begins a trace of its own, unless its executor has a span.
func TestRunOfExecutor(t *testing.T) {
	remote := "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	hooks := oteltask.Hooks(oteltask.WithTracerProvider(tracers), oteltask.WithoutMetrics(), oteltask.WithTrustRemote())
	activity, span := tracers.Tracer("executor").Start(t.Context(), "activity")
	defer span.End()
	for _, ctx := range []context.Context{t.Context(), activity} {
		spans.Reset()
		_, end := hooks.Run(ctx, taskserver.RunInfo{Task: taskstore.Record{Tool: "t", Trace: remote, Attempt: 1}})
		end(taskserver.RunResult{})
		run, want := spans.GetSpans()[0], trace.SpanContextFromContext(ctx)
		if run.Parent.SpanID() != want.SpanID() || len(run.Links) != 1 || run.Links[0].SpanContext.TraceID().String() != remote[3:35] {
			t.Errorf("the parent is %v, want %v; links: %v", run.Parent.SpanID(), want.SpanID(), run.Links)
		}
	}
}
