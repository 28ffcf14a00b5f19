package mcpgo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcpgo"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// workTool is a tool as its owner wrote it, before there were tasks.
func workTool() mcp.Tool {
	return mcp.NewTool("work", mcp.WithDescription("Works."), mcp.WithTitleAnnotation("Work"), mcp.WithReadOnlyHintAnnotation(true),
		mcp.WithString("name", mcp.Required(), mcp.Description("Who works.")))
}

// work is the handler of workTool. It knows no tasks.
func work(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	name, err := request.RequireString("name")
	if err != nil {
		return mcp.NewToolResultError(err.Error()), nil
	}
	if token := request.Params.Meta; token != nil && token.ProgressToken != nil {
		if err := server.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress",
			map[string]any{"progressToken": token.ProgressToken, "progress": 1, "total": 2, "message": "half of it"}); err != nil {
			return nil, err
		}
	}
	switch name {
	case "shows its _meta":
		return mcp.NewToolResultText(fmt.Sprint(request.Params.Meta.AdditionalFields["x.example/of"])), nil
	case "waits":
		<-ctx.Done()
		return nil, ctx.Err()
	case "panics":
		panic("a fault of the tool")
	case "fails":
		return nil, errors.New("it failed")
	}
	return mcp.NewToolResultText(name + " has worked"), nil
}

// adopt returns an mcp-go server with a task tool, until the test ends.
func adopt(t *testing.T, options taskserver.Options, handler server.ToolHandlerFunc, more ...server.ServerOption) (*taskserver.Server, *server.MCPServer) {
	t.Helper()
	tasks := newTasks(t, options)
	s := server.NewMCPServer("brown", "1.0.0", more...)
	if err := mcpgo.AddTaskTool(s, tasks, workTool(), handler, mcptask.Policy{}); err != nil {
		t.Fatal(err)
	}
	return tasks, s
}

func newTasks(t *testing.T, options taskserver.Options) *taskserver.Server {
	t.Helper()
	options.Limits = wiretest.NoPollLimits
	tasks, err := taskserver.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tasks.Close() })
	return tasks
}

func arguments(name string) map[string]any { return map[string]any{"name": name} }

// eachRevision runs a test in both revisions.
func eachRevision(t *testing.T, test func(t *testing.T, revision string)) {
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		t.Run(revision, func(t *testing.T) { test(t, revision) })
	}
}

// TestAdopted checks an unchanged handler, plainly and as a task: its progress, its session, its task, and that middleware
// and hooks see each run once.
func TestAdopted(t *testing.T) {
	eachRevision(t, func(t *testing.T, revision string) {
		var runs, hooked atomic.Int32
		sessions := make(chan string, 10)
		ids := make(chan string, 10)
		hooks := &server.Hooks{}
		hooks.AddBeforeCallTool(func(context.Context, any, *mcp.CallToolRequest) { hooked.Add(1) })
		tasks, s := adopt(t, taskserver.Options{}, func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			task, ok := mcptask.FromContext(ctx)
			if !ok {
				t.Error("the handler finds no task")
				return work(ctx, request)
			}
			ids <- task.ID()
			sessions <- server.ClientSessionFromContext(ctx).SessionID()
			return work(ctx, request)
		}, server.WithHooks(hooks), server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
			return func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				runs.Add(1)
				return next(ctx, request)
			}
		}))
		p := wiretest.NewPeer(t, serve(t, tasks, s), revision, "")

		id := p.Create("work", arguments("Ada"))
		p.Until(id, "completed")
		if text := p.TaskText(id); text != "Ada has worked" {
			t.Errorf("%q", text)
		}
		if got := <-ids; got != id {
			t.Errorf("the handler's task is %q, and the client's %q", got, id)
		}
		waiting := p.Create("work", arguments("waits"))
		p.UntilMessage(waiting, "half of it (1/2)")
		<-ids
		if first, second := <-sessions, <-sessions; first == second {
			t.Error("two runs have one session")
		}
		if got, calls := runs.Load(), hooked.Load(); got != 2 || calls != 2 {
			t.Errorf("two runs: the middleware saw %d, the hooks %d", got, calls)
		}

		plain := p
		if revision == wiretest.ModernRevision {
			plain = wiretest.NewPeerWith(t, p.URL, revision, "", `{}`)
		}
		f := plain.Send("tools/call", map[string]any{"name": "work", "arguments": arguments("Bo"), "_meta": map[string]any{"progressToken": "p"}})
		m := f.Next()
		if m.Method == "notifications/progress" {
			if !strings.Contains(m.Text, `"half of it"`) || !strings.Contains(m.Text, `"total":2`) || !strings.Contains(m.Text, `"p"`) {
				t.Errorf("%s", m.Text)
			}
			m = f.Next()
		} else {
			t.Error("a plain call had no progress")
		}
		if text := wiretest.ToolText(m.Result); text != "Bo has worked" {
			t.Errorf("%s", m.Text)
		}
		r := plain.Call("tools/call", map[string]any{"name": "work", "arguments": arguments("shows its _meta"), "_meta": map[string]any{"x.example/of": "the caller"}}).OK()
		if wiretest.ToolText(r.Result) != "the caller" {
			t.Errorf("%s", r.Body)
		}
	})
}

// TestAdoptedAnswers checks that a plain call gets what bare mcp-go answers, and that the list has the same entry.
func TestAdoptedAnswers(t *testing.T) {
	bare := server.NewMCPServer("brown", "1.0.0")
	bare.AddTool(workTool(), work)
	tasks, s := adopt(t, taskserver.Options{}, work)
	eachRevision(t, func(t *testing.T, revision string) {
		before := wiretest.NewPeerWith(t, serve(t, nil, bare), revision, "", `{}`)
		after := wiretest.NewPeerWith(t, serve(t, tasks, s), revision, "", `{}`)
		for name, arguments := range map[string]any{
			"good": arguments("Ada"), "more": map[string]any{"name": "Ada", "more": 1}, "none": map[string]any{},
			"another type": map[string]any{"name": 4}, "an error": arguments("fails"),
		} {
			call := map[string]any{"name": "work", "arguments": arguments}
			want, got := before.Call("tools/call", call), after.Call("tools/call", call)
			isSame := want.Result == nil && got.Result == nil || wiretest.SameJSON(string(want.Result), string(got.Result))
			if !isSame || fmt.Sprint(want.Error) != fmt.Sprint(got.Error) {
				t.Errorf("%s: %s\nwithout tasks %s", name, got.Body, want.Body)
			}
		}
		entry := func(p *wiretest.Peer) string {
			var list struct{ Tools []map[string]json.RawMessage }
			if err := json.Unmarshal(p.Call("tools/list", nil).OK().Result, &list); err != nil {
				t.Fatal(err)
			}
			for _, tool := range list.Tools {
				if delete(tool, "execution"); string(tool["name"]) == `"work"` {
					text, _ := json.Marshal(tool)
					return string(text)
				}
			}
			return "no entry"
		}
		if want, got := entry(before), entry(after); want != got {
			t.Errorf("%s\nwithout tasks %s", got, want)
		}
		if list := string(after.Call("tools/list", nil).OK().Result); !strings.Contains(list, `"task_status"`) {
			t.Errorf("no fallback tools: %s", list)
		}
	})
}

// TestAdoptedFaults checks that a panic and an error end the task, and not the server.
func TestAdoptedFaults(t *testing.T) {
	tasks, s := adopt(t, taskserver.Options{}, work)
	eachRevision(t, func(t *testing.T, revision string) {
		p := wiretest.NewPeer(t, serve(t, tasks, s), revision, "")
		for _, name := range []string{"panics", "fails"} {
			p.Until(p.Create("work", arguments(name)), "failed")
		}
		waits := p.Create("work", arguments("waits"))
		p.Task("tasks/cancel", waits).OK()
		p.Until(waits, "cancelled")
		p.Until(p.Create("work", arguments("Ada")), "completed")
	})
}

// TestAdoptedQuestions checks that what a handler asks its client by mcp-go's means is a question of the task, and that
// several at once get their own answers.
func TestAdoptedQuestions(t *testing.T) {
	schema := func(field string) map[string]any {
		return map[string]any{"type": "object", "properties": map[string]any{field: map[string]any{"type": "string"}}, "required": []string{field}}
	}
	tasks, s := adopt(t, taskserver.Options{}, func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if color := server.ElicitationResponse(request.Params.InputResponses, "color"); color != nil {
			size := server.ElicitationResponse(request.Params.InputResponses, "size")
			return mcp.NewToolResultText(fmt.Sprint(color.Content, size.Content)), nil
		}
		declined, err := server.ServerFromContext(ctx).RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: "Sure?", RequestedSchema: schema("sure")}})
		if err != nil || declined.Action != mcp.ElicitationResponseActionDecline {
			return nil, fmt.Errorf("%v, %w", declined, err)
		}
		return server.NewInputRequestBuilder("").
			Elicit("color", mcp.ElicitationParams{Message: "Which color?", RequestedSchema: schema("color")}).
			Elicit("size", mcp.ElicitationParams{Message: "Which size?", RequestedSchema: schema("size")}).ToolResult(), nil
	})
	url := serve(t, tasks, s)
	eachRevision(t, func(t *testing.T, revision string) {
		ctx, cancel := context.WithTimeout(t.Context(), wiretest.Patience)
		defer cancel()
		conn, err := gosdk.Connect(ctx, url, gosdk.ClientOptions{Revision: revision, Answer: mcptask.AnswerAny(func(_ context.Context, q mcptask.Question) (json.RawMessage, error) {
			for _, field := range []string{"color", "size"} {
				if strings.Contains(q.Message, field) {
					return json.RawMessage(fmt.Sprintf(`{%q:"a %s"}`, field, field)), nil
				}
			}
			return nil, mcptask.ErrDeclined
		})})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		text, err := mcptask.Run[string](ctx, conn, "work", arguments("Ada"))
		if err != nil || text != "map[color:a color] map[size:a size]" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// TestAdoptedRequests checks that a run samples the client's model and asks for its roots by mcp-go's means.
func TestAdoptedRequests(t *testing.T) {
	tasks, s := adopt(t, taskserver.Options{}, func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s := server.ServerFromContext(ctx)
		roots, err := s.RequestRoots(ctx, mcp.ListRootsRequest{})
		if err != nil {
			return nil, err
		}
		params := mcp.CreateMessageParams{MaxTokens: 9, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.NewTextContent("Why?"), mcp.NewTextContent("How?")}}}}
		sampled, err := s.RequestSampling(ctx, mcp.CreateMessageRequest{CreateMessageParams: params}) //nolint:staticcheck // servers may ask for now
		if err != nil {
			return nil, err
		}
		params.Tools = []mcp.Tool{workTool()}
		_, refused := s.RequestSampling(ctx, mcp.CreateMessageRequest{CreateMessageParams: params}) //nolint:staticcheck // servers may ask for now
		return mcp.NewToolResultText(fmt.Sprint(roots.Roots[0].URI, " ", textsOf(sampled.Content), " ", refused)), nil
	})
	url := serve(t, tasks, s)
	eachRevision(t, func(t *testing.T, revision string) {
		ctx, cancel := context.WithTimeout(t.Context(), wiretest.Patience)
		defer cancel()
		conn, err := gosdk.Connect(ctx, url, gosdk.ClientOptions{Revision: revision,
			Roots: []mcptask.Root{{URI: "file:///r"}},
			Sample: func(_ context.Context, r mcptask.SampleRequest) (*mcptask.SampleResult, error) {
				return &mcptask.SampleResult{Role: "assistant", Model: "m", Content: []mcptask.Content{mcptask.TextContent("asked"), mcptask.TextContent(r.Messages[0].Content.Text())}}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		text, err := mcptask.Run[string](ctx, conn, "work", arguments("Ada"))
		if want := "file:///r asked Why?\nHow? " + `a run of the tool "work" cannot offer tools to the client's model: leave out Tools`; err != nil || text != want {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// textsOf returns the texts of the content of a model's message.
func textsOf(content any) string {
	blocks, ok := content.([]mcp.Content)
	if !ok {
		return fmt.Sprintf("%T", content)
	}
	var texts []string
	for _, block := range blocks {
		texts = append(texts, mcp.GetTextFromContent(block))
	}
	return strings.Join(texts, " ")
}

// TestAdoptedNotifications checks that the log names what a run cannot send, once.
func TestAdoptedNotifications(t *testing.T) {
	var log wiretest.SafeBuffer
	tasks, s := adopt(t, taskserver.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for range 2 {
			if err := server.ServerFromContext(ctx).SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(mcp.LoggingLevelInfo, "l", "x")); err != nil {
				return nil, err
			}
		}
		return work(ctx, request)
	}, server.WithLogging())
	p := wiretest.NewPeer(t, serve(t, tasks, s), wiretest.LegacyRevision, "")
	for range 2 {
		p.Until(p.Create("work", arguments("Ada")), "completed")
	}
	if n := strings.Count(log.String(), "method=notifications/message"); n != 1 || !strings.Contains(log.String(), "tool=work") {
		t.Errorf("logged %d times: %s", n, &log)
	}
}

// TestSeveralServers checks that a call runs on the server that it came through, also if it waits for a slot, and that
// a server without the tool does not run it.
func TestSeveralServers(t *testing.T) {
	eachRevision(t, func(t *testing.T, revision string) {
		tasks := newTasks(t, taskserver.Options{Concurrency: 1})
		release := make(chan struct{})
		add := func(name string) *server.MCPServer {
			s := server.NewMCPServer(name, "1.0.0")
			if err := mcpgo.AddTaskTool(s, tasks, workTool(), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return mcp.NewToolResultText(name), nil
			}, mcptask.Policy{}); err != nil {
				t.Fatal(err)
			}
			return s
		}
		peers, ids := map[string]*wiretest.Peer{}, map[string]string{}
		for _, name := range []string{"a", "b", "c"} {
			peers[name] = wiretest.NewPeer(t, serve(t, tasks, add(name)), revision, "")
		}
		for name, p := range peers {
			ids[name] = p.Create("work", arguments("x"))
		}
		close(release)
		for name, p := range peers {
			p.Until(ids[name], "completed")
			if text := p.TaskText(ids[name]); text != name {
				t.Errorf("the call to %s ran on %s", name, text)
			}
		}
		other := server.NewMCPServer("other", "1.0.0")
		other.AddTool(mcp.NewTool("own"), work)
		p := wiretest.NewPeer(t, serve(t, tasks, other), revision, "")
		if r := p.Call("tools/call", map[string]any{"name": "work", "arguments": arguments("x")}); r.Error == nil || !strings.Contains(string(r.Body), "not found") {
			t.Errorf("a server without the tool: %s", r.Body)
		}
		other.AddTool(workTool(), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("its own"), nil
		})
		if r := p.Call("tools/call", map[string]any{"name": "work", "arguments": arguments("x")}).OK(); wiretest.ToolText(r.Result) != "its own" {
			t.Errorf("a tool of the same name: %s", r.Body)
		}
	})
}

// TestUnequalTools checks that AddTaskTool refuses a tool that differs from the one before, names the difference, and
// leaves the server as it was.
func TestUnequalTools(t *testing.T) {
	tasks, _ := adopt(t, taskserver.Options{}, work)
	s := server.NewMCPServer("second", "1.0.0")
	plain, other := workTool(), workTool()
	plain.Description, other.Description = "Plain.", "Other."
	s.AddTool(plain, work)
	for want, err := range map[string]error{
		`with the description "Other." after "Works."`: mcpgo.AddTaskTool(s, tasks, other, work, mcptask.Policy{}),
		"with the TTL 1h0m0s in its policy after 0s":   mcpgo.AddTaskTool(s, tasks, workTool(), work, mcptask.Policy{TTL: time.Hour}),
		"the tool has no name":                         mcpgo.AddTaskTool(s, tasks, mcp.Tool{}, work, mcptask.Policy{}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if got := s.GetTool("work"); got == nil || got.Tool.Description != "Plain." {
		t.Errorf("the server has now %v", got)
	}
	s.AddTaskTool(mcp.NewTool("old"), nil)
	if err := mcpgo.AddTaskTool(s, tasks, mcp.NewTool("old"), work, mcptask.Policy{}); err == nil || !strings.Contains(err.Error(), "already registered as task tool") {
		t.Error(err)
	}
	if err := mcpgo.AddTaskTool(s, tasks, workTool(), work, mcptask.Policy{}); err != nil {
		t.Error("the same tool:", err)
	}
}

// TestRestart checks that a task of a tool with onlost=restart runs on the server that was first given the tool.
func TestRestart(t *testing.T) {
	store := taskstore.NewMemory()
	defer func() { _ = store.Close() }()
	policy := mcptask.Policy{OnLost: mcptask.RestartWhenLost}
	start := func(handler server.ToolHandlerFunc) (*taskserver.Server, *server.MCPServer) {
		tasks := newTasks(t, taskserver.Options{Store: store, Principal: func(context.Context) (string, error) { return "ada", nil }})
		s := server.NewMCPServer("brown", "1.0.0")
		if err := mcpgo.AddTaskTool(s, tasks, workTool(), handler, policy); err != nil {
			t.Fatal(err)
		}
		return tasks, s
	}
	first, s := start(work)
	p := wiretest.NewPeer(t, serve(t, first, s), wiretest.ModernRevision, "")
	id := p.Create("work", arguments("waits"))
	p.UntilMessage(id, "half of it (1/2)")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, s := start(func(ctx context.Context, request mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		task, _ := mcptask.FromContext(ctx)
		return mcp.NewToolResultText(fmt.Sprint(request.GetString("name", ""), " run ", task.Attempt(), " ", request.Params.Meta.ProgressToken != nil)), nil
	})
	p = wiretest.NewPeer(t, serve(t, second, s), wiretest.ModernRevision, "")
	p.Until(id, "completed")
	if text := p.TaskText(id); text != "waits run 2 true" {
		t.Errorf("%q", text)
	}
}

// TestAdoptedWithoutTheGateway checks that an adopted tool runs plainly without NewHandler, and that the log and the error
// of a generated tool name the remedy.
func TestAdoptedWithoutTheGateway(t *testing.T) {
	var log wiretest.SafeBuffer
	_, s := adopt(t, taskserver.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, work)
	p := wiretest.NewPeerWith(t, serve(t, nil, s), wiretest.LegacyRevision, "", `{}`)
	for range 2 {
		if r := p.CallTool("work", arguments("Ada")).OK(); wiretest.ToolText(r.Result) != "Ada has worked" {
			t.Errorf("%s", r.Body)
		}
	}
	if n := strings.Count(log.String(), "serve with mcpgo.NewHandler or mcpgo.ServeStdio"); n != 1 {
		t.Errorf("logged %d times: %s", n, &log)
	}
	p.Call("tools/call", map[string]any{"name": "task_status", "arguments": map[string]any{"task": "x"}}).WantIn("serve with mcpgo.NewHandler or mcpgo.ServeStdio")
}

// TestLeftovers checks that NewHandler logs mcp-go's own task tools and its task capability.
func TestLeftovers(t *testing.T) {
	var log wiretest.SafeBuffer
	tasks, s := adopt(t, taskserver.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, work)
	serve(t, tasks, s)
	if log.String() != "" {
		t.Errorf("without leftovers: %s", &log)
	}
	s = server.NewMCPServer("left", "1.0.0", server.WithTaskCapabilities(true, true, true), server.WithPaginationLimit(1))
	mcpgo.AddTools(s, tasks)
	s.AddTaskTool(mcp.NewTool("old_task", mcp.WithTaskSupport(mcp.TaskSupportRequired)), nil)
	s.AddTool(mcp.NewTool("a_hybrid", mcp.WithTaskSupport(mcp.TaskSupportOptional)), work)
	serve(t, tasks, s)
	for _, want := range []string{"level=ERROR", "a_hybrid, old_task", "mcpgo.AddTaskTool", "leave out WithTaskCapabilities"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is missing in %s", want, &log)
		}
	}
	if err := mcpgo.ServeStdio(t.Context(), s, tasks); err == nil || !strings.Contains(err.Error(), "old_task") {
		t.Error(err)
	}
}

// TestInnerOptions checks the ways in which mcp-go serves sessions, in front of which tasks work.
func TestInnerOptions(t *testing.T) {
	for name, options := range map[string][]server.StreamableHTTPOption{
		"default": nil, "stateful": {server.WithStateful(true)},
		"no streams":    {server.WithDisableStreaming(true)},
		"sessions only": {server.WithStateful(true), server.WithStreamableHTTPProtocolVersions("2025-11-25")},
	} {
		t.Run(name, func(t *testing.T) {
			tasks, s := adopt(t, taskserver.Options{}, work)
			s.AddTool(mcp.NewTool("own"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("own"), nil
			})
			web := httptest.NewServer(wirecheck.Handler(t, mcpgo.NewHandler(tasks, s, mcpgo.Options{}, options...)))
			t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
			conn := connect(t, web.URL+"/mcp", mcptask.Revision20251125)
			for tool, want := range map[string]string{"work": "Ada has worked", "own": "own"} {
				if text, err := mcptask.Run[string](t.Context(), conn, tool, arguments("Ada"), mcptask.Plain()); err != nil || text != want {
					t.Errorf("%s: %q, %v", tool, text, err)
				}
			}
		})
	}
}

// TestShutdown checks that Shutdown ends a server whose client holds a stream open.
func TestShutdown(t *testing.T) {
	tasks, s := adopt(t, taskserver.Options{}, work)
	web := httptest.NewServer(wirecheck.Handler(t, mcpgo.NewHandler(tasks, s, mcpgo.Options{})))
	t.Cleanup(web.Close)
	p := wiretest.NewPeer(t, web.URL+"/mcp", wiretest.LegacyRevision, "")
	res, err := p.Client.Do(p.NewRequest(t.Context(), http.MethodGet, ""))
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	defer res.Body.Close()
	waits := p.Create("work", arguments("waits"))
	p.UntilMessage(waits, "half of it (1/2)")
	ctx, cancel := context.WithTimeout(t.Context(), wiretest.Patience)
	defer cancel()
	if err := mcpgo.Shutdown(ctx, web.Config, tasks); err != nil {
		t.Error(err)
	}
}
