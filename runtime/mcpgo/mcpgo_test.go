package mcpgo_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcpgo"
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
	web := httptest.NewServer(mcpgo.NewHandler(tasks, server.NewStreamableHTTPServer(s, server.WithStateful(true)), mcpgo.Options{}))
	t.Cleanup(func() { _ = tasks.Close(); web.CloseClientConnections(); web.Close() })

	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
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

func TestWithoutTheGateway(t *testing.T) {
	tasks, err := mcptask.NewServer(mcptask.Options{}, pipeline.CITools(ci{}))
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	s := server.NewMCPServer("ci", "1.0.0", server.WithToolCapabilities(true))
	mcpgo.AddTools(s, tasks)
	web := httptest.NewServer(server.NewStreamableHTTPServer(s, server.WithStateful(true)))
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
