package edgetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/questions"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// road is one of two servers. They differ only in one thing: one answers task calls without the SDK.
type road struct {
	p    *wiretest.Peer
	seen *atomic.Int32 // the calls that the server's middleware has seen
}

// directCall is a call that is sent on both roads.
type directCall struct {
	name   string
	params string
	meta   string // members of the _meta beside those of the revision
	header http.Header
	id     string
	sdk    bool // the SDK gets the call on both roads
}

// quickTools have tools that are answered at once in 2026-07-28.
func quickTools() mcptask.Tools {
	spec := func(name string) mcptask.ToolSpec {
		return mcptask.ToolSpec{Name: name, InputSchema: wiretest.OpenObject,
			Policy: mcptask.Policy{Task: mcptask.TaskOptional, Grace: time.Hour, TTL: 2 * time.Hour, Immediate: "It runs."}}
	}
	fails := func(code int, data string) func(context.Context, *mcptask.Task, struct{}) (string, error) {
		return func(context.Context, *mcptask.Task, struct{}) (string, error) {
			return "", &mcptask.Error{Code: code, Message: "a <fault> & more", Data: json.RawMessage(data)}
		}
	}
	annotated := spec("with_header")
	annotated.InputSchema = `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`
	return mcptask.Tools{Service: "Quick", Impl: struct{}{}, Tools: []mcptask.Tool{
		mcptask.NewTool(spec("rich"), func(context.Context, *mcptask.Task, struct{}) (*mcptask.Result, error) {
			return &mcptask.Result{
				Content:    []mcptask.Content{mcptask.TextContent("a < b && \u2028 \"c\""), mcptask.Content(`{"type":"scene","z":1.50}`)},
				Structured: json.RawMessage(`{"big":9007199254740993,"one":1.0}`),
				Meta:       map[string]json.RawMessage{"com.example/own": json.RawMessage(`{"n":9007199254740993}`)},
			}, nil
		}),
		mcptask.NewTool(spec("tool_error"), func(context.Context, *mcptask.Task, struct{}) (string, error) {
			return "", fmt.Errorf("it is broken")
		}),
		mcptask.NewTool(spec("panics"), func(context.Context, *mcptask.Task, struct{}) (string, error) { panic("a bug") }),
		mcptask.NewTool(spec("not_found"), fails(wiretest.MethodNotFound, `{"a":[1]}`)),
		mcptask.NewTool(spec("bad_params"), fails(wiretest.InvalidParams, "")),
		mcptask.NewTool(spec("locked_up"), fails(-32050, `"text"`)),
		mcptask.NewTool(spec("odd_data"), fails(-32055, `{`)),
		mcptask.NewTool(annotated, func(context.Context, *mcptask.Task, struct{}) (string, error) { return "there", nil }),
	}}
}

func directCalls(modern bool) []directCall {
	const run = `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"main"}`
	lasting := strings.Replace(run, "main", "endless", 1)
	calls := []directCall{
		{name: "a task", params: run},
		{name: "an ID of text", params: run, id: `"a<b>\u00e9"`},
		{name: "a negative ID", params: run, id: `-7`},
		{name: "a ttl", params: run + `,"task":{"ttl":90000000}`},
		{name: "a bad ttl", params: run + `,"task":{"ttl":"x"}`},
		{name: "invalid arguments", params: `"name":"run_pipeline","arguments":{"repository":5}`},
		{name: "an array of arguments", params: `"name":"ponder","arguments":[1]`},
		{name: "no arguments", params: `"name":"ponder"`},
		{name: "null arguments", params: `"name":"ponder","arguments":null`},
		{name: "a large number", params: `"name":"ponder","arguments":{"ms":1e999}`, sdk: modern},
		{name: "a long number", params: `"name":"ponder","arguments":{"ms":` + strings.Repeat("1", 5000) + `}`, sdk: modern},
		{name: "deep arguments", params: `"name":"ponder","arguments":` + strings.Repeat("[", 900) + strings.Repeat("]", 900)},
		{name: "deeper arguments", params: `"name":"ponder","arguments":` + strings.Repeat("[", 1500) + strings.Repeat("]", 1500), sdk: modern},
		{name: "a deep member", params: run + `,"extra":` + strings.Repeat("[", 1500) + strings.Repeat("]", 1500)},
		{name: "too many arguments", params: `"name":"ponder","arguments":{"a":"` + strings.Repeat("x", 2<<20) + `"}`, sdk: modern},
		{name: "an unknown tool", params: `"name":"no_such","arguments":{}`, sdk: modern},
		{name: "a tool of the SDK", params: `"name":"sdk_tool","arguments":{},"task":5`, sdk: modern},
		{name: "a tool without tasks", params: `"name":"lint_file","arguments":{"path":"p"}`, sdk: modern},
		{name: "a key", params: lasting, meta: `"io.github.mcptaskgen/idempotency-key":"0123456789abcdef"`},
		{name: "the key again", params: lasting, meta: `"io.github.mcptaskgen/idempotency-key":"0123456789abcdef"`},
		{name: "the key with other arguments", params: strings.Replace(run, "main", "other", 1), meta: `"io.github.mcptaskgen/idempotency-key":"0123456789abcdef"`},
		{name: "a short key", params: run, meta: `"io.github.mcptaskgen/idempotency-key":"k"`},
		{name: "a progress token", params: run, meta: `"progressToken":"p"`, sdk: true},
		{name: "a long progress token", params: run, meta: `"progressToken":"` + strings.Repeat("p", 2000) + `"`},
		{name: "a null progress token", params: run, meta: `"progressToken":null`, sdk: true},
		{name: "a large number in _meta", params: run, meta: `"com.example/n":1e999`},
		{name: "unknown members", params: run + `,"extra":[1]`, meta: `"com.example/n":{"a":[1.50]}`},
		{name: "questions", params: `"name":"ask_first","arguments":{"name":"n"}`, sdk: !modern},
		{name: "an immediate text", params: `"name":"ponder","arguments":{"ms":0}`},
		{name: "JSON alone", params: run, header: http.Header{"Accept": {"application/json"}}},
		{name: "any media type", params: run, header: http.Header{"Accept": {"*/*"}}, sdk: true},
		{name: "parameters of media types", params: run, header: http.Header{"Accept": {"application/json;q=0.5", "text/event-stream; q=1"}}},
		{name: "Last-Event-ID", params: run, header: http.Header{"Last-Event-ID": {"1_1"}}},
		{name: "an annotated tool", params: `"name":"with_header","arguments":{"region":"x"}`, header: http.Header{"Mcp-Param-Region": {"x"}}, sdk: true},
		{name: "an annotated tool without its header", params: `"name":"with_header","arguments":{"region":"x"}`, sdk: !modern},
	}
	for _, tool := range []string{"rich", "tool_error", "panics", "not_found", "bad_params", "locked_up", "odd_data"} {
		calls = append(calls, directCall{name: tool, params: fmt.Sprintf(`"name":%q,"arguments":{}`, tool)})
	}
	if !modern {
		return append(calls,
			directCall{name: "junk among the answers", params: run + `,"inputResponses":5`},
			directCall{name: "a number as _meta", params: run + `,"_meta":5`},
			directCall{name: "a null _meta", params: run + `,"_meta":null`, sdk: true},
			directCall{name: "a call without a task", params: `"name":"ponder","arguments":{"ms":0}`, sdk: true},
		)
	}
	return append(calls,
		directCall{name: "junk among the answers", params: run + `,"inputResponses":{"a":7},"requestState":"x"`},
		directCall{name: "another name in the header", params: run, header: http.Header{"Mcp-Name": {"ponder"}}},
		directCall{name: "no method in the header", params: run, header: http.Header{"Mcp-Method": {}}},
		directCall{name: "a bad client", params: run, meta: `"io.modelcontextprotocol/clientInfo":5`},
		directCall{name: "a null client", params: run, meta: `"io.modelcontextprotocol/clientInfo":null`},
		directCall{name: "a client", params: run, meta: `"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}`},
		directCall{name: "bad capabilities", params: run, meta: `"io.modelcontextprotocol/clientCapabilities":{"sampling":5,"extensions":{"io.modelcontextprotocol/tasks":{}}}`},
		directCall{name: "no extension", params: `"name":"ponder","arguments":{"ms":0}`, meta: `"io.modelcontextprotocol/clientCapabilities":{}`, sdk: true},
		directCall{name: "another version", params: run, meta: `"io.modelcontextprotocol/protocolVersion":"2027-01-01"`},
	)
}

// body makes the message.
func (c directCall) body(modern bool) string {
	params, members := c.params, c.meta
	if modern {
		for name, value := range map[string]string{"protocolVersion": `"2026-07-28"`, "clientCapabilities": wiretest.WithQuestions} {
			if name = "io.modelcontextprotocol/" + name; !strings.Contains(members, name) {
				members += fmt.Sprintf(`,%q:%s`, name, value)
			}
		}
	} else if !strings.Contains(params, `"task":`) && c.name != "a call without a task" {
		params += `,"task":{}`
	}
	if members = strings.TrimPrefix(members, ","); members != "" {
		params += `,"_meta":{` + members + `}`
	}
	id := c.id
	if id == "" {
		id = "1"
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{` + params + `}}`
}

var (
	escapes  = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\u00e9`, "é")
	variable = regexp.MustCompile(`"taskId":"[^"]*"|"(createdAt|lastUpdatedAt)":"[^"]*"`)
	named    = regexp.MustCompile(`"name":"([^"]*)"`)
)

// answer returns everything that a client sees of an answer except IDs and times.
func (c directCall) answer(t *testing.T, r road, modern bool) string {
	t.Helper()
	edits := []wiretest.Edit{}
	if modern {
		edits = append(edits, wiretest.WithHeader("Mcp-Method", "tools/call"), wiretest.WithHeader("Mcp-Name", named.FindStringSubmatch(c.params)[1]))
	}
	body := c.body(modern)
	request := r.p.NewRequest(t.Context(), http.MethodPost, body, append(edits, func(r *http.Request) { maps.Copy(r.Header, c.header) })...)
	response, err := r.p.Client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	header := response.Header.Clone()
	header.Del("Date")
	header.Del("Content-Length") // set by net/http if nothing was flushed
	return fmt.Sprintf("%d %v\n%s", response.StatusCode, header, escapes.Replace(variable.ReplaceAllString(string(text), "#")))
}

// Calls get the same answers with the SDK and without it. Without it, the SDK's middleware sees only the calls that the
// SDK answers.
func TestDirectTaskCalls(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		for _, inJSON := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s in JSON %v", revision, inJSON), func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) {
					compareRoads(t, revision, inJSON)
				})
			})
		}
	}
}

func compareRoads(t *testing.T, revision string, inJSON bool) {
	modern := revision == wiretest.ModernRevision
	var roads []road
	for _, direct := range []bool{false, true} {
		seen := new(atomic.Int32)
		m := wiretest.WrapCalls(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
			seen.Add(1)
			return next()
		})
		url, _ := wiretest.ServeWith(t, wiretest.Setup{
			Middleware: m, Direct: direct, HTTP: wiretest.HTTPOptions(inJSON), Panics: true,
			Tools: []mcptask.Tools{questions.AskerTools(wiretest.FirstAsker{}), quickTools()},
		})
		p := wiretest.NewAskedPeer(t, url, revision, "", `{"elicitation":{}}`)
		if modern {
			p.Call("tools/list", nil).OK() // from now on, the gateway knows the SDK's name for the server
		}
		roads = append(roads, road{p, seen})
	}
	for _, c := range directCalls(modern) {
		if c.name == "questions" && !modern {
			continue // these come on the call's stream
		}
		var answers []string
		var saw []int32
		for _, r := range roads {
			before := r.seen.Load()
			answers = append(answers, c.answer(t, r, modern))
			saw = append(saw, r.seen.Load()-before)
		}
		if answers[0] != answers[1] && !(c.name == "not_found" && modern) { // the SDK loses this error's message
			t.Errorf("%s:\n%.600s\nwithout the SDK:\n%.600s", c.name, answers[0], answers[1])
		}
		created := strings.Contains(answers[0], `"status":"working"`)
		if (saw[1] > 0) != c.sdk || saw[1] > saw[0] || created && saw[0] == 0 {
			t.Errorf("%s: the middleware saw %d calls, and %d without the SDK: %.300s", c.name, saw[0], saw[1], answers[1])
		}
	}
}

// A server has the tools that AddTools gave it. In a session, these are the tools of the session's server.
func TestDirectTaskCallsByServer(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		tasks, err := mcptask.NewServer(mcptask.Options{Limits: wiretest.NoPollLimits}, wiretest.ExtraTools())
		if err != nil {
			t.Fatal(err)
		}
		var seen atomic.Int32
		servers := map[string]*mcp.Server{}
		for _, name := range []string{"with", "without", "bare"} {
			server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{
				Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
			})
			server.AddReceivingMiddleware(wiretest.WrapCalls(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
				seen.Add(1)
				return next()
			}))
			servers[name] = server
		}
		gosdk.AddTools(servers["with"], tasks)
		tool := &mcp.Tool{Name: "adopted"}
		adopted := func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, nil
		}
		if err := gosdk.AddTaskTool(servers["without"], tasks, tool, adopted, mcptask.Policy{Task: mcptask.TaskOptional}); err != nil {
			t.Fatal(err)
		}
		get := func(r *http.Request) *mcp.Server { return servers[r.Header.Get("Server")] }
		handler := memnet.NewServer(wirecheck.Handler(t, gosdk.NewHandler(tasks, get, nil, gosdk.DirectTaskCalls())), nil)
		t.Cleanup(func() {
			_ = tasks.Close() // nothing runs
			handler.Close()
			for _, server := range servers {
				wiretest.EndSessions(server)
			}
		})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			for name, has := range map[string]string{"with": "ponder", "without": "adopted", "bare": "", "none": ""} {
				p := wiretest.NewUnopenedPeer(t, handler.URL, revision, "", wiretest.TasksExtension)
				p.Client.Transport = withServer{p.Client.Transport, name}
				if revision == wiretest.ModernRevision {
					p.Call("tools/list", nil)
				} else if name != "none" {
					p.SendInitialize() // the gateway does not know the session of the bare server
				}
				for _, tool := range []string{"ponder", "adopted"} {
					before := seen.Load()
					r := p.Call("tools/call", map[string]any{"name": tool, "arguments": map[string]any{}, "task": map[string]any{}})
					if created := strings.Contains(string(r.Result), `"taskId"`); created != (tool == has) || created && seen.Load() > before {
						t.Errorf("%s of server %s in %s: seen %v, %d %s", tool, name, revision, seen.Load() > before, r.Status, r.Body)
					}
				}
			}
		}
	})
}

// withServer is a transport that names the server to call.
type withServer struct {
	http.RoundTripper
	name string
}

// RoundTrip implements http.RoundTripper.
func (w withServer) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Server", w.name)
	return w.RoundTripper.RoundTrip(r)
}

// CloseIdleConnections lets the client close them.
func (w withServer) CloseIdleConnections() {
	w.RoundTripper.(interface{ CloseIdleConnections() }).CloseIdleConnections()
}

// The SDK accepts only tokens of the user that has opened the session, whoever the principal is.
func TestDirectTaskCallsOfAnotherUser(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		everybody := func(context.Context) (string, error) { return "everybody", nil }
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Direct: true, Bearer: true, Options: mcptask.Options{Principal: everybody}})
		p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "alice")
		p.Create("ponder", nil)
		p.Token = "mallory"
		r := p.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{}})
		if r.Status != http.StatusForbidden {
			t.Errorf("%d %s", r.Status, r.Body)
		}
	})
}
