package edgetest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// closer counts how often it is closed.
type closer struct {
	mu    sync.Mutex
	times int
	err   error
}

// Close implements io.Closer.
func (c *closer) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times++
	return c.err
}

// serveHeld starts a server whose SDK has the tool "held". A call closes begun, and waits for release.
func serveHeld(t *testing.T) (url string, tasks *taskserver.Server, server *http.Server, begun, release chan struct{}) {
	t.Helper()
	begun, release = make(chan struct{}), make(chan struct{})
	url, tasks = wiretest.ServeWith(t, wiretest.Setup{Start: func(s *httptest.Server) {
		server = s.Config
		s.Start()
	}, SDK: func(s *mcp.Server) {
		mcp.AddTool(s, &mcp.Tool{Name: "held"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			close(begun)
			<-release
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "late, but answered"}}}, nil, nil
		})
	}})
	return url, tasks, server, begun, release
}

// TestShutdown checks that Shutdown answers running requests and ends open streams without waiting
// for its context. The naive order, http.Server.Shutdown first, waits for the streams until the
// context ends.
func TestShutdown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		check := wiretest.Goroutines(t)
		url, tasks, server, begun, release := serveHeld(t)
		legacy, modern := wiretest.NewPeer(t, url, wiretest.LegacyRevision, ""), wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		stream := legacy.OpenGet()
		waits := legacy.Result(legacy.Create("run_pipeline", wiretest.PipelineArgs("endless")))
		follows := modern.SubscribeTasks(modern.Create("run_pipeline", wiretest.PipelineArgs("endless")))
		follows.NextTask()
		others := modern.Send("subscriptions/listen", map[string]any{"notifications": map[string]any{"toolsListChanged": true}})
		others.NextAcknowledgement()
		slow := make(chan *wiretest.Response, 1)
		go func() {
			slow <- legacy.Call("tools/call", map[string]any{"name": "held", "arguments": map[string]any{}})
		}()
		<-begun

		last := &closer{err: errors.New("the store complains")}
		ctx, cancel := wiretest.WithTimeout(t, wiretest.Patience)
		defer cancel()
		shut := make(chan error, 2)
		for range cap(shut) { // as after two signals
			go func() { shut <- gosdk.Shutdown(ctx, server, tasks, last) }()
		}
		if m := waits.Next(); m.Result == nil && m.Error == nil {
			t.Errorf("not answered: %s", m.Text)
		}
		for m := follows.Next(); m.Result == nil; m = follows.Next() {
			if m.Method != "notifications/tasks" {
				t.Fatalf("not answered: %s", m.Text)
			}
		}
		for _, f := range []*wiretest.Feed{stream, others} {
			for range f.Messages { // until the stream ends
			}
		}
		select {
		case err := <-shut:
			t.Errorf("it did not wait for the SDK's tool: %v", err)
		default:
		}
		close(release)
		if text := wiretest.ToolText((<-slow).Result); text != "late, but answered" {
			t.Errorf("the SDK's tool: %q", text)
		}
		for range cap(shut) {
			if err := <-shut; !errors.Is(err, last.err) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("shut down: %v", err)
			}
		}
		if err := gosdk.Shutdown(t.Context(), server, tasks, last); !errors.Is(err, last.err) || last.times != 1 {
			t.Errorf("once more: %v, closed %d times", err, last.times)
		}
		if _, err := http.Get(url); err == nil {
			t.Error("the server goes on")
		}
		legacy.Client.CloseIdleConnections()
		modern.Client.CloseIdleConnections()
		check()
	})
}

// TestShutdownEndsWithItsContext checks that Shutdown cuts off what has not ended when its context
// ends.
func TestShutdownEndsWithItsContext(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		url, tasks, server, begun, release := serveHeld(t)
		defer close(release)
		p := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		body, edits := p.Request("tools/call", map[string]any{"name": "held", "arguments": map[string]any{}})
		cut := make(chan error, 1)
		go func() {
			res, err := p.Client.Do(p.NewRequest(t.Context(), http.MethodPost, body, edits...))
			if err == nil {
				res.Body.Close()
			}
			cut <- err
		}()
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		context.AfterFunc(tasks.Closing(), cancel)
		if err := gosdk.Shutdown(ctx, server, tasks); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if err := <-cut; err == nil {
			t.Error("it is answered")
		}
	})
}

// TestShutdownOfAPipe checks that on pipes Shutdown answers waiting requests, and the SDK server's
// Run returns.
func TestShutdownOfAPipe(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		tasks, err := taskserver.New(taskserver.Options{Limits: wiretest.NoPollLimits}, wiretest.EndlessTools())
		if err != nil {
			t.Fatal(err)
		}
		p := wiretest.PipeTo(t, tasks, 100)
		p.Initialize()
		p.Say(`{"jsonrpc":"2.0","id":"r","method":"tasks/result","params":{"taskId":%q}}`, p.StartEndless())
		p.Ask(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`) // by now, the other Shutdown is under way
		ctx, cancel := wiretest.WithTimeout(t, wiretest.Patience)
		defer cancel()
		var page *http.Server // not served
		last := &closer{}
		if err := gosdk.Shutdown(ctx, nil, tasks, page, nil, last); err != nil || last.times != 1 {
			t.Errorf("%v, the last was closed %d times", err, last.times)
		}
		p.WantEnd()
		answered := false
		for line := range p.Lines {
			answered = answered || strings.Contains(line, `"id":"r"`)
		}
		if !answered {
			t.Error("the request that waits is not answered")
		}
	})
}
