package edgetest

import (
	"encoding/json"
	"net/http"
	"regexp"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestIdentity checks that another caller's task looks exactly like a task that does not exist.
func TestIdentity(t *testing.T) {
	rules.Covers(t, "C-89", "C-93", "C-94", "B-85", "B-88", "B-89", "E-87")
	t.Parallel()
	url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: wiretest.CandidateRevision, Bearer: true})
	id := regexp.MustCompile(`"id":\d+`)
	same := func(t *testing.T, strange, unknown *wiretest.Response) {
		t.Helper()
		if strange.Status != unknown.Status || id.ReplaceAllString(string(strange.Body), "") != id.ReplaceAllString(string(unknown.Body), "") {
			t.Errorf("a stranger's task: %d %s\nno task: %d %s", strange.Status, strange.Body, unknown.Status, unknown.Body)
		}
		for name := range strange.Header {
			if name != "Date" && name != "Content-Length" /* of the ID */ && strange.Header.Get(name) != unknown.Header.Get(name) {
				t.Errorf("%s: %q and %q", name, strange.Header.Get(name), unknown.Header.Get(name))
			}
		}
	}
	for _, revision := range wiretest.AllRevisions {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			a, b := wiretest.NewPeer(t, url, revision, "a"), wiretest.NewPeer(t, url, revision, "b")
			a.Caps, b.Caps = wiretest.WithQuestions, wiretest.WithQuestions
			methods := []string{"tasks/get", "tasks/result", "tasks/cancel"}
			ids := []string{a.Create("ponder", map[string]any{"ms": 1000}), a.Create("ponder", nil)}
			if revision == wiretest.ModernRevision {
				methods = []string{"tasks/get", "tasks/update", "tasks/cancel"}
				asking := a.Create("deploy_service", map[string]any{"service": "api", "environment": "production"})
				a.Until(asking, "input_required")
				ids = append(ids, asking)
			}
			a.Until(ids[1], "completed")
			for _, method := range methods {
				unknown := b.Call(method, map[string]any{"taskId": "NOSUCHTASKNOSUCHTASKNOSUCH", "inputResponses": map[string]any{}})
				for _, id := range ids {
					for _, responses := range []string{`{}`, `{"ship":{"action":"accept","content":{"approve":"no boolean"}}}`, `{"ship":{"action":"accept","content":{"approve":true}}}`} {
						same(t, b.Call(method, map[string]any{"taskId": id, "inputResponses": json.RawMessage(responses)}), unknown)
					}
				}
			}
			a.Until(ids[0], "working", "completed") // b has cancelled nothing
			if revision == wiretest.ModernRevision {
				a.Until(ids[2], "input_required") // and answered nothing
				return
			}
			if r := b.Call("tasks/list", nil).OK(); len(r.Get("tasks").([]any)) != 0 {
				t.Errorf("%s", r.Body)
			}
		})
	}
	// A token without a user is nobody: everybody with one would be the same.
	p := &wiretest.Peer{T: t, URL: url, Revision: wiretest.ModernRevision, Token: "nobody", Caps: wiretest.TasksExtension, Client: &http.Client{Transport: memnet.OneOff}}
	for _, method := range []string{"tasks/get", "tools/call", "tools/list", "server/discover", "initialize"} {
		p.Call(method, map[string]any{"taskId": "x"}).Want(http.StatusForbidden, wiretest.InvalidRequest)
	}
	p.Token = ""
	if r := p.Call("tools/list", nil); r.Status != http.StatusUnauthorized {
		t.Errorf("no token: %d %s", r.Status, r.Body)
	}
}

// TestAnonymousID checks that without authentication the ID alone gives access, in any session.
func TestAnonymousID(t *testing.T) {
	rules.Covers(t, "E-85")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		modern, legacy := wiretest.NewPeer(t, url, wiretest.ModernRevision, ""), wiretest.NewPeer(t, url, wiretest.LegacyRevision, "")
		id := modern.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		other := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		other.Until(id, "working")
		legacy.Until(id, "working")
		other.Task("tasks/cancel", id).OK()
		modern.Until(id, "cancelled")
	})
}

// TestIdempotency checks that an idempotency key belongs to its principal and its arguments.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true})
		open, _ := wiretest.ServeWith(t, wiretest.Setup{})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			a, b := wiretest.NewPeer(t, url, revision, "a"), wiretest.NewPeer(t, url, revision, "b")
			params := func(key any, ms int) map[string]any {
				return map[string]any{"name": "ponder", "arguments": map[string]any{"ms": ms}, "task": map[string]any{},
					"_meta": map[string]any{"io.github.mcptaskgen/idempotency-key": key}}
			}
			path, status := []string{"task", "taskId"}, http.StatusOK
			if revision == wiretest.ModernRevision {
				path, status = []string{"taskId"}, http.StatusBadRequest
			}
			const long = 3_600_000 // the task runs until the server is closed
			key := "key of " + revision
			id := a.Call("tools/call", params(key, long)).OK().Text(path...)
			if again := a.Call("tools/call", params(key, long)).OK().Text(path...); id == "" || again != id {
				t.Errorf("%s: %q then %q", revision, id, again)
			}
			if other := b.Call("tools/call", params(key, long)).OK().Text(path...); other == "" || other == id {
				t.Errorf("%s: b has %q", revision, other)
			}
			for _, bad := range []any{"", 5, string(make([]byte, 257))} {
				r := a.Call("tools/call", params(bad, long))
				if r.Error == nil || r.Error.Code != wiretest.InvalidParams || r.Status != status {
					t.Errorf("%s: key %.10q: %d %.300s", revision, bad, r.Status, r.Body)
				}
			}
			// What the server refuses after the SDK has begun to answer.
			if r := a.Call("tools/call", params(key, long+1)); r.Error == nil || r.Error.Code != wiretest.InvalidParams {
				t.Errorf("%s: other arguments: %d %s", revision, r.Status, r.Body)
			}
			p := wiretest.NewPeer(t, open, revision, "")
			if r := p.Call("tools/call", params("short", long)); r.Error == nil || r.Error.Code != wiretest.InvalidParams {
				t.Errorf("%s: a short key of nobody's: %d %s", revision, r.Status, r.Body)
			}
		}
	})
}
