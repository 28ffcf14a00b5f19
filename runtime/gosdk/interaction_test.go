package gosdk_test

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
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// onCall is middleware around tools/call.
func onCall(f func(next func() (mcp.Result, error), req *mcp.CallToolRequest) (mcp.Result, error)) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			call, ok := req.(*mcp.CallToolRequest)
			if !ok {
				return next(ctx, method, req)
			}
			return f(func() (mcp.Result, error) { return next(ctx, method, req) }, call)
		}
	}
}

// eachPeer runs a test against a server with a user's middleware, in both revisions.
func eachPeer(t *testing.T, m mcp.Middleware, test func(t *testing.T, p *peer)) {
	for _, revision := range []string{legacyRevision, modernRevision} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url, _ := serveWith(t, setup{middleware: m, bearer: true})
				test(t, newPeer(t, url, revision, "a"))
			})
		})
	}
}

// tasksOf lists the principal's tasks, through a session of its own.
func tasksOf(t *testing.T, p *peer) []map[string]any {
	t.Helper()
	var tasks []map[string]any
	if p.revision != candidateRevision {
		p = newPeer(t, p.url, legacyRevision, p.token)
	}
	for _, task := range p.call("tasks/list", nil).ok().get("tasks").([]any) {
		tasks = append(tasks, task.(map[string]any))
	}
	return tasks
}

func TestMiddlewareTwice(t *testing.T) {
	t.Parallel()
	m := onCall(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
		if _, err := next(); err != nil {
			return nil, err
		}
		return next()
	})
	eachPeer(t, m, func(t *testing.T, p *peer) {
		id := p.create("ponder", map[string]any{"ms": 50})
		if tasks := tasksOf(t, p); len(tasks) != 1 || tasks[0]["taskId"] != id {
			t.Errorf("%v", tasks)
		}
		p.until(id, "completed")
	})
}

func TestMiddlewareFails(t *testing.T) {
	t.Parallel()
	m := onCall(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
		if _, err := next(); err != nil {
			return nil, err
		}
		return nil, errors.New("the audit log is full")
	})
	eachPeer(t, m, func(t *testing.T, p *peer) {
		r := p.call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 3600000}, "task": map[string]any{}})
		if r.Error == nil {
			t.Errorf("%s", r.body)
		}
		if tasks := tasksOf(t, p); len(tasks) != 1 || tasks[0]["status"] != "cancelled" {
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

// Middleware that gives a call up while its task is made answers at once, with an
// error or with a result of its own; the task, which nobody learns of, is cancelled.
func TestMiddlewareLeaves(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{legacyRevision, modernRevision} {
		for name, instead := range map[string]*mcp.CallToolResult{"error": nil, "result": {Content: []mcp.Content{}}} {
			t.Run(revision+" "+name, func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) {
					store := &slowStore{Store: mcptask.NewMemoryStore(), begun: make(chan struct{}, 1), release: make(chan struct{})}
					var calls sync.WaitGroup
					m := onCall(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
						calls.Go(func() { _, _ = next() })
						<-store.begun
						if instead == nil {
							return nil, errors.New("it takes too long")
						}
						return instead, nil
					})
					url, _ := serveWith(t, setup{middleware: m, bearer: true, options: mcptask.Options{Store: store}})
					p := newPeer(t, url, revision, "a")
					r := p.call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 3600000}, "task": map[string]any{}})
					if (r.Error == nil) != (instead != nil) || strings.Contains(string(r.body), "taskId") {
						t.Errorf("%s", r.body)
					}
					close(store.release)
					calls.Wait()
					if tasks := tasksOf(t, p); len(tasks) != 1 || tasks[0]["status"] != "cancelled" {
						t.Errorf("%v", tasks)
					}
				})
			})
		}
	}
}

func TestMiddlewareRenames(t *testing.T) {
	t.Parallel()
	m := onCall(func(next func() (mcp.Result, error), req *mcp.CallToolRequest) (mcp.Result, error) {
		req.Params.Name = map[string]string{"ponder": "run_pipeline", "lint_file": "ponder", "sdk_tool": "ponder", "raw": "sdk_tool"}[req.Params.Name]
		return next()
	})
	eachPeer(t, m, func(t *testing.T, p *peer) {
		for _, tool := range []string{"ponder", "lint_file", "sdk_tool"} {
			params := map[string]any{"name": tool, "arguments": map[string]any{"repository": "https://example.com", "path": "p"}}
			if tool == "ponder" {
				params["task"] = map[string]any{}
			}
			if r := p.call("tools/call", params); r.Error == nil && r.get("isError") != true {
				t.Errorf("%s: %s", tool, r.body)
			}
		}
		p.call("tools/call", map[string]any{"name": "raw", "arguments": map[string]any{}}).ok() // now the SDK's own
		if tasks := tasksOf(t, p); len(tasks) != 0 {
			t.Errorf("%v", tasks)
		}
	})
}

// Middleware that changes a plain result has the last word.
func TestMiddlewareChanges(t *testing.T) {
	t.Parallel()
	m := onCall(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
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
	eachPeer(t, m, func(t *testing.T, p *peer) {
		p.caps = `{}`
		r := p.call("tools/call", map[string]any{"name": "raw", "arguments": map[string]any{}}).ok()
		for _, want := range []string{`"reviewed"`, `"com.example/reviewed":true`, `"com.example/own":{"n":9007199254740993}`, `"big":9007199254740993`} {
			if !strings.Contains(string(r.Result), want) {
				t.Errorf("no %s in %s", want, r.body)
			}
		}
		p.caps = tasksExtension
		p.until(p.create("ponder", nil), "completed") // a task stays a task
	})
}

// TestManyClients: 20 clients with 10 tasks of 300 ms each complete, whatever
// became of the requests that made them, and leave nothing behind.
func TestManyClients(t *testing.T) {
	for _, revision := range []string{legacyRevision, modernRevision} {
		t.Run(revision, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				url, tasks := serveWith(t, setup{})
				// The server's own goroutines are there from here on.
				first := newPeer(t, url, modernRevision, "")
				first.call("tools/list", nil).ok()
				end(t, first)
				check := goroutines(t)
				var clients sync.WaitGroup
				var peers [20]*peer
				for i := range peers {
					clients.Go(func() {
						p := newPeer(t, url, revision, "")
						peers[i] = p
						var ids []string
						for range 4 {
							ids = append(ids, p.create("ponder", map[string]any{"ms": 300}))
						}
						for _, id := range ids {
							p.until(id, "completed")
							if revision == legacyRevision {
								p.task("tasks/result", id).ok()
							}
						}
					})
				}
				clients.Wait()
				for _, p := range peers {
					end(t, p)
				}
				check()
				if err := tasks.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// end closes a peer's session and connections.
func end(t *testing.T, p *peer) {
	t.Helper()
	if p.session != "" {
		res, err := p.client.Do(p.start(context.Background(), http.MethodDelete, ""))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	p.client.CloseIdleConnections()
}

// TestDisconnects: clients that leave during the grace, while tasks/result
// blocks or in the middle of a stream leave nothing behind.
func TestDisconnects(t *testing.T) {
	url, _ := serveWith(t, setup{bearer: true})
	first := newPeer(t, url, modernRevision, "a")
	first.call("tools/list", nil).ok()
	end(t, first)
	leave := func(t *testing.T, p *peer, after time.Duration, method string, params map[string]any, edits ...edit) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), after)
		defer cancel()
		body, edits := p.request(method, params, edits...)
		res, err := p.client.Do(p.start(ctx, http.MethodPost, body, edits...))
		if err != nil {
			return
		}
		defer res.Body.Close()
		for message := range events(res.Body) {
			t.Errorf("an answer before the client left: %s", message)
		}
	}
	for name, test := range map[string]func(t *testing.T, p *peer){
		"during the grace": func(t *testing.T, p *peer) {
			leave(t, p, 100*time.Millisecond, "tools/call", map[string]any{"name": "ponder_at_once", "arguments": map[string]any{"ms": 3600000}})
		},
		"during a plain call": func(t *testing.T, p *peer) {
			p.caps = `{}`
			leave(t, p, 100*time.Millisecond, "tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 3600000}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, url, modernRevision, "a")
			p.client.CloseIdleConnections()
			check := goroutines(t)
			for range 5 {
				test(t, p)
			}
			end(t, p)
			check() // long before the handlers would be done
			if tasks := tasksOf(t, p); len(tasks) != 0 {
				t.Errorf("tasks that nobody knows of: %v", tasks)
			}
		})
	}
	for name, test := range map[string]struct {
		after time.Duration
		edit  edit
	}{
		"during tasks/result as JSON":     {200 * time.Millisecond, jsonOnly},
		"before tasks/result is a stream": {200 * time.Millisecond, func(*http.Request) {}},
		"in the middle of a stream":       {700 * time.Millisecond, func(*http.Request) {}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, url, legacyRevision, "a")
			id := p.create("run_pipeline", pipelineArgs("endless"))
			p.client.CloseIdleConnections()
			check := goroutines(t)
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() { leave(t, p, test.after, "tasks/result", map[string]any{"taskId": id}, test.edit) })
			}
			all.Wait()
			p.client.CloseIdleConnections()
			check()
			p.until(id, "working") // the task does not mind
			p.task("tasks/cancel", id).ok()
			end(t, p)
		})
	}
	t.Run("the standalone stream", func(t *testing.T) {
		p := newPeer(t, url, legacyRevision, "a")
		p.client.CloseIdleConnections()
		check := goroutines(t)
		for range 5 {
			_, stop := p.listen()
			stop()
		}
		p.client.CloseIdleConnections()
		check()
		end(t, p)
	})
}

// TestClose: closing the server ends what waits, and takes nothing new.
func TestClose(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var g *gateway.Gateway
		url, tasks := serveWith(t, setup{gateway: &g})
		p, m := newPeer(t, url, legacyRevision, ""), newPeer(t, url, modernRevision, "")
		id := p.create("run_pipeline", pipelineArgs("endless"))
		blocked := make(chan *response, 1)
		go func() { blocked <- p.task("tasks/result", id) }()
		untilWaiting(t, g)
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		(<-blocked).want(200, internalError)
		for _, p := range []*peer{p, m} {
			r := p.call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{}})
			if r.Error == nil || r.Error.Code != internalError {
				t.Errorf("%d %s", r.status, r.body)
			}
		}
	})
}
