package gosdk_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// onlyPatterns and withPatterns are the revisions of a server that speaks the
// guide's tasks, alone or beside the released ones.
var (
	onlyPatterns = []string{wirecheck.Patterns}
	withPatterns = []string{legacyRevision, wirecheck.Patterns, modernRevision}
)

// guide is a client of the guide's tasks over net/http, in a session of
// 2025-11-25. The tap holds its answers against the schema.
type guide struct{ *peer }

func newGuide(t testing.TB, url, token string) guide {
	t.Helper()
	return guide{newPeer(t, url, legacyRevision, token)}
}

// ask sends a request; params are JSON, "" is none.
func (g guide) ask(method, params string) *response {
	g.t.Helper()
	if params != "" {
		params = `,"params":` + params
	}
	return g.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q%s}`, g.ids.Add(1), method, params))
}

// begin calls a tool as a task.
func (g guide) begin(id, tool, arguments string) *response {
	g.t.Helper()
	return g.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"taskId":%q}}`, tool, arguments, id))
}

// about sends a task method for an ID.
func (g guide) about(method, id string) *response {
	g.t.Helper()
	params, err := json.Marshal(map[string]string{"id": id})
	if err != nil {
		g.t.Fatal(err)
	}
	return g.ask(method, string(params))
}

// reaches polls until the task has a status.
func (g guide) reaches(id, status string) *response {
	g.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		r := g.about("tasks/get", id).ok()
		if r.text("status") == status {
			return r
		}
		if time.Now().After(end) || r.text("status") != "working" && r.text("status") != "input_required" {
			g.t.Fatalf("the task is not %s: %s", status, r.body)
		}
	}
}

const (
	endlessRun = `{"repository":"https://example.com/r","branch":"endless"}`
	brokenRun  = `{"repository":"https://example.com/r","branch":"broken"}`
	refusedRun = `{"repository":"https://example.com/r","branch":"refused"}`
	staging    = `{"service":"api","environment":"staging"}`
)

// What a server that speaks the guide's tasks declares is what one of 2025-11-25
// does.
func TestPatternsCapabilities(t *testing.T) {
	rules.Covers(t, "D-01")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		for _, revisions := range [][]string{onlyPatterns, withPatterns} {
			url, _ := serveWith(t, setup{bearer: true, options: mcptask.Options{Revisions: revisions}})
			p := newGuide(t, url, "a")
			c, err := checker()
			if err != nil {
				t.Fatal(err)
			}
			capabilities, err := json.Marshal(p.opened.get("capabilities"))
			if err != nil {
				t.Fatal(err)
			}
			for _, revision := range []string{legacyRevision, wirecheck.Patterns} {
				if err := c.Fits(revision, "ServerCapabilities", capabilities); err != nil {
					t.Error(err)
				}
			}
			got, err := json.Marshal(p.opened.get("capabilities", "tasks"))
			if want := `{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`; err != nil || string(got) != want {
				t.Errorf("%v: %s, want %s", revisions, got, want)
			}
			for name, want := range map[string]string{"run_pipeline": "required", "deploy_service": "optional", "lint_file": "forbidden"} {
				list := p.ask("tools/list", "").ok()
				if !bytes.Contains(list.Result, []byte(`"execution":{"taskSupport":"`+want+`"}`)) {
					t.Errorf("%s is not %s: %s", name, want, list.body)
				}
			}
		}
		url, _ := serveWith(t, setup{options: mcptask.Options{Revisions: onlyPatterns}})
		got, err := json.Marshal(newGuide(t, url, "").opened.get("capabilities", "tasks"))
		if want := `{"cancel":{},"requests":{"tools":{"call":{}}}}`; err != nil || string(got) != want { // there is nobody whose list it is
			t.Errorf("anonymous: %s, want %s", got, want)
		}
	})
}

// A call becomes a task by the ID that it gives it, which is its key too.
func TestPatternsCreate(t *testing.T) {
	rules.Covers(t, "D-05", "D-07", "D-08", "D-18")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		for _, revisions := range [][]string{onlyPatterns, withPatterns} {
			url, _ := serveWith(t, setup{bearer: true, options: mcptask.Options{Revisions: revisions}})
			p := newGuide(t, url, "a")
			r := p.begin("task-001", "run_pipeline", endlessRun)
			if r.status != http.StatusOK { // a body with 202 nobody would read (T-03)
				t.Errorf("HTTP %d", r.status)
			}
			var created map[string]map[string]map[string]any
			if err := json.Unmarshal(r.ok().Result, &created); err != nil || len(created) != 1 || len(created["_meta"]) != 1 {
				t.Fatalf("%v: %s", err, r.body)
			}
			task := created["_meta"]["task"]
			for _, name := range []string{"createdAt", "lastUpdatedAt"} {
				at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(task[name]))
				if err != nil || time.Since(at) > time.Minute || at.Location() != time.UTC {
					t.Errorf("%s is %v", name, task[name])
				}
				delete(task, name)
			}
			if want := map[string]any{"id": "task-001", "status": "working", "pollInterval": 2000.0, "ttl": 86400.0}; !reflect.DeepEqual(task, want) {
				t.Errorf("%v, want %v", task, want)
			}
			// The same call finds the task, in another session too.
			again := newGuide(t, url, "a")
			for _, g := range []guide{p, again} {
				if same := g.begin("task-001", "run_pipeline", endlessRun).ok(); same.get("_meta", "task", "createdAt") != r.get("_meta", "task", "createdAt") {
					t.Errorf("another task: %s", same.body)
				}
			}
			if n := len(p.ask("tasks/list", "").ok().get("tasks").([]any)); n != 1 {
				t.Errorf("%d tasks", n)
			}
			// Another call does not get it.
			p.begin("task-001", "run_pipeline", brokenRun).want(http.StatusOK, invalidParams)
			p.begin("task-001", "deploy_service", staging).want(http.StatusOK, invalidParams)
			p.about("tasks/cancel", "task-001").ok()
			if r := p.begin("task-001", "run_pipeline", endlessRun).ok(); r.text("_meta", "task", "status") != "cancelled" {
				t.Errorf("%s", r.body)
			}
		}
	})
}

// Which tools take an ID, and which need one.
func TestPatternsTaskSupport(t *testing.T) {
	rules.Covers(t, "D-03", "D-04")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		for _, revisions := range [][]string{onlyPatterns, withPatterns} {
			url, _ := serveWith(t, setup{bearer: true, options: mcptask.Options{Revisions: revisions}})
			p := newGuide(t, url, "a")
			p.begin("t", "lint_file", `{"path":"main.go"}`).want(http.StatusOK, methodNotFound)
			p.begin("t", "sdk_tool", `{}`).want(http.StatusOK, methodNotFound)
			p.ask("tools/call", `{"name":"run_pipeline","arguments":`+endlessRun+`}`).want(http.StatusOK, methodNotFound)
			for _, call := range []string{`{"name":"lint_file","arguments":{"path":"main.go"}}`, `{"name":"sdk_tool","arguments":{}}`,
				`{"name":"deploy_service","arguments":` + staging + `}`, `{"name":"deploy_service","arguments":` + staging + `,"_meta":{}}`} {
				if r := p.ask("tools/call", call).ok(); r.get("content") == nil || r.get("_meta", "task") != nil {
					t.Errorf("%s: %s", call, r.body)
				}
			}
			p.begin("t", "deploy_service", staging).ok()
			p.reaches("t", "completed")
			p.begin("u", "deploy_service", `{"service":""}`).want(http.StatusOK, invalidParams)
			p.about("tasks/get", "u").want(http.StatusOK, invalidParams)
		}
	})
}

// IDs that no task can have, and requests that are of another form.
func TestPatternsMalformed(t *testing.T) {
	rules.Covers(t, "D-15")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		for _, revisions := range [][]string{onlyPatterns, withPatterns} {
			url, _ := serveWith(t, setup{bearer: true, options: mcptask.Options{Revisions: revisions}})
			p := newGuide(t, url, "a")
			for _, id := range []string{`5`, `null`, `true`, `{}`, `["t"]`, `{"taskId":"t"}`, `""`, `"a\u0000b"`, `"a\nb"`, `"\u007f"`, `"\u0085"`,
				`"` + strings.Repeat("x", 257) + `"`, `"` + strings.Repeat("x", 10<<10) + `"`} {
				for _, tool := range []string{"run_pipeline", "deploy_service"} {
					r := p.ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"taskId":%s}}`, tool, endlessRun, id)).want(http.StatusOK, invalidParams)
					if r.Error != nil && !strings.Contains(r.Error.Message, "_meta.taskId") {
						t.Errorf("%.80s: %s", id, r.body)
					}
				}
			}
			for _, id := range []string{`"x"`, `"😀 ü"`, `"` + strings.Repeat("x", 256) + `"`, `" "`, `"../../etc/passwd"`, `"a' OR 1=1"`} {
				p.ask("tools/call", fmt.Sprintf(`{"name":"deploy_service","arguments":%s,"_meta":{"taskId":%s}}`, staging, id)).ok()
				p.ask("tasks/get", `{"id":`+id+`}`).ok()
			}
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
				for _, params := range []string{`{"id":5}`, `{"id":null}`, `{"id":{}}`, `{"id":""}`, `{"id":"nobody's"}`, `{"id":"a\u0000"}`,
					`{"id":"` + strings.Repeat("x", 10<<10) + `"}`} {
					p.ask(method, params).want(http.StatusOK, invalidParams)
				}
				p.ask(method, `{}`).want(http.StatusOK, invalidParams)
				p.ask(method, ``).want(http.StatusOK, invalidParams)
				p.ask(method, `[]`).want(http.StatusOK, invalidParams)
				p.ask(method, `{"ID":"x"}`).want(http.StatusOK, invalidParams)
			}
			p.ask("tasks/update", `{"id":"x"}`).want(http.StatusOK, methodNotFound)
			p.ask("tasks/delete", `{"id":"x"}`).want(http.StatusOK, methodNotFound)
			p.ask("tools/call", `{"name":"deploy_service","arguments":`+staging+`,"_meta":{"taskId":"t","taskId":"u"}}`).want(http.StatusBadRequest, invalidParams)
			p.ask("tasks/get", `{"id":"x","id":"x"}`).want(http.StatusBadRequest, invalidParams)
			if r := p.ask("tools/call", `{"name":"deploy_service","arguments":`+staging+`,"_meta":{"taskID":"t"}}`).ok(); r.get("_meta", "task") != nil {
				t.Errorf("%s", r.body) // it is another member
			}
		}
	})
}

// What tasks/get and tasks/result say of a task that goes on and of one that has
// ended, in each way.
func TestPatternsResult(t *testing.T) {
	rules.Covers(t, "D-09", "D-11", "D-12", "D-13", "D-14")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{bearer: true, options: mcptask.Options{Revisions: withPatterns}})
		p := newGuide(t, url, "a")
		members := func(r *response) (names string) {
			t.Helper()
			for _, name := range []string{"id", "status", "createdAt", "lastUpdatedAt", "pollInterval", "ttl", "result", "error"} {
				if r.ok().get(name) != nil {
					names += name + " "
				}
			}
			return names
		}
		const state = "id status createdAt lastUpdatedAt pollInterval "
		plain := p.ask("tools/call", `{"name":"raw","arguments":{}}`).ok()
		toolError := p.call("tools/call", map[string]any{"name": "two_notes", "arguments": map[string]any{}}).ok() // nobody can be asked
		for _, test := range []struct {
			id, tool, arguments, status string
			result                      json.RawMessage
			err                         string
		}{
			{"completes", "raw", `{}`, "completed", plain.Result, ""},
			{"a tool error completes", "two_notes", `{}`, "completed", toolError.Result, ""},
			{"fails", "run_pipeline", refusedRun, "failed", nil, `{"code":-32050,"message":"the repository is locked"}`},
			{"fails with data", "locked", `{}`, "failed", nil, `{"code":-32055,"message":"the repository is locked"}`},
		} {
			p.begin(test.id, test.tool, test.arguments).ok()
			get := p.reaches(test.id, test.status)
			ended := p.about("tasks/result", test.id).ok()
			name, body := "result", string(test.result)
			if test.result == nil {
				name, body = "error", test.err
			}
			if got := members(get); got != state+name+" " {
				t.Errorf("%s: tasks/get has %s", test.id, got)
			}
			if got := members(ended); got != "id status "+name+" " {
				t.Errorf("%s: tasks/result has %s", test.id, got)
			}
			for _, r := range []*response{get, ended} {
				if r.text("id") != test.id || r.text("status") != test.status {
					t.Errorf("%s", r.body)
				}
				var want any
				decoder := json.NewDecoder(strings.NewReader(body))
				decoder.UseNumber()
				if err := decoder.Decode(&want); err != nil {
					t.Fatal(err)
				}
				if got := r.get(name); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %v, want %v", test.id, got, want)
				}
			}
			p.about("tasks/cancel", test.id).want(http.StatusOK, invalidParams) // D-09
			if r := p.about("tasks/get", test.id).ok(); r.text("status") != test.status {
				t.Errorf("after a cancel: %s", r.body)
			}
		}
		p.begin("goes on", "run_pipeline", endlessRun).ok()
		if got := members(p.reaches("goes on", "working")); got != state {
			t.Errorf("tasks/get has %s", got)
		}
		began := time.Now()
		p.about("tasks/result", "goes on").want(http.StatusOK, invalidParams)
		if waited := time.Since(began); waited > patience/2 {
			t.Errorf("tasks/result has waited for %v", waited)
		}
		cancelled := p.about("tasks/cancel", "goes on").ok()
		if got := members(cancelled); got != "id status " || cancelled.text("status") != "cancelled" || cancelled.text("id") != "goes on" {
			t.Errorf("%s", cancelled.body)
		}
		if got := members(p.reaches("goes on", "cancelled")); got != state { // D-14
			t.Errorf("tasks/get has %s", got)
		}
		for range 2 { // cancelled twice
			p.about("tasks/cancel", "goes on").want(http.StatusOK, invalidParams)
			p.about("tasks/result", "goes on").want(http.StatusOK, invalidParams)
		}
	})
}

// The list has all tasks of the caller, whatever made them, without params.
func TestPatternsList(t *testing.T) {
	rules.Covers(t, "D-10", "D-23")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		for _, revisions := range [][]string{onlyPatterns, withPatterns} {
			url, _ := serveWith(t, setup{bearer: true, options: mcptask.Options{Revisions: revisions}})
			a, b := newGuide(t, url, "a"), newGuide(t, url, "b")
			for i := range 2 * mcptask.PageSize {
				a.begin(fmt.Sprint("t", i), "deploy_service", staging).ok()
				time.Sleep(time.Millisecond) // the list is in the order of creation
			}
			b.begin("b's", "run_pipeline", endlessRun).ok()
			for _, params := range []string{"", `{}`} {
				r := a.ask("tasks/list", params).ok()
				list, _ := r.get("tasks").([]any)
				if len(list) != 2*mcptask.PageSize || r.get("nextCursor") != nil {
					t.Fatalf("%d tasks: %.300s", len(list), r.body)
				}
				for i, task := range list {
					if got := task.(map[string]any)["id"]; got != fmt.Sprint("t", i) {
						t.Errorf("%v at %d", got, i)
					}
				}
				if bytes.Contains(r.body, []byte(`"result":{"content"`)) {
					t.Error("a list with results")
				}
			}
			if list := b.ask("tasks/list", "").ok().get("tasks").([]any); len(list) != 1 {
				t.Errorf("b has %v", list)
			}
		}
	})
}

// A task is its owner's, under whatever name (T-11: the guide's session is the
// principal's here).
func TestPatternsOwner(t *testing.T) {
	rules.Covers(t, "D-15", "D-20", "D-23")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{bearer: true, options: mcptask.Options{Revisions: withPatterns}})
		a, b := newGuide(t, url, "a"), newGuide(t, url, "b")
		a.begin("same", "run_pipeline", endlessRun).ok()
		id := a.create("run_pipeline", pipelineArgs("endless")) // 2025-11-25 in the same session
		none := b.about("tasks/get", "nobody's").want(http.StatusOK, invalidParams)
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			for _, task := range []string{"same", id} {
				if r := b.about(method, task).want(http.StatusOK, invalidParams); r.Error != nil && r.Error.Message != none.Error.Message {
					t.Errorf("%s: %s", method, r.body)
				}
			}
		}
		// Under the same ID everybody has a task of their own.
		b.begin("same", "run_pipeline", refusedRun).ok()
		b.reaches("same", "failed")
		a.reaches("same", "working")
		a.about("tasks/cancel", "same").ok()
		if r := b.about("tasks/get", "same").ok(); r.text("status") != "failed" {
			t.Errorf("%s", r.body)
		}
		// So have anonymous callers, by their sessions.
		url, _ = serveWith(t, setup{options: mcptask.Options{Revisions: withPatterns}})
		a, b = newGuide(t, url, ""), newGuide(t, url, "")
		a.begin("same", "run_pipeline", endlessRun).ok()
		b.about("tasks/get", "same").want(http.StatusOK, invalidParams)
		b.begin("same", "run_pipeline", endlessRun).ok()
		b.about("tasks/cancel", "same").ok()
		a.reaches("same", "working")
		a.ask("tasks/list", "").want(http.StatusOK, methodNotFound)
	})
}

// What shows 2025-11-25 is of 2025-11-25, whatever of the guide is beside it.
func TestPatternsBeside(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		const both = `{"name":"deploy_service","arguments":` + staging + `,"task":{},"_meta":{"taskId":"mine"}}`
		url, _ := serveWith(t, setup{bearer: true, options: mcptask.Options{Revisions: withPatterns}})
		p := newGuide(t, url, "a")
		r := p.ask("tools/call", both).ok()
		id := r.text("task", "taskId")
		if id == "" || id == "mine" {
			t.Fatalf("%s", r.body)
		}
		if r := p.ask("tasks/get", `{"taskId":"`+id+`","id":"mine"}`).ok(); r.text("taskId") != id {
			t.Errorf("%s", r.body)
		}
		p.about("tasks/get", "mine").want(http.StatusOK, invalidParams)
		url, _ = serveWith(t, setup{bearer: true, options: mcptask.Options{Revisions: onlyPatterns}})
		if r := newGuide(t, url, "a").ask("tools/call", both).ok(); r.get("content") == nil || r.get("task") != nil {
			t.Errorf("%s", r.body)
		}
	})
}

// Where the server's options do not name the guide, nothing of it means anything.
func TestPatternsOff(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{bearer: true})
		p := newGuide(t, url, "a")
		if r := p.begin("t", "deploy_service", staging).ok(); r.get("content") == nil || r.get("_meta") != nil {
			t.Errorf("%s", r.body)
		}
		p.begin("t", "run_pipeline", endlessRun).want(http.StatusOK, methodNotFound) // of 2025-11-25: without params.task
		p.ask("tools/call", `{"name":"deploy_service","arguments":`+staging+`,"_meta":{"taskId":5}}`).ok()
		id := p.create("run_pipeline", pipelineArgs("endless"))
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			p.about(method, id).want(http.StatusOK, invalidParams)
		}
		p.until(id, "working")
		if r := p.call("tasks/list", nil).ok(); !bytes.Contains(r.Result, []byte(`"taskId":"`+id+`"`)) {
			t.Errorf("%s", r.body)
		}
	})
}
