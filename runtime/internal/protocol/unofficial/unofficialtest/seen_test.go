package unofficialtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestProposalSeesLegacy shows a task of 2025-11-25 in the proposal.
func TestProposalSeesLegacy(t *testing.T) {
	rules.Covers(t, "A-29", "A-38", "A-52", "A-54", "A-65")
	runProposal(t, wiretest.Setup{}, func(t *testing.T, a *wiretest.Peer, d *wiretest.Driven) {
		c := a.NewSibling(wiretest.LegacyRevision, "a")
		id := c.Call("tools/call", map[string]any{"name": "driven", "arguments": map[string]any{}, "task": map[string]any{"ttl": 7200000}}).OK().Text("task", "taskId")
		d.Tell(id, "begun")
		// Before the end, the whole retention; afterwards, the rest of it.
		a.CallProposed("tasks/get", id).WantMembers(`{"taskId":%q,"status":"working","keepAlive":7200000,"_meta":{%q:{"taskId":%[1]q}}}`, id, wiretest.ProposalRelated)
		time.Sleep(20 * time.Millisecond)
		d.Tell(id, "done")
		c.Until(id, "completed")
		if r := a.CallProposed("tasks/get", id).OK(); r.Number("keepAlive") <= 0 || r.Number("keepAlive") > 7200000-20 {
			t.Errorf("%s", r.Body)
		}
		a.CallProposed("tasks/result", id).WantMembers("%s", doneResult(id))
		// A tool error is failed in 2025-11-25 and completed in the proposal.
		broken := c.Create("run_pipeline", wiretest.PipelineArgs("broken"))
		c.Until(broken, "failed")
		a.CallProposed("tasks/get", broken).WantMembers(`{"status":"completed","error":null}`)
		a.CallProposed("tasks/result", broken).WantMembers(`{"isError":true}`)
		cancelled := c.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		c.Task("tasks/cancel", cancelled).OK()
		a.CallProposed("tasks/get", cancelled).WantMembers(`{"status":"cancelled"}`)
		a.CallProposed("tasks/result", cancelled).Want(http.StatusOK, wiretest.InvalidParams)
		listed := map[any]bool{}
		tasks, _ := wiretest.ListPages(t, func(params map[string]any) *wiretest.Response { return a.CallUnchecked("tasks/list", params) })
		for _, task := range tasks {
			listed[task["taskId"]] = true
		}
		if len(listed) != 3 || !listed[id] || !listed[broken] || !listed[cancelled] {
			t.Errorf("%v", listed)
		}
		a.CallProposed("tasks/delete", id).OK()
		c.Task("tasks/get", id).Want(http.StatusOK, wiretest.InvalidParams)
		a.NewSibling(wiretest.BeforeTasks, "b").CallProposed("tasks/get", broken).Want(http.StatusOK, wiretest.InvalidParams)
	})
}

// TestLegacySeesProposal shows a task of the proposal in 2025-11-25, under an ID that does not
// reveal the requestor's name for it.
func TestLegacySeesProposal(t *testing.T) {
	rules.Covers(t, "A-06", "A-40", "C-26", "C-41", "C-52")
	runProposal(t, wiretest.Setup{}, func(t *testing.T, a *wiretest.Peer, d *wiretest.Driven) {
		c := wiretest.NewAskedPeer(t, a.URL, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
		id := internal("a", "T")
		meta := wiretest.ProposalMeta("T")
		meta[wiretest.ProposalTask] = map[string]any{"taskId": "T", "keepAlive": 7200000}
		call := a.ProposeWith(meta, "driven", nil)
		call.Next()
		d.Tell(id, "begun")
		list := c.Call("tasks/list", nil).OK()
		if tasks := list.Get("tasks").([]any); len(tasks) != 1 || tasks[0].(map[string]any)["taskId"] != id || strings.Contains(string(list.Result), `"T"`) {
			t.Fatalf("%s", list.Body)
		}
		c.Task("tasks/get", id).WantMembers(`{"status":"working","ttl":7200000}`)
		// 2025-11-25 does not know the requestor's ID.
		c.Call("tasks/cancel", map[string]any{"taskId": "T"}).Want(http.StatusOK, wiretest.InvalidParams)
		time.Sleep(20 * time.Millisecond)
		d.Tell(id, "done")
		r := c.Until(id, "completed")
		r.WantMembers(`{"ttl":7200000}`)
		if r := c.Task("tasks/result", id).OK(); wiretest.ToolText(r.Result) != "done" || r.Text("_meta", "io.modelcontextprotocol/related-task", "taskId") != id || wiretest.ProposalTaskID(t, r.Body) != "" {
			t.Errorf("%s", r.Body)
		}
		call.NextAnswer()
		a.Propose("B", "run_pipeline", wiretest.PipelineArgs("broken")).NextAnswer()
		c.Until(internal("a", "B"), "failed")
		c.Task("tasks/result", internal("a", "B")).WantMembers(`{"isError":true}`)
		a.Propose("L", "locked", nil).NextAnswer()
		c.Task("tasks/result", internal("a", "L")).Want(http.StatusOK, 4055)
		// A cancellation in 2025-11-25 ends the task in the proposal and answers the call.
		call = a.Propose("C", "run_pipeline", wiretest.PipelineArgs("endless"))
		c.Task("tasks/cancel", internal("a", "C")).OK()
		if last := call.NextAnswer(); last.Error == nil || !strings.Contains(last.Text, `"taskId":"C"`) {
			t.Errorf("%s", last.Text)
		}
		a.UntilProposed("C", "cancelled")
	})
}

// doneResult is the result of a task of the tool "driven", in the proposal.
func doneResult(id string) string {
	return fmt.Sprintf(`{"content":[{"type":"text","text":"done"}],"_meta":{%q:{"taskId":%q}}}`, wiretest.ProposalRelated, id)
}

// TestProposalAndModern shows a task of 2026-07-28 in the proposal, and the reverse.
func TestProposalAndModern(t *testing.T) {
	rules.Covers(t, "A-25", "A-29", "A-41", "A-46", "A-65")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		begun, stop := make(chan bool), make(chan bool)
		stubborn := mcptask.Tools{Service: "Stubborn", Impl: struct{}{}, Tools: []mcptask.Tool{mcptask.NewTool(
			mcptask.ToolSpec{Name: "stubborn", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
			func(context.Context, *mcptask.Task, struct{}) (string, error) {
				begun <- true
				<-stop
				return "stopped", nil
			})}}
		url, d := serveProposal(t, wiretest.Setup{Tools: []mcptask.Tools{stubborn}})
		e, a := wiretest.NewAskedPeer(t, url, wiretest.ModernRevision, "a", wiretest.AllCapabilities), wiretest.NewAskedPeer(t, url, wiretest.BeforeTasks, "a", wiretest.AllCapabilities)
		id := e.Create("run_pipeline", wiretest.PipelineArgs("broken"))
		e.Until(id, "completed")
		a.CallProposed("tasks/get", id).WantMembers(`{"taskId":%q,"status":"completed"}`, id)
		a.CallProposed("tasks/result", id).WantMembers(`{"isError":true,"_meta":{%q:{"taskId":%q}}}`, wiretest.ProposalRelated, id)
		failed := e.Create("locked", nil)
		e.Until(failed, "failed")
		a.CallProposed("tasks/get", failed).WantMembers(`{"status":"failed","error":"the repository is locked"}`)
		// A task that was asked to stop is working until it has stopped.
		slow := e.Create("stubborn", nil)
		<-begun
		e.Task("tasks/cancel", slow).OK()
		a.CallProposed("tasks/get", slow).WantMembers(`{"status":"working"}`)
		close(stop)
		a.UntilProposed(slow, "completed") // it has ignored the request
		// The reverse: under the stored ID, and without an end before the handler's.
		call := a.Propose("T", "driven", nil)
		task := internal("a", "T")
		e.Task("tasks/get", "T").Want(http.StatusBadRequest, wiretest.InvalidParams)
		d.Tell(task, "ask")
		question := call.NextQuestionOf("T")
		r := e.Until(task, "input_required")
		if requests, _ := r.Get("inputRequests").(map[string]any); len(requests) != 1 || r.Number("ttlMs") != 3600000 || strings.Contains(string(r.Result), `"T"`) {
			t.Errorf("%s", r.Body)
		}
		e.Call("tasks/update", map[string]any{"taskId": task, "inputResponses": map[string]any{"note": map[string]any{"action": "accept", "content": map[string]any{"note": "n"}}}}).OK()
		a.UntilProposed("T", "working")
		a.Respond(question.ID, wiretest.AcceptNote("late"))
		d.Tell(task, "done")
		r = e.Until(task, "completed")
		inner, err := json.Marshal(r.Get("result"))
		if err != nil {
			t.Fatal(err)
		}
		if r.Number("ttlMs") < 3600000 || wiretest.ToolText(inner) != "done" {
			t.Errorf("%s", r.Body)
		}
		if last := call.NextAnswer(); wiretest.ToolText(last.Result) != "done" {
			t.Errorf("%s", last.Text)
		}
	})
}
