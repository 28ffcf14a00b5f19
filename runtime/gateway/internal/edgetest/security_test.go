package edgetest

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httputil"
	neturl "net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
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
			a.Until(ids[0], "working", "completed") // b has not cancelled it
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
				body, edits := a.Request("tasks/get", map[string]any{"taskId": ids[0]})
				if status := a.Status(method, body, append(edits, wiretest.WithHeader("Authorization", ""))...); status != http.StatusUnauthorized {
					t.Errorf("%s without a token: %d", method, status)
				}
			}
			a.Task("tasks/get", ids[0], wiretest.WithHeader("Authorization", "Bearer nobody")).Want(http.StatusForbidden, wiretest.InvalidRequest)
			if revision == wiretest.ModernRevision {
				a.Until(ids[2], "input_required") // and has not answered it
				return
			}
			if r := b.Call("tasks/list", nil).OK(); len(r.Get("tasks").([]any)) != 0 {
				t.Errorf("%s", r.Body)
			}
			if list := string(a.Call("tasks/list", nil).OK().Result); !strings.Contains(list, ids[0]) || !strings.Contains(list, ids[1]) {
				t.Errorf("a's tasks are not in a's list: %s", list)
			}
		})
	}
	// A token without a user is refused, because all users of such tokens would be the same.
	p := &wiretest.Peer{T: t, URL: url, Revision: wiretest.ModernRevision, Token: "nobody", Caps: wiretest.TasksExtension, Client: &http.Client{Transport: memnet.OneOff}}
	for _, method := range []string{"tasks/get", "tools/call", "tools/list", "server/discover", "initialize"} {
		p.Call(method, map[string]any{"taskId": "x"}).Want(http.StatusForbidden, wiretest.InvalidRequest)
	}
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
			// Refusals that come after the SDK has begun to answer.
			if r := a.Call("tools/call", params(key, long+1)); r.Error == nil || r.Error.Code != wiretest.InvalidParams {
				t.Errorf("%s: other arguments: %d %s", revision, r.Status, r.Body)
			}
			p := wiretest.NewPeer(t, open, revision, "")
			if r := p.Call("tools/call", params("short", long)); r.Error == nil || r.Error.Code != wiretest.InvalidParams {
				t.Errorf("%s: a short key of an anonymous caller: %d %s", revision, r.Status, r.Body)
			}
		}
	})
}

// TestPrincipalOverride checks that Options.Principal replaces the token's user. In this test a
// whole team is one principal.
func TestPrincipalOverride(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: taskserver.Options{
			Principal: func(context.Context) (string, error) { return "team", nil }}})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			a, b := wiretest.NewPeer(t, url, revision, "a"), wiretest.NewPeer(t, url, revision, "b")
			id := a.Create("run_pipeline", wiretest.PipelineArgs("endless"))
			b.Task("tasks/cancel", id).OK()
			a.Until(id, "cancelled")
		}
	})
}

// TestAnonymousTasks checks that without authentication the ID alone gives access, in any session.
// It cannot be guessed, and there is no list.
func TestAnonymousTasks(t *testing.T) {
	rules.Covers(t, "C-91", "C-92", "B-26", "B-87", "E-85", "E-86")
	inBubble(t, func(t *testing.T) {
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
			id := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
			wiretest.NewPeer(t, url, wiretest.LegacyRevision, "").Until(id, "working")
			wiretest.NewPeer(t, url, wiretest.ModernRevision, "").Task("tasks/cancel", id).OK()
			p.Until(id, "cancelled")
		}
	})
}

// TestOrigins checks that Origin and Host are checked on every request, including streams.
func TestOrigins(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		protection := http.NewCrossOriginProtection()
		if err := protection.AddTrustedOrigin("https://app.example"); err != nil {
			t.Fatal(err)
		}
		url, _ := wiretest.ServeWith(t, wiretest.Setup{HTTP: &mcp.StreamableHTTPOptions{CrossOriginProtection: protection}})
		foreign := []wiretest.Edit{
			wiretest.WithHeader("Origin", "https://evil.example"), wiretest.WithHeader("Origin", "null"),
			wiretest.WithHeader("Sec-Fetch-Site", "cross-site"), wiretest.WithHeader("Sec-Fetch-Site", "same-site"),
		}
		for _, host := range []string{"evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "0.0.0.0"} {
			foreign = append(foreign, func(r *http.Request) { r.Host = host })
		}
		own := []wiretest.Edit{
			func(*http.Request) {}, wiretest.WithHeader("Origin", "https://app.example"), wiretest.WithHeader("Origin", url), wiretest.WithHeader("Sec-Fetch-Site", "same-origin"),
		}
		for _, host := range []string{"localhost", "localhost:9", "LOCALHOST", "[::1]:80", "127.0.0.1"} {
			own = append(own, func(r *http.Request) { r.Host = host })
		}
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "")
			for _, method := range []string{"POST", "GET", "HEAD", "OPTIONS", "PUT", "PATCH", "TRACE", "BREW", "DELETE"} {
				body, edits := "", []wiretest.Edit(nil)
				if method == http.MethodPost {
					body, edits = p.Request("tools/list", nil)
				}
				for i, edit := range foreign {
					if got := p.Status(method, body, append(edits, edit)...); got != http.StatusForbidden {
						t.Errorf("%s of stranger %d: %d", method, i, got)
					}
					if method == http.MethodPost {
						p.Post(body, append(edits, edit)...).Want(http.StatusForbidden, wiretest.InvalidRequest)
					}
				}
				if method == http.MethodDelete {
					continue // a DELETE would end the session
				}
				for i, edit := range own {
					if got := p.Status(method, body, append(edits, edit)...); got == http.StatusForbidden || method == http.MethodPost && got != http.StatusOK {
						t.Errorf("%s of our own %d: %d", method, i, got)
					}
				}
			}
		}
	})
}

// TestAnyHost checks that the option that switches off the check of the host does so.
func TestAnyHost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{HTTP: &mcp.StreamableHTTPOptions{DisableLocalhostProtection: true}})
		p := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		p.Call("tools/list", nil, func(r *http.Request) { r.Host = "proxy.example" }).OK()
	})
}

// TestAllowedHosts checks that a reverse proxy on the same machine reaches the server under the public name that the
// options allow, and that a request with any other name is told of the option.
func TestAllowedHosts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Options: taskserver.Options{AllowedHosts: []string{"mcp.example.com"}}})
		target, err := neturl.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		proxy := memnet.NewServer(httputil.NewSingleHostReverseProxy(&neturl.URL{Scheme: target.Scheme, Host: target.Host}), nil)
		defer proxy.Close()
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, proxy.URL+target.Path, revision, "")
			for host, want := range map[string]int{
				"mcp.example.com": 200, "MCP.example.com:8443": 200, "localhost": 200, "[::1]:80": 200,
				"mcp.example.com.evil.example": 403, "example.com": 403, "evil.example:8443": 403, "[2001:db8::1]:80": 403,
			} {
				r := p.Call("tools/list", nil, func(r *http.Request) { r.Host = host })
				if r.Status != want || want == 403 && !(strings.Contains(r.Error.Message, "Options.AllowedHosts") && strings.Contains(r.Error.Message, host)) {
					t.Errorf("%s: HTTP %d %s", host, r.Status, r.Body)
				}
			}
		}
	})
}

// TestAuditRetrieved checks that the audit trail records each delivery of a result and its
// receiver, if it accepts debug records. A poll before the end is not recorded.
func TestAuditRetrieved(t *testing.T) {
	rules.Covers(t, "C-102", "C-103", "B-97", "B-98")
	inBubble(t, func(t *testing.T) {
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
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: wiretest.CandidateRevision, Bearer: true, Tools: []mcptask.Tools{held}, Options: taskserver.Options{
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
