package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// What initialize declares.
func TestLegacyCapabilities(t *testing.T) {
	rules.Covers(t, "C-01", "C-02", "C-92")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		secured, _ := serveWith(t, setup{bearer: true})
		const call = `"cancel":{},"requests":{"tools":{"call":{}}}`
		for _, test := range []struct{ name, url, revision, token, want string }{
			{"anonymous", url, legacyRevision, "", `{` + call + `}`},
			{"a principal", secured, legacyRevision, "a", `{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`},
			{"an older revision", url, "2025-06-18", "", `null`},
			{"an older revision with a principal", secured, "2025-06-18", "a", `null`},
		} {
			p := newPeer(t, test.url, test.revision, test.token)
			r := p.opened
			got, err := json.Marshal(r.get("capabilities", "tasks"))
			if err != nil || string(got) != test.want || r.text("protocolVersion") != test.revision {
				t.Errorf("%s: %s %s, want %s", test.name, r.text("protocolVersion"), got, test.want)
			}
			if r.get("capabilities", "extensions", "io.modelcontextprotocol/tasks") != nil && test.revision != legacyRevision {
				t.Errorf("%s: the extension of 2026-07-28", test.name)
			}
		}
	})
}

// execution.taskSupport.
func TestLegacyToolsList(t *testing.T) {
	rules.Covers(t, "C-14")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		want := map[string]string{"run_pipeline": "required", "deploy_service": "optional", "lint_file": "forbidden", "sdk_tool": ""}
		for _, revision := range []string{legacyRevision, "2025-06-18"} {
			seen := 0
			for _, tool := range newPeer(t, url, revision, "").call("tools/list", nil).ok().get("tools").([]any) {
				tool := tool.(map[string]any)
				support, ok := want[tool["name"].(string)]
				if !ok {
					continue
				}
				seen++
				execution, _ := tool["execution"].(map[string]any)
				got, _ := execution["taskSupport"].(string)
				if revision != legacyRevision {
					support = ""
				}
				if got != support {
					t.Errorf("%s: %v: %q, want %q", revision, tool["name"], got, support)
				}
			}
			if seen != len(want) {
				t.Errorf("%s: %d of %d tools", revision, seen, len(want))
			}
		}
	})
}

// What a call has to say to become a task, and what is answered.
func TestLegacyCreate(t *testing.T) {
	rules.Covers(t, "C-15", "C-16", "C-17", "C-18", "C-19", "C-26", "C-56", "C-97")
	checkCreate(t, legacyRevision)
}

func TestCandidateCreate(t *testing.T) {
	rules.Covers(t, "B-15", "B-16", "B-17", "B-18", "B-19", "B-27", "B-51", "B-92")
	checkCreate(t, candidateRevision)
}

func checkCreate(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: revision, options: mcptask.Options{MaxTTL: time.Hour}})
		p := newPeer(t, url, revision, "")
		const day = 24 * 60 * 60 * 1000 // the tool's own
		for _, test := range []struct {
			task string
			ttl  int // 0 is -32602
		}{
			{`{}`, day},
			{`{"ttl":60000}`, 60000},
			{`{"ttl":6e4}`, 60000},
			{`{"ttl":0}`, day},
			{`{"ttl":999999999999}`, 3600000},
			{`{"ttl":9007199254740993}`, 3600000},
			{`{"ttl":1e300}`, 3600000},
			{`{"ttl":-1}`, 0},
			{`{"ttl":-1e300}`, 0},
			{`{"ttl":1e400}`, 0},
			{`{"ttl":null}`, 0},
			{`{"ttl":1.5}`, 0},
			{`{"ttl":"60000"}`, 0},
			{`{"ttl":{}}`, 0},
			{`{"ttl":true}`, 0},
			{`null`, 0}, {`[]`, 0}, {`""`, 0}, {`5`, 0}, {`true`, 0},
		} {
			r := p.call("tools/call", map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("endless"), "task": json.RawMessage(test.task)})
			if test.ttl == 0 {
				r.want(http.StatusOK, invalidParams)
				continue
			}
			r.ok() // C-18: the work never ends
			if got := fmt.Sprint(r.get("task", "ttl")); got != fmt.Sprint(test.ttl) {
				t.Errorf("task %s: ttl %s, want %d", test.task, got, test.ttl)
			}
			if r.text("task", "status") != "working" || fmt.Sprint(r.get("task", "pollInterval")) != "2000" {
				t.Errorf("task %s: %s", test.task, r.body)
			}
			if r.get("content") != nil || r.get("structuredContent") != nil {
				t.Errorf("a result in %s", r.body)
			}
			if id := r.text("task", "taskId"); len(id) < 26 { // C-91: 26 base32 digits are 130 bits
				t.Errorf("the ID %q is short", id)
			}
		}
	})
}

// What comes beside a call of 2025-11-25 and its task.
func TestLegacyCreateMeta(t *testing.T) {
	rules.Covers(t, "C-20", "C-24", "E-90")
	checkCreateMeta(t, legacyRevision)
}

func TestCandidateCreateMeta(t *testing.T) {
	rules.Covers(t, "B-20", "B-25")
	checkCreateMeta(t, candidateRevision)
}

func checkCreateMeta(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	url, _ := serveWith(t, setup{revision: revision})
	p := newPeer(t, url, revision, "")
	t.Run("C-24: an ID of the requestor's is ignored", func(t *testing.T) {
		r := p.call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{"taskId": "mine"},
			"_meta": map[string]any{"io.modelcontextprotocol/related-task": map[string]any{"taskId": "mine"}}}).ok()
		if r.text("task", "taskId") == "mine" {
			t.Error("taken")
		}
		if got := r.text("_meta", "io.modelcontextprotocol/model-immediate-response"); got != "The task is under way." { // C-20
			t.Errorf("model-immediate-response is %q", got)
		}
	})
	t.Run("E-90: the extension means nothing here", func(t *testing.T) {
		r := p.call("tools/call", map[string]any{"name": "deploy_service", "arguments": map[string]any{"service": "api", "environment": "staging"},
			"_meta": map[string]any{"io.modelcontextprotocol/clientCapabilities": json.RawMessage(tasksExtension)}}).ok()
		if r.get("content") == nil {
			t.Errorf("no plain result: %s", r.body)
		}
	})
}

// Which tools may be called as tasks, and which have to be (T-23).
func TestLegacyTaskSupport(t *testing.T) {
	rules.Covers(t, "C-10", "C-11", "C-13", "C-14")
	checkTaskSupport(t, legacyRevision)
}

func TestCandidateTaskSupport(t *testing.T) {
	rules.Covers(t, "B-10", "B-11", "B-13", "B-14")
	checkTaskSupport(t, candidateRevision)
}

func checkTaskSupport(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: revision})
		p := newPeer(t, url, revision, "")
		lint := map[string]any{"path": "main.go"}
		p.call("tools/call", map[string]any{"name": "lint_file", "arguments": lint, "task": map[string]any{}}).want(200, methodNotFound)
		p.call("tools/call", map[string]any{"name": "sdk_tool", "arguments": map[string]any{}, "task": map[string]any{}}).want(200, methodNotFound)
		p.call("tools/call", map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("main")}).want(200, methodNotFound)
		p.call("tools/call", map[string]any{"name": "lint_file", "arguments": lint}).ok()
		p.call("tools/call", map[string]any{"name": "sdk_tool", "arguments": map[string]any{}}).ok()
		staging := map[string]any{"service": "api", "environment": "staging"}
		p.call("tools/call", map[string]any{"name": "deploy_service", "arguments": staging}).ok()
		p.create("deploy_service", staging)
		// Invalid arguments: -32602 for an augmented call, a tool error for a plain one.
		bad := map[string]any{"service": "", "environment": "mars"}
		p.call("tools/call", map[string]any{"name": "deploy_service", "arguments": bad, "task": map[string]any{}}).want(200, invalidParams)
		if r := p.call("tools/call", map[string]any{"name": "deploy_service", "arguments": bad}).ok(); r.get("isError") != true {
			t.Errorf("no tool error: %s", r.body)
		}
		p.call("tools/call", map[string]any{"name": "ponder", "arguments": []any{}, "task": map[string]any{}}).want(200, invalidParams)
	})
}

// tasks/result.
func TestLegacyResult(t *testing.T) {
	rules.Covers(t, "C-34", "C-36", "C-37", "C-38", "C-39", "C-40", "C-41", "C-43")
	checkResult(t, legacyRevision)
}

func TestCandidateResult(t *testing.T) {
	rules.Covers(t, "B-33", "B-35", "B-36", "B-37", "B-38", "B-39", "B-40")
	checkResult(t, candidateRevision)
}

func checkResult(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	var d driven
	url, _ := serveWith(t, setup{revision: revision, tools: []mcptask.Tools{d.tools()}})
	p := newPeer(t, url, revision, "")
	t.Run("C-38, C-41: exactly the result of the call", func(t *testing.T) {
		for _, tool := range []string{"raw", "deploy_service"} {
			args := map[string]any{}
			if tool == "deploy_service" {
				args = map[string]any{"service": "api", "environment": "staging"}
			}
			plain := p.call("tools/call", map[string]any{"name": tool, "arguments": args}).ok()
			id := p.create(tool, args)
			for range 2 { // as often as one likes
				r := p.task("tasks/result", id).ok()
				want, got := plain.get().(map[string]any), r.get().(map[string]any)
				meta := got["_meta"].(map[string]any)
				related := meta["io.modelcontextprotocol/related-task"].(map[string]any)
				if related["taskId"] != id {
					t.Errorf("related-task %v", related)
				}
				delete(meta, "io.modelcontextprotocol/related-task")
				if len(meta) == 0 && want["_meta"] == nil {
					delete(got, "_meta")
				}
				if !reflect.DeepEqual(want, got) {
					t.Errorf("%s:\nplain %s\ntask  %s", tool, plain.Result, r.Result)
				}
			}
		}
	})
	t.Run("C-37: blocks, as JSON and as a stream, while get answers (C-43)", func(t *testing.T) {
		for _, accept := range []edit{jsonOnly, func(*http.Request) {}} {
			id := p.create("driven", nil)
			got := make(chan *response, 1)
			go func() { got <- p.task("tasks/result", id, accept) }()
			for range 3 {
				time.Sleep(50 * time.Millisecond)
				r := p.task("tasks/get", id).ok()
				if r.text("status") != "working" || r.stream { // C-34
					t.Errorf("%v %s", r.stream, r.body)
				}
			}
			select {
			case r := <-got:
				t.Errorf("answered before the end: %s", r.body)
			default:
			}
			d.say(id, "done")
			r := (<-got).ok()
			if !bytes.Contains(r.Result, []byte(`"done"`)) {
				t.Errorf("%s", r.body)
			}
			t.Log("as a stream:", r.stream)
			if p.until(id, "completed"); r.header.Get("Content-Type") == "" {
				t.Error("no content type")
			}
		}
	})
	t.Run("C-39: the same error", func(t *testing.T) {
		plain := p.call("tools/call", map[string]any{"name": "locked", "arguments": map[string]any{}}).want(200, -32055)
		r := p.task("tasks/result", p.create("locked", nil)).want(200, -32055)
		if r.Error.Message != plain.Error.Message || !bytes.Equal(r.Error.Data, plain.Error.Data) || len(r.Error.Data) == 0 {
			t.Errorf("%s, plainly %s", r.body, plain.body)
		}
	})
	t.Run("C-40: a tool error is a result", func(t *testing.T) {
		if r := p.task("tasks/result", p.create("run_pipeline", pipelineArgs("broken"))).ok(); r.get("isError") != true {
			t.Errorf("%s", r.body)
		}
	})
}

// Tasks that failed, by an error of each kind.
func TestLegacyFailed(t *testing.T) {
	rules.Covers(t, "C-83", "C-86", "C-87", "C-88")
	checkFailed(t, legacyRevision)
}

func TestCandidateFailed(t *testing.T) {
	rules.Covers(t, "B-79", "B-82", "B-83", "B-84")
	checkFailed(t, candidateRevision)
}

func checkFailed(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: revision, panics: true})
		p := newPeer(t, url, revision, "")
		for _, c := range []struct {
			tool    string
			args    map[string]any
			message string
		}{
			{"locked", nil, "the repository is locked"},
			{"run_pipeline", pipelineArgs("broken"), "the branch does not build"}, // a tool error
			{"run_pipeline", pipelineArgs("panic"), "internal error"},
		} {
			id := p.create(c.tool, c.args)
			if r := p.until(id, "failed", "completed"); r.text("status") != "failed" || r.text("statusMessage") != c.message {
				t.Errorf("%s", r.body)
			}
			if c.message != "internal error" {
				continue
			}
			if r := p.task("tasks/result", id).want(200, internalError); strings.Contains(string(r.body), "a bug") {
				t.Errorf("%s", r.body)
			}
		}
	})
}

// The param says which task is meant, related-task says nothing.
func TestLegacyRelatedTask(t *testing.T) {
	rules.Covers(t, "C-63", "C-65")
	checkRelatedTask(t, legacyRevision)
}

func TestCandidateRelatedTask(t *testing.T) {
	rules.Covers(t, "B-58", "B-60")
	checkRelatedTask(t, candidateRevision)
}

func checkRelatedTask(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: revision})
		p := newPeer(t, url, revision, "")
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			meant, named := p.create("run_pipeline", pipelineArgs("endless")), p.create("run_pipeline", pipelineArgs("endless"))
			if method == "tasks/result" {
				p.task("tasks/cancel", meant).ok()
			}
			r := p.call(method, map[string]any{"taskId": meant, "_meta": map[string]any{
				"io.modelcontextprotocol/related-task": map[string]any{"taskId": named}}})
			if !bytes.Contains(r.body, []byte(meant)) || bytes.Contains(r.body, []byte(named)) {
				t.Errorf("%s: %s", method, r.body)
			}
			p.until(named, "working")
			p.task("tasks/cancel", named).ok()
		}
	})
}

// C-66: what tasks/get, tasks/list and tasks/cancel answer has no related-task,
// what tasks/result answers has one (C-41, T-26).
func TestLegacyResultMeta(t *testing.T) {
	rules.Covers(t, "C-41", "C-66")
	checkResultMeta(t, legacyRevision)
}

func TestCandidateResultMeta(t *testing.T) {
	rules.Covers(t, "B-40", "B-61")
	checkResultMeta(t, candidateRevision)
}

func checkResultMeta(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: revision, bearer: true})
		p := newPeer(t, url, revision, "a")
		id := p.create("run_pipeline", pipelineArgs("endless"))
		done := p.create("deploy_service", map[string]any{"service": "api", "environment": "staging"})
		for _, r := range []*response{
			p.until(done, "completed"), p.until(id, "working"), p.call("tasks/list", nil), p.task("tasks/cancel", id), p.until(id, "cancelled"), p.call("tasks/list", nil),
		} {
			if bytes.Contains(r.ok().body, []byte("related-task")) {
				t.Errorf("%s", r.body)
			}
		}
		if related := p.task("tasks/result", done).ok().text("_meta", "io.modelcontextprotocol/related-task", "taskId"); related != done {
			t.Errorf("related to %q", related)
		}
	})
}

// A client that leaves does no harm: neither while tasks/result blocks nor
// while tasks/get is answered.
func TestLegacyLeave(t *testing.T) {
	rules.Covers(t, "C-33", "C-42")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		p := newPeer(t, url, legacyRevision, "")
		id := p.create("run_pipeline", pipelineArgs("endless"))
		for _, method := range []string{"tasks/result", "tasks/get"} {
			for wait := range 5 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(wait*wait)*10*time.Millisecond)
				body, edits := p.request(method, map[string]any{"taskId": id})
				if res, err := p.client.Do(p.start(ctx, http.MethodPost, body, edits...)); err == nil {
					if _, err := io.ReadAll(res.Body); err == nil && method == "tasks/result" {
						t.Error("it did not block")
					}
					res.Body.Close()
				}
				cancel()
				p.until(id, "working")
			}
		}
		f := p.result(id) // waits as the first would have
		p.task("tasks/cancel", id).ok()
		if last := f.next(); last.Error == nil {
			t.Errorf("%s", last.text)
		}
	})
}

// tasks/list.
func TestLegacyList(t *testing.T) {
	rules.Covers(t, "C-06", "C-69", "C-70", "C-72", "C-82", "C-94")
	checkList(t, legacyRevision)
}

func TestCandidateList(t *testing.T) {
	rules.Covers(t, "B-06", "B-64", "B-65", "B-67", "B-78", "B-89")
	checkList(t, candidateRevision)
}

func checkList(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: revision, bearer: true})
		a, b := newPeer(t, url, revision, "a"), newPeer(t, url, revision, "b")
		want := map[string]bool{}
		for range 120 {
			want[a.create("ponder", nil)] = true
		}
		for range 60 {
			b.create("ponder", nil)
		}
		got := map[string]bool{}
		params := map[string]any(nil)
		var cursors []string
		for pages := 0; ; pages++ {
			r := a.call("tasks/list", params).ok()
			for _, task := range r.get("tasks").([]any) {
				id := task.(map[string]any)["taskId"].(string)
				if got[id] || !want[id] {
					t.Errorf("%s twice or not a's", id)
				}
				got[id] = true
			}
			cursor, more := r.get("nextCursor").(string)
			if !more {
				break
			}
			if pages > 10 {
				t.Fatal("no end")
			}
			cursors = append(cursors, cursor)
			params = map[string]any{"cursor": cursor}
		}
		if len(got) != len(want) || len(cursors) != 2 {
			t.Errorf("%d of %d tasks, %d cursors", len(got), len(want), len(cursors))
		}
		cursor := cursors[0]
		flipped := []byte(cursor)
		flipped[len(flipped)/2] ^= 1
		foreign := b.call("tasks/list", nil).ok().text("nextCursor")
		for _, bad := range []any{"", "x", "made up", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", cursor[:len(cursor)-1], cursor[:10], cursor + "A", cursor + "\n",
			string(flipped), foreign, 5, []any{}, map[string]any{}, true} {
			a.call("tasks/list", map[string]any{"cursor": bad}).want(200, invalidParams)
		}
		for _, params := range []string{`[]`, `"x"`, `5`} {
			a.post(`{"jsonrpc":"2.0","id":1,"method":"tasks/list","params":`+params+`}`).want(200, invalidParams)
		}
		// C-06: where it is not declared, there is none.
		open, _ := serveWith(t, setup{revision: revision})
		newPeer(t, open, revision, "").call("tasks/list", nil).want(200, methodNotFound)
	})
}

// tasks/cancel (T-25).
func TestLegacyCancel(t *testing.T) {
	rules.Covers(t, "C-74", "C-75", "C-77", "C-78", "C-81")
	checkCancel(t, legacyRevision)
}

func TestCandidateCancel(t *testing.T) {
	rules.Covers(t, "B-69", "B-71", "B-73", "B-74", "B-77")
	checkCancel(t, candidateRevision)
}

func checkCancel(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		let, returned := make(chan struct{}), make(chan struct{})
		stubborn := mcptask.NewTool(mcptask.ToolSpec{Name: "stubborn", InputSchema: openObject, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
			func(context.Context, *mcptask.Task, struct{}) (string, error) {
				defer close(returned)
				<-let
				return "late", nil
			})
		var g *gateway.Gateway
		url, _ := serveWith(t, setup{revision: revision, gateway: &g, tools: []mcptask.Tools{{Service: "Stubborn", Impl: 1, Tools: []mcptask.Tool{stubborn}}}})
		p := newPeer(t, url, revision, "")
		id := p.create("stubborn", nil)
		blocked := make(chan *response, 1)
		go func() { blocked <- p.task("tasks/result", id) }()
		untilWaiting(t, g)
		if r := p.task("tasks/cancel", id).ok(); r.text("status") != "cancelled" || r.text("taskId") != id {
			t.Errorf("%s", r.body)
		}
		p.task("tasks/cancel", id).want(200, invalidParams)
		r := (<-blocked).want(200, internalError) // T-25
		if !bytes.Contains(r.Error.Data, []byte(id)) {
			t.Errorf("%s", r.body)
		}
		p.task("tasks/result", id).want(200, internalError)
		close(let)
		<-returned
		time.Sleep(50 * time.Millisecond) // what it has returned comes to nothing
		if r := p.task("tasks/get", id).ok(); r.text("status") != "cancelled" {
			t.Errorf("C-78: %s", r.body)
		}
		done := p.create("ponder", nil)
		p.until(done, "completed")
		p.task("tasks/cancel", done).want(200, invalidParams) // C-75
		p.until(done, "completed")
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} { // C-81
			p.task(method, "no-such-task").want(200, invalidParams)
		}
		// C-74: notifications/cancelled is no way to cancel a task.
		body, edits := p.request("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 200}, "task": map[string]any{}})
		created := p.post(body, edits...).ok()
		if n := p.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + string(created.ID) + `}}`); n.status != http.StatusAccepted {
			t.Errorf("%d %s", n.status, n.body)
		}
		p.until(created.text("task", "taskId"), "completed")
	})
}

// Progress of a task on the standalone stream.
func TestLegacyProgress(t *testing.T) {
	rules.Covers(t, "C-61", "C-67", "C-68")
	checkProgress(t, legacyRevision)
}

func TestCandidateProgress(t *testing.T) {
	rules.Covers(t, "B-56", "B-62", "B-63")
	checkProgress(t, candidateRevision)
}

func checkProgress(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	url, _ := serveWith(t, setup{revision: revision, options: mcptask.Options{Drain: patience}}) // for the stubborn handler
	for _, test := range []struct {
		name   string
		token  any
		cancel bool
	}{{"a string", "tok-1", false}, {"a number", 7, false}, {"a stubborn handler", "tok-2", true}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, url, revision, "")
			messages, stop := p.listen()
			defer stop()
			ms := 600
			if test.cancel { // it has to be there still
				ms = 4000
			}
			r := p.call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": ms, "stubborn": test.cancel}, "task": map[string]any{},
				"_meta": map[string]any{"progressToken": test.token}}).ok()
			id := r.text("task", "taskId")
			seen, last := 0, 0.0
			// next takes the next message, unless it is about another task.
			next := func() (other bool) {
				t.Helper()
				var message json.RawMessage
				select {
				case message = <-messages:
				case <-time.After(patience):
					t.Fatal("no progress")
				}
				var n struct {
					Method string
					Params struct {
						ProgressToken any
						Progress      float64
						Meta          map[string]struct{ TaskID string } `json:"_meta"`
					}
				}
				if err := json.Unmarshal(message, &n); err != nil {
					t.Error(err)
				}
				if n.Params.ProgressToken == "other" {
					return true
				}
				if n.Method != "notifications/progress" || fmt.Sprint(n.Params.ProgressToken) != fmt.Sprint(test.token) ||
					n.Params.Progress <= last || n.Params.Meta["io.modelcontextprotocol/related-task"].TaskID != id {
					t.Errorf("after %v: %s", last, message)
				}
				seen, last = seen+1, n.Params.Progress
				return false
			}
			for range 3 {
				next()
			}
			if test.cancel {
				p.task("tasks/cancel", id).ok()
			} else {
				p.task("tasks/result", id).ok()
			}
			// What was sent before the end may still be under way: it comes before what a
			// task tells that is made now. Nothing comes beside that.
			p.call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 600}, "task": map[string]any{},
				"_meta": map[string]any{"progressToken": "other"}}).ok()
			for others := 0; others < 20; {
				if next() {
					others++
				} else if others > 0 {
					t.Errorf("progress %v after the end", last)
				}
			}
			if !test.cancel && seen < 10 {
				t.Errorf("%d messages", seen)
			}
		})
	}
}

// The status message tells the progress too.
func TestStatusMessage(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		for _, revision := range []string{legacyRevision, modernRevision} {
			p := newPeer(t, url, revision, "")
			id := p.create("ponder", map[string]any{"ms": 600000})
			first := p.until(id, "working")
			for end := time.Now().Add(patience); first.text("statusMessage") == ""; first = p.task("tasks/get", id).ok() {
				if time.Now().After(end) {
					t.Fatal("no status message")
				}
			}
			if !strings.HasPrefix(first.text("statusMessage"), "pondering (") {
				t.Errorf("%s", first.body)
			}
			p.task("tasks/cancel", id).ok()
		}
	})
}
