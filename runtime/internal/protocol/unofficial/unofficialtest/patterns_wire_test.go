package unofficialtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// guide is a client of the guide's tasks over net/http, in a session of 2025-11-25. The tap checks the server's answers
// against the schema.
type guide struct{ *wiretest.Peer }

func newGuide(t testing.TB, url, token string) guide {
	t.Helper()
	return guide{wiretest.NewPeer(t, url, wiretest.LegacyRevision, token)}
}

// ask sends a request. params are JSON, or "" for none.
func (g guide) ask(method, params string) *wiretest.Response {
	g.T.Helper()
	if params != "" {
		params = `,"params":` + params
	}
	return g.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q%s}`, g.IDs.Add(1), method, params))
}

// begin calls a tool as a task, which is then the newest: tasks of one instant have no order.
func (g guide) begin(id, tool, arguments string) *wiretest.Response {
	g.T.Helper()
	time.Sleep(time.Millisecond)
	return g.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"taskId":%q}}`, tool, arguments, id))
}

// about sends a task method for an ID.
func (g guide) about(method, id string) *wiretest.Response {
	g.T.Helper()
	params, err := json.Marshal(map[string]string{"id": id})
	if err != nil {
		g.T.Fatal(err)
	}
	return g.ask(method, string(params))
}

// reaches polls until the task has a status.
func (g guide) reaches(id, status string) *wiretest.Response {
	g.T.Helper()
	return wiretest.AwaitStatus(g.T, func() *wiretest.Response { return g.about("tasks/get", id) }, status)
}

// runGuide runs a test in a bubble, once with a server that speaks only the guide's tasks, and once with a server that
// also speaks the released revisions.
func runGuide(t *testing.T, test func(t *testing.T, p guide)) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		for _, revisions := range [][]string{wiretest.OnlyPatterns, wiretest.WithPatterns} {
			url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: taskserver.Options{Revisions: revisions}})
			test(t, newGuide(t, url, "a"))
		}
	})
}

// runGuideBeside runs a test in a bubble with a server that speaks the guide's tasks and the released revisions.
func runGuideBeside(t *testing.T, test func(t *testing.T, p guide)) {
	t.Helper()
	setup := wiretest.Setup{Revision: wiretest.LegacyRevision, Bearer: true, Options: taskserver.Options{Revisions: wiretest.WithPatterns}}
	wiretest.RunWithPeer(t, setup, func(t *testing.T, p *wiretest.Peer) { test(t, guide{p}) })
}

const (
	endlessRun = `{"repository":"https://example.com/r","branch":"endless"}`
	brokenRun  = `{"repository":"https://example.com/r","branch":"broken"}`
	refusedRun = `{"repository":"https://example.com/r","branch":"refused"}`
	staging    = `{"service":"api","environment":"staging"}`
)

// TestPatternsCapabilities checks that a server with the guide's tasks declares the same as one of
// 2025-11-25.
func TestPatternsCapabilities(t *testing.T) {
	rules.Covers(t, "D-01")
	runGuide(t, func(t *testing.T, p guide) {
		c, err := wiretest.LoadChecker()
		if err != nil {
			t.Fatal(err)
		}
		for _, revision := range []string{wiretest.LegacyRevision, wirecheck.Patterns} {
			if err := c.Fits(revision, "ServerCapabilities", mustJSON(t, p.Opened.Get("capabilities"))); err != nil {
				t.Error(err)
			}
		}
		wantDeclared(t, p, `{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`)
		list := p.ask("tools/list", "").OK()
		for name, want := range map[string]string{"run_pipeline": "required", "deploy_service": "optional", "lint_file": "forbidden"} {
			if !bytes.Contains(list.Result, []byte(`"execution":{"taskSupport":"`+want+`"}`)) {
				t.Errorf("%s is not %s: %s", name, want, list.Body)
			}
		}
		// An anonymous caller has no list.
		open, _ := wiretest.ServeWith(t, wiretest.Setup{Options: taskserver.Options{Revisions: wiretest.OnlyPatterns}})
		wantDeclared(t, newGuide(t, open, ""), `{"cancel":{},"requests":{"tools":{"call":{}}}}`)
	})
}

// wantDeclared fails the test unless initialize declared these tasks.
func wantDeclared(t *testing.T, p guide, want string) {
	t.Helper()
	if got := mustJSON(t, p.Opened.Get("capabilities", "tasks")); string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestPatternsCreate checks that a call becomes a task by the ID that it names, and that this ID is
// also the idempotency key.
func TestPatternsCreate(t *testing.T) {
	rules.Covers(t, "D-05", "D-07", "D-08", "D-18")
	runGuide(t, func(t *testing.T, p guide) {
		r := p.begin("task-001", "run_pipeline", endlessRun)
		if r.Status != http.StatusOK { // a body that comes with 202 is not read (T-03)
			t.Errorf("HTTP %d", r.Status)
		}
		created := r.Text("_meta", "task", "createdAt")
		if at, err := time.Parse(time.RFC3339Nano, created); err != nil || time.Since(at) > time.Minute || at.Location() != time.UTC {
			t.Errorf("createdAt is %v", created)
		}
		want := fmt.Sprintf(`{"_meta":{"task":{"id":"task-001","status":"working","pollInterval":2000,"ttl":86400,"createdAt":%q,"lastUpdatedAt":%q}}}`,
			created, r.Text("_meta", "task", "lastUpdatedAt"))
		if !wiretest.SameJSON(string(r.Result), want) {
			t.Errorf("%s, want %s", r.Result, want)
		}
		// The same call finds the task in another session too.
		for _, g := range []guide{p, newGuide(t, p.URL, "a")} {
			g.begin("task-001", "run_pipeline", endlessRun).WantMembers(`{"_meta":{"task":{"createdAt":%q}}}`, created)
		}
		if n := len(p.ask("tasks/list", "").OK().Get("tasks").([]any)); n != 1 {
			t.Errorf("%d tasks", n)
		}
		// A different call does not.
		p.begin("task-001", "run_pipeline", brokenRun).Want(http.StatusOK, wiretest.InvalidParams)
		p.begin("task-001", "deploy_service", staging).Want(http.StatusOK, wiretest.InvalidParams)
		p.about("tasks/cancel", "task-001").OK()
		p.begin("task-001", "run_pipeline", endlessRun).WantMembers(`{"_meta":{"task":{"status":"cancelled"}}}`)
	})
}

// TestPatternsTaskSupport checks which tools accept an ID, and which need one.
func TestPatternsTaskSupport(t *testing.T) {
	rules.Covers(t, "D-03", "D-04")
	runGuide(t, func(t *testing.T, p guide) {
		p.begin("t", "lint_file", `{"path":"main.go"}`).Want(http.StatusOK, wiretest.MethodNotFound)
		p.begin("t", "sdk_tool", `{}`).Want(http.StatusOK, wiretest.MethodNotFound)
		p.ask("tools/call", `{"name":"run_pipeline","arguments":`+endlessRun+`}`).Want(http.StatusOK, wiretest.MethodNotFound)
		for _, call := range []string{`{"name":"lint_file","arguments":{"path":"main.go"}}`, `{"name":"sdk_tool","arguments":{}}`,
			`{"name":"deploy_service","arguments":` + staging + `}`, `{"name":"deploy_service","arguments":` + staging + `,"_meta":{}}`} {
			p.ask("tools/call", call).WantPlain()
		}
		p.begin("t", "deploy_service", staging).OK()
		p.reaches("t", "completed")
		p.begin("u", "deploy_service", `{"service":""}`).Want(http.StatusOK, wiretest.InvalidParams)
		p.about("tasks/get", "u").Want(http.StatusOK, wiretest.InvalidParams)
	})
}

// TestPatternsMalformed sends invalid IDs and malformed requests.
func TestPatternsMalformed(t *testing.T) {
	rules.Covers(t, "D-15")
	runGuide(t, func(t *testing.T, p guide) {
		for _, id := range []string{`5`, `null`, `true`, `{}`, `["t"]`, `{"taskId":"t"}`, `""`, `"a\u0000b"`, `"a\nb"`, `"\u007f"`, `"\u0085"`,
			`"` + strings.Repeat("x", 257) + `"`, `"` + strings.Repeat("x", 10<<10) + `"`} {
			for _, tool := range []string{"run_pipeline", "deploy_service"} {
				r := p.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"taskId":%s}}`, tool, endlessRun, id)).Want(http.StatusOK, wiretest.InvalidParams)
				if r.Error != nil && !strings.Contains(r.Error.Message, "_meta.taskId") {
					t.Errorf("%.80s: %s", id, r.Body)
				}
			}
		}
		for _, id := range []string{`"x"`, `"😀 ü"`, `"` + strings.Repeat("x", 256) + `"`, `" "`, `"../../etc/passwd"`, `"a' OR 1=1"`} {
			p.ask("tools/call", fmt.Sprintf(`{"name":"deploy_service","arguments":%s,"_meta":{"taskId":%s}}`, staging, id)).OK()
			p.ask("tasks/get", `{"id":`+id+`}`).OK()
		}
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			for _, params := range []string{`{"id":5}`, `{"id":null}`, `{"id":{}}`, `{"id":""}`, `{"id":"nobody's"}`, `{"id":"a\u0000"}`,
				`{"id":"` + strings.Repeat("x", 10<<10) + `"}`} {
				p.ask(method, params).Want(http.StatusOK, wiretest.InvalidParams)
			}
			p.ask(method, `{}`).Want(http.StatusOK, wiretest.InvalidParams)
			p.ask(method, ``).Want(http.StatusOK, wiretest.InvalidParams)
			p.ask(method, `[]`).Want(http.StatusOK, wiretest.InvalidParams)
			p.ask(method, `{"ID":"x"}`).Want(http.StatusOK, wiretest.InvalidParams)
		}
		p.ask("tasks/update", `{"id":"x"}`).Want(http.StatusOK, wiretest.MethodNotFound)
		p.ask("tasks/delete", `{"id":"x"}`).Want(http.StatusOK, wiretest.MethodNotFound)
		p.ask("tools/call", `{"name":"deploy_service","arguments":`+staging+`,"_meta":{"taskId":"t","taskId":"u"}}`).Want(http.StatusBadRequest, wiretest.InvalidParams)
		p.ask("tasks/get", `{"id":"x","id":"x"}`).Want(http.StatusBadRequest, wiretest.InvalidParams)
		p.ask("tools/call", `{"name":"deploy_service","arguments":`+staging+`,"_meta":{"taskID":"t"}}`).WantPlain() // the guide uses another member
	})
}

// TestPatternsResult checks the answers of tasks/get and tasks/result for a running task and for
// every outcome.
func TestPatternsResult(t *testing.T) {
	rules.Covers(t, "D-09", "D-11", "D-12", "D-13", "D-14")
	runGuideBeside(t, func(t *testing.T, p guide) {
		// wants compares a state or a result. It takes the times from the state itself.
		wants := func(r *wiretest.Response, want string) {
			t.Helper()
			r.OK()
			want = strings.NewReplacer("CREATED", r.Text("createdAt"), "UPDATED", r.Text("lastUpdatedAt")).Replace(want)
			if !wiretest.SameJSON(string(r.Result), want) {
				t.Errorf("%s, want %s", r.Result, want)
			}
		}
		const times = `"createdAt":"CREATED","lastUpdatedAt":"UPDATED","pollInterval":`
		plain := p.ask("tools/call", `{"name":"raw","arguments":{}}`).OK()
		toolError := p.CallTool("two_notes", map[string]any{}).WantMembers(`{"isError":true}`) // the client cannot be asked
		for _, test := range []struct{ id, tool, arguments, status, poll, outcome string }{
			{"completes", "raw", `{}`, "completed", "100", `"result":` + string(plain.Result)},
			{"a tool error completes", "two_notes", `{}`, "completed", "100", `"result":` + string(toolError.Result)},
			{"fails", "run_pipeline", refusedRun, "failed", "2000", `"error":{"code":4050,"message":"the repository is locked"}`},
			{"fails with data", "locked", `{}`, "failed", "100", `"error":{"code":4055,"message":"the repository is locked"}`},
		} {
			p.begin(test.id, test.tool, test.arguments).OK()
			named := fmt.Sprintf(`{"id":%q,"status":%q,`, test.id, test.status)
			wants(p.reaches(test.id, test.status), named+times+test.poll+`,`+test.outcome+`}`)
			wants(p.about("tasks/result", test.id), named+test.outcome+`}`)
			p.about("tasks/cancel", test.id).Want(http.StatusOK, wiretest.InvalidParams) // D-09
			p.about("tasks/get", test.id).WantMembers(`{"status":%q}`, test.status)
		}
		p.begin("goes on", "run_pipeline", endlessRun).OK()
		wants(p.reaches("goes on", "working"), `{"id":"goes on","status":"working",`+times+`2000}`)
		began := time.Now()
		p.about("tasks/result", "goes on").Want(http.StatusOK, wiretest.InvalidParams)
		if waited := time.Since(began); waited > wiretest.Patience/2 {
			t.Errorf("tasks/result has waited for %v", waited)
		}
		wants(p.about("tasks/cancel", "goes on"), `{"id":"goes on","status":"cancelled"}`)
		wants(p.reaches("goes on", "cancelled"), `{"id":"goes on","status":"cancelled",`+times+`2000}`) // D-14
		for range 2 {                                                                                   // cancelled twice
			p.about("tasks/cancel", "goes on").Want(http.StatusOK, wiretest.InvalidParams)
			p.about("tasks/result", "goes on").Want(http.StatusOK, wiretest.InvalidParams)
		}
	})
}

// TestPatternsList checks that the list has all tasks of the caller, of every revision, and needs
// no params.
func TestPatternsList(t *testing.T) {
	rules.Covers(t, "D-10", "D-23")
	runGuide(t, func(t *testing.T, a guide) {
		b := newGuide(t, a.URL, "b")
		var want []string
		for i := range 2 * taskserver.PageSize {
			want = append(want, fmt.Sprint("t", i))
			a.begin(want[i], "deploy_service", staging).OK()
			time.Sleep(time.Millisecond) // the list is in the order of creation
		}
		b.begin("b's", "run_pipeline", endlessRun).OK()
		for _, params := range []string{"", `{}`} {
			r := a.ask("tasks/list", params).WantMembers(`{"nextCursor":null}`)
			var got []string
			for _, task := range r.Get("tasks").([]any) {
				got = append(got, task.(map[string]any)["id"].(string))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v", got)
			}
			if bytes.Contains(r.Body, []byte(`"result":{"content"`)) {
				t.Error("a list with results")
			}
		}
		if list := b.ask("tasks/list", "").OK().Get("tasks").([]any); len(list) != 1 {
			t.Errorf("b has %v", list)
		}
	})
}

// TestPatternsOwner checks that a task belongs to its owner under every name. In this project, the
// guide's session stands for the principal (T-11).
func TestPatternsOwner(t *testing.T) {
	rules.Covers(t, "D-15", "D-20", "D-23")
	runGuideBeside(t, func(t *testing.T, a guide) {
		b := newGuide(t, a.URL, "b")
		a.begin("same", "run_pipeline", endlessRun).OK()
		id := a.Create("run_pipeline", wiretest.PipelineArgs("endless")) // 2025-11-25 in the same session
		none := b.about("tasks/get", "nobody's").Want(http.StatusOK, wiretest.InvalidParams)
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			for _, task := range []string{"same", id} {
				if r := b.about(method, task).Want(http.StatusOK, wiretest.InvalidParams); r.Error != nil && r.Error.Message != none.Error.Message {
					t.Errorf("%s: %s", method, r.Body)
				}
			}
		}
		// Each caller may have a task of its own under the same ID.
		b.begin("same", "run_pipeline", refusedRun).OK()
		b.reaches("same", "failed")
		a.reaches("same", "working")
		a.about("tasks/cancel", "same").OK()
		b.about("tasks/get", "same").WantMembers(`{"status":"failed"}`)
		// So may anonymous callers, by their sessions.
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Options: taskserver.Options{Revisions: wiretest.WithPatterns}})
		a, b = newGuide(t, url, ""), newGuide(t, url, "")
		a.begin("same", "run_pipeline", endlessRun).OK()
		b.about("tasks/get", "same").Want(http.StatusOK, wiretest.InvalidParams)
		b.begin("same", "run_pipeline", endlessRun).OK()
		b.about("tasks/cancel", "same").OK()
		a.reaches("same", "working")
		a.ask("tasks/list", "").Want(http.StatusOK, wiretest.MethodNotFound)
	})
}

// TestPatternsBeside checks that a request with a sign of 2025-11-25 is handled in that revision,
// even if it also has members of the guide.
func TestPatternsBeside(t *testing.T) {
	runGuideBeside(t, func(t *testing.T, p guide) {
		const both = `{"name":"deploy_service","arguments":` + staging + `,"task":{},"_meta":{"taskId":"mine"}}`
		r := p.ask("tools/call", both).OK()
		id := r.Text("task", "taskId")
		if id == "" || id == "mine" {
			t.Fatalf("%s", r.Body)
		}
		p.ask("tasks/get", `{"taskId":"`+id+`","id":"mine"}`).WantMembers(`{"taskId":%q}`, id)
		p.about("tasks/get", "mine").Want(http.StatusOK, wiretest.InvalidParams)
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: taskserver.Options{Revisions: wiretest.OnlyPatterns}})
		newGuide(t, url, "a").ask("tools/call", both).WantPlain()
	})
}

// TestPatternsOff checks that members of the guide have no effect if the server's options do not
// name the guide.
func TestPatternsOff(t *testing.T) {
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: wiretest.LegacyRevision, Bearer: true}, func(t *testing.T, peer *wiretest.Peer) {
		p := guide{peer}
		p.begin("t", "deploy_service", staging).WantPlain().WantMembers(`{"_meta":null}`)
		p.begin("t", "run_pipeline", endlessRun).Want(http.StatusOK, wiretest.MethodNotFound) // the call is one of 2025-11-25 without params.task
		p.ask("tools/call", `{"name":"deploy_service","arguments":`+staging+`,"_meta":{"taskId":5}}`).OK()
		id := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			p.about(method, id).Want(http.StatusOK, wiretest.InvalidParams)
		}
		p.Until(id, "working")
		if r := p.Call("tasks/list", nil).OK(); !bytes.Contains(r.Result, []byte(`"taskId":"`+id+`"`)) {
			t.Errorf("%s", r.Body)
		}
	})
}
