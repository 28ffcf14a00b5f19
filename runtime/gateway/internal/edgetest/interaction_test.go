package edgetest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// eachPeer runs a test against a server with a user's middleware, in both revisions.
func eachPeer(t *testing.T, m mcp.Middleware, test func(t *testing.T, p *wiretest.Peer)) {
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url, _ := wiretest.ServeWith(t, wiretest.Setup{Middleware: m, Bearer: true})
				test(t, wiretest.NewPeer(t, url, revision, "a"))
			})
		})
	}
}

func TestMiddlewareTwice(t *testing.T) {
	t.Parallel()
	m := wiretest.WrapCalls(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
		if _, err := next(); err != nil {
			return nil, err
		}
		return next()
	})
	eachPeer(t, m, func(t *testing.T, p *wiretest.Peer) {
		id := p.Create("ponder", map[string]any{"ms": 50})
		if tasks := wiretest.ListTasks(t, p); len(tasks) != 1 || tasks[0]["taskId"] != id {
			t.Errorf("%v", tasks)
		}
		p.Until(id, "completed")
	})
}

func TestMiddlewareFails(t *testing.T) {
	t.Parallel()
	m := wiretest.WrapCalls(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
		if _, err := next(); err != nil {
			return nil, err
		}
		return nil, errors.New("the audit log is full")
	})
	eachPeer(t, m, func(t *testing.T, p *wiretest.Peer) {
		r := p.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 3600000}, "task": map[string]any{}})
		if r.Error == nil {
			t.Errorf("%s", r.Body)
		}
		if tasks := wiretest.ListTasks(t, p); len(tasks) != 1 || tasks[0]["status"] != "cancelled" {
			t.Errorf("%v", tasks)
		}
	})
}

// slowStore takes its time to store a task.
type slowStore struct {
	mcptask.Store

	begun, release chan struct{}
}

// Create implements mcptask.Store.
func (s *slowStore) Create(ctx context.Context, r mcptask.Record, q mcptask.Quota) (mcptask.Record, error) {
	s.begun <- struct{}{}
	<-s.release
	return s.Store.Create(ctx, r, q)
}

// TestMiddlewareLeaves uses middleware that gives up a call while its task is created. The
// middleware answers at once, with an error or with a result of its own. The task is cancelled,
// because no client knows it.
func TestMiddlewareLeaves(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		for name, instead := range map[string]*mcp.CallToolResult{"error": nil, "result": {Content: []mcp.Content{}}} {
			t.Run(revision+" "+name, func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) {
					store := &slowStore{Store: mcptask.NewMemoryStore(), begun: make(chan struct{}, 1), release: make(chan struct{})}
					var calls sync.WaitGroup
					m := wiretest.WrapCalls(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
						calls.Go(func() { _, _ = next() })
						<-store.begun
						if instead == nil {
							return nil, errors.New("it takes too long")
						}
						return instead, nil
					})
					url, _ := wiretest.ServeWith(t, wiretest.Setup{Middleware: m, Bearer: true, Options: mcptask.Options{Store: store}})
					p := wiretest.NewPeer(t, url, revision, "a")
					r := p.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 3600000}, "task": map[string]any{}})
					if (r.Error == nil) != (instead != nil) || strings.Contains(string(r.Body), "taskId") {
						t.Errorf("%s", r.Body)
					}
					close(store.release)
					calls.Wait()
					if tasks := wiretest.ListTasks(t, p); len(tasks) != 1 || tasks[0]["status"] != "cancelled" {
						t.Errorf("%v", tasks)
					}
				})
			})
		}
	}
}

func TestMiddlewareRenames(t *testing.T) {
	t.Parallel()
	m := wiretest.WrapCalls(func(next func() (mcp.Result, error), req *mcp.CallToolRequest) (mcp.Result, error) {
		req.Params.Name = map[string]string{"ponder": "run_pipeline", "lint_file": "ponder", "sdk_tool": "ponder", "raw": "sdk_tool"}[req.Params.Name]
		return next()
	})
	eachPeer(t, m, func(t *testing.T, p *wiretest.Peer) {
		for _, tool := range []string{"ponder", "lint_file", "sdk_tool"} {
			params := map[string]any{"name": tool, "arguments": map[string]any{"repository": "https://example.com", "path": "p"}}
			if tool == "ponder" {
				params["task"] = map[string]any{}
			}
			if r := p.Call("tools/call", params); r.Error == nil && r.Get("isError") != true {
				t.Errorf("%s: %s", tool, r.Body)
			}
		}
		p.Call("tools/call", map[string]any{"name": "raw", "arguments": map[string]any{}}).OK() // now the SDK's own
		if tasks := wiretest.ListTasks(t, p); len(tasks) != 0 {
			t.Errorf("%v", tasks)
		}
	})
}

// TestMiddlewareChanges checks that middleware can change an ordinary result.
func TestMiddlewareChanges(t *testing.T) {
	t.Parallel()
	m := wiretest.WrapCalls(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
		result, err := next()
		if r, ok := result.(*mcp.CallToolResult); ok {
			r.Content = append(r.Content, &mcp.TextContent{Text: "reviewed"})
			if r.Meta == nil {
				r.Meta = mcp.Meta{}
			}
			r.Meta["com.example/reviewed"] = true
		}
		return result, err
	})
	eachPeer(t, m, func(t *testing.T, p *wiretest.Peer) {
		p.Caps = `{}`
		r := p.Call("tools/call", map[string]any{"name": "raw", "arguments": map[string]any{}}).OK()
		for _, want := range []string{`"reviewed"`, `"com.example/reviewed":true`, `"com.example/own":{"n":9007199254740993}`, `"big":9007199254740993`} {
			if !strings.Contains(string(r.Result), want) {
				t.Errorf("no %s in %s", want, r.Body)
			}
		}
		p.Caps = wiretest.TasksExtension
		p.Until(p.Create("ponder", nil), "completed") // a task stays a task
	})
}

// TestManyClients runs 20 clients with 10 tasks of 300 ms each. All tasks complete, whatever
// happens to the requests that created them, and nothing is left behind.
func TestManyClients(t *testing.T) {
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		t.Run(revision, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				url, tasks := wiretest.ServeWith(t, wiretest.Setup{})
				// The server's own goroutines are there from here on.
				first := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
				first.Call("tools/list", nil).OK()
				wiretest.ClosePeer(t, first)
				check := wiretest.Goroutines(t)
				var clients sync.WaitGroup
				var peers [20]*wiretest.Peer
				for i := range peers {
					clients.Go(func() {
						p := wiretest.NewPeer(t, url, revision, "")
						peers[i] = p
						var ids []string
						for range 4 {
							ids = append(ids, p.Create("ponder", map[string]any{"ms": 300}))
						}
						for _, id := range ids {
							p.Until(id, "completed")
							if revision == wiretest.LegacyRevision {
								p.Task("tasks/result", id).OK()
							}
						}
					})
				}
				clients.Wait()
				for _, p := range peers {
					wiretest.ClosePeer(t, p)
				}
				check()
				if err := tasks.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestDisconnects disconnects clients during the grace period, during a tasks/result, and in the
// middle of a stream. Nothing is left behind.
func TestDisconnects(t *testing.T) {
	leave := func(t *testing.T, p *wiretest.Peer, after time.Duration, method string, params map[string]any, edits ...wiretest.Edit) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), after)
		defer cancel()
		body, edits := p.Request(method, params, edits...)
		res, err := p.Client.Do(p.NewRequest(ctx, http.MethodPost, body, edits...))
		if err != nil {
			return
		}
		defer res.Body.Close()
		for message := range wiretest.Events(res.Body) {
			t.Errorf("an answer before the client left: %s", message)
		}
	}
	for name, test := range map[string]func(t *testing.T, p *wiretest.Peer){
		"during the grace": func(t *testing.T, p *wiretest.Peer) {
			leave(t, p, 100*time.Millisecond, "tools/call", map[string]any{"name": "ponder_at_once", "arguments": map[string]any{"ms": 3600000}})
		},
		"during a plain call": func(t *testing.T, p *wiretest.Peer) {
			p.Caps = `{}`
			leave(t, p, 100*time.Millisecond, "tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 3600000}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true})
				first := wiretest.NewPeer(t, url, wiretest.ModernRevision, "a")
				first.Call("tools/list", nil).OK()
				wiretest.ClosePeer(t, first)
				p := wiretest.NewPeer(t, url, wiretest.ModernRevision, "a")
				p.Client.CloseIdleConnections()
				check := wiretest.Goroutines(t)
				for range 5 {
					test(t, p)
				}
				wiretest.ClosePeer(t, p)
				check() // long before the handlers would be done
				if tasks := wiretest.ListTasks(t, p); len(tasks) != 0 {
					t.Errorf("tasks that nobody knows of: %v", tasks)
				}
			})
		})
	}
	for name, test := range map[string]struct {
		after time.Duration
		edit  wiretest.Edit
	}{
		"during tasks/result as JSON":     {200 * time.Millisecond, wiretest.JSONOnly},
		"before tasks/result is a stream": {200 * time.Millisecond, func(*http.Request) {}},
		"in the middle of a stream":       {700 * time.Millisecond, func(*http.Request) {}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true})
				first := wiretest.NewPeer(t, url, wiretest.ModernRevision, "a")
				first.Call("tools/list", nil).OK()
				wiretest.ClosePeer(t, first)
				p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a")
				id := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
				p.Client.CloseIdleConnections()
				check := wiretest.Goroutines(t)
				var all sync.WaitGroup
				for range 5 {
					all.Go(func() { leave(t, p, test.after, "tasks/result", map[string]any{"taskId": id}, test.edit) })
				}
				all.Wait()
				p.Client.CloseIdleConnections()
				check()
				p.Until(id, "working") // the task does not mind
				p.Task("tasks/cancel", id).OK()
				wiretest.ClosePeer(t, p)
			})
		})
	}
	t.Run("the standalone stream", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true})
			first := wiretest.NewPeer(t, url, wiretest.ModernRevision, "a")
			first.Call("tools/list", nil).OK()
			wiretest.ClosePeer(t, first)
			p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a")
			p.Client.CloseIdleConnections()
			check := wiretest.Goroutines(t)
			for range 5 {
				_, stop := p.Listen()
				stop()
			}
			p.Client.CloseIdleConnections()
			check()
			wiretest.ClosePeer(t, p)
		})
	})
}

// TestClose checks that closing the server ends waiting requests and refuses new ones.
func TestClose(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var g *gateway.Gateway
		url, tasks := wiretest.ServeWith(t, wiretest.Setup{Gateway: &g})
		p, m := wiretest.NewPeer(t, url, wiretest.LegacyRevision, ""), wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		id := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		blocked := make(chan *wiretest.Response, 1)
		go func() { blocked <- p.Task("tasks/result", id) }()
		wiretest.AwaitWaiter(t, g)
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		(<-blocked).Want(200, wiretest.InternalError)
		for _, p := range []*wiretest.Peer{p, m} {
			r := p.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{}})
			if r.Error == nil || r.Error.Code != wiretest.InternalError {
				t.Errorf("%d %s", r.Status, r.Body)
			}
		}
	})
}
