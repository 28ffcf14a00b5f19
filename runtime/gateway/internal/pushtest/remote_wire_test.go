package pushtest

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestRemoteQuestions checks questions that a client keeps as tasks, on every kind of stream.
func TestRemoteQuestions(t *testing.T) {
	rules.Covers(t, "C-15", "C-16", "C-50", "C-61", "C-62", "C-64", "C-46")
	checkRemoteQuestions(t, wiretest.LegacyRevision)
}

func checkRemoteQuestions(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	for _, jsonReplies := range []bool{false, true} {
		run := func(name string, test func(t *testing.T, p *wiretest.Peer)) {
			t.Run(fmt.Sprint(name, " json=", jsonReplies), func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) {
					url := wiretest.ServeAsk(t, wiretest.Setup{Revision: revision, Bearer: true, HTTP: wiretest.HTTPOptions(jsonReplies)})
					test(t, wiretest.NewAskedPeer(t, url, revision, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities)))
				})
			})
		}
		run("elicitation on tasks/result", func(t *testing.T, p *wiretest.Peer) {
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
				f.WantSilence() // it waits
				p.Until(id, "input_required")
				p.Respond(result.ID, wiretest.WithRelatedTask("r"+step, wiretest.AcceptNote(step)))
			}
			if last := f.Next(); wiretest.ToolText(last.Result) != "one,two" {
				t.Errorf("%s", last.Text)
			}
		})
		run("sampling on the standalone stream", func(t *testing.T, p *wiretest.Peer) {
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
		run("a page to open", func(t *testing.T, p *wiretest.Peer) {
			f := p.OpenGet()
			id := p.Create("url", nil)
			p.Respond(f.NextTaskQuestion(id).ID, wiretest.RemoteTaskCreated("r"))
			p.Respond(f.NextFollowUp("tasks/result", "r").ID, wiretest.WithRelatedTask("r", `"result":{"action":"decline"}`))
			if got := p.TaskText(id); got != "declined" {
				t.Error(got)
			}
		})
		run("answered at once", func(t *testing.T, p *wiretest.Peer) { // C-21
			f := p.OpenGet()
			id := p.Create("ask", wiretest.AskArguments("one"))
			p.Respond(f.NextTaskQuestion(id).ID, wiretest.AcceptNote("now"))
			if got := p.TaskText(id); got != "now" {
				t.Error(got)
			}
			f.WantSilence()
		})
		run("failed at once", func(t *testing.T, p *wiretest.Peer) {
			f := p.OpenGet()
			id := p.Create("ask", wiretest.AskArguments("one"))
			p.Respond(f.NextTaskQuestion(id).ID, `"error":{"code":-32602,"message":"task?"}`)
			if got := p.TaskText(id); got != "cannot ask" {
				t.Error(got)
			}
		})
		run("polled, then asked for the result", func(t *testing.T, p *wiretest.Peer) {
			f := p.OpenGet()
			id := p.Create("ask", wiretest.AskArguments("one"))
			p.Respond(f.NextTaskQuestion(id).ID, wiretest.RemoteTaskCreated("r"))
			p.Respond(f.NextFollowUp("tasks/result", "r").ID, `"error":{"code":-32603,"message":"not yet"}`)
			for _, status := range []string{"working", "input_required"} {
				p.Respond(f.NextFollowUp("tasks/get", "r").ID, `"result":`+wiretest.RemoteTask("r", status))
			}
			p.Respond(f.NextFollowUp("tasks/result", "r").ID, `"error":{"code":-32603,"message":"not yet"}`)
			p.Respond(f.NextFollowUp("tasks/get", "r").ID, `"result":`+wiretest.RemoteTask("r", "completed"))
			p.Respond(f.NextFollowUp("tasks/result", "r").ID, wiretest.WithRelatedTask("r", wiretest.AcceptNote("yes")))
			if got := p.TaskText(id); got != "yes" {
				t.Error(got)
			}
		})
		run("lost by the client", func(t *testing.T, p *wiretest.Peer) {
			f := p.OpenGet()
			id := p.Create("ask", wiretest.AskArguments("one"))
			p.Respond(f.NextTaskQuestion(id).ID, wiretest.RemoteTaskCreated("r"))
			gone := `"error":{"code":-32602,"message":"no such task"}`
			p.Respond(f.NextFollowUp("tasks/result", "r").ID, gone)
			p.Respond(f.NextFollowUp("tasks/get", "r").ID, gone)
			q := f.NextQuestion(id)
			if q.Params.Task != nil {
				t.Errorf("%s", q.Text)
			}
			p.Respond(q.ID, wiretest.AcceptNote("again"))
			if got := p.TaskText(id); got != "again" {
				t.Error(got)
			}
		})
		run("streams dropped at every point", func(t *testing.T, p *wiretest.Peer) {
			id := p.Create("ask", wiretest.AskArguments("one"))
			p.Until(id, "input_required")
			first := p.Result(id)
			q := first.NextTaskQuestion(id)
			first.Stop()
			get := p.OpenGet()
			if again := get.NextTaskQuestion(id); string(again.ID) != string(q.ID) {
				t.Errorf("%s", again.Text)
			}
			get.Stop()
			p.Respond(q.ID, wiretest.RemoteTaskCreated("r"))
			// The server may see a drop late, and what it then has sent is lost: it asks
			// how the task is, and again for the result.
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
			p.Respond(waits.ID, wiretest.WithRelatedTask("r", wiretest.AcceptNote("late"))) // to the first of the two
			if got := p.TaskText(id); got != "late" {
				t.Error(got)
			}
		})
		run("two at once", func(t *testing.T, p *wiretest.Peer) {
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
			if got := p.TaskText(id); got != "x and x" {
				t.Error(got)
			}
		})
		run("the client tells of its task's state", func(t *testing.T, p *wiretest.Peer) {
			f := p.OpenGet()
			id := p.Create("ask", wiretest.AskArguments("one"))
			p.Respond(f.NextTaskQuestion(id).ID, wiretest.RemoteTaskCreated("r"))
			m := f.NextFollowUp("tasks/result", "r")
			r := p.Post(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":` + wiretest.RemoteTask("r", "completed") + `}`)
			if r.Status != http.StatusAccepted {
				t.Errorf("%d %s", r.Status, r.Body)
			}
			f.WantSilence()
			p.Respond(m.ID, wiretest.WithRelatedTask("r", wiretest.AcceptNote("yes")))
			if got := p.TaskText(id); got != "yes" {
				t.Error(got)
			}
		})
	}
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
		t.Run(c.tool+c.tasks, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
				p := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.TaskCapabilities(c.tasks))
				f := p.OpenGet()
				id := p.Create(c.tool, wiretest.AskArguments("one"))
				q := f.NextQuestion(id)
				if (q.Params.Task != nil) != c.augmented {
					t.Errorf("%s", q.Text)
				}
				if !c.augmented { // what was not asked for is no answer
					p.Respond(q.ID, wiretest.RemoteTaskCreated("r"))
					f.WantSilence()
					if got := p.TaskText(id); got != "invalid" && !strings.HasPrefix(got, "mcptask") && c.tool == "ask" {
						t.Error(got)
					}
				}
			})
		})
	}
	t.Run("plain calls", func(t *testing.T) { // the SDK asks for them
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
			p := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
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
	})
}

// TestRemoteTakenBack checks that a client's task that is no longer needed is cancelled.
func TestRemoteTakenBack(t *testing.T) {
	rules.Covers(t, "C-73", "C-74", "C-80")
	checkRemoteTakenBack(t, wiretest.LegacyRevision)
}

func checkRemoteTakenBack(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	for _, on := range []string{"get", "result"} {
		feedOf := func(p *wiretest.Peer, id string) *wiretest.Feed {
			if on == "get" {
				p.Task("tasks/get", id).OK() // who names the task is asked at once
				return p.OpenGet()
			}
			return p.Result(id)
		}
		begin := func(t *testing.T, url string, tasks string, params map[string]any) (*wiretest.Peer, string, *wiretest.Feed, wiretest.WireMessage) {
			p := wiretest.NewAskedPeer(t, url, revision, "a", wiretest.TaskCapabilities(tasks))
			params["name"] = "ask"
			if params["task"] == nil {
				params["task"] = map[string]any{}
			}
			id := p.Call("tools/call", params).OK().Text("task", "taskId")
			f := feedOf(p, id)
			q := f.NextTaskQuestion(id)
			p.Respond(q.ID, wiretest.RemoteTaskCreated("r"))
			f.NextFollowUp("tasks/result", "r")
			return p, id, f, q
		}
		t.Run("cancelled "+on, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url := wiretest.ServeAsk(t, wiretest.Setup{Revision: revision, Bearer: true})
				p, id, f, q := begin(t, url, wiretest.AllTaskCapabilities, map[string]any{"arguments": wiretest.AskArguments("one")})
				p.Task("tasks/cancel", id).OK()
				m := f.NextFollowUp("tasks/cancel", "r")
				p.Respond(m.ID, `"result":`+wiretest.RemoteTask("r", "cancelled"))
				p.Respond(q.ID, wiretest.RemoteTaskCreated("late"))
				if on == "result" {
					if m := f.Next(); m.Error == nil {
						t.Errorf("%s", m.Text)
					}
					return
				}
				f.NextFollowUp("tasks/cancel", "late")
				f.WantSilence()
			})
		})
		t.Run("expired "+on, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url := wiretest.ServeAsk(t, wiretest.Setup{Revision: revision, Bearer: true})
				_, _, f, _ := begin(t, url, wiretest.AllTaskCapabilities, map[string]any{"arguments": wiretest.AskArguments("one"), "task": map[string]any{"ttl": 5000}})
				f.NextFollowUp("tasks/cancel", "r")
			})
		})
		t.Run("withdrawn "+on, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url := wiretest.ServeAsk(t, wiretest.Setup{Revision: revision, Bearer: true})
				p, id, f, q := begin(t, url, wiretest.AllTaskCapabilities, map[string]any{"arguments": map[string]any{"steps": []string{"one", "one"}, "giveUp": 5000}})
				p.Respond(f.NextFollowUp("tasks/cancel", "r").ID, `"error":{"code":-32602,"message":"it has ended"}`)
				again := f.NextTaskQuestion(id)
				if string(again.ID) == string(q.ID) {
					t.Errorf("%s is used again", q.ID)
				}
				p.Respond(again.ID, wiretest.RemoteTaskCreated("r2"))
				p.Respond(f.NextFollowUp("tasks/result", "r2").ID, wiretest.WithRelatedTask("r2", wiretest.AcceptNote("new")))
				if got := p.TaskText(id); got != "given up,new" {
					t.Error(got)
				}
			})
		})
		t.Run("without tasks/cancel "+on, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url := wiretest.ServeAsk(t, wiretest.Setup{Revision: revision, Bearer: true})
				p, id, f, _ := begin(t, url, strings.Replace(wiretest.AllTaskCapabilities, `"cancel":{},`, "", 1), map[string]any{"arguments": wiretest.AskArguments("one")})
				p.Task("tasks/cancel", id).OK()
				if on == "get" {
					f.WantSilence()
				} else if m := f.Next(); m.Error == nil {
					t.Errorf("%s", m.Text)
				}
			})
		})
	}
	t.Run("not a task yet", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url := wiretest.ServeAsk(t, wiretest.Setup{Revision: revision, Bearer: true})
			p := wiretest.NewAskedPeer(t, url, revision, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
			f := p.OpenGet()
			id := p.Create("ask", wiretest.AskArguments("one"))
			q := f.NextTaskQuestion(id)
			p.Task("tasks/cancel", id).OK()
			if m := f.Next(); m.Method != "notifications/cancelled" || string(m.Params.RequestID) != string(q.ID) {
				t.Errorf("%s", m.Text)
			}
			p.Respond(q.ID, wiretest.RemoteTaskCreated("r")) // they have crossed
			f.NextFollowUp("tasks/cancel", "r")
		})
	})
}

// TestRemoteStrangers checks that other callers cannot change a client's task.
func TestRemoteStrangers(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		logs := &wiretest.SafeBuffer{}
		url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true, Options: mcptask.Options{Logger: slog.New(slog.NewTextHandler(logs, nil))}})
		p, other := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities)), wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "b", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
		mine, theirs := p.OpenGet(), other.OpenGet()
		id := p.Create("ask", wiretest.AskArguments("one"))
		q := mine.NextTaskQuestion(id)
		other.Respond(q.ID, wiretest.RemoteTaskCreated("theft"))
		other.Task("tasks/get", id).Want(http.StatusOK, wiretest.InvalidParams)
		p.Respond(q.ID, wiretest.RemoteTaskCreated("r"))
		m := mine.NextFollowUp("tasks/result", "r")
		other.Respond(m.ID, wiretest.AcceptNote("theft"))
		other.Respond(m.ID, `"error":{"code":-32602,"message":"none"}`)
		p.Respond(m.ID, `"error":{"code":-32602,"message":"none"}`, wiretest.WithHeader("Mcp-Session-Id", wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities)).Session))
		theirs.WantSilence()
		mine.WantSilence()
		p.Until(id, "input_required")
		if text := logs.String(); !strings.Contains(text, "not taken") {
			t.Error(text)
		}
		p.Respond(m.ID, wiretest.AcceptNote("mine"))
		if got := p.TaskText(id); got != "mine" {
			t.Error(got)
		}
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
		options := mcptask.Options{Store: mcptask.NewMemoryStore()}
		tools := []mcptask.Tools{wiretest.AskTools()}
		here, _ := wiretest.ServeWith(t, wiretest.Setup{Options: options, Bearer: true, Tools: tools})
		there, _ := wiretest.ServeWith(t, wiretest.Setup{Options: options, Bearer: true, Tools: tools})
		p, q := wiretest.NewAskedPeer(t, here, wiretest.LegacyRevision, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities)), wiretest.NewAskedPeer(t, there, wiretest.LegacyRevision, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
		f, g := p.OpenGet(), q.OpenGet()
		id := p.Create("ask", wiretest.AskArguments("one", "two", "three"))

		one := f.NextTaskQuestion(id)
		q.Respond(one.ID, wiretest.RemoteTaskCreated("r1")) // told there, followed there
		q.Respond(g.NextFollowUp("tasks/result", "r1").ID, wiretest.WithRelatedTask("r1", wiretest.AcceptNote("1")))

		two := f.NextTaskQuestion(id)
		p.Respond(two.ID, wiretest.RemoteTaskCreated("r2")) // told here, answered there
		m := f.NextFollowUp("tasks/result", "r2")
		q.Respond(m.ID, `"error":{"code":-32603,"message":"lost on the way"}`) // which here does not hear of
		q.Respond(m.ID, wiretest.WithRelatedTask("r2", wiretest.AcceptNote("2")))
		f.NextFollowUp("tasks/cancel", "r2") // here cannot know that it has ended

		three := f.NextTaskQuestion(id)
		p.Respond(three.ID, wiretest.RemoteTaskCreated("r3"))
		f.NextFollowUp("tasks/result", "r3")
		p.Respond(three.ID, wiretest.AcceptNote("3"))
		f.NextFollowUp("tasks/cancel", "r3")
		if got := p.TaskText(id); got != "1,2,3" {
			t.Error(got)
		}
	})
}

// TestManyRemoteQuestions repeats TestManyQuestions with clients that keep questions as tasks, drop
// streams at random, lose replies, and repeat messages. Every question gets its own answer once,
// and nothing is left behind.
func TestManyRemoteQuestions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const clients, each = 8, 10
		var answered atomic.Int32
		address, tasks := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: []mcptask.Tools{echoTools(&answered)}})
		warm := wiretest.NewPeer(t, address, wiretest.LegacyRevision, "warm")
		warm.Call("tools/list", nil).OK()
		wiretest.ClosePeer(t, warm)
		check := wiretest.Goroutines(t)

		began := time.Now()
		var drops, created, polled atomic.Int32
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				p := wiretest.NewAskedPeer(t, address, wiretest.LegacyRevision, fmt.Sprint("user", i), wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
				defer func() { wiretest.ClosePeer(t, p) }()
				open := map[string]bool{}
				remotes := map[string]string{} // what each of the client's tasks answers
				completed := map[string]bool{}
				// handle does what a client does; false is a dropped stream.
				handle := func(m wiretest.WireMessage) bool {
					chance := rand.N(10)
					if m.Method != "" && chance < 2 {
						drops.Add(1)
						return false // it has not been read
					}
					again := chance == 2
					say := func(response string) {
						p.Respond(m.ID, response)
						if again {
							p.Respond(m.ID, response)
						}
					}
					answer := func(text string) string {
						return fmt.Sprintf(`"result":{"action":"accept","content":{"note":%q}}`, text)
					}
					switch m.Method {
					case "elicitation/create":
						if chance == 3 {
							say(answer(m.Params.Message))
							break
						}
						id := fmt.Sprint("remote", created.Add(1))
						remotes[id] = m.Params.Message
						say(wiretest.RemoteTaskCreated(id))
					case "tasks/result":
						switch {
						case remotes[m.Params.TaskID] == "":
							t.Errorf("no task of ours: %s", m.Text)
						case chance < 6 && !completed[m.Params.TaskID]:
							say(`"error":{"code":-32603,"message":"not yet"}`)
						default:
							say(wiretest.WithRelatedTask(m.Params.TaskID, answer(remotes[m.Params.TaskID])))
						}
					case "tasks/get":
						polled.Add(1)
						if chance < 6 && !completed[m.Params.TaskID] {
							say(`"result":` + wiretest.RemoteTask(m.Params.TaskID, "working"))
							break
						}
						completed[m.Params.TaskID] = true
						say(`"result":` + wiretest.RemoteTask(m.Params.TaskID, "completed"))
					case "tasks/cancel":
						say(`"result":` + wiretest.RemoteTask(m.Params.TaskID, "cancelled"))
					}
					return true
				}
				for range each {
					open[p.Create("echo", nil)] = true
				}
				for stop := time.Now().Add(5 * time.Minute); len(open) > 0 && time.Now().Before(stop); {
					var one string
					for one = range open {
						break
					}
					f := p.OpenGet
					if rand.N(3) == 0 {
						f = func() *wiretest.Feed { return p.Result(one) }
					}
					stream := f()
					timer := time.NewTimer(time.Duration(100+rand.N(150)) * time.Millisecond)
					for reading := true; reading; {
						select {
						case m, ok := <-stream.Messages:
							reading = ok && handle(m)
						case <-timer.C:
							reading = false
						}
					}
					stream.Stop()
					if rand.N(12) == 0 { // the client starts anew
						wiretest.ClosePeer(t, p)
						p = wiretest.NewAskedPeer(t, address, wiretest.LegacyRevision, p.Token, wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
						for id := range open {
							p.Task("tasks/get", id).OK()
						}
					}
					for id := range open {
						if r := p.Task("tasks/get", id); r.Text("status") == "completed" {
							delete(open, id)
						} else if s := r.Text("status"); s != "working" && s != "input_required" {
							t.Errorf("%s: %s", id, r.Body)
							delete(open, id)
						}
					}
				}
				if len(open) > 0 {
					t.Errorf("client %d: %d tasks are not done", i, len(open))
				}
			})
		}
		all.Wait()
		if got := answered.Load(); got != 2*clients*each {
			t.Errorf("%d answers", got)
		}
		t.Logf("%d questions in %v, %d tasks at clients, %d polls, %d streams dropped", answered.Load(), time.Since(began), created.Load(), polled.Load(), drops.Load())
		http.DefaultClient.CloseIdleConnections()
		check()
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
	})
}
