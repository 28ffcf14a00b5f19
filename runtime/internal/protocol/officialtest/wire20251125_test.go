package officialtest

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
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestLegacyCapabilities checks the capabilities in initialize.
func TestLegacyCapabilities(t *testing.T) {
	rules.Covers(t, "C-01", "C-02", "C-92")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		secured, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true})
		for _, test := range []struct{ name, url, revision, token, want string }{
			{"anonymous", url, wiretest.LegacyRevision, "", `{"cancel":{},"requests":{"tools":{"call":{}}}}`},
			{"a principal", secured, wiretest.LegacyRevision, "a", `{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`},
			{"an older revision", url, wiretest.BeforeTasks, "", `null`},
			{"an older revision with a principal", secured, wiretest.BeforeTasks, "a", `null`},
		} {
			r := wiretest.NewPeer(t, test.url, test.revision, test.token).Opened.WantMembers(`{"protocolVersion":%q}`, test.revision)
			if got, err := json.Marshal(r.Get("capabilities", "tasks")); err != nil || string(got) != test.want {
				t.Errorf("%s: %s, want %s", test.name, got, test.want)
			}
			if test.revision != wiretest.LegacyRevision {
				r.WantMembers(`{"capabilities":{"extensions":{"io.modelcontextprotocol/tasks":null}}}`)
			}
		}
	})
}

// TestLegacyToolsList checks execution.taskSupport.
func TestLegacyToolsList(t *testing.T) {
	rules.Covers(t, "C-14")
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: wiretest.LegacyRevision}, func(t *testing.T, p *wiretest.Peer) {
		for revision, want := range map[string]map[string]any{
			wiretest.LegacyRevision: {"run_pipeline": "required", "deploy_service": "optional", "lint_file": "forbidden", "sdk_tool": nil},
			wiretest.BeforeTasks:    {"run_pipeline": nil, "deploy_service": nil, "lint_file": nil, "sdk_tool": nil},
		} {
			got := map[string]any{}
			for _, tool := range p.NewSibling(revision, "").Call("tools/list", nil).OK().Get("tools").([]any) {
				tool := tool.(map[string]any)
				execution, _ := tool["execution"].(map[string]any)
				if _, ok := want[tool["name"].(string)]; ok {
					got[tool["name"].(string)] = execution["taskSupport"]
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v, want %v", revision, got, want)
			}
		}
	})
}

// TestLegacyCreate checks which calls become tasks, and the answer.
func TestLegacyCreate(t *testing.T) {
	rules.Covers(t, "C-15", "C-16", "C-17", "C-18", "C-19", "C-26", "C-56", "C-97")
	checkCreate(t, wiretest.LegacyRevision)
}

func checkCreate(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: revision, Options: taskserver.Options{
			MaxTTL:    48 * time.Hour,
			Principal: func(context.Context) (string, error) { return "alice", nil }, // an anonymous caller gets the tool's own ttl
		}})
		p := wiretest.NewPeer(t, url, revision, "")
		const day = 24 * 60 * 60 * 1000 // the tool's own
		for _, test := range []struct {
			task string
			ttl  int // 0 is -32602
		}{
			{`{}`, day},
			{`{"ttl":60000}`, day}, // the tool's own is the least
			{`{"ttl":100000000}`, 100000000},
			{`{"ttl":1e8}`, 100000000},
			{`{"ttl":0}`, day},
			{`{"ttl":999999999999}`, 2 * day},
			{`{"ttl":9007199254740993}`, 2 * day},
			{`{"ttl":1e300}`, 2 * day},
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
			r := p.Call("tools/call", map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("endless"), "task": json.RawMessage(test.task)})
			if test.ttl == 0 {
				r.Want(http.StatusOK, wiretest.InvalidParams)
				continue
			}
			// C-18: the answer comes although the work never ends
			r.WantMembers(`{"task":{"status":"working","ttl":%d,"pollInterval":2000},"content":null,"structuredContent":null}`, test.ttl)
			if id := r.Text("task", "taskId"); len(id) < 26 { // C-91: 26 base32 digits are 130 bits
				t.Errorf("the ID %q is short", id)
			}
		}
	})
}

// TestLegacyCreateMeta checks the metadata of a call of 2025-11-25 and of its task.
func TestLegacyCreateMeta(t *testing.T) {
	rules.Covers(t, "C-20", "C-24", "E-90")
	checkCreateMeta(t, wiretest.LegacyRevision)
}

func checkCreateMeta(t *testing.T, revision string) {
	t.Helper()
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: revision}, func(t *testing.T, p *wiretest.Peer) {
		// C-24: the server ignores an ID that the requestor chooses. C-20: the answer has the text for the model.
		r := p.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{"taskId": "mine"},
			"_meta": map[string]any{"io.modelcontextprotocol/related-task": map[string]any{"taskId": "mine"}}})
		if r.WantMembers(`{"_meta":{"io.modelcontextprotocol/model-immediate-response":"The task is under way."}}`).Text("task", "taskId") == "mine" {
			t.Errorf("%s", r.Body)
		}
		// E-90: the extension means nothing in this revision.
		p.Call("tools/call", map[string]any{"name": "deploy_service", "arguments": staging,
			"_meta": map[string]any{"io.modelcontextprotocol/clientCapabilities": json.RawMessage(wiretest.TasksExtension)}}).WantPlain()
	})
}

// TestLegacyTaskSupport checks which tools may be called as tasks, and which must be (T-23).
func TestLegacyTaskSupport(t *testing.T) {
	rules.Covers(t, "C-10", "C-11", "C-13", "C-14")
	checkTaskSupport(t, wiretest.LegacyRevision)
}

func checkTaskSupport(t *testing.T, revision string) {
	t.Helper()
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: revision}, func(t *testing.T, p *wiretest.Peer) {
		augmented := func(tool string, arguments any) *wiretest.Response {
			t.Helper()
			return p.Call("tools/call", map[string]any{"name": tool, "arguments": arguments, "task": map[string]any{}})
		}
		lint := map[string]any{"path": "main.go"}
		augmented("lint_file", lint).Want(200, wiretest.MethodNotFound)
		augmented("sdk_tool", map[string]any{}).Want(200, wiretest.MethodNotFound)
		p.CallTool("run_pipeline", wiretest.PipelineArgs("main")).Want(200, wiretest.MethodNotFound)
		p.CallTool("lint_file", lint).OK()
		p.CallTool("sdk_tool", map[string]any{}).OK()
		p.CallTool("deploy_service", staging).OK()
		p.Create("deploy_service", staging)
		// Invalid arguments: -32602 for an augmented call, a tool error for a plain one.
		bad := map[string]any{"service": "", "environment": "mars"}
		augmented("deploy_service", bad).Want(200, wiretest.InvalidParams)
		p.CallTool("deploy_service", bad).WantMembers(`{"isError":true}`)
		augmented("ponder", []any{}).Want(200, wiretest.InvalidParams)
	})
}

// TestLegacyResult checks tasks/result.
func TestLegacyResult(t *testing.T) {
	rules.Covers(t, "C-34", "C-36", "C-37", "C-38", "C-39", "C-40", "C-41", "C-43")
	checkResult(t, wiretest.LegacyRevision)
}

func checkResult(t *testing.T, revision string) {
	t.Helper()
	var d wiretest.Driven
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: revision, Tools: []mcptask.Tools{d.Tools()}}, func(t *testing.T, p *wiretest.Peer) {
		// C-38, C-41: exactly the result of the call, every time.
		for tool, args := range map[string]map[string]any{"raw": {}, "deploy_service": staging} {
			plain := p.CallTool(tool, args).OK()
			id := p.Create(tool, args)
			for range 2 {
				r := p.Task("tasks/result", id).OK()
				want, got := plain.Get().(map[string]any), r.Get().(map[string]any)
				meta, _ := want["_meta"].(map[string]any)
				if meta == nil {
					meta = map[string]any{}
				}
				meta["io.modelcontextprotocol/related-task"] = map[string]any{"taskId": id}
				if want["_meta"] = meta; !reflect.DeepEqual(want, got) {
					t.Errorf("%s:\nplain %s\ntask  %s", tool, plain.Result, r.Result)
				}
			}
		}
		// C-37: tasks/result blocks, as JSON and as a stream, while tasks/get answers (C-43).
		for _, accept := range []wiretest.Edit{wiretest.JSONOnly, func(*http.Request) {}} {
			id := p.Create("driven", nil)
			got := make(chan *wiretest.Response, 1)
			go func() { got <- p.Task("tasks/result", id, accept) }()
			for range 3 {
				time.Sleep(50 * time.Millisecond)
				if r := p.Task("tasks/get", id).WantMembers(`{"status":"working"}`); r.Stream { // C-34
					t.Errorf("a stream: %s", r.Body)
				}
			}
			select {
			case r := <-got:
				t.Errorf("answered before the end: %s", r.Body)
			default:
			}
			d.Tell(id, "done")
			(<-got).OK().WantIn(`"done"`)
			if r := p.Until(id, "completed"); r.Header.Get("Content-Type") == "" {
				t.Error("no content type")
			}
		}
		// C-39: the same error.
		plain := p.CallTool("locked", map[string]any{}).Want(200, 4055)
		r := p.Task("tasks/result", p.Create("locked", nil)).Want(200, 4055)
		if !reflect.DeepEqual(r.Error, plain.Error) || len(r.Error.Data) == 0 {
			t.Errorf("%s, plainly %s", r.Body, plain.Body)
		}
		// C-40: a tool error is a result.
		p.Task("tasks/result", p.Create("run_pipeline", wiretest.PipelineArgs("broken"))).WantMembers(`{"isError":true}`)
	})
}

// TestLegacyFailed checks tasks that failed with each kind of error.
func TestLegacyFailed(t *testing.T) {
	rules.Covers(t, "C-83", "C-86", "C-87", "C-88")
	checkFailed(t, wiretest.LegacyRevision)
}

func checkFailed(t *testing.T, revision string) {
	t.Helper()
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: revision, Panics: true}, func(t *testing.T, p *wiretest.Peer) {
		for _, c := range []struct {
			tool    string
			args    map[string]any
			message string
		}{
			{"locked", nil, "the repository is locked"},
			{"run_pipeline", wiretest.PipelineArgs("broken"), "the branch does not build"}, // a tool error
			{"run_pipeline", wiretest.PipelineArgs("panic"), "internal error"},
		} {
			id := p.Create(c.tool, c.args)
			p.Until(id, "failed", "completed").WantMembers(`{"status":"failed","statusMessage":%q}`, c.message)
			if c.message != "internal error" {
				continue
			}
			if r := p.Task("tasks/result", id).Want(200, wiretest.InternalError); strings.Contains(string(r.Body), "a bug") {
				t.Errorf("%s", r.Body)
			}
		}
	})
}

// TestLegacyRelatedTask checks that the param names the task, and that related-task is ignored.
func TestLegacyRelatedTask(t *testing.T) {
	rules.Covers(t, "C-63", "C-65")
	checkRelatedTask(t, wiretest.LegacyRevision)
}

func checkRelatedTask(t *testing.T, revision string) {
	t.Helper()
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: revision}, func(t *testing.T, p *wiretest.Peer) {
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			meant, named := p.Create("run_pipeline", wiretest.PipelineArgs("endless")), p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
			if method == "tasks/result" {
				p.Task("tasks/cancel", meant).OK()
			}
			r := p.Call(method, map[string]any{"taskId": meant, "_meta": map[string]any{
				"io.modelcontextprotocol/related-task": map[string]any{"taskId": named}}})
			if !bytes.Contains(r.Body, []byte(meant)) || bytes.Contains(r.Body, []byte(named)) {
				t.Errorf("%s: %s", method, r.Body)
			}
			p.Until(named, "working")
			p.Task("tasks/cancel", named).OK()
		}
	})
}

// TestLegacyLeave checks that a client may disconnect during tasks/result and during tasks/get.
func TestLegacyLeave(t *testing.T) {
	rules.Covers(t, "C-33", "C-42")
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: wiretest.LegacyRevision}, func(t *testing.T, p *wiretest.Peer) {
		id := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		for _, method := range []string{"tasks/result", "tasks/get"} {
			for wait := range 5 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(wait*wait)*10*time.Millisecond)
				body, edits := p.Request(method, map[string]any{"taskId": id})
				if res, err := p.Client.Do(p.NewRequest(ctx, http.MethodPost, body, edits...)); err == nil {
					if _, err := io.ReadAll(res.Body); err == nil && method == "tasks/result" {
						t.Error("it did not block")
					}
					res.Body.Close()
				}
				cancel()
				p.Until(id, "working")
			}
		}
		f := p.Result(id) // waits as the first request would have
		p.Task("tasks/cancel", id).OK()
		if last := f.Next(); last.Error == nil {
			t.Errorf("%s", last.Text)
		}
	})
}

// TestLegacyList checks tasks/list.
func TestLegacyList(t *testing.T) {
	rules.Covers(t, "C-69", "C-70", "C-72", "C-82", "C-94")
	checkList(t, wiretest.LegacyRevision)
}

func checkList(t *testing.T, revision string) {
	t.Helper()
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: revision, Bearer: true}, func(t *testing.T, a *wiretest.Peer) {
		b := a.NewSibling(revision, "b")
		want := map[string]bool{}
		for range 120 {
			want[a.Create("ponder", nil)] = true
		}
		for range 60 {
			b.Create("ponder", nil)
		}
		tasks, cursors := wiretest.ListPages(t, func(params map[string]any) *wiretest.Response { return a.Call("tasks/list", params) })
		for _, task := range tasks {
			if id := task["taskId"].(string); !want[id] {
				t.Errorf("%s is not a's", id)
			}
		}
		if len(tasks) != len(want) || len(cursors) != 2 {
			t.Errorf("%d of %d tasks, %d cursors", len(tasks), len(want), len(cursors))
		}
		cursor := cursors[0]
		flipped := []byte(cursor)
		flipped[len(flipped)/2] ^= 1
		foreign := b.Call("tasks/list", nil).OK().Text("nextCursor")
		for _, bad := range []any{"", "x", "made up", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", cursor[:len(cursor)-1], cursor[:10], cursor + "A", cursor + "\n",
			string(flipped), foreign, 5, []any{}, map[string]any{}, true} {
			a.Call("tasks/list", map[string]any{"cursor": bad}).Want(200, wiretest.InvalidParams)
		}
		for _, params := range []string{`[]`, `"x"`, `5`} {
			a.Post(`{"jsonrpc":"2.0","id":1,"method":"tasks/list","params":`+params+`}`).Want(200, wiretest.InvalidParams)
		}
	})
}

// TestLegacyCancel checks tasks/cancel (T-25).
func TestLegacyCancel(t *testing.T) {
	rules.Covers(t, "C-74", "C-75", "C-77", "C-78", "C-81")
	checkCancel(t, wiretest.LegacyRevision)
}

func checkCancel(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		let, returned := make(chan struct{}), make(chan struct{})
		stubborn := mcptask.NewTool(mcptask.ToolSpec{Name: "stubborn", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
			func(context.Context, *mcptask.Task, struct{}) (string, error) {
				defer close(returned)
				<-let
				return "late", nil
			})
		var g *gateway.Gateway
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: revision, Gateway: &g, Tools: []mcptask.Tools{{Service: "Stubborn", Impl: 1, Tools: []mcptask.Tool{stubborn}}}})
		p := wiretest.NewPeer(t, url, revision, "")
		id := p.Create("stubborn", nil)
		blocked := make(chan *wiretest.Response, 1)
		go func() { blocked <- p.Task("tasks/result", id) }()
		wiretest.AwaitWaiter(t, g)
		p.Task("tasks/cancel", id).WantMembers(`{"status":"cancelled","taskId":%q}`, id)
		p.Task("tasks/cancel", id).Want(200, wiretest.InvalidParams)
		r := (<-blocked).Want(200, wiretest.InternalError) // T-25
		r.WantIn(id)
		p.Task("tasks/result", id).Want(200, wiretest.InternalError)
		close(let)
		<-returned
		time.Sleep(50 * time.Millisecond) // its return value is dropped
		if r := p.Task("tasks/get", id).OK(); r.Text("status") != "cancelled" {
			t.Errorf("C-78: %s", r.Body)
		}
		done := p.Create("ponder", nil)
		p.Until(done, "completed")
		p.Task("tasks/cancel", done).Want(200, wiretest.InvalidParams) // C-75
		p.Until(done, "completed")
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} { // C-81
			p.Task(method, "no-such-task").Want(200, wiretest.InvalidParams)
		}
		// C-74: notifications/cancelled does not cancel a task.
		body, edits := p.Request("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 200}, "task": map[string]any{}})
		created := p.Post(body, edits...).OK()
		if n := p.Post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + string(created.ID) + `}}`); n.Status != http.StatusAccepted {
			t.Errorf("%d %s", n.Status, n.Body)
		}
		p.Until(created.Text("task", "taskId"), "completed")
	})
}

// TestLegacyProgress checks the progress of a task on the standalone stream.
func TestLegacyProgress(t *testing.T) {
	rules.Covers(t, "C-61", "C-67", "C-68")
	checkProgress(t, wiretest.LegacyRevision)
}

func checkProgress(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	for _, test := range []struct {
		name   string
		token  any
		ms     int
		cancel bool
	}{{"a string", "tok-1", 600, false}, {"a number", 7, 600, false}, {"a stubborn handler", "tok-2", 4000, true}} {
		t.Run(test.name, func(t *testing.T) {
			setup := wiretest.Setup{Revision: revision, Options: taskserver.Options{Drain: wiretest.Patience}} // for the stubborn handler
			wiretest.RunWithPeer(t, setup, func(t *testing.T, p *wiretest.Peer) {
				messages := p.OpenGet()
				ponder := func(ms int, token any) (id string) {
					return p.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": ms, "stubborn": test.cancel}, "task": map[string]any{},
						"_meta": map[string]any{"progressToken": token}}).OK().Text("task", "taskId")
				}
				id := ponder(test.ms, test.token)
				seen, last := 0, 0.0
				// next reads the next message, and reports if it is about another task.
				next := func() (other bool) {
					t.Helper()
					message := messages.Next().Text
					var n struct {
						Method string
						Params struct {
							ProgressToken any
							Progress      float64
							Meta          map[string]struct{ TaskID string } `json:"_meta"`
						}
					}
					if err := json.Unmarshal([]byte(message), &n); err != nil {
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
					p.Task("tasks/cancel", id).OK()
				} else {
					p.Task("tasks/result", id).OK()
				}
				// Messages from before the end may still be on their way. They precede the messages of a task that
				// starts now. No other message comes.
				ponder(600, "other")
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
		})
	}
}

// TestStatusMessage checks that the status message shows the progress too.
func TestStatusMessage(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "")
			id := p.Create("ponder", map[string]any{"ms": 600000})
			wiretest.Await(t, func() (missing string) {
				if r := p.Until(id, "working"); !strings.HasPrefix(r.Text("statusMessage"), "pondering (") {
					return string(r.Body)
				}
				return ""
			})
			p.Task("tasks/cancel", id).OK()
		}
	})
}
