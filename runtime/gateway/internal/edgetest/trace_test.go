package edgetest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

const (
	sentParent  = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	otherParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// tracedTools are a tool whose calls become tasks, and one whose calls never do. They return the trace that
// their handler is told.
func tracedTools() mcptask.Tools {
	traced := func(name string, support mcptask.TaskSupport) mcptask.Tool {
		return mcptask.NewTool(mcptask.ToolSpec{Name: name, InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: support}},
			func(_ context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				return "trace: " + task.Trace(), nil
			})
	}
	return mcptask.Tools{Service: "Traced", Impl: struct{}{}, Fallback: mcptask.FallbackNone, Tools: []mcptask.Tool{
		traced("traced_task", mcptask.TaskRequired), traced("traced_plain", mcptask.TaskForbidden),
	}}
}

// withHeaders returns an Edit that adds headers.
func withHeaders(pairs ...string) wiretest.Edit {
	return func(r *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			r.Header.Add(pairs[i], pairs[i+1])
		}
	}
}

// callTraced calls a traced tool with members of _meta, and returns what its handler was told.
func callTraced(p *wiretest.Peer, tool string, meta map[string]any, edits ...wiretest.Edit) (trace, task string) {
	p.T.Helper()
	params := map[string]any{"name": tool, "arguments": map[string]any{}}
	if meta != nil {
		params["_meta"] = meta
	}
	if tool == "traced_plain" {
		return strings.TrimPrefix(p.Call("tools/call", params, edits...).Content(), "trace: "), ""
	}
	path := []string{"taskId"}
	if p.Revision != wiretest.ModernRevision {
		params["task"], path = map[string]any{}, []string{"task", "taskId"}
	}
	task = p.Call("tools/call", params, edits...).OK().Text(path...)
	p.Until(task, "completed")
	return strings.TrimPrefix(p.TaskText(task), "trace: "), task
}

// TestTraceOfCall checks which trace the handler of a call is told, and that the task's record has it.
func TestTraceOfCall(t *testing.T) {
	tests := map[string]struct {
		meta    map[string]any
		headers []string
		want    string
	}{
		"none":                      {nil, nil, ""},
		"headers":                   {nil, []string{"traceparent", sentParent, "tracestate", "a=b"}, sentParent + "\na=b"},
		"a header":                  {nil, []string{"Traceparent", sentParent}, sentParent},
		"two headers of a state":    {nil, []string{"traceparent", sentParent, "tracestate", "a=b", "tracestate", "c=d"}, sentParent + "\na=b,c=d"},
		"two parents":               {nil, []string{"traceparent", sentParent, "traceparent", otherParent}, ""},
		"a state alone":             {nil, []string{"tracestate", "a=b"}, ""},
		"a bad header":              {nil, []string{"traceparent", sentParent + "-x"}, ""},
		"a bad state":               {nil, []string{"traceparent", sentParent, "tracestate", "A=B"}, sentParent},
		"meta":                      {map[string]any{"traceparent": sentParent, "tracestate": "a=b"}, nil, sentParent + "\na=b"},
		"meta and headers":          {map[string]any{"traceparent": sentParent}, []string{"traceparent", otherParent}, sentParent},
		"meta without state":        {map[string]any{"traceparent": sentParent}, []string{"traceparent", otherParent, "tracestate", "a=b"}, sentParent},
		"bad meta and headers":      {map[string]any{"traceparent": "x", "tracestate": "c=d"}, []string{"traceparent", otherParent, "tracestate", "a=b"}, otherParent + "\na=b"},
		"a number":                  {map[string]any{"traceparent": 5, "tracestate": 5}, nil, ""},
		"null":                      {map[string]any{"traceparent": nil, "tracestate": nil}, nil, ""},
		"an object":                 {map[string]any{"traceparent": map[string]any{"traceparent": sentParent}}, nil, ""},
		"a state that is an object": {map[string]any{"traceparent": sentParent, "tracestate": []string{"a=b"}}, nil, sentParent},
		"a line break":              {map[string]any{"traceparent": sentParent + "\na=b"}, nil, ""},
		"a state of two lines":      {map[string]any{"traceparent": sentParent, "tracestate": "a=b\nc=d"}, nil, sentParent},
		"a long state":              {map[string]any{"traceparent": sentParent, "tracestate": strings.Repeat("a=b,", 10_000)}, nil, sentParent},
		"another case":              {map[string]any{"Traceparent": sentParent}, nil, ""},
	}
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		url, tasks := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{tracedTools()}})
		p := wiretest.NewPeer(t, url, revision, "")
		for name, test := range tests {
			for _, tool := range []string{"traced_task", "traced_plain"} {
				trace, task := callTraced(p, tool, test.meta, withHeaders(test.headers...))
				if trace != test.want {
					t.Errorf("%s, %s: %q, want %q", name, tool, trace, test.want)
				}
				if task == "" {
					continue
				}
				if r, err := tasks.Backend().Peek(task); err != nil || r.Trace != test.want {
					t.Errorf("%s, %s: the record has %q, %v", name, tool, r.Trace, err)
				}
			}
		}
	})
}

// TestTraceOfHelpedCall checks that a client without tasks is no exception: its call runs as a task behind it.
func TestTraceOfHelpedCall(t *testing.T) {
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		helped := tracedTools()
		helped.Fallback = mcptask.FallbackTools
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{helped}})
		p := wiretest.NewPeerWith(t, url, revision, "", `{}`)
		r := p.Call("tools/call", map[string]any{"name": "traced_task", "arguments": map[string]any{}, "_meta": map[string]any{"traceparent": sentParent}})
		if got := r.Content(); got != "trace: "+sentParent {
			t.Error(got)
		}
	})
}

// TestTraceOfRepeatedCall checks that a call with an idempotency key that has a task changes nothing of that task.
func TestTraceOfRepeatedCall(t *testing.T) {
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		url, tasks := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{tracedTools()}})
		p := wiretest.NewPeer(t, url, revision, "")
		meta := map[string]any{spec.MetaIdempotencyKey: "a-key-of-sixteen-bytes", "traceparent": sentParent}
		_, task := callTraced(p, "traced_task", meta)
		meta["traceparent"] = otherParent
		r := p.Call("tools/call", map[string]any{"name": "traced_task", "arguments": map[string]any{}, "task": map[string]any{}, "_meta": meta}).OK()
		if revision == wiretest.ModernRevision { // the answer has the result, since the task has ended
			r.WantText(false, "trace: "+sentParent)
		} else if again := r.Text("task", "taskId"); again != task {
			t.Errorf("%s and %s", task, again)
		}
		if record, err := tasks.Backend().Peek(task); err != nil || record.Trace != sentParent {
			t.Errorf("%q, %v", record.Trace, err)
		}
	})
}

// TestTraceOnPipe checks that calls on a pipe name their trace in _meta.
func TestTraceOnPipe(t *testing.T) {
	const state = `,"tracestate":"a=b"`
	for name, test := range map[string]struct{ members, want string }{
		"good":        {`"traceparent":"` + sentParent + `"` + state, sentParent + "\na=b"},
		"escaped":     {`"traceparent":"\u0030` + sentParent[1:] + `"` + state, sentParent + "\na=b"},
		"bad":         {`"traceparent":"` + sentParent + `-"` + state, ""},
		"not text":    {`"traceparent":["` + sentParent + `"]` + state, ""},
		"a bad state": {`"traceparent":"` + sentParent + `","tracestate":"a=b\nc=d"`, sentParent},
		"none":        {`"x":1`, ""},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := wiretest.NewPiped(t, tracedTools().Tools...)
			p.Initialize()
			for meta, task := range map[string]string{
				`"_meta":{` + test.members + `}`:                          `,"task":{}`,
				strings.Replace(modernMeta, `{`, `{`+test.members+`,`, 1): "",
			} {
				var answer struct {
					Result struct {
						Task    struct{ TaskID string }
						TaskID  string
						Content []struct{ Text string }
						Result  struct{ Content []struct{ Text string } }
					}
				}
				ask := func(method, params string) {
					t.Helper()
					answer.Result.Content, answer.Result.Result.Content = nil, nil
					p.Say(`{"jsonrpc":"2.0","id":"1","method":%q,"params":{%s}}`, method, params)
					if line := p.NextMessage().Line; json.Unmarshal([]byte(line), &answer) != nil || strings.Contains(line, `"error"`) {
						t.Fatal(line)
					}
				}
				want := "trace: " + test.want
				ask("tools/call", `"name":"traced_plain","arguments":{},`+meta)
				if c := answer.Result.Content; len(c) != 1 || c[0].Text != want {
					t.Errorf("%s: %+v, want %q", meta, c, want)
				}
				ask("tools/call", `"name":"traced_task","arguments":{},`+meta+task)
				var told []struct{ Text string }
				if task != "" {
					ask("tasks/result", `"taskId":"`+answer.Result.Task.TaskID+`"`)
					told = answer.Result.Content
				} else {
					synctest.Wait() // the task has ended
					ask("tasks/get", `"taskId":"`+answer.Result.TaskID+`",`+modernMeta)
					told = answer.Result.Result.Content
				}
				if len(told) != 1 || told[0].Text != want {
					t.Errorf("%s: the task was told %+v, want %q", meta, told, want)
				}
			}
		})
	}
}

// TestBadTraceChangesNothing checks that the answer to a call with a malformed trace is that of a call without
// one, and that nobody writes the trace down, be it good or bad.
func TestBadTraceChangesNothing(t *testing.T) {
	id := regexp.MustCompile(`"id":\d+`)
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		logs := &wiretest.SafeBuffer{}
		logger := slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{tracedTools()}, Options: taskserver.Options{Logger: logger}})
		p := wiretest.NewPeer(t, url, revision, "")
		call := func(tool string, meta map[string]any, edits ...wiretest.Edit) string {
			params := map[string]any{"name": tool, "arguments": map[string]any{}, "_meta": meta}
			r := p.Call("tools/call", params, edits...)
			return fmt.Sprint(r.Status, r.Stream, id.ReplaceAllString(string(r.Body), ""))
		}
		long := strings.Repeat("secret-", 4000)
		for _, tool := range []string{"traced_plain", "sdk_tool", "no_tool"} {
			want := call(tool, map[string]any{})
			for _, bad := range []any{"secret", long, "00-secret", sentParent + "-secret", 5, []string{"secret"}, nil} {
				if got := call(tool, map[string]any{"traceparent": bad, "tracestate": bad}); got != want {
					t.Errorf("%s, %.40v in _meta: %s, want %s", tool, bad, got, want)
				}
				if text, ok := bad.(string); ok {
					if got := call(tool, map[string]any{}, withHeaders("traceparent", text, "tracestate", text)); got != want {
						t.Errorf("%s, %.40v in headers: %s, want %s", tool, bad, got, want)
					}
				}
			}
		}
		if _, task := callTraced(p, "traced_task", map[string]any{"traceparent": sentParent, "tracestate": "secret=x"}); !strings.Contains(logs.WaitFor(t, `"task ended"`, 1), task[:8]) {
			t.Errorf("%s is not in the log", task)
		}
		if text := logs.String(); strings.Contains(text, "secret") || strings.Contains(text, sentParent[3:35]) {
			t.Errorf("%s", text)
		}
	})
}
