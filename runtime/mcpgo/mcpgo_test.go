package mcpgo_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcpgo"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// newServer returns an mcp-go server with the tools of tasks, until the test ends.
func newServer(t *testing.T, options taskserver.Options, tools ...mcptask.Tools) (*taskserver.Server, *server.MCPServer) {
	t.Helper()
	tasks, err := taskserver.New(options, tools...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tasks.Close() })
	s := server.NewMCPServer("ci", "1.0.0", server.WithToolCapabilities(true))
	mcpgo.AddTools(s, tasks)
	return tasks, s
}

// serve serves tasks in front of an mcp-go server, or that server alone if tasks is nil. Each
// message has to fit its schema.
func serve(t *testing.T, tasks *taskserver.Server, s *server.MCPServer) (url string) {
	t.Helper()
	var handler http.Handler
	if tasks == nil {
		handler = server.NewStreamableHTTPServer(s, server.WithStateful(true))
	} else {
		handler = mcpgo.NewHandler(tasks, s, mcpgo.Options{}, server.WithStateful(true))
	}
	web := httptest.NewServer(wirecheck.Handler(t, handler))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return web.URL + "/mcp"
}

// connect connects a client that approves what it is asked, until the test ends.
func connect(t *testing.T, url, revision string) mcptask.Conn {
	t.Helper()
	conn, err := gosdk.Connect(t.Context(), url, gosdk.ClientOptions{
		Revision: revision,
		Answer: pipeline.AnswerApproval(func(context.Context, mcptask.Question) (pipeline.Approval, error) {
			return pipeline.Approval{Approve: true}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// post sends a request, whose response is closed when the test ends.
func post(t *testing.T, method, url, body string, headers map[string]string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func TestTasksInFrontOfMCPGo(t *testing.T) {
	tasks, s := newServer(t, taskserver.Options{}, pipeline.CITools(wiretest.CI{}))
	s.AddTool(mcp.NewTool("own"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("the server's own tool"), nil
	})
	url := serve(t, tasks, s)

	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			conn := connect(t, url, revision)
			client := pipeline.NewCIClient(conn)
			call, err := client.StartRunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Steps: []string{"build"}})
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := call.Token(); !ok {
				t.Error("not a task")
			}
			if report, err := call.Wait(ctx); err != nil || !report.Passed {
				t.Errorf("%+v, %v", report, err)
			}
			var toolErr *mcptask.ToolError
			if _, err := client.RunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Branch: "broken"}); !errors.As(err, &toolErr) {
				t.Error(err)
			}
			if report, err := client.DeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "production"}); err != nil || report.Version != "1.2.3" {
				t.Errorf("asked: %+v, %v", report, err)
			}
			endless, err := client.StartRunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Branch: "endless"})
			if err != nil {
				t.Fatal(err)
			}
			if err := endless.Cancel(ctx); err != nil {
				t.Error(err)
			}
			if _, err := endless.Wait(ctx); !errors.Is(err, mcptask.ErrCancelled) {
				t.Error(err)
			}
			if _, err := client.LintFile(ctx, pipeline.LintInput{Path: "x"}); err != nil {
				t.Error("plain:", err)
			}
			if text, err := mcptask.Run[string](ctx, conn, "own", struct{}{}); err != nil || text != "the server's own tool" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// A plain call asks by its answer in 2026-07-28, and on its stream in 2025-11-25. A tool that never runs as a task asks too.
// If the client answers no questions, the call goes on by the fallback tools.
func TestFallback(t *testing.T) {
	tasks, s := newServer(t, taskserver.Options{}, pipeline.CITools(wiretest.CI{}), wiretest.AskTools())
	url := serve(t, tasks, s)
	in := pipeline.DeployInput{Service: "api", Environment: "production"}
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		t.Run(revision, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			conn := connect(t, url, revision)
			if report, err := mcptask.Run[pipeline.DeployReport](ctx, conn, "deploy_service", in, mcptask.Plain()); err != nil || report.Version != "1.2.3" {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
	p := wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, "", wiretest.AllCapabilities)
	f := p.Send("tools/call", map[string]any{"name": "never_a_task", "arguments": map[string]any{}})
	p.Respond(f.NextQuestion("").ID, wiretest.AcceptNote("yes"))
	if m := f.Next(); wiretest.ToolText(m.Result) != "yes" {
		t.Errorf("%s", m.Text)
	}
	p = wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, "", `{}`)
	task := p.CallTool("deploy_service", map[string]any{"service": "api", "environment": "production"}).OK().Text("structuredContent", "task")
	p.CallTool("task_answer", map[string]any{"task": task, "question": "ship", "answer": map[string]any{"approve": true}}).OK()
	if r := p.CallTool("task_result", map[string]any{"task": task}).OK(); r.Text("structuredContent", "version") != "1.2.3" {
		t.Errorf("%s", r.Body)
	}
}

func TestWithoutTheGateway(t *testing.T) {
	_, s := newServer(t, taskserver.Options{}, pipeline.CITools(wiretest.CI{}))
	conn := connect(t, serve(t, nil, s), mcptask.Revision20251125)
	if _, err := pipeline.NewCIClient(conn).LintFile(t.Context(), pipeline.LintInput{Path: "x"}); err == nil {
		t.Error("a call that no caller is known of was served")
	}
}

// A subscription to tasks, alone and beside what mcp-go serves.
func TestListen(t *testing.T) {
	tasks, s := newServer(t, taskserver.Options{}, pipeline.CITools(wiretest.CI{}))
	url := serve(t, tasks, s)
	send := func(method, params string) *bufio.Scanner {
		t.Helper()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"s","method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, method, params)
		return bufio.NewScanner(post(t, http.MethodPost, url, body, map[string]string{"Content-Type": "application/json",
			"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": "run_pipeline"}).Body)
	}
	for name, more := range map[string]string{"tasks only": "", "and others": `,"toolsListChanged":true`} {
		t.Run(name, func(t *testing.T) {
			created := send("tools/call", `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","steps":["build"]}`)
			created.Scan()
			_, rest, _ := strings.Cut(created.Text(), `"taskId":"`)
			id, _, _ := strings.Cut(rest, `"`)
			if id == "" {
				t.Fatalf("no task: %s", created.Text())
			}
			var heard []string
			stream := send("subscriptions/listen", fmt.Sprintf(`"notifications":{"taskIds":[%q]%s}`, id, more))
			for stream.Scan() {
				data, ok := strings.CutPrefix(stream.Text(), "data:")
				if !ok {
					continue
				}
				if heard = append(heard, data); strings.Contains(data, `"id":"s"`) {
					break
				}
			}
			if len(heard) < 2 || !strings.Contains(heard[0], "acknowledged") || !strings.Contains(heard[0], id) ||
				strings.Contains(heard[0], "toolsListChanged") || !strings.Contains(fmt.Sprint(heard), `"status":"completed"`) {
				t.Errorf("%s", strings.Join(heard, "\n"))
			}
		})
	}
}

// TestSessionOnTwoReplicas checks that a second server with the same key serves a session that the
// first has opened, with mcp-go's own tools and with tasks.
func TestSessionOnTwoReplicas(t *testing.T) {
	store := taskstore.NewMemory()
	defer func() { _ = store.Close() }()
	options := taskserver.Options{Store: store, SessionKey: bytes.Repeat([]byte("k"), taskstore.MinSessionKey)}
	var urls []string
	for range 2 {
		tasks, s := newServer(t, options, pipeline.CITools(wiretest.CI{}))
		s.AddTool(mcp.NewTool("own"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("the server's own tool"), nil
		})
		urls = append(urls, serve(t, tasks, s))
	}
	a := wiretest.NewPeer(t, urls[0], wiretest.LegacyRevision, "")
	b := wiretest.NewUnopenedPeer(t, urls[1], wiretest.LegacyRevision, "", `{}`)
	b.Session = a.Session
	id := b.Create("run_pipeline", wiretest.PipelineArgs("main"))
	a.Until(id, "completed")
	if r := b.Call("tools/call", map[string]any{"name": "own", "arguments": map[string]any{}}).OK(); wiretest.ToolText(r.Result) != "the server's own tool" {
		t.Errorf("%s", r.Body)
	}
}

// TestSessionSurvivesRestart checks that a server behind mcp-go serves a session from before its restart, if the store
// keeps the session key: mcp-go's own tools, tasks, and the session's stream.
func TestSessionSurvivesRestart(t *testing.T) {
	options := taskserver.Options{Store: wiretest.NewSessionStore()}
	start := func() (string, *taskserver.Server) {
		tasks, s := newServer(t, options, pipeline.CITools(wiretest.CI{}))
		s.AddTool(mcp.NewTool("own"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("the server's own tool"), nil
		})
		return serve(t, tasks, s), tasks
	}
	url, tasks := start()
	p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "")
	id := p.Create("run_pipeline", wiretest.PipelineArgs("main"))
	p.Until(id, "completed")
	if err := tasks.Close(); err != nil {
		t.Fatal(err)
	}
	p.URL, _ = start()
	p.Call("tools/list", nil).OK()
	if r := p.Call("tools/call", map[string]any{"name": "own", "arguments": map[string]any{}}).OK(); wiretest.ToolText(r.Result) != "the server's own tool" {
		t.Errorf("%s", r.Body)
	}
	p.Task("tasks/get", id).OK()
	p.Task("tasks/result", id).OK()
	if status := p.Status(http.MethodGet, "", wiretest.WithHeader("Accept", "text/event-stream")); status != http.StatusOK {
		t.Errorf("GET: %d", status)
	}
	if status := p.Status(http.MethodDelete, ""); status >= http.StatusBadRequest {
		t.Errorf("DELETE: %d", status)
	}
	p.Call("tools/list", nil).Want(http.StatusNotFound, wiretest.InvalidRequest)
}
