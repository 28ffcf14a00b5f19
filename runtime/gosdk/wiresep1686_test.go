package gosdk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// The proposal SEP-1686 over HTTP, as literal JSON.

const (
	proposalTask    = "modelcontextprotocol.io/task"
	proposalRelated = "modelcontextprotocol.io/related-task"
	proposalCreated = "notifications/tasks/created"
	// before has no tasks of its own.
	beforeTasks = "2025-06-18"
)

// withProposal are the options of a server that speaks it beside the released ones.
func withProposal() mcptask.Options {
	return mcptask.Options{Revisions: []string{mcptask.RevisionSEP1686, mcptask.Revision20251125, mcptask.Revision20260728}}
}

// serveProposal starts such a server, of tasks that do as they are told and of
// tasks that ask. Callers have tokens.
func serveProposal(t testing.TB, s setup) (url string, d *driven) {
	t.Helper()
	d = &driven{}
	if s.options.Revisions == nil {
		s.options.Revisions = withProposal().Revisions
	}
	s.tools = append(s.tools, d.tools(), askTools())
	s.bearer = true
	url, _ = serveWith(t, s)
	return url, d
}

// internal is the stored ID of what a principal calls so.
func internal(principal, id string) string { return mcptask.Caller{Principal: principal}.Named(id) }

// metadata asks for a task.
func metadata(id string) map[string]any {
	return map[string]any{proposalTask: map[string]any{"taskId": id}, "progressToken": "token of " + id}
}

// proposed is a call that is open: its stream, and its ID.
type proposed struct {
	*feed

	id int64
}

// propose calls a tool as a task, and reads that there is one.
func (p *peer) propose(id, tool string, arguments map[string]any) *proposed {
	p.t.Helper()
	c := p.proposeWith(metadata(id), tool, arguments)
	quoted, _ := json.Marshal(id) // a string always marshals
	want := fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"_meta":{%q:{"taskId":%s}}}}`, proposalCreated, proposalRelated, quoted)
	if m := c.next(); !sameJSON(m.text, want) {
		p.t.Fatalf("%s, want %s", m.text, want)
	}
	return c
}

func (p *peer) proposeWith(meta map[string]any, tool string, arguments map[string]any) *proposed {
	p.t.Helper()
	if arguments == nil {
		arguments = map[string]any{}
	}
	f := p.send("tools/call", map[string]any{"name": tool, "arguments": arguments, "_meta": meta})
	return &proposed{f, p.ids.Load()}
}

// answer is the last message of the stream: the call's.
func (c *proposed) answer() wireMessage {
	c.t.Helper()
	for {
		m := c.next()
		if m.Method == "notifications/progress" {
			continue
		}
		if m.Method != "" || string(m.ID) != fmt.Sprint(c.id) {
			c.t.Fatalf("not the answer: %s", m.text)
		}
		if _, more := <-c.messages; more {
			c.t.Error("the stream goes on after the answer")
		}
		return m
	}
}

// cancel is notifications/cancelled of the call.
func (p *peer) cancelCall(c *proposed) {
	p.t.Helper()
	r := p.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d,"reason":"enough"}}`, c.id))
	if r.status != http.StatusAccepted {
		p.t.Errorf("cancelled: %d %s", r.status, r.body)
	}
}

// tapped is call for a message that the tap alone checks: peer's own check knows
// the session's revision only.
func (p *peer) tapped(method string, params map[string]any) *response {
	p.t.Helper()
	body, edits := p.request(method, params)
	return p.post(body, edits...)
}

// about sends a task method as the proposal prescribes it.
func (p *peer) about(method, id string) *response {
	p.t.Helper()
	return p.tapped(method, map[string]any{"taskId": id, "_meta": map[string]any{proposalRelated: map[string]any{"taskId": id}}})
}

// untilProposed polls until the task has a status.
func (p *peer) untilProposed(id, status string) *response {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		r := p.about("tasks/get", id).ok()
		if r.text("status") == status {
			return r
		}
		if time.Now().After(end) {
			p.t.Fatalf("the task is not %s: %s", status, r.body)
		}
	}
}

// proposalOf is the ID in a message's related-task metadata.
func proposalOf(t testing.TB, message []byte) string {
	t.Helper()
	var m struct {
		Params, Result struct {
			Meta map[string]struct{ TaskID string } `json:"_meta"`
		}
	}
	_ = json.Unmarshal(message, &m) // of other metadata
	return m.Params.Meta[proposalRelated].TaskID + m.Result.Meta[proposalRelated].TaskID
}

// A call that is a task is announced, polled, and answered.
func TestProposalCall(t *testing.T) {
	rules.Covers(t, "A-06", "A-08", "A-09", "A-13", "A-29", "A-31", "A-33", "A-37")
	t.Parallel()
	url, d := serveProposal(t, setup{})
	for _, protocol := range []string{beforeTasks, legacyRevision} {
		t.Run(protocol, func(t *testing.T) {
			p := newPeer(t, url, protocol, "a")
			id := "of " + protocol
			c := p.propose(id, "driven", nil)
			d.say(internal("a", id), "begun")
			want := fmt.Sprintf(`{"taskId":%q,"status":"working","keepAlive":3600000,"pollFrequency":20,"_meta":{%q:{"taskId":%[1]q}}}`, id, proposalRelated)
			if r := p.about("tasks/get", id).ok(); !sameJSON(string(r.Result), want) {
				t.Errorf("%s, want %s", r.Result, want)
			}
			d.say(internal("a", id), "done")
			last := c.answer()
			want = fmt.Sprintf(`{"content":[{"type":"text","text":"done"}],"_meta":{%q:{"taskId":%q}}}`, proposalRelated, id)
			if !sameJSON(string(last.Result), want) {
				t.Errorf("%s, want %s", last.text, want)
			}
			for range 2 {
				if r := p.about("tasks/result", id).ok(); !sameJSON(string(r.Result), want) {
					t.Errorf("%s, want %s", r.Result, want)
				}
			}
			if r := p.about("tasks/get", id).ok(); r.text("status") != "completed" || r.get("error") != nil {
				t.Errorf("%s", r.Result)
			}
		})
	}
}

// What the metadata of a task may be, and how long the task is kept.
func TestProposalMetadata(t *testing.T) {
	rules.Covers(t, "A-02", "A-03", "A-12", "A-28", "A-29", "A-61", "A-72")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		options := withProposal()
		options.MaxTTL = time.Hour
		url, _ := serveProposal(t, setup{options: options})
		p := newPeer(t, url, beforeTasks, "a")
		const day = 24 * 60 * 60 * 1000 // the tool's own
		for i, test := range []struct {
			keep string
			want int // 0 is -32602
		}{
			{``, day}, {`0`, day}, {`60000`, 60000}, {`6e4`, 60000}, {`999999999999`, 3600000}, {`1e300`, 3600000},
			{`-1`, 0}, {`1.5`, 0}, {`null`, 0}, {`"60000"`, 0}, {`{}`, 0}, {`true`, 0}, {`1e400`, 0},
		} {
			id := fmt.Sprint("kept ", i)
			task := fmt.Sprintf(`{"taskId":%q,"keepAlive":%s}`, id, test.keep)
			if test.keep == "" {
				task = fmt.Sprintf(`{"taskId":%q}`, id)
			}
			params := map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("endless"), "_meta": map[string]any{proposalTask: json.RawMessage(task)}}
			if test.want == 0 {
				if r := p.tapped("tools/call", params).want(http.StatusOK, invalidParams); r.Error == nil || !strings.Contains(r.Error.Message, "keepAlive") {
					t.Errorf("keepAlive %s: %s", test.keep, r.body)
				}
				p.about("tasks/get", id).want(http.StatusOK, invalidParams)
				continue
			}
			p.send("tools/call", params).next()
			if got := fmt.Sprint(p.about("tasks/get", id).ok().get("keepAlive")); got != fmt.Sprint(test.want) {
				t.Errorf("keepAlive %s: %s, want %d", test.keep, got, test.want)
			}
		}
		for _, task := range []string{
			`null`, `[]`, `"T"`, `5`, `true`, `{}`, `{"taskId":null}`, `{"taskId":5}`, `{"taskId":""}`, `{"taskId":["T"]}`, `{"taskId":{}}`,
			`{"taskId":"` + strings.Repeat("x", 257) + `"}`,
		} {
			params := map[string]any{"name": "ponder", "arguments": map[string]any{}, "_meta": map[string]any{proposalTask: json.RawMessage(task)}}
			if r := p.tapped("tools/call", params).want(http.StatusOK, invalidParams); r.Error == nil || !strings.Contains(r.Error.Message, proposalTask) {
				t.Errorf("%s: %s", task, r.body)
			}
		}
		// Any other text is an ID, and comes back as it is.
		for _, id := range []string{"\x00", "a\nb", "\u2028<&>", "../../etc", " ", "\"quoted\"", strings.Repeat("ü", 128)} {
			c := p.propose(id, "ponder", nil)
			if got := proposalOf(t, []byte(c.answer().text)); got != id {
				t.Errorf("%q came back as %q", id, got)
			}
			if r := p.about("tasks/get", id).ok(); r.text("taskId") != id {
				t.Errorf("%s", r.body)
			}
		}
	})
}

// An ID is one task's, whoever made it.
func TestProposalDuplicates(t *testing.T) {
	rules.Covers(t, "A-13", "A-15", "A-16", "A-61")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveProposal(t, setup{})
		a, b := newPeer(t, url, beforeTasks, "a"), newPeer(t, url, legacyRevision, "b")
		a.propose("T", "ponder", nil).answer()
		running := a.propose("U", "run_pipeline", pipelineArgs("endless"))
		made := newPeer(t, url, legacyRevision, "a").create("ponder", nil)
		for _, id := range []string{"T", "U", made} {
			r := a.tapped("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "_meta": metadata(id)}).want(http.StatusOK, invalidParams)
			if r.Error == nil || !strings.Contains(r.Error.Message, "in use") {
				t.Errorf("%s", r.body)
			}
		}
		running.silent()
		b.propose("T", "ponder", nil).answer() // another's
		a.about("tasks/delete", "T").ok()
		a.propose("T", "ponder", nil).answer() // free again
		// With an idempotency key the second call is the first one's.
		for range 2 {
			meta := metadata("K")
			meta["io.github.mcptaskgen/idempotency-key"] = "key"
			c := a.proposeWith(meta, "ponder", nil)
			if m := c.next(); m.Method != proposalCreated || proposalOf(t, []byte(m.text)) != "K" {
				t.Errorf("%s", m.text)
			}
			if last := c.answer(); last.Result == nil {
				t.Errorf("%s", last.text)
			}
		}
	})
}

// Who cannot be a task is called plainly, whatever the metadata says.
func TestProposalIgnored(t *testing.T) {
	rules.Covers(t, "A-04", "A-05", "A-10")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveProposal(t, setup{})
		for _, protocol := range []string{beforeTasks, legacyRevision} {
			p := newPeer(t, url, protocol, "a")
			for _, task := range []string{`{"taskId":"F"}`, `{}`, `5`} {
				for tool, arguments := range map[string]map[string]any{"lint_file": {"path": "main.go"}, "sdk_tool": {}} {
					f := p.send("tools/call", map[string]any{"name": tool, "arguments": arguments, "_meta": map[string]any{proposalTask: json.RawMessage(task)}})
					if m := f.next(); m.Result == nil || proposalOf(t, []byte(m.text)) != "" {
						t.Errorf("%s: %s", tool, m.text)
					}
				}
				p.about("tasks/get", "F").want(http.StatusOK, invalidParams)
			}
			// Requests that are no calls have no tasks either.
			r := p.call("tools/list", map[string]any{"_meta": map[string]any{proposalTask: map[string]any{"taskId": "L"}}}).ok()
			if r.get("tools") == nil {
				t.Errorf("%s", r.body)
			}
			p.about("tasks/get", "L").want(http.StatusOK, invalidParams)
		}
		// No tool has to be a task where a session knows no other revision's.
		p := newPeer(t, url, beforeTasks, "a")
		if r := p.call("tools/call", map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("main")}).ok(); r.get("content") == nil {
			t.Errorf("%s", r.body)
		}
		newPeer(t, url, legacyRevision, "a").call("tools/call", map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("main")}).want(http.StatusOK, methodNotFound)
	})
}

// A server that is not told to does not speak it.
func TestProposalOff(t *testing.T) {
	rules.Covers(t, "A-04", "A-10")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{bearer: true})
		for _, protocol := range []string{beforeTasks, legacyRevision} {
			p := newPeer(t, url, protocol, "a")
			f := p.send("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "_meta": metadata("T")})
			for m := f.next(); m.Result == nil; m = f.next() {
				if m.Method != "notifications/progress" || proposalOf(t, []byte(m.text)) != "" {
					t.Errorf("%s", m.text)
				}
			}
			code := methodNotFound
			if protocol == legacyRevision {
				code = invalidParams
			}
			p.about("tasks/get", "T").want(http.StatusOK, code)
			p.about("tasks/result", "T").want(http.StatusOK, code)
			p.about("tasks/delete", "T").want(http.StatusOK, methodNotFound)
			if p.opened.get("capabilities", "tasks") != nil && protocol != legacyRevision {
				t.Errorf("%s", p.opened.body)
			}
		}
	})
}

// What initialize declares, and that nobody has to.
func TestProposalCapabilities(t *testing.T) {
	rules.Covers(t, "A-01")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveProposal(t, setup{})
		alone := withProposal()
		alone.Revisions = alone.Revisions[:1]
		only, _ := serveProposal(t, setup{options: alone})
		const proposal, released = `{"requests":{"tools":{"call":true}}}`, `{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`
		for _, test := range []struct{ url, protocol, want string }{
			{url, beforeTasks, proposal}, {url, "2025-03-26", proposal}, {url, legacyRevision, released}, {only, beforeTasks, proposal}, {only, legacyRevision, `null`}, // whose schema has another form for it
		} {
			for _, declared := range []string{`{}`, `{"tasks":{"requests":{"elicitation":{"create":true}}}}`} {
				p := newPeerThat(t, test.url, test.protocol, "a", declared)
				got, err := json.Marshal(p.opened.get("capabilities", "tasks"))
				if err != nil || string(got) != test.want {
					t.Errorf("%s: %s, want %s", test.protocol, got, test.want)
				}
				id := test.protocol + declared + test.url
				if last := p.propose(id, "ponder", nil).answer(); last.Result == nil {
					t.Errorf("%s", last.text)
				}
				p.about("tasks/delete", id).ok()
			}
		}
	})
}

// The life of tasks, one step after the other.
func TestProposalLife(t *testing.T) {
	rules.Covers(t, "A-17", "A-18", "A-19", "A-20", "A-21", "A-22", "A-26")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		options := withProposal()
		options.Concurrency = 1
		url, d := serveProposal(t, setup{options: options})
		p := newAsked(t, url, beforeTasks, "a", canAll)
		first := p.propose("first", "driven", nil)
		d.say(internal("a", "first"), "begun")
		// The others wait in line.
		calls := map[string]*proposed{}
		for _, id := range []string{"second", "third", "fourth"} {
			calls[id] = p.propose(id, "driven", nil)
			if r := p.about("tasks/get", id).ok(); r.text("status") != "submitted" {
				t.Errorf("%s", r.body)
			}
		}
		quick := p.propose("quick", "ponder", nil)
		if r := p.about("tasks/get", "quick").ok(); r.text("status") != "submitted" {
			t.Errorf("%s", r.body)
		}
		p.cancelCall(calls["third"]) // before it has begun
		p.untilProposed("third", "cancelled")
		p.untilProposed("first", "working")
		d.say(internal("a", "first"), "ask")
		question := first.questionOf("first")
		p.untilProposed("first", "input_required")
		d.say(internal("a", "second"), "begun") // the first has given its place back
		p.untilProposed("second", "working")
		d.say(internal("a", "second"), "fail")
		p.untilProposed("second", "failed")
		d.say(internal("a", "fourth"), "begun", "ask")
		late := calls["fourth"].questionOf("fourth")
		p.untilProposed("fourth", "input_required")
		p.respond(question.ID, note("n"))
		p.untilProposed("first", "working")
		d.say(internal("a", "first"), "done")
		p.untilProposed("first", "completed")
		p.cancelCall(calls["fourth"])
		p.untilProposed("fourth", "cancelled")
		// Nothing moves what has ended.
		p.respond(late.ID, note("late"))
		quick.answer() // nobody has seen it at work
		p.untilProposed("quick", "completed")
		for id, want := range map[string]string{"first": "completed", "second": "failed", "third": "cancelled", "fourth": "cancelled"} {
			if c := calls[id]; c != nil {
				p.cancelCall(c)
			}
			p.cancelCall(first)
			if r := p.about("tasks/get", id).ok(); r.text("status") != want {
				t.Errorf("%s is %s", id, r.body)
			}
		}
	})
}

// questionOf is the next message but for progress, which is a question of the task.
func (c *proposed) questionOf(id string) wireMessage {
	c.t.Helper()
	m := c.next()
	for m.Method == "notifications/progress" {
		m = c.next()
	}
	if m.Method == "" || m.ID == nil || proposalOf(c.t, []byte(m.text)) != id {
		c.t.Fatalf("no question of %s: %s", id, m.text)
	}
	return m
}

// How tasks end: by a tool error, by an error, by a bug.
func TestProposalFailed(t *testing.T) {
	rules.Covers(t, "A-23", "A-34", "A-35", "A-59", "A-60", "A-63", "A-64", "A-65")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveProposal(t, setup{panics: true})
		p := newPeer(t, url, legacyRevision, "a")
		for _, test := range []struct {
			tool    string
			args    map[string]any
			status  string
			code    int // of the answer; 0 is a result
			message string
		}{
			{"locked", nil, "failed", -32055, "the repository is locked"},
			{"run_pipeline", pipelineArgs("panic"), "failed", internalError, "internal error"},
			{"run_pipeline", pipelineArgs("broken"), "completed", 0, "isError: the branch does not build"},
		} {
			id := test.tool + fmt.Sprint(test.args["branch"])
			last := p.propose(id, test.tool, test.args).answer()
			r := p.about("tasks/get", id).ok()
			result := p.about("tasks/result", id)
			if r.text("status") != test.status {
				t.Errorf("%s", r.body)
			}
			if test.code == 0 {
				if toolText(last.Result) != test.message || !sameJSON(string(last.Result), string(result.ok().Result)) || r.get("error") != nil {
					t.Errorf("%s, by tasks/result %s, with tasks/get %s", last.text, result.body, r.body)
				}
				continue
			}
			var e struct {
				Code    int
				Message string
			}
			if err := json.Unmarshal(last.Error, &e); err != nil || e.Code != test.code || e.Message != test.message || r.text("error") != test.message {
				t.Errorf("%s, with tasks/get %s", last.text, r.body)
			}
			result.want(http.StatusOK, invalidParams)
		}
		// One that still runs, and one that is cancelled.
		c := p.propose("endless", "run_pipeline", pipelineArgs("endless"))
		p.about("tasks/result", "endless").want(http.StatusOK, invalidParams)
		p.cancelCall(c)
		p.untilProposed("endless", "cancelled")
		if r := p.about("tasks/result", "endless").want(http.StatusOK, invalidParams); !strings.Contains(r.Error.Message, "cancelled") {
			t.Errorf("%s", r.body)
		}
	})
}

// What names no task, or not by an ID.
// What became of a task whose worker was lost, nobody knows: it is failed and says
// why, unless the server is told to say unknown. Neither has a result.
func TestProposalLost(t *testing.T) {
	rules.Covers(t, "A-21", "A-23", "A-35")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		for unknown, want := range map[bool]string{false: "failed", true: "unknown"} {
			now := time.Now()
			store := mcptask.NewMemoryStore()
			_, err := store.Create(t.Context(), mcptask.Record{
				ID: internal("a", "lost"), ExternalID: "lost", Principal: "a", Account: "principal a", Tool: "driven", Arguments: json.RawMessage(`{}`),
				Revision: mcptask.RevisionSEP1686, Phase: mcptask.PhaseRunning, CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(time.Hour),
				Keep: time.Minute, Poll: time.Second, Attempt: 1, Worker: "dead", LeaseUntil: now.Add(-time.Second),
			}, mcptask.Quota{})
			if err != nil {
				t.Fatal(err)
			}
			options := withProposal()
			options.Store, options.Unknown = store, unknown
			url, _ := serveProposal(t, setup{options: options})
			p := newPeer(t, url, beforeTasks, "a")
			r := p.untilProposed("lost", want)
			if says := r.text("error"); (says != "") == unknown {
				t.Errorf("%s", r.body)
			}
			p.about("tasks/result", "lost").want(200, invalidParams)
		}
	})
}

func TestProposalNotFound(t *testing.T) {
	rules.Covers(t, "A-57", "A-61", "A-66", "A-67", "A-68")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveProposal(t, setup{})
		a, b := newPeer(t, url, beforeTasks, "a"), newPeer(t, url, beforeTasks, "b")
		a.propose("T", "ponder", nil).answer()
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/delete"} {
			for _, id := range []any{"none", "", "\x00", strings.Repeat("x", 10_000), 5, nil, []any{"T"}, map[string]any{}, true} {
				r := a.tapped(method, map[string]any{"taskId": id, "_meta": map[string]any{proposalRelated: map[string]any{"taskId": "T"}}})
				if r.want(http.StatusOK, invalidParams); r.Error == nil || r.Error.Message == "" {
					t.Errorf("%s of %v: %s", method, id, r.body)
				}
			}
			a.tapped(method, map[string]any{"_meta": map[string]any{proposalRelated: map[string]any{}}}).want(http.StatusOK, invalidParams)
			// Somebody else's, by either ID, is none.
			none := b.about(method, "none")
			for _, id := range []string{"T", internal("a", "T")} {
				if r := b.about(method, id).want(http.StatusOK, invalidParams); r.Error.Message != none.Error.Message {
					t.Errorf("%s, for none %s", r.body, none.body)
				}
			}
		}
		// In another session of the same principal it is there.
		if r := newPeer(t, url, legacyRevision, "a").about("tasks/get", "T").ok(); r.text("status") != "completed" {
			t.Errorf("%s", r.body)
		}
		if list := b.tapped("tasks/list", nil).ok().get("tasks").([]any); len(list) != 0 {
			t.Errorf("%v", list)
		}
		// Without authentication the session is whose they are.
		open, _ := serveWith(t, setup{options: withProposal()})
		x, y := newPeer(t, open, beforeTasks, ""), newPeer(t, open, beforeTasks, "")
		x.propose("T", "ponder", nil).answer()
		x.about("tasks/get", "T").ok()
		y.about("tasks/get", "T").want(http.StatusOK, invalidParams)
		y.propose("T", "ponder", nil).answer()
		x.tapped("tasks/list", nil).want(http.StatusOK, methodNotFound)
	})
}

// tasks/list.
func TestProposalList(t *testing.T) {
	rules.Covers(t, "A-49", "A-50", "A-52", "A-58")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveProposal(t, setup{})
		a, b := newPeer(t, url, beforeTasks, "a"), newPeer(t, url, beforeTasks, "b")
		want := map[string]bool{}
		for i := range 120 {
			id := fmt.Sprint("task ", i)
			want[id] = true
			c := a.propose(id, "ponder", nil)
			c.answer()
			c.stop()
		}
		got := map[string]bool{}
		params := map[string]any(nil)
		var cursors []string
		for range 10 {
			r := a.tapped("tasks/list", params).ok()
			for _, task := range r.get("tasks").([]any) {
				task := task.(map[string]any)
				id := task["taskId"].(string)
				if got[id] || !want[id] {
					t.Errorf("%s twice or not a's", id)
				}
				got[id] = true
				one := a.about("tasks/get", id).ok().get().(map[string]any)
				delete(one, "_meta")
				if fmt.Sprint(one) != fmt.Sprint(task) {
					t.Errorf("%v in the list, %v alone", task, one)
				}
			}
			cursor, more := r.get("nextCursor").(string)
			if !more {
				break
			}
			cursors = append(cursors, cursor)
			params = map[string]any{"cursor": cursor}
		}
		if len(got) != len(want) || len(cursors) != 2 {
			t.Errorf("%d of %d tasks, %d cursors", len(got), len(want), len(cursors))
		}
		for _, bad := range []any{"", "x", cursors[0][1:], cursors[0] + "A", 5, []any{}, true} {
			a.tapped("tasks/list", map[string]any{"cursor": bad}).want(http.StatusOK, invalidParams)
		}
		b.tapped("tasks/list", map[string]any{"cursor": cursors[0]}).want(http.StatusOK, invalidParams)
	})
}

// tasks/delete.
func TestProposalDelete(t *testing.T) {
	rules.Covers(t, "A-38", "A-53", "A-54", "A-55", "A-57", "A-75")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		logs := &safeBuffer{}
		options := withProposal()
		options.Logger = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
		url, d := serveProposal(t, setup{options: options})
		p := newPeer(t, url, beforeTasks, "a")
		c := p.propose("T", "driven", nil)
		d.say(internal("a", "T"), "begun")
		if r := p.about("tasks/delete", "T").want(http.StatusOK, invalidRequest); !strings.Contains(r.Error.Message, "working") {
			t.Errorf("%s", r.body)
		}
		d.say(internal("a", "T"), "done")
		c.answer()
		p.about("tasks/result", "T").ok()
		meta := metadata("K")
		meta["io.github.mcptaskgen/idempotency-key"] = "key"
		keyed := p.proposeWith(meta, "ponder", nil)
		keyed.next()
		keyed.answer()
		for _, id := range []string{"T", "K"} {
			want := fmt.Sprintf(`{"_meta":{%q:{"taskId":%q}}}`, proposalRelated, id)
			if r := p.about("tasks/delete", id).ok(); !sameJSON(string(r.Result), want) {
				t.Errorf("%s", r.body)
			}
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/delete"} {
				p.about(method, id).want(http.StatusOK, invalidParams)
			}
		}
		if list := p.tapped("tasks/list", nil).ok().get("tasks").([]any); len(list) != 0 {
			t.Errorf("%v", list)
		}
		for kind, want := range map[string]int{"created": 2, "ended": 2, "retrieved": 3, "deleted": 2} { // T by its call too, K by its call
			text := logs.until(t, "audit="+kind+" ", want)
			if got := strings.Count(text, "audit="+kind+" "); got != want {
				t.Errorf("%d records %q, want %d:\n%s", got, kind, want, text)
			}
		}
		if text := logs.String(); !strings.Contains(text, "audit=deleted task="+internal("a", "T")+" tool=driven principal=a revision=sep-1686") {
			t.Error(text)
		}
	})
}

// The limits hold here too, and no task stays when its time is over.
func TestProposalLimits(t *testing.T) {
	rules.Covers(t, "A-30", "A-44", "A-62", "A-70", "A-71", "A-73")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		options := withProposal()
		options.Limits = mcptask.Limits{Running: 1, Polls: 5, Lists: 5}
		url, tasks := serveWith(t, setup{options: options, bearer: true})
		p := newPeer(t, url, beforeTasks, "a")
		call := func(id string, keep int) map[string]any {
			return map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("endless"),
				"_meta": map[string]any{proposalTask: map[string]any{"taskId": id, "keepAlive": keep}}}
		}
		c := &proposed{p.send("tools/call", call("T", 1)), p.ids.Load()}
		c.next()
		p.tapped("tools/call", call("U", 1)).limited(http.StatusOK, "running", 1)
		newPeer(t, url, beforeTasks, "b").propose("V", "ponder", nil).answer()
		p.cancelCall(c)
		c.next()
		for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // its keepAlive is over soon
			if _, err := tasks.Peek(internal("a", "T")); errors.Is(err, mcptask.ErrNoRecord) {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the record stays")
			}
		}
		p.about("tasks/get", "T").want(http.StatusOK, invalidParams)
		flood(t, func() *response { return p.about("tasks/get", "W") }).limited(http.StatusTooManyRequests, "polls", 5)
		flood(t, func() *response { return p.about("tasks/result", "X") }).limited(http.StatusTooManyRequests, "polls", 5)
		flood(t, func() *response { return p.tapped("tasks/list", nil) }).limited(http.StatusTooManyRequests, "lists", 5)
	})
}
