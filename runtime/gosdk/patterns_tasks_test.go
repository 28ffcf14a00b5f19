package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// newest is the stored ID of the newest of the caller's tasks, as 2025-11-25 lists
// it.
func (p *peer) newest() string {
	p.t.Helper()
	list, _ := p.call("tasks/list", nil).ok().get("tasks").([]any)
	if len(list) == 0 {
		p.t.Fatal("no tasks")
	}
	id, _ := list[len(list)-1].(map[string]any)["taskId"].(string)
	return id
}

// One task, seen through another revision by the same principal: each mapping of
// what a task ended with, from tasks of the guide and to them.
func TestPatternsAcross(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := serveGuide(t, setup{bearer: true})
		d, c, e := newGuide(t, url, "a"), newPeer(t, url, legacyRevision, "a"), newPeer(t, url, modernRevision, "a")
		for _, test := range []struct {
			tool, arguments  string
			inD, inC, inE    string
			data             bool // the error has some
			hasResult, fails bool
		}{
			{"raw", `{}`, "completed", "completed", "completed", false, true, false},
			{"two_notes", `{}`, "completed", "failed", "completed", false, true, false}, // a tool error
			{"locked", `{}`, "failed", "failed", "failed", true, false, true},
			{"run_pipeline", endlessRun, "working", "working", "working", false, false, false},
		} {
			var arguments map[string]any
			if err := json.Unmarshal([]byte(test.arguments), &arguments); err != nil {
				t.Fatal(err)
			}
			external := "made in d: " + test.tool
			d.begin(external, test.tool, test.arguments).ok()
			ids := map[string]string{ // what each calls it in the guide, by its stored ID
				c.newest():                     external,
				c.create(test.tool, arguments): "",
				e.create(test.tool, arguments): "",
			}
			if len(ids) != 3 {
				t.Fatalf("%v", ids)
			}
			for id, name := range ids {
				if name == "" {
					name = id
				}
				d.reaches(name, test.inD)
				c.until(id, test.inC)
				e.until(id, test.inE)
				fromD := d.about("tasks/get", name).ok()
				fromC, fromE := c.task("tasks/get", id).ok(), e.task("tasks/get", id).ok()
				if fromC.text("taskId") != id || fromE.text("taskId") != id || fromD.text("id") != name {
					t.Errorf("the IDs of %s: %s %s %s", id, fromD.body, fromC.body, fromE.body)
				}
				for _, member := range []string{"createdAt", "lastUpdatedAt"} {
					if at := fromD.text(member); at == "" || test.inD != "working" && (at != fromC.text(member) || at != fromE.text(member)) {
						t.Errorf("%s: %s %s %s", member, fromD.body, fromC.body, fromE.body)
					}
				}
				if fromC.get("ttl") != fromE.get("ttlMs") || fromD.get("ttl") != nil {
					t.Errorf("ttl: %s %s %s", fromD.body, fromC.body, fromE.body)
				}
				switch {
				case test.hasResult:
					got := toolText(mustJSON(t, d.about("tasks/result", name).ok().get("result")))
					if inC := toolText(c.task("tasks/result", id).ok().Result); got != inC || got != toolText(mustJSON(t, fromE.get("result"))) {
						t.Errorf("%s, in 2025-11-25 %s", got, inC)
					}
				case test.fails:
					ended := d.about("tasks/result", name).ok()
					wire := c.task("tasks/result", id).want(http.StatusOK, -32055).Error
					if ended.text("error", "message") != wire.Message || fmt.Sprint(ended.get("error", "code")) != fmt.Sprint(wire.Code) || fromE.text("error", "message") != wire.Message {
						t.Errorf("%s %s", ended.body, fromE.body)
					}
				default:
					d.about("tasks/result", name).want(http.StatusOK, invalidParams)
				}
			}
		}
		// The guide's ID is nothing to the others, and the stored one is an ID to the
		// guide too.
		c.task("tasks/get", "made in d: raw").want(http.StatusOK, invalidParams)
		e.task("tasks/get", "made in d: raw").want(http.StatusBadRequest, invalidParams)
		d.begin("one more", "raw", `{}`).ok()
		id := c.newest()
		if r := d.about("tasks/get", id).ok(); r.text("id") != id {
			t.Errorf("%s", r.body)
		}
		for _, p := range []*peer{newPeer(t, url, legacyRevision, "b"), newPeer(t, url, modernRevision, "b"), newGuide(t, url, "b").peer} {
			if r := p.task("tasks/get", id); r.Error == nil || r.Error.Code != invalidParams {
				t.Errorf("%s", r.body)
			}
		}
		// A list has the guide's IDs for the guide's tasks, and the stored ones else.
		list := d.ask("tasks/list", "").ok()
		if !strings.Contains(string(list.Result), `"id":"one more"`) || strings.Contains(string(list.Result), id) {
			t.Errorf("%s", list.body)
		}
	})
}

// Cancelling in one revision shows in the others.
func TestPatternsAcrossCancel(t *testing.T) {
	rules.Covers(t, "D-14")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := serveGuide(t, setup{bearer: true})
		d, c, e := newGuide(t, url, "a"), newPeer(t, url, legacyRevision, "a"), newPeer(t, url, modernRevision, "a")
		begin := map[string]func() (name, id string){
			"d": func() (string, string) {
				d.begin("t", "run_pipeline", endlessRun)
				return "t", c.newest()
			},
			"c": func() (string, string) { id := c.create("run_pipeline", pipelineArgs("endless")); return id, id },
			"e": func() (string, string) { id := e.create("run_pipeline", pipelineArgs("endless")); return id, id },
		}
		cancel := map[string]func(name, id string){
			"d": func(name, _ string) { d.about("tasks/cancel", name).ok() },
			"c": func(_, id string) { c.task("tasks/cancel", id).ok() },
			"e": func(_, id string) { e.task("tasks/cancel", id).ok() },
		}
		for _, way := range []string{"dc", "de", "cd", "ed"} {
			if way == "de" {
				d = newGuide(t, url, "b") // the ID is in use
				c, e = newPeer(t, url, legacyRevision, "b"), newPeer(t, url, modernRevision, "b")
			}
			name, id := begin[way[:1]]()
			cancel[way[1:]](name, id)
			d.reaches(name, "cancelled")
			c.until(id, "cancelled")
			e.until(id, "cancelled")
			d.about("tasks/cancel", name).want(http.StatusOK, invalidParams)
			c.task("tasks/cancel", id).want(http.StatusOK, invalidParams)
			e.task("tasks/cancel", id).ok()
		}
	})
}

// A question of a task is asked of whoever knows the task, and answered in any
// revision; that its user has declined ends it as cancelled for the guide alone.
func TestPatternsAcrossQuestions(t *testing.T) {
	rules.Covers(t, "D-16")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := serveGuide(t, setup{bearer: true})
		d := newGuideThat(t, url, "a", canAll)
		c, e := newAsked(t, url, legacyRevision, "a", canAll), newAsked(t, url, modernRevision, "a", canAll)
		d.asks("made in d", "ask", `{"steps":["one"]}`)
		d.reaches("made in d", "input_required")
		id := c.newest()
		c.until(id, "input_required")
		if r := e.until(id, "input_required"); r.get("inputRequests", "one") == nil {
			t.Errorf("%s", r.body)
		}
		e.call("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{"one": json.RawMessage(`{"action":"accept","content":{"note":"e"}}`)}}).ok()
		d.reaches("made in d", "completed")
		if r := d.about("tasks/result", "made in d").ok(); toolText(mustJSON(t, r.get("result"))) != "e" {
			t.Errorf("%s", r.body)
		}
		for _, maker := range []*peer{c, e} {
			id := maker.create("ask_and_fail", nil)
			d.reaches(id, "input_required") // now the guide's session knows it, too
			f := d.get()
			d.respond(f.heard("elicitation/create").ID, `"result":{"action":"decline"}`)
			f.stop()
			d.reaches(id, "cancelled")
			c.until(id, "failed")
			e.until(id, "completed")
			if got := c.outcome(id); got != "isError: mcptask: the question was declined" {
				t.Error(got)
			}
			d.about("tasks/result", id).want(http.StatusOK, invalidParams)
		}
	})
}

// How many tasks there are is bounded, and how often one is asked for.
func TestPatternsLimits(t *testing.T) {
	rules.Covers(t, "D-17", "D-21")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{bearer: true, options: mcptask.Options{Revisions: onlyPatterns, Limits: mcptask.Limits{Tasks: 3, Running: 2, Polls: 2, Lists: 2}}})
		a, b := newGuide(t, url, "a"), newGuide(t, url, "b")
		a.begin("1", "run_pipeline", endlessRun).ok()
		a.begin("2", "run_pipeline", endlessRun).ok()
		a.begin("3", "run_pipeline", endlessRun).limited(http.StatusOK, "running", 2)
		a.begin("2", "run_pipeline", endlessRun).ok() // which makes none
		b.begin("3", "run_pipeline", endlessRun).ok()
		a.about("tasks/cancel", "1").ok()
		a.begin("3", "run_pipeline", endlessRun).ok()
		a.about("tasks/cancel", "2").ok()
		a.begin("4", "run_pipeline", endlessRun).limited(http.StatusOK, "tasks", 3)
		for _, id := range []string{"3", "made up"} {
			flood(t, func() *response { return a.about("tasks/get", id) }).limited(http.StatusTooManyRequests, "polls", 2)
		}
		flood(t, func() *response { return a.ask("tasks/list", "") }).limited(http.StatusTooManyRequests, "lists", 2)
		b.about("tasks/get", "3").ok()
		b.ask("tasks/list", "").ok()
	})
}

// A task whose ttl is over is gone, and its ID free.
func TestPatternsTTL(t *testing.T) {
	rules.Covers(t, "D-07", "D-22")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		whileItLasts(t, 1200*time.Millisecond, patternsTTL)
	})
}

func patternsTTL(t *testing.T, ttl time.Duration) bool {
	t.Helper()
	policy := mcptask.Policy{Task: mcptask.TaskOptional, TTL: ttl}
	tool := mcptask.NewTool(mcptask.ToolSpec{Name: "brief", InputSchema: openObject, Policy: policy},
		func(ctx context.Context, _ *mcptask.Task, in ponderInput) (string, error) {
			if in.Stubborn {
				<-ctx.Done()
			}
			return "done", ctx.Err()
		})
	url, _ := serveWith(t, setup{bearer: true, options: mcptask.Options{Revisions: onlyPatterns},
		tools: []mcptask.Tools{{Service: "Brief", Impl: 1, Tools: []mcptask.Tool{tool}}}})
	p := newGuide(t, url, "a")
	for id, arguments := range map[string]string{"ends": `{}`, "goes on": `{"stubborn":true}`} {
		began := time.Now()
		if r := p.begin(id, "brief", arguments).ok(); fmt.Sprint(r.get("_meta", "task", "ttl")) != fmt.Sprint(math.Ceil(ttl.Seconds())) {
			t.Errorf("%s", r.body)
		}
		r := p.about("tasks/get", id)
		if time.Since(began) >= ttl {
			return false
		}
		r.ok()
		for end := time.Now().Add(patience); p.about("tasks/get", id).Error == nil; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the task stays")
			}
		}
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			p.about(method, id).want(http.StatusOK, invalidParams)
		}
		if list := p.ask("tasks/list", "").ok(); strings.Contains(string(list.Result), id) {
			t.Errorf("%s", list.body)
		}
		p.begin(id, "deploy_service", staging).ok() // even for another call
	}
	return true
}

// A log tells of tasks made and ended, with whose they are; they outlive the
// server where its store does.
func TestPatternsLog(t *testing.T) {
	rules.Covers(t, "D-18", "D-24")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		logs, store := &safeBuffer{}, mcptask.NewMemoryStore()
		t.Cleanup(func() { _ = store.Close() })
		options := mcptask.Options{Revisions: onlyPatterns, Store: store, Limits: hurried,
			Logger: slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		first, before := serveWith(t, setup{bearer: true, options: options})
		p := newGuide(t, first, "alice")
		p.begin("done", "deploy_service", staging).ok()
		p.reaches("done", "completed")
		p.about("tasks/result", "done").ok()
		p.begin("stopped", "run_pipeline", endlessRun).ok()
		p.about("tasks/cancel", "stopped").ok()
		p.begin("fails", "run_pipeline", refusedRun).ok()
		p.reaches("fails", "failed")
		newGuide(t, first, "eve").about("tasks/get", "done").want(http.StatusOK, invalidParams)
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}
		second, _ := serveWith(t, setup{bearer: true, options: options})
		p = newGuide(t, second, "alice")
		p.reaches("done", "completed")
		p.reaches("stopped", "cancelled")
		if r := p.begin("done", "deploy_service", staging).ok(); r.text("_meta", "task", "status") != "completed" {
			t.Errorf("it was made again: %s", r.body)
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

// The guide and the proposal SEP-1686 share the names that a caller gives: a task
// of either is there for the other under the same one.
func TestPatternsAcrossProposal(t *testing.T) {
	rules.Covers(t, "D-13", "D-14", "D-16")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		revisions := append([]string{mcptask.RevisionSEP1686}, withPatterns...)
		url, _ := serveProposal(t, setup{options: mcptask.Options{Revisions: revisions}})
		d, a := newGuideThat(t, url, "a", canAll), newAsked(t, url, legacyRevision, "a", canAll)
		for _, test := range []struct{ tool, status string }{{"raw", "completed"}, {"locked", "failed"}} {
			made, proposed := "made in d: "+test.tool, "made in a: "+test.tool
			d.begin(made, test.tool, `{}`).ok()
			a.propose(proposed, test.tool, nil).answer()
			for _, id := range []string{made, proposed} {
				fromD, fromA := d.reaches(id, test.status), a.untilProposed(id, test.status)
				if fromD.text("id") != id || fromA.text("taskId") != id || fromD.text("error", "message") != fromA.text("error") {
					t.Errorf("%s %s", fromD.body, fromA.body)
				}
				if test.status == "failed" {
					a.about("tasks/result", id).want(http.StatusOK, invalidParams)
					continue
				}
				inA, inD := a.about("tasks/result", id).ok(), d.about("tasks/result", id).ok()
				if got := toolText(mustJSON(t, inD.get("result"))); got != toolText(inA.Result) || got == "" {
					t.Errorf("%s %s", inD.body, inA.body)
				}
			}
			d.begin(proposed, test.tool, `{}`).want(http.StatusOK, invalidParams) // another's key than its own
		}
		d.begin("stopped in d", "run_pipeline", endlessRun).ok()
		a.untilProposed("stopped in d", "working")
		d.about("tasks/cancel", "stopped in d").ok()
		a.untilProposed("stopped in d", "cancelled")
		call := a.propose("stopped in a", "run_pipeline", pipelineArgs("endless"))
		d.reaches("stopped in a", "working")
		a.cancelCall(call)
		d.reaches("stopped in a", "cancelled")
		d.about("tasks/result", "stopped in a").want(http.StatusOK, invalidParams)
		// A user who declines cancels the task for the guide, and completes it with the
		// tool error for the proposal.
		d.asks("declined", "ask_and_fail", `{}`)
		f := d.get()
		d.respond(f.heard("elicitation/create").ID, `"result":{"action":"decline"}`)
		d.reaches("declined", "cancelled")
		a.untilProposed("declined", "completed")
		if got := toolText(a.about("tasks/result", "declined").ok().Result); got != "isError: mcptask: the question was declined" {
			t.Error(got)
		}
		if r := d.ask("tasks/list", "").ok(); !strings.Contains(string(r.Result), `"id":"stopped in a"`) || !strings.Contains(string(r.Result), `"id":"stopped in d"`) {
			t.Errorf("%s", r.body)
		}
	})
}
