package unofficialtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/questions"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// The open stream of a call of the proposal SEP-1686: the messages of the server on it, and the task after it is
// closed.

// TestProposalStream checks that questions and progress are on the call's stream, between the
// announcement and the answer.
func TestProposalStream(t *testing.T) {
	rules.Covers(t, "A-06", "A-08", "A-24", "A-25", "A-26", "A-27", "A-38", "A-39")
	runProposal(t, wiretest.Setup{}, func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
		standalone := p.OpenGet()
		c := p.Propose("N", "two_notes", nil)
		first, second := c.NextQuestionOf("N"), c.NextQuestionOf("N")
		p.UntilProposed("N", "input_required")
		p.Respond(second.ID, wiretest.AcceptNote("b"))
		for range 3 {
			p.CallProposed("tasks/get", "N").WantMembers(`{"status":"input_required"}`)
		}
		p.Respond(first.ID, wiretest.AcceptNote("a"))
		if last := c.NextAnswer(); !strings.Contains(wiretest.ToolText(last.Result), " and ") || wiretest.ProposalTaskID(t, []byte(last.Text)) != "N" {
			t.Errorf("%s", last.Text)
		}
		c = p.Propose("P", "ponder", map[string]any{"ms": 100})
		reports := 0
		for m := c.Next(); m.Result == nil; m = c.Next() {
			if m.Method != "notifications/progress" || wiretest.ProposalTaskID(t, []byte(m.Text)) != "P" || !strings.Contains(m.Text, `"progressToken":"token of P"`) {
				t.Errorf("%s", m.Text)
			}
			reports++
		}
		if reports == 0 {
			t.Error("no progress")
		}
		standalone.WantSilence()
	})
}

// TestProposalDropped checks that closing the stream does not stop the task, and that its questions
// move to the session's own stream.
func TestProposalDropped(t *testing.T) {
	rules.Covers(t, "A-06", "A-25", "A-36", "A-37", "A-38")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		limits := wiretest.NoPollLimits
		limits.Waiting = 1
		url, d := serveProposal(t, wiretest.Setup{Options: taskserver.Options{Limits: limits}})
		for _, protocol := range []string{wiretest.BeforeTasks, wiretest.LegacyRevision} {
			p := wiretest.NewAskedPeer(t, url, protocol, "a", wiretest.AllCapabilities)
			asked, working := "asked in "+protocol, "working in "+protocol
			c := p.Propose(asked, "driven", nil)
			d.Tell(internal("a", asked), "ask")
			if m := c.NextQuestionOf(asked); m.Method != "elicitation/create" {
				t.Errorf("%s", m.Text)
			}
			p.CallUnchecked("tools/call", map[string]any{"name": "driven", "arguments": map[string]any{}, "_meta": wiretest.ProposalMeta("too many")}).Want(http.StatusOK, wiretest.InternalError)
			p.CallProposed("tasks/get", "too many").Want(http.StatusOK, wiretest.InvalidParams)
			c.Stop()
			// An abandoned call does not wait.
			var open *wiretest.Proposed
			for end := time.Now().Add(wiretest.Patience); open == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				f := p.Send("tools/call", map[string]any{"name": "driven", "arguments": map[string]any{}, "_meta": wiretest.ProposalMeta(working)})
				if m := <-f.Messages; m.Method == wiretest.ProposalCreated { // a refusal is no stream
					open = &wiretest.Proposed{Feed: f, ID: p.IDs.Load()}
				}
			}
			standalone := p.OpenGet()
			again := (&wiretest.Proposed{Feed: standalone, ID: 0}).NextQuestionOf(asked)
			p.Respond(again.ID, wiretest.AcceptNote("n"))
			d.Tell(internal("a", asked), "done")
			p.UntilProposed(asked, "completed")
			p.CallProposed("tasks/result", asked).WantMembers("%s", doneResult(asked))
			d.Tell(internal("a", working), "begun")
			open.Stop()
			d.Tell(internal("a", working), "done")
			p.UntilProposed(working, "completed")
		}
	})
}

// TestProposalCancel checks that notifications/cancelled for the call cancels the task, but only
// from the session that created it.
func TestProposalCancel(t *testing.T) {
	rules.Covers(t, "A-21", "A-40", "A-42", "A-43", "A-45", "A-46")
	runProposal(t, wiretest.Setup{}, func(t *testing.T, p *wiretest.Peer, d *wiretest.Driven) {
		other, stranger := wiretest.NewAskedPeer(t, p.URL, wiretest.BeforeTasks, "a", wiretest.AllCapabilities), p.NewSibling(wiretest.BeforeTasks, "b")
		c := p.Propose("T", "driven", nil)
		d.Tell(internal("a", "T"), "begun")
		for _, q := range []*wiretest.Peer{other, stranger} {
			q.CancelCall(c)
		}
		for _, id := range []string{`null`, `"T"`, `[]`, `{}`, `1e3`, `-1`, `"` + fmt.Sprint(c.ID) + `"`} {
			p.Post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		}
		p.CallProposed("tasks/get", "T").WantMembers(`{"status":"working"}`)
		d.Tell(internal("a", "T"), "ask")
		question := c.NextQuestionOf("T")
		for range 2 {
			p.CancelCall(c)
		}
		// The server takes the question back and answers the call with an error.
		m := c.Next()
		if m.Method != "notifications/cancelled" || m.Params.RequestID == nil {
			t.Errorf("%s", m.Text)
		} else {
			m = c.Next()
		}
		if m.Error == nil || string(m.ID) != fmt.Sprint(c.ID) || !strings.Contains(m.Text, "cancelled") {
			t.Errorf("%s", m.Text)
		}
		p.Respond(question.ID, wiretest.AcceptNote("late"))
		p.CallProposed("tasks/get", "T").WantMembers(`{"status":"cancelled","error":null}`)
		select { // no handler works on it any longer
		case d.TaskChannel(internal("a", "T")) <- "done":
			t.Error("the handler goes on")
		case <-time.After(50 * time.Millisecond):
		}
		// A task whose client has left can be cancelled too.
		c = p.Propose("U", "driven", nil)
		d.Tell(internal("a", "U"), "begun")
		c.Stop()
		p.CancelCall(c)
		p.UntilProposed("U", "cancelled")
		// After a call has ended, another request uses its ID. That request comes before the cancellation, because the
		// SDK may handle the cancellation after a later request.
		c = p.Propose("V", "ponder", nil)
		c.NextAnswer()
		p.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, c.ID)).OK()
		// A task that has ended cannot be cancelled.
		p.CancelCall(c)
		p.CallProposed("tasks/get", "V").WantMembers(`{"status":"completed"}`)
	})
}

// TestProposalSessionEnds checks that the end of a session does not stop its tasks.
func TestProposalSessionEnds(t *testing.T) {
	rules.Covers(t, "A-68")
	runProposal(t, wiretest.Setup{}, func(t *testing.T, p *wiretest.Peer, d *wiretest.Driven) {
		c := p.Propose("T", "driven", nil)
		d.Tell(internal("a", "T"), "begun")
		res, err := p.Client.Do(p.NewRequest(t.Context(), http.MethodDelete, ""))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		for range c.Messages { // it ends
		}
		d.Tell(internal("a", "T"), "done")
		next := p.NewSibling(wiretest.LegacyRevision, "a")
		next.UntilProposed("T", "completed")
		next.CallProposed("tasks/result", "T").WantMembers("%s", doneResult("T"))
	})
}

// TestProposalJSONResponse checks that messages still precede the answer if the SDK answers with
// JSON. The answer is then the last event.
func TestProposalJSONResponse(t *testing.T) {
	rules.Covers(t, "A-06", "A-08", "A-25")
	runProposal(t, wiretest.Setup{HTTP: &mcp.StreamableHTTPOptions{JSONResponse: true}}, func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
		c := p.Propose("T", "ask", wiretest.AskArguments("one"))
		p.Respond(c.NextQuestionOf("T").ID, wiretest.AcceptNote("n"))
		if last := c.NextAnswer(); wiretest.ToolText(last.Result) != "n" {
			t.Errorf("%s", last.Text)
		}
		if last := p.Propose("L", "locked", nil).NextAnswer(); last.Error == nil {
			t.Errorf("%s", last.Text)
		}
		// Without a task, the answer is JSON as usual.
		r := p.Call("tools/call", map[string]any{"name": "lint_file", "arguments": map[string]any{"path": "main.go"}}).OK()
		if r.Stream {
			t.Error("a stream")
		}
	})
}

// TestProposalStored checks that a resumed stream has the answer if the SDK stores its events.
func TestProposalStored(t *testing.T) {
	rules.Covers(t, "A-06", "A-08")
	runProposal(t, wiretest.Setup{HTTP: &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}}, func(t *testing.T, p *wiretest.Peer, d *wiretest.Driven) {
		p = p.NewSibling(wiretest.LegacyRevision, "a")
		body, edits := p.Request("tools/call", map[string]any{"name": "driven", "arguments": map[string]any{}, "_meta": wiretest.ProposalMeta("T")})
		res, err := p.Client.Do(p.NewRequest(t.Context(), http.MethodPost, body, edits...))
		if err != nil {
			t.Fatal(err)
		}
		var last string // the ID of an event
		buffer, text := make([]byte, 4096), ""
		for !strings.Contains(text, wiretest.ProposalCreated) {
			n, err := res.Body.Read(buffer)
			if err != nil {
				t.Fatal(err, text)
			}
			text += string(buffer[:n])
		}
		for _, line := range strings.Split(text, "\n") {
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				last = id
			}
		}
		d.Tell(internal("a", "T"), "begun")
		res.Body.Close()
		d.Tell(internal("a", "T"), "done")
		p.UntilProposed("T", "completed")
		resumed := p.Open(http.MethodGet, "", wiretest.WithHeader("Accept", "text/event-stream"), wiretest.WithHeader("Last-Event-ID", last))
		m := resumed.Next()
		for m.Method == "notifications/progress" {
			m = resumed.Next()
		}
		if !wiretest.SameJSON(string(m.Result), doneResult("T")) {
			t.Errorf("%s", m.Text)
		}
	})
}

// TestProposalMixed checks that a session which uses two revisions for a task gets questions in the
// revision of the stream.
func TestProposalMixed(t *testing.T) {
	rules.Covers(t, "A-25", "A-39", "C-50")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, d := serveProposal(t, wiretest.Setup{})
		p := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
		task := internal("a", "T")
		c := p.Propose("T", "driven", nil)
		p.Task("tasks/get", task).OK() // its ID in 2025-11-25
		d.Tell(task, "ask")
		question := c.NextQuestionOf("T")
		c.Stop()
		again := p.Result(task).NextQuestion(task) // on the stream of a tasks/result
		if string(again.ID) != string(question.ID) {
			t.Errorf("%s, before %s", again.Text, question.Text)
		}
		p.Respond(again.ID, wiretest.AcceptNote("n"))
		d.Tell(task, "done")
		p.UntilProposed("T", "completed")
	})
}

// TestProposalAsksBefore checks that a question before the task exists precedes the announcement
// and names no task.
func TestProposalAsksBefore(t *testing.T) {
	rules.Covers(t, "A-08", "A-25", "A-40")
	runProposal(t, wiretest.Setup{Tools: []mcptask.Tools{questions.AskerTools(wiretest.FirstAsker{})}}, func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
		for _, end := range []string{"answered", "declined", "cancelled"} {
			c := p.ProposeWith(wiretest.ProposalMeta(end), "ask_first", map[string]any{"name": "n"})
			for _, answer := range []string{wiretest.SureYes, wiretest.WhichA} {
				m := c.Next()
				if m.Method != "elicitation/create" || wiretest.ProposalTaskID(t, []byte(m.Text)) != "" {
					t.Fatalf("%s", m.Text)
				}
				if end == "declined" {
					answer = `{"action":"decline"}`
				}
				if end != "cancelled" {
					p.Respond(m.ID, `"result":`+answer)
				}
				if end != "answered" {
					break
				}
			}
			switch end {
			case "answered":
				if m := c.Next(); m.Method != wiretest.ProposalCreated || wiretest.ProposalTaskID(t, []byte(m.Text)) != end {
					t.Errorf("%s", m.Text)
				}
				if last := c.NextAnswer(); wiretest.ProposalTaskID(t, []byte(last.Text)) != end || strings.Contains(last.Text, "isError") {
					t.Errorf("%s", last.Text)
				}
				continue
			case "declined":
				if last := c.NextAnswer(); wiretest.ProposalTaskID(t, []byte(last.Text)) != "" || !strings.HasPrefix(wiretest.ToolText(last.Result), "isError: Sure ") {
					t.Errorf("%s", last.Text)
				}
			case "cancelled":
				p.CancelCall(c)
				for m := range c.Messages { // the question may be taken back; there is no task
					if m.Method == wiretest.ProposalCreated || m.Result != nil {
						t.Errorf("%s", m.Text)
					}
				}
			}
			p.CallProposed("tasks/get", end).Want(http.StatusOK, wiretest.InvalidParams)
		}
	})
}
