package unofficialtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// serveProposal starts a server of the proposal, with tasks that the test drives and tasks that ask. Callers have
// tokens.
func serveProposal(t testing.TB, s wiretest.Setup) (url string, d *wiretest.Driven) {
	t.Helper()
	d = &wiretest.Driven{}
	if s.Options.Revisions == nil {
		s.Options.Revisions = wiretest.WithProposal().Revisions
	}
	s.Tools = append(s.Tools, d.Tools(), wiretest.AskTools())
	s.Bearer = true
	url, _ = wiretest.ServeWith(t, s)
	return url, d
}

// runProposal runs a test in a bubble with such a server. p is a session of a revision without tasks. It has the token
// "a" and answers every question.
func runProposal(t *testing.T, s wiretest.Setup, test func(t *testing.T, p *wiretest.Peer, d *wiretest.Driven)) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, d := serveProposal(t, s)
		test(t, wiretest.NewAskedPeer(t, url, wiretest.BeforeTasks, "a", wiretest.AllCapabilities), d)
	})
}

// internal returns the stored ID of the task that a principal calls by this name.
func internal(principal, id string) string { return taskserver.Caller{Principal: principal}.Named(id) }

// TestProposalCall checks that a call as a task is announced, polled and answered.
func TestProposalCall(t *testing.T) {
	rules.Covers(t, "A-06", "A-08", "A-09", "A-13", "A-29", "A-31", "A-33", "A-37")
	runProposal(t, wiretest.Setup{}, func(t *testing.T, p *wiretest.Peer, d *wiretest.Driven) {
		for _, protocol := range []string{wiretest.BeforeTasks, wiretest.LegacyRevision} {
			p := p.NewSibling(protocol, "a")
			id := "of " + protocol
			wants := func(result json.RawMessage, want string) {
				t.Helper()
				if !wiretest.SameJSON(string(result), want) {
					t.Errorf("%s, want %s", result, want)
				}
			}
			c := p.Propose(id, "driven", nil)
			d.Tell(internal("a", id), "begun")
			wants(p.CallProposed("tasks/get", id).OK().Result, fmt.Sprintf(`{"taskId":%q,"status":"working","keepAlive":3600000,"pollFrequency":20,"_meta":{%q:{"taskId":%[1]q}}}`, id, wiretest.ProposalRelated))
			d.Tell(internal("a", id), "done")
			wants(c.NextAnswer().Result, doneResult(id))
			for range 2 {
				wants(p.CallProposed("tasks/result", id).OK().Result, doneResult(id))
			}
			p.CallProposed("tasks/get", id).WantMembers(`{"status":"completed","error":null}`)
		}
	})
}

// TestProposalMetadata checks valid and invalid task metadata, and the retention of a task.
func TestProposalMetadata(t *testing.T) {
	rules.Covers(t, "A-02", "A-03", "A-12", "A-28", "A-29", "A-61", "A-72")
	options := wiretest.WithProposal()
	options.MaxTTL = 48 * time.Hour
	runProposal(t, wiretest.Setup{Options: options}, func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
		const day = 24 * 60 * 60 * 1000 // the tool's own
		for i, test := range []struct {
			keep string
			want int // 0 is -32602
		}{
			{``, day}, {`0`, day}, {`60000`, day}, {`100000000`, 100000000}, {`1e8`, 100000000}, {`999999999999`, 2 * day}, {`1e300`, 2 * day},
			{`-1`, 0}, {`1.5`, 0}, {`null`, 0}, {`"60000"`, 0}, {`{}`, 0}, {`true`, 0}, {`1e400`, 0},
		} {
			id := fmt.Sprint("kept ", i)
			task := fmt.Sprintf(`{"taskId":%q,"keepAlive":%s}`, id, test.keep)
			if test.keep == "" {
				task = fmt.Sprintf(`{"taskId":%q}`, id)
			}
			params := map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("endless"), "_meta": map[string]any{wiretest.ProposalTask: json.RawMessage(task)}}
			if test.want == 0 {
				if r := p.CallUnchecked("tools/call", params).Want(http.StatusOK, wiretest.InvalidParams); r.Error == nil || !strings.Contains(r.Error.Message, "keepAlive") {
					t.Errorf("keepAlive %s: %s", test.keep, r.Body)
				}
				p.CallProposed("tasks/get", id).Want(http.StatusOK, wiretest.InvalidParams)
				continue
			}
			p.Send("tools/call", params).Next()
			if got := fmt.Sprint(p.CallProposed("tasks/get", id).OK().Get("keepAlive")); got != fmt.Sprint(test.want) {
				t.Errorf("keepAlive %s: %s, want %d", test.keep, got, test.want)
			}
		}
		for _, task := range []string{
			`null`, `[]`, `"T"`, `5`, `true`, `{}`, `{"taskId":null}`, `{"taskId":5}`, `{"taskId":""}`, `{"taskId":["T"]}`, `{"taskId":{}}`,
			`{"taskId":"` + strings.Repeat("x", 257) + `"}`,
		} {
			params := map[string]any{"name": "ponder", "arguments": map[string]any{}, "_meta": map[string]any{wiretest.ProposalTask: json.RawMessage(task)}}
			if r := p.CallUnchecked("tools/call", params).Want(http.StatusOK, wiretest.InvalidParams); r.Error == nil || !strings.Contains(r.Error.Message, wiretest.ProposalTask) {
				t.Errorf("%s: %s", task, r.Body)
			}
		}
		// Any other text is an ID, and comes back unchanged.
		for _, id := range []string{"\x00", "a\nb", "\u2028<&>", "../../etc", " ", "\"quoted\"", strings.Repeat("ü", 128)} {
			c := p.Propose(id, "ponder", nil)
			if got := wiretest.ProposalTaskID(t, []byte(c.NextAnswer().Text)); got != id {
				t.Errorf("%q came back as %q", id, got)
			}
			p.CallProposed("tasks/get", id).WantMembers(`{"taskId":%s}`, mustJSON(t, id))
		}
	})
}

// TestProposalDuplicates checks that an ID names one task, whoever created it.
func TestProposalDuplicates(t *testing.T) {
	rules.Covers(t, "A-13", "A-15", "A-16", "A-61")
	runProposal(t, wiretest.Setup{}, func(t *testing.T, a *wiretest.Peer, _ *wiretest.Driven) {
		b := a.NewSibling(wiretest.LegacyRevision, "b")
		a.Propose("T", "ponder", nil).NextAnswer()
		running := a.Propose("U", "run_pipeline", wiretest.PipelineArgs("endless"))
		made := a.NewSibling(wiretest.LegacyRevision, "a").Create("ponder", nil)
		for _, id := range []string{"T", "U", made} {
			r := a.CallUnchecked("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "_meta": wiretest.ProposalMeta(id)}).Want(http.StatusOK, wiretest.InvalidParams)
			if r.Error == nil || !strings.Contains(r.Error.Message, "in use") {
				t.Errorf("%s", r.Body)
			}
		}
		running.WantSilence()
		b.Propose("T", "ponder", nil).NextAnswer() // of another caller
		a.CallProposed("tasks/delete", "T").OK()
		a.Propose("T", "ponder", nil).NextAnswer() // the ID is free again
		// With an idempotency key, the second call gets the first one's task.
		for range 2 {
			meta := wiretest.ProposalMeta("K")
			meta["io.github.mcptaskgen/idempotency-key"] = "key"
			c := a.ProposeWith(meta, "ponder", nil)
			if m := c.Next(); m.Method != wiretest.ProposalCreated || wiretest.ProposalTaskID(t, []byte(m.Text)) != "K" {
				t.Errorf("%s", m.Text)
			}
			if last := c.NextAnswer(); last.Result == nil {
				t.Errorf("%s", last.Text)
			}
		}
	})
}

// TestProposalIgnored checks that a tool which cannot be a task is called as usual, whatever the
// metadata says.
func TestProposalIgnored(t *testing.T) {
	rules.Covers(t, "A-04", "A-05", "A-10")
	runProposal(t, wiretest.Setup{}, func(t *testing.T, before *wiretest.Peer, _ *wiretest.Driven) {
		legacy := before.NewSibling(wiretest.LegacyRevision, "a")
		for _, p := range []*wiretest.Peer{before, legacy} {
			for _, task := range []string{`{"taskId":"F"}`, `{}`, `5`} {
				for tool, arguments := range map[string]map[string]any{"lint_file": {"path": "main.go"}, "sdk_tool": {}} {
					f := p.Send("tools/call", map[string]any{"name": tool, "arguments": arguments, "_meta": map[string]any{wiretest.ProposalTask: json.RawMessage(task)}})
					if m := f.Next(); m.Result == nil || wiretest.ProposalTaskID(t, []byte(m.Text)) != "" {
						t.Errorf("%s: %s", tool, m.Text)
					}
				}
				p.CallProposed("tasks/get", "F").Want(http.StatusOK, wiretest.InvalidParams)
			}
			// Requests other than calls have no tasks either.
			r := p.Call("tools/list", map[string]any{"_meta": map[string]any{wiretest.ProposalTask: map[string]any{"taskId": "L"}}}).OK()
			if r.Get("tools") == nil {
				t.Errorf("%s", r.Body)
			}
			p.CallProposed("tasks/get", "L").Want(http.StatusOK, wiretest.InvalidParams)
		}
		// No tool requires a task in a session that knows no revision with tasks.
		before.CallTool("run_pipeline", wiretest.PipelineArgs("main")).WantPlain()
		legacy.CallTool("run_pipeline", wiretest.PipelineArgs("main")).Want(http.StatusOK, wiretest.MethodNotFound)
	})
}

// TestProposalOff checks that a server supports the proposal only if its options name it.
func TestProposalOff(t *testing.T) {
	rules.Covers(t, "A-04", "A-10")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true})
		for _, protocol := range []string{wiretest.BeforeTasks, wiretest.LegacyRevision} {
			p := wiretest.NewPeer(t, url, protocol, "a")
			f := p.Send("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "_meta": wiretest.ProposalMeta("T")})
			for m := f.Next(); m.Result == nil; m = f.Next() {
				if m.Method != "notifications/progress" || wiretest.ProposalTaskID(t, []byte(m.Text)) != "" {
					t.Errorf("%s", m.Text)
				}
			}
			code := wiretest.MethodNotFound
			if protocol == wiretest.LegacyRevision {
				code = wiretest.InvalidParams
			}
			p.CallProposed("tasks/get", "T").Want(http.StatusOK, code)
			p.CallProposed("tasks/result", "T").Want(http.StatusOK, code)
			p.CallProposed("tasks/delete", "T").Want(http.StatusOK, wiretest.MethodNotFound)
			if p.Opened.Get("capabilities", "tasks") != nil && protocol != wiretest.LegacyRevision {
				t.Errorf("%s", p.Opened.Body)
			}
		}
	})
}

// TestProposalCapabilities checks the capabilities in initialize, and that a client need not declare any.
func TestProposalCapabilities(t *testing.T) {
	rules.Covers(t, "A-01")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveProposal(t, wiretest.Setup{})
		alone := wiretest.WithProposal()
		alone.Revisions = alone.Revisions[:1]
		only, _ := serveProposal(t, wiretest.Setup{Options: alone})
		const proposal, released = `{"requests":{"tools":{"call":true}}}`, `{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`
		for _, test := range []struct{ url, protocol, want string }{
			{url, wiretest.BeforeTasks, proposal}, {url, "2025-03-26", proposal}, {url, wiretest.LegacyRevision, released}, {only, wiretest.BeforeTasks, proposal}, {only, wiretest.LegacyRevision, `null`}, // its schema has another form for this
		} {
			for _, declared := range []string{`{}`, `{"tasks":{"requests":{"elicitation":{"create":true}}}}`} {
				p := wiretest.NewPeerWith(t, test.url, test.protocol, "a", declared)
				got, err := json.Marshal(p.Opened.Get("capabilities", "tasks"))
				if err != nil || string(got) != test.want {
					t.Errorf("%s: %s, want %s", test.protocol, got, test.want)
				}
				id := test.protocol + declared + test.url
				if last := p.Propose(id, "ponder", nil).NextAnswer(); last.Result == nil {
					t.Errorf("%s", last.Text)
				}
				p.CallProposed("tasks/delete", id).OK()
			}
		}
	})
}

// TestProposalLife checks the life of tasks, step by step.
func TestProposalLife(t *testing.T) {
	rules.Covers(t, "A-17", "A-18", "A-19", "A-20", "A-21", "A-22", "A-26")
	options := wiretest.WithProposal()
	options.Concurrency = 1
	runProposal(t, wiretest.Setup{Options: options}, func(t *testing.T, p *wiretest.Peer, d *wiretest.Driven) {
		first := p.Propose("first", "driven", nil)
		d.Tell(internal("a", "first"), "begun")
		// The other tasks wait in line.
		calls := map[string]*wiretest.Proposed{}
		for _, id := range []string{"second", "third", "fourth"} {
			calls[id] = p.Propose(id, "driven", nil)
			p.CallProposed("tasks/get", id).WantMembers(`{"status":"submitted"}`)
			time.Sleep(time.Millisecond) // those of one time may come in any order
		}
		quick := p.Propose("quick", "ponder", nil)
		p.CallProposed("tasks/get", "quick").WantMembers(`{"status":"submitted"}`)
		p.CancelCall(calls["third"]) // before it has started
		p.UntilProposed("third", "cancelled")
		p.UntilProposed("first", "working")
		d.Tell(internal("a", "first"), "ask")
		question := first.NextQuestionOf("first")
		p.UntilProposed("first", "input_required")
		d.Tell(internal("a", "second"), "begun") // the first task has freed its slot
		p.UntilProposed("second", "working")
		d.Tell(internal("a", "second"), "fail")
		p.UntilProposed("second", "failed")
		d.Tell(internal("a", "fourth"), "begun", "ask")
		late := calls["fourth"].NextQuestionOf("fourth")
		p.UntilProposed("fourth", "input_required")
		p.Respond(question.ID, wiretest.AcceptNote("n"))
		p.UntilProposed("first", "working")
		d.Tell(internal("a", "first"), "done")
		p.UntilProposed("first", "completed")
		p.CancelCall(calls["fourth"])
		p.UntilProposed("fourth", "cancelled")
		// A task that has ended does not change.
		p.Respond(late.ID, wiretest.AcceptNote("late"))
		quick.NextAnswer() // no poll has seen it at work
		p.UntilProposed("quick", "completed")
		for id, want := range map[string]string{"first": "completed", "second": "failed", "third": "cancelled", "fourth": "cancelled"} {
			if c := calls[id]; c != nil {
				p.CancelCall(c)
			}
			p.CancelCall(first)
			if r := p.CallProposed("tasks/get", id).OK(); r.Text("status") != want {
				t.Errorf("%s is %s", id, r.Body)
			}
		}
	})
}

// TestProposalFailed checks that a task can end with a tool error, an error, or a panic.
func TestProposalFailed(t *testing.T) {
	rules.Covers(t, "A-23", "A-34", "A-35", "A-59", "A-60", "A-63", "A-64", "A-65")
	runProposal(t, wiretest.Setup{Panics: true}, func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
		p = p.NewSibling(wiretest.LegacyRevision, "a")
		for _, test := range []struct {
			tool    string
			args    map[string]any
			code    int // of the answer
			message string
		}{
			{"locked", nil, 4055, "the repository is locked"},
			{"run_pipeline", wiretest.PipelineArgs("panic"), wiretest.InternalError, "internal error"},
		} {
			last := p.Propose(test.message, test.tool, test.args).NextAnswer()
			var e struct {
				Code    int
				Message string
			}
			if err := json.Unmarshal(last.Error, &e); err != nil || e.Code != test.code || e.Message != test.message {
				t.Errorf("%s", last.Text)
			}
			p.CallProposed("tasks/get", test.message).WantMembers(`{"status":"failed","error":%q}`, test.message)
			p.CallProposed("tasks/result", test.message).Want(http.StatusOK, wiretest.InvalidParams)
		}
		// A tool error is a result.
		last := p.Propose("broken", "run_pipeline", wiretest.PipelineArgs("broken")).NextAnswer()
		result := p.CallProposed("tasks/result", "broken").OK()
		if wiretest.ToolText(last.Result) != "isError: the branch does not build" || !wiretest.SameJSON(string(last.Result), string(result.Result)) {
			t.Errorf("%s, by tasks/result %s", last.Text, result.Body)
		}
		p.CallProposed("tasks/get", "broken").WantMembers(`{"status":"completed","error":null}`)
		// A running task and a cancelled task have no result.
		c := p.Propose("endless", "run_pipeline", wiretest.PipelineArgs("endless"))
		p.CallProposed("tasks/result", "endless").Want(http.StatusOK, wiretest.InvalidParams)
		p.CancelCall(c)
		p.UntilProposed("endless", "cancelled")
		p.CallProposed("tasks/result", "endless").Want(http.StatusOK, wiretest.InvalidParams).WantIn("cancelled")
	})
}

// TestProposalLost checks that a task whose worker was lost has failed and gives the reason, and that it has no result.
func TestProposalLost(t *testing.T) {
	rules.Covers(t, "A-21", "A-23", "A-35")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		now := time.Now()
		store := taskstore.NewMemory()
		_, err := store.Create(t.Context(), taskstore.Record{
			ID: internal("a", "lost"), ExternalID: "lost", Principal: "a", Account: "principal a", Tool: "driven", Arguments: json.RawMessage(`{}`),
			Revision: mcptask.RevisionSEP1686, Phase: taskstore.PhaseRunning, CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(time.Hour),
			Poll: time.Second, Attempt: 1, Claim: taskstore.Claim{Worker: "dead"},
		}, taskstore.Quota{})
		if err != nil {
			t.Fatal(err)
		}
		options := wiretest.WithProposal()
		options.Store = store
		url, _ := serveProposal(t, wiretest.Setup{Options: options})
		p := wiretest.NewPeer(t, url, wiretest.BeforeTasks, "a")
		if r := p.UntilProposed("lost", "failed"); r.Text("error") == "" {
			t.Errorf("%s", r.Body)
		}
		p.CallProposed("tasks/result", "lost").Want(200, wiretest.InvalidParams)
	})
}

func TestProposalNotFound(t *testing.T) {
	rules.Covers(t, "A-57", "A-61", "A-66", "A-67", "A-68")
	runProposal(t, wiretest.Setup{}, func(t *testing.T, a *wiretest.Peer, _ *wiretest.Driven) {
		b := a.NewSibling(wiretest.BeforeTasks, "b")
		a.Propose("T", "ponder", nil).NextAnswer()
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/delete"} {
			for _, id := range []any{"none", "", "\x00", strings.Repeat("x", 10_000), 5, nil, []any{"T"}, map[string]any{}, true} {
				r := a.CallUnchecked(method, map[string]any{"taskId": id, "_meta": map[string]any{wiretest.ProposalRelated: map[string]any{"taskId": "T"}}})
				if r.Want(http.StatusOK, wiretest.InvalidParams); r.Error == nil || r.Error.Message == "" {
					t.Errorf("%s of %v: %s", method, id, r.Body)
				}
			}
			a.CallUnchecked(method, map[string]any{"_meta": map[string]any{wiretest.ProposalRelated: map[string]any{}}}).Want(http.StatusOK, wiretest.InvalidParams)
			// Another caller's task does not exist, under either ID.
			none := b.CallProposed(method, "none")
			for _, id := range []string{"T", internal("a", "T")} {
				if r := b.CallProposed(method, id).Want(http.StatusOK, wiretest.InvalidParams); r.Error.Message != none.Error.Message {
					t.Errorf("%s, for none %s", r.Body, none.Body)
				}
			}
		}
		// Another session of the same principal finds the task.
		a.NewSibling(wiretest.LegacyRevision, "a").CallProposed("tasks/get", "T").WantMembers(`{"status":"completed"}`)
		if list := b.CallUnchecked("tasks/list", nil).OK().Get("tasks").([]any); len(list) != 0 {
			t.Errorf("%v", list)
		}
		// Without authentication, the session is the owner.
		open, _ := wiretest.ServeWith(t, wiretest.Setup{Options: wiretest.WithProposal()})
		x, y := wiretest.NewPeer(t, open, wiretest.BeforeTasks, ""), wiretest.NewPeer(t, open, wiretest.BeforeTasks, "")
		x.Propose("T", "ponder", nil).NextAnswer()
		x.CallProposed("tasks/get", "T").OK()
		y.CallProposed("tasks/get", "T").Want(http.StatusOK, wiretest.InvalidParams)
		y.Propose("T", "ponder", nil).NextAnswer()
		x.CallUnchecked("tasks/list", nil).Want(http.StatusOK, wiretest.MethodNotFound)
	})
}

// TestProposalList checks tasks/list.
func TestProposalList(t *testing.T) {
	rules.Covers(t, "A-49", "A-50", "A-52", "A-58")
	runProposal(t, wiretest.Setup{}, func(t *testing.T, a *wiretest.Peer, _ *wiretest.Driven) {
		b := a.NewSibling(wiretest.BeforeTasks, "b")
		want := map[string]bool{}
		for i := range 120 {
			id := fmt.Sprint("task ", i)
			want[id] = true
			c := a.Propose(id, "ponder", nil)
			c.NextAnswer()
			c.Stop()
		}
		tasks, cursors := wiretest.ListPages(t, func(params map[string]any) *wiretest.Response { return a.CallUnchecked("tasks/list", params) })
		for _, task := range tasks {
			id := task["taskId"].(string)
			if !want[id] {
				t.Errorf("%s is not a's", id)
			}
			a.CallProposed("tasks/get", id).WantMembers("%s", mustJSON(t, task)) // the same task, alone
		}
		if len(tasks) != len(want) || len(cursors) != 2 {
			t.Errorf("%d of %d tasks, %d cursors", len(tasks), len(want), len(cursors))
		}
		for _, bad := range []any{"", "x", cursors[0][1:], cursors[0] + "A", 5, []any{}, true} {
			a.CallUnchecked("tasks/list", map[string]any{"cursor": bad}).Want(http.StatusOK, wiretest.InvalidParams)
		}
		b.CallUnchecked("tasks/list", map[string]any{"cursor": cursors[0]}).Want(http.StatusOK, wiretest.InvalidParams)
	})
}

// TestProposalDelete checks tasks/delete.
func TestProposalDelete(t *testing.T) {
	rules.Covers(t, "A-38", "A-53", "A-54", "A-55", "A-57", "A-75")
	logs := &wiretest.SafeBuffer{}
	options := wiretest.WithProposal()
	options.Logger = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	runProposal(t, wiretest.Setup{Options: options}, func(t *testing.T, p *wiretest.Peer, d *wiretest.Driven) {
		c := p.Propose("T", "driven", nil)
		d.Tell(internal("a", "T"), "begun")
		p.CallProposed("tasks/delete", "T").Want(http.StatusOK, wiretest.InvalidRequest).WantIn("working")
		d.Tell(internal("a", "T"), "done")
		c.NextAnswer()
		p.CallProposed("tasks/result", "T").OK()
		meta := wiretest.ProposalMeta("K")
		meta["io.github.mcptaskgen/idempotency-key"] = "key"
		keyed := p.ProposeWith(meta, "ponder", nil)
		keyed.Next()
		keyed.NextAnswer()
		for _, id := range []string{"T", "K"} {
			want := fmt.Sprintf(`{"_meta":{%q:{"taskId":%q}}}`, wiretest.ProposalRelated, id)
			if r := p.CallProposed("tasks/delete", id).OK(); !wiretest.SameJSON(string(r.Result), want) {
				t.Errorf("%s", r.Body)
			}
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/delete"} {
				p.CallProposed(method, id).Want(http.StatusOK, wiretest.InvalidParams)
			}
		}
		if list := p.CallUnchecked("tasks/list", nil).OK().Get("tasks").([]any); len(list) != 0 {
			t.Errorf("%v", list)
		}
		for kind, want := range map[string]int{"created": 2, "ended": 2, "retrieved": 3, "deleted": 2} { // the calls of T and K have retrieved results too
			text := logs.WaitFor(t, "audit="+kind+" ", want)
			if got := strings.Count(text, "audit="+kind+" "); got != want {
				t.Errorf("%d records %q, want %d:\n%s", got, kind, want, text)
			}
		}
		if text := logs.String(); !strings.Contains(text, "audit=deleted task="+internal("a", "T")+" tool=driven principal=a revision=sep-1686") {
			t.Error(text)
		}
	})
}

// TestProposalLimits checks that the limits hold in the proposal too, and that tasks disappear when
// their time is over.
func TestProposalLimits(t *testing.T) {
	rules.Covers(t, "A-30", "A-44", "A-62", "A-70", "A-71", "A-73")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		options := wiretest.WithProposal()
		options.Limits = taskserver.Limits{Running: 1, Polls: 5, Lists: 5}
		brief := mcptask.NewTool(mcptask.ToolSpec{Name: "brief", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional, TTL: 30 * time.Second}},
			func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})
		url, tasks := wiretest.ServeWith(t, wiretest.Setup{Options: options, Bearer: true, Tools: []mcptask.Tools{{Service: "Brief", Impl: 1, Tools: []mcptask.Tool{brief}}}})
		p := wiretest.NewPeer(t, url, wiretest.BeforeTasks, "a")
		call := func(id string, keep int) map[string]any {
			return map[string]any{"name": "brief", "arguments": map[string]any{},
				"_meta": map[string]any{wiretest.ProposalTask: map[string]any{"taskId": id, "keepAlive": keep}}}
		}
		c := &wiretest.Proposed{Feed: p.Send("tools/call", call("T", 1)), ID: p.IDs.Load()}
		c.Next()
		p.CallUnchecked("tools/call", call("U", 1)).WantLimit(http.StatusOK, "running", 1)
		wiretest.NewPeer(t, url, wiretest.BeforeTasks, "b").Propose("V", "ponder", nil).NextAnswer()
		p.CancelCall(c)
		c.Next()
		time.Sleep(time.Minute) // its keepAlive is over
		if _, err := tasks.Backend().Peek(internal("a", "T")); !errors.Is(err, taskstore.ErrNoRecord) {
			t.Fatal("the record stays")
		}
		p.CallProposed("tasks/get", "T").Want(http.StatusOK, wiretest.InvalidParams)
		wiretest.Flood(t, func() *wiretest.Response { return p.CallProposed("tasks/get", "W") }).WantLimit(http.StatusTooManyRequests, "polls", 5)
		wiretest.Flood(t, func() *wiretest.Response { return p.CallProposed("tasks/result", "X") }).WantLimit(http.StatusTooManyRequests, "polls", 5)
		wiretest.Flood(t, func() *wiretest.Response { return p.CallUnchecked("tasks/list", nil) }).WantLimit(http.StatusTooManyRequests, "lists", 5)
	})
}
