package gosdk_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// Sessions: 400 without the header, 404 for an unknown one, 403 for somebody
// else's; DELETE ends what waits in the session, and not the task.
func TestLegacySessions(t *testing.T) {
	rules.Covers(t, "C-35")
	checkSessions(t, legacyRevision)
}

func TestCandidateSessions(t *testing.T) {
	rules.Covers(t, "B-34")
	checkSessions(t, candidateRevision)
}

func checkSessions(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var g *gateway.Gateway
		url, _ := serveWith(t, setup{revision: revision, bearer: true, gateway: &g})
		a, b := newPeer(t, url, revision, "a"), newPeer(t, url, revision, "b")
		id := a.create("run_pipeline", pipelineArgs("endless"))
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
			c := newPeer(t, url, revision, "a")
			blocked := make(chan *response, 1)
			go func() { blocked <- c.task("tasks/result", id, accept) }()
			untilWaiting(t, g)
			res, err := c.client.Do(c.start(t.Context(), http.MethodDelete, ""))
			if err != nil || res.StatusCode != http.StatusNoContent {
				t.Fatalf("DELETE: %v %v", res, err)
			}
			res.Body.Close()
			select {
			case r := <-blocked:
				r.want(200, internalError)
			case <-time.After(patience):
				t.Error("DELETE has not ended tasks/result")
			}
			c.task("tasks/get", id).want(http.StatusNotFound, invalidRequest)
		}
		a.until(id, "working") // bound to the principal, not to the session
		a.task("tasks/cancel", id).ok()
	})
}

// untilWaiting waits until a request waits for the end of a task.
func untilWaiting(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	for end := time.Now().Add(patience); g.Counts().Waiting == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing waits")
		}
	}
}

// TestSessionTimeout: task traffic keeps a session alive, silence ends it.
func TestSessionTimeout(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		whileItLasts(t, 2*time.Second, keepsSession)
	})
}

// whileItLasts runs a test of what lasts for a while, again for a longer one where it
// returns false: the test was itself too slow to see it.
func whileItLasts(t *testing.T, while time.Duration, test func(t *testing.T, while time.Duration) bool) {
	t.Helper()
	for !test(t, while) {
		if while *= 2; while > patience {
			t.Fatal("the machine is too busy")
		}
	}
}

// keepsSession is TestSessionTimeout with a timeout; false is a client that was
// itself too slow for it.
func keepsSession(t *testing.T, timeout time.Duration) bool {
	t.Helper()
	var g *gateway.Gateway
	url, _ := serveWith(t, setup{gateway: &g, http: &mcp.StreamableHTTPOptions{SessionTimeout: timeout}})
	p := unopened(t, url, legacyRevision, "", `{}`)
	last := time.Now()
	// alive says that the session still is: it was silent for no longer than from
	// the request before to this one's answer.
	alive := func(r *response) bool {
		if r.status == http.StatusNotFound && time.Since(last) >= timeout {
			return false
		}
		r.ok()
		return true
	}
	sent := time.Now()
	if n := p.greet(); n.status != http.StatusAccepted {
		if time.Since(last) < timeout {
			t.Fatalf("%d %s", n.status, n.body)
		}
		return false
	}
	last = sent
	sent = time.Now()
	r := p.call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{}})
	if !alive(r) {
		return false
	}
	id := r.text("task", "taskId")
	last = sent
	for range 6 {
		time.Sleep(timeout * 2 / 7)
		sent := time.Now()
		if !alive(p.task("tasks/get", id)) {
			return false
		}
		last = sent
	}
	sent = time.Now()
	r = p.call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": timeout.Milliseconds() * 12 / 7}, "task": map[string]any{}})
	if !alive(r) {
		return false
	}
	id, last = r.text("task", "taskId"), sent
	if !alive(p.task("tasks/result", id)) { // waits for longer than the timeout
		return false
	}
	for end := time.Now().Add(patience); g.Counts().Sessions > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("silence does not end it")
		}
	}
	p.task("tasks/get", id).want(http.StatusNotFound, invalidRequest)
	if r := p.call("tools/list", nil); r.status != http.StatusNotFound {
		t.Errorf("the SDK still has it: %d %s", r.status, r.body)
	}
	return true
}

// A client that cancels its request for the result stops waiting; the task
// goes on (C-42, C-74).
func TestLegacyCancelledResult(t *testing.T) {
	rules.Covers(t, "C-42", "C-74")
	checkCancelledResult(t, legacyRevision)
}

func TestCandidateCancelledResult(t *testing.T) {
	rules.Covers(t, "B-69")
	checkCancelledResult(t, candidateRevision)
}

func checkCancelledResult(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var g *gateway.Gateway
		url, _ := serveWith(t, setup{revision: revision, gateway: &g})
		p, q := newPeer(t, url, revision, ""), newPeer(t, url, revision, "")
		id := p.create("run_pipeline", pipelineArgs("endless"))
		for _, requestID := range []string{`7`, `"seven"`, `"7"`} {
			for _, accept := range []edit{jsonOnly, func(*http.Request) {}} {
				blocked := make(chan *response, 1)
				go func() {
					blocked <- p.post(`{"jsonrpc":"2.0","id":`+requestID+`,"method":"tasks/result","params":{"taskId":"`+id+`"}}`, accept)
				}()
				untilWaiting(t, g)
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
				case <-time.After(patience):
					t.Errorf("%s: still waiting", requestID)
				}
			}
		}
		p.until(id, "working")
		p.task("tasks/cancel", id).ok()
	})
}

// Older revisions know no tasks.
func TestOlderRevisions(t *testing.T) {
	rules.Covers(t, "C-06", "C-07", "C-21")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
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
	})
}

// A DELETE that is refused leaves the session as it was.
func TestRefusedDelete(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
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
	})
}
