package gosdk_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// Somebody else's task is indistinguishable from none.
func TestIdentity(t *testing.T) {
	rules.Covers(t, "C-89", "C-93", "C-94", "B-85", "B-88", "B-89", "E-87")
	t.Parallel()
	url, _ := serveWith(t, setup{revision: candidateRevision, bearer: true})
	id := regexp.MustCompile(`"id":\d+`)
	same := func(t *testing.T, strange, unknown *response) {
		t.Helper()
		if strange.status != unknown.status || id.ReplaceAllString(string(strange.body), "") != id.ReplaceAllString(string(unknown.body), "") {
			t.Errorf("a stranger's task: %d %s\nno task: %d %s", strange.status, strange.body, unknown.status, unknown.body)
		}
		for name := range strange.header {
			if name != "Date" && name != "Content-Length" /* of the ID */ && strange.header.Get(name) != unknown.header.Get(name) {
				t.Errorf("%s: %q and %q", name, strange.header.Get(name), unknown.header.Get(name))
			}
		}
	}
	for _, revision := range allRevisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			a, b := newPeer(t, url, revision, "a"), newPeer(t, url, revision, "b")
			a.caps, b.caps = withQuestions, withQuestions
			methods := []string{"tasks/get", "tasks/result", "tasks/cancel"}
			ids := []string{a.create("ponder", map[string]any{"ms": 1000}), a.create("ponder", nil)}
			if revision == modernRevision {
				methods = []string{"tasks/get", "tasks/update", "tasks/cancel"}
				asking := a.create("deploy_service", map[string]any{"service": "api", "environment": "production"})
				a.until(asking, "input_required")
				ids = append(ids, asking)
			}
			a.until(ids[1], "completed")
			for _, method := range methods {
				unknown := b.call(method, map[string]any{"taskId": "NOSUCHTASKNOSUCHTASKNOSUCH", "inputResponses": map[string]any{}})
				for _, id := range ids {
					for _, responses := range []string{`{}`, `{"ship":{"action":"accept","content":{"approve":"no boolean"}}}`, `{"ship":{"action":"accept","content":{"approve":true}}}`} {
						same(t, b.call(method, map[string]any{"taskId": id, "inputResponses": json.RawMessage(responses)}), unknown)
					}
				}
			}
			a.until(ids[0], "working", "completed") // b has cancelled nothing
			if revision == modernRevision {
				a.until(ids[2], "input_required") // and answered nothing
				return
			}
			if r := b.call("tasks/list", nil).ok(); len(r.get("tasks").([]any)) != 0 {
				t.Errorf("%s", r.body)
			}
		})
	}
	// A token without a user is nobody: everybody with one would be the same.
	p := &peer{t: t, url: url, revision: modernRevision, token: "nobody", caps: tasksExtension, client: &http.Client{Transport: wiretest.OneOff}}
	for _, method := range []string{"tasks/get", "tools/call", "tools/list", "server/discover", "initialize"} {
		p.call(method, map[string]any{"taskId": "x"}).want(http.StatusForbidden, invalidRequest)
	}
	p.token = ""
	if r := p.call("tools/list", nil); r.status != http.StatusUnauthorized {
		t.Errorf("no token: %d %s", r.status, r.body)
	}
}

// Without authentication the ID is all that one needs, in whatever session.
func TestAnonymousID(t *testing.T) {
	rules.Covers(t, "E-85")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		modern, legacy := newPeer(t, url, modernRevision, ""), newPeer(t, url, legacyRevision, "")
		id := modern.create("run_pipeline", pipelineArgs("endless"))
		other := newPeer(t, url, modernRevision, "")
		other.until(id, "working")
		legacy.until(id, "working")
		other.task("tasks/cancel", id).ok()
		modern.until(id, "cancelled")
	})
}

// An idempotency key is the principal's own, and belongs to its arguments.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{bearer: true})
		open, _ := serveWith(t, setup{})
		for _, revision := range []string{legacyRevision, modernRevision} {
			a, b := newPeer(t, url, revision, "a"), newPeer(t, url, revision, "b")
			params := func(key any, ms int) map[string]any {
				return map[string]any{"name": "ponder", "arguments": map[string]any{"ms": ms}, "task": map[string]any{},
					"_meta": map[string]any{"io.github.mcptaskgen/idempotency-key": key}}
			}
			path, status := []string{"task", "taskId"}, http.StatusOK
			if revision == modernRevision {
				path, status = []string{"taskId"}, http.StatusBadRequest
			}
			const long = 3_600_000 // the task runs until the server is closed
			key := "key of " + revision
			id := a.call("tools/call", params(key, long)).ok().text(path...)
			if again := a.call("tools/call", params(key, long)).ok().text(path...); id == "" || again != id {
				t.Errorf("%s: %q then %q", revision, id, again)
			}
			if other := b.call("tools/call", params(key, long)).ok().text(path...); other == "" || other == id {
				t.Errorf("%s: b has %q", revision, other)
			}
			for _, bad := range []any{"", 5, string(make([]byte, 257))} {
				r := a.call("tools/call", params(bad, long))
				if r.Error == nil || r.Error.Code != invalidParams || r.status != status {
					t.Errorf("%s: key %.10q: %d %.300s", revision, bad, r.status, r.body)
				}
			}
			// What the server refuses after the SDK has begun to answer.
			if r := a.call("tools/call", params(key, long+1)); r.Error == nil || r.Error.Code != invalidParams {
				t.Errorf("%s: other arguments: %d %s", revision, r.status, r.body)
			}
			p := newPeer(t, open, revision, "")
			if r := p.call("tools/call", params("short", long)); r.Error == nil || r.Error.Code != invalidParams {
				t.Errorf("%s: a short key of nobody's: %d %s", revision, r.status, r.body)
			}
		}
	})
}
