package gosdk

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// guided sends a request as a task with this ID.
func (a *inquirer) guided(method, params, id string) reply {
	a.t.Helper()
	return a.ask(method, strings.TrimSuffix(params, "}")+`,"_meta":{"taskId":`+strconv.Quote(id)+`}}`)
}

// A client that speaks the guide runs requests as tasks under the server's IDs.
func TestPatternsReceiver(t *testing.T) {
	rules.Covers(t, "D-01", "D-07", "D-08", "D-11", "D-12", "D-14", "D-18", "D-25")
	eachWayIn(t, mcptask.RevisionTaskPatterns, nil, func(t *testing.T, a *inquirer) {
		if tasks, _ := a.declared(); tasks != `{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}` {
			t.Errorf("declared %s", tasks)
		}
		for method, params := range map[string]string{"elicitation/create": elicit("now", ""), "sampling/createMessage": sample("now", "")} {
			created := a.guided(method, params, method).ok()
			if created.text("_meta", "task", "id") != method || created.text("_meta", "task", "status") != "working" || created.get("_meta", "task", "ttl") != 86400.0 {
				t.Errorf("%s", created.Result)
			}
			a.wantStatus(method, "completed")
			again := a.guided(method, params, method).ok()
			if again.get("_meta", "task", "createdAt") != created.get("_meta", "task", "createdAt") {
				t.Errorf("%s is another task than %s", again.Result, created.Result)
			}
			ended := a.task("tasks/result", method).ok()
			if names, _ := ended.get().(map[string]any); len(names) != 3 || ended.text("id") != method || ended.get("result") == nil {
				t.Errorf("%s", ended.Result)
			}
			plain := a.ask(method, params).ok()
			var inner struct{ Result json.RawMessage }
			if err := json.Unmarshal(ended.Result, &inner); err != nil || len(inner.Result) < 10 || (reply{Result: inner.Result}).text("action") != plain.text("action") {
				t.Errorf("%s, plainly %s", ended.Result, plain.Result)
			}
		}
		if n := len(a.person.begun); n != 4 { // two tasks, and the plain ones
			t.Errorf("the person was asked %d times", n)
		}
		a.guided("elicitation/create", elicit("other", ""), "elicitation/create").want(mcptask.CodeInvalidParams)
		a.guided("sampling/createMessage", sample("other", ""), "elicitation/create").want(mcptask.CodeInvalidParams)
		a.guided("elicitation/create", elicit("wait", ""), "w").ok()
		if status := a.task("tasks/get", "w").text("status"); status != "working" {
			t.Errorf("the task is %s", status)
		}
		a.task("tasks/result", "w").want(mcptask.CodeInvalidParams)
		if r := a.task("tasks/cancel", "w").ok(); r.text("status") != "cancelled" || r.text("id") != "w" {
			t.Errorf("%s", r.Result)
		}
		a.wantStatus("w", "cancelled")
		a.task("tasks/cancel", "w").want(mcptask.CodeInvalidParams)
		if list := a.ask("tasks/list", "").ok().get("tasks").([]any); len(list) != 3 {
			t.Errorf("%v", list)
		}
	})
}

// The client refuses malformed requests, and they do no harm.
func TestPatternsReceiverHostile(t *testing.T) {
	rules.Covers(t, "D-13", "D-15")
	eachWayIn(t, mcptask.RevisionTaskPatterns, nil, func(t *testing.T, a *inquirer) {
		for _, id := range []string{`5`, `null`, `""`, `{}`, `"a\u0000"`, `"` + strings.Repeat("x", 10<<10) + `"`} {
			a.ask("elicitation/create", strings.TrimSuffix(elicit("wait", ""), "}")+`,"_meta":{"taskId":`+id+`}}`).want(mcptask.CodeInvalidParams)
			if id != `""` {
				a.ask("tasks/get", `{"id":`+id+`}`).want(mcptask.CodeInvalidParams)
			}
		}
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			a.ask(method, `{}`).want(mcptask.CodeInvalidParams)
			a.ask(method, ``).want(mcptask.CodeInvalidParams)
			a.ask(method, `{"taskId":"x"}`).want(mcptask.CodeInvalidParams)
			a.task(method, "nobody's").want(mcptask.CodeInvalidParams)
		}
		// params.task means nothing in the guide.
		if r := a.ask("sampling/createMessage", sample("now", `,"task":{}`)).ok(); r.get("task") != nil {
			t.Errorf("%s", r.Result)
		}
		a.ask("roots/list", `{"_meta":{"taskId":"r"}}`)
		a.task("tasks/get", "r").want(mcptask.CodeInvalidParams)
		// A request that fails is a failed task.
		a.guided("sampling/createMessage", sample("fail", ""), "f").ok()
		a.wantStatus("f", "failed")
		if r := a.task("tasks/result", "f").ok(); r.text("status") != "failed" || r.text("error", "message") == "" || r.get("error", "code") != -32603.0 {
			t.Errorf("%s", r.Result)
		}
		a.guided("sampling/createMessage", sample("panic", ""), "p").ok()
		a.wantStatus("p", "failed")
		a.guided("elicitation/create", elicit("decline", ""), "d").ok()
		a.wantStatus("d", "completed")
		if r := a.task("tasks/result", "d").ok(); r.text("result", "action") != "decline" {
			t.Errorf("%s", r.Result)
		}
	})
}
