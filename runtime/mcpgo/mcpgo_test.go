package mcpgo_test

import (
	"bufio"
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
	"github.com/mcptaskgen/mcptaskgen/runtime/mcpgo"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

type ci struct{}

func (ci) RunPipeline(ctx context.Context, task *mcptask.Task, in pipeline.RunInput) (pipeline.RunReport, error) {
	switch in.Branch {
	case "endless":
		<-ctx.Done()
		return pipeline.RunReport{}, ctx.Err()
	case "broken":
		return pipeline.RunReport{}, errors.New("the branch does not build")
	}
	time.Sleep(50 * time.Millisecond) // longer than the request
	return pipeline.RunReport{Passed: ctx.Err() == nil, Steps: []pipeline.Step{}}, nil
}

func (ci) DeployService(ctx context.Context, task *mcptask.Task, in pipeline.DeployInput) (pipeline.DeployReport, error) {
	if in.Environment == "production" {
		if a, err := pipeline.AskApproval(ctx, task, "ship", ""); err != nil || !a.Approve {
			return pipeline.DeployReport{}, errors.Join(err, errors.New("not approved"))
		}
	}
	return pipeline.DeployReport{Version: "1.2.3"}, nil
}

func (ci) LintFile(context.Context, pipeline.LintInput) (pipeline.LintReport, error) {
	return pipeline.LintReport{}, nil
}

func TestTasksInFrontOfMCPGo(t *testing.T) {
	tasks, err := mcptask.NewServer(mcptask.Options{}, pipeline.CITools(ci{}))
	if err != nil {
		t.Fatal(err)
	}
	s := server.NewMCPServer("ci", "1.0.0", server.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("own"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("the server's own tool"), nil
	})
	mcpgo.AddTools(s, tasks)
	web := httptest.NewServer(wirecheck.Handler(t, mcpgo.NewHandler(tasks, server.NewStreamableHTTPServer(s, server.WithStateful(true)), mcpgo.Options{})))
	t.Cleanup(func() { _ = tasks.Close(); web.CloseClientConnections(); web.Close() })

	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			conn, err := gosdk.Connect(ctx, web.URL+"/mcp", gosdk.ClientOptions{
				Revision: revision,
				Answer: pipeline.AnswerApproval(func(context.Context, mcptask.Question) (pipeline.Approval, error) {
					return pipeline.Approval{Approve: true}, nil
				}),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			client := pipeline.NewCIClient(conn)
			call, err := client.StartRunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r"})
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

// serve starts a server of the pipeline's tools.
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	tasks, err := mcptask.NewServer(mcptask.Options{}, pipeline.CITools(ci{}))
	if err != nil {
		t.Fatal(err)
	}
	s := server.NewMCPServer("ci", "1.0.0", server.WithToolCapabilities(true))
	mcpgo.AddTools(s, tasks)
	web := httptest.NewServer(wirecheck.Handler(t, mcpgo.NewHandler(tasks, server.NewStreamableHTTPServer(s, server.WithStateful(true)), mcpgo.Options{})))
	t.Cleanup(func() { _ = tasks.Close(); web.CloseClientConnections(); web.Close() })
	return web
}

// A plain call that cannot be answered at once goes on by the fallback tools.
func TestFallback(t *testing.T) {
	web := serve(t)
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		t.Run(revision, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			conn, err := gosdk.Connect(ctx, web.URL+"/mcp", gosdk.ClientOptions{Revision: revision})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			in := pipeline.DeployInput{Service: "api", Environment: "production"}
			call, err := mcptask.Start[*mcptask.Result](ctx, conn, "deploy_service", in, mcptask.Plain())
			if err != nil {
				t.Fatal(err)
			}
			var task string
			for snapshot, err := range call.Updates(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				task = snapshot.TaskID
				break
			}
			if _, err := mcptask.Run[*mcptask.Result](ctx, conn, "task_answer", map[string]any{
				"task": task, "question": "ship", "answer": map[string]any{"approve": true},
			}); err != nil {
				t.Fatal(err)
			}
			report, err := mcptask.Run[pipeline.DeployReport](ctx, conn, "task_result", map[string]any{"task": task})
			if err != nil || report.Version != "1.2.3" {
				t.Errorf("%+v, %v", report, err)
			}
		})
	}
}

func TestWithoutTheGateway(t *testing.T) {
	tasks, err := mcptask.NewServer(mcptask.Options{}, pipeline.CITools(ci{}))
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	s := server.NewMCPServer("ci", "1.0.0", server.WithToolCapabilities(true))
	mcpgo.AddTools(s, tasks)
	web := httptest.NewServer(wirecheck.Handler(t, server.NewStreamableHTTPServer(s, server.WithStateful(true))))
	defer web.Close()
	conn, err := gosdk.Connect(t.Context(), web.URL+"/mcp", gosdk.ClientOptions{Revision: mcptask.Revision20251125})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := pipeline.NewCIClient(conn).LintFile(t.Context(), pipeline.LintInput{Path: "x"}); err == nil {
		t.Error("a call that nobody answers for was served")
	}
}

// A subscription to tasks, alone and beside what mcp-go serves.
func TestListen(t *testing.T) {
	web := serve(t)
	send := func(method, params string) *bufio.Scanner {
		t.Helper()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"s","method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, method, params)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": "run_pipeline"} {
			r.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return bufio.NewScanner(res.Body)
	}
	for name, more := range map[string]string{"tasks only": "", "and others": `,"toolsListChanged":true`, "and what it has not": `,"promptsListChanged":true`} {
		t.Run(name, func(t *testing.T) {
			created := send("tools/call", `"name":"run_pipeline","arguments":{"repository":"https://example.com/r"}`)
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
				if heard = append(heard, data); strings.Contains(data, `"completed"`) && strings.Contains(more, "tools") || strings.Contains(data, `"id":"s"`) {
					break // what mcp-go serves goes on
				}
			}
			if len(heard) < 2 || !strings.Contains(heard[0], "acknowledged") || !strings.Contains(heard[0], id) ||
				strings.Contains(heard[0], "toolsListChanged\":true") != strings.Contains(more, "tools") || !strings.Contains(fmt.Sprint(heard), `"status":"completed"`) {
				t.Errorf("%s", strings.Join(heard, "\n"))
			}
		})
	}
}
