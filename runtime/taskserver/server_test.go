package taskserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// number is the input and output of most tools of these tests.
type number struct {
	N int `json:"n"`
}

const numberSchema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`

type approval struct {
	Approve bool `json:"approve"`
}

var approvalInput = mcptask.InputSpec{
	Name: "Approval", Message: "Ship it?",
	Schema: `{"type":"object","properties":{"approve":{"type":"boolean"}},"required":["approve"]}`,
}

var (
	alice = Caller{Principal: "alice", Revision: mcptask.Revision20260728, CanAsk: []string{spec.Elicit}}
	bob   = Caller{Principal: "bob", Revision: mcptask.Revision20260728, CanAsk: []string{spec.Elicit}}
)

func numberTool(name string, policy mcptask.Policy, handler func(context.Context, *mcptask.Task, number) (number, error)) mcptask.Tool {
	return mcptask.NewTool(mcptask.ToolSpec{Name: name, InputSchema: numberSchema, OutputSchema: numberSchema, Policy: policy}, handler)
}

// double is a handler that returns at once.
func double(_ context.Context, _ *mcptask.Task, in number) (number, error) {
	return number{2 * in.N}, nil
}

// hang is a handler that runs until its context ends.
func hang(ctx context.Context, _ *mcptask.Task, _ number) (number, error) {
	<-ctx.Done()
	return number{}, ctx.Err()
}

// after returns a handler that takes a while, unless its context ends.
func after(d time.Duration) func(context.Context, *mcptask.Task, number) (number, error) {
	return func(ctx context.Context, _ *mcptask.Task, in number) (number, error) {
		select {
		case <-time.After(d):
			return in, nil
		case <-ctx.Done():
			return number{}, ctx.Err()
		}
	}
}

// confirm is a handler that asks a question.
func confirm(ctx context.Context, task *mcptask.Task, in number) (number, error) {
	a, err := mcptask.Ask[approval](ctx, task, approvalInput, "ship", "")
	if err != nil {
		return number{}, err
	}
	if !a.Approve {
		return number{}, errors.New("not approved")
	}
	return in, nil
}

func newServer(t testing.TB, options Options, tools ...mcptask.Tool) *Backend {
	t.Helper()
	s, err := New(options, mcptask.Tools{Service: "Numbers", Impl: struct{}{}, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.Backend()
}

// begin starts a task and returns its record.
func begin(t testing.TB, s *Backend, caller Caller, tool string) taskstore.Record {
	t.Helper()
	reply, err := s.Call(t.Context(), caller, tool, json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeTask})
	if err != nil || reply.Task == nil {
		t.Fatalf("%+v, %v", reply, err)
	}
	return *reply.Task
}

// ended waits for the end of a task and returns its record.
func ended(t testing.TB, s *Backend, caller Caller, id string) taskstore.Record {
	t.Helper()
	r, err := s.Await(t.Context(), caller, id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// asks waits until a task asks and returns its record.
func asks(t testing.TB, s *Backend, caller Caller, id string) taskstore.Record {
	t.Helper()
	r, err := s.Get(t.Context(), caller, id)
	for err == nil && r.Phase != taskstore.PhaseInputRequired && !r.Done() {
		r, err = s.Changed(t.Context(), caller, id, r.Version)
	}
	if err != nil || r.Done() {
		t.Fatalf("the task does not ask: %+v, %v", r, err)
	}
	return r
}

// outcomeText returns an outcome in one line.
func outcomeText(o *taskstore.Outcome) string {
	switch {
	case o == nil:
		return "none"
	case o.Kind == taskstore.OutcomeError:
		return "error " + o.Error.Error() + " " + string(o.Error.Data)
	case o.Kind == taskstore.OutcomeCancelled:
		return "cancelled"
	}
	return "result " + string(o.Result)
}

// wireError returns the error that a client gets, or an empty one if it is of another kind.
func wireError(err error) *mcptask.Error {
	wire := &mcptask.Error{}
	_ = errors.As(err, &wire)
	return wire
}

const doubled = `result {"content":[{"text":"{\"n\":42}","type":"text"}],"structuredContent":{"n":42}}`

// logged collects a server's log.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func TestNewServerReportsEverythingAtOnce(t *testing.T) {
	tool := func(change func(*mcptask.ToolSpec)) mcptask.Tool {
		spec := mcptask.ToolSpec{Name: "t", InputSchema: numberSchema}
		change(&spec)
		return mcptask.NewTool(spec, double)
	}
	var nilImpl *logged
	cases := []struct {
		name     string
		services []mcptask.Tools
		want     []string
	}{
		{"a nil implementation", []mcptask.Tools{{Service: "A"}}, []string{"service A: the implementation is nil"}},
		{"a typed nil implementation", []mcptask.Tools{{Service: "A", Impl: nilImpl}}, []string{"service A: the implementation is nil"}},
		{"a tool in two services", []mcptask.Tools{
			{Service: "A", Impl: 1, Tools: []mcptask.Tool{tool(func(*mcptask.ToolSpec) {})}},
			{Service: "B", Impl: 1, Tools: []mcptask.Tool{tool(func(*mcptask.ToolSpec) {})}},
		}, []string{`service B: "t" is a tool of service B, and a tool of service A`, "prefix"}},
		{"everything that is wrong with tools", []mcptask.Tools{{Service: "A", Impl: nilImpl, Tools: []mcptask.Tool{
			{Spec: mcptask.ToolSpec{Name: "handmade", InputSchema: numberSchema}},
			tool(func(s *mcptask.ToolSpec) { s.Name = "no spaces" }),
			tool(func(s *mcptask.ToolSpec) { s.Name = "in"; s.InputSchema = `{"type":"array"}` }),
			tool(func(s *mcptask.ToolSpec) { s.Name = "syntax"; s.InputSchema = `{` }),
			tool(func(s *mcptask.ToolSpec) {
				s.Name = "default"
				s.InputSchema = `{"type":"object","properties":{"n":{"default":"x"}}}`
			}),
			tool(func(s *mcptask.ToolSpec) { s.Name = "empty"; s.InputSchema = `` }),
			tool(func(s *mcptask.ToolSpec) { s.Name = "keyword"; s.InputSchema = `{"type":"object","minProperties":-1}` }),
			tool(func(s *mcptask.ToolSpec) {
				s.Name = "remote"
				s.InputSchema = `{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`
			}),
			tool(func(s *mcptask.ToolSpec) {
				s.Name = "file"
				s.OutputSchema = `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`
			}),
			tool(func(s *mcptask.ToolSpec) {
				s.Name = "asks"
				s.Questions = []mcptask.InputSpec{{Name: "Approval", Schema: `{`}}
			}),
			tool(func(s *mcptask.ToolSpec) { s.Name = "support"; s.Policy.Task = "maybe" }),
			tool(func(s *mcptask.ToolSpec) { s.Name = "lost"; s.Policy.OnLost = "shrug" }),
			tool(func(s *mcptask.ToolSpec) { s.Name = "left"; s.Policy.OnLeave = "shrug" }),
			tool(func(s *mcptask.ToolSpec) { s.Name = "kept"; s.Policy.OnLeave = mcptask.KeepOnLeave }),
			tool(func(s *mcptask.ToolSpec) {
				s.Name = "unfound"
				s.Policy.Task, s.Policy.OnLeave = mcptask.TaskOptional, mcptask.KeepOnLeave
			}),
			tool(func(s *mcptask.ToolSpec) {
				s.Name = "tireless"
				s.Policy.OnLost, s.Policy.Attempts = mcptask.RestartWhenLost, 1001
			}),
			tool(func(s *mcptask.ToolSpec) {
				s.Name = "backward"
				s.Policy.OnLost, s.Policy.Attempts = mcptask.RestartWhenLost, -1
			}),
			tool(func(s *mcptask.ToolSpec) { s.Name = "alone"; s.Policy.Concurrency = 1 }),
			tool(func(s *mcptask.ToolSpec) { s.Name = "lazy"; s.Policy.Concurrency = -1 }),
			tool(func(s *mcptask.ToolSpec) { s.Name = "crowd"; s.Policy.Concurrency = 1_000_001 }),
			tool(func(s *mcptask.ToolSpec) { s.Name = "once"; s.Policy.Attempts = 3 }),
			tool(func(s *mcptask.ToolSpec) { s.Name = "negative"; s.Policy.Grace = -1 }),
			tool(func(s *mcptask.ToolSpec) { s.Name = "huge"; s.Policy.TTL = 1<<63 - 1 }),
			tool(func(s *mcptask.ToolSpec) { s.Name = "tiny"; s.Policy.Poll = time.Microsecond }),
			tool(func(s *mcptask.ToolSpec) {
				s.Name = "deadline"
				s.Policy.TTL, s.Policy.Deadline = time.Minute, time.Hour
			}),
			tool(func(s *mcptask.ToolSpec) {
				s.Name = "both"
				s.Policy.OnLost, s.OutputSchema = "shrug", `{}`
			}),
		}, Capabilities: mcptask.Capabilities{"x": `[]`}, Fallback: "some"}}, []string{
			"implementation is nil", `its fallback "some" is not none or tools`, `tool "asks": question "Approval": it is not JSON`,
			`tool "handmade": it has no handler`,
			`tool "no spaces": its name`,
			`tool "in": input schema: its root must have`,
			`tool "syntax": input schema: it is not JSON`,
			`tool "empty": input schema: it is not JSON`,
			`tool "default": input schema: the handler cannot read the defaults: n: got string, want number`,
			`tool "keyword": input schema`,
			`tool "remote": input schema`, "https://example.com/a.json: put the definition under $defs",
			`tool "file": output schema`, "file:///etc/passwd: put the definition under $defs",
			`tool "support": task support "maybe"`,
			`tool "lost": lost policy "shrug"`,
			`tool "left": leave policy "shrug"`,
			`tool "kept": onleave=keep needs a task that can go on`,
			`tool "unfound": onleave=keep needs the fallback tools`,
			`tool "tireless": attempts 1001 is not between 1 and 1000`,
			`tool "backward": attempts -1 is not between 1 and 1000`,
			`tool "alone": concurrency 1 needs a tool whose calls can wait in line: set Task to TaskOptional`,
			`tool "lazy": concurrency -1 is not between 1 and 1000000`, `tool "crowd": concurrency 1000001 is not between`,
			`tool "once": attempts 3 has no effect`, "set OnLost to RestartWhenLost, or leave Attempts 0",
			`tool "negative": grace -1ns is not between 0 and`,
			`tool "huge": ttl`,
			`tool "tiny": ttl 24h0m0s or poll 1µs is below a millisecond`,
			`tool "deadline": deadline 1h0m0s is longer than ttl 1m0s`,
			`tool "both": lost policy`, `tool "both": output schema`,
			"capabilities of x",
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, err := New(Options{}, c.services...)
			if err == nil {
				_ = s.Close()
				t.Fatal("taken")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestNewServerFillsIn(t *testing.T) {
	s := newServer(t, Options{}, numberTool("a", mcptask.Policy{}, double), numberTool("b", mcptask.Policy{Task: mcptask.TaskRequired, TTL: time.Minute}, double),
		numberTool("restarts", mcptask.Policy{OnLost: mcptask.RestartWhenLost}, double), numberTool("seldom", mcptask.Policy{OnLost: mcptask.RestartWhenLost, Attempts: 2}, double))
	spec, ok := s.Tool("a")
	if want := (mcptask.Policy{Task: mcptask.TaskForbidden, TTL: mcptask.DefaultTTL, Poll: mcptask.DefaultPoll, OnLost: mcptask.FailWhenLost, OnChange: mcptask.FailOnChange, OnLeave: mcptask.StopOnLeave}); !ok || spec.Policy != want {
		t.Errorf("%+v", spec.Policy)
	}
	if spec, _ := s.Tool("b"); spec.Policy.TTL != time.Minute || spec.Policy.Task != mcptask.TaskRequired {
		t.Errorf("%+v", spec.Policy)
	}
	for name, want := range map[string]int{"restarts": mcptask.DefaultAttempts, "seldom": 2} {
		if spec, _ := s.Tool(name); spec.Policy.Attempts != want {
			t.Errorf("%s: %+v", name, spec.Policy)
		}
	}
	if _, ok := s.Tool("c"); ok {
		t.Error("a tool that is not there")
	}
	if tools := s.Tools(); len(tools) != 4 || tools[0].Name != "a" || tools[1].Name != "b" {
		t.Errorf("%+v", tools)
	}
	if o := s.Options(); o.Concurrency != DefaultConcurrency || o.MaxTTL != DefaultMaxTTL || o.MaxBody != DefaultMaxBody || o.Drain != DefaultDrain {
		t.Errorf("%+v", o)
	}
}

// TestMemoryStoreWarning checks that a server says that tasks cannot restart after its process if
// nobody has chosen a store. It says so once.
func TestMemoryStoreWarning(t *testing.T) {
	restarts := mcptask.Policy{Task: mcptask.TaskOptional, OnLost: mcptask.RestartWhenLost}
	plain := numberTool("plain", mcptask.Policy{OnLost: mcptask.RestartWhenLost}, double)
	fails := numberTool("fails", mcptask.Policy{Task: mcptask.TaskRequired}, double)
	services := []mcptask.Tools{
		{Service: "A", Impl: 1, Tools: []mcptask.Tool{numberTool("first", restarts, double), plain, fails}},
		{Service: "B", Impl: 1, Tools: []mcptask.Tool{numberTool("second", restarts, double)}},
	}
	const warning = "set Options.Store to a durable store"
	for _, test := range []struct {
		name     string
		store    taskstore.Store
		services []mcptask.Tools
		register []mcptask.Tools
		want     []string // the tools of each warning
	}{
		{"a store of its own", nil, services, nil, []string{`tools="[first second]"`}},
		{"a memory store that was chosen", taskstore.NewMemory(), services, nil, nil},
		{"another store", &tapStore{Store: taskstore.NewMemory()}, services, nil, nil},
		{"no tool restarts", nil, []mcptask.Tools{{Service: "A", Impl: 1, Tools: []mcptask.Tool{plain, fails}}}, nil, nil},
		{"tools that are added", nil, services[:1], services[1:], []string{"tools=[first]"}},
		{"tools that are all added", nil, nil, services, []string{"tools=[first]"}},
		{"tools that are refused", nil, services[:1], services[:1], []string{"tools=[first]"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			log := &logged{}
			s, err := New(Options{Store: test.store, Logger: log.logger()}, test.services...)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for _, service := range test.register {
				_ = s.Register(service)
			}
			var got []string
			for line := range strings.Lines(log.String()) {
				if _, tools, ok := strings.Cut(line, warning); ok && strings.Contains(line, "level=WARN") {
					_, tools, _ = strings.Cut(strings.TrimSpace(tools), `" `)
					got = append(got, tools)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("it warns of %q, want %q:\n%s", got, test.want, log)
			}
		})
	}
}

// TestFallbackNamesAreReserved checks that no tool has the name of a fallback tool, in any order of
// services. Services may share a set of fallback tools.
func TestFallbackNamesAreReserved(t *testing.T) {
	handler := func(context.Context, *mcptask.Task, struct{}) (string, error) { return "", nil }
	service := func(name, prefix string, fallback mcptask.Fallback, tools ...string) mcptask.Tools {
		bound := mcptask.Tools{Service: name, Impl: 1, Prefix: prefix, Fallback: fallback}
		for _, tool := range tools {
			bound.Tools = append(bound.Tools, mcptask.NewTool(mcptask.ToolSpec{Name: tool, InputSchema: `{"type":"object"}`}, handler))
		}
		return bound
	}
	for _, test := range []struct {
		services []mcptask.Tools
		want     string // "" is no error
	}{
		{[]mcptask.Tools{service("A", "", mcptask.FallbackTools, "a"), service("B", "", mcptask.FallbackTools, "b")}, ""},
		{[]mcptask.Tools{service("A", "x_", mcptask.FallbackTools, "task_status"), service("B", "", mcptask.FallbackNone, "task_result")}, ""},
		{[]mcptask.Tools{service("A", "", mcptask.FallbackTools, "task_status")}, `"task_status" is a tool of service A, and a fallback tool of service A`},
		{[]mcptask.Tools{service("A", "x_", mcptask.FallbackTools), service("B", "", mcptask.FallbackNone, "x_task_answer")}, `"x_task_answer" is a tool of service B, and a fallback tool of service A`},
		{[]mcptask.Tools{service("B", "", mcptask.FallbackNone, "x_task_cancel"), service("A", "x_", mcptask.FallbackTools)}, `its fallback tool "x_task_cancel" is a tool of service B`},
	} {
		s, err := New(Options{}, test.services...)
		if err == nil {
			_ = s.Close()
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// TestNoRevisions checks that an empty list of revisions means the default ones. A flag that was
// not set gives such a list.
func TestNoRevisions(t *testing.T) {
	s, err := New(Options{Revisions: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := strings.Join(s.Backend().Options().Revisions, " "); got != "2025-11-25 2026-07-28" {
		t.Error(got)
	}
}

// TestAllowedOrigins checks that an allowed origin that no browser sends is a mistake.
func TestAllowedOrigins(t *testing.T) {
	for origin, isOne := range map[string]bool{
		"https://app.example.com": true, "http://localhost:6274": true, "http://[::1]:8080": true, "chrome-extension://abcdefgh": true,
		"": false, "null": false, "*": false, "app.example.com": false, "https://app.example.com/": false, "https://app.example.com/page": false,
		"https://*.example.com": false, "https://App.example.com": false, "https://app.example.com:443": false, "http://app.example.com:80": false,
		"https://me@app.example.com": false, "https://": false, "https://app.example.com:": false, "https://bücher.example": false, "https://a?b": false,
	} {
		s, err := New(Options{AllowedOrigins: []string{origin}})
		if isOne != (err == nil) || err != nil && !strings.Contains(err.Error(), "Options.AllowedOrigins") {
			t.Errorf("%q: %v", origin, err)
		}
		if err == nil {
			_ = s.Close()
		}
	}
}

// TestAllowedHostsAreNames checks that an allowed host that no request could have is a mistake.
func TestAllowedHostsAreNames(t *testing.T) {
	for host, isName := range map[string]bool{
		"mcp.example.com": true, "10.0.0.7": true,
		"": false, "https://mcp.example.com": false, "mcp.example.com:443": false, "mcp.example.com/mcp": false, "*.example.com": false,
	} {
		s, err := New(Options{AllowedHosts: []string{host}})
		if isName != (err == nil) || err != nil && !strings.Contains(err.Error(), "Options.AllowedHosts") {
			t.Errorf("%q: %v", host, err)
		}
		if s != nil {
			_ = s.Close()
		}
	}
}

// TestUnknownRevision checks that an unknown revision is reported as one mistake, without advice to
// generate a service for it.
func TestUnknownRevision(t *testing.T) {
	service := mcptask.Tools{Service: "S", Impl: struct{}{}, Capabilities: mcptask.Capabilities{mcptask.Revision20251125: mcptask.Declared()[mcptask.Revision20251125]}}
	_, err := New(Options{Revisions: []string{"2026-07-27"}}, service)
	if err == nil || !strings.Contains(err.Error(), `"2026-07-27" is none of the revisions`) || strings.Contains(err.Error(), "--revision") {
		t.Error(err)
	}
}

// TestNilStore checks that a nil pointer to a store is a mistake that is named.
func TestNilStore(t *testing.T) {
	var store *failing
	if _, err := New(Options{Store: store}); err == nil || !strings.Contains(err.Error(), "a nil *taskserver.failing") {
		t.Error(err)
	}
}

// failing is a store whose methods panic.
type failing struct{ taskstore.Store }
