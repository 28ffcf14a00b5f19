package gosdk_test

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
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// The client as the receiver of tasks, in literal JSON.

// takes declares that a client takes such questions as tasks.
func takes(tasks string) string {
	return `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{},"tasks":` + tasks + `}`
}

const takesAll = `{"list":{},"cancel":{},"requests":{"elicitation":{"create":{}},"sampling":{"createMessage":{}}}}`

// remoteTask is a client's task.
func remoteTask(id, status string) string {
	return fmt.Sprintf(`{"taskId":%q,"status":%q,"createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":60000,"pollInterval":100}`, id, status)
}

func remoteBegan(id string) string { return `"result":{"task":` + remoteTask(id, "working") + `}` }

// relatedTo adds what C-41 asks of the answer to tasks/result.
func relatedTo(id, response string) string {
	return strings.TrimSuffix(response, "}") + fmt.Sprintf(`,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":%q}}}`, id)
}

// followUp is the next message, which is a request about a client's task.
func (f *feed) followUp(method, remote string) wireMessage {
	f.t.Helper()
	m := f.next()
	if m.Method != method || m.ID == nil || m.Params.TaskID != remote {
		f.t.Fatalf("no %s of %s: %s", method, remote, m.text)
	}
	if strings.Contains(m.text, "_meta") {
		f.t.Errorf("metadata in %s", m.text)
	}
	return m
}

// augmented is the next message, which is a question that asks for a task.
func (f *feed) augmented(task string) wireMessage {
	f.t.Helper()
	m := f.question(task)
	if m.Params.Task == nil {
		f.t.Fatalf("no task is asked for: %s", m.text)
	}
	return m
}

// TestRemoteQuestions: questions that become tasks at the client, on whatever
// stream there is.
func TestRemoteQuestions(t *testing.T) {
	rules.Covers(t, "C-15", "C-16", "C-50", "C-61", "C-62", "C-64", "C-46")
	checkRemoteQuestions(t, legacyRevision)
}

func TestCandidateRemoteQuestions(t *testing.T) {
	rules.Covers(t, "B-15", "B-16", "B-47", "B-56", "B-57", "B-59", "B-43")
	checkRemoteQuestions(t, candidateRevision)
}

func checkRemoteQuestions(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	for _, jsonReplies := range []bool{false, true} {
		url := serveAsk(t, setup{revision: revision, bearer: true, http: httpOptions(jsonReplies)})
		run := func(name string, test func(t *testing.T, p *peer)) {
			t.Run(fmt.Sprint(name, " json=", jsonReplies), func(t *testing.T) {
				t.Parallel()
				test(t, newAsked(t, url, revision, "a", takes(takesAll)))
			})
		}
		run("elicitation on tasks/result", func(t *testing.T, p *peer) {
			id := p.create("ask", ask("one", "two"))
			f := p.result(id)
			for _, step := range []string{"one", "two"} {
				q := f.augmented(id)
				var task map[string]int64
				if err := json.Unmarshal(q.Params.Task, &task); err != nil || len(task) != 1 || task["ttl"] < 1000 {
					t.Errorf("%v: %s", err, q.text)
				}
				p.respond(q.ID, remoteBegan("r"+step))
				result := f.followUp("tasks/result", "r"+step)
				if string(result.ID) == string(q.ID) {
					t.Errorf("%s", result.text)
				}
				f.silent() // it waits
				p.until(id, "input_required")
				p.respond(result.ID, relatedTo("r"+step, note(step)))
			}
			if last := f.next(); toolText(last.Result) != "one,two" {
				t.Errorf("%s", last.text)
			}
		})
		run("sampling on the standalone stream", func(t *testing.T, p *peer) {
			f := p.get()
			id := p.create("sample", nil)
			q := f.augmented(id)
			if q.Method != "sampling/createMessage" {
				t.Errorf("%s", q.text)
			}
			p.respond(q.ID, remoteBegan("r"))
			p.respond(f.followUp("tasks/result", "r").ID, relatedTo("r", `"result":{"role":"assistant","model":"m","content":{"type":"text","text":"sum"}}`))
			if got := p.outcome(id); !strings.Contains(got, "assistant m") {
				t.Error(got)
			}
			f.silent()
		})
		run("a page to open", func(t *testing.T, p *peer) {
			f := p.get()
			id := p.create("url", nil)
			p.respond(f.augmented(id).ID, remoteBegan("r"))
			p.respond(f.followUp("tasks/result", "r").ID, relatedTo("r", `"result":{"action":"decline"}`))
			if got := p.outcome(id); got != "declined" {
				t.Error(got)
			}
		})
		run("answered at once", func(t *testing.T, p *peer) { // C-21
			f := p.get()
			id := p.create("ask", ask("one"))
			p.respond(f.augmented(id).ID, note("now"))
			if got := p.outcome(id); got != "now" {
				t.Error(got)
			}
			f.silent()
		})
		run("failed at once", func(t *testing.T, p *peer) {
			f := p.get()
			id := p.create("ask", ask("one"))
			p.respond(f.augmented(id).ID, `"error":{"code":-32602,"message":"task?"}`)
			if got := p.outcome(id); got != "cannot ask" {
				t.Error(got)
			}
		})
		run("polled, then asked for the result", func(t *testing.T, p *peer) {
			f := p.get()
			id := p.create("ask", ask("one"))
			p.respond(f.augmented(id).ID, remoteBegan("r"))
			p.respond(f.followUp("tasks/result", "r").ID, `"error":{"code":-32603,"message":"not yet"}`)
			for _, status := range []string{"working", "input_required"} {
				p.respond(f.followUp("tasks/get", "r").ID, `"result":`+remoteTask("r", status))
			}
			p.respond(f.followUp("tasks/result", "r").ID, `"error":{"code":-32603,"message":"not yet"}`)
			p.respond(f.followUp("tasks/get", "r").ID, `"result":`+remoteTask("r", "completed"))
			p.respond(f.followUp("tasks/result", "r").ID, relatedTo("r", note("yes")))
			if got := p.outcome(id); got != "yes" {
				t.Error(got)
			}
		})
		run("lost by the client", func(t *testing.T, p *peer) {
			f := p.get()
			id := p.create("ask", ask("one"))
			p.respond(f.augmented(id).ID, remoteBegan("r"))
			gone := `"error":{"code":-32602,"message":"no such task"}`
			p.respond(f.followUp("tasks/result", "r").ID, gone)
			p.respond(f.followUp("tasks/get", "r").ID, gone)
			q := f.question(id)
			if q.Params.Task != nil {
				t.Errorf("%s", q.text)
			}
			p.respond(q.ID, note("again"))
			if got := p.outcome(id); got != "again" {
				t.Error(got)
			}
		})
		run("streams dropped at every point", func(t *testing.T, p *peer) {
			id := p.create("ask", ask("one"))
			p.until(id, "input_required")
			first := p.result(id)
			q := first.augmented(id)
			first.stop()
			get := p.get()
			if again := get.augmented(id); string(again.ID) != string(q.ID) {
				t.Errorf("%s", again.text)
			}
			get.stop()
			p.respond(q.ID, remoteBegan("r"))
			// The server may see a drop late, and what it then has sent is lost: it asks
			// how the task is, and again for the result.
			resumed := func(f *feed) wireMessage {
				for {
					m := f.next()
					if m.Method != "tasks/get" {
						return m
					}
					p.respond(m.ID, `"result":`+remoteTask("r", "completed"))
				}
			}
			second := p.result(id)
			waits := resumed(second)
			second.stop()
			third := p.get()
			poll := third.followUp("tasks/get", "r")
			third.stop()
			p.respond(poll.ID, `"result":`+remoteTask("r", "working"))
			if m := resumed(p.result(id)); m.Method != "tasks/result" || string(m.ID) == string(waits.ID) {
				t.Errorf("%s after %s", m.text, waits.text)
			}
			p.respond(waits.ID, relatedTo("r", note("late"))) // to the first of the two
			if got := p.outcome(id); got != "late" {
				t.Error(got)
			}
		})
		run("two at once", func(t *testing.T, p *peer) {
			f := p.get()
			id := p.create("two_notes", map[string]any{})
			a, b := f.augmented(id), f.augmented(id)
			p.respond(a.ID, remoteBegan("ra"))
			ra := f.followUp("tasks/result", "ra")
			p.respond(b.ID, remoteBegan("rb"))
			rb := f.followUp("tasks/result", "rb")
			p.respond(rb.ID, relatedTo("rb", note("x")))
			p.until(id, "input_required")
			p.respond(ra.ID, relatedTo("ra", note("x")))
			if got := p.outcome(id); got != "x and x" {
				t.Error(got)
			}
		})
		run("the client tells of its task's state", func(t *testing.T, p *peer) {
			f := p.get()
			id := p.create("ask", ask("one"))
			p.respond(f.augmented(id).ID, remoteBegan("r"))
			m := f.followUp("tasks/result", "r")
			r := p.post(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":` + remoteTask("r", "completed") + `}`)
			if r.status != http.StatusAccepted {
				t.Errorf("%d %s", r.status, r.body)
			}
			f.silent()
			p.respond(m.ID, relatedTo("r", note("yes")))
			if got := p.outcome(id); got != "yes" {
				t.Error(got)
			}
		})
	}
}

// TestRemoteNotDeclared: no task is asked for where the client does not declare
// that it takes it.
func TestRemoteNotDeclared(t *testing.T) {
	rules.Covers(t, "C-02", "C-03", "C-04")
	t.Parallel()
	url := serveAsk(t, setup{bearer: true})
	const elicits, samples = `{"requests":{"elicitation":{"create":{}}}}`, `{"cancel":{},"requests":{"sampling":{"createMessage":{}}}}`
	for _, c := range []struct {
		tasks, tool string
		augmented   bool
	}{
		{elicits, "ask", true}, {elicits, "url", true}, {elicits, "sample", false}, {elicits, "roots", false},
		{samples, "ask", false}, {samples, "sample", true}, {samples, "roots", false}, {takesAll, "roots", false},
		{`{}`, "ask", false}, {`null`, "ask", false}, {`true`, "ask", false}, {`{"requests":{}}`, "ask", false},
		{`{"requests":{"elicitation":{}}}`, "ask", false}, {`{"requests":{"elicitation":{"create":null}}}`, "ask", false},
		{`{"requests":{"elicitation":{"create":true}}}`, "ask", false}, {`{"requests":{"tools":{"call":{}}}}`, "ask", false},
		{`{"requests":5}`, "ask", false},
	} {
		t.Run(c.tool+c.tasks, func(t *testing.T) {
			t.Parallel()
			p := newAsked(t, url, legacyRevision, "a", takes(c.tasks))
			f := p.get()
			id := p.create(c.tool, ask("one"))
			q := f.question(id)
			if (q.Params.Task != nil) != c.augmented {
				t.Errorf("%s", q.text)
			}
			if !c.augmented { // what was not asked for is no answer
				p.respond(q.ID, remoteBegan("r"))
				f.silent()
				if got := p.outcome(id); got != "invalid" && !strings.HasPrefix(got, "mcptask") && c.tool == "ask" {
					t.Error(got)
				}
			}
		})
	}
	t.Run("plain calls", func(t *testing.T) { // the SDK asks for them
		t.Parallel()
		p := newAsked(t, url, legacyRevision, "a", takes(takesAll))
		for _, params := range []map[string]any{
			{"name": "ask", "arguments": ask("one")}, {"name": "ask_only", "arguments": map[string]any{}},
		} {
			f := p.send("tools/call", params)
			if q := f.question(""); q.Params.Task != nil {
				t.Errorf("%s", q.text)
			}
			f.stop()
		}
	})
}

// TestRemoteTakenBack: a client's task that nobody needs is cancelled.
func TestRemoteTakenBack(t *testing.T) {
	rules.Covers(t, "C-73", "C-74", "C-80")
	checkRemoteTakenBack(t, legacyRevision)
}

func TestCandidateRemoteTakenBack(t *testing.T) {
	rules.Covers(t, "B-68", "B-69", "B-76")
	checkRemoteTakenBack(t, candidateRevision)
}

func checkRemoteTakenBack(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	url := serveAsk(t, setup{revision: revision, bearer: true})
	for _, on := range []string{"get", "result"} {
		feedOf := func(p *peer, id string) *feed {
			if on == "get" {
				p.task("tasks/get", id).ok() // who names the task is asked at once
				return p.get()
			}
			return p.result(id)
		}
		begin := func(t *testing.T, tasks string, params map[string]any) (*peer, string, *feed, wireMessage) {
			t.Parallel()
			p := newAsked(t, url, revision, "a", takes(tasks))
			params["name"] = "ask"
			if params["task"] == nil {
				params["task"] = map[string]any{}
			}
			id := p.call("tools/call", params).ok().text("task", "taskId")
			f := feedOf(p, id)
			q := f.augmented(id)
			p.respond(q.ID, remoteBegan("r"))
			f.followUp("tasks/result", "r")
			return p, id, f, q
		}
		t.Run("cancelled "+on, func(t *testing.T) {
			p, id, f, q := begin(t, takesAll, map[string]any{"arguments": ask("one")})
			p.task("tasks/cancel", id).ok()
			m := f.followUp("tasks/cancel", "r")
			p.respond(m.ID, `"result":`+remoteTask("r", "cancelled"))
			p.respond(q.ID, remoteBegan("late"))
			if on == "result" {
				if m := f.next(); m.Error == nil {
					t.Errorf("%s", m.text)
				}
				return
			}
			f.followUp("tasks/cancel", "late")
			f.silent()
		})
		t.Run("expired "+on, func(t *testing.T) {
			_, _, f, _ := begin(t, takesAll, map[string]any{"arguments": ask("one"), "task": map[string]any{"ttl": 5000}})
			f.followUp("tasks/cancel", "r")
		})
		t.Run("withdrawn "+on, func(t *testing.T) {
			p, id, f, q := begin(t, takesAll, map[string]any{"arguments": map[string]any{"steps": []string{"one", "one"}, "giveUp": 5000}})
			p.respond(f.followUp("tasks/cancel", "r").ID, `"error":{"code":-32602,"message":"it has ended"}`)
			again := f.augmented(id)
			if string(again.ID) == string(q.ID) {
				t.Errorf("%s is used again", q.ID)
			}
			p.respond(again.ID, remoteBegan("r2"))
			p.respond(f.followUp("tasks/result", "r2").ID, relatedTo("r2", note("new")))
			if got := p.outcome(id); got != "given up,new" {
				t.Error(got)
			}
		})
		t.Run("without tasks/cancel "+on, func(t *testing.T) {
			p, id, f, _ := begin(t, strings.Replace(takesAll, `"cancel":{},`, "", 1), map[string]any{"arguments": ask("one")})
			p.task("tasks/cancel", id).ok()
			if on == "get" {
				f.silent()
			} else if m := f.next(); m.Error == nil {
				t.Errorf("%s", m.text)
			}
		})
	}
	t.Run("not a task yet", func(t *testing.T) {
		t.Parallel()
		p := newAsked(t, url, revision, "a", takes(takesAll))
		f := p.get()
		id := p.create("ask", ask("one"))
		q := f.augmented(id)
		p.task("tasks/cancel", id).ok()
		if m := f.next(); m.Method != "notifications/cancelled" || string(m.Params.RequestID) != string(q.ID) {
			t.Errorf("%s", m.text)
		}
		p.respond(q.ID, remoteBegan("r")) // they have crossed
		f.followUp("tasks/cancel", "r")
	})
}

// TestRemoteStrangers: what others say of a client's task changes nothing.
func TestRemoteStrangers(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		logs := &safeBuffer{}
		url := serveAsk(t, setup{bearer: true, options: mcptask.Options{Logger: slog.New(slog.NewTextHandler(logs, nil))}})
		p, other := newAsked(t, url, legacyRevision, "a", takes(takesAll)), newAsked(t, url, legacyRevision, "b", takes(takesAll))
		mine, theirs := p.get(), other.get()
		id := p.create("ask", ask("one"))
		q := mine.augmented(id)
		other.respond(q.ID, remoteBegan("theft"))
		other.task("tasks/get", id).want(http.StatusOK, invalidParams)
		p.respond(q.ID, remoteBegan("r"))
		m := mine.followUp("tasks/result", "r")
		other.respond(m.ID, note("theft"))
		other.respond(m.ID, `"error":{"code":-32602,"message":"none"}`)
		p.respond(m.ID, `"error":{"code":-32602,"message":"none"}`, withHeader("Mcp-Session-Id", newAsked(t, url, legacyRevision, "a", takes(takesAll)).session))
		theirs.silent()
		mine.silent()
		p.until(id, "input_required")
		if text := logs.String(); !strings.Contains(text, "not taken") {
			t.Error(text)
		}
		p.respond(m.ID, note("mine"))
		if got := p.outcome(id); got != "mine" {
			t.Error(got)
		}
		p.respond(m.ID, note("2nd"))
		p.respond(q.ID, remoteBegan("r"))
		theirs.silent()
	})
}

// TestRemoteProcesses: the reply to a follow-up may reach another process than
// the one that has asked.
func TestRemoteProcesses(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		options := mcptask.Options{Store: mcptask.NewMemoryStore()}
		tools := []mcptask.Tools{askTools()}
		here, _ := serveWith(t, setup{options: options, bearer: true, tools: tools})
		there, _ := serveWith(t, setup{options: options, bearer: true, tools: tools})
		p, q := newAsked(t, here, legacyRevision, "a", takes(takesAll)), newAsked(t, there, legacyRevision, "a", takes(takesAll))
		f, g := p.get(), q.get()
		id := p.create("ask", ask("one", "two", "three"))

		one := f.augmented(id)
		q.respond(one.ID, remoteBegan("r1")) // told there, followed there
		q.respond(g.followUp("tasks/result", "r1").ID, relatedTo("r1", note("1")))

		two := f.augmented(id)
		p.respond(two.ID, remoteBegan("r2")) // told here, answered there
		m := f.followUp("tasks/result", "r2")
		q.respond(m.ID, `"error":{"code":-32603,"message":"lost on the way"}`) // which here does not hear of
		q.respond(m.ID, relatedTo("r2", note("2")))
		f.followUp("tasks/cancel", "r2") // here cannot know that it has ended

		three := f.augmented(id)
		p.respond(three.ID, remoteBegan("r3"))
		f.followUp("tasks/result", "r3")
		p.respond(three.ID, note("3"))
		f.followUp("tasks/cancel", "r3")
		if got := p.outcome(id); got != "1,2,3" {
			t.Error(got)
		}
	})
}

// TestManyRemoteQuestions is TestManyQuestions with clients that make tasks of
// what they are asked, drop streams at random, lose replies, and say things
// twice. Every question gets its own answer once, and nothing is left behind.
func TestManyRemoteQuestions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const clients, each = 8, 10
		var answered atomic.Int32
		address, tasks := serveWith(t, setup{bearer: true, tools: []mcptask.Tools{echoTools(&answered)}})
		warm := newPeer(t, address, legacyRevision, "warm")
		warm.call("tools/list", nil).ok()
		end(t, warm)
		check := goroutines(t)

		began := time.Now()
		var drops, created, polled atomic.Int32
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				p := newAsked(t, address, legacyRevision, fmt.Sprint("user", i), takes(takesAll))
				defer func() { end(t, p) }()
				open := map[string]bool{}
				remotes := map[string]string{} // what each of the client's tasks answers
				completed := map[string]bool{}
				// handle does what a client does; false is a dropped stream.
				handle := func(m wireMessage) bool {
					chance := rand.N(10)
					if m.Method != "" && chance < 2 {
						drops.Add(1)
						return false // it has not been read
					}
					again := chance == 2
					say := func(response string) {
						p.respond(m.ID, response)
						if again {
							p.respond(m.ID, response)
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
						say(remoteBegan(id))
					case "tasks/result":
						switch {
						case remotes[m.Params.TaskID] == "":
							t.Errorf("no task of ours: %s", m.text)
						case chance < 6 && !completed[m.Params.TaskID]:
							say(`"error":{"code":-32603,"message":"not yet"}`)
						default:
							say(relatedTo(m.Params.TaskID, answer(remotes[m.Params.TaskID])))
						}
					case "tasks/get":
						polled.Add(1)
						if chance < 6 && !completed[m.Params.TaskID] {
							say(`"result":` + remoteTask(m.Params.TaskID, "working"))
							break
						}
						completed[m.Params.TaskID] = true
						say(`"result":` + remoteTask(m.Params.TaskID, "completed"))
					case "tasks/cancel":
						say(`"result":` + remoteTask(m.Params.TaskID, "cancelled"))
					}
					return true
				}
				for range each {
					open[p.create("echo", nil)] = true
				}
				for stop := time.Now().Add(5 * time.Minute); len(open) > 0 && time.Now().Before(stop); {
					var one string
					for one = range open {
						break
					}
					f := p.get
					if rand.N(3) == 0 {
						f = func() *feed { return p.result(one) }
					}
					stream := f()
					timer := time.NewTimer(time.Duration(100+rand.N(150)) * time.Millisecond)
					for reading := true; reading; {
						select {
						case m, ok := <-stream.messages:
							reading = ok && handle(m)
						case <-timer.C:
							reading = false
						}
					}
					stream.stop()
					if rand.N(12) == 0 { // the client starts anew
						end(t, p)
						p = newAsked(t, address, legacyRevision, p.token, takes(takesAll))
						for id := range open {
							p.task("tasks/get", id).ok()
						}
					}
					for id := range open {
						if r := p.task("tasks/get", id); r.text("status") == "completed" {
							delete(open, id)
						} else if s := r.text("status"); s != "working" && s != "input_required" {
							t.Errorf("%s: %s", id, r.body)
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
