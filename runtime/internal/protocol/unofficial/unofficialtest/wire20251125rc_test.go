package unofficialtest

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
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// The differences between the release candidate of 2025-11-25 and the release. The files of the release test the common
// parts.

// TestCandidateDeclares checks the capabilities in initialize, and the task support in tools/list.
func TestCandidateDeclares(t *testing.T) {
	rules.Covers(t, "B-01", "B-02", "B-14")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		hinted := mcptask.NewTool(mcptask.ToolSpec{Name: "hinted", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional},
			Annotations: mcptask.Annotations{ReadOnly: mcptask.Hint(true)}},
			func(context.Context, *mcptask.Task, struct{}) (string, error) { return "", nil })
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: wiretest.CandidateRevision, Bearer: true, Tools: []mcptask.Tools{{Service: "Hinted", Impl: 1, Tools: []mcptask.Tool{hinted}}}})
		open, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: wiretest.CandidateRevision})
		for _, c := range []struct{ name, url, token, version, want string }{
			{"a principal", url, "a", wiretest.LegacyRevision, `{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`},
			{"anonymous", open, "", wiretest.LegacyRevision, `{"cancel":{},"requests":{"tools":{"call":{}}}}`},
			{"an earlier revision", url, "a", "2025-06-18", `null`},
		} {
			p := wiretest.NewPeer(t, wiretest.RevisionURL(c.url, wiretest.CandidateRevision), c.version, c.token)
			if got, err := json.Marshal(p.Opened.Get("capabilities", "tasks")); err != nil || string(got) != c.want {
				t.Errorf("%s: %s, want %s", c.name, got, c.want)
			}
		}
		want := map[string]any{
			"run_pipeline": map[string]any{"taskHint": "always"}, "deploy_service": map[string]any{"taskHint": "optional"},
			"lint_file": map[string]any{"taskHint": "never"}, "hinted": map[string]any{"taskHint": "optional", "readOnlyHint": true, "idempotentHint": false},
			"sdk_tool": nil,
		}
		got := map[string]any{} // the tap refuses taskSupport here
		for _, tool := range wiretest.NewPeer(t, url, wiretest.CandidateRevision, "a").Call("tools/list", nil).OK().Get("tools").([]any) {
			tool := tool.(map[string]any)
			if _, ok := want[tool["name"].(string)]; ok {
				got[tool["name"].(string)] = tool["annotations"]
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// TestCandidateLiteral checks a whole conversation, byte by byte, over HTTP.
func TestCandidateLiteral(t *testing.T) {
	rules.Covers(t, "B-15", "B-17", "B-24", "B-27", "B-40", "B-50", "B-55", "B-73")
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: wiretest.CandidateRevision, Bearer: true}, func(t *testing.T, p *wiretest.Peer) {
		// exchange posts a message and compares the reply, with the ID and the time of
		// the task cut out.
		var id, created string
		exchange := func(request, want string) *wiretest.Response {
			t.Helper()
			r := p.Post(strings.ReplaceAll(request, "ID", id))
			p.Check(methodOf(t, request), r)
			if id == "" {
				id, created = r.Text("task", "taskId"), r.Text("task", "createdAt")
				if at, err := time.Parse(time.RFC3339, created); err != nil || time.Since(at).Abs() > time.Minute {
					t.Errorf("created at %q", created)
				}
			}
			got := strings.NewReplacer(id, "ID", created, "NOW").Replace(string(r.Body))
			if !wiretest.SameJSON(got, want) {
				t.Errorf("%s\ngives %s\nnot   %s", request, got, want)
			}
			return r
		}
		exchange(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"endless"},"task":{"ttl":90000000}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"ID","status":"working","createdAt":"NOW","ttl":90000000,"pollInterval":2000}}}`)
		exchange(`{"jsonrpc":"2.0","id":"g","method":"tasks/get","params":{"taskId":"ID"}}`,
			`{"jsonrpc":"2.0","id":"g","result":{"taskId":"ID","status":"working","createdAt":"NOW","ttl":90000000,"pollInterval":2000}}`)
		exchange(`{"jsonrpc":"2.0","id":2,"method":"tasks/list"}`,
			`{"jsonrpc":"2.0","id":2,"result":{"_meta":{"io.github.mcptaskgen/tool":{"ID":"run_pipeline"}},"tasks":[{"taskId":"ID","status":"working","createdAt":"NOW","ttl":90000000,"pollInterval":2000}]}}`)
		exchange(`{"jsonrpc":"2.0","id":3,"method":"tasks/cancel","params":{"taskId":"ID"}}`,
			`{"jsonrpc":"2.0","id":3,"result":{"taskId":"ID","status":"cancelled","statusMessage":"The task was cancelled.","createdAt":"NOW","ttl":90000000,"pollInterval":2000}}`)
		exchange(`{"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":"ID"}}`,
			`{"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"the task was cancelled","data":{"reason":"cancelled","taskId":"ID"}}}`)
		id = ""
		exchange(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"raw","arguments":{},"task":{}}}`,
			`{"jsonrpc":"2.0","id":5,"result":{"task":{"taskId":"ID","status":"working","createdAt":"NOW","ttl":86400000,"pollInterval":100}}}`)
		result := p.Task("tasks/result", id).WantMembers(`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":%q}}}`, id)
		result.WantMembers("%s", p.CallTool("raw", map[string]any{}).OK().Result)
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

// TestCandidateTaskOnAnyRequest checks that every request may have the member task, and that only
// tools/call uses it.
func TestCandidateTaskOnAnyRequest(t *testing.T) {
	rules.Covers(t, "B-05", "B-21", "B-22")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: wiretest.CandidateRevision, Bearer: true})
		for _, task := range []any{map[string]any{}, map[string]any{"ttl": 60000}, map[string]any{"ttl": nil}, nil, 5, []any{}} {
			p := &wiretest.Peer{T: t, URL: wiretest.RevisionURL(url, wiretest.CandidateRevision), Revision: wiretest.CandidateRevision, Token: "a", Client: &http.Client{Transport: memnet.OneOff}}
			opened := p.Call("initialize", map[string]any{"protocolVersion": wiretest.LegacyRevision, "capabilities": map[string]any{},
				"clientInfo": map[string]any{"name": "wire", "version": "1"}, "task": task}).OK()
			if p.Session = opened.Header.Get("Mcp-Session-Id"); opened.Get("task") != nil || opened.Text("protocolVersion") != wiretest.LegacyRevision {
				t.Errorf("initialize: %s", opened.Body)
			}
			for method, params := range map[string]map[string]any{
				"tools/list": {}, "ping": {}, "tasks/list": {}, "logging/setLevel": {"level": "error"},
			} {
				params["task"] = task
				if r := p.Call(method, params).OK(); r.Get("task") != nil {
					t.Errorf("%s with %v: %s", method, task, r.Body)
				}
			}
			if tasks := p.Call("tasks/list", nil).OK().Get("tasks").([]any); len(tasks) != 0 {
				t.Errorf("%v has made %v", task, tasks)
			}
		}
		p := wiretest.NewPeer(t, url, wiretest.CandidateRevision, "a")
		id := p.Create("ponder", nil)
		for _, method := range []string{"tasks/get", "tasks/result"} { // and requests about tasks least of all
			if r := p.Call(method, map[string]any{"taskId": id, "task": map[string]any{}}).OK(); r.Get("task") != nil {
				t.Errorf("%s: %s", method, r.Body)
			}
		}
		if tasks := wiretest.ListTasks(t, p); len(tasks) != 1 {
			t.Errorf("%v", tasks)
		}
	})
}

// TestCandidateCancelledTask checks that a notifications/cancelled that names a task cancels
// nothing.
func TestCandidateCancelledTask(t *testing.T) {
	rules.Covers(t, "B-69", "B-70")
	t.Parallel()
	const said = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":%s}`
	forms := []string{`{"taskId":"ID"}`, `{"taskId":"ID","reason":"enough"}`, `{"requestId":99,"taskId":"ID"}`, `{"requestId":null,"taskId":"ID"}`,
		`{"taskId":5}`, `{"taskId":null}`, `{"taskId":["ID"]}`, `{}`}
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: wiretest.CandidateRevision})
			p := wiretest.NewPeer(t, url, wiretest.CandidateRevision, "")
			id := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
			for _, form := range forms {
				r := p.Post(fmt.Sprintf(said, strings.ReplaceAll(form, "ID", id)))
				if well := strings.Contains(form, `"ID"`) && !strings.Contains(form, "["); r.Status != http.StatusAccepted && (well || r.Status != http.StatusBadRequest) {
					t.Errorf("%s: %d %s", form, r.Status, r.Body)
				}
				p.Task("tasks/get", id).WantMembers(`{"status":"working"}`)
			}
			p.Task("tasks/cancel", id).OK()
		})
	})
	t.Run("pipe", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			p := candidatePipe(t)
			p.Initialize()
			id := p.StartEndless()
			for _, form := range forms {
				p.Say(said, strings.ReplaceAll(form, "ID", id))
				if line := p.Ask(`{"jsonrpc":"2.0","id":"g","method":"tasks/get","params":{"taskId":%q}}`, id); !strings.Contains(line, `"status":"working"`) {
					t.Errorf("%s: %s", form, line)
				}
			}
		})
	})
}

// candidatePipe is a client on pipes. Its server speaks the candidate in place of the release.
func candidatePipe(t *testing.T) *wiretest.Piped {
	t.Helper()
	tasks, err := taskserver.New(taskserver.Options{Revisions: []string{wiretest.CandidateRevision}, Limits: wiretest.NoPollLimits}, wiretest.EndlessTools())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tasks.Close() })
	return wiretest.PipeToRevision(t, wiretest.CandidateRevision, tasks, 100)
}

// TestCandidateHostile checks that malformed requests are refused and leave nothing behind.
func TestCandidateHostile(t *testing.T) {
	rules.Covers(t, "B-25", "B-71", "B-77", "B-78", "B-80")
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: wiretest.CandidateRevision, Bearer: true}, func(t *testing.T, p *wiretest.Peer) {
		for _, task := range []string{`null`, `[]`, `""`, `5`, `true`, `{"ttl":null}`, `{"ttl":-1}`, `{"ttl":1.5}`, `{"ttl":"1"}`, `{"ttl":1e400}`} {
			p.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": json.RawMessage(task)}).Want(200, wiretest.InvalidParams)
		}
		if tasks := wiretest.ListTasks(t, p); len(tasks) != 0 {
			t.Errorf("%v", tasks)
		}
		made := p.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{"taskId": "mine", "status": "completed", "extra": []any{1}},
			"_meta": map[string]any{"taskId": "mine", "modelcontextprotocol.io/task": map[string]any{"taskId": "mine"}}}).OK()
		id := made.Text("task", "taskId")
		if id == "mine" || made.Text("task", "status") != "working" {
			t.Errorf("%s", made.Body)
		}
		p.Until(id, "completed")
		bad := []any{"mine", "", " " + id, id + "\x00", "\r\n" + id, strings.ToLower(id), strings.Repeat("A", 1<<20), "\u2028", "../" + id, 5, nil, []any{id}, map[string]any{"taskId": id}}
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			for _, taskID := range bad {
				if r := p.Call(method, map[string]any{"taskId": taskID}).Want(200, wiretest.InvalidParams); len(r.Body) > 1<<19 {
					t.Errorf("%s answers with %d bytes", method, len(r.Body))
				}
			}
			p.Call(method, map[string]any{"id": id}).Want(200, wiretest.InvalidParams) // in the words of another revision
		}
		for range 2 {
			p.Task("tasks/cancel", id).Want(200, wiretest.InvalidParams)
		}
		p.Call("tasks/list", map[string]any{"cursor": id}).Want(200, wiretest.InvalidParams)
		for _, method := range []string{"tasks/delete", "tasks/update", "tasks/nothing"} { // of other revisions, and of no revision
			p.Task(method, id).Want(200, wiretest.MethodNotFound)
		}
	})
}
