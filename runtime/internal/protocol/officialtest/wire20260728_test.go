package officialtest

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestModernDiscover checks the declarations about tasks in server/discover and tools/list.
func TestModernDiscover(t *testing.T) {
	rules.Covers(t, "E-01", "E-13", "E-95")
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: wiretest.ModernRevision}, func(t *testing.T, p *wiretest.Peer) {
		complete := func(r *wiretest.Response) {
			t.Helper()
			if r.WantMembers(`{"resultType":"complete"}`); r.Get("ttlMs") == nil || r.Get("cacheScope") == nil {
				t.Errorf("%s", r.Body)
			}
		}
		r := p.Call("server/discover", nil)
		complete(r.WantMembers(`{"capabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}},"tasks":null}}`))
		if got := r.Get("capabilities", "extensions", "io.modelcontextprotocol/tasks"); !reflect.DeepEqual(got, map[string]any{}) {
			t.Errorf("the extension is %v", got)
		}
		if versions, _ := r.Get("supportedVersions").([]any); !slices.Contains(versions, any(wiretest.ModernRevision)) {
			t.Errorf("supportedVersions %v", versions)
		}
		for _, caps := range []string{wiretest.TasksExtension, `{}`} {
			p.Caps = caps
			r := p.Call("tools/list", nil).OK()
			if complete(r); bytes.Contains(r.Result, []byte("execution")) || bytes.Contains(r.Result, []byte("taskSupport")) {
				t.Errorf("%s", r.Body)
			}
		}
	})
}

// TestModernCreate checks which calls become tasks (EX-01, EX-06).
func TestModernCreate(t *testing.T) {
	rules.Covers(t, "E-03", "E-05", "E-08", "E-09", "E-11", "E-12", "E-91", "E-94")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		p := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		run := map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("main", "a")}
		r := p.Call("tools/call", run).WantMembers(`{"resultType":"task","status":"working","ttlMs":86400000,"pollIntervalMs":2000}`)
		if len(r.Text("taskId")) < 26 {
			t.Errorf("the ID is short: %s", r.Body)
		}
		p.Task("tasks/get", r.Text("taskId")).OK() // E-22
		for name, params := range map[string]map[string]any{
			"a forbidden tool":             {"name": "lint_file", "arguments": map[string]any{"path": "p"}},
			"E-94: params.task":            {"name": "lint_file", "arguments": map[string]any{"path": "p"}, "task": map[string]any{}},
			"an odd params.task":           {"name": "lint_file", "arguments": map[string]any{"path": "p"}, "task": 5},
			"done within its grace":        {"name": "ponder_at_once", "arguments": map[string]any{}}, // long enough for every machine
			"a tool of the SDK":            {"name": "sdk_tool", "arguments": map[string]any{}, "task": map[string]any{}},
			"invalid arguments":            {"name": "deploy_service", "arguments": map[string]any{"service": ""}},
			"invalid for a required tool":  {"name": "run_pipeline", "arguments": map[string]any{"repository": 5}},
			"arguments that are no object": {"name": "ponder", "arguments": []any{1}},
		} {
			if r := p.Call("tools/call", params).WantPlain(); (r.Get("isError") == true) != strings.HasPrefix(name, "inv") && !strings.HasPrefix(name, "arg") {
				t.Errorf("%s: %s", name, r.Body)
			}
		}
		// E-05, E-08, E-09, E-91, EX-11: the capability counts per request, whatever an earlier request declared.
		for _, caps := range []string{`{}`, `{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`,
			`{"extensions":{}}`, `{"extensions":{"io.modelcontextprotocol/other":{}}}`} {
			p.Caps = caps
			r := p.Call("tools/call", run).Want(http.StatusBadRequest, wiretest.MissingCapability)
			if want := `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`; r.Error != nil && string(r.Error.Data) != want {
				t.Errorf("data %s", r.Error.Data)
			}
			p.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 20}, "task": map[string]any{}}).WantPlain().WantMembers(`{"resultType":"complete"}`)
		}
		p.Caps = wiretest.TasksExtension
		p.Create("ponder", map[string]any{})
	})
}

// TestModernGet checks the five variants of tasks/get (T-37).
func TestModernGet(t *testing.T) {
	rules.Covers(t, "E-20", "E-29", "E-30", "E-32", "E-33", "E-34", "E-35", "E-84")
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: wiretest.ModernRevision}, func(t *testing.T, p *wiretest.Peer) {
		p.Caps = wiretest.WithQuestions

		working := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		p.Until(working, "working")
		asking := p.Create("deploy_service", map[string]any{"service": "api", "environment": "production"})
		r := p.Until(asking, "input_required").WantMembers(`{"inputRequests":{"ship":{"method":"elicitation/create","params":{"message":"Ship api to production?","mode":"form"}}}}`)
		requests := r.Get("inputRequests").(map[string]any)
		if len(requests) != 1 || r.Get("inputRequests", "ship", "params", "requestedSchema") == nil {
			t.Errorf("%s", r.Body)
		}

		r = p.Until(p.CallTool("raw", map[string]any{}).OK().Text("taskId"), "completed")
		p.Caps = `{}`
		plain := p.CallTool("raw", map[string]any{}).OK()
		p.Caps = wiretest.WithQuestions
		want, got := plain.Get().(map[string]any), r.Get("result").(map[string]any)
		if meta, ok := want["_meta"].(map[string]any); ok { // the response names the server
			delete(meta, "io.modelcontextprotocol/serverInfo")
		}
		if !reflect.DeepEqual(want, got) { // E-84
			t.Errorf("plain %v\ntask  %v", want, got)
		}

		p.Until(p.Create("locked", map[string]any{}), "failed").WantMembers(`{"error":{"message":"the repository is locked"}}`)
		stopped := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		p.Task("tasks/cancel", stopped).OK()
		p.Until(stopped, "cancelled")
		p.Task("tasks/cancel", asking).OK()
		p.Until(asking, "cancelled")
		p.Until(working, "working")
	})
}

// TestModernFailed checks that a JSON-RPC error fails a task, and that an error inside a result
// does not.
func TestModernFailed(t *testing.T) {
	rules.Covers(t, "E-34", "E-80", "E-81", "E-82", "E-83")
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: wiretest.ModernRevision, Panics: true}, func(t *testing.T, p *wiretest.Peer) {
		for _, c := range []struct {
			tool string
			args map[string]any
			want string
		}{
			{"locked", map[string]any{}, `{"status":"failed","statusMessage":"the repository is locked","error":{"code":4055,"data":{"by":"somebody","since":[1,2]},"message":"the repository is locked"}}`},
			{"run_pipeline", wiretest.PipelineArgs("refused"), `{"status":"failed","statusMessage":"the repository is locked","error":{"code":4050,"data":null,"message":"the repository is locked"}}`},
			{"run_pipeline", wiretest.PipelineArgs("panic"), `{"status":"failed","statusMessage":"internal error","error":{"code":-32603,"data":null,"message":"internal error"}}`},
			{"run_pipeline", wiretest.PipelineArgs("broken"), `{"status":"completed","error":null,"result":{"isError":true,"content":[{"type":"text","text":"the branch does not build"}]}}`},
		} {
			p.Until(p.Create(c.tool, c.args), "failed", "completed").WantMembers("%s", c.want)
		}
	})
}

// TestModernUpdate sends complete, partial and malformed answers (EX-09, EX-10, T-31).
func TestModernUpdate(t *testing.T) {
	rules.Covers(t, "E-31", "E-46", "E-48", "E-50", "E-51", "E-52", "E-75")
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: wiretest.ModernRevision}, func(t *testing.T, p *wiretest.Peer) {
		p.Caps = wiretest.WithQuestions
		update := func(id, responses string) *wiretest.Response {
			t.Helper()
			return p.Call("tasks/update", map[string]any{"taskId": id, "inputResponses": json.RawMessage(responses)})
		}
		keys := func(r *wiretest.Response) string {
			requests, _ := r.Get("inputRequests").(map[string]any)
			return strings.Join(slices.Sorted(maps.Keys(requests)), " ")
		}
		id := p.Create("two_notes", map[string]any{})
		wiretest.Await(t, func() (missing string) { // E-31
			if got := keys(p.Until(id, "input_required")); got != "first second" {
				return "not both questions: " + got
			}
			return ""
		})
		for _, junk := range []string{`{}`, `{"unknown-key":{"ignored":true}}`, `{"a":null,"b":[1],"c":"x","first ":{}}`} { // E-50
			update(id, junk).OK()
			if got := keys(p.Until(id, "input_required")); got != "first second" {
				t.Errorf("%s: %s", junk, got)
			}
		}
		// An answer that does not fit: its key stays open, and so does that of the fitting answer beside it.
		const good = `{"action":"accept","content":{"note":"yes"}}`
		for _, bad := range []string{
			`{"action":"accept","content":{"note":5}}`, `{"action":"accept","content":{"note":"too long"}}`, `{"action":"accept"}`,
			`{"action":"accept","content":null}`, `{"action":"accept","content":[]}`, `{"action":"perhaps"}`, `{}`, `null`, `[]`, `"accept"`, `5`,
		} {
			update(id, `{"first":`+good+`,"second":`+bad+`}`).Want(http.StatusBadRequest, wiretest.InvalidParams)
			if got := keys(p.Task("tasks/get", id).OK()); got != "first second" {
				t.Errorf("after %s: %s", bad, got)
			}
		}
		for _, bad := range []string{`null`, `[]`, `"x"`, `5`, `true`} {
			update(id, bad).Want(http.StatusBadRequest, wiretest.InvalidParams)
		}
		p.Task("tasks/update", id).Want(http.StatusBadRequest, wiretest.InvalidParams)
		// E-51, EX-10: first one answer, then the rest; extra properties are allowed.
		update(id, `{"second":{"action":"accept","content":{"note":"two","extra":{}}},"unknown":1}`).OK()
		if r := p.Task("tasks/get", id).WantMembers(`{"status":"input_required"}`); keys(r) != "first" {
			t.Errorf("%s", r.Body)
		}
		update(id, `{"second":{"action":"decline"}}`).OK() // this key was answered before: ignored
		update(id, `{"first":`+good+`}`).OK()
		r := p.Until(id, "completed")
		r.WantIn("yes and two")
		before := r.Text("lastUpdatedAt")
		update(id, `{"first":`+good+`,"x":1}`).OK() // the task has ended: acknowledged
		p.Task("tasks/get", id).WantMembers(`{"lastUpdatedAt":%q}`, before)
		update("no-such-task", `{}`).Want(http.StatusBadRequest, wiretest.InvalidParams) // E-48

		for action, text := range map[string]string{"decline": "declined", "cancel": "dismissed"} {
			id := p.Create("two_notes", map[string]any{})
			p.Until(id, "input_required")
			for r := p.Until(id, "input_required", "completed"); r.Text("status") != "completed"; r = p.Until(id, "input_required", "completed") {
				update(id, `{"first":{"action":"`+action+`"},"second":{"action":"`+action+`"}}`).OK()
			}
			p.Until(id, "completed").WantMembers(`{"result":{"isError":true}}`).WantIn(text)
		}
		// T-38: a client without the capability is not asked.
		p.Caps = wiretest.TasksExtension
		r = p.Until(p.Create("two_notes", map[string]any{}), "completed")
		r.WantMembers(`{"result":{"isError":true}}`).WantIn("cannot be asked")
	})
}

// TestModernCancel checks that tasks/cancel may be repeated (EX-04).
func TestModernCancel(t *testing.T) {
	rules.Covers(t, "E-54", "E-55", "E-58", "E-60", "E-74", "E-75")
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: wiretest.ModernRevision}, func(t *testing.T, p *wiretest.Peer) {
		id := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		for range 3 {
			p.Task("tasks/cancel", id).OK()
		}
		p.Until(id, "cancelled")
		p.Task("tasks/cancel", id).OK()
		done := p.Create("ponder", map[string]any{})
		p.Until(done, "completed")
		p.Task("tasks/cancel", done).OK()
		p.Until(done, "completed")
		p.Task("tasks/cancel", "no-such-task").Want(http.StatusBadRequest, wiretest.InvalidParams)
		p.Task("tasks/get", "no-such-task").Want(http.StatusBadRequest, wiretest.InvalidParams)
	})
}

// TestModernGating checks that the capability is checked before the task lookup, for every request
// (T-39).
func TestModernGating(t *testing.T) {
	rules.Covers(t, "E-77", "E-91", "E-93")
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: wiretest.ModernRevision}, func(t *testing.T, p *wiretest.Peer) {
		id := p.Create("ponder", map[string]any{})
		for _, caps := range []string{`{}`, `{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`,
			`{"extensions":{"io.modelcontextprotocol/tasks":null}}`, `{"extensions":{"io.modelcontextprotocol/tasks":true}}`} {
			p.Caps = caps
			for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
				for _, id := range []string{id, "no-such-task"} {
					r := p.Call(method, map[string]any{"taskId": id, "inputResponses": map[string]any{}}).Want(http.StatusBadRequest, wiretest.MissingCapability)
					if r.Error != nil && !strings.Contains(string(r.Error.Data), `"io.modelcontextprotocol/tasks":{}`) {
						t.Errorf("data %s", r.Error.Data)
					}
				}
			}
		}
		// E-93, EX-03: removed methods, declared or not.
		for _, caps := range []string{wiretest.TasksExtension, `{}`} {
			p.Caps = caps
			for _, method := range []string{"tasks/result", "tasks/list", "tasks/delete", "tasks/", "tasks/Get"} {
				p.Task(method, id).Want(http.StatusNotFound, wiretest.MethodNotFound)
			}
		}
	})
}

// TestModernHeaders sends headers that do not match their request.
func TestModernHeaders(t *testing.T) {
	rules.Covers(t, "E-72")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		p := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		id := p.Create("ponder", map[string]any{})
		for _, request := range []struct{ method, task, tool string }{
			{"tasks/get", id, ""}, {"tasks/cancel", id, ""}, {"tasks/update", id, ""},
			{"tools/call", "", "ponder"}, {"tools/call", "", "run_pipeline"}, {"tools/call", "", "lint_file"},
		} {
			params := map[string]any{"taskId": request.task, "inputResponses": map[string]any{}}
			another := "tools/call"
			if request.tool != "" {
				another = "tasks/get"
				params = map[string]any{"name": request.tool, "arguments": map[string]any{"repository": "https://example.com", "path": "p"}}
			}
			for name, e := range map[string]wiretest.Edit{
				"no Mcp-Method":      wiretest.WithHeader("Mcp-Method", ""),
				"another Mcp-Method": wiretest.WithHeader("Mcp-Method", another),
				"another case":       wiretest.WithHeader("Mcp-Method", strings.ToUpper(request.method)),
				"no Mcp-Name":        wiretest.WithHeader("Mcp-Name", ""),
				"another Mcp-Name":   wiretest.WithHeader("Mcp-Name", "wrong"),
				"a broken sentinel":  wiretest.WithHeader("Mcp-Name", "=?base64?%%%?="),
				"half a sentinel":    wiretest.WithHeader("Mcp-Name", "=?base64?"+request.task+request.tool),
				"no version":         wiretest.WithHeader("MCP-Protocol-Version", ""),
				"another version":    wiretest.WithHeader("MCP-Protocol-Version", "2027-01-01"),
				"an older version":   wiretest.WithHeader("MCP-Protocol-Version", wiretest.LegacyRevision),
			} {
				if r := p.Call(request.method, params, e); r.Error == nil || r.Status != http.StatusBadRequest || r.Error.Code != wiretest.HeaderMismatch {
					t.Errorf("%s of %s, %s: %d %s", request.method, request.tool, name, r.Status, r.Body)
				}
			}
			if request.tool == "" {
				p.Call(request.method, params, wiretest.WithHeader("Mcp-Name", "=?base64?"+wiretest.EncodeBase64(id)+"?=")).OK()
			}
		}
		// A task ID that a header can carry only in base64.
		for _, odd := range []string{"ü", "a\nb", "\x00", " ", "=?base64?eA==?="} {
			name := "=?base64?" + wiretest.EncodeBase64(odd) + "?="
			p.Task("tasks/get", odd, wiretest.WithHeader("Mcp-Name", name)).Want(http.StatusBadRequest, wiretest.InvalidParams)
		}
	})
}

// TestModernMeta checks the metadata that a request must have (T-34).
func TestModernMeta(t *testing.T) {
	rules.Covers(t, "E-73")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		p := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		const version, caps = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":` + wiretest.TasksExtension
		for _, request := range []struct{ method, name, params string }{
			{"tasks/get", "x", `"taskId":"x"`},
			{"tools/call", "run_pipeline", `"name":"run_pipeline","arguments":{"repository":"https://example.com"}`},
			{"tools/call", "lint_file", `"name":"lint_file","arguments":{"path":"p"}`},
			{"tools/call", "ponder", `"name":"ponder","arguments":{}`},
		} {
			post := func(meta string, edits ...wiretest.Edit) *wiretest.Response {
				edits = append([]wiretest.Edit{wiretest.WithHeader("Mcp-Method", request.method), wiretest.WithHeader("Mcp-Name", request.name)}, edits...)
				r := p.Post(`{"jsonrpc":"2.0","id":1,"method":"`+request.method+`","params":{`+request.params+meta+`}}`, edits...)
				p.Check(request.method, r)
				return r
			}
			for _, meta := range []string{``, `,"_meta":{}`, `,"_meta":{` + caps + `}`, `,"_meta":{` + version + `}`, `,"_meta":null`, `,"_meta":[]`, `,"_meta":5`,
				`,"_meta":{"io.modelcontextprotocol/protocolVersion":5,` + caps + `}`, `,"_meta":{` + version + `,"io.modelcontextprotocol/clientCapabilities":5}`} {
				if r := post(meta); r.Error == nil || r.Status != http.StatusBadRequest || r.Error.Code != wiretest.InvalidParams {
					t.Errorf("%s with %q: %d %s", request.name, meta, r.Status, r.Body)
				}
			}
			future := `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01",` + caps + `}`
			r := post(future, wiretest.WithHeader("MCP-Protocol-Version", "2027-01-01"))
			if r.Error == nil || r.Status != http.StatusBadRequest || r.Error.Code != wiretest.Unsupported || !strings.Contains(string(r.Error.Data), wiretest.ModernRevision) || !strings.Contains(string(r.Error.Data), wiretest.LegacyRevision) {
				t.Errorf("%s in 2027: %d %s", request.name, r.Status, r.Body)
			}
		}
		// tasks/get without params.
		p.Post(`{"jsonrpc":"2.0","id":1,"method":"tasks/get"}`, wiretest.WithHeader("Mcp-Method", "tasks/get")).Want(http.StatusBadRequest, wiretest.InvalidParams)
	})
}

// TestTwoRevisionsOneTask checks that a task of one revision is the same task in the other.
func TestTwoRevisionsOneTask(t *testing.T) {
	rules.Covers(t, "E-92")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true})
		modern, legacy := wiretest.NewPeer(t, url, wiretest.ModernRevision, "a"), wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a")
		id := legacy.Create("run_pipeline", wiretest.PipelineArgs("broken"))
		legacy.Until(id, "failed")
		modern.Until(id, "completed") // T-40
		id = modern.Create("run_pipeline", wiretest.PipelineArgs("broken"))
		modern.Until(id, "completed")
		legacy.Until(id, "failed")
		legacy.Task("tasks/result", id).OK()
		// A session of 2025-11-25 goes on beside the other revision.
		id = legacy.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		modern.Until(id, "working")
		legacy.Until(id, "working")
		legacy.Task("tasks/cancel", id).WantMembers(`{"status":"cancelled"}`)
		modern.Until(id, "cancelled")
	})
}

// TestModernCancelIsAWish checks that a cancellation of 2026-07-28 is only a wish. The handler decides on the result.
func TestModernCancelIsAWish(t *testing.T) {
	rules.Covers(t, "E-56", "E-57", "E-58")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		started, told, enough := make(chan struct{}), make(chan struct{}), make(chan struct{})
		tool := mcptask.NewTool(mcptask.ToolSpec{Name: "stubborn", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
			func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
				close(started)
				<-ctx.Done()
				close(told)
				<-enough
				return "all the same", nil
			})
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{{Service: "Stubborn", Impl: struct{}{}, Tools: []mcptask.Tool{tool}}}})
		p := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		id := p.Create("stubborn", map[string]any{})
		<-started
		p.Task("tasks/cancel", id).OK()
		<-told
		p.Task("tasks/get", id).WantMembers(`{"status":"working"}`)
		p.Task("tasks/cancel", id).OK()
		close(enough)
		p.Until(id, "completed", "cancelled").WantIn("all the same")
		p.Task("tasks/cancel", id).OK() // the task has ended otherwise
		p.Until(id, "completed")
	})
}

// TestUnknownContent checks that content of an unknown type passes unchanged, in ordinary calls and
// in tasks.
func TestUnknownContent(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "")
			p.Caps = `{}`
			body, edits := p.Request("tools/call", map[string]any{"name": "future", "arguments": map[string]any{}})
			if r := p.Post(body, edits...).OK(); !bytes.Contains(r.Result, []byte(`"hologram":{"z":1.50}`)) {
				t.Errorf("%s: %s", revision, r.Body)
			}
		}
	})
}
