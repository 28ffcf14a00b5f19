package gosdk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/questions"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// The open stream of a call of the proposal SEP-1686: what goes there, and what
// becomes of the task when it is gone.

// Questions and progress are on the stream of the call, between the announcement
// and the answer.
func TestProposalStream(t *testing.T) {
	rules.Covers(t, "A-06", "A-08", "A-24", "A-25", "A-26", "A-27", "A-38", "A-39")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveProposal(t, setup{})
		p := newAsked(t, url, beforeTasks, "a", canAll)
		standalone := p.get()
		c := p.propose("N", "two_notes", nil)
		first, second := c.questionOf("N"), c.questionOf("N")
		p.untilProposed("N", "input_required")
		p.respond(second.ID, note("b"))
		for range 3 {
			if r := p.about("tasks/get", "N").ok(); r.text("status") != "input_required" {
				t.Errorf("%s", r.body)
			}
		}
		p.respond(first.ID, note("a"))
		if last := c.answer(); !strings.Contains(toolText(last.Result), " and ") || proposalOf(t, []byte(last.text)) != "N" {
			t.Errorf("%s", last.text)
		}
		c = p.propose("P", "ponder", map[string]any{"ms": 100})
		reports := 0
		for m := c.next(); m.Result == nil; m = c.next() {
			if m.Method != "notifications/progress" || proposalOf(t, []byte(m.text)) != "P" || !strings.Contains(m.text, `"progressToken":"token of P"`) {
				t.Errorf("%s", m.text)
			}
			reports++
		}
		if reports == 0 {
			t.Error("no progress")
		}
		standalone.silent()
	})
}

// A client that leaves the stream leaves the task, and has its questions on the
// session's own stream.
func TestProposalDropped(t *testing.T) {
	rules.Covers(t, "A-06", "A-25", "A-36", "A-37", "A-38")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		limits := hurried
		limits.Waiting = 1
		url, d := serveProposal(t, setup{options: mcptask.Options{Limits: limits}})
		for _, protocol := range []string{beforeTasks, legacyRevision} {
			p := newAsked(t, url, protocol, "a", canAll)
			asked, working := "asked in "+protocol, "working in "+protocol
			c := p.propose(asked, "driven", nil)
			d.say(internal("a", asked), "ask")
			if m := c.questionOf(asked); m.Method != "elicitation/create" {
				t.Errorf("%s", m.text)
			}
			p.tapped("tools/call", map[string]any{"name": "driven", "arguments": map[string]any{}, "_meta": metadata("too many")}).want(http.StatusOK, internalError)
			p.about("tasks/get", "too many").want(http.StatusOK, invalidParams)
			c.stop()
			// The call that has been left does not wait.
			var open *proposed
			for end := time.Now().Add(patience); open == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				f := p.send("tools/call", map[string]any{"name": "driven", "arguments": map[string]any{}, "_meta": metadata(working)})
				if m := <-f.messages; m.Method == proposalCreated { // a refusal is no stream
					open = &proposed{f, p.ids.Load()}
				}
			}
			standalone := p.get()
			again := (&proposed{standalone, 0}).questionOf(asked)
			p.respond(again.ID, note("n"))
			d.say(internal("a", asked), "done")
			p.untilProposed(asked, "completed")
			if r := p.about("tasks/result", asked).ok(); toolText(r.Result) != "done" || proposalOf(t, r.body) != asked {
				t.Errorf("%s", r.body)
			}
			d.say(internal("a", working), "begun")
			open.stop()
			d.say(internal("a", working), "done")
			p.untilProposed(working, "completed")
		}
	})
}

// notifications/cancelled of the call cancels the task: by the session that made
// it, and by no other.
func TestProposalCancel(t *testing.T) {
	rules.Covers(t, "A-21", "A-40", "A-42", "A-43", "A-45", "A-46")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, d := serveProposal(t, setup{})
		p, other := newAsked(t, url, beforeTasks, "a", canAll), newAsked(t, url, beforeTasks, "a", canAll)
		stranger := newPeer(t, url, beforeTasks, "b")
		c := p.propose("T", "driven", nil)
		d.say(internal("a", "T"), "begun")
		for _, q := range []*peer{other, stranger} {
			q.cancelCall(c)
		}
		for _, id := range []string{`null`, `"T"`, `[]`, `{}`, `1e3`, `-1`, `"` + fmt.Sprint(c.id) + `"`} {
			p.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		}
		if r := p.about("tasks/get", "T").ok(); r.text("status") != "working" {
			t.Fatalf("%s", r.body)
		}
		d.say(internal("a", "T"), "ask")
		question := c.questionOf("T")
		for range 2 {
			p.cancelCall(c)
		}
		// The question is taken back, and the call answered: it has no result.
		m := c.next()
		if m.Method != "notifications/cancelled" || m.Params.RequestID == nil {
			t.Errorf("%s", m.text)
		} else {
			m = c.next()
		}
		if m.Error == nil || string(m.ID) != fmt.Sprint(c.id) || !strings.Contains(m.text, "cancelled") {
			t.Errorf("%s", m.text)
		}
		p.respond(question.ID, note("late"))
		if r := p.about("tasks/get", "T").ok(); r.text("status") != "cancelled" || r.get("error") != nil {
			t.Errorf("%s", r.body)
		}
		select { // nobody works on it any longer
		case d.of(internal("a", "T")) <- "done":
			t.Error("the handler goes on")
		case <-time.After(50 * time.Millisecond):
		}
		// One whose client has left is cancelled all the same.
		c = p.propose("U", "driven", nil)
		d.say(internal("a", "U"), "begun")
		c.stop()
		p.cancelCall(c)
		p.untilProposed("U", "cancelled")
		// The ID of a call is another's afterwards: before it is cancelled, since the SDK
		// may come to that later than to the next request.
		c = p.propose("V", "ponder", nil)
		c.answer()
		p.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, c.id)).ok()
		// Nothing is left to cancel of what has ended.
		p.cancelCall(c)
		if r := p.about("tasks/get", "V").ok(); r.text("status") != "completed" {
			t.Errorf("%s", r.body)
		}
	})
}

// A session that ends leaves its tasks.
func TestProposalSessionEnds(t *testing.T) {
	rules.Covers(t, "A-68")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, d := serveProposal(t, setup{})
		p := newPeer(t, url, beforeTasks, "a")
		c := p.propose("T", "driven", nil)
		d.say(internal("a", "T"), "begun")
		res, err := p.client.Do(p.start(t.Context(), http.MethodDelete, ""))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		for range c.messages { // it ends
		}
		d.say(internal("a", "T"), "done")
		next := newPeer(t, url, legacyRevision, "a")
		next.untilProposed("T", "completed")
		if r := next.about("tasks/result", "T").ok(); toolText(r.Result) != "done" {
			t.Errorf("%s", r.body)
		}
	})
}

// Where the SDK answers by JSON, what is said before still comes first: the answer
// is the last event.
func TestProposalJSONResponse(t *testing.T) {
	rules.Covers(t, "A-06", "A-08", "A-25")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveProposal(t, setup{http: &mcp.StreamableHTTPOptions{JSONResponse: true}})
		p := newAsked(t, url, beforeTasks, "a", canAll)
		c := p.propose("T", "ask", ask("one"))
		p.respond(c.questionOf("T").ID, note("n"))
		if last := c.answer(); toolText(last.Result) != "n" {
			t.Errorf("%s", last.text)
		}
		if last := p.propose("L", "locked", nil).answer(); last.Error == nil {
			t.Errorf("%s", last.text)
		}
		// What is no task is JSON as ever.
		r := p.call("tools/call", map[string]any{"name": "lint_file", "arguments": map[string]any{"path": "main.go"}}).ok()
		if r.stream {
			t.Error("a stream")
		}
	})
}

// A stream that is resumed has the answer, where the SDK stores its events.
func TestProposalStored(t *testing.T) {
	rules.Covers(t, "A-06", "A-08")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, d := serveProposal(t, setup{http: &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}})
		p := newPeer(t, url, legacyRevision, "a")
		body, edits := p.request("tools/call", map[string]any{"name": "driven", "arguments": map[string]any{}, "_meta": metadata("T")})
		res, err := p.client.Do(p.start(t.Context(), http.MethodPost, body, edits...))
		if err != nil {
			t.Fatal(err)
		}
		var last string // the ID of an event
		buffer, text := make([]byte, 4096), ""
		for !strings.Contains(text, proposalCreated) {
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
		d.say(internal("a", "T"), "begun")
		res.Body.Close()
		d.say(internal("a", "T"), "done")
		p.untilProposed("T", "completed")
		resumed := p.open(http.MethodGet, "", withHeader("Accept", "text/event-stream"), withHeader("Last-Event-ID", last))
		m := resumed.next()
		for m.Method == "notifications/progress" {
			m = resumed.next()
		}
		if m.Result == nil || toolText(m.Result) != "done" || proposalOf(t, []byte(m.text)) != "T" {
			t.Errorf("%s", m.text)
		}
	})
}

// A session that speaks of a task in two revisions has its questions in that of the
// stream.
func TestProposalMixed(t *testing.T) {
	rules.Covers(t, "A-25", "A-39", "C-50")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, d := serveProposal(t, setup{})
		p := newAsked(t, url, legacyRevision, "a", canAll)
		task := internal("a", "T")
		c := p.propose("T", "driven", nil)
		p.task("tasks/get", task).ok() // as 2025-11-25 knows it
		d.say(task, "ask")
		question := c.questionOf("T")
		c.stop()
		again := p.result(task).question(task) // on the stream of a tasks/result
		if string(again.ID) != string(question.ID) {
			t.Errorf("%s, before %s", again.text, question.text)
		}
		p.respond(again.ID, note("n"))
		d.say(task, "done")
		p.untilProposed("T", "completed")
	})
}

// What a tool asks before its task exists comes before the announcement, and names
// no task.
func TestProposalAsksBefore(t *testing.T) {
	rules.Covers(t, "A-08", "A-25", "A-40")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveProposal(t, setup{tools: []mcptask.Tools{questions.AskerTools(firstAsker{})}})
		p := newAsked(t, url, beforeTasks, "a", canAll)
		for _, end := range []string{"answered", "declined", "cancelled"} {
			c := p.proposeWith(metadata(end), "ask_first", map[string]any{"name": "n"})
			for _, answer := range []string{sureYes, whichA} {
				m := c.next()
				if m.Method != "elicitation/create" || proposalOf(t, []byte(m.text)) != "" {
					t.Fatalf("%s", m.text)
				}
				if end == "declined" {
					answer = `{"action":"decline"}`
				}
				if end != "cancelled" {
					p.respond(m.ID, `"result":`+answer)
				}
				if end != "answered" {
					break
				}
			}
			switch end {
			case "answered":
				if m := c.next(); m.Method != proposalCreated || proposalOf(t, []byte(m.text)) != end {
					t.Errorf("%s", m.text)
				}
				if last := c.answer(); proposalOf(t, []byte(last.text)) != end || strings.Contains(last.text, "isError") {
					t.Errorf("%s", last.text)
				}
				continue
			case "declined":
				if last := c.answer(); proposalOf(t, []byte(last.text)) != "" || !strings.HasPrefix(toolText(last.Result), "isError: Sure ") {
					t.Errorf("%s", last.text)
				}
			case "cancelled":
				p.cancelCall(c)
				for m := range c.messages { // the question is taken back, perhaps; there is no task
					if m.Method == proposalCreated || m.Result != nil {
						t.Errorf("%s", m.text)
					}
				}
			}
			p.about("tasks/get", end).want(http.StatusOK, invalidParams)
		}
	})
}
