package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/questions"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// twin is one of two servers. They differ only in one thing: one serves all calls by the SDK's handler.
type twin struct {
	p *wiretest.Peer
	// seen counts the calls that the server's middleware has seen, and bySDK those of them that came from the SDK's handler.
	seen, bySDK *atomic.Int32
}

// twinCall is a call that both twins get.
type twinCall struct {
	name   string
	params string
	meta   string // members of the _meta beside those of the revision
	header http.Header
	id     string
	sdk    bool // the SDK's handler gets the call of both
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
		mcptask.NewTool(spec("locked_up"), fails(4050, `"text"`)),
		mcptask.NewTool(spec("odd_data"), fails(4055, `{`)),
		mcptask.NewTool(annotated, func(context.Context, *mcptask.Task, struct{}) (string, error) { return "there", nil }),
	}}
}

func twinCalls(modern bool) []twinCall {
	const run = `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"main"}`
	lasting := strings.Replace(run, "main", "endless", 1)
	calls := []twinCall{
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
		{name: "a tool without tasks", params: `"name":"lint_file","arguments":{"path":"p"}`},
		{name: "a key", params: lasting, meta: `"io.github.mcptaskgen/idempotency-key":"0123456789abcdef"`},
		{name: "the key again", params: lasting, meta: `"io.github.mcptaskgen/idempotency-key":"0123456789abcdef"`},
		{name: "the key with other arguments", params: strings.Replace(run, "main", "other", 1), meta: `"io.github.mcptaskgen/idempotency-key":"0123456789abcdef"`},
		{name: "a short key", params: run, meta: `"io.github.mcptaskgen/idempotency-key":"k"`},
		{name: "a progress token", params: run, meta: `"progressToken":"p"`},
		{name: "a long progress token", params: run, meta: `"progressToken":"` + strings.Repeat("p", 2000) + `"`},
		{name: "a null progress token", params: run, meta: `"progressToken":null`},
		{name: "a large number in _meta", params: run, meta: `"com.example/n":1e999`},
		{name: "unknown members", params: run + `,"extra":[1]`, meta: `"com.example/n":{"a":[1.50]}`},
		{name: "questions", params: `"name":"ask_first","arguments":{"name":"n"}`, sdk: !modern},
		{name: "an immediate text", params: `"name":"ponder","arguments":{"ms":0}`},
		{name: "JSON alone", params: run, header: http.Header{"Accept": {"application/json"}}},
		{name: "any media type", params: run, header: http.Header{"Accept": {"*/*"}}, sdk: true},
		{name: "parameters of media types", params: run, header: http.Header{"Accept": {"application/json;q=0.5", "text/event-stream; q=1"}}},
		{name: "Last-Event-ID", params: run, header: http.Header{"Last-Event-ID": {"1_1"}}},
		{name: "an annotated tool", params: `"name":"with_header","arguments":{"region":"x"}`, header: http.Header{"Mcp-Param-Region": {"x"}}, sdk: modern},
		{name: "an annotated tool without its header", params: `"name":"with_header","arguments":{"region":"x"}`},
	}
	for _, tool := range []string{"rich", "tool_error", "panics", "not_found", "bad_params", "locked_up", "odd_data"} {
		calls = append(calls, twinCall{name: tool, params: fmt.Sprintf(`"name":%q,"arguments":{}`, tool)})
	}
	if !modern {
		return append(calls,
			twinCall{name: "junk among the answers", params: run + `,"inputResponses":5`},
			twinCall{name: "a number as _meta", params: run + `,"_meta":5`},
			twinCall{name: "a null _meta", params: run + `,"_meta":null`, sdk: true},
			twinCall{name: "a call without a task", params: `"name":"ponder","arguments":{"ms":0}`},
		)
	}
	return append(calls,
		twinCall{name: "junk among the answers", params: run + `,"inputResponses":{"a":7},"requestState":"x"`},
		twinCall{name: "another name in the header", params: run, header: http.Header{"Mcp-Name": {"ponder"}}},
		twinCall{name: "no method in the header", params: run, header: http.Header{"Mcp-Method": {}}},
		twinCall{name: "a bad client", params: run, meta: `"io.modelcontextprotocol/clientInfo":5`},
		twinCall{name: "a null client", params: run, meta: `"io.modelcontextprotocol/clientInfo":null`},
		twinCall{name: "a client", params: run, meta: `"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}`},
		twinCall{name: "bad capabilities", params: run, meta: `"io.modelcontextprotocol/clientCapabilities":{"sampling":5,"extensions":{"io.modelcontextprotocol/tasks":{}}}`},
		twinCall{name: "no extension", params: `"name":"ponder","arguments":{"ms":0}`, meta: `"io.modelcontextprotocol/clientCapabilities":{}`},
		twinCall{name: "another version", params: run, meta: `"io.modelcontextprotocol/protocolVersion":"2027-01-01"`},
	)
}

// body makes the message.
func (c twinCall) body(modern bool) string {
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
	variable = regexp.MustCompile(`"taskId":"[^"]*"|"(createdAt|lastUpdatedAt)":"[^"]*"`)
	named    = regexp.MustCompile(`"name":"([^"]*)"`)
)

// answer returns everything that a client sees of an answer except IDs and times.
func (c twinCall) answer(t *testing.T, of twin, modern bool) string {
	t.Helper()
	edits := []wiretest.Edit{}
	if modern {
		edits = append(edits, wiretest.WithHeader("Mcp-Method", "tools/call"), wiretest.WithHeader("Mcp-Name", named.FindStringSubmatch(c.params)[1]))
	}
	body := c.body(modern)
	request := of.p.NewRequest(t.Context(), http.MethodPost, body, append(edits, func(r *http.Request) { maps.Copy(r.Header, c.header) })...)
	response, err := of.p.Client.Do(request)
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
	header.Del("Content-Length")                                        // set by net/http if nothing was flushed
	if begun, ok := strings.CutPrefix(string(text), ": open\n\n"); ok { // the gateway has begun the stream
		header.Del("X-Accel-Buffering")
		header.Set("Connection", "keep-alive")
		text = []byte(begun)
	}
	return fmt.Sprintf("%d %v\n%s", response.StatusCode, header, messages.ReplaceAllStringFunc(string(text), normalize))
}

// messages matches the JSON in the body of a response.
var messages = regexp.MustCompile(`\{.*\}`)

// normalize writes a message in one form. It replaces IDs and times, and leaves out the result type that the SDK forgets in
// a result of middleware.
func normalize(message string) string {
	decoder := json.NewDecoder(strings.NewReader(variable.ReplaceAllString(message, `"#":0`)))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		return err.Error() + message
	}
	if result, ok := value["result"].(map[string]any); ok && result["resultType"] == "complete" {
		delete(result, "resultType")
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error() + message
	}
	return string(text)
}

// newTwins serves the same tools twice. middleware may be nil.
func newTwins(t *testing.T, revision string, inJSON bool, s wiretest.Setup) []twin {
	t.Helper()
	var twins []twin
	for _, newHandler := range []func(*taskserver.Server, func(*http.Request) *mcp.Server, *mcp.StreamableHTTPOptions) http.Handler{gosdk.NewHandler, gosdk.NewSDKHandler} {
		seen, bySDK := new(atomic.Int32), new(atomic.Int32)
		own := s
		own.NewHandler, own.HTTP, own.Panics = newHandler, wiretest.HTTPOptions(inJSON), true
		own.Tools = []mcptask.Tools{questions.AskerTools(wiretest.FirstAsker{}), quickTools()}
		own.Middleware = wiretest.WrapCalls(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
			seen.Add(1)
			if bytes.Contains(debug.Stack(), []byte("/jsonrpc2.")) {
				bySDK.Add(1)
			}
			return next()
		})
		url, _ := wiretest.ServeWith(t, own)
		p := wiretest.NewAskedPeer(t, url, revision, "", `{"elicitation":{}}`)
		if revision == wiretest.ModernRevision {
			p.Call("tools/list", nil).OK() // from now on, the SDK's name for the server is known
		}
		twins = append(twins, twin{p, seen, bySDK})
	}
	return twins
}

// eachTwin runs a test for both revisions, with answers in streams and in JSON.
func eachTwin(t *testing.T, test func(t *testing.T, revision string, inJSON bool)) {
	t.Parallel()
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		for _, inJSON := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s in JSON %v", revision, inJSON), func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) { test(t, revision, inJSON) })
			})
		}
	}
}

// TestTwins checks that a call gets the same answer from the SDK's handler and without it, and that the SDK's middleware
// sees it once.
func TestTwins(t *testing.T) {
	eachTwin(t, func(t *testing.T, revision string, inJSON bool) {
		modern := revision == wiretest.ModernRevision
		twins := newTwins(t, revision, inJSON, wiretest.Setup{})
		for _, c := range twinCalls(modern) {
			if c.name == "questions" && !modern {
				continue // these come on the call's stream
			}
			var answers []string
			var seen, bySDK []int32
			for _, of := range twins {
				before, beforeBySDK := of.seen.Load(), of.bySDK.Load()
				answers = append(answers, c.answer(t, of, modern))
				seen, bySDK = append(seen, of.seen.Load()-before), append(bySDK, of.bySDK.Load()-beforeBySDK)
			}
			if answers[0] != answers[1] && !(c.name == "not_found" && modern) { // the SDK loses this error's message
				t.Errorf("%s:\n%.600s\nby the SDK's handler:\n%.600s", c.name, answers[0], answers[1])
			}
			if seen[0] != seen[1] || bySDK[1] != seen[1] || seen[0] > 0 && c.sdk != (bySDK[0] > 0) {
				t.Errorf("%s: the middleware saw %d calls, %d of the SDK's handler, and %d beside it: %.300s", c.name, seen[0], bySDK[0], seen[1], answers[0])
			}
		}
	})
}

// middlewares are functions that users put around the tools.
var middlewares = map[string]func(ctx context.Context, next func(context.Context) (mcp.Result, error), req *mcp.CallToolRequest) (mcp.Result, error){
	"changes the result": func(ctx context.Context, next func(context.Context) (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
		result, err := next(ctx)
		if err != nil {
			return nil, fmt.Errorf("seen: %w", err)
		}
		meta := result.GetMeta()
		if meta == nil {
			meta = map[string]any{}
		}
		meta["com.example/seen"] = []int{1}
		result.SetMeta(meta)
		if tool, ok := result.(*mcp.CallToolResult); ok {
			tool.Content = append(tool.Content, &mcp.TextContent{Text: "more"})
		}
		return result, nil
	},
	"calls twice": func(ctx context.Context, next func(context.Context) (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
		first, err := next(ctx)
		if _, again := next(ctx); again != nil && err == nil {
			return nil, again
		}
		return first, err
	},
	"answers": func(context.Context, func(context.Context) (mcp.Result, error), *mcp.CallToolRequest) (mcp.Result, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "<mine>"}}, StructuredContent: map[string]int{"n": 1}}, nil
	},
	"answers after the tool": func(ctx context.Context, next func(context.Context) (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
		_, _ = next(ctx)
		return &mcp.CallToolResult{Content: []mcp.Content{}, IsError: true}, nil
	},
	"fails": func(context.Context, func(context.Context) (mcp.Result, error), *mcp.CallToolRequest) (mcp.Result, error) {
		return nil, fmt.Errorf("denied")
	},
	"fails with an error of the protocol": func(context.Context, func(context.Context) (mcp.Result, error), *mcp.CallToolRequest) (mcp.Result, error) {
		return nil, &jsonrpc.Error{Code: -32041, Message: "denied", Data: json.RawMessage(`{"a":[1,2]}`)}
	},
	"fails with a wrapped error of the protocol": func(context.Context, func(context.Context) (mcp.Result, error), *mcp.CallToolRequest) (mcp.Result, error) {
		return nil, fmt.Errorf("outside: %w", &jsonrpc.Error{Code: mcptask.CodeInvalidParams, Message: "denied", Data: json.RawMessage(`{"a":[1,2]}`)})
	},
	"changes the arguments": func(ctx context.Context, next func(context.Context) (mcp.Result, error), req *mcp.CallToolRequest) (mcp.Result, error) {
		req.Params.Arguments = json.RawMessage(`{"ms":40}`)
		return next(ctx)
	},
	"reads the request": func(ctx context.Context, next func(context.Context) (mcp.Result, error), req *mcp.CallToolRequest) (mcp.Result, error) {
		params, err := json.Marshal(req.Params)
		if err != nil {
			return nil, err
		}
		client, err := json.Marshal(req.Session.InitializeParams())
		return nil, &jsonrpc.Error{Code: -32042, Message: fmt.Sprintf("%s %s %v %v %v %v %v", params, client, err,
			len(req.Session.ID()), req.Extra.Header["Mcp-Protocol-Version"], req.Extra.TokenInfo, req.Params.GetProgressToken())}
	},
	"tells the client": func(ctx context.Context, next func(context.Context) (mcp.Result, error), req *mcp.CallToolRequest) (mcp.Result, error) {
		told := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: "p", Progress: 1, Message: "told"})
		logged := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "error", Data: "logged"}) //nolint:staticcheck // servers may send it for now
		result, err := next(ctx)
		if told != nil || logged != nil {
			return nil, fmt.Errorf("not told: %v, %v", told != nil, logged != nil)
		}
		return result, err
	},
	"asks in 2026-07-28": func(ctx context.Context, next func(context.Context) (mcp.Result, error), req *mcp.CallToolRequest) (mcp.Result, error) {
		if req.Session.InitializeParams().ProtocolVersion != mcptask.Revision20260728 {
			return next(ctx)
		}
		_, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?"})
		return nil, err
	},
	"closes the stream": func(ctx context.Context, next func(context.Context) (mcp.Result, error), req *mcp.CallToolRequest) (mcp.Result, error) {
		if req.Session.InitializeParams().ProtocolVersion != mcptask.Revision20260728 {
			return next(ctx) // without an EventStore, the client would lose the answer
		}
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{})
		return next(ctx)
	},
}

// TestTwinsWithMiddleware checks that middleware does the same to a call with the SDK's handler and without it, whether it
// was added before AddTools or after.
func TestTwinsWithMiddleware(t *testing.T) {
	calls := []twinCall{
		{name: "a task", params: `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"main"}`},
		{name: "a call without a task", params: `"name":"lint_file","arguments":{"path":"p"}`},
		{name: "a call without a task", params: `"name":"lint_file","arguments":{"path":"p"}`, meta: `"progressToken":7,"io.modelcontextprotocol/logLevel":"debug"`},
		{name: "a call without a task", params: `"name":"ponder","arguments":{"ms":60}`, meta: `"progressToken":"p","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"roots":{"listChanged":true}}`},
		{name: "a call without a task", params: `"name":"raw","arguments":{}`, meta: `"io.modelcontextprotocol/clientCapabilities":{}`},
		{name: "a call without a task", params: `"name":"locked","arguments":{}`, meta: `"io.modelcontextprotocol/clientCapabilities":{}`},
	}
	eachTwin(t, func(t *testing.T, revision string, inJSON bool) {
		modern := revision == wiretest.ModernRevision
		for name, user := range middlewares {
			for _, late := range []bool{false, true} {
				if late && (inJSON || modern && strings.HasPrefix(name, "answers")) { // the SDK's handler forgets the resultType
					continue
				}
				middleware := func(next mcp.MethodHandler) mcp.MethodHandler {
					return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
						if call, ok := req.(*mcp.CallToolRequest); ok {
							return user(ctx, func(ctx context.Context) (mcp.Result, error) { return next(ctx, method, req) }, call)
						}
						return next(ctx, method, req)
					}
				}
				setup := wiretest.Setup{Before: func(sdk *mcp.Server) {
					if !late {
						sdk.AddReceivingMiddleware(middleware)
					}
				}, SDK: func(sdk *mcp.Server) {
					if late {
						sdk.AddReceivingMiddleware(middleware)
					}
				}}
				twins := newTwins(t, revision, inJSON, setup)
				for _, c := range calls {
					own, sdks := c.answer(t, twins[0], modern), c.answer(t, twins[1], modern)
					if own != sdks {
						t.Errorf("%s, after AddTools %v, %s:\n%s\nby the SDK's handler:\n%s", name, late, c.params, own, sdks)
					}
				}
				if own := twins[0]; own.bySDK.Load() > 0 || own.seen.Load() != twins[1].seen.Load() {
					t.Errorf("%s, after AddTools %v: saw %d, %d of the SDK's handler, and %d beside it", name, late, own.seen.Load(), own.bySDK.Load(), twins[1].seen.Load())
				}
			}
		}
	})
}

// TestToolsByServer checks that a server has the tools that AddTools gave it, and its own middleware. In a session, these are
// those of the session's server.
func TestToolsByServer(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		tasks, err := taskserver.New(taskserver.Options{Limits: wiretest.NoPollLimits}, wiretest.ExtraTools())
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]*atomic.Int32{}
		servers := map[string]*mcp.Server{}
		for _, name := range []string{"with", "without", "bare"} {
			server := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, &mcp.ServerOptions{
				Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
			})
			calls := new(atomic.Int32)
			seen[name] = calls
			server.AddReceivingMiddleware(wiretest.WrapCalls(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
				calls.Add(1)
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
		handler := memnet.NewServer(wirecheck.Handler(t, gosdk.NewHandler(tasks, get, nil)), nil)
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
					before := int32(0)
					if seen[name] != nil {
						before = seen[name].Load()
					}
					r := p.Call("tools/call", map[string]any{"name": tool, "arguments": map[string]any{}, "task": map[string]any{}})
					if created := strings.Contains(string(r.Result), `"taskId"`); created != (tool == has) || created && seen[name].Load() != before+1 {
						t.Errorf("%s of server %s in %s: %d %s", tool, name, revision, r.Status, r.Body)
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

// TestCallOfAnotherUser checks that a session takes only tokens of the user that has opened it, whoever the principal is.
func TestCallOfAnotherUser(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: taskserver.Options{Principal: everybody}})
		p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "alice")
		p.Create("ponder", nil)
		p.Token = "mallory"
		r := p.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{}})
		if r.Status != http.StatusForbidden {
			t.Errorf("%d %s", r.Status, r.Body)
		}
	})
}
