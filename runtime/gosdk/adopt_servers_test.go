package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// newNamed returns a new SDK server with a tool whose handler returns the server's name after a while.
func newNamed(t testing.TB, tasks *taskserver.Server, name string) *mcp.Server {
	t.Helper()
	sdk := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	handler := func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		select {
		case <-time.After(20 * time.Millisecond): // so that tasks of others wait
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil, nil
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	if err := gosdk.AddTaskTool(sdk, tasks, &mcp.Tool{Name: "name"}, handler, mcptask.Policy{Poll: 20 * time.Millisecond}); err != nil {
		t.Error(err)
	}
	return sdk
}

// TestAdoptedByServersOfUsers checks that each call runs the handler of the server that it came to, also a task that has
// waited for a slot, and that nothing keeps the servers.
func TestAdoptedByServersOfUsers(t *testing.T) {
	tasks, _ := newServer(t, taskserver.Options{Concurrency: 1})
	newNamed(t, tasks, "start")
	var mu sync.Mutex
	var made []weak.Pointer[mcp.Server]
	handler := gosdk.NewHandler(tasks, func(r *http.Request) *mcp.Server {
		sdk := newNamed(t, tasks, auth.TokenInfoFromContext(r.Context()).UserID)
		mu.Lock()
		defer mu.Unlock()
		made = append(made, weak.Make(sdk))
		return sdk
	}, nil)
	web := memnet.NewServer(gosdk.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
	}, nil)(wirecheck.Handler(t, handler)), nil)
	t.Cleanup(web.Close)
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		var calling sync.WaitGroup
		for _, user := range []string{"alice", "bob", "carol"} {
			calling.Go(func() {
				conn, err := gosdk.Connect(t.Context(), web.URL, gosdk.ClientOptions{Revision: revision,
					Bearer: func(context.Context) (string, error) { return user, nil }})
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				for _, options := range [][]mcptask.CallOption{nil, {mcptask.Plain()}} {
					if got, err := mcptask.Run[string](t.Context(), conn, "name", struct{}{}, options...); err != nil || got != user {
						t.Errorf("%s in %s: %q, %v", user, revision, got, err)
					}
				}
			})
		}
		calling.Wait()
	}
	mu.Lock() // a late notification may make one more
	all := slices.Clone(made)
	mu.Unlock()
	untilCollected(t, all)
}

// TestAdoptedTwice checks that the equal tool is one tool on all servers, and that the error names the difference of
// another.
func TestAdoptedTwice(t *testing.T) {
	tasks, sdk := newServer(t, taskserver.Options{}, pipeline.CITools(wiretest.CI{}))
	add := func(server *mcp.Server, tool *mcp.Tool, policy mcptask.Policy) error {
		return gosdk.AddTaskTool(server, tasks, tool, sum, policy)
	}
	other := mcp.NewServer(&mcp.Implementation{Name: "other", Version: "1"}, nil)
	for _, server := range []*mcp.Server{sdk, sdk, other} {
		if err := add(server, &mcp.Tool{Name: "sum", Description: "adds"}, mcptask.Policy{}); err != nil {
			t.Error(err)
		}
	}
	for want, err := range map[string]error{
		`description "sums" after "adds"`: add(other, &mcp.Tool{Name: "sum", Description: "sums"}, mcptask.Policy{}),
		`TTL 1h0m0s in its policy`:        add(other, &mcp.Tool{Name: "sum", Description: "adds"}, mcptask.Policy{TTL: time.Hour}),
		`and a tool of service CI`:        add(other, &mcp.Tool{Name: "lint_file"}, mcptask.Policy{}),
		`input schema must have type`:     add(other, &mcp.Tool{Name: "bad", InputSchema: json.RawMessage(`{"type":"string"}`)}, mcptask.Policy{}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	gosdk.AddTools(sdk, tasks) // which leaves the adopted tool as it is
	client := connectInMemory(t, sdk, wiretest.LegacyRevision, func(inner mcp.Transport) mcp.Transport { return gosdk.Transport(tasks, inner) })
	names := map[string]int{}
	for tool, err := range client.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names[tool.Name]++
		if tool.Name == "sum" && !strings.Contains(fmt.Sprint(tool.InputSchema), "numbers") {
			t.Errorf("the schema is %v", tool.InputSchema)
		}
	}
	for _, name := range []string{"sum", "lint_file", "task_status", "task_result", "task_cancel"} {
		if names[name] != 1 {
			t.Errorf("%s is listed %d times", name, names[name])
		}
	}
}

// TestAdoptedWithoutGateway checks that a tool runs plainly on a transport without a gateway, as mcp.AddTool's, with one
// warning that names the remedy, and that the tools of AddTools name it too.
func TestAdoptedWithoutGateway(t *testing.T) {
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		log := new(wiretest.SafeBuffer)
		options := taskserver.Options{Logger: slog.New(slog.NewTextHandler(log, nil))}
		tasks, sdk := newServer(t, options, pipeline.CITools(wiretest.CI{}))
		asks := &mcp.Tool{Name: "asks", InputSchema: json.RawMessage(`{"type":"object"}`)}
		inTask := 0
		// In 2026-07-28 the client gets the question in the result, and in 2025-11-25 the SDK asks it.
		handler := func(ctx context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
			if _, ok := mcptask.FromContext(ctx); ok {
				inTask++
			}
			if req.Params.InputResponses == nil {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "Sure?"}}}, nil, nil
			}
			return nil, nil, fmt.Errorf("the answer is %s", req.Params.InputResponses["q"].(*mcp.ElicitResult).Action)
		}
		if err := gosdk.AddTaskTool(sdk, tasks, asks, handler, mcptask.Policy{}); err != nil {
			t.Fatal(err)
		}
		bare := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
		mcp.AddTool(bare, asks, handler)
		directly := func(inner mcp.Transport) mcp.Transport { return inner }
		bridged := func(inner mcp.Transport) mcp.Transport { return gosdk.Transport(tasks, inner) }
		call := func(server *mcp.Server, wrap func(mcp.Transport) mcp.Transport) string {
			client := connectInMemory(t, server, revision, wrap)
			result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "asks"})
			data, encodeErr := json.Marshal(result)
			if encodeErr != nil {
				t.Fatal(encodeErr)
			}
			return fmt.Sprint(string(data), err)
		}
		want := call(bare, directly)
		if !strings.Contains(want, "the answer is accept") {
			t.Error(want)
		}
		for range 2 {
			if got := call(sdk, directly); got != want || inTask > 0 {
				t.Errorf("without a gateway: %s, want %s, with a task %d times", got, want, inTask)
			}
		}
		lint := &mcp.CallToolParams{Name: "lint_file", Arguments: pipeline.LintInput{Path: "a"}}
		if _, err := connectInMemory(t, sdk, revision, directly).CallTool(t.Context(), lint); err == nil || !strings.Contains(err.Error(), "gosdk.Transport") {
			t.Errorf("lint_file: %v", err)
		}
		if got := call(sdk, bridged); got != want || inTask == 0 {
			t.Errorf("with a gateway: %s, want %s, with a task %d times", got, want, inTask)
		}
		if n := strings.Count(log.String(), "gosdk.Transport"); n != 1 {
			t.Errorf("%d warnings:\n%s", n, log)
		}
	})
}

// TestAdoptedRestart checks that the run after a restart has the handler that was added first, and the user's ID.
func TestAdoptedRestart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		policy := mcptask.Policy{OnLost: mcptask.RestartWhenLost}
		tool := &mcp.Tool{Name: "tool"}
		begun := make(chan struct{}, 1)
		begin := func(name string) (*taskserver.Server, *mcp.Server) {
			tasks, err := taskserver.New(taskserver.Options{Store: store, Principal: func(context.Context) (string, error) { return "alice", nil }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tasks.Close() })
			sdk := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
			for _, each := range []string{name, "later " + name} {
				if err := gosdk.AddTaskTool(sdk, tasks, tool, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
					task, _ := mcptask.FromContext(ctx)
					begun <- struct{}{}
					if task.Attempt() == 1 {
						<-ctx.Done()
						return nil, nil, ctx.Err()
					}
					text := fmt.Sprint(each, " ", req.Extra.TokenInfo.UserID, " ", req.Params.GetProgressToken())
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
				}, policy); err != nil {
					t.Fatal(err)
				}
			}
			return tasks, sdk
		}
		first, sdk := begin("first")
		call, err := mcptask.Start[string](t.Context(), dial(t, serveHTTP(t, wirecheck.Legacy, first, sdk), gosdk.ClientOptions{}), "tool", struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		token, _ := call.Token()
		<-begun
		second, sdk := begin("second") // before the hand-over, so that both of its tools are there
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		call, err = mcptask.Resume[string](dial(t, serveHTTP(t, wirecheck.Legacy, second, sdk), gosdk.ClientOptions{}), "tool", token)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := call.Wait(t.Context()); err != nil || got != "second alice task" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// brokenConn is a transport whose connection fails.
type brokenConn struct {
	mcp.Connection
	err error
}

func (b brokenConn) Connect(context.Context) (mcp.Connection, error) { return b, nil }

func (b brokenConn) Read(context.Context) (jsonrpc.Message, error) { return nil, b.err }

// TestTransportEnds checks that a session ends with either side, and says how the inner connection has failed.
func TestTransportEnds(t *testing.T) {
	check := wiretest.Goroutines(t)
	tasks, sdk := newServer(t, taskserver.Options{}, pipeline.CITools(wiretest.CI{}))
	for _, end := range []func(client *mcp.ClientSession, server *mcp.ServerSession) error{
		func(client *mcp.ClientSession, _ *mcp.ServerSession) error { return client.Close() },
		func(_ *mcp.ClientSession, server *mcp.ServerSession) error { return server.Close() },
	} {
		mine, theirs := mcp.NewInMemoryTransports()
		server, err := sdk.Connect(t.Context(), gosdk.Transport(tasks, theirs), nil)
		if err != nil {
			t.Fatal(err)
		}
		client, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(t.Context(), mine, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := end(client, server); err != nil {
			t.Error(err)
		}
		_, _ = client.Wait(), server.Wait()
	}
	_, theirs := mcp.NewInMemoryTransports()
	inner, err := theirs.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("the line is cut")
	server, err := sdk.Connect(t.Context(), gosdk.Transport(tasks, brokenConn{inner, gone}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err == nil || !strings.Contains(err.Error(), gone.Error()) {
		t.Errorf("the session ended with %v", err)
	}
	_ = tasks.Close()
	check()
}
