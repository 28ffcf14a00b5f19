package gosdk_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Sessions: 400 without the header, 404 for an unknown one, 403 for somebody
// else's; DELETE ends what waits in the session, and not the task.
func TestLegacySessions(t *testing.T) {
	t.Parallel()
	url, _ := serveWith(t, setup{bearer: true})
	a, b := newPeer(t, url, legacyRevision, "a"), newPeer(t, url, legacyRevision, "b")
	id := a.create("ponder", map[string]any{"ms": 3000})
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel", "tasks/list", "tasks/nothing"} {
		a.task(method, id, withHeader("Mcp-Session-Id", "")).want(http.StatusBadRequest, invalidRequest)
		a.task(method, id, withHeader("Mcp-Session-Id", "made-up")).want(http.StatusNotFound, invalidRequest)
		b.task(method, id, withHeader("Mcp-Session-Id", a.session)).want(http.StatusForbidden, invalidRequest)
		a.task(method, id, withHeader("MCP-Protocol-Version", "2024-11-05")).want(http.StatusBadRequest, invalidRequest)
	}
	for _, tool := range []string{"run_pipeline", "ponder", "lint_file", "sdk_tool"} {
		params := map[string]any{"name": tool, "arguments": pipelineArgs("main"), "task": map[string]any{}}
		if r := a.call("tools/call", params, withHeader("Mcp-Session-Id", "gone")); r.status != http.StatusNotFound {
			t.Errorf("%s in a session that is gone: %d %s", tool, r.status, r.body)
		}
		if r := b.call("tools/call", params, withHeader("Mcp-Session-Id", a.session)); r.status != http.StatusForbidden {
			t.Errorf("%s in another's session: %d %s", tool, r.status, r.body)
		}
		if r := a.call("tools/call", params, withHeader("Mcp-Session-Id", "")); r.get("task") != nil {
			t.Errorf("%s without a session: %d %s", tool, r.status, r.body)
		}
	}
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
	} {
		if r := b.post(body, withHeader("Mcp-Session-Id", a.session)); r.status != http.StatusForbidden {
			t.Errorf("%s in another's session: %d %s", body, r.status, r.body)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		res, err := b.client.Do(b.start(t.Context(), method, "", withHeader("Mcp-Session-Id", a.session)))
		if err != nil || res.StatusCode != http.StatusForbidden {
			t.Errorf("%s of another's session: %v %v", method, res.StatusCode, err)
		}
		res.Body.Close()
	}
	for _, accept := range []edit{jsonOnly, func(*http.Request) {}} {
		c := newPeer(t, url, legacyRevision, "a")
		blocked := make(chan *response, 1)
		go func() { blocked <- c.task("tasks/result", id, accept) }()
		time.Sleep(600 * time.Millisecond) // a stream has begun by then
		res, err := c.client.Do(c.start(t.Context(), http.MethodDelete, ""))
		if err != nil || res.StatusCode != http.StatusNoContent {
			t.Fatalf("DELETE: %v %v", res, err)
		}
		res.Body.Close()
		select {
		case r := <-blocked:
			r.want(200, internalError)
		case <-time.After(time.Second):
			t.Error("DELETE has not ended tasks/result")
		}
		c.task("tasks/get", id).want(http.StatusNotFound, invalidRequest)
	}
	a.until(id, "completed") // bound to the principal, not to the session
}

// TestSessionTimeout: task traffic keeps a session alive, silence ends it.
func TestSessionTimeout(t *testing.T) {
	t.Parallel()
	url, _ := serveWith(t, setup{http: &mcp.StreamableHTTPOptions{SessionTimeout: 700 * time.Millisecond}})
	p := newPeer(t, url, legacyRevision, "")
	id := p.create("ponder", map[string]any{"ms": 100})
	for range 6 {
		time.Sleep(200 * time.Millisecond)
		p.task("tasks/get", id).ok()
	}
	id = p.create("ponder", map[string]any{"ms": 1200})
	p.task("tasks/result", id).ok() // waits for longer than the timeout
	time.Sleep(1200 * time.Millisecond)
	p.task("tasks/get", id).want(http.StatusNotFound, invalidRequest)
	if r := p.call("tools/list", nil); r.status != http.StatusNotFound {
		t.Errorf("the SDK still has it: %d %s", r.status, r.body)
	}
}

// A client that cancels its request for the result stops waiting; the task
// goes on (C-42, C-74).
func TestLegacyCancelledResult(t *testing.T) {
	t.Parallel()
	url, _ := serveWith(t, setup{})
	p, q := newPeer(t, url, legacyRevision, ""), newPeer(t, url, legacyRevision, "")
	id := p.create("run_pipeline", pipelineArgs("endless"))
	for _, requestID := range []string{`7`, `"seven"`, `"7"`} {
		for _, accept := range []edit{jsonOnly, func(*http.Request) {}} {
			blocked := make(chan *response, 1)
			go func() {
				blocked <- p.post(`{"jsonrpc":"2.0","id":`+requestID+`,"method":"tasks/result","params":{"taskId":"`+id+`"}}`, accept)
			}()
			time.Sleep(100 * time.Millisecond)
			for _, other := range []string{`8`, `null`, `{}`, `[7]`} {
				p.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + other + `}}`)
			}
			cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + requestID + `}}`
			q.post(cancelled) // another session's IDs are its own
			select {
			case r := <-blocked:
				t.Errorf("%s: ended early: %s", requestID, r.body)
			case <-time.After(50 * time.Millisecond):
			}
			if r := p.post(cancelled); r.status != http.StatusAccepted {
				t.Errorf("%d %s", r.status, r.body)
			}
			select {
			case r := <-blocked:
				r.want(200, internalError)
			case <-time.After(time.Second):
				t.Errorf("%s: still waiting", requestID)
			}
		}
	}
	p.until(id, "working")
	p.task("tasks/cancel", id).ok()
}

// Older revisions know no tasks.
func TestOlderRevisions(t *testing.T) {
	t.Parallel()
	url, _ := serveWith(t, setup{})
	for _, revision := range []string{"2025-06-18", "2025-03-26"} {
		p := newPeer(t, url, revision, "")
		staging := map[string]any{"service": "api", "environment": "staging"}
		for _, task := range []any{nil, map[string]any{}, 5} {
			for tool, args := range map[string]map[string]any{"deploy_service": staging, "lint_file": {"path": "p"}, "sdk_tool": {}} {
				params := map[string]any{"name": tool, "arguments": args}
				if task != nil {
					params["task"] = task
				}
				if r := p.call("tools/call", params).ok(); r.get("content") == nil || r.get("task") != nil { // C-21
					t.Errorf("%s: %s", revision, r.body)
				}
			}
		}
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"} {
			p.task(method, "x").want(200, methodNotFound)
		}
	}
	p := newPeer(t, url, legacyRevision, "")
	p.task("tasks/update", "x").want(200, methodNotFound)
	p.task("tasks/delete", "x").want(200, methodNotFound)
}

// A DELETE that is refused leaves the session as it was.
func TestRefusedDelete(t *testing.T) {
	t.Parallel()
	url, _ := serveWith(t, setup{bearer: true})
	p := newPeer(t, url, legacyRevision, "a")
	id := p.create("run_pipeline", pipelineArgs("endless"))
	end := func(edits ...edit) int {
		t.Helper()
		res, err := p.client.Do(p.start(t.Context(), http.MethodDelete, "", edits...))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	if status := end(withHeader("MCP-Protocol-Version", "2025-06-18")); status != http.StatusBadRequest {
		t.Errorf("DELETE of another version: %d", status)
	}
	p.task("tasks/cancel", id).ok()
	if status := end(); status >= 300 {
		t.Errorf("DELETE: %d", status)
	}
	if r := p.task("tasks/get", id); r.status != http.StatusNotFound {
		t.Errorf("after DELETE: %d", r.status)
	}
}
