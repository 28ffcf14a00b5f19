package pushtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestQuestionStreams checks on which stream a question arrives.
func TestQuestionStreams(t *testing.T) {
	rules.Covers(t, "C-49", "C-50", "C-52", "C-61", "C-62")
	checkQuestionStreams(t, wiretest.LegacyRevision)
}

func checkQuestionStreams(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	for _, jsonReplies := range []bool{false, true} {
		run := func(name string, test func(t *testing.T, url string, d *wiretest.Driven)) {
			t.Run(fmt.Sprint(name, " json=", jsonReplies), func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) {
					url, d := listening(t, wiretest.Setup{Revision: revision, Bearer: true, HTTP: wiretest.HTTPOptions(jsonReplies)})
					test(t, url, d)
				})
			})
		}
		begin := func(t *testing.T, url string, steps ...string) (*wiretest.Peer, string) {
			p := wiretest.NewAsked(t, url, revision, "a", wiretest.CanAll)
			return p, p.Create("ask", wiretest.Ask(steps...))
		}
		run("tasks/result only", func(t *testing.T, url string, _ *wiretest.Driven) {
			p, id := begin(t, url, "one", "two")
			p.Until(id, "input_required")
			f := p.Result(id)
			for _, step := range []string{"one", "two"} {
				q := f.Question(id)
				if q.Method != "elicitation/create" || q.Params.Message != step+"?" || !strings.Contains(string(q.Params.Schema), `"maxLength":5`) {
					t.Errorf("%s", q.Text)
				}
				p.Respond(q.ID, wiretest.Note(step))
			}
			if last := f.Next(); wiretest.ToolText(last.Result) != "one,two" {
				t.Errorf("%s", last.Text)
			}
		})
		run("the standalone stream only", func(t *testing.T, url string, d *wiretest.Driven) {
			p := wiretest.NewAsked(t, url, revision, "a", wiretest.CanAll)
			f := p.Get()
			id := p.Create("driven", nil)
			d.Say(id, "ask")
			q := f.Question(id)
			p.Until(id, "input_required")
			p.Respond(q.ID, wiretest.Note("yes"))
			p.Until(id, "working")
			f.Silent()
			d.Say(id, "answer")
			if got := p.Outcome(id); got != "yes" {
				t.Error(got)
			}
		})
		run("the standalone stream opened later", func(t *testing.T, url string, _ *wiretest.Driven) {
			p, id := begin(t, url, "one")
			p.Until(id, "input_required")
			p.Respond(p.Get().Question(id).ID, wiretest.Note("late"))
			if got := p.Outcome(id); got != "late" {
				t.Error(got)
			}
		})
		run("both, tasks/result wins", func(t *testing.T, url string, _ *wiretest.Driven) {
			p := wiretest.NewAsked(t, url, revision, "a", wiretest.CanAll)
			get := p.Get()
			id := p.Create("ask", wiretest.Ask("one", "two"))
			first := get.Question(id) // there was no other
			result := p.Result(id)
			result.Silent()
			p.Respond(first.ID, wiretest.Note("1"))
			p.Respond(result.Question(id).ID, wiretest.Note("2"))
			get.Silent()
			if last := result.Next(); wiretest.ToolText(last.Result) != "1,2" {
				t.Errorf("%s", last.Text)
			}
		})
		run("tasks/result as JSON", func(t *testing.T, url string, _ *wiretest.Driven) {
			p := wiretest.NewAsked(t, url, revision, "a", wiretest.CanAll)
			get := p.Get()
			id := p.Create("ask", wiretest.Ask("one"))
			blocked := make(chan *wiretest.Response, 1)
			go func() { blocked <- p.Task("tasks/result", id, wiretest.JSONOnly) }()
			p.Respond(get.Question(id).ID, wiretest.Note("json"))
			if r := <-blocked; wiretest.ToolText(r.Result) != "json" || r.Stream {
				t.Errorf("%s", r.Body)
			}
		})
		run("dropped unanswered", func(t *testing.T, url string, _ *wiretest.Driven) {
			p, id := begin(t, url, "one")
			var ids []string
			for i := range 6 {
				f := p.Get
				if i%2 == 0 {
					f = func() *wiretest.Feed { return p.Result(id) }
				}
				stream := f()
				ids = append(ids, string(stream.Question(id).ID))
				stream.Silent()
				stream.Stop()
			}
			f := p.Get()
			q := f.Question(id)
			for _, got := range ids {
				if got != string(q.ID) {
					t.Errorf("%s before %s", got, q.ID)
				}
			}
			p.Respond(q.ID, wiretest.Note("again"))
			if got := p.Outcome(id); got != "again" {
				t.Error(got)
			}
		})
		run("tasks/result dropped beside a standalone stream", func(t *testing.T, url string, _ *wiretest.Driven) {
			p, id := begin(t, url, "one")
			p.Until(id, "input_required")
			result := p.Result(id)
			q := result.Question(id)
			get := p.Get()
			get.Silent()
			result.Stop()
			if again := get.Question(id); string(again.ID) != string(q.ID) {
				t.Errorf("%s and %s", again.ID, q.ID)
			}
			p.Respond(q.ID, wiretest.Note("moved"))
			if got := p.Outcome(id); got != "moved" {
				t.Error(got)
			}
		})
		run("tasks/result cancelled by the client", func(t *testing.T, url string, _ *wiretest.Driven) {
			p, id := begin(t, url, "one")
			p.Until(id, "input_required")
			f := p.Result(id)
			q := f.Question(id)
			p.Post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, p.IDs.Load()))
			for range f.Messages { // to its end
			}
			if again := p.Result(id).Question(id); string(again.ID) != string(q.ID) {
				t.Errorf("%s", again.Text)
			}
		})
		run("several at once", func(t *testing.T, url string, _ *wiretest.Driven) {
			p := wiretest.NewAsked(t, url, revision, "a", wiretest.CanAll)
			get := p.Get()
			id := p.Create("two_notes", map[string]any{})
			byID := map[string]bool{}
			first, second := get.Question(id), get.Question(id)
			byID[string(first.ID)], byID[string(second.ID)] = true, true
			if len(byID) != 2 {
				t.Errorf("%v", byID)
			}
			p.Respond(second.ID, wiretest.Note("x"))
			p.Until(id, "input_required")
			p.Respond(first.ID, wiretest.Note("x"))
			if got := p.Outcome(id); got != "x and x" {
				t.Error(got)
			}
		})
		run("two tasks at once", func(t *testing.T, url string, _ *wiretest.Driven) {
			p := wiretest.NewAsked(t, url, revision, "a", wiretest.CanAll)
			a, b := p.Create("ask", wiretest.Ask("one")), p.Create("ask", wiretest.Ask("one"))
			p.Until(a, "input_required")
			p.Until(b, "input_required")
			fa, fb := p.Result(a), p.Result(b)
			p.Respond(fa.Question(a).ID, wiretest.Note("a"))
			p.Respond(fb.Question(b).ID, wiretest.Note("b"))
			if got := wiretest.ToolText(fa.Next().Result) + wiretest.ToolText(fb.Next().Result); got != "ab" {
				t.Error(got)
			}
		})
	}
}

// TestQuestionResponses checks which responses are valid, and who may send them.
func TestQuestionResponses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ response, want string }{
		{wiretest.Note("ok"), "ok"},
		{`"result":{"action":"decline"}`, "declined"},
		{`"result":{"action":"cancel"}`, "dismissed"},
		{`"error":{"code":-32601,"message":"Method not found"}`, "cannot ask"},
		{`"error":{"code":-1,"message":"no","data":{"a":[1]}}`, "cannot ask"},
		{wiretest.Note("too long"), "invalid"},
		{`"result":{"action":"accept"}`, "invalid"},
		{`"result":{"action":"accept","content":null}`, "invalid"},
		{`"result":{"action":"accept","content":[]}`, "invalid"},
		{`"result":{"action":"shrug"}`, "invalid"},
		{`"result":{}`, "invalid"},
		{`"result":null`, "invalid"},
		{`"result":"yes"`, "invalid"},
		{`"result":{"action":"accept","content":{"note":"x","Note":"y","more":{"deep":1}}}`, "x"},
	} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprint(c.response, plain), func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) {
					url, _ := listening(t, wiretest.Setup{Bearer: true})
					p := wiretest.NewAsked(t, url, wiretest.LegacyRevision, "a", wiretest.CanAll)
					if plain {
						want := c.want
						if c.response == `"result":"yes"` || strings.HasSuffix(c.response, `"content":[]}`) {
							want = "cannot ask" // the SDK cannot decode it
						}
						f := p.Send("tools/call", map[string]any{"name": "ask", "arguments": wiretest.Ask("one")})
						p.Respond(f.Question("").ID, c.response)
						if got := f.Next(); wiretest.ToolText(got.Result) != want {
							t.Errorf("%s, want %s", got.Text, want)
						}
						return
					}
					id := p.Create("ask", wiretest.Ask("one"))
					p.Respond(p.Get().Question(id).ID, c.response)
					if got := p.Outcome(id); got != c.want {
						t.Errorf("%s, want %s", got, c.want)
					}
				})
			})
		}
	}
	t.Run("their error is not the task's", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			url, _ := listening(t, wiretest.Setup{Bearer: true})
			p := wiretest.NewAsked(t, url, wiretest.LegacyRevision, "a", wiretest.CanAll)
			id := p.Create("ask_and_fail", nil)
			p.Respond(p.Get().Question(id).ID, `"error":{"code":-32601,"message":"Method not found"}`)
			if got := p.Outcome(id); !strings.HasPrefix(got, "isError: ") {
				t.Error(got)
			}
		})
	})
	t.Run("strangers", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			url, d := listening(t, wiretest.Setup{Bearer: true})
			p, other := wiretest.NewAsked(t, url, wiretest.LegacyRevision, "a", wiretest.CanAll), wiretest.NewAsked(t, url, wiretest.LegacyRevision, "b", wiretest.CanAll)
			get := p.Get()
			id := p.Create("driven", nil)
			d.Say(id, "ask")
			q := get.Question(id)
			other.Respond(q.ID, wiretest.Note("theft"))
			p.Respond(json.RawMessage(`"mcptask/`+id+`/unknown"`), wiretest.Note("key"))
			p.Respond(json.RawMessage(`"mcptask/unknown/one"`), wiretest.Note("task"))
			p.Respond(json.RawMessage(`"mcptask/"`), wiretest.Note("none"))
			p.Until(id, "input_required")
			p.Respond(q.ID, wiretest.Note("mine"), wiretest.WithHeader("Mcp-Session-Id", wiretest.NewAsked(t, url, wiretest.LegacyRevision, "a", wiretest.CanAll).Session))
			p.Respond(q.ID, wiretest.Note("2nd"))
			p.Until(id, "working")
			p.Respond(q.ID, wiretest.Note("3rd"))
			d.Say(id, "answer")
			if got := p.Outcome(id); got != "mine" {
				t.Error(got)
			}
			p.Respond(q.ID, wiretest.Note("after"))
		})
	})
}

// TestQuestionTakenBack checks that a question which is no longer open is cancelled.
func TestQuestionTakenBack(t *testing.T) {
	t.Parallel()
	taken := func(t *testing.T, f *wiretest.Feed, id json.RawMessage) {
		t.Helper()
		if m := f.Next(); m.Method != "notifications/cancelled" || string(m.Params.RequestID) != string(id) {
			t.Errorf("%s", m.Text)
		}
	}
	for _, on := range []string{"get", "result"} {
		feedOf := func(p *wiretest.Peer, id string) *wiretest.Feed {
			if on == "get" {
				p.Task("tasks/get", id).OK() // who names the task is asked at once
				return p.Get()
			}
			return p.Result(id)
		}
		t.Run("cancelled "+on, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
				p := wiretest.NewAsked(t, url, wiretest.LegacyRevision, "a", wiretest.CanAll)
				id := p.Create("ask", wiretest.Ask("one"))
				f := feedOf(p, id)
				q := f.Question(id)
				p.Task("tasks/cancel", id).OK()
				taken(t, f, q.ID)
				p.Respond(q.ID, wiretest.Note("late"))
				if on == "result" && f.Next().Error == nil {
					t.Error("a cancelled task has a result")
				}
			})
		})
		t.Run("expired "+on, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
				p := wiretest.NewAsked(t, url, wiretest.LegacyRevision, "a", wiretest.CanAll)
				id := p.Call("tools/call", map[string]any{"name": "ask", "arguments": wiretest.Ask("one"), "task": map[string]any{"ttl": 5000}}).OK().Text("task", "taskId")
				f := feedOf(p, id)
				taken(t, f, f.Question(id).ID)
			})
		})
		t.Run("withdrawn "+on, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
				p := wiretest.NewAsked(t, url, wiretest.LegacyRevision, "a", wiretest.CanAll)
				id := p.Create("ask", map[string]any{"steps": []string{"one", "one"}, "giveUp": 5000})
				f := feedOf(p, id)
				q := f.Question(id)
				taken(t, f, q.ID)
				again := f.Question(id)
				if string(again.ID) == string(q.ID) { // E-42
					t.Errorf("%s is used again", q.ID)
				}
				p.Respond(q.ID, wiretest.Note("old"))
				p.Until(id, "input_required")
				p.Respond(again.ID, wiretest.Note("new"))
				if got := p.Outcome(id); got != "given up,new" {
					t.Error(got)
				}
			})
		})
	}
	t.Run("DELETE while asking", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
			p, watcher := wiretest.NewAsked(t, url, wiretest.LegacyRevision, "a", wiretest.CanAll), wiretest.NewAsked(t, url, wiretest.LegacyRevision, "a", wiretest.CanAll)
			get := p.Get()
			id := p.Create("ask", wiretest.Ask("one"))
			q := get.Question(id)
			other := watcher.Get()
			watcher.Task("tasks/get", id).OK() // now it knows
			other.Silent()
			wiretest.End(t, p)
			for range get.Messages {
			}
			if again := other.Question(id); string(again.ID) != string(q.ID) {
				t.Errorf("%s", again.Text)
			}
			wiretest.End(t, watcher)
			last := wiretest.NewAsked(t, url, wiretest.LegacyRevision, "a", wiretest.CanAll)
			f := last.Get()
			f.Silent() // nobody has shown it the task
			last.Task("tasks/get", id).OK()
			last.Respond(f.Question(id).ID, wiretest.Note("third"))
			if got := last.Outcome(id); got != "third" {
				t.Error(got)
			}
		})
	})
	t.Run("a new session while the old one is open", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
			p, next := wiretest.NewAsked(t, url, wiretest.LegacyRevision, "a", wiretest.CanAll), wiretest.NewAsked(t, url, wiretest.LegacyRevision, "a", wiretest.CanAll)
			id := p.Create("ask", wiretest.Ask("one"))
			p.Until(id, "input_required") // by a client that has vanished
			mute := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a")
			muted := mute.Get()
			mute.Until(id, "input_required")
			muted.Silent() // it has not declared that it can answer
			f := next.Get()
			next.Until(id, "input_required")
			next.Respond(f.Question(id).ID, wiretest.Note("ok"))
			if got := next.Outcome(id); got != "ok" {
				t.Error(got)
			}
		})
	})
}

// TestQuestionAnonymous checks that for anonymous callers the task's ID is the key.
func TestQuestionAnonymous(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := wiretest.ServeAsk(t, wiretest.Setup{})
		p, other := wiretest.NewAsked(t, url, wiretest.LegacyRevision, "", wiretest.CanAll), wiretest.NewAsked(t, url, wiretest.LegacyRevision, "", wiretest.CanAll)
		stranger := other.Get()
		id := p.Create("ask", wiretest.Ask("one"))
		p.Until(id, "input_required")
		stranger.Silent()
		f := p.Get()
		q := f.Question(id)
		f.Stop()
		stranger.Silent()
		p.Respond(q.ID, wiretest.Note("mine"))
		if got := p.Outcome(id); got != "mine" {
			t.Error(got)
		}
	})
}

// TestQuestionMute checks a client that cannot be asked.
func TestQuestionMute(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			for tool, declared := range map[string]string{
				"ask": `{"elicitation":{"url":{}},"sampling":{}}`, "url": `{"elicitation":{},"sampling":{}}`,
				"sample": `{"elicitation":{},"roots":{}}`, "roots": `{"elicitation":{},"sampling":{}}`,
			} {
				p := wiretest.NewAsked(t, url, revision, "a", declared)
				if got := p.Outcome(p.Create(tool, wiretest.Ask("one"))); got != "cannot ask" {
					t.Errorf("%s %s: %s", revision, tool, got)
				}
				params := map[string]any{"name": tool, "arguments": wiretest.Ask("one")}
				if revision == wiretest.ModernRevision {
					p.Caps = declared // without tasks: a plain call
				}
				if got := wiretest.ToolText(p.Call("tools/call", params).OK().Result); got != "cannot ask" {
					t.Errorf("%s %s plainly: %s", revision, tool, got)
				}
			}
		}
		// T-38: who reads the task can do less than who made it.
		p := wiretest.NewAsked(t, url, wiretest.ModernRevision, "a", wiretest.CanAll)
		id := p.Create("ask", wiretest.Ask("one"))
		if r := p.Until(id, "input_required"); len(r.Get("inputRequests").(map[string]any)) != 1 {
			t.Errorf("%s", r.Body)
		}
		p.Caps = wiretest.TasksExtension
		if r := p.Until(id, "input_required"); len(r.Get("inputRequests").(map[string]any)) != 0 {
			t.Errorf("%s", r.Body)
		}
	})
}
