package gosdk_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// With JSON replies instead of streams everything is the same.
func TestJSONReplies(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{http: &mcp.StreamableHTTPOptions{JSONResponse: true}})
		for _, revision := range []string{legacyRevision, modernRevision} {
			p := newPeer(t, url, revision, "")
			p.caps = withQuestions
			if r := p.call("tools/list", nil).ok(); r.stream || bytes.Contains(r.Result, []byte("taskSupport")) != (revision == legacyRevision) {
				t.Errorf("%s: stream %v: %s", revision, r.stream, r.body)
			}
			id := p.create("ponder", map[string]any{"ms": 100})
			p.until(id, "completed")
			p.call("tools/call", map[string]any{"name": "lint_file", "arguments": map[string]any{"path": "p"}}).ok()
			if revision == legacyRevision {
				p.task("tasks/result", id).ok()
				p.call("tools/call", map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("main")}).want(200, methodNotFound)
				continue
			}
			p.caps = `{}`
			p.call("tools/call", map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("main")}).want(400, missingCapability)
		}
	})
}

// A task at the end of its ttl is gone, also for who waits for it.
func TestExpiry(t *testing.T) {
	rules.Covers(t, "C-58", "C-85", "E-37", "E-79")
	checkExpiry(t, legacyRevision)
}

func TestCandidateExpiry(t *testing.T) {
	rules.Covers(t, "B-53", "B-81")
	checkExpiry(t, candidateRevision)
}

func checkExpiry(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: revision, bearer: true})
		p, m := newPeer(t, url, revision, "a"), newPeer(t, url, modernRevision, "a")
		whileItLasts(t, 3*time.Second, func(t *testing.T, ttl time.Duration) bool { return expires(t, p, m, ttl) })
	})
}

// expires is checkExpiry with a ttl; false is a test that was too slow to see the task.
func expires(t *testing.T, p, m *peer, ttl time.Duration) bool {
	t.Helper()
	began := time.Now()
	r := p.call("tools/call", map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("endless"), "task": map[string]any{"ttl": ttl.Milliseconds()}}).ok()
	gone := time.After(ttl + 50*time.Millisecond) // sooner than any sweep has to be
	id := r.text("task", "taskId")
	blocked := make(chan *response, 1)
	go func() { blocked <- p.task("tasks/result", id) }()
	working := m.task("tasks/get", id)
	seen := time.Since(began) < ttl
	if seen && working.ok().text("status") != "working" {
		t.Errorf("%s", working.body)
	}
	<-gone
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		p.task(method, id).want(200, invalidParams)
	}
	m.task("tasks/get", id).want(400, invalidParams)
	if tasks := p.call("tasks/list", nil).ok().get("tasks").([]any); len(tasks) != 0 {
		t.Errorf("%v", tasks)
	}
	(<-blocked).want(200, invalidParams)
	return seen
}
