package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// What the release candidate of 2025-11-25 does otherwise than the release. What
// the two share is tested beside each other, in the files of the release.

// What initialize declares, and what tools/list says of each tool.
func TestCandidateDeclares(t *testing.T) {
	rules.Covers(t, "B-01", "B-02", "B-14")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		hinted := mcptask.NewTool(mcptask.ToolSpec{Name: "hinted", InputSchema: openObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional},
			Annotations: mcptask.Annotations{ReadOnly: mcptask.Hint(true)}},
			func(context.Context, *mcptask.Task, struct{}) (string, error) { return "", nil })
		url, _ := serveWith(t, setup{revision: candidateRevision, bearer: true, tools: []mcptask.Tools{{Service: "Hinted", Impl: 1, Tools: []mcptask.Tool{hinted}}}})
		open, _ := serveWith(t, setup{revision: candidateRevision})
		for _, c := range []struct{ name, url, token, version, want string }{
			{"a principal", url, "a", legacyRevision, `{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`},
			{"anonymous", open, "", legacyRevision, `{"cancel":{},"requests":{"tools":{"call":{}}}}`},
			{"a revision before", url, "a", "2025-06-18", `null`},
		} {
			p := newPeer(t, at(c.url, candidateRevision), c.version, c.token)
			if got, err := json.Marshal(p.opened.get("capabilities", "tasks")); err != nil || string(got) != c.want {
				t.Errorf("%s: %s, want %s", c.name, got, c.want)
			}
		}
		want := map[string]any{
			"run_pipeline": map[string]any{"taskHint": "always"}, "deploy_service": map[string]any{"taskHint": "optional"},
			"lint_file": map[string]any{"taskHint": "never"}, "hinted": map[string]any{"taskHint": "optional", "readOnlyHint": true, "idempotentHint": false},
			"sdk_tool": map[string]any(nil),
		}
		for _, tool := range newPeer(t, url, candidateRevision, "a").call("tools/list", nil).ok().get("tools").([]any) {
			tool := tool.(map[string]any)
			name := tool["name"].(string)
			annotations, _ := tool["annotations"].(map[string]any)
			if expected, ok := want[name]; ok && !reflect.DeepEqual(any(annotations), expected) || tool["execution"] != nil {
				t.Errorf("%s: %v and %v, want %v", name, annotations, tool["execution"], expected)
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Errorf("not listed: %v", want)
		}
	})
}

// A whole conversation as it is on the wire, over HTTP.
func TestCandidateLiteral(t *testing.T) {
	rules.Covers(t, "B-15", "B-17", "B-24", "B-27", "B-40", "B-50", "B-55", "B-73")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: candidateRevision, bearer: true})
		p := newPeer(t, url, candidateRevision, "a")
		// exchange posts a message and compares the reply, with the ID and the time of
		// the task cut out.
		var id, created string
		exchange := func(request, want string) *response {
			t.Helper()
			r := p.post(strings.ReplaceAll(request, "ID", id))
			p.check(methodOf(t, request), r)
			if id == "" {
				id, created = r.text("task", "taskId"), r.text("task", "createdAt")
				if at, err := time.Parse(time.RFC3339, created); err != nil || time.Since(at).Abs() > time.Minute {
					t.Errorf("created at %q", created)
				}
			}
			got := strings.NewReplacer(id, "ID", created, "NOW").Replace(string(r.body))
			if !sameJSON(got, want) {
				t.Errorf("%s\ngives %s\nnot   %s", request, got, want)
			}
			return r
		}
		exchange(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_pipeline","arguments":{"repository":"r","branch":"endless"},"task":{"ttl":60000}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"ID","status":"working","createdAt":"NOW","ttl":60000,"pollInterval":2000}}}`)
		exchange(`{"jsonrpc":"2.0","id":"g","method":"tasks/get","params":{"taskId":"ID"}}`,
			`{"jsonrpc":"2.0","id":"g","result":{"taskId":"ID","status":"working","createdAt":"NOW","ttl":60000,"pollInterval":2000}}`)
		exchange(`{"jsonrpc":"2.0","id":2,"method":"tasks/list"}`,
			`{"jsonrpc":"2.0","id":2,"result":{"tasks":[{"taskId":"ID","status":"working","createdAt":"NOW","ttl":60000,"pollInterval":2000}]}}`)
		exchange(`{"jsonrpc":"2.0","id":3,"method":"tasks/cancel","params":{"taskId":"ID"}}`,
			`{"jsonrpc":"2.0","id":3,"result":{"taskId":"ID","status":"cancelled","statusMessage":"The task was cancelled.","createdAt":"NOW","ttl":60000,"pollInterval":2000}}`)
		exchange(`{"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":"ID"}}`,
			`{"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"the task was cancelled","data":{"reason":"cancelled","taskId":"ID"}}}`)
		id = ""
		exchange(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"raw","arguments":{},"task":{}}}`,
			`{"jsonrpc":"2.0","id":5,"result":{"task":{"taskId":"ID","status":"working","createdAt":"NOW","ttl":86400000,"pollInterval":100}}}`)
		plain := p.call("tools/call", map[string]any{"name": "raw", "arguments": map[string]any{}}).ok().get().(map[string]any)
		result := p.task("tasks/result", id).ok().get().(map[string]any)
		meta := result["_meta"].(map[string]any)
		if related := fmt.Sprint(meta["io.modelcontextprotocol/related-task"]); related != "map[taskId:"+id+"]" {
			t.Errorf("related to %s", related)
		}
		if delete(meta, "io.modelcontextprotocol/related-task"); !reflect.DeepEqual(result, plain) {
			t.Errorf("%v\nplainly %v", result, plain)
		}
	})
}

func methodOf(t *testing.T, request string) string {
	t.Helper()
	var m struct{ Method string }
	if err := json.Unmarshal([]byte(request), &m); err != nil {
		t.Fatal(err)
	}
	return m.Method
}

// Any request may carry task; only tools/call does anything with it.
func TestCandidateTaskOnAnyRequest(t *testing.T) {
	rules.Covers(t, "B-05", "B-21", "B-22")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: candidateRevision, bearer: true})
		for _, task := range []any{map[string]any{}, map[string]any{"ttl": 60000}, map[string]any{"ttl": nil}, nil, 5, []any{}} {
			p := &peer{t: t, url: at(url, candidateRevision), revision: candidateRevision, token: "a", client: &http.Client{Transport: wiretest.OneOff}}
			opened := p.call("initialize", map[string]any{"protocolVersion": legacyRevision, "capabilities": map[string]any{},
				"clientInfo": map[string]any{"name": "wire", "version": "1"}, "task": task}).ok()
			if p.session = opened.header.Get("Mcp-Session-Id"); opened.get("task") != nil || opened.text("protocolVersion") != legacyRevision {
				t.Errorf("initialize: %s", opened.body)
			}
			for method, params := range map[string]map[string]any{
				"tools/list": {}, "ping": {}, "tasks/list": {}, "logging/setLevel": {"level": "error"},
			} {
				params["task"] = task
				if r := p.call(method, params).ok(); r.get("task") != nil {
					t.Errorf("%s with %v: %s", method, task, r.body)
				}
			}
			if tasks := p.call("tasks/list", nil).ok().get("tasks").([]any); len(tasks) != 0 {
				t.Errorf("%v has made %v", task, tasks)
			}
		}
		p := newPeer(t, url, candidateRevision, "a")
		id := p.create("ponder", nil)
		for _, method := range []string{"tasks/get", "tasks/result"} { // of requests about tasks least of all
			if r := p.call(method, map[string]any{"taskId": id, "task": map[string]any{}}).ok(); r.get("task") != nil {
				t.Errorf("%s: %s", method, r.body)
			}
		}
		if tasks := tasksOf(t, p); len(tasks) != 1 {
			t.Errorf("%v", tasks)
		}
	})
}

// A notifications/cancelled that names a task cancels none, however it does, and
// harms nobody.
func TestCandidateCancelledTask(t *testing.T) {
	rules.Covers(t, "B-69", "B-70")
	t.Parallel()
	const said = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":%s}`
	forms := []string{`{"taskId":"ID"}`, `{"taskId":"ID","reason":"enough"}`, `{"requestId":99,"taskId":"ID"}`, `{"requestId":null,"taskId":"ID"}`,
		`{"taskId":5}`, `{"taskId":null}`, `{"taskId":["ID"]}`, `{}`}
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url, _ := serveWith(t, setup{revision: candidateRevision})
			p := newPeer(t, url, candidateRevision, "")
			id := p.create("run_pipeline", pipelineArgs("endless"))
			for _, form := range forms {
				r := p.post(fmt.Sprintf(said, strings.ReplaceAll(form, "ID", id)))
				if well := strings.Contains(form, `"ID"`) && !strings.Contains(form, "["); r.status != http.StatusAccepted && (well || r.status != http.StatusBadRequest) {
					t.Errorf("%s: %d %s", form, r.status, r.body)
				}
				if status := p.task("tasks/get", id).ok().text("status"); status != "working" {
					t.Errorf("%s: the task is %s", form, status)
				}
			}
			p.task("tasks/cancel", id).ok()
		})
	})
	t.Run("pipe", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			p := candidatePipe(t)
			p.initialize()
			id := p.endless()
			for _, form := range forms {
				p.say(said, strings.ReplaceAll(form, "ID", id))
				if line := p.ask(`{"jsonrpc":"2.0","id":"g","method":"tasks/get","params":{"taskId":%q}}`, id); !strings.Contains(line, `"status":"working"`) {
					t.Errorf("%s: %s", form, line)
				}
			}
		})
	})
}

// candidatePipe is a client on pipes of a server that speaks the candidate in the
// place of the release.
func candidatePipe(t *testing.T) *piped {
	t.Helper()
	tasks, err := mcptask.NewServer(mcptask.Options{Revisions: []string{candidateRevision}, Limits: hurried}, endlessTools())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tasks.Close() })
	return pipeIn(t, candidateRevision, tasks, 100)
}

// What is malformed is refused, and nothing that comes of it is kept.
func TestCandidateHostile(t *testing.T) {
	rules.Covers(t, "B-25", "B-71", "B-77", "B-78", "B-80")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: candidateRevision, bearer: true})
		p := newPeer(t, url, candidateRevision, "a")
		for _, task := range []string{`null`, `[]`, `""`, `5`, `true`, `{"ttl":null}`, `{"ttl":-1}`, `{"ttl":1.5}`, `{"ttl":"1"}`, `{"ttl":1e400}`} {
			p.call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": json.RawMessage(task)}).want(200, invalidParams)
		}
		if tasks := tasksOf(t, p); len(tasks) != 0 {
			t.Errorf("%v", tasks)
		}
		made := p.call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{"taskId": "mine", "status": "completed", "extra": []any{1}},
			"_meta": map[string]any{"taskId": "mine", "modelcontextprotocol.io/task": map[string]any{"taskId": "mine"}}}).ok()
		id := made.text("task", "taskId")
		if id == "mine" || made.text("task", "status") != "working" {
			t.Errorf("%s", made.body)
		}
		p.until(id, "completed")
		bad := []any{"mine", "", " " + id, id + "\x00", "\r\n" + id, strings.ToLower(id), strings.Repeat("A", 1<<20), "\u2028", "../" + id, 5, nil, []any{id}, map[string]any{"taskId": id}}
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			for _, taskID := range bad {
				if r := p.call(method, map[string]any{"taskId": taskID}).want(200, invalidParams); len(r.body) > 1<<19 {
					t.Errorf("%s answers with %d bytes", method, len(r.body))
				}
			}
			p.call(method, map[string]any{"id": id}).want(200, invalidParams) // as another revision says it
		}
		for range 2 {
			p.task("tasks/cancel", id).want(200, invalidParams)
		}
		p.call("tasks/list", map[string]any{"cursor": id}).want(200, invalidParams)
		for _, method := range []string{"tasks/delete", "tasks/update", "tasks/nothing"} { // of other revisions, and of none
			p.task(method, id).want(200, methodNotFound)
		}
	})
}
