package edgetest

import (
	"bytes"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestJSONReplies checks that JSON replies behave like streams.
func TestJSONReplies(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{HTTP: &mcp.StreamableHTTPOptions{JSONResponse: true}})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "")
			p.Caps = wiretest.WithQuestions
			if r := p.Call("tools/list", nil).OK(); r.Stream || bytes.Contains(r.Result, []byte("taskSupport")) != (revision == wiretest.LegacyRevision) {
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

// TestExpiry checks that a task disappears at the end of its ttl, also for a client that waits for
// it.
func TestExpiry(t *testing.T) {
	rules.Covers(t, "C-58", "C-85", "E-37", "E-79")
	checkExpiry(t, wiretest.LegacyRevision)
}

func checkExpiry(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: revision, Bearer: true})
		p, m := wiretest.NewPeer(t, url, revision, "a"), wiretest.NewPeer(t, url, wiretest.ModernRevision, "a")
		wiretest.RetryLonger(t, 3*time.Second, func(t *testing.T, ttl time.Duration) bool { return expires(t, p, m, ttl) })
	})
}

// expires is checkExpiry with a ttl; false is a test that was too slow to see the task.
func expires(t *testing.T, p, m *wiretest.Peer, ttl time.Duration) bool {
	t.Helper()
	began := time.Now()
	r := p.Call("tools/call", map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("endless"), "task": map[string]any{"ttl": ttl.Milliseconds()}}).OK()
	gone := time.After(ttl + 50*time.Millisecond) // sooner than any sweep has to be
	id := r.Text("task", "taskId")
	blocked := make(chan *wiretest.Response, 1)
	go func() { blocked <- p.Task("tasks/result", id) }()
	working := m.Task("tasks/get", id)
	seen := time.Since(began) < ttl
	if seen && working.OK().Text("status") != "working" {
		t.Errorf("%s", working.Body)
	}
	<-gone
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		p.Task(method, id).Want(200, wiretest.InvalidParams)
	}
	m.Task("tasks/get", id).Want(400, wiretest.InvalidParams)
	if tasks := p.Call("tasks/list", nil).OK().Get("tasks").([]any); len(tasks) != 0 {
		t.Errorf("%v", tasks)
	}
	(<-blocked).Want(200, wiretest.InvalidParams)
	return seen
}
