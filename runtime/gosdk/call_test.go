package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// around is middleware around the calls of tools.
func around(call func(ctx context.Context, req *mcp.CallToolRequest, next func() (mcp.Result, error)) (mcp.Result, error)) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if tool, ok := req.(*mcp.CallToolRequest); ok {
				return call(ctx, tool, func() (mcp.Result, error) { return next(ctx, method, req) })
			}
			return next(ctx, method, req)
		}
	}
}

// TestMiddlewareOf checks that the middleware of a server is found as it is at each call, and that looking for it adds none.
func TestFindReceivingHandler(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	var seen []string
	for _, name := range []string{"first", "second", "third"} {
		for range 3 {
			gosdk.FindReceivingHandler(server)
		}
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				seen = append(seen, name)
				if name == "first" {
					return nil, fmt.Errorf("the end of %s", method)
				}
				return next(ctx, method, req)
			}
		})
	}
	_, err := gosdk.FindReceivingHandler(server)(t.Context(), "tools/call", &mcp.CallToolRequest{})
	if got := strings.Join(seen, " "); got != "third second first" || err == nil || err.Error() != "the end of tools/call" {
		t.Errorf("%s, %v", got, err)
	}
	var adding sync.WaitGroup // the SDK guards it
	for range 4 {
		adding.Go(func() {
			server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { return next })
			gosdk.FindReceivingHandler(server)
		})
	}
	adding.Wait()
}

// TestMiddlewareAsks checks that middleware can ask the client of 2025-11-25 on the stream of the call, in several calls at
// once, and that each gets its own answers.
func TestMiddlewareAsks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		asks := around(func(ctx context.Context, req *mcp.CallToolRequest, next func() (mcp.Result, error)) (mcp.Result, error) {
			var in struct{ Name string }
			if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
				return nil, err
			}
			for i := range 2 {
				asked := fmt.Sprintf("%s %d", in.Name, i)
				answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: asked, RequestedSchema: json.RawMessage(`{"type":"object","properties":{"note":{"type":"string"}}}`)})
				if err != nil || answer.Content["note"] != "re: "+asked {
					return nil, fmt.Errorf("%s: %v, %w", asked, answer, err)
				}
			}
			if roots, err := req.Session.ListRoots(ctx, nil); err != nil || len(roots.Roots) != 1 {
				return nil, fmt.Errorf("the roots: %v, %w", roots, err)
			}
			if err := req.Session.Ping(ctx, nil); err != nil {
				return nil, fmt.Errorf("the ping: %w", err)
			}
			return next()
		})
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Middleware: asks})
		client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, &mcp.ClientOptions{
			ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				time.Sleep(time.Second)
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"note": "re: " + req.Params.Message}}, nil
			},
		})
		client.AddRoots(&mcp.Root{URI: "file:///r"})
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: wiretest.LegacyRevision})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = session.Close() }()
		var calling sync.WaitGroup
		for i := range 8 {
			calling.Go(func() {
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "raw", Arguments: map[string]any{"name": fmt.Sprint("call ", i)}})
				if err != nil || len(result.Content) != 3 {
					t.Errorf("%+v, %v", result, err)
				}
			})
		}
		calling.Wait()
	})
}

// TestMiddlewareEnds checks that middleware that panics or returns nothing harms nobody.
func TestMiddlewareEnds(t *testing.T) {
	ends := around(func(_ context.Context, req *mcp.CallToolRequest, next func() (mcp.Result, error)) (mcp.Result, error) {
		var in struct{ How string }
		_ = json.Unmarshal(req.Params.Arguments, &in) // without it, the call goes on
		switch in.How {
		case "panic":
			panic("a bug")
		case "nil":
			return nil, nil
		case "typed nil":
			return (*mcp.CallToolResult)(nil), nil
		}
		return next()
	})
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		for _, late := range []bool{false, true} {
			bubble.Run(t, fmt.Sprintf("%s, after AddTools %v", revision, late), func(t *testing.T) {
				setup := wiretest.Setup{Middleware: ends, Panics: true}
				if late {
					setup.Middleware, setup.SDK = nil, func(sdk *mcp.Server) { sdk.AddReceivingMiddleware(ends) }
				}
				url, _ := wiretest.ServeWith(t, setup)
				p := wiretest.NewPeer(t, url, revision, "")
				p.Call("tools/list", nil).OK()
				for _, how := range []string{"panic", "nil", "typed nil"} {
					for range 2 {
						if how != "typed nil" || late {
							p.CallTool("raw", map[string]any{"how": how}).Want(200, -32603)
						}
					}
				}
				p.Until(p.Create("raw", nil), "completed")
			})
		}
	}
}

// endlessTool is a tool that ends with its context. It tells how.
func endlessTool(ended chan<- error) mcptask.Tools {
	return mcptask.Tools{Service: "Endless", Impl: struct{}{}, Tools: []mcptask.Tool{mcptask.NewTool(
		mcptask.ToolSpec{Name: "endless", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskForbidden}},
		func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return "", ctx.Err()
		})}}
}

// TestEndOfCall checks the events that end a call. In a session these are the client's cancellation and the end of the
// session. A client that disconnects ends a call only if there is no session.
func TestEndOfCall(t *testing.T) {
	run := func(name, revision string, test func(t *testing.T, p *wiretest.Peer, leave func(), ended <-chan error)) {
		bubble.Run(t, name, func(t *testing.T) {
			ended := make(chan error, 1)
			url, _ := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{endlessTool(ended)}})
			p := wiretest.NewPeer(t, url, revision, "")
			p.Call("tools/list", nil).OK()
			body, edits := p.Request("tools/call", map[string]any{"name": "endless", "arguments": map[string]any{}}, wiretest.WithHeader("Mcp-Name", "endless"))
			ctx, leave := context.WithCancel(t.Context())
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				if response, err := p.Client.Do(p.NewRequest(ctx, http.MethodPost, strings.Replace(body, `"id":`, `"id":"the call","x":`, 1), edits...)); err == nil {
					_ = response.Body.Close()
				}
			}()
			time.Sleep(time.Minute)
			test(t, p, leave, ended)
			leave()
			<-answered
			time.Sleep(time.Second)
		})
	}
	isRunning := func(t *testing.T, ended <-chan error, want bool) {
		t.Helper()
		time.Sleep(time.Minute)
		select {
		case err := <-ended:
			if want {
				t.Errorf("the call has ended: %v", err)
			}
		default:
			if !want {
				t.Error("the call goes on")
			}
		}
	}
	run("disconnected without a session", wiretest.ModernRevision, func(t *testing.T, _ *wiretest.Peer, leave func(), ended <-chan error) {
		leave()
		isRunning(t, ended, false)
	})
	run("cancelled", wiretest.LegacyRevision, func(t *testing.T, p *wiretest.Peer, leave func(), ended <-chan error) {
		leave()
		isRunning(t, ended, true)
		p.Post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"another"}}`)
		isRunning(t, ended, true)
		duplicate := p.Post(`{"jsonrpc":"2.0","id":"the call","method":"tools/call","params":{"name":"raw","arguments":{}}}`)
		duplicate.Want(http.StatusBadRequest, wiretest.InvalidRequest)
		p.Post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"the call"}}`)
		isRunning(t, ended, false)
		if again := p.Post(`{"jsonrpc":"2.0","id":"the call","method":"tools/call","params":{"name":"raw","arguments":{}}}`); again.Status != http.StatusOK {
			t.Errorf("the ID is not free again: %s", again.Body)
		}
	})
	run("session deleted", wiretest.LegacyRevision, func(t *testing.T, p *wiretest.Peer, _ func(), ended <-chan error) {
		isRunning(t, ended, true)
		response, err := p.Client.Do(p.NewRequest(t.Context(), http.MethodDelete, ""))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		isRunning(t, ended, false)
	})
}

// TestServerOfRequest checks that a request of 2026-07-28 asks once for its SDK server, and gets it, whether the SDK's
// handler serves the call or not.
func TestServerOfRequest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		made := 0
		var one *mcp.Server
		url, _ := wiretest.ServeWith(t, wiretest.Setup{
			SDK: func(server *mcp.Server) { one = server },
			NewHandler: func(tasks *taskserver.Server, _ func(*http.Request) *mcp.Server, options *mcp.StreamableHTTPOptions) http.Handler {
				return gosdk.NewHandler(tasks, func(r *http.Request) *mcp.Server {
					if made++; r.Header.Get("New") == "" {
						return one
					}
					server := mcp.NewServer(&mcp.Implementation{Name: "of a request", Version: "1"}, nil)
					gosdk.AddTools(server, tasks)
					return server
				}, options)
			},
		})
		p := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		p.Call("tools/list", nil).OK()
		for header, name := range map[string]string{"New": "of a request", "Old": "ci"} {
			made = 0
			r := p.Call("tools/call", map[string]any{"name": "raw", "arguments": map[string]any{}}, wiretest.WithHeader(header, "yes"))
			if got := r.Text("_meta", mcp.MetaKeyServerInfo, "name"); made != 1 || got != name {
				t.Errorf("%s: %d servers were asked for, and the one of the answer is %q: %s", header, made, got, r.Body)
			}
		}
	})
}
