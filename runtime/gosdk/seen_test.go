package gosdk_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// One task, seen through another revision by the same principal: what the proposal
// SEP-1686 shows of tasks that others have made, and the other way round.

// number reads a member of a result that is a number, -1 for null.
func (r *response) number(path ...string) int64 {
	r.t.Helper()
	n, ok := r.get(path...).(json.Number)
	if !ok {
		return -1
	}
	value, err := n.Int64()
	if err != nil {
		r.t.Fatal(err)
	}
	return value
}

// A task of 2025-11-25 in the proposal.
func TestProposalSeesLegacy(t *testing.T) {
	rules.Covers(t, "A-29", "A-38", "A-52", "A-54", "A-65")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, d := serveProposal(t, setup{})
		c, a := newPeer(t, url, legacyRevision, "a"), newPeer(t, url, beforeTasks, "a")
		id := c.call("tools/call", map[string]any{"name": "driven", "arguments": map[string]any{}, "task": map[string]any{"ttl": 60000}}).ok().text("task", "taskId")
		d.say(id, "begun")
		// All of the retention before the end, and what is left of it afterwards.
		if r := a.about("tasks/get", id).ok(); r.text("taskId") != id || r.text("status") != "working" || r.number("keepAlive") != 60000 || proposalOf(t, r.body) != id {
			t.Errorf("%s", r.body)
		}
		time.Sleep(20 * time.Millisecond)
		d.say(id, "done")
		c.until(id, "completed")
		r := a.about("tasks/get", id).ok()
		if keep := r.number("keepAlive"); keep <= 0 || keep > 60000-20 {
			t.Errorf("%s", r.body)
		}
		if r := a.about("tasks/result", id).ok(); toolText(r.Result) != "done" || proposalOf(t, r.body) != id {
			t.Errorf("%s", r.body)
		}
		// A tool error is failed there and completed here.
		broken := c.create("run_pipeline", pipelineArgs("broken"))
		c.until(broken, "failed")
		if r := a.about("tasks/get", broken).ok(); r.text("status") != "completed" || r.get("error") != nil {
			t.Errorf("%s", r.body)
		}
		if r := a.about("tasks/result", broken).ok(); r.get("isError") != true {
			t.Errorf("%s", r.body)
		}
		cancelled := c.create("run_pipeline", pipelineArgs("endless"))
		c.task("tasks/cancel", cancelled).ok()
		if r := a.about("tasks/get", cancelled).ok(); r.text("status") != "cancelled" {
			t.Errorf("%s", r.body)
		}
		a.about("tasks/result", cancelled).want(http.StatusOK, invalidParams)
		listed := map[any]bool{}
		for _, task := range a.tapped("tasks/list", nil).ok().get("tasks").([]any) {
			listed[task.(map[string]any)["taskId"]] = true
		}
		if len(listed) != 3 || !listed[id] || !listed[broken] || !listed[cancelled] {
			t.Errorf("%v", listed)
		}
		a.about("tasks/delete", id).ok()
		c.task("tasks/get", id).want(http.StatusOK, invalidParams)
		newPeer(t, url, beforeTasks, "b").about("tasks/get", broken).want(http.StatusOK, invalidParams)
	})
}

// A task of the proposal in 2025-11-25, under an ID that says nothing of the
// requestor's.
func TestLegacySeesProposal(t *testing.T) {
	rules.Covers(t, "A-06", "A-40", "C-26", "C-41", "C-52")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, d := serveProposal(t, setup{})
		c, a := newAsked(t, url, legacyRevision, "a", canAll), newPeer(t, url, beforeTasks, "a")
		id := internal("a", "T")
		meta := metadata("T")
		meta[proposalTask] = map[string]any{"taskId": "T", "keepAlive": 60000}
		call := a.proposeWith(meta, "driven", nil)
		call.next()
		d.say(id, "begun")
		list := c.call("tasks/list", nil).ok()
		if tasks := list.get("tasks").([]any); len(tasks) != 1 || tasks[0].(map[string]any)["taskId"] != id || strings.Contains(string(list.Result), `"T"`) {
			t.Fatalf("%s", list.body)
		}
		if r := c.task("tasks/get", id).ok(); r.text("status") != "working" || r.get("ttl") != nil || !strings.Contains(string(r.Result), `"ttl":null`) {
			t.Errorf("%s", r.body)
		}
		// Its requestor's ID is none that 2025-11-25 knows.
		c.call("tasks/cancel", map[string]any{"taskId": "T"}).want(http.StatusOK, invalidParams)
		time.Sleep(20 * time.Millisecond)
		d.say(id, "done")
		r := c.until(id, "completed")
		if ttl := r.number("ttl"); ttl < 60000+20 || ttl > 60000+patience.Milliseconds() {
			t.Errorf("%s", r.body)
		}
		if r := c.task("tasks/result", id).ok(); toolText(r.Result) != "done" || r.text("_meta", "io.modelcontextprotocol/related-task", "taskId") != id || proposalOf(t, r.body) != "" {
			t.Errorf("%s", r.body)
		}
		call.answer()
		a.propose("B", "run_pipeline", pipelineArgs("broken")).answer()
		c.until(internal("a", "B"), "failed")
		if r := c.task("tasks/result", internal("a", "B")).ok(); r.get("isError") != true {
			t.Errorf("%s", r.body)
		}
		a.propose("L", "locked", nil).answer()
		c.task("tasks/result", internal("a", "L")).want(http.StatusOK, -32055)
		// Cancelled there, it is over here, and the call is answered.
		call = a.propose("C", "run_pipeline", pipelineArgs("endless"))
		c.task("tasks/cancel", internal("a", "C")).ok()
		if last := call.answer(); last.Error == nil || !strings.Contains(last.text, `"taskId":"C"`) {
			t.Errorf("%s", last.text)
		}
		a.untilProposed("C", "cancelled")
	})
}

// A task of 2026-07-28 in the proposal, and one of the proposal there.
func TestProposalAndModern(t *testing.T) {
	rules.Covers(t, "A-25", "A-29", "A-41", "A-46", "A-65")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		begun, stop := make(chan bool), make(chan bool)
		stubborn := mcptask.Tools{Service: "Stubborn", Impl: struct{}{}, Tools: []mcptask.Tool{mcptask.NewTool(
			mcptask.ToolSpec{Name: "stubborn", InputSchema: openObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
			func(context.Context, *mcptask.Task, struct{}) (string, error) {
				begun <- true
				<-stop
				return "stopped", nil
			})}}
		url, d := serveProposal(t, setup{tools: []mcptask.Tools{stubborn}})
		e, a := newAsked(t, url, modernRevision, "a", canAll), newAsked(t, url, beforeTasks, "a", canAll)
		id := e.create("run_pipeline", pipelineArgs("broken"))
		e.until(id, "completed")
		if r := a.about("tasks/get", id).ok(); r.text("taskId") != id || r.text("status") != "completed" {
			t.Errorf("%s", r.body)
		}
		if r := a.about("tasks/result", id).ok(); r.get("isError") != true || proposalOf(t, r.body) != id {
			t.Errorf("%s", r.body)
		}
		failed := e.create("locked", nil)
		e.until(failed, "failed")
		if r := a.about("tasks/get", failed).ok(); r.text("status") != "failed" || r.text("error") != "the repository is locked" {
			t.Errorf("%s", r.body)
		}
		// Asked to stop, a task is at work until it has stopped.
		slow := e.create("stubborn", nil)
		<-begun
		e.task("tasks/cancel", slow).ok()
		if r := a.about("tasks/get", slow).ok(); r.text("status") != "working" {
			t.Errorf("%s", r.body)
		}
		close(stop)
		a.untilProposed(slow, "completed") // it has not listened
		// The other way: under the stored ID, without an end before the end.
		call := a.propose("T", "driven", nil)
		task := internal("a", "T")
		e.task("tasks/get", "T").want(http.StatusBadRequest, invalidParams)
		d.say(task, "ask")
		question := call.questionOf("T")
		r := e.until(task, "input_required")
		if requests, _ := r.get("inputRequests").(map[string]any); len(requests) != 1 || !strings.Contains(string(r.Result), `"ttlMs":null`) || strings.Contains(string(r.Result), `"T"`) {
			t.Errorf("%s", r.body)
		}
		e.call("tasks/update", map[string]any{"taskId": task, "inputResponses": map[string]any{"note": map[string]any{"action": "accept", "content": map[string]any{"note": "n"}}}}).ok()
		a.untilProposed("T", "working")
		a.respond(question.ID, note("late"))
		d.say(task, "done")
		r = e.until(task, "completed")
		inner, err := json.Marshal(r.get("result"))
		if err != nil {
			t.Fatal(err)
		}
		if r.number("ttlMs") < 3600000 || toolText(inner) != "done" {
			t.Errorf("%s", r.body)
		}
		if last := call.answer(); toolText(last.Result) != "done" {
			t.Errorf("%s", last.text)
		}
	})
}

// A task of the guide in the proposal, and the other way round: both call it as
// its requestor does.
func TestProposalAndPatterns(t *testing.T) {
	rules.Covers(t, "A-16", "A-29", "A-38")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		options := withProposal()
		options.Revisions = append(options.Revisions, mcptask.RevisionTaskPatterns)
		url, _ := serveProposal(t, setup{options: options})
		p := newPeer(t, url, legacyRevision, "a")
		p.tapped("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "_meta": map[string]any{"taskId": "G"}}).ok()
		for _, id := range []string{"G", internal("a", "G")} {
			if r := p.untilProposed(id, "completed"); r.text("taskId") != id || r.number("keepAlive") <= 0 {
				t.Errorf("%s", r.body)
			}
			if r := p.about("tasks/result", id).ok(); toolText(r.Result) != "pondered" || proposalOf(t, r.body) != id {
				t.Errorf("%s", r.body)
			}
		}
		p.tapped("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "_meta": metadata("G")}).want(http.StatusOK, invalidParams)
		p.propose("T", "ponder", nil).answer()
		for _, id := range []string{"T", internal("a", "T")} {
			if r := p.tapped("tasks/get", map[string]any{"id": id}).ok(); r.text("id") != id || r.text("status") != "completed" {
				t.Errorf("%s", r.body)
			}
		}
	})
}
