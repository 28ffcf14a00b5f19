package edgetest

import (
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestLegacySessions checks the status of requests without a session: 400 without the header, 404
// for an unknown session, 403 for another caller's session. A DELETE ends the waiting requests of
// its session, but not the task.
func TestLegacySessions(t *testing.T) {
	rules.Covers(t, "C-35")
	checkSessions(t, wiretest.LegacyRevision)
}

func checkSessions(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var g *gateway.Gateway
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: revision, Bearer: true, Gateway: &g})
		a, b := wiretest.NewPeer(t, url, revision, "a"), wiretest.NewPeer(t, url, revision, "b")
		id := a.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel", "tasks/list", "tasks/nothing"} {
			a.Task(method, id, wiretest.WithHeader("Mcp-Session-Id", "")).Want(http.StatusBadRequest, wiretest.InvalidRequest)
			a.Task(method, id, wiretest.WithHeader("Mcp-Session-Id", "made-up")).Want(http.StatusNotFound, wiretest.InvalidRequest)
			b.Task(method, id, wiretest.WithHeader("Mcp-Session-Id", a.Session)).Want(http.StatusForbidden, wiretest.InvalidRequest)
			a.Task(method, id, wiretest.WithHeader("MCP-Protocol-Version", "2024-11-05")).Want(http.StatusBadRequest, wiretest.InvalidRequest)
		}
		for _, tool := range []string{"run_pipeline", "ponder", "lint_file", "sdk_tool"} {
			params := map[string]any{"name": tool, "arguments": wiretest.PipelineArgs("main"), "task": map[string]any{}}
			if r := a.Call("tools/call", params, wiretest.WithHeader("Mcp-Session-Id", "gone")); r.Status != http.StatusNotFound {
				t.Errorf("%s in a session that is gone: %d %s", tool, r.Status, r.Body)
			}
			if r := b.Call("tools/call", params, wiretest.WithHeader("Mcp-Session-Id", a.Session)); r.Status != http.StatusForbidden {
				t.Errorf("%s in another's session: %d %s", tool, r.Status, r.Body)
			}
			if r := a.Call("tools/call", params, wiretest.WithHeader("Mcp-Session-Id", "")); r.Get("task") != nil {
				t.Errorf("%s without a session: %d %s", tool, r.Status, r.Body)
			}
		}
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":1,"result":{}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		} {
			if r := b.Post(body, wiretest.WithHeader("Mcp-Session-Id", a.Session)); r.Status != http.StatusForbidden {
				t.Errorf("%s in another's session: %d %s", body, r.Status, r.Body)
			}
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			res, err := b.Client.Do(b.NewRequest(t.Context(), method, "", wiretest.WithHeader("Mcp-Session-Id", a.Session)))
			if err != nil || res.StatusCode != http.StatusForbidden {
				t.Errorf("%s of another's session: %v %v", method, res.StatusCode, err)
			}
			res.Body.Close()
		}
		for _, accept := range []wiretest.Edit{wiretest.JSONOnly, func(*http.Request) {}} {
			c := wiretest.NewPeer(t, url, revision, "a")
			blocked := make(chan *wiretest.Response, 1)
			go func() { blocked <- c.Task("tasks/result", id, accept) }()
			wiretest.AwaitWaiter(t, g)
			res, err := c.Client.Do(c.NewRequest(t.Context(), http.MethodDelete, ""))
			if err != nil || res.StatusCode != http.StatusNoContent {
				t.Fatalf("DELETE: %v %v", res, err)
			}
			res.Body.Close()
			select {
			case r := <-blocked:
				r.Want(200, wiretest.InternalError)
			case <-time.After(wiretest.Patience):
				t.Error("DELETE has not ended tasks/result")
			}
			c.Task("tasks/get", id).Want(http.StatusNotFound, wiretest.InvalidRequest)
		}
		a.Until(id, "working") // bound to the principal, not to the session
		a.Task("tasks/cancel", id).OK()
	})
}

// TestSessionTimeout checks that task traffic keeps a session alive, and that an idle session ends.
func TestSessionTimeout(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		wiretest.RetryLonger(t, 2*time.Second, keepsSession)
	})
}

// keepsSession is TestSessionTimeout with a timeout; false is a client that was
// itself too slow for it.
func keepsSession(t *testing.T, timeout time.Duration) bool {
	t.Helper()
	var g *gateway.Gateway
	url, _ := wiretest.ServeWith(t, wiretest.Setup{Gateway: &g, HTTP: &mcp.StreamableHTTPOptions{SessionTimeout: timeout}})
	p := wiretest.NewUnopenedPeer(t, url, wiretest.LegacyRevision, "", `{}`)
	last := time.Now()
	// alive says that the session still is: it was silent for no longer than from
	// the request before to this one's answer.
	alive := func(r *wiretest.Response) bool {
		if r.Status == http.StatusNotFound && time.Since(last) >= timeout {
			return false
		}
		r.OK()
		return true
	}
	sent := time.Now()
	if n := p.SendInitialize(); n.Status != http.StatusAccepted {
		if time.Since(last) < timeout {
			t.Fatalf("%d %s", n.Status, n.Body)
		}
		return false
	}
	last = sent
	sent = time.Now()
	r := p.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{}})
	if !alive(r) {
		return false
	}
	id := r.Text("task", "taskId")
	last = sent
	for range 6 {
		time.Sleep(timeout * 2 / 7)
		sent := time.Now()
		if !alive(p.Task("tasks/get", id)) {
			return false
		}
		last = sent
	}
	sent = time.Now()
	r = p.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": timeout.Milliseconds() * 12 / 7}, "task": map[string]any{}})
	if !alive(r) {
		return false
	}
	id, last = r.Text("task", "taskId"), sent
	if !alive(p.Task("tasks/result", id)) { // waits for longer than the timeout
		return false
	}
	for end := time.Now().Add(wiretest.Patience); g.Counts().Sessions > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("silence does not end it")
		}
	}
	p.Task("tasks/get", id).Want(http.StatusNotFound, wiretest.InvalidRequest)
	if r := p.Call("tools/list", nil); r.Status != http.StatusNotFound {
		t.Errorf("the SDK still has it: %d %s", r.Status, r.Body)
	}
	return true
}

// TestLegacyCancelledResult checks that a client which cancels its tasks/result stops waiting while
// the task continues (C-42, C-74).
func TestLegacyCancelledResult(t *testing.T) {
	rules.Covers(t, "C-42", "C-74")
	checkCancelledResult(t, wiretest.LegacyRevision)
}

func checkCancelledResult(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var g *gateway.Gateway
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: revision, Gateway: &g})
		p, q := wiretest.NewPeer(t, url, revision, ""), wiretest.NewPeer(t, url, revision, "")
		id := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		for _, requestID := range []string{`7`, `"seven"`, `"7"`} {
			for _, accept := range []wiretest.Edit{wiretest.JSONOnly, func(*http.Request) {}} {
				blocked := make(chan *wiretest.Response, 1)
				go func() {
					blocked <- p.Post(`{"jsonrpc":"2.0","id":`+requestID+`,"method":"tasks/result","params":{"taskId":"`+id+`"}}`, accept)
				}()
				wiretest.AwaitWaiter(t, g)
				for _, other := range []string{`8`, `null`, `{}`, `[7]`} {
					p.Post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + other + `}}`)
				}
				cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + requestID + `}}`
				q.Post(cancelled) // another session's IDs are its own
				select {
				case r := <-blocked:
					t.Errorf("%s: ended early: %s", requestID, r.Body)
				case <-time.After(50 * time.Millisecond):
				}
				if r := p.Post(cancelled); r.Status != http.StatusAccepted {
					t.Errorf("%d %s", r.Status, r.Body)
				}
				select {
				case r := <-blocked:
					r.Want(200, wiretest.InternalError)
				case <-time.After(wiretest.Patience):
					t.Errorf("%s: still waiting", requestID)
				}
			}
		}
		p.Until(id, "working")
		p.Task("tasks/cancel", id).OK()
	})
}

// TestOlderRevisions checks that older revisions have no tasks.
func TestOlderRevisions(t *testing.T) {
	rules.Covers(t, "C-06", "C-07", "C-21")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		for _, revision := range []string{"2025-06-18", "2025-03-26"} {
			p := wiretest.NewPeer(t, url, revision, "")
			staging := map[string]any{"service": "api", "environment": "staging"}
			for _, task := range []any{nil, map[string]any{}, 5} {
				for tool, args := range map[string]map[string]any{"deploy_service": staging, "lint_file": {"path": "p"}, "sdk_tool": {}} {
					params := map[string]any{"name": tool, "arguments": args}
					if task != nil {
						params["task"] = task
					}
					if r := p.Call("tools/call", params).OK(); r.Get("content") == nil || r.Get("task") != nil { // C-21
						t.Errorf("%s: %s", revision, r.Body)
					}
				}
			}
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"} {
				p.Task(method, "x").Want(200, wiretest.MethodNotFound)
			}
		}
		p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "")
		p.Task("tasks/update", "x").Want(200, wiretest.MethodNotFound)
		p.Task("tasks/delete", "x").Want(200, wiretest.MethodNotFound)
	})
}

// TestRefusedDelete checks that a refused DELETE does not change the session.
func TestRefusedDelete(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true})
		p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a")
		id := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		end := func(edits ...wiretest.Edit) int {
			t.Helper()
			res, err := p.Client.Do(p.NewRequest(t.Context(), http.MethodDelete, "", edits...))
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			return res.StatusCode
		}
		if status := end(wiretest.WithHeader("MCP-Protocol-Version", "2025-06-18")); status != http.StatusBadRequest {
			t.Errorf("DELETE of another version: %d", status)
		}
		p.Task("tasks/cancel", id).OK()
		if status := end(); status >= 300 {
			t.Errorf("DELETE: %d", status)
		}
		if r := p.Task("tasks/get", id); r.Status != http.StatusNotFound {
			t.Errorf("after DELETE: %d", r.Status)
		}
	})
}
