package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// newScript is a server that answers from a table, with these capabilities. An
// empty text is an answer that never comes.
func newScript(t *testing.T, revision, capabilities string, results map[string]func(call) string) *scripted {
	s := &scripted{t: t, revision: revision}
	results["server/discover"] = constant(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":` + capabilities +
		`,"serverInfo":{"name":"s","version":"1"},"ttlMs":0,"cacheScope":"private"}`)
	if revision != wiretest.ModernRevision {
		delete(results, "server/discover")
		results["initialize"] = constant(`{"protocolVersion":"` + s.protocol() + `","capabilities":` + capabilities + `,"serverInfo":{"name":"s","version":"1"}}`)
	}
	s.answer = func(c call) reply {
		if results[c.method] == nil {
			return refusal(wiretest.MethodNotFound, "")
		}
		text := results[c.method](c)
		if text == "" {
			<-c.ctx.Done()
		}
		return reply{result: text}
	}
	return s
}

const (
	stampedTask = `"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z"`
	wireResult  = `"content":[{"type":"text","text":"done"}]`
)

// legacyTask is a task of 2025-11-25 on the wire.
func legacyTask(status string) string {
	return `{"taskId":"T","status":"` + status + `",` + stampedTask + `,"ttl":null,"pollInterval":5}`
}

func constant(text string) func(call) string { return func(call) string { return text } }

// The client asks for a task where the server takes calls as tasks and the tool
// may be one; a tool that has to be one is never called plainly.
func TestClientAugments(t *testing.T) {
	rules.Covers(t, "C-03", "C-04", "C-08", "C-09", "C-11", "C-12")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		const tools = `{"tools":[
		{"name":"required","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},
		{"name":"optional","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},
		{"name":"forbidden","inputSchema":{"type":"object"},"execution":{"taskSupport":"forbidden"}},
		{"name":"silent","inputSchema":{"type":"object"}},
		{"name":"empty","inputSchema":{"type":"object"},"execution":{}}]}`
		for capabilities, takes := range map[string]bool{
			`{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`:                       true,
			`{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`: true,
			`{"tools":{}}`:                                                             false,
			`{"tools":{},"tasks":{}}`:                                                  false,
			`{"tools":{},"tasks":{"list":{},"cancel":{}}}`:                             false,
			`{"tools":{},"tasks":{"requests":{}}}`:                                     false,
			`{"tools":{},"tasks":{"requests":{"tools":{}}}}`:                           false,
			`{"tools":{},"tasks":{"requests":{"sampling":{"createMessage":{}}}}}`:      false,
			`{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`:           false,
			`{"tools":{},"experimental":{"tasks":{"requests":{"tools":{"call":{}}}}}}`: false,
		} {
			s := newScript(t, wiretest.LegacyRevision, capabilities, map[string]func(call) string{
				"tools/list": constant(tools),
				"tools/call": func(c call) string {
					if c.member("task") != "" {
						return `{"task":` + legacyTask("completed") + `}`
					}
					return `{` + wireResult + `}`
				},
				"tasks/get":    constant(legacyTask("completed")),
				"tasks/result": constant(`{` + wireResult + `}`),
			})
			conn := s.connect(gosdk.ClientOptions{})
			for tool, support := range map[string]string{"required": "required", "optional": "optional", "forbidden": "", "silent": "", "empty": "", "unlisted": ""} {
				for _, plain := range []bool{false, true} {
					var opts []mcptask.CallOption
					if plain {
						opts = append(opts, mcptask.Plain())
					}
					before := len(s.of("tools/call"))
					if got, err := mcptask.Run[string](t.Context(), conn, tool, struct{}{}, opts...); got != "done" || err != nil {
						t.Errorf("%s with %s: %q, %v", tool, capabilities, got, err)
					}
					want := takes && (support == "required" || support == "optional" && !plain)
					calls := s.of("tools/call")[before:]
					if len(calls) != 1 || (calls[0].member("task") != "") != want {
						t.Errorf("%s, plain %v, with %s: %v, as a task: want %v", tool, plain, capabilities, calls, want)
					}
				}
			}
		}
	})
}

// What the client sends for a task: its ID, no related-task, and tasks/cancel
// for who wants it cancelled, never a cancellation of the call.
func TestClientCancels(t *testing.T) {
	rules.Covers(t, "C-64", "C-73", "C-74", "B-59", "B-68", "B-69", "E-53")
	t.Parallel()
	eachOfAll(t, func(t *testing.T, revision string) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		working := legacyTask("working")
		created, capabilities := `{"task":`+working+`}`, `{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}`
		acknowledged := legacyTask("cancelled")
		if revision == wiretest.ModernRevision {
			const task = `"taskId":"T","status":"working",` + stampedTask + `,"ttlMs":null,"pollIntervalMs":5}`
			working, created = `{"resultType":"complete",`+task, `{"resultType":"task",`+task
			acknowledged, capabilities = `{"resultType":"complete"}`, `{"tools":{},`+wiretest.TasksExtension[1:]
		}
		s := newScript(t, revision, capabilities, map[string]func(call) string{
			"tools/list": constant(`{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"},"annotations":{"taskHint":"always"}}],"ttlMs":0,"cacheScope":"private"}`),
			"tools/call": constant(created), "tasks/cancel": constant(acknowledged),
			"tasks/get": func(c call) string {
				if c.n <= 5 {
					return working
				}
				leave() // who waits, in the middle of a poll
				return ""
			},
		})
		conn := s.connect(gosdk.ClientOptions{})
		call, err := mcptask.Start[string](t.Context(), conn, "t", struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		if err := call.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := mcptask.Run[string](ctx, conn, "t", struct{}{}); err == nil {
			t.Error("a task without an end has ended")
		}
		if n := len(s.of("tasks/cancel")); n != 2 {
			t.Errorf("%d times tasks/cancel", n)
		}
		_ = conn.Close() // whatever is still to be sent
		var calls []string
		for _, m := range s.of("tools/call") {
			calls = append(calls, string(m.id))
		}
		if len(calls) != 2 {
			t.Errorf("%d calls", len(calls))
		}
		for _, m := range s.of("notifications/cancelled") {
			if slices.Contains(calls, m.member("requestId")) {
				t.Errorf("the call of a task was cancelled: %s", m.params)
			}
		}
		for _, method := range []string{"tasks/get", "tasks/cancel"} {
			for _, m := range s.of(method) {
				if m.member("taskId") != `"T"` || strings.Contains(m.member("_meta"), "related-task") {
					t.Errorf("%s: %s", method, m.params)
				}
			}
		}
	})
}

// Each request of 2026-07-28 says what the client can take, and what answers it
// may be either.
func TestClientDeclares(t *testing.T) {
	rules.Covers(t, "E-02", "E-04", "E-06")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		const task = `"taskId":"T",` + stampedTask + `,"ttlMs":null,"pollIntervalMs":5`
		s := newScript(t, wiretest.ModernRevision, `{"tools":{},`+wiretest.TasksExtension[1:], map[string]func(call) string{
			"tools/list": constant(`{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`),
			"tools/call": func(c call) string {
				if c.n%2 == 1 {
					return `{"resultType":"complete",` + wireResult + `}`
				}
				return `{"resultType":"task","status":"working",` + task + `}`
			},
			"tasks/get": constant(`{"resultType":"complete","status":"completed",` + task + `,"result":{"resultType":"complete",` + wireResult + `}}`),
		})
		conn := s.connect(gosdk.ClientOptions{})
		for range 4 {
			if got, err := mcptask.Run[string](t.Context(), conn, "t", struct{}{}); got != "done" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		}
		if calls, polls := len(s.of("tools/call")), len(s.of("tasks/get")); calls != 4 || polls != 2 {
			t.Errorf("%d calls, %d polls", calls, polls)
		}
		for _, m := range append(s.of("tools/call"), s.of("tasks/get")...) {
			var meta struct {
				Capabilities struct {
					Extensions map[string]json.RawMessage `json:"extensions"`
				} `json:"io.modelcontextprotocol/clientCapabilities"`
			}
			if err := json.Unmarshal([]byte(m.member("_meta")), &meta); err != nil || string(meta.Capabilities.Extensions[mcptask.ExtensionTasks]) != "{}" {
				t.Errorf("%s declares %s, %v", m.method, m.member("_meta"), err)
			}
			if m.member("task") != "" {
				t.Errorf("%s: %s", m.method, m.params)
			}
		}
	})
}

// Cursors go back as they came. The client reads the pages of tools/list; it has
// no use for tasks/list.
func TestClientCursors(t *testing.T) {
	rules.Covers(t, "C-71", "B-66")
	t.Parallel()
	cursors := []string{"b", "a", "2", " ", "=?base64?eA==?=", "ü\u2028\x00", `{"page":1.50,"then":null}`, "a%2Fb+c/d==", strings.Repeat("x", 10_000), "b"}
	eachOfAll(t, func(t *testing.T, revision string) {
		s := newScript(t, revision, `{"tools":{}}`, map[string]func(call) string{
			"tools/list": func(c call) string {
				n := c.n - 1
				page := map[string]any{"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
					"tools": []any{map[string]any{"name": fmt.Sprint("t", n), "inputSchema": map[string]any{"type": "object"}}}}
				if n < len(cursors) {
					page["nextCursor"] = cursors[n]
				}
				data, err := json.Marshal(page)
				if err != nil {
					t.Error(err)
				}
				return string(data)
			},
		})
		tools, err := s.connect(gosdk.ClientOptions{}).ListTools(t.Context())
		if err != nil || len(tools) != len(cursors)+1 {
			t.Errorf("%d tools, %v", len(tools), err)
		}
		for i, m := range s.of("tools/list") {
			var got string
			if i == 0 {
				if m.member("cursor") != "" {
					t.Errorf("a cursor of nobody's: %s", m.member("cursor"))
				}
				continue
			}
			if err := json.Unmarshal([]byte(m.member("cursor")), &got); err != nil || got != cursors[i-1] {
				t.Errorf("%.60q came back as %.60s, %v", cursors[i-1], m.member("cursor"), err)
			}
		}
	})
}

// What a client answers to a request of a task's names the task, and what it
// answers to others does not.
func TestClientAnswersRelated(t *testing.T) {
	rules.Covers(t, "C-61")
	checkClientAnswersRelated(t, wiretest.LegacyRevision)
}

func TestCandidateClientAnswersRelated(t *testing.T) {
	rules.Covers(t, "B-56")
	checkClientAnswersRelated(t, wiretest.CandidateRevision)
}

func checkClientAnswersRelated(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := wiretest.ServeAsk(t, wiretest.Setup{Revision: revision})
		var mu sync.Mutex
		var related []string
		wire := roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				r = r.Clone(r.Context())
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				var m struct {
					Method string
					Result *struct {
						TaskID string                             // of what answers tasks/get (C-66)
						Meta   map[string]struct{ TaskID string } `json:"_meta"`
					}
				}
				if json.Unmarshal(body, &m) == nil && m.Method == "" && m.Result != nil && m.Result.TaskID == "" {
					mu.Lock()
					related = append(related, m.Result.Meta[mcptask.MetaRelatedTask].TaskID)
					mu.Unlock()
				}
			}
			return memnet.OneOff.RoundTrip(r)
		})
		conn, err := gosdk.Connect(t.Context(), wiretest.RevisionURL(url, revision), gosdk.ClientOptions{Revision: revision, HTTPClient: &http.Client{Transport: wire},
			Roots: []mcptask.Root{{URI: "file:///a"}},
			Sample: func(_ context.Context, r mcptask.SampleRequest) (*mcptask.SampleResult, error) {
				return &mcptask.SampleResult{Role: "assistant", Model: "m", Content: r.Messages[0].Content}, nil
			},
			Answer: mcptask.Answer(wiretest.NoteSpec, func(context.Context, mcptask.Question) (wiretest.NoteInput, error) {
				return wiretest.NoteInput{Note: "yes"}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), wiretest.Patience)
		defer cancel()
		for _, tool := range []string{"ask", "sample", "roots"} {
			for _, plain := range []bool{false, true} {
				var opts []mcptask.CallOption
				if plain {
					opts = append(opts, mcptask.Plain())
				}
				call, err := mcptask.Start[string](ctx, conn, tool, wiretest.AskInput{Steps: []string{"one"}}, opts...)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := call.Wait(ctx); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				got := related
				related = nil
				mu.Unlock()
				want := 1
				if !plain && tool != "roots" {
					want = 2 // the task that the client makes of it, and the result of that
				}
				if len(got) != want || slices.Contains(got, "") != plain {
					t.Errorf("%s, plain %v: the answers are related to %q", tool, plain, got)
				}
			}
		}
	})
}

// roundTrip is a transport made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
