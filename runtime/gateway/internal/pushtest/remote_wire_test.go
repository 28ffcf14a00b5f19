package pushtest

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestRemoteQuestions checks questions that a client keeps as tasks, on every kind of stream.
func TestRemoteQuestions(t *testing.T) {
	rules.Covers(t, "C-15", "C-16", "C-50", "C-61", "C-62", "C-64", "C-46")
	checkRemoteQuestions(t, wiretest.LegacyRevision)
}

// keepQuestion creates a task that asks on the session's own stream. The client keeps the question
// as its task r. result is the tasks/result that the server has sent.
func keepQuestion(p *wiretest.Peer, tool string) (f *wiretest.Feed, id string, result wiretest.WireMessage) {
	p.T.Helper()
	f = p.OpenGet()
	id = p.Create(tool, wiretest.AskArguments("one"))
	p.Respond(f.NextTaskQuestion(id).ID, wiretest.RemoteTaskCreated("r"))
	return f, id, f.NextFollowUp("tasks/result", "r")
}

func checkRemoteQuestions(t *testing.T, revision string) {
	t.Helper()
	eachReplyForm(t, revision, wiretest.TaskCapabilities(wiretest.AllTaskCapabilities), func(run func(name string, test streamTest)) {
		run("elicitation on tasks/result", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			id := p.Create("ask", wiretest.AskArguments("one", "two"))
			f := p.Result(id)
			for _, step := range []string{"one", "two"} {
				q := f.NextTaskQuestion(id)
				var task map[string]int64
				if err := json.Unmarshal(q.Params.Task, &task); err != nil || len(task) != 1 || task["ttl"] < 1000 {
					t.Errorf("%v: %s", err, q.Text)
				}
				p.Respond(q.ID, wiretest.RemoteTaskCreated("r"+step))
				result := f.NextFollowUp("tasks/result", "r"+step)
				if string(result.ID) == string(q.ID) {
					t.Errorf("%s", result.Text)
				}
				f.WantSilence() // the request waits
				p.Until(id, "input_required")
				p.Respond(result.ID, wiretest.WithRelatedTask("r"+step, wiretest.AcceptNote(step)))
			}
			wantResult(f, "one,two")
		})
		run("sampling on the standalone stream", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			f := p.OpenGet()
			id := p.Create("sample", nil)
			q := f.NextTaskQuestion(id)
			if q.Method != "sampling/createMessage" {
				t.Errorf("%s", q.Text)
			}
			p.Respond(q.ID, wiretest.RemoteTaskCreated("r"))
			p.Respond(f.NextFollowUp("tasks/result", "r").ID, wiretest.WithRelatedTask("r", `"result":{"role":"assistant","model":"m","content":{"type":"text","text":"sum"}}`))
			if got := p.TaskText(id); !strings.Contains(got, "assistant m") {
				t.Error(got)
			}
			f.WantSilence()
		})
		run("a page to open", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			_, id, result := keepQuestion(p, "url")
			p.Respond(result.ID, wiretest.WithRelatedTask("r", `"result":{"action":"decline"}`))
			wantText(p, id, "declined")
		})
		run("answered at once", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) { // C-21
			f := p.OpenGet()
			id := p.Create("ask", wiretest.AskArguments("one"))
			p.Respond(f.NextTaskQuestion(id).ID, wiretest.AcceptNote("now"))
			wantText(p, id, "now")
			f.WantSilence()
		})
		run("failed at once", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			f := p.OpenGet()
			id := p.Create("ask", wiretest.AskArguments("one"))
			p.Respond(f.NextTaskQuestion(id).ID, `"error":{"code":-32603,"message":"task?"}`)
			wantText(p, id, "cannot ask")
		})
		run("polled, then asked for the result", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			f, id, result := keepQuestion(p, "ask")
			p.Respond(result.ID, `"error":{"code":-32603,"message":"not yet"}`)
			for _, status := range []string{"working", "input_required"} {
				p.Respond(f.NextFollowUp("tasks/get", "r").ID, `"result":`+wiretest.RemoteTask("r", status))
			}
			p.Respond(f.NextFollowUp("tasks/result", "r").ID, `"error":{"code":-32603,"message":"not yet"}`)
			p.Respond(f.NextFollowUp("tasks/get", "r").ID, `"result":`+wiretest.RemoteTask("r", "completed"))
			p.Respond(f.NextFollowUp("tasks/result", "r").ID, wiretest.WithRelatedTask("r", wiretest.AcceptNote("yes")))
			wantText(p, id, "yes")
		})
		run("streams dropped at every point", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			id := p.Create("ask", wiretest.AskArguments("one"))
			p.Until(id, "input_required")
			first := p.Result(id)
			q := first.NextTaskQuestion(id)
			first.Stop()
			get := p.OpenGet()
			wantAgain(t, get.NextTaskQuestion(id), q)
			get.Stop()
			p.Respond(q.ID, wiretest.RemoteTaskCreated("r"))
			// The server may notice a dropped stream late and lose the messages on it. It then asks for the task's
			// state, and again for the result.
			resumed := func(f *wiretest.Feed) wiretest.WireMessage {
				for {
					m := f.Next()
					if m.Method != "tasks/get" {
						return m
					}
					p.Respond(m.ID, `"result":`+wiretest.RemoteTask("r", "completed"))
				}
			}
			second := p.Result(id)
			waits := resumed(second)
			second.Stop()
			third := p.OpenGet()
			poll := third.NextFollowUp("tasks/get", "r")
			third.Stop()
			p.Respond(poll.ID, `"result":`+wiretest.RemoteTask("r", "working"))
			if m := resumed(p.Result(id)); m.Method != "tasks/result" || string(m.ID) == string(waits.ID) {
				t.Errorf("%s after %s", m.Text, waits.Text)
			}
			p.Respond(waits.ID, wiretest.WithRelatedTask("r", wiretest.AcceptNote("late"))) // to the first of the two requests
			wantText(p, id, "late")
		})
		run("two at once", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			f := p.OpenGet()
			id := p.Create("two_notes", map[string]any{})
			a, b := f.NextTaskQuestion(id), f.NextTaskQuestion(id)
			p.Respond(a.ID, wiretest.RemoteTaskCreated("ra"))
			ra := f.NextFollowUp("tasks/result", "ra")
			p.Respond(b.ID, wiretest.RemoteTaskCreated("rb"))
			rb := f.NextFollowUp("tasks/result", "rb")
			p.Respond(rb.ID, wiretest.WithRelatedTask("rb", wiretest.AcceptNote("x")))
			p.Until(id, "input_required")
			p.Respond(ra.ID, wiretest.WithRelatedTask("ra", wiretest.AcceptNote("x")))
			wantText(p, id, "x and x")
		})
		run("the client tells of its task's state", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			f, id, result := keepQuestion(p, "ask")
			r := p.Post(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":` + wiretest.RemoteTask("r", "completed") + `}`)
			if r.Status != http.StatusAccepted {
				t.Errorf("%d %s", r.Status, r.Body)
			}
			f.WantSilence()
			p.Respond(result.ID, wiretest.WithRelatedTask("r", wiretest.AcceptNote("yes")))
			wantText(p, id, "yes")
		})
	})
}

// TestRemoteNotDeclared checks that the server asks for a task only if the client declares that it
// accepts one.
func TestRemoteNotDeclared(t *testing.T) {
	rules.Covers(t, "C-02", "C-03", "C-04")
	t.Parallel()
	const elicits, samples = `{"requests":{"elicitation":{"create":{}}}}`, `{"cancel":{},"requests":{"sampling":{"createMessage":{}}}}`
	for _, c := range []struct {
		tasks, tool string
		augmented   bool
	}{
		{elicits, "ask", true}, {elicits, "url", true}, {elicits, "sample", false}, {elicits, "roots", false},
		{samples, "ask", false}, {samples, "sample", true}, {samples, "roots", false}, {wiretest.AllTaskCapabilities, "roots", false},
		{`{}`, "ask", false}, {`null`, "ask", false}, {`true`, "ask", false}, {`{"requests":{}}`, "ask", false},
		{`{"requests":{"elicitation":{}}}`, "ask", false}, {`{"requests":{"elicitation":{"create":null}}}`, "ask", false},
		{`{"requests":{"elicitation":{"create":true}}}`, "ask", false}, {`{"requests":{"tools":{"call":{}}}}`, "ask", false},
		{`{"requests":5}`, "ask", false},
	} {
		inBubble(t, c.tool+c.tasks, func(t *testing.T) {
			url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
			p := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.TaskCapabilities(c.tasks))
			f := p.OpenGet()
			id := p.Create(c.tool, wiretest.AskArguments("one"))
			q := f.NextQuestion(id)
			if (q.Params.Task != nil) != c.augmented {
				t.Errorf("%s", q.Text)
			}
			if !c.augmented { // a task that was not asked for is no answer
				p.Respond(q.ID, wiretest.RemoteTaskCreated("r"))
				f.WantSilence()
				if got := p.TaskText(id); got != "invalid" && !strings.HasPrefix(got, "mcptask") && c.tool == "ask" {
					t.Error(got)
				}
			}
		})
	}
	inBubble(t, "plain calls", func(t *testing.T) { // the SDK asks their questions
		url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
		p := keepingPeer(t, url)
		for _, params := range []map[string]any{
			{"name": "ask", "arguments": wiretest.AskArguments("one")}, {"name": "ask_only", "arguments": map[string]any{}},
		} {
			f := p.Send("tools/call", params)
			if q := f.NextQuestion(""); q.Params.Task != nil {
				t.Errorf("%s", q.Text)
			}
			f.Stop()
		}
	})
}

// TestRemoteStrangers checks that other callers cannot change a client's task.
func TestRemoteStrangers(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		logs := &wiretest.SafeBuffer{}
		url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true, Options: taskserver.Options{Logger: slog.New(slog.NewTextHandler(logs, nil))}})
		p, other := keepingPeer(t, url), wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "b", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
		mine, theirs := p.OpenGet(), other.OpenGet()
		id := p.Create("ask", wiretest.AskArguments("one"))
		q := mine.NextTaskQuestion(id)
		other.Respond(q.ID, wiretest.RemoteTaskCreated("theft"))
		other.Task("tasks/get", id).Want(http.StatusOK, wiretest.InvalidParams)
		p.Respond(q.ID, wiretest.RemoteTaskCreated("r"))
		m := mine.NextFollowUp("tasks/result", "r")
		other.Respond(m.ID, wiretest.AcceptNote("theft"))
		other.Respond(m.ID, `"error":{"code":-32602,"message":"none"}`)
		p.Respond(m.ID, `"error":{"code":-32602,"message":"none"}`, wiretest.WithHeader("Mcp-Session-Id", keepingPeer(t, url).Session))
		theirs.WantSilence()
		mine.WantSilence()
		p.Until(id, "input_required")
		if text := logs.String(); !strings.Contains(text, "not taken") {
			t.Error(text)
		}
		p.Respond(m.ID, wiretest.AcceptNote("mine"))
		wantText(p, id, "mine")
		p.Respond(m.ID, wiretest.AcceptNote("2nd"))
		p.Respond(q.ID, wiretest.RemoteTaskCreated("r"))
		theirs.WantSilence()
	})
}

// TestRemoteProcesses checks that the reply to a follow-up request may reach another process than
// the one that has sent the request.
func TestRemoteProcesses(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		options := taskserver.Options{Store: taskstore.NewMemory()}
		tools := []mcptask.Tools{wiretest.AskTools()}
		here, _ := wiretest.ServeWith(t, wiretest.Setup{Options: options, Bearer: true, Tools: tools})
		there, _ := wiretest.ServeWith(t, wiretest.Setup{Options: options, Bearer: true, Tools: tools})
		p, q := wiretest.NewAskedPeer(t, here, wiretest.LegacyRevision, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities)), wiretest.NewAskedPeer(t, there, wiretest.LegacyRevision, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
		f, g := p.OpenGet(), q.OpenGet()
		id := p.Create("ask", wiretest.AskArguments("one", "two", "three"))

		one := f.NextTaskQuestion(id)
		q.Respond(one.ID, wiretest.RemoteTaskCreated("r1")) // the other process learns of the task and follows it
		q.Respond(g.NextFollowUp("tasks/result", "r1").ID, wiretest.WithRelatedTask("r1", wiretest.AcceptNote("1")))

		two := f.NextTaskQuestion(id)
		p.Respond(two.ID, wiretest.RemoteTaskCreated("r2")) // this process learns of the task, the other gets the answer
		m := f.NextFollowUp("tasks/result", "r2")
		q.Respond(m.ID, `"error":{"code":-32603,"message":"lost on the way"}`) // this process does not hear of it
		q.Respond(m.ID, wiretest.WithRelatedTask("r2", wiretest.AcceptNote("2")))
		f.NextFollowUp("tasks/cancel", "r2") // this process cannot know that it has ended

		three := f.NextTaskQuestion(id)
		p.Respond(three.ID, wiretest.RemoteTaskCreated("r3"))
		f.NextFollowUp("tasks/result", "r3")
		p.Respond(three.ID, wiretest.AcceptNote("3"))
		f.NextFollowUp("tasks/cancel", "r3")
		wantText(p, id, "1,2,3")
	})
}
