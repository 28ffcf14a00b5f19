package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// approval is the form of the tools of the tests.
var approval = mcptask.InputSpec{Name: "Approval", Schema: `{"type": "object", "required": ["approve"],
	"properties": {"approve": {"type": "boolean"}, "place": {"type": "string", "enum": ["staging", "production"]}}}`}

type (
	approved struct {
		Approve bool   `json:"approve"`
		Place   string `json:"place"`
	}
	deployment struct {
		Version  string   `json:"version"`
		Replicas int      `json:"replicas"`
		Tags     []string `json:"tags"`
	}
	deployed struct {
		Version string `json:"version"`
		Place   string `json:"place"`
	}
)

// callTools are tools of each kind.
func callTools() mcptask.Tools {
	task := mcptask.Policy{Task: mcptask.TaskOptional, Poll: 20 * time.Millisecond}
	const open = `{"type": "object"}`
	return mcptask.Tools{Service: "Calls", Impl: struct{}{}, Fallback: mcptask.FallbackTools, Asks: true, Capabilities: mcptask.Declared(), Tools: []mcptask.Tool{
		mcptask.NewTool(mcptask.ToolSpec{Name: "echo", Description: "Says what it hears.\nNothing else.", InputSchema: open},
			func(_ context.Context, _ *mcptask.Task, in map[string]any) (map[string]any, error) { return in, nil }),
		mcptask.NewTool(mcptask.ToolSpec{
			Name: "deploy", Description: "Deploys a version.", Policy: task,
			InputSchema: `{"type": "object", "required": ["version"], "additionalProperties": false, "properties": {
				"version": {"type": "string", "description": "What to deploy."}, "replicas": {"type": "integer", "default": 1},
				"tags": {"type": "array", "items": {"type": "string"}}}}`,
		}, func(ctx context.Context, task *mcptask.Task, in deployment) (deployed, error) {
			task.Progress(ctx, 1, 2, "built")
			answer, err := mcptask.Ask[approved](ctx, task, approval, "where", "Deploy "+in.Version+"?")
			if err == nil && !answer.Approve {
				err = errors.New("not approved")
			}
			return deployed{in.Version, answer.Place}, err
		}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "wait", Description: "Waits until it is cancelled.", InputSchema: open, Policy: task},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				task.Message(ctx, "waiting")
				<-ctx.Done()
				return "", ctx.Err()
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "draw", InputSchema: open}, func(context.Context, *mcptask.Task, struct{}) (*mcptask.Result, error) {
			return &mcptask.Result{Content: []mcptask.Content{mcptask.TextContent("here"), mcptask.ImageContent([]byte("pixels"), "image/png")}}, nil
		}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "think", InputSchema: open, Policy: task}, func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
			result, err := task.Sample(ctx, "think", mcptask.SampleRequest{MaxTokens: 10, Messages: []mcptask.SampleMessage{{Role: "user", Content: mcptask.TextContent("well?")}}})
			if err != nil {
				return "", err
			}
			return result.Content.Text(), nil
		}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "fail", InputSchema: open, Policy: task}, func(context.Context, *mcptask.Task, struct{}) (string, error) {
			return "", errors.New("the disk is full")
		}),
	}}
}

// TestCallScripts runs the commands of tasks against a server over HTTP and as a program, in both revisions.
func TestCallScripts(t *testing.T) {
	tasks, err := mcptask.NewServer(mcptask.Options{
		Principal: func(context.Context) (string, error) { return "ann", nil },
	}, callTools())
	if err != nil {
		t.Fatal(err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "calls", Version: "1"}, nil)
	gosdk.AddTools(sdk, tasks)
	handler := wirecheck.Handler(t, gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/private") && r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
	})
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		t.Run(revision, func(t *testing.T) {
			environment := map[string]string{"URL": server.URL + "/mcp", "PRIVATE": server.URL + "/private/mcp", "REVISION": revision, "NOBODY": "http://127.0.0.1:1/mcp"}
			runScriptsIn(t, "testdata/call", environment)
		})
	}
}

// serveCalls serves the tools on standard input and output.
func serveCalls() {
	tasks, err := mcptask.NewServer(mcptask.Options{}, callTools())
	if err != nil {
		panic(err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "calls", Version: "1"}, nil)
	gosdk.AddTools(sdk, tasks)
	_ = sdk.Run(context.Background(), gosdk.StdioTransport(tasks)) // the client ends it
}
