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
	// begin returns a task that has asked its first question.
	begin := func(p *wiretest.Peer, steps ...string) (id string) {
		id = p.Create("ask", wiretest.AskArguments(steps...))
		p.Until(id, "input_required")
		return id
	}
	eachReplyForm(t, revision, wiretest.AllCapabilities, func(run func(name string, test streamTest)) {
		run("tasks/result only", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			id := begin(p, "one", "two")
			f := p.Result(id)
			for _, step := range []string{"one", "two"} {
				q := f.NextQuestion(id)
				if q.Method != "elicitation/create" || q.Params.Message != step+"?" || !strings.Contains(string(q.Params.Schema), `"maxLength":5`) {
					t.Errorf("%s", q.Text)
				}
				p.Respond(q.ID, wiretest.AcceptNote(step))
			}
			wantResult(f, "one,two")
		})
		run("the standalone stream only", func(t *testing.T, p *wiretest.Peer, d *wiretest.Driven) {
			f := p.OpenGet()
			id := p.Create("driven", nil)
			d.Tell(id, "ask")
			q := f.NextQuestion(id)
			p.Until(id, "input_required")
			p.Respond(q.ID, wiretest.AcceptNote("yes"))
			p.Until(id, "working")
			f.WantSilence()
			d.Tell(id, "answer")
			wantText(p, id, "yes")
		})
		run("the standalone stream opened later", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			id := begin(p, "one")
			p.Respond(p.OpenGet().NextQuestion(id).ID, wiretest.AcceptNote("late"))
			wantText(p, id, "late")
		})
		run("both, tasks/result wins", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			get := p.OpenGet()
			id := p.Create("ask", wiretest.AskArguments("one", "two"))
			first := get.NextQuestion(id) // the client had no other stream
			result := p.Result(id)
			result.WantSilence()
			p.Respond(first.ID, wiretest.AcceptNote("1"))
			p.Respond(result.NextQuestion(id).ID, wiretest.AcceptNote("2"))
			get.WantSilence()
			wantResult(result, "1,2")
		})
		run("tasks/result as JSON", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			get := p.OpenGet()
			id := p.Create("ask", wiretest.AskArguments("one"))
			blocked := make(chan *wiretest.Response, 1)
			go func() { blocked <- p.Task("tasks/result", id, wiretest.JSONOnly) }()
			p.Respond(get.NextQuestion(id).ID, wiretest.AcceptNote("json"))
			if r := <-blocked; wiretest.ToolText(r.Result) != "json" || r.Stream {
				t.Errorf("%s", r.Body)
			}
		})
		run("dropped unanswered", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			id := begin(p, "one")
			result := func() *wiretest.Feed { return p.Result(id) }
			f := result()
			q := f.NextQuestion(id)
			for _, open := range []func() *wiretest.Feed{p.OpenGet, result, p.OpenGet, result, p.OpenGet} {
				f.WantSilence()
				f.Stop()
				f = open()
				wantAgain(t, f.NextQuestion(id), q)
			}
			p.Respond(q.ID, wiretest.AcceptNote("again"))
			wantText(p, id, "again")
		})
		run("tasks/result dropped beside a standalone stream", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			id := begin(p, "one")
			result := p.Result(id)
			q := result.NextQuestion(id)
			get := p.OpenGet()
			get.WantSilence()
			result.Stop()
			wantAgain(t, get.NextQuestion(id), q)
			p.Respond(q.ID, wiretest.AcceptNote("moved"))
			wantText(p, id, "moved")
		})
		run("tasks/result cancelled by the client", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			id := begin(p, "one")
			f := p.Result(id)
			q := f.NextQuestion(id)
			p.Post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, p.IDs.Load()))
			for range f.Messages { // until the task ends
			}
			wantAgain(t, p.Result(id).NextQuestion(id), q)
		})
		run("several at once", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			get := p.OpenGet()
			id := p.Create("two_notes", map[string]any{})
			first, second := get.NextQuestion(id), get.NextQuestion(id)
			if string(first.ID) == string(second.ID) {
				t.Errorf("%s is used twice", first.ID)
			}
			p.Respond(second.ID, wiretest.AcceptNote("x"))
			p.Until(id, "input_required")
			p.Respond(first.ID, wiretest.AcceptNote("x"))
			wantText(p, id, "x and x")
		})
		run("two tasks at once", func(t *testing.T, p *wiretest.Peer, _ *wiretest.Driven) {
			a, b := begin(p, "one"), begin(p, "one")
			fa, fb := p.Result(a), p.Result(b)
			p.Respond(fa.NextQuestion(a).ID, wiretest.AcceptNote("a"))
			p.Respond(fb.NextQuestion(b).ID, wiretest.AcceptNote("b"))
			if got := wiretest.ToolText(fa.Next().Result) + wiretest.ToolText(fb.Next().Result); got != "ab" {
				t.Error(got)
			}
		})
	})
}

// TestQuestionResponses checks which responses are valid, and who may send them.
func TestQuestionResponses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ response, want string }{
		{wiretest.AcceptNote("ok"), "ok"},
		{`"result":{"action":"decline"}`, "declined"},
		{`"result":{"action":"cancel"}`, "dismissed"},
		{`"error":{"code":-32601,"message":"Method not found"}`, "cannot ask"},
		{`"error":{"code":-1,"message":"no","data":{"a":[1]}}`, "declined"},
		{wiretest.AcceptNote("too long"), "invalid"},
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
			inBubble(t, fmt.Sprint(c.response, plain), func(t *testing.T) {
				p := askedPeer(t, wiretest.ServeAsk(t, wiretest.Setup{Bearer: true}))
				if plain {
					f := p.Send("tools/call", map[string]any{"name": "ask", "arguments": wiretest.AskArguments("one")})
					p.Respond(f.NextQuestion("").ID, c.response)
					wantResult(f, c.want)
					return
				}
				id := p.Create("ask", wiretest.AskArguments("one"))
				p.Respond(p.OpenGet().NextQuestion(id).ID, c.response)
				wantText(p, id, c.want)
			})
		}
	}
	inBubble(t, "their error is not the task's", func(t *testing.T) {
		p := askedPeer(t, wiretest.ServeAsk(t, wiretest.Setup{Bearer: true}))
		id := p.Create("ask_and_fail", nil)
		p.Respond(p.OpenGet().NextQuestion(id).ID, `"error":{"code":-32601,"message":"Method not found"}`)
		if got := p.TaskText(id); !strings.HasPrefix(got, "isError: ") {
			t.Error(got)
		}
	})
	bubble.Run(t, "strangers", func(t *testing.T) {
		url, d := listening(t, wiretest.Setup{Bearer: true})
		p, other := askedPeer(t, url), wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "b", wiretest.AllCapabilities)
		get := p.OpenGet()
		id := p.Create("driven", nil)
		d.Tell(id, "ask")
		q := get.NextQuestion(id)
		other.Respond(q.ID, wiretest.AcceptNote("theft"))
		p.Respond(json.RawMessage(`"mcptask/`+id+`/unknown"`), wiretest.AcceptNote("key"))
		p.Respond(json.RawMessage(`"mcptask/unknown/one"`), wiretest.AcceptNote("task"))
		p.Respond(json.RawMessage(`"mcptask/"`), wiretest.AcceptNote("none"))
		p.Until(id, "input_required")
		p.Respond(q.ID, wiretest.AcceptNote("mine"), wiretest.WithHeader("Mcp-Session-Id", askedPeer(t, url).Session))
		p.Respond(q.ID, wiretest.AcceptNote("2nd"))
		p.Until(id, "working")
		p.Respond(q.ID, wiretest.AcceptNote("3rd"))
		d.Tell(id, "answer")
		wantText(p, id, "mine")
		p.Respond(q.ID, wiretest.AcceptNote("after"))
	})
}

// TestQuestionTakenBack checks that a question which is no longer open is cancelled.
func TestQuestionTakenBack(t *testing.T) {
	t.Parallel()
	checkTakenBack(t, wiretest.LegacyRevision, false)
}

// TestRemoteTakenBack checks that a client's task that is no longer needed is cancelled.
func TestRemoteTakenBack(t *testing.T) {
	rules.Covers(t, "C-73", "C-74", "C-80")
	t.Parallel()
	checkTakenBack(t, wiretest.LegacyRevision, true)
	checkRemoteCancels(t, wiretest.LegacyRevision)
}

// checkTakenBack asks a client that answers, or one that keeps the question as its task r.
func checkTakenBack(t *testing.T, revision string, keeps bool) {
	t.Helper()
	for _, on := range []string{"get", "result"} {
		begin := func(t *testing.T, tool string, arguments map[string]any) (p *wiretest.Peer, id string, f *wiretest.Feed, q wiretest.WireMessage) {
			t.Helper()
			url := wiretest.ServeAsk(t, wiretest.Setup{Revision: revision, Bearer: true})
			capabilities := wiretest.AllCapabilities
			if keeps {
				capabilities = wiretest.TaskCapabilities(wiretest.AllTaskCapabilities)
			}
			p = wiretest.NewAskedPeer(t, url, revision, "a", capabilities)
			id = p.Create(tool, arguments)
			if on == "get" {
				p.Task("tasks/get", id).OK() // a client that names the task is asked at once
				f = p.OpenGet()
			} else {
				f = p.Result(id)
			}
			q = f.NextQuestion(id)
			if (q.Params.Task != nil) != keeps {
				t.Fatalf("a task is not asked for as declared: %s", q.Text)
			}
			if keeps {
				p.Respond(q.ID, wiretest.RemoteTaskCreated("r"))
				f.NextFollowUp("tasks/result", "r")
			}
			return p, id, f, q
		}
		nextCancellation := func(f *wiretest.Feed, q wiretest.WireMessage) wiretest.WireMessage {
			f.T.Helper()
			if keeps {
				return f.NextFollowUp("tasks/cancel", "r")
			}
			return f.NextCancellation(q)
		}
		inBubble(t, "cancelled "+on, func(t *testing.T) {
			p, id, f, q := begin(t, "ask", wiretest.AskArguments("one"))
			p.Task("tasks/cancel", id).OK()
			m := nextCancellation(f, q)
			if keeps {
				p.Respond(m.ID, `"result":`+wiretest.RemoteTask("r", "cancelled"))
				p.Respond(q.ID, wiretest.RemoteTaskCreated("late"))
			} else {
				p.Respond(q.ID, wiretest.AcceptNote("late"))
			}
			switch {
			case on == "result":
				if m := f.Next(); m.Error == nil {
					t.Errorf("a cancelled task has a result: %s", m.Text)
				}
			case keeps:
				f.NextFollowUp("tasks/cancel", "late")
				f.WantSilence()
			}
		})
		inBubble(t, "expired "+on, func(t *testing.T) {
			_, _, f, q := begin(t, "ask_briefly", wiretest.AskArguments("one"))
			nextCancellation(f, q)
		})
		inBubble(t, "withdrawn "+on, func(t *testing.T) {
			p, id, f, q := begin(t, "ask", map[string]any{"steps": []string{"one", "one"}, "giveUp": 5000})
			m := nextCancellation(f, q)
			if keeps {
				p.Respond(m.ID, `"error":{"code":-32602,"message":"it has ended"}`)
			}
			again := f.NextQuestion(id)
			if string(again.ID) == string(q.ID) { // E-42
				t.Errorf("%s is used again", q.ID)
			}
			if keeps {
				p.Respond(again.ID, wiretest.RemoteTaskCreated("r2"))
				p.Respond(f.NextFollowUp("tasks/result", "r2").ID, wiretest.WithRelatedTask("r2", wiretest.AcceptNote("new")))
			} else {
				p.Respond(q.ID, wiretest.AcceptNote("old"))
				p.Until(id, "input_required")
				p.Respond(again.ID, wiretest.AcceptNote("new"))
			}
			wantText(p, id, "given up,new")
		})
	}
}

// checkRemoteCancels checks a client without tasks/cancel, and one that has not yet kept the
// question.
func checkRemoteCancels(t *testing.T, revision string) {
	t.Helper()
	begin := func(t *testing.T, tasks string) (p *wiretest.Peer, id string, f *wiretest.Feed, q wiretest.WireMessage) {
		t.Helper()
		url := wiretest.ServeAsk(t, wiretest.Setup{Revision: revision, Bearer: true})
		p = wiretest.NewAskedPeer(t, url, revision, "a", wiretest.TaskCapabilities(tasks))
		f = p.OpenGet()
		id = p.Create("ask", wiretest.AskArguments("one"))
		return p, id, f, f.NextTaskQuestion(id)
	}
	inBubble(t, "without tasks/cancel", func(t *testing.T) {
		p, id, f, q := begin(t, strings.Replace(wiretest.AllTaskCapabilities, `"cancel":{},`, "", 1))
		p.Respond(q.ID, wiretest.RemoteTaskCreated("r"))
		f.NextFollowUp("tasks/result", "r")
		p.Task("tasks/cancel", id).OK()
		f.WantSilence()
	})
	inBubble(t, "not a task yet", func(t *testing.T) {
		p, id, f, q := begin(t, wiretest.AllTaskCapabilities)
		p.Task("tasks/cancel", id).OK()
		f.NextCancellation(q)
		p.Respond(q.ID, wiretest.RemoteTaskCreated("r")) // the messages have crossed
		f.NextFollowUp("tasks/cancel", "r")
	})
}

// TestQuestionMovesToSessions checks that a question moves to another session that knows its task.
func TestQuestionMovesToSessions(t *testing.T) {
	t.Parallel()
	inBubble(t, "DELETE while asking", func(t *testing.T) {
		url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
		p, watcher := askedPeer(t, url), askedPeer(t, url)
		get := p.OpenGet()
		id := p.Create("ask", wiretest.AskArguments("one"))
		q := get.NextQuestion(id)
		other := watcher.OpenGet()
		watcher.Task("tasks/get", id).OK() // now the session knows the task
		other.WantSilence()
		wiretest.ClosePeer(t, p)
		for range get.Messages {
		}
		wantAgain(t, other.NextQuestion(id), q)
		wiretest.ClosePeer(t, watcher)
		last := askedPeer(t, url)
		f := last.OpenGet()
		f.WantSilence() // the session does not know the task
		last.Task("tasks/get", id).OK()
		last.Respond(f.NextQuestion(id).ID, wiretest.AcceptNote("third"))
		wantText(last, id, "third")
	})
	inBubble(t, "a new session while the old one is open", func(t *testing.T) {
		url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
		p, next := askedPeer(t, url), askedPeer(t, url)
		id := p.Create("ask", wiretest.AskArguments("one"))
		p.Until(id, "input_required") // by a client that has vanished
		mute := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a")
		muted := mute.OpenGet()
		mute.Until(id, "input_required")
		muted.WantSilence() // it has not declared that it can answer
		f := next.OpenGet()
		next.Until(id, "input_required")
		next.Respond(f.NextQuestion(id).ID, wiretest.AcceptNote("ok"))
		wantText(next, id, "ok")
	})
}

// TestQuestionAnonymous checks that for anonymous callers the task's ID is the key.
func TestQuestionAnonymous(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := wiretest.ServeAsk(t, wiretest.Setup{})
		p, other := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "", wiretest.AllCapabilities), wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "", wiretest.AllCapabilities)
		stranger := other.OpenGet()
		id := p.Create("ask", wiretest.AskArguments("one"))
		p.Until(id, "input_required")
		stranger.WantSilence()
		f := p.OpenGet()
		q := f.NextQuestion(id)
		f.Stop()
		stranger.WantSilence()
		p.Respond(q.ID, wiretest.AcceptNote("mine"))
		wantText(p, id, "mine")
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
				p := wiretest.NewAskedPeer(t, url, revision, "a", declared)
				if got := p.TaskText(p.Create(tool, wiretest.AskArguments("one"))); got != "cannot ask" {
					t.Errorf("%s %s: %s", revision, tool, got)
				}
				params := map[string]any{"name": tool, "arguments": wiretest.AskArguments("one")}
				if revision == wiretest.ModernRevision {
					p.Caps = declared // without tasks: a plain call
				}
				if got := wiretest.ToolText(p.Call("tools/call", params).OK().Result); got != "cannot ask" {
					t.Errorf("%s %s plainly: %s", revision, tool, got)
				}
			}
		}
		// T-38: a client that reads the task can do less than the one that created it.
		p := wiretest.NewAskedPeer(t, url, wiretest.ModernRevision, "a", wiretest.AllCapabilities)
		id := p.Create("ask", wiretest.AskArguments("one"))
		if r := p.Until(id, "input_required"); len(r.Get("inputRequests").(map[string]any)) != 1 {
			t.Errorf("%s", r.Body)
		}
		p.Caps = wiretest.TasksExtension
		p.Task("tasks/get", id).WantMembers(`{"status":"working","statusMessage":"one?","inputRequests":null}`)
	})
}
