package edgetest

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
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
	inBubble(t, func(t *testing.T) {
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
				t.Errorf("%s in another caller's session: %d %s", tool, r.Status, r.Body)
			}
			if r := a.Call("tools/call", params, wiretest.WithHeader("Mcp-Session-Id", "")); r.Get("task") != nil {
				t.Errorf("%s without a session: %d %s", tool, r.Status, r.Body)
			}
		}
		for _, body := range []string{
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
			`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
			`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`,
			`{"jsonrpc":"2.0","id":1,"method":"no/such"}`,
			`{"jsonrpc":"2.0","id":1,"result":{}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		} {
			if r := b.Post(body, wiretest.WithHeader("Mcp-Session-Id", a.Session)); r.Status != http.StatusForbidden {
				t.Errorf("%s in another caller's session: %d %s", body, r.Status, r.Body)
			}
		}
		if r := b.Post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`,
			wiretest.WithHeader("Mcp-Session-Id", a.Session)); r.Error != nil || r.Header.Get("Mcp-Session-Id") == a.Session {
			t.Errorf("initialize: %d %s", r.Status, r.Body)
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			for _, last := range []string{"", "_0", "x_1"} {
				if status := b.Status(method, "", wiretest.WithHeader("Mcp-Session-Id", a.Session), wiretest.WithHeader("Last-Event-ID", last)); status != http.StatusForbidden {
					t.Errorf("%s of another caller's session: %d", method, status)
				}
			}
		}
		for _, accept := range []wiretest.Edit{wiretest.JSONOnly, func(*http.Request) {}} {
			c := wiretest.NewPeer(t, url, revision, "a")
			blocked := make(chan *wiretest.Response, 1)
			go func() { blocked <- c.Task("tasks/result", id, accept) }()
			wiretest.AwaitWaiter(t, g)
			if status := c.Status(http.MethodDelete, ""); status != http.StatusNoContent {
				t.Fatalf("DELETE: %d", status)
			}
			(<-blocked).Want(200, wiretest.InternalError)
			c.Task("tasks/get", id).Want(http.StatusNotFound, wiretest.InvalidRequest)
		}
		a.Until(id, "working") // bound to the principal, not to the session
		a.Task("tasks/cancel", id).OK()
	})
}

// TestSessionTimeout checks that task traffic keeps a session alive, and that an idle session ends.
func TestSessionTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const timeout = 2 * time.Second
		var g *gateway.Gateway
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Gateway: &g, HTTP: &mcp.StreamableHTTPOptions{SessionTimeout: timeout}})
		p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "")
		id := p.Create("ponder", nil)
		for range 6 {
			time.Sleep(timeout - time.Millisecond)
			p.Task("tasks/get", id).OK()
		}
		time.Sleep(timeout - time.Millisecond)
		id = p.Create("ponder", map[string]any{"ms": 2 * timeout.Milliseconds()})
		p.Task("tasks/result", id).OK() // waits for longer than the timeout
		time.Sleep(timeout)
		synctest.Wait()
		if n := g.Counts().Sessions; n > 0 {
			t.Errorf("%d sessions survive silence", n)
		}
		p.Task("tasks/get", id).Want(http.StatusNotFound, wiretest.InvalidRequest)
		if r := p.Call("tools/list", nil); r.Status != http.StatusNotFound {
			t.Errorf("the SDK still has the session: %d %s", r.Status, r.Body)
		}
	})
}

// TestLegacyCancelledResult checks that a client which cancels its tasks/result stops waiting while
// the task continues (C-42, C-74).
func TestLegacyCancelledResult(t *testing.T) {
	rules.Covers(t, "C-42", "C-74")
	checkCancelledResult(t, wiretest.LegacyRevision)
}

func checkCancelledResult(t *testing.T, revision string) {
	t.Helper()
	inBubble(t, func(t *testing.T) {
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
				q.Post(cancelled) // IDs of another session are different IDs
				select {
				case r := <-blocked:
					t.Errorf("%s: ended early: %s", requestID, r.Body)
				case <-time.After(50 * time.Millisecond):
				}
				if r := p.Post(cancelled); r.Status != http.StatusAccepted {
					t.Errorf("%d %s", r.Status, r.Body)
				}
				(<-blocked).Want(200, wiretest.InternalError)
			}
		}
		p.Until(id, "working")
		p.Task("tasks/cancel", id).OK()
	})
}

// TestExpiry checks that a task disappears at the end of its ttl, also for a client that waits for
// it, and that its owner is told so: at once, and when its record is deleted.
func TestExpiry(t *testing.T) {
	rules.Covers(t, "C-58", "C-85", "E-37", "E-79")
	checkExpiry(t, wiretest.LegacyRevision)
}

func checkExpiry(t *testing.T, revision string) {
	t.Helper()
	for _, user := range []string{"a", ""} {
		bubble.Run(t, "user "+user, func(t *testing.T) {
			var driven wiretest.Driven
			url, tasks := wiretest.ServeWith(t, wiretest.Setup{Revision: revision, Bearer: user != "", Tools: []mcptask.Tools{driven.Tools()}})
			p, m := wiretest.NewPeer(t, url, revision, user), wiretest.NewPeer(t, url, wiretest.ModernRevision, user)
			id := p.Create("short_driven", nil)
			blocked := make(chan *wiretest.Response, 1)
			go func() { blocked <- p.Task("tasks/result", id) }()
			if working := m.Task("tasks/get", id).OK(); working.Text("status") != "working" {
				t.Errorf("%s", working.Body)
			}
			gone := func(r *wiretest.Response, status int) {
				t.Helper()
				if r.Want(status, wiretest.InvalidParams); r.Error == nil || !strings.Contains(string(r.Error.Data), `"expired"`) || !strings.Contains(r.Error.Message, "expired") {
					t.Errorf("%s", r.Body)
				}
			}
			time.Sleep(wiretest.ShortTTL + 50*time.Millisecond) // sooner than a sweep must come
			gone(<-blocked, http.StatusOK)
			for range 2 {
				for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
					gone(p.Task(method, id), http.StatusOK)
				}
				for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
					gone(m.Call(method, map[string]any{"taskId": id, "inputResponses": map[string]any{}}), http.StatusBadRequest)
				}
				time.Sleep(time.Minute) // for the sweep
				if _, err := tasks.Backend().Peek(id); !errors.Is(err, taskstore.ErrRecordExpired) {
					t.Errorf("not deleted: %v", err)
				}
			}
			if user == "" {
				return
			}
			if tasks := p.Call("tasks/list", nil).OK().Get("tasks").([]any); len(tasks) != 0 {
				t.Errorf("%v", tasks)
			}
			if r := p.NewSibling(revision, "b").Task("tasks/get", id).Want(http.StatusOK, wiretest.InvalidParams); strings.Contains(string(r.Body), "expired") {
				t.Errorf("a stranger reads %s", r.Body)
			}
		})
	}
}

// TestOlderRevisions checks that older revisions have no tasks.
func TestOlderRevisions(t *testing.T) {
	rules.Covers(t, "C-06", "C-07", "C-21")
	inBubble(t, func(t *testing.T) {
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
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true})
		p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a")
		id := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		if status := p.Status(http.MethodDelete, "", wiretest.WithHeader("MCP-Protocol-Version", "2025-06-18")); status != http.StatusBadRequest {
			t.Errorf("DELETE of another version: %d", status)
		}
		p.Task("tasks/cancel", id).OK()
		if status := p.Status(http.MethodDelete, ""); status >= 300 {
			t.Errorf("DELETE: %d", status)
		}
		if r := p.Task("tasks/get", id); r.Status != http.StatusNotFound {
			t.Errorf("after DELETE: %d", r.Status)
		}
	})
}
