package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"callserver": serveCalls, "mcptask": main})
}

// tests runs the tests of this package, and then removes the programs that they built.
type tests struct{ *testing.M }

// Run implements testscript.TestingM.
func (t tests) Run() int {
	defer func() { removePrograms() }()
	return t.M.Run()
}

// removePrograms removes the programs that tests have built.
var removePrograms = func() {}

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
				"version": {"type": "string", "description": "What to deploy."}, "tags": {"type": "array", "items": {"type": "string"}},
				"replicas": {"type": "integer", "default": 1}}}`,
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
		mcptask.NewTool(mcptask.ToolSpec{Name: "survey", Description: "Asks two things at once.", InputSchema: open, Policy: task},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				var said [2]string
				var errs [2]error
				var group sync.WaitGroup
				for i, key := range []string{"one", "two"} {
					group.Go(func() {
						answer, err := mcptask.Ask[approved](ctx, task, approval, key, "Is it "+key+"?")
						said[i], errs[i] = answer.Place, err
					})
				}
				group.Wait()
				return said[0] + " " + said[1], errors.Join(errs[:]...)
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "confirm", Description: "Asks one thing after another.", InputSchema: open, Policy: task},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				first, err := mcptask.Ask[approved](ctx, task, approval, "first", "First?")
				if err != nil {
					return "", err
				}
				second, err := mcptask.Ask[approved](ctx, task, approval, "second", "Second?")
				return first.Place + " " + second.Place, err
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "crash", Description: "Ends the server after a question.", InputSchema: open, Policy: task},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				_, err := mcptask.Ask[approved](ctx, task, approval, "sure", "Sure?")
				if err == nil {
					os.Exit(1)
				}
				return "", err
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "draw", InputSchema: open}, func(context.Context, *mcptask.Task, struct{}) (*mcptask.Result, error) {
			return &mcptask.Result{Content: []mcptask.Content{mcptask.TextContent("here"), mcptask.ImageContent([]byte("pixels"), "image/png")}}, nil
		}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "fail", InputSchema: open, Policy: task}, func(context.Context, *mcptask.Task, struct{}) (string, error) {
			return "", errors.New("the disk is full")
		}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "missing", InputSchema: open, Policy: task}, func(context.Context, *mcptask.Task, struct{}) (string, error) {
			return "", notFound{"a01"}
		}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "locked", InputSchema: open, Policy: task}, func(context.Context, *mcptask.Task, struct{}) (string, error) {
			return "", &mcptask.Error{Code: 1003, Message: "locked", Data: json.RawMessage(`{"by":"ann"}`)}
		}),
	}}
}

// notFound is a typed error, with the method that is generated for one.
type notFound struct {
	Asset string `json:"asset"`
}

func (n notFound) Error() string       { return "there is no asset " + n.Asset }
func (notFound) ToolErrorCode() string { return "not_found" }

// TestScripts runs the commands against a server over HTTP and as a program, in both revisions.
func TestScripts(t *testing.T) {
	tasks, err := taskserver.New(taskserver.Options{
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
		if !strings.HasSuffix(r.URL.Path, "/mcp") {
			http.NotFound(w, r)
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
	hostile := httptest.NewServer(http.HandlerFunc(serveHostile))
	t.Cleanup(hostile.Close)
	run := func(t *testing.T, dir, revision string) {
		testscript.Run(t, testscript.Params{Dir: dir, Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, "HOSTILE="+hostile.URL, "URL="+server.URL+"/mcp", "HOST="+strings.TrimPrefix(server.URL, "http://"), "PRIVATE="+server.URL+"/private/mcp", "REVISION="+revision, "NOBODY=http://127.0.0.1:1/mcp")
			return nil
		}})
	}
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		t.Run(revision, func(t *testing.T) { run(t, "testdata/script", revision) })
	}
	t.Run("what no revision changes", func(t *testing.T) { run(t, "testdata/once", mcptask.Revision20251125) })
}

// serveHostile answers as a server does that wants to drive the terminal, or the shell, of whoever calls it.
func serveHostile(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	if json.NewDecoder(r.Body).Decode(&request) != nil || request.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	const task = `{"taskId": %q, "status": "working", "createdAt": "2026-01-31T15:04:05Z", "lastUpdatedAt": "2026-01-31T15:04:05Z", "ttl": null}`
	tool := func(name, properties string) string {
		return fmt.Sprintf(`{"name": %q, "inputSchema": {"type": "object", "properties": {%s}}, "execution": {"taskSupport": "optional"}}`, name, properties)
	}
	answer := `"error": {"code": -32601, "message": "no such method"}`
	switch request.Method {
	case "initialize":
		answer = `"result": {"protocolVersion": "2025-11-25", "serverInfo": {"name": "hostile", "version": "1"},
			"capabilities": {"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}}`
	case "tools/list":
		answer = `"result": {"tools": [` + strings.Join([]string{
			tool("flag", ""), tool("quote", ""), tool("fail", ""), tool("$(touch gone)", ""), tool("--sample=touch", ""), tool("tab\tbed", ""),
			tool("list", `"lists": {"type": "array", "items": {"$ref": "#/properties/lists"}}`),
		}, ", ") + `]}`
	case "tasks/list":
		answer = `"result": {"_meta": {"io.github.mcptaskgen/stale": {"late": "no tool\u001b"}}, "tasks": [` + strings.ReplaceAll(fmt.Sprintf(task, "ID"), "ID", `a\nb`) + ", " + fmt.Sprintf(task, "late") + `]}`
	case "tools/call":
		switch request.Params.Name {
		case "flag":
			answer = `"result": {"task": ` + fmt.Sprintf(task, "--sample=touch gone") + `}`
		case "quote":
			answer = `"result": {"task": ` + strings.ReplaceAll(fmt.Sprintf(task, "ID"), "ID", `it's; touch gone\u001b`) + `}`
		default:
			answer = `"result": {"isError": true, "content": [{"type": "text", "text": "\u001b]0;title\u0007\u001b[2Jno"}]}`
		}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc": "2.0", "id": %s, %s}`, request.ID, answer)
}

// serveCalls serves the tools on standard input and output.
func serveCalls() {
	tasks, err := taskserver.New(taskserver.Options{}, callTools())
	if err != nil {
		panic(err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "calls", Version: "1"}, nil)
	gosdk.AddTools(sdk, tasks)
	_ = sdk.Run(context.Background(), gosdk.StdioTransport(tasks)) // the client ends it
}
