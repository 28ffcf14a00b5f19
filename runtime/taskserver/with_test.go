package taskserver

import (
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// TestWith changes policies of a bound service, which itself stays as it is. What is wrong is New's error.
func TestWith(t *testing.T) {
	listed := mcptask.NewTool(mcptask.ToolSpec{Entry: `{"name":"listed","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}`}, double)
	bound := mcptask.Tools{Service: "S", Impl: 1, Tools: []mcptask.Tool{
		numberTool("a", mcptask.Policy{Task: mcptask.TaskOptional, Poll: time.Minute}, double), numberTool("b", mcptask.Policy{}, double), listed}}
	change := func(change func(*mcptask.Policy)) func(string) mcptask.Tools {
		return func(tool string) mcptask.Tools { return bound.With(tool, change) }
	}
	hour := change(func(p *mcptask.Policy) { p.TTL = time.Hour })
	s, err := New(Options{}, hour("a").With("listed", func(p *mcptask.Policy) { p.TTL = 2 * time.Hour }))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, want := range map[string]time.Duration{"a": time.Hour, "b": mcptask.DefaultTTL, "listed": 2 * time.Hour} {
		if spec, _ := s.Backend().Tool(name); spec.Policy.TTL != want || name == "a" && spec.Policy.Poll != time.Minute {
			t.Errorf("%s: %+v", name, spec.Policy)
		}
	}
	if ttl := bound.Tools[0].Spec.Policy.TTL; ttl != 0 {
		t.Errorf("the original has ttl %v", ttl)
	}
	for name, test := range map[string]struct {
		tools mcptask.Tools
		want  []string
	}{
		"unknown tools": {hour("A").With("c", nil), []string{`service S: With("A"): there is no such tool, only ["a" "b" "listed"]`, `With("c")`}},
		"invalid":       {change(func(p *mcptask.Policy) { p.OnLost = "shrug" })("a"), []string{`tool "a": lost policy "shrug"`}},
		"of an entry":   {change(func(p *mcptask.Policy) { p.Task = mcptask.TaskRequired })("listed"), []string{`tool "listed": its Policy has the task support required and its Entry optional`}},
		"nil":           {mcptask.Tools{Service: "S"}.With("a", nil), []string{"the implementation is nil"}},
	} {
		_, err := New(Options{}, test.tools)
		if err == nil {
			t.Fatalf("%s: taken", name)
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
		if name == "nil" && strings.Contains(err.Error(), "With") {
			t.Errorf("%v", err)
		}
	}
}

// TestConcurrencyNeedsTheLocalExecutor checks that no tool has a bound that its executor would not keep.
func TestConcurrencyNeedsTheLocalExecutor(t *testing.T) {
	tools := mcptask.Tools{Service: "S", Impl: 1, Tools: []mcptask.Tool{numberTool("a", mcptask.Policy{Task: mcptask.TaskOptional, Concurrency: 2}, double)}}
	const want = `tool "a": concurrency 2 bounds only the local executor`
	options := Options{Executor: func(RunFunc) (Executor, error) { return idle{}, nil }}
	if _, err := New(options, tools); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("New: %v", err)
	}
	s := newServer(t, options, numberTool("b", mcptask.Policy{}, double)).server
	if err := s.Register(tools); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Register: %v", err)
	}
	without := tools.With("a", func(p *mcptask.Policy) { p.Concurrency = 0 })
	if err := s.Register(without); err != nil {
		t.Error(err)
	}
	if spec, _ := newServer(t, Options{}, tools.Tools...).Tool("a"); spec.Policy.Concurrency != 2 {
		t.Errorf("%+v", spec.Policy)
	}
}
