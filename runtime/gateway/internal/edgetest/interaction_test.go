package edgetest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestMiddlewareTwice checks that middleware which calls the tool twice creates one task.
func TestMiddlewareTwice(t *testing.T) {
	m := wiretest.WrapCalls(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
		if _, err := next(); err != nil {
			return nil, err
		}
		return next()
	})
	eachPeer(t, wiretest.Setup{Middleware: m}, func(t *testing.T, p *wiretest.Peer) {
		id := p.Create("ponder", map[string]any{"ms": 50})
		if tasks := wiretest.ListTasks(t, p); len(tasks) != 1 || tasks[0]["taskId"] != id {
			t.Errorf("%v", tasks)
		}
		p.Until(id, "completed")
	})
}

// TestMiddlewareFails checks that a task is cancelled if middleware then fails the call, because no
// client knows the task.
func TestMiddlewareFails(t *testing.T) {
	m := wiretest.WrapCalls(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
		if _, err := next(); err != nil {
			return nil, err
		}
		return nil, errors.New("the audit log is full")
	})
	eachPeer(t, wiretest.Setup{Middleware: m}, func(t *testing.T, p *wiretest.Peer) {
		r := p.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 3600000}, "task": map[string]any{}})
		if r.Error == nil {
			t.Errorf("%s", r.Body)
		}
		if tasks := wiretest.ListTasks(t, p); len(tasks) != 1 || tasks[0]["status"] != "cancelled" {
			t.Errorf("%v", tasks)
		}
	})
}

// slowStore delays the creation of a task until it is released.
type slowStore struct {
	taskstore.Store

	begun, release chan struct{}
}

// Create implements taskstore.Store.
func (s *slowStore) Create(ctx context.Context, r taskstore.Record, q taskstore.Quota) (taskstore.Record, error) {
	s.begun <- struct{}{}
	<-s.release
	return s.Store.Create(ctx, r, q)
}

// TestMiddlewareLeaves uses middleware that gives up a call while its task is created. The
// middleware answers at once, with an error or with a result of its own. The task is cancelled,
// because no client knows it.
func TestMiddlewareLeaves(t *testing.T) {
	t.Parallel()
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		for name, instead := range map[string]*mcp.CallToolResult{"error": nil, "result": {Content: []mcp.Content{}}} {
			t.Run(name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					store := &slowStore{Store: taskstore.NewMemory(), begun: make(chan struct{}, 1), release: make(chan struct{})}
					var calls sync.WaitGroup
					m := wiretest.WrapCalls(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
						calls.Go(func() { _, _ = next() })
						<-store.begun
						if instead == nil {
							return nil, errors.New("it takes too long")
						}
						return instead, nil
					})
					url, _ := wiretest.ServeWith(t, wiretest.Setup{Middleware: m, Bearer: true, Options: taskserver.Options{Store: store}})
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
	})
}

// TestMiddlewareRenames checks that middleware cannot turn a call into the call of another task tool.
func TestMiddlewareRenames(t *testing.T) {
	m := wiretest.WrapCalls(func(next func() (mcp.Result, error), req *mcp.CallToolRequest) (mcp.Result, error) {
		req.Params.Name = map[string]string{"ponder": "run_pipeline", "lint_file": "ponder", "sdk_tool": "ponder", "raw": "sdk_tool"}[req.Params.Name]
		return next()
	})
	eachPeer(t, wiretest.Setup{Middleware: m}, func(t *testing.T, p *wiretest.Peer) {
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
	eachPeer(t, wiretest.Setup{Middleware: m}, func(t *testing.T, p *wiretest.Peer) {
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

// TestJSONReplies checks that JSON replies behave like streams.
func TestJSONReplies(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{HTTP: &mcp.StreamableHTTPOptions{JSONResponse: true}})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "")
			p.Caps = wiretest.WithQuestions
			if r := p.Call("tools/list", nil).OK(); r.Stream || strings.Contains(string(r.Result), "taskSupport") != (revision == wiretest.LegacyRevision) {
				t.Errorf("%s: stream %v: %s", revision, r.Stream, r.Body)
			}
			id := p.Create("ponder", map[string]any{"ms": 100})
			p.Until(id, "completed")
			p.Call("tools/call", map[string]any{"name": "lint_file", "arguments": map[string]any{"path": "p"}}).OK()
			if revision == wiretest.LegacyRevision {
				p.Task("tasks/result", id).OK()
				p.Call("tools/call", map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("main")}).Want(200, wiretest.MethodNotFound)
				continue
			}
			p.Caps = `{}`
			p.Call("tools/call", map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("main")}).Want(400, wiretest.MissingCapability)
		}
	})
}

// TestManyClients runs 20 clients with 10 tasks of 300 ms each. All tasks complete, whatever
// happens to the requests that created them, and nothing is left behind.
func TestManyClients(t *testing.T) {
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		bubble.Run(t, revision, func(t *testing.T) {
			url, tasks := wiretest.ServeWith(t, wiretest.Setup{})
			// From here on, the server's own goroutines are running.
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
	}
}

// TestDisconnects disconnects clients during the grace period, during a tasks/result, and in the
// middle of a stream. Nothing is left behind, and a task that its client knows goes on.
func TestDisconnects(t *testing.T) {
	ponder := map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 3600000}}
	atOnce := map[string]any{"name": "ponder_at_once", "arguments": map[string]any{"ms": 3600000}}
	for name, test := range map[string]struct {
		revision, caps string
		after          time.Duration
		method         string         // "" means the standalone stream
		params         map[string]any // nil means the task's ID
		edits          []wiretest.Edit
	}{
		"during the grace":                {wiretest.ModernRevision, wiretest.TasksExtension, 100 * time.Millisecond, "tools/call", atOnce, nil},
		"during a plain call":             {wiretest.ModernRevision, `{}`, 100 * time.Millisecond, "tools/call", ponder, nil},
		"during tasks/result as JSON":     {wiretest.LegacyRevision, `{}`, 200 * time.Millisecond, "tasks/result", nil, []wiretest.Edit{wiretest.JSONOnly}},
		"before tasks/result is a stream": {wiretest.LegacyRevision, `{}`, 200 * time.Millisecond, "tasks/result", nil, nil},
		"in the middle of a stream":       {wiretest.LegacyRevision, `{}`, 700 * time.Millisecond, "tasks/result", nil, nil},
		"the standalone stream":           {revision: wiretest.LegacyRevision, caps: `{}`},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true})
			owner := wiretest.NewPeer(t, url, wiretest.ModernRevision, "a")
			id := owner.Create("run_pipeline", wiretest.PipelineArgs("endless"))
			wiretest.ClosePeer(t, owner)
			p := wiretest.NewPeerWith(t, url, test.revision, "a", test.caps)
			params := test.params
			if params == nil {
				params = map[string]any{"taskId": id}
			}
			p.Client.CloseIdleConnections()
			check := wiretest.Goroutines(t)
			wiretest.RunTogether(5, func(int) {
				if test.method == "" {
					p.OpenGet().Stop()
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), test.after)
				defer cancel()
				body, edits := p.Request(test.method, params, test.edits...)
				res, err := p.Client.Do(p.NewRequest(ctx, http.MethodPost, body, edits...))
				if err != nil {
					return
				}
				defer res.Body.Close()
				for message := range wiretest.Events(res.Body) {
					t.Errorf("an answer before the client left: %s", message)
				}
			})
			p.Client.CloseIdleConnections()
			check() // long before the handlers end
			if tasks := wiretest.ListTasks(t, p); len(tasks) != 1 || tasks[0]["status"] != "working" {
				t.Errorf("want only the task that its client knows: %v", tasks)
			}
			owner.Task("tasks/cancel", id).OK()
			wiretest.ClosePeer(t, p)
		})
	}
}

// TestClose checks that closing the server ends waiting requests and refuses new ones.
func TestClose(t *testing.T) {
	inBubble(t, func(t *testing.T) {
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

// readStore counts how often a record is read for a request.
type readStore struct {
	taskstore.Store

	reads atomic.Int64
}

// Get implements taskstore.Store.
func (s *readStore) Get(ctx context.Context, id string) (taskstore.Record, error) {
	if ctx.Value(http.ServerContextKey) != nil {
		s.reads.Add(1)
	}
	return s.Store.Get(ctx, id)
}

// TestPollReadsOnce checks that a poll reads its task once, because a store may be far away.
func TestPollReadsOnce(t *testing.T) {
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		store := &readStore{Store: taskstore.NewMemory()}
		url, _ := wiretest.Serve(t, taskserver.Options{Store: store})
		p := wiretest.NewPeer(t, url, revision, "")
		id := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		before := store.reads.Load()
		p.Task("tasks/get", id).OK()
		if reads := store.reads.Load() - before; reads != 1 {
			t.Errorf("a poll has read the task %d times", reads)
		}
	})
}
