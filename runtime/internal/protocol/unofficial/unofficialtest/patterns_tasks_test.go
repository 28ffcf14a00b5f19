package unofficialtest

import (
	"context"
	"encoding/json"
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
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// TestPatternsAcross shows one task in another revision to the same principal. It covers every
// mapping of an outcome to and from the guide.
func TestPatternsAcross(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := serveGuide(t)
		d, c, e := newGuide(t, url, "a"), wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a"), wiretest.NewPeer(t, url, wiretest.ModernRevision, "a")
		for _, test := range []struct {
			tool             string
			arguments        map[string]any
			inD, inC, inE    string
			hasResult, fails bool
		}{
			{"raw", map[string]any{}, "completed", "completed", "completed", true, false},
			{"two_notes", map[string]any{}, "completed", "failed", "completed", true, false}, // a tool error
			{"locked", map[string]any{}, "failed", "failed", "failed", false, true},
			{"run_pipeline", wiretest.PipelineArgs("endless"), "working", "working", "working", false, false},
		} {
			external := "made in d: " + test.tool
			d.begin(external, test.tool, string(mustJSON(t, test.arguments))).OK()
			made, inC, inE := c.NewestTask(), c.Create(test.tool, test.arguments), e.Create(test.tool, test.arguments)
			for id, name := range map[string]string{made: external, inC: inC, inE: inE} { // the guide's name of the task with this stored ID
				fromD := d.reaches(name, test.inD).WantMembers(`{"id":%q,"ttl":null}`, name)
				fromC, fromE := c.Until(id, test.inC).WantMembers(`{"taskId":%q}`, id), e.Until(id, test.inE).WantMembers(`{"taskId":%q}`, id)
				for _, member := range []string{"createdAt", "lastUpdatedAt"} {
					if at := fromD.Text(member); at == "" || test.inD != "working" && (at != fromC.Text(member) || at != fromE.Text(member)) {
						t.Errorf("%s: %s %s %s", member, fromD.Body, fromC.Body, fromE.Body)
					}
				}
				if fromC.Get("ttl") != fromE.Get("ttlMs") {
					t.Errorf("ttl: %s %s", fromC.Body, fromE.Body)
				}
				switch {
				case test.hasResult:
					got := wiretest.ToolText(mustJSON(t, d.about("tasks/result", name).OK().Get("result")))
					if inC := wiretest.ToolText(c.Task("tasks/result", id).OK().Result); got != inC || got != wiretest.ToolText(mustJSON(t, fromE.Get("result"))) {
						t.Errorf("%s, in 2025-11-25 %s", got, inC)
					}
				case test.fails:
					wire := c.Task("tasks/result", id).Want(http.StatusOK, 4055).Error
					d.about("tasks/result", name).WantMembers(`{"error":{"code":%d,"message":%q}}`, wire.Code, wire.Message)
					fromE.WantMembers(`{"error":{"message":%q}}`, wire.Message)
				default:
					d.about("tasks/result", name).Want(http.StatusOK, wiretest.InvalidParams)
				}
			}
		}
		// The other revisions do not know the guide's ID. The guide accepts the stored ID too.
		c.Task("tasks/get", "made in d: raw").Want(http.StatusOK, wiretest.InvalidParams)
		e.Task("tasks/get", "made in d: raw").Want(http.StatusBadRequest, wiretest.InvalidParams)
		d.begin("one more", "raw", `{}`).OK()
		id := c.NewestTask()
		d.about("tasks/get", id).WantMembers(`{"id":%q}`, id)
		for _, p := range []*wiretest.Peer{c.NewSibling(wiretest.LegacyRevision, "b"), c.NewSibling(wiretest.ModernRevision, "b"), newGuide(t, url, "b").Peer} {
			r := p.Task("tasks/get", id)
			r.Want(r.Status, wiretest.InvalidParams)
		}
		// A list has the guide's IDs for the guide's tasks, and stored IDs for all others.
		list := d.ask("tasks/list", "").OK()
		if !strings.Contains(string(list.Result), `"id":"one more"`) || strings.Contains(string(list.Result), id) {
			t.Errorf("%s", list.Body)
		}
	})
}

// TestPatternsAcrossCancel checks that a cancellation in one revision shows in the others.
func TestPatternsAcrossCancel(t *testing.T) {
	rules.Covers(t, "D-14")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := serveGuide(t)
		d, c, e := newGuide(t, url, "a"), wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a"), wiretest.NewPeer(t, url, wiretest.ModernRevision, "a")
		for i, way := range []struct{ maker, canceller *wiretest.Peer }{{d.Peer, c}, {d.Peer, e}, {c, d.Peer}, {e, d.Peer}} {
			var name, id string // in the guide, and in the others
			if way.maker == d.Peer {
				name = fmt.Sprint("task ", i)
				d.begin(name, "run_pipeline", endlessRun).OK()
				id = c.NewestTask()
			} else {
				id = way.maker.Create("run_pipeline", wiretest.PipelineArgs("endless"))
				name = id
			}
			if way.canceller == d.Peer {
				d.about("tasks/cancel", name).OK()
			} else {
				way.canceller.Task("tasks/cancel", id).OK()
			}
			d.reaches(name, "cancelled")
			c.Until(id, "cancelled")
			e.Until(id, "cancelled")
			d.about("tasks/cancel", name).Want(http.StatusOK, wiretest.InvalidParams)
			c.Task("tasks/cancel", id).Want(http.StatusOK, wiretest.InvalidParams)
			e.Task("tasks/cancel", id).OK()
		}
	})
}

// TestPatternsAcrossQuestions checks that a task's question goes to every client that knows the
// task, and may be answered in any revision. If the user declines, the task ends as cancelled only
// for the guide.
func TestPatternsAcrossQuestions(t *testing.T) {
	rules.Covers(t, "D-16")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := serveGuide(t)
		d := newGuideThat(t, url, "a", wiretest.AllCapabilities)
		c, e := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.AllCapabilities), wiretest.NewAskedPeer(t, url, wiretest.ModernRevision, "a", wiretest.AllCapabilities)
		d.asks("made in d", "ask", `{"steps":["one"]}`)
		d.reaches("made in d", "input_required")
		id := c.NewestTask()
		c.Until(id, "input_required")
		e.Until(id, "input_required").WantMembers(`{"inputRequests":{"one":{}}}`)
		e.Call("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{"one": json.RawMessage(`{"action":"accept","content":{"note":"e"}}`)}}).OK()
		d.reaches("made in d", "completed")
		d.wantResult("made in d", "e")
		for _, maker := range []*wiretest.Peer{c, e} {
			id := maker.Create("ask_and_fail", nil)
			d.reaches(id, "input_required") // now the guide's session knows the task too
			f := d.OpenGet()
			d.Respond(f.NextGuideMessage("elicitation/create").ID, `"result":{"action":"decline"}`)
			f.Stop()
			d.reaches(id, "cancelled")
			c.Until(id, "failed")
			e.Until(id, "completed")
			if got := c.TaskText(id); got != "isError: one: the question was declined" {
				t.Error(got)
			}
			d.about("tasks/result", id).Want(http.StatusOK, wiretest.InvalidParams)
		}
	})
}

// TestPatternsLimits checks that the number of tasks and the rate of polls are limited.
func TestPatternsLimits(t *testing.T) {
	rules.Covers(t, "D-17", "D-21")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: taskserver.Options{Revisions: wiretest.OnlyPatterns, Limits: taskserver.Limits{Tasks: 3, Running: 2, Polls: 2, Lists: 2}}})
		a, b := newGuide(t, url, "a"), newGuide(t, url, "b")
		a.begin("1", "run_pipeline", endlessRun).OK()
		a.begin("2", "run_pipeline", endlessRun).OK()
		a.begin("3", "run_pipeline", endlessRun).WantLimit(http.StatusOK, "running", 2)
		a.begin("2", "run_pipeline", endlessRun).OK() // which creates no task
		b.begin("3", "run_pipeline", endlessRun).OK()
		a.about("tasks/cancel", "1").OK()
		a.begin("3", "run_pipeline", endlessRun).OK()
		a.about("tasks/cancel", "2").OK()
		a.begin("4", "run_pipeline", endlessRun).WantLimit(http.StatusOK, "tasks", 3)
		for _, id := range []string{"3", "made up"} {
			wiretest.Flood(t, func() *wiretest.Response { return a.about("tasks/get", id) }).WantLimit(http.StatusTooManyRequests, "polls", 2)
		}
		wiretest.Flood(t, func() *wiretest.Response { return a.ask("tasks/list", "") }).WantLimit(http.StatusTooManyRequests, "lists", 2)
		b.about("tasks/get", "3").OK()
		b.ask("tasks/list", "").OK()
	})
}

// TestPatternsTTL checks that a task disappears at the end of its ttl, and that its ID is free
// again.
func TestPatternsTTL(t *testing.T) {
	rules.Covers(t, "D-07", "D-22")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		policy := mcptask.Policy{Task: mcptask.TaskOptional, TTL: 1200 * time.Millisecond}
		tool := mcptask.NewTool(mcptask.ToolSpec{Name: "brief", InputSchema: wiretest.OpenObject, Policy: policy},
			func(ctx context.Context, _ *mcptask.Task, in wiretest.PonderInput) (string, error) {
				if in.Stubborn {
					<-ctx.Done()
				}
				return "done", ctx.Err()
			})
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: taskserver.Options{Revisions: wiretest.OnlyPatterns},
			Tools: []mcptask.Tools{{Service: "Brief", Impl: 1, Tools: []mcptask.Tool{tool}}}})
		p := newGuide(t, url, "a")
		for id, arguments := range map[string]string{"ends": `{}`, "goes on": `{"stubborn":true}`} {
			p.begin(id, "brief", arguments).WantMembers(`{"_meta":{"task":{"ttl":2}}}`) // whole seconds
			time.Sleep(time.Second)
			p.about("tasks/get", id).OK()
			time.Sleep(time.Second)
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
				p.about(method, id).Want(http.StatusOK, wiretest.InvalidParams)
			}
			if list := p.ask("tasks/list", "").OK(); strings.Contains(string(list.Result), id) {
				t.Errorf("%s", list.Body)
			}
			p.begin(id, "deploy_service", staging).OK() // even for another call
		}
	})
}

// TestPatternsLog checks that the log shows created and ended tasks with their owners, and that
// tasks outlive the server if the store does.
func TestPatternsLog(t *testing.T) {
	rules.Covers(t, "D-18", "D-24")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		logs, store := &wiretest.SafeBuffer{}, taskstore.NewMemory()
		t.Cleanup(func() { _ = store.Close() })
		options := taskserver.Options{Revisions: wiretest.OnlyPatterns, Store: store, Limits: wiretest.NoPollLimits,
			Logger: slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		first, before := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: options})
		p := newGuide(t, first, "alice")
		p.begin("done", "deploy_service", staging).OK()
		p.reaches("done", "completed")
		p.about("tasks/result", "done").OK()
		p.begin("stopped", "run_pipeline", endlessRun).OK()
		p.about("tasks/cancel", "stopped").OK()
		p.begin("fails", "run_pipeline", refusedRun).OK()
		p.reaches("fails", "failed")
		newGuide(t, first, "eve").about("tasks/get", "done").Want(http.StatusOK, wiretest.InvalidParams)
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}
		second, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: options})
		p = newGuide(t, second, "alice")
		p.reaches("done", "completed")
		p.reaches("stopped", "cancelled")
		if r := p.begin("done", "deploy_service", staging).OK(); r.Text("_meta", "task", "status") != "completed" {
			t.Errorf("it was made again: %s", r.Body)
		}
		seen := map[string]int{}
		for line := range strings.Lines(logs.String()) {
			var record struct{ Audit, Principal, Revision, Task, Tool string }
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			if record.Audit == "" {
				continue
			}
			seen[record.Audit]++
			if record.Task == "" || record.Audit == "created" && (record.Principal != "alice" || record.Revision != wirecheck.Patterns || record.Tool == "") {
				t.Errorf("%s", line)
			}
		}
		if seen["created"] != 3 || seen["ended"] != 3 || seen["retrieved"] == 0 {
			t.Errorf("%v:\n%s", seen, logs.String())
		}
	})
}

// TestPatternsAcrossProposal checks that the guide and the proposal SEP-1686 share the names that a
// caller gives: each shows the other's task under the same name.
func TestPatternsAcrossProposal(t *testing.T) {
	rules.Covers(t, "D-13", "D-14", "D-16", "A-16", "A-29", "A-38")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		revisions := append([]string{mcptask.RevisionSEP1686}, wiretest.WithPatterns...)
		url, _ := serveProposal(t, wiretest.Setup{Options: taskserver.Options{Revisions: revisions}})
		d, a := newGuideThat(t, url, "a", wiretest.AllCapabilities), wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
		for _, test := range []struct{ tool, status string }{{"raw", "completed"}, {"locked", "failed"}} {
			made, proposed := "made in d: "+test.tool, "made in a: "+test.tool
			d.begin(made, test.tool, `{}`).OK()
			a.Propose(proposed, test.tool, nil).NextAnswer()
			for _, id := range []string{made, proposed, internal("a", made), internal("a", proposed)} {
				fromD, fromA := d.reaches(id, test.status), a.UntilProposed(id, test.status)
				fromD.WantMembers(`{"id":%q}`, id)
				if fromA.WantMembers(`{"taskId":%q}`, id); fromD.Text("error", "message") != fromA.Text("error") || fromA.Number("keepAlive") <= 0 {
					t.Errorf("%s %s", fromD.Body, fromA.Body)
				}
				if test.status == "failed" {
					a.CallProposed("tasks/result", id).Want(http.StatusOK, wiretest.InvalidParams)
					continue
				}
				inA, inD := a.CallProposed("tasks/result", id).OK(), d.about("tasks/result", id).OK()
				if got := wiretest.ToolText(mustJSON(t, inD.Get("result"))); got != wiretest.ToolText(inA.Result) || got == "" || wiretest.ProposalTaskID(t, inA.Body) != id {
					t.Errorf("%s %s", inD.Body, inA.Body)
				}
			}
			d.begin(proposed, test.tool, `{}`).Want(http.StatusOK, wiretest.InvalidParams) // its key differs from the caller's own
			a.CallUnchecked("tools/call", map[string]any{"name": test.tool, "arguments": map[string]any{}, "_meta": wiretest.ProposalMeta(made)}).Want(http.StatusOK, wiretest.InvalidParams)
		}
		d.begin("stopped in d", "run_pipeline", endlessRun).OK()
		a.UntilProposed("stopped in d", "working")
		d.about("tasks/cancel", "stopped in d").OK()
		a.UntilProposed("stopped in d", "cancelled")
		call := a.Propose("stopped in a", "run_pipeline", wiretest.PipelineArgs("endless"))
		d.reaches("stopped in a", "working")
		a.CancelCall(call)
		d.reaches("stopped in a", "cancelled")
		d.about("tasks/result", "stopped in a").Want(http.StatusOK, wiretest.InvalidParams)
		// A user who declines cancels the task for the guide, and completes it with the
		// tool error for the proposal.
		d.asks("declined", "ask_and_fail", `{}`)
		f := d.OpenGet()
		d.Respond(f.NextGuideMessage("elicitation/create").ID, `"result":{"action":"decline"}`)
		d.reaches("declined", "cancelled")
		a.UntilProposed("declined", "completed")
		if got := wiretest.ToolText(a.CallProposed("tasks/result", "declined").OK().Result); got != "isError: one: the question was declined" {
			t.Error(got)
		}
		d.ask("tasks/list", "").OK().WantIn(`"id":"stopped in a"`, `"id":"stopped in d"`)
	})
}
