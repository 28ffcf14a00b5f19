package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// What server/discover and tools/list say of tasks.
func TestModernDiscover(t *testing.T) {
	rules.Covers(t, "E-01", "E-13", "E-95")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		r := p.call("server/discover", nil).ok()
		if got := r.get("capabilities", "extensions", "io.modelcontextprotocol/tasks"); !reflect.DeepEqual(got, map[string]any{}) {
			t.Errorf("the extension is %v", got)
		}
		if r.get("capabilities", "tasks") != nil || r.text("resultType") != "complete" || r.get("ttlMs") == nil || r.get("cacheScope") == nil {
			t.Errorf("%s", r.body)
		}
		if versions, _ := r.get("supportedVersions").([]any); !slices.Contains(versions, any(modernRevision)) {
			t.Errorf("supportedVersions %v", versions)
		}
		for _, caps := range []string{tasksExtension, `{}`} {
			p.caps = caps
			r := p.call("tools/list", nil).ok()
			if bytes.Contains(r.Result, []byte("execution")) || bytes.Contains(r.Result, []byte("taskSupport")) ||
				r.text("resultType") != "complete" || r.get("ttlMs") == nil || r.get("cacheScope") == nil {
				t.Errorf("%s", r.body)
			}
		}
	})
}

// Which calls become tasks (EX-01, EX-06).
func TestModernCreate(t *testing.T) {
	rules.Covers(t, "E-03", "E-05", "E-08", "E-09", "E-11", "E-12", "E-91", "E-94")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		run := map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("main", "a")}
		r := p.call("tools/call", run).ok()
		if r.text("resultType") != "task" || r.text("status") != "working" || r.get("ttlMs") != json.Number("86400000") ||
			r.get("pollIntervalMs") != json.Number("2000") || len(r.text("taskId")) < 26 {
			t.Errorf("%s", r.body)
		}
		p.task("tasks/get", r.text("taskId")).ok() // E-22
		for name, params := range map[string]map[string]any{
			"a forbidden tool":             {"name": "lint_file", "arguments": map[string]any{"path": "p"}},
			"E-94: params.task":            {"name": "lint_file", "arguments": map[string]any{"path": "p"}, "task": map[string]any{}},
			"an odd params.task":           {"name": "lint_file", "arguments": map[string]any{"path": "p"}, "task": 5},
			"done within its grace":        {"name": "ponder_at_once", "arguments": map[string]any{}}, // which no machine misses
			"a tool of the SDK":            {"name": "sdk_tool", "arguments": map[string]any{}, "task": map[string]any{}},
			"invalid arguments":            {"name": "deploy_service", "arguments": map[string]any{"service": ""}},
			"invalid for a required tool":  {"name": "run_pipeline", "arguments": map[string]any{"repository": 5}},
			"arguments that are no object": {"name": "ponder", "arguments": []any{1}},
		} {
			r := p.call("tools/call", params).ok()
			if r.get("content") == nil || r.get("taskId") != nil || (r.get("isError") == true) != strings.HasPrefix(name, "inv") && !strings.HasPrefix(name, "arg") {
				t.Errorf("%s: %s", name, r.body)
			}
		}
		// E-05, E-08, E-09, E-91, EX-11: per request, whatever was declared before.
		for _, caps := range []string{`{}`, `{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`,
			`{"extensions":{}}`, `{"extensions":{"io.modelcontextprotocol/other":{}}}`} {
			p.caps = caps
			r := p.call("tools/call", run).want(http.StatusBadRequest, missingCapability)
			if want := `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`; r.Error != nil && string(r.Error.Data) != want {
				t.Errorf("data %s", r.Error.Data)
			}
			r = p.call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 20}, "task": map[string]any{}}).ok()
			if r.get("content") == nil || r.text("resultType") != "complete" {
				t.Errorf("%s", r.body)
			}
		}
		p.caps = tasksExtension
		p.create("ponder", map[string]any{})
	})
}

// The five variants of tasks/get (T-37).
func TestModernGet(t *testing.T) {
	rules.Covers(t, "E-20", "E-29", "E-30", "E-32", "E-33", "E-34", "E-35", "E-84")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		p.caps = withQuestions

		working := p.create("run_pipeline", pipelineArgs("endless"))
		p.until(working, "working")
		asking := p.create("deploy_service", map[string]any{"service": "api", "environment": "production"})
		r := p.until(asking, "input_required")
		requests, _ := r.get("inputRequests").(map[string]any)
		question, _ := requests["ship"].(map[string]any)
		if len(requests) != 1 || question["method"] != "elicitation/create" {
			t.Errorf("%s", r.body)
		}
		params, _ := question["params"].(map[string]any)
		if params["message"] != "Ship api to production?" || params["requestedSchema"] == nil || params["mode"] != "form" {
			t.Errorf("%v", params)
		}

		plain := p.call("tools/call", map[string]any{"name": "raw", "arguments": map[string]any{}}).ok()
		id := plain.text("taskId")
		r = p.until(id, "completed")
		p.caps = `{}`
		plain = p.call("tools/call", map[string]any{"name": "raw", "arguments": map[string]any{}}).ok()
		p.caps = withQuestions
		want, got := plain.get().(map[string]any), r.get("result").(map[string]any)
		if meta, ok := want["_meta"].(map[string]any); ok { // the server's name is the response's
			delete(meta, "io.modelcontextprotocol/serverInfo")
		}
		if !reflect.DeepEqual(want, got) { // E-84
			t.Errorf("plain %v\ntask  %v", want, got)
		}

		if r := p.until(p.create("locked", map[string]any{}), "failed"); r.get("error") == nil {
			t.Errorf("%s", r.body)
		}
		stopped := p.create("run_pipeline", pipelineArgs("endless"))
		p.task("tasks/cancel", stopped).ok()
		p.until(stopped, "cancelled")
		p.task("tasks/cancel", asking).ok()
		p.until(asking, "cancelled")
		p.until(working, "working")
	})
}

// What fails a task, and what does not: a JSON-RPC error does, an error inside a
// result does not.
func TestModernFailed(t *testing.T) {
	rules.Covers(t, "E-34", "E-80", "E-81", "E-82", "E-83")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{panics: true})
		p := newPeer(t, url, modernRevision, "")
		for _, c := range []struct {
			tool           string
			args           map[string]any
			error, message string
		}{
			{"locked", map[string]any{}, `{"code":-32055,"data":{"by":"somebody","since":[1,2]},"message":"the repository is locked"}`, "the repository is locked"},
			{"run_pipeline", pipelineArgs("refused"), `{"code":-32050,"message":"the repository is locked"}`, "the repository is locked"},
			{"run_pipeline", pipelineArgs("panic"), `{"code":-32603,"message":"internal error"}`, "internal error"},
		} {
			r := p.until(p.create(c.tool, c.args), "failed", "completed")
			if got, err := json.Marshal(r.get("error")); err != nil || string(got) != c.error || r.text("statusMessage") != c.message || r.text("status") != "failed" {
				t.Errorf("%s %v", r.body, err)
			}
		}
		broken := p.until(p.create("run_pipeline", pipelineArgs("broken")), "completed", "failed")
		if broken.text("status") != "completed" || broken.get("result", "isError") != true || broken.get("error") != nil ||
			!strings.Contains(string(broken.body), "the branch does not build") {
			t.Errorf("%s", broken.body)
		}
	})
}

// Answers, whole and partial, and junk (EX-09, EX-10, T-31).
func TestModernUpdate(t *testing.T) {
	rules.Covers(t, "E-31", "E-46", "E-48", "E-50", "E-51", "E-52", "E-75")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		p.caps = withQuestions
		update := func(id, responses string) *response {
			t.Helper()
			return p.call("tasks/update", map[string]any{"taskId": id, "inputResponses": json.RawMessage(responses)})
		}
		keys := func(r *response) string {
			requests, _ := r.get("inputRequests").(map[string]any)
			names := []string{}
			for name := range requests {
				names = append(names, name)
			}
			slices.Sort(names)
			return strings.Join(names, " ")
		}
		id := p.create("two_notes", map[string]any{})
		for end := time.Now().Add(patience); keys(p.until(id, "input_required")) != "first second"; { // E-31
			if time.Now().After(end) {
				t.Fatal("not both questions")
			}
		}
		for _, junk := range []string{`{}`, `{"unknown-key":{"ignored":true}}`, `{"a":null,"b":[1],"c":"x","first ":{}}`} { // E-50
			update(id, junk).ok()
			if got := keys(p.until(id, "input_required")); got != "first second" {
				t.Errorf("%s: %s", junk, got)
			}
		}
		// An answer that does not fit: the key stays open, and the fitting one beside it too.
		const good = `{"action":"accept","content":{"note":"yes"}}`
		for _, bad := range []string{
			`{"action":"accept","content":{"note":5}}`, `{"action":"accept","content":{"note":"too long"}}`, `{"action":"accept"}`,
			`{"action":"accept","content":null}`, `{"action":"accept","content":[]}`, `{"action":"perhaps"}`, `{}`, `null`, `[]`, `"accept"`, `5`,
		} {
			update(id, `{"first":`+good+`,"second":`+bad+`}`).want(http.StatusBadRequest, invalidParams)
			if got := keys(p.task("tasks/get", id).ok()); got != "first second" {
				t.Errorf("after %s: %s", bad, got)
			}
		}
		for _, bad := range []string{`null`, `[]`, `"x"`, `5`, `true`} {
			update(id, bad).want(http.StatusBadRequest, invalidParams)
		}
		p.task("tasks/update", id).want(http.StatusBadRequest, invalidParams)
		// E-51, EX-10: partly, then the rest; extra properties are allowed.
		update(id, `{"second":{"action":"accept","content":{"note":"two","extra":{}}},"unknown":1}`).ok()
		if r := p.task("tasks/get", id).ok(); keys(r) != "first" || r.text("status") != "input_required" {
			t.Errorf("%s", r.body)
		}
		update(id, `{"second":{"action":"decline"}}`).ok() // answered before: ignored
		update(id, `{"first":`+good+`}`).ok()
		r := p.until(id, "completed")
		if !bytes.Contains(r.Result, []byte("yes and two")) {
			t.Errorf("%s", r.body)
		}
		before := r.text("lastUpdatedAt")
		update(id, `{"first":`+good+`,"x":1}`).ok() // a task that has ended: acknowledged
		if r := p.task("tasks/get", id).ok(); r.text("lastUpdatedAt") != before {
			t.Errorf("%s", r.body)
		}
		update("no-such-task", `{}`).want(http.StatusBadRequest, invalidParams) // E-48

		for action, text := range map[string]string{"decline": "declined", "cancel": "dismissed"} {
			id := p.create("two_notes", map[string]any{})
			p.until(id, "input_required")
			for r := p.until(id, "input_required", "completed"); r.text("status") != "completed"; r = p.until(id, "input_required", "completed") {
				update(id, `{"first":{"action":"`+action+`"},"second":{"action":"`+action+`"}}`).ok()
			}
			if r := p.until(id, "completed"); r.get("result", "isError") != true || !bytes.Contains(r.Result, []byte(text)) {
				t.Errorf("%s", r.body)
			}
		}
		// T-38: without the capability nobody is asked.
		p.caps = tasksExtension
		r = p.until(p.create("two_notes", map[string]any{}), "completed")
		if r.get("result", "isError") != true || !bytes.Contains(r.Result, []byte("cannot be asked")) {
			t.Errorf("%s", r.body)
		}
	})
}

// tasks/cancel, as often as one likes (EX-04).
func TestModernCancel(t *testing.T) {
	rules.Covers(t, "E-54", "E-55", "E-58", "E-60", "E-74", "E-75")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		id := p.create("run_pipeline", pipelineArgs("endless"))
		for range 3 {
			p.task("tasks/cancel", id).ok()
		}
		p.until(id, "cancelled")
		p.task("tasks/cancel", id).ok()
		done := p.create("ponder", map[string]any{})
		p.until(done, "completed")
		p.task("tasks/cancel", done).ok()
		p.until(done, "completed")
		p.task("tasks/cancel", "no-such-task").want(http.StatusBadRequest, invalidParams)
		p.task("tasks/get", "no-such-task").want(http.StatusBadRequest, invalidParams)
	})
}

// T-39: the capability comes before the lookup, for every request.
func TestModernGating(t *testing.T) {
	rules.Covers(t, "E-77", "E-91", "E-93")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		id := p.create("ponder", map[string]any{})
		for _, caps := range []string{`{}`, `{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`,
			`{"extensions":{"io.modelcontextprotocol/tasks":null}}`, `{"extensions":{"io.modelcontextprotocol/tasks":true}}`} {
			p.caps = caps
			for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
				for _, id := range []string{id, "no-such-task"} {
					r := p.call(method, map[string]any{"taskId": id, "inputResponses": map[string]any{}}).want(http.StatusBadRequest, missingCapability)
					if r.Error != nil && !strings.Contains(string(r.Error.Data), `"io.modelcontextprotocol/tasks":{}`) {
						t.Errorf("data %s", r.Error.Data)
					}
				}
			}
		}
		// E-93, EX-03: removed methods, declared or not.
		for _, caps := range []string{tasksExtension, `{}`} {
			p.caps = caps
			for _, method := range []string{"tasks/result", "tasks/list", "tasks/delete", "tasks/", "tasks/Get"} {
				p.task(method, id).want(http.StatusNotFound, methodNotFound)
			}
		}
	})
}

// Headers that do not fit their request.
func TestModernHeaders(t *testing.T) {
	rules.Covers(t, "E-72")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		id := p.create("ponder", map[string]any{})
		for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
			params := map[string]any{"taskId": id, "inputResponses": map[string]any{}}
			for name, e := range map[string]edit{
				"no Mcp-Method":      withHeader("Mcp-Method", ""),
				"another Mcp-Method": withHeader("Mcp-Method", "tools/call"),
				"another case":       withHeader("Mcp-Method", strings.ToUpper(method)),
				"no Mcp-Name":        withHeader("Mcp-Name", ""),
				"another Mcp-Name":   withHeader("Mcp-Name", "wrong"),
				"a broken sentinel":  withHeader("Mcp-Name", "=?base64?%%%?="),
				"half a sentinel":    withHeader("Mcp-Name", "=?base64?"+id),
				"no version":         withHeader("MCP-Protocol-Version", ""),
				"another version":    withHeader("MCP-Protocol-Version", "2027-01-01"),
				"an older version":   withHeader("MCP-Protocol-Version", legacyRevision),
			} {
				if r := p.call(method, params, e); r.Error == nil || r.status != http.StatusBadRequest || r.Error.Code != headerMismatch {
					t.Errorf("%s, %s: %d %s", method, name, r.status, r.body)
				}
			}
			p.call(method, params, withHeader("Mcp-Name", "=?base64?"+base64Of(id)+"?=")).ok()
		}
		for _, method := range []string{"tools/call"} {
			for _, tool := range []string{"ponder", "run_pipeline", "lint_file"} {
				params := map[string]any{"name": tool, "arguments": map[string]any{"repository": "https://example.com", "path": "p"}}
				for name, e := range map[string]edit{
					"no Mcp-Method":      withHeader("Mcp-Method", ""),
					"another Mcp-Method": withHeader("Mcp-Method", "tasks/get"),
					"no Mcp-Name":        withHeader("Mcp-Name", ""),
					"another Mcp-Name":   withHeader("Mcp-Name", "lint"),
					"no version":         withHeader("MCP-Protocol-Version", ""),
					"another version":    withHeader("MCP-Protocol-Version", "2027-01-01"),
					"an older version":   withHeader("MCP-Protocol-Version", legacyRevision),
				} {
					if r := p.call(method, params, e); r.Error == nil || r.status != http.StatusBadRequest || r.Error.Code != headerMismatch {
						t.Errorf("%s of %s, %s: %d %s", method, tool, name, r.status, r.body)
					}
				}
			}
		}
		// A task ID that no header can carry as it is.
		for _, odd := range []string{"ü", "a\nb", "\x00", " ", "=?base64?eA==?="} {
			name := headerSafe(odd)
			if name == odd {
				name = "=?base64?" + base64Of(odd) + "?="
			}
			p.task("tasks/get", odd, withHeader("Mcp-Name", name)).want(http.StatusBadRequest, invalidParams)
		}
	})
}

// What a request has to say of itself (T-34).
func TestModernMeta(t *testing.T) {
	rules.Covers(t, "E-73")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		const version, caps = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":` + tasksExtension
		for _, request := range []struct{ method, name, params string }{
			{"tasks/get", "x", `"taskId":"x"`},
			{"tools/call", "run_pipeline", `"name":"run_pipeline","arguments":{"repository":"https://example.com"}`},
			{"tools/call", "lint_file", `"name":"lint_file","arguments":{"path":"p"}`},
			{"tools/call", "ponder", `"name":"ponder","arguments":{}`},
		} {
			post := func(meta string, edits ...edit) *response {
				edits = append([]edit{withHeader("Mcp-Method", request.method), withHeader("Mcp-Name", request.name)}, edits...)
				r := p.post(`{"jsonrpc":"2.0","id":1,"method":"`+request.method+`","params":{`+request.params+meta+`}}`, edits...)
				p.check(request.method, r)
				return r
			}
			for _, meta := range []string{``, `,"_meta":{}`, `,"_meta":{` + caps + `}`, `,"_meta":{` + version + `}`, `,"_meta":null`, `,"_meta":[]`, `,"_meta":5`,
				`,"_meta":{"io.modelcontextprotocol/protocolVersion":5,` + caps + `}`, `,"_meta":{` + version + `,"io.modelcontextprotocol/clientCapabilities":5}`} {
				if r := post(meta); r.Error == nil || r.status != http.StatusBadRequest || r.Error.Code != invalidParams {
					t.Errorf("%s with %q: %d %s", request.name, meta, r.status, r.body)
				}
			}
			future := `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01",` + caps + `}`
			r := post(future, withHeader("MCP-Protocol-Version", "2027-01-01"))
			if r.Error == nil || r.status != http.StatusBadRequest || r.Error.Code != unsupported || !strings.Contains(string(r.Error.Data), modernRevision) || !strings.Contains(string(r.Error.Data), legacyRevision) {
				t.Errorf("%s in 2027: %d %s", request.name, r.status, r.body)
			}
		}
		// tasks/get without params at all.
		p.post(`{"jsonrpc":"2.0","id":1,"method":"tasks/get"}`, withHeader("Mcp-Method", "tasks/get")).want(http.StatusBadRequest, invalidParams)
	})
}

// What one revision made, the other may see: it is the same task.
func TestTwoRevisionsOneTask(t *testing.T) {
	rules.Covers(t, "E-92")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{bearer: true})
		modern, legacy := newPeer(t, url, modernRevision, "a"), newPeer(t, url, legacyRevision, "a")
		id := legacy.create("run_pipeline", pipelineArgs("broken"))
		legacy.until(id, "failed")
		modern.until(id, "completed") // T-40
		id = modern.create("run_pipeline", pipelineArgs("broken"))
		modern.until(id, "completed")
		legacy.until(id, "failed")
		legacy.task("tasks/result", id).ok()
		// Those of 2025-11-25 go on there, beside the other revision.
		id = legacy.create("run_pipeline", pipelineArgs("endless"))
		modern.until(id, "working")
		legacy.until(id, "working")
		if r := legacy.task("tasks/cancel", id).ok(); r.text("status") != "cancelled" {
			t.Errorf("%s", r.body)
		}
		modern.until(id, "cancelled")
	})
}

// A cancellation of 2026-07-28 is a wish: what the handler does with it is seen
// afterwards.
func TestModernCancelIsAWish(t *testing.T) {
	rules.Covers(t, "E-56", "E-57", "E-58")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		started, told, enough := make(chan struct{}), make(chan struct{}), make(chan struct{})
		tool := mcptask.NewTool(mcptask.ToolSpec{Name: "stubborn", InputSchema: openObject, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
			func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
				close(started)
				<-ctx.Done()
				close(told)
				<-enough
				return "all the same", nil
			})
		url, _ := serveWith(t, setup{tools: []mcptask.Tools{{Service: "Stubborn", Impl: struct{}{}, Tools: []mcptask.Tool{tool}}}})
		p := newPeer(t, url, modernRevision, "")
		id := p.create("stubborn", map[string]any{})
		<-started
		p.task("tasks/cancel", id).ok()
		<-told
		if r := p.task("tasks/get", id).ok(); r.text("status") != "working" {
			t.Errorf("%s", r.body)
		}
		p.task("tasks/cancel", id).ok()
		close(enough)
		if r := p.until(id, "completed", "cancelled"); !strings.Contains(string(r.body), "all the same") {
			t.Errorf("%s", r.body)
		}
		p.task("tasks/cancel", id).ok() // that has ended otherwise
		p.until(id, "completed")
	})
}

// Content of a type that nobody knows yet passes, plainly and as a task.
func TestUnknownContent(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		for _, revision := range []string{legacyRevision, modernRevision} {
			p := newPeer(t, url, revision, "")
			p.caps = `{}`
			body, edits := p.request("tools/call", map[string]any{"name": "future", "arguments": map[string]any{}})
			if r := p.post(body, edits...).ok(); !bytes.Contains(r.Result, []byte(`"hologram":{"z":1.50}`)) {
				t.Errorf("%s: %s", revision, r.body)
			}
		}
	})
}
