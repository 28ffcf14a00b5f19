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
)

// C-01, C-02, C-92: what initialize declares.
func TestLegacyCapabilities(t *testing.T) {
	t.Parallel()
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
}

// C-14: execution.taskSupport.
func TestLegacyToolsList(t *testing.T) {
	t.Parallel()
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
}

// C-15 to C-20, C-26, C-54 to C-60, C-97.
func TestLegacyCreate(t *testing.T) {
	t.Parallel()
	url, _ := serveWith(t, setup{options: mcptask.Options{MaxTTL: time.Hour}})
	p := newPeer(t, url, legacyRevision, "")
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
		started := time.Now()
		r := p.call("tools/call", map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("main", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"), "task": json.RawMessage(test.task)})
		if test.ttl == 0 {
			r.want(http.StatusOK, invalidParams)
			continue
		}
		if took := time.Since(started); took > 900*time.Millisecond { // C-18: the steps take longer
			t.Errorf("%s: answered after %v", test.task, took)
		}
		r.ok()
		if got := fmt.Sprint(r.get("task", "ttl")); got != fmt.Sprint(test.ttl) {
			t.Errorf("task %s: ttl %s, want %d", test.task, got, test.ttl)
		}
		if r.text("task", "status") != "working" || fmt.Sprint(r.get("task", "pollInterval")) != "2000" {
			t.Errorf("task %s: %s", test.task, r.body)
		}
		for _, name := range []string{"createdAt", "lastUpdatedAt"} {
			if _, err := time.Parse(time.RFC3339, r.text("task", name)); err != nil {
				t.Error(err)
			}
		}
		if r.get("content") != nil || r.get("structuredContent") != nil {
			t.Errorf("a result in %s", r.body)
		}
		if id := r.text("task", "taskId"); len(id) < 26 { // C-91: 26 base32 digits are 130 bits
			t.Errorf("the ID %q is short", id)
		}
	}
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

// C-10, C-13, C-11, T-23.
func TestLegacyTaskSupport(t *testing.T) {
	t.Parallel()
	url, _ := serveWith(t, setup{})
	p := newPeer(t, url, legacyRevision, "")
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
}

// C-36 to C-43: tasks/result.
func TestLegacyResult(t *testing.T) {
	t.Parallel()
	url, _ := serveWith(t, setup{})
	p := newPeer(t, url, legacyRevision, "")
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
			id := p.create("ponder", map[string]any{"ms": 900})
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
			r := (<-got).ok()
			if !bytes.Contains(r.Result, []byte("pondered")) {
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
		id := p.create("locked", nil)
		failed := p.until(id, "failed") // C-86
		if failed.text("statusMessage") != "the repository is locked" {
			t.Errorf("C-88: %s", failed.body)
		}
		r := p.task("tasks/result", id).want(200, -32055)
		if r.Error.Message != plain.Error.Message || !bytes.Equal(r.Error.Data, plain.Error.Data) || len(r.Error.Data) == 0 {
			t.Errorf("%s, plainly %s", r.body, plain.body)
		}
	})
	t.Run("C-40, C-87: a tool error is failed, its result succeeds", func(t *testing.T) {
		id := p.create("run_pipeline", pipelineArgs("broken"))
		if r := p.until(id, "failed"); r.text("statusMessage") != "the branch does not build" {
			t.Errorf("C-88: %s", r.body)
		}
		if r := p.task("tasks/result", id).ok(); r.get("isError") != true {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("C-83: a bug in a handler reveals nothing", func(t *testing.T) {
		noisy, _ := serveWith(t, setup{panics: true})
		q := newPeer(t, noisy, legacyRevision, "")
		id := q.create("run_pipeline", pipelineArgs("panic"))
		q.until(id, "failed")
		if r := q.task("tasks/result", id).want(200, internalError); strings.Contains(string(r.body), "a bug") {
			t.Errorf("%s", r.body)
		}
	})
	t.Run("C-63, C-65: the param counts, not related-task", func(t *testing.T) {
		a, b := p.create("ponder", nil), p.create("ponder", nil)
		for _, method := range []string{"tasks/get", "tasks/result"} {
			r := p.call(method, map[string]any{"taskId": a, "_meta": map[string]any{
				"io.modelcontextprotocol/related-task": map[string]any{"taskId": b}}}).ok()
			if bytes.Contains(r.Result, []byte(b)) {
				t.Errorf("%s: %s", method, r.body)
			}
		}
	})
	t.Run("C-42: a client that leaves does no harm", func(t *testing.T) {
		id := p.create("ponder", map[string]any{"ms": 700})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		body, edits := p.request("tasks/result", map[string]any{"taskId": id})
		if res, err := p.client.Do(p.start(ctx, http.MethodPost, body, edits...)); err == nil {
			if _, err := io.ReadAll(res.Body); err == nil {
				t.Error("it did not block")
			}
			res.Body.Close()
		}
		p.task("tasks/result", id).ok()
	})
}

// C-70 to C-72, C-82, C-94.
func TestLegacyList(t *testing.T) {
	t.Parallel()
	url, _ := serveWith(t, setup{bearer: true})
	a, b := newPeer(t, url, legacyRevision, "a"), newPeer(t, url, legacyRevision, "b")
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
	open, _ := serveWith(t, setup{})
	newPeer(t, open, legacyRevision, "").call("tasks/list", nil).want(200, methodNotFound)
}

// C-75 to C-78, T-25.
func TestLegacyCancel(t *testing.T) {
	t.Parallel()
	url, _ := serveWith(t, setup{})
	p := newPeer(t, url, legacyRevision, "")
	id := p.create("ponder", map[string]any{"ms": 300, "stubborn": true})
	blocked := make(chan *response, 1)
	go func() { blocked <- p.task("tasks/result", id) }()
	time.Sleep(50 * time.Millisecond)
	if r := p.task("tasks/cancel", id).ok(); r.text("status") != "cancelled" || r.text("taskId") != id {
		t.Errorf("%s", r.body)
	}
	p.task("tasks/cancel", id).want(200, invalidParams)
	r := (<-blocked).want(200, internalError) // T-25
	if !bytes.Contains(r.Error.Data, []byte(id)) {
		t.Errorf("%s", r.body)
	}
	p.task("tasks/result", id).want(200, internalError)
	time.Sleep(400 * time.Millisecond) // the handler has returned meanwhile
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
}

// C-67, C-68, C-61: progress of a task on the standalone stream.
func TestLegacyProgress(t *testing.T) {
	t.Parallel()
	url, _ := serveWith(t, setup{})
	for _, test := range []struct {
		name   string
		token  any
		cancel bool
	}{{"a string", "tok-1", false}, {"a number", 7, false}, {"a stubborn handler", "tok-2", true}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, url, legacyRevision, "")
			messages, stop := p.listen()
			defer stop()
			r := p.call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 600, "stubborn": test.cancel}, "task": map[string]any{},
				"_meta": map[string]any{"progressToken": test.token}}).ok()
			id := r.text("task", "taskId")
			seen, last := 0, 0.0
			take := func(message json.RawMessage) {
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
				if n.Method != "notifications/progress" || fmt.Sprint(n.Params.ProgressToken) != fmt.Sprint(test.token) ||
					n.Params.Progress <= last || n.Params.Meta["io.modelcontextprotocol/related-task"].TaskID != id {
					t.Errorf("after %v: %s", last, message)
				}
				seen, last = seen+1, n.Params.Progress
			}
			for range 3 {
				select {
				case m := <-messages:
					take(m)
				case <-time.After(4 * time.Second):
					t.Fatal("no progress")
				}
			}
			if test.cancel {
				p.task("tasks/cancel", id).ok()
			} else {
				p.task("tasks/result", id).ok()
			}
			// What was sent before the end may still be under way, not more.
			for deadline := time.After(150 * time.Millisecond); ; {
				select {
				case m := <-messages:
					take(m)
					continue
				case <-deadline:
				}
				break
			}
			select {
			case m, open := <-messages:
				t.Errorf("after the end (%v): %s", open, m)
			case <-time.After(400 * time.Millisecond):
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
	url, _ := serveWith(t, setup{})
	for _, revision := range []string{legacyRevision, modernRevision} {
		p := newPeer(t, url, revision, "")
		id := p.create("ponder", map[string]any{"ms": 500})
		first := p.until(id, "working")
		for end := time.Now().Add(2 * time.Second); first.text("statusMessage") == ""; first = p.task("tasks/get", id).ok() {
			if time.Now().After(end) {
				t.Fatal("no status message")
			}
		}
		if !strings.HasPrefix(first.text("statusMessage"), "pondering (") {
			t.Errorf("%s", first.body)
		}
		p.until(id, "completed")
	}
}
