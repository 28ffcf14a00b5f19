package edgetest

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestBearerTokens uses the SDK's bearer tokens for two users. To each, a task of the other looks
// exactly like no task.
func TestBearerTokens(t *testing.T) {
	rules.Covers(t, "C-89", "C-93", "C-94", "B-85", "B-88", "B-89", "E-87")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: wiretest.CandidateRevision, Bearer: true})
		for _, revision := range wiretest.AllRevisions {
			a, b := wiretest.NewPeer(t, url, revision, "a"), wiretest.NewPeer(t, url, revision, "b")
			id := a.Create("run_pipeline", wiretest.PipelineArgs("endless"))
			methods := []string{"tasks/get", "tasks/result", "tasks/cancel"}
			if revision == wiretest.ModernRevision {
				methods = []string{"tasks/get", "tasks/update", "tasks/cancel"}
			}
			for _, method := range methods {
				var bodies []string
				for _, task := range []string{id, strings.Repeat("A", len(id))} {
					body, edits := b.Request(method, map[string]any{"taskId": task, "inputResponses": map[string]any{}})
					r := b.Post(replaceID(t, body), edits...)
					b.Check(method, r)
					bodies = append(bodies, r.Header.Get("Content-Type")+r.Header.Get("Content-Length")+string(r.Body))
				}
				if bodies[0] != bodies[1] || !strings.Contains(bodies[0], "-32602") {
					t.Errorf("%s:\n%s\n%s", method, bodies[0], bodies[1])
				}
			}
			a.Until(id, "working")
			if revision != wiretest.ModernRevision {
				mine := 1
				if revision == wiretest.LegacyRevision { // the one of the candidate is a's too
					mine = 2
				}
				if r := a.Call("tasks/list", nil).OK(); len(r.Get("tasks").([]any)) != mine {
					t.Errorf("%s", r.Body)
				}
				if r := b.Call("tasks/list", nil).OK(); len(r.Get("tasks").([]any)) != 0 {
					t.Errorf("%s", r.Body)
				}
			}
			// The middleware in front refuses who has no token, whatever is asked.
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
				body, edits := a.Request("tasks/get", map[string]any{"taskId": id})
				res, err := a.Client.Do(a.NewRequest(t.Context(), method, body, append(edits, wiretest.WithHeader("Authorization", ""))...))
				if err != nil || res.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s without a token: %v %v", method, res, err)
				}
				res.Body.Close()
			}
			a.Task("tasks/get", id, wiretest.WithHeader("Authorization", "Bearer nobody")).Want(http.StatusForbidden, wiretest.InvalidRequest)
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

// TestPrincipalOverride checks that Options.Principal replaces the token's user. In this test a
// whole team is one principal.
func TestPrincipalOverride(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: mcptask.Options{
			Principal: func(context.Context) (string, error) { return "team", nil }}})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			a, b := wiretest.NewPeer(t, url, revision, "a"), wiretest.NewPeer(t, url, revision, "b")
			id := a.Create("run_pipeline", wiretest.PipelineArgs("endless"))
			b.Task("tasks/cancel", id).OK()
			a.Until(id, "cancelled")
		}
	})
}

// TestAnonymousTasks checks that without authentication the ID is the key: it cannot be guessed,
// and there is no list.
func TestAnonymousTasks(t *testing.T) {
	rules.Covers(t, "C-91", "C-92", "B-26", "B-87", "E-86")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: wiretest.CandidateRevision})
		seen := map[string]bool{}
		for _, revision := range wiretest.AllRevisions {
			p := wiretest.NewPeer(t, url, revision, "")
			var letters [26]map[byte]bool
			for range 100 {
				id := p.Create("raw", nil)
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
			if revision != wiretest.ModernRevision {
				if tasks, ok := p.Opened.Get("capabilities", "tasks").(map[string]any); !ok || tasks["list"] != nil {
					t.Errorf("%s", p.Opened.Body)
				}
				p.Call("tasks/list", nil).Want(200, wiretest.MethodNotFound)
			}
		}
	})
}

// TestOrigins checks that Origin and Host are checked on every request, including streams.
func TestOrigins(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		protection := http.NewCrossOriginProtection()
		if err := protection.AddTrustedOrigin("https://app.example"); err != nil {
			t.Fatal(err)
		}
		url, _ := wiretest.ServeWith(t, wiretest.Setup{HTTP: &mcp.StreamableHTTPOptions{CrossOriginProtection: protection}})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "")
			status := func(method string, edits ...wiretest.Edit) int {
				t.Helper()
				body := ""
				if method == http.MethodPost {
					var own []wiretest.Edit
					body, own = p.Request("tools/list", nil)
					edits = append(own, edits...)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				res, err := p.Client.Do(p.NewRequest(ctx, method, body, edits...))
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				return res.StatusCode
			}
			for _, method := range []string{"POST", "GET", "HEAD", "OPTIONS", "PUT", "PATCH", "TRACE", "BREW", "DELETE"} {
				for _, foreign := range []wiretest.Edit{
					wiretest.WithHeader("Origin", "https://evil.example"), wiretest.WithHeader("Origin", "null"), wiretest.WithHeader("Sec-Fetch-Site", "cross-site"),
					wiretest.WithHeader("Sec-Fetch-Site", "same-site"), func(r *http.Request) { r.Host = "evil.example" },
				} {
					if got := status(method, foreign); got != http.StatusForbidden {
						t.Errorf("%s of a stranger: %d", method, got)
					}
				}
				if method == "DELETE" {
					continue // it would end the session
				}
				for _, own := range []wiretest.Edit{
					func(*http.Request) {}, wiretest.WithHeader("Origin", "https://app.example"), wiretest.WithHeader("Origin", url), wiretest.WithHeader("Sec-Fetch-Site", "same-origin"),
				} {
					if got := status(method, own); got == http.StatusForbidden {
						t.Errorf("%s of our own: %d", method, got)
					}
				}
			}
		}
	})
}

// TestAuditRetrieved checks that the audit trail records each delivery of a result and its
// receiver, if it accepts debug records. A poll before the end is not recorded.
func TestAuditRetrieved(t *testing.T) {
	rules.Covers(t, "C-102", "C-103", "B-97", "B-98")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		logs, let := &wiretest.SafeBuffer{}, make(chan struct{})
		held := mcptask.Tools{Service: "Held", Impl: 1, Tools: []mcptask.Tool{mcptask.NewTool(
			mcptask.ToolSpec{Name: "held", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
			func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
				select {
				case <-let:
				case <-ctx.Done():
				}
				return "a result", ctx.Err()
			})}}
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: wiretest.CandidateRevision, Bearer: true, Tools: []mcptask.Tools{held}, Options: mcptask.Options{
			Logger: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))}})
		for _, revision := range wiretest.AllRevisions {
			p := wiretest.NewPeer(t, url, revision, "somebody")
			id := p.Create("held", nil)
			p.Task("tasks/get", id).OK()
			got := func() int {
				return strings.Count(logs.String(), "audit=retrieved task="+id+" tool=held principal=somebody revision="+revision)
			}
			if got() != 0 {
				t.Error("retrieved before the end")
			}
			let <- struct{}{}
			p.Until(id, "completed")
			if revision != wiretest.ModernRevision {
				p.Task("tasks/result", id).OK()
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
