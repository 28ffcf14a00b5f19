package gosdk_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// Two users with the SDK's bearer tokens: the other's task is no task, to the byte.
func TestBearerTokens(t *testing.T) {
	rules.Covers(t, "C-89", "C-93", "C-94", "B-85", "B-88", "B-89", "E-87")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: candidateRevision, bearer: true})
		for _, revision := range allRevisions {
			a, b := newPeer(t, url, revision, "a"), newPeer(t, url, revision, "b")
			id := a.create("run_pipeline", pipelineArgs("endless"))
			methods := []string{"tasks/get", "tasks/result", "tasks/cancel"}
			if revision == modernRevision {
				methods = []string{"tasks/get", "tasks/update", "tasks/cancel"}
			}
			for _, method := range methods {
				var bodies []string
				for _, task := range []string{id, strings.Repeat("A", len(id))} {
					body, edits := b.request(method, map[string]any{"taskId": task, "inputResponses": map[string]any{}})
					r := b.post(replaceID(t, body), edits...)
					b.check(method, r)
					bodies = append(bodies, r.header.Get("Content-Type")+r.header.Get("Content-Length")+string(r.body))
				}
				if bodies[0] != bodies[1] || !strings.Contains(bodies[0], "-32602") {
					t.Errorf("%s:\n%s\n%s", method, bodies[0], bodies[1])
				}
			}
			a.until(id, "working")
			if revision != modernRevision {
				mine := 1
				if revision == legacyRevision { // the one of the candidate is a's too
					mine = 2
				}
				if r := a.call("tasks/list", nil).ok(); len(r.get("tasks").([]any)) != mine {
					t.Errorf("%s", r.body)
				}
				if r := b.call("tasks/list", nil).ok(); len(r.get("tasks").([]any)) != 0 {
					t.Errorf("%s", r.body)
				}
			}
			// The middleware in front refuses who has no token, whatever is asked.
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
				body, edits := a.request("tasks/get", map[string]any{"taskId": id})
				res, err := a.client.Do(a.start(t.Context(), method, body, append(edits, withHeader("Authorization", ""))...))
				if err != nil || res.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s without a token: %v %v", method, res, err)
				}
				res.Body.Close()
			}
			a.task("tasks/get", id, withHeader("Authorization", "Bearer nobody")).want(http.StatusForbidden, invalidRequest)
		}
	})
}

// replaceID gives a message an ID that is always the same.
func replaceID(t *testing.T, body string) string {
	t.Helper()
	var message map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &message); err != nil {
		t.Fatal(err)
	}
	message["id"] = json.RawMessage("7")
	data, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Options.Principal replaces the token's user: here all of a team are one.
func TestPrincipalOverride(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{bearer: true, options: mcptask.Options{
			Principal: func(context.Context) (string, error) { return "team", nil }}})
		for _, revision := range []string{legacyRevision, modernRevision} {
			a, b := newPeer(t, url, revision, "a"), newPeer(t, url, revision, "b")
			id := a.create("run_pipeline", pipelineArgs("endless"))
			b.task("tasks/cancel", id).ok()
			a.until(id, "cancelled")
		}
	})
}

// Without authentication the ID is the key: it cannot be guessed, and nobody
// is offered a list.
func TestAnonymousTasks(t *testing.T) {
	rules.Covers(t, "C-91", "C-92", "B-26", "B-87", "E-86")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: candidateRevision})
		seen := map[string]bool{}
		for _, revision := range allRevisions {
			p := newPeer(t, url, revision, "")
			var letters [26]map[byte]bool
			for range 100 {
				id := p.create("raw", nil)
				if len(id) != len(letters) || seen[id] { // of 32 letters: 130 bits
					t.Fatalf("%q", id)
				}
				seen[id] = true
				for i := range letters {
					if letters[i] == nil {
						letters[i] = map[byte]bool{}
					}
					letters[i][id[i]] = true
				}
			}
			for i, different := range letters {
				if len(different) < 20 {
					t.Errorf("letter %d is one of %d", i, len(different))
				}
			}
			if revision != modernRevision {
				if tasks, ok := p.opened.get("capabilities", "tasks").(map[string]any); !ok || tasks["list"] != nil {
					t.Errorf("%s", p.opened.body)
				}
				p.call("tasks/list", nil).want(200, methodNotFound)
			}
		}
	})
}

// Origin and Host are checked on everything, a stream included.
func TestOrigins(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		protection := http.NewCrossOriginProtection()
		if err := protection.AddTrustedOrigin("https://app.example"); err != nil {
			t.Fatal(err)
		}
		url, _ := serveWith(t, setup{http: &mcp.StreamableHTTPOptions{CrossOriginProtection: protection}})
		for _, revision := range []string{legacyRevision, modernRevision} {
			p := newPeer(t, url, revision, "")
			status := func(method string, edits ...edit) int {
				t.Helper()
				body := ""
				if method == http.MethodPost {
					var own []edit
					body, own = p.request("tools/list", nil)
					edits = append(own, edits...)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				res, err := p.client.Do(p.start(ctx, method, body, edits...))
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				return res.StatusCode
			}
			for _, method := range []string{"POST", "GET", "HEAD", "OPTIONS", "PUT", "PATCH", "TRACE", "BREW", "DELETE"} {
				for _, foreign := range []edit{
					withHeader("Origin", "https://evil.example"), withHeader("Origin", "null"), withHeader("Sec-Fetch-Site", "cross-site"),
					withHeader("Sec-Fetch-Site", "same-site"), func(r *http.Request) { r.Host = "evil.example" },
				} {
					if got := status(method, foreign); got != http.StatusForbidden {
						t.Errorf("%s of a stranger: %d", method, got)
					}
				}
				if method == "DELETE" {
					continue // it would end the session
				}
				for _, own := range []edit{
					func(*http.Request) {}, withHeader("Origin", "https://app.example"), withHeader("Origin", url), withHeader("Sec-Fetch-Site", "same-origin"),
				} {
					if got := status(method, own); got == http.StatusForbidden {
						t.Errorf("%s of our own: %d", method, got)
					}
				}
			}
		}
	})
}

// A result that is handed out is in the audit trail where that takes debug
// records, with who got it; a poll before the end is not.
func TestAuditRetrieved(t *testing.T) {
	rules.Covers(t, "C-102", "C-103", "B-97", "B-98")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		logs, let := &safeBuffer{}, make(chan struct{})
		held := mcptask.Tools{Service: "Held", Impl: 1, Tools: []mcptask.Tool{mcptask.NewTool(
			mcptask.ToolSpec{Name: "held", InputSchema: openObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
			func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
				select {
				case <-let:
				case <-ctx.Done():
				}
				return "a result", ctx.Err()
			})}}
		url, _ := serveWith(t, setup{revision: candidateRevision, bearer: true, tools: []mcptask.Tools{held}, options: mcptask.Options{
			Logger: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))}})
		for _, revision := range allRevisions {
			p := newPeer(t, url, revision, "somebody")
			id := p.create("held", nil)
			p.task("tasks/get", id).ok()
			got := func() int {
				return strings.Count(logs.String(), "audit=retrieved task="+id+" tool=held principal=somebody revision="+revision)
			}
			if got() != 0 {
				t.Error("retrieved before the end")
			}
			let <- struct{}{}
			p.until(id, "completed")
			if revision != modernRevision {
				p.task("tasks/result", id).ok()
			}
			if got() == 0 {
				t.Errorf("%s: not in the log", revision)
			}
		}
		if text := logs.String(); strings.Contains(text, "Bearer") || strings.Contains(text, "a result") {
			t.Error("the log has a secret")
		}
	})
}
