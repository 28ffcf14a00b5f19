package gosdk_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// On which stream a question comes.
func TestQuestionStreams(t *testing.T) {
	rules.Covers(t, "C-49", "C-50", "C-52", "C-61", "C-62")
	checkQuestionStreams(t, legacyRevision)
}

func TestCandidateQuestionStreams(t *testing.T) {
	rules.Covers(t, "B-46", "B-47", "B-49", "B-56", "B-57")
	checkQuestionStreams(t, candidateRevision)
}

func checkQuestionStreams(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	for _, jsonReplies := range []bool{false, true} {
		run := func(name string, test func(t *testing.T, url string, d *driven)) {
			t.Run(fmt.Sprint(name, " json=", jsonReplies), func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) {
					url, d := listening(t, setup{revision: revision, bearer: true, http: httpOptions(jsonReplies)})
					test(t, url, d)
				})
			})
		}
		begin := func(t *testing.T, url string, steps ...string) (*peer, string) {
			p := newAsked(t, url, revision, "a", canAll)
			return p, p.create("ask", ask(steps...))
		}
		run("tasks/result only", func(t *testing.T, url string, _ *driven) {
			p, id := begin(t, url, "one", "two")
			p.until(id, "input_required")
			f := p.result(id)
			for _, step := range []string{"one", "two"} {
				q := f.question(id)
				if q.Method != "elicitation/create" || q.Params.Message != step+"?" || !strings.Contains(string(q.Params.Schema), `"maxLength":5`) {
					t.Errorf("%s", q.text)
				}
				p.respond(q.ID, note(step))
			}
			if last := f.next(); toolText(last.Result) != "one,two" {
				t.Errorf("%s", last.text)
			}
		})
		run("the standalone stream only", func(t *testing.T, url string, d *driven) {
			p := newAsked(t, url, revision, "a", canAll)
			f := p.get()
			id := p.create("driven", nil)
			d.say(id, "ask")
			q := f.question(id)
			p.until(id, "input_required")
			p.respond(q.ID, note("yes"))
			p.until(id, "working")
			f.silent()
			d.say(id, "answer")
			if got := p.outcome(id); got != "yes" {
				t.Error(got)
			}
		})
		run("the standalone stream opened later", func(t *testing.T, url string, _ *driven) {
			p, id := begin(t, url, "one")
			p.until(id, "input_required")
			p.respond(p.get().question(id).ID, note("late"))
			if got := p.outcome(id); got != "late" {
				t.Error(got)
			}
		})
		run("both, tasks/result wins", func(t *testing.T, url string, _ *driven) {
			p := newAsked(t, url, revision, "a", canAll)
			get := p.get()
			id := p.create("ask", ask("one", "two"))
			first := get.question(id) // there was no other
			result := p.result(id)
			result.silent()
			p.respond(first.ID, note("1"))
			p.respond(result.question(id).ID, note("2"))
			get.silent()
			if last := result.next(); toolText(last.Result) != "1,2" {
				t.Errorf("%s", last.text)
			}
		})
		run("tasks/result as JSON", func(t *testing.T, url string, _ *driven) {
			p := newAsked(t, url, revision, "a", canAll)
			get := p.get()
			id := p.create("ask", ask("one"))
			blocked := make(chan *response, 1)
			go func() { blocked <- p.task("tasks/result", id, jsonOnly) }()
			p.respond(get.question(id).ID, note("json"))
			if r := <-blocked; toolText(r.Result) != "json" || r.stream {
				t.Errorf("%s", r.body)
			}
		})
		run("dropped unanswered", func(t *testing.T, url string, _ *driven) {
			p, id := begin(t, url, "one")
			var ids []string
			for i := range 6 {
				f := p.get
				if i%2 == 0 {
					f = func() *feed { return p.result(id) }
				}
				stream := f()
				ids = append(ids, string(stream.question(id).ID))
				stream.silent()
				stream.stop()
			}
			f := p.get()
			q := f.question(id)
			for _, got := range ids {
				if got != string(q.ID) {
					t.Errorf("%s before %s", got, q.ID)
				}
			}
			p.respond(q.ID, note("again"))
			if got := p.outcome(id); got != "again" {
				t.Error(got)
			}
		})
		run("tasks/result dropped beside a standalone stream", func(t *testing.T, url string, _ *driven) {
			p, id := begin(t, url, "one")
			p.until(id, "input_required")
			result := p.result(id)
			q := result.question(id)
			get := p.get()
			get.silent()
			result.stop()
			if again := get.question(id); string(again.ID) != string(q.ID) {
				t.Errorf("%s and %s", again.ID, q.ID)
			}
			p.respond(q.ID, note("moved"))
			if got := p.outcome(id); got != "moved" {
				t.Error(got)
			}
		})
		run("tasks/result cancelled by the client", func(t *testing.T, url string, _ *driven) {
			p, id := begin(t, url, "one")
			p.until(id, "input_required")
			f := p.result(id)
			q := f.question(id)
			p.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, p.ids.Load()))
			for range f.messages { // to its end
			}
			if again := p.result(id).question(id); string(again.ID) != string(q.ID) {
				t.Errorf("%s", again.text)
			}
		})
		run("several at once", func(t *testing.T, url string, _ *driven) {
			p := newAsked(t, url, revision, "a", canAll)
			get := p.get()
			id := p.create("two_notes", map[string]any{})
			byID := map[string]bool{}
			first, second := get.question(id), get.question(id)
			byID[string(first.ID)], byID[string(second.ID)] = true, true
			if len(byID) != 2 {
				t.Errorf("%v", byID)
			}
			p.respond(second.ID, note("x"))
			p.until(id, "input_required")
			p.respond(first.ID, note("x"))
			if got := p.outcome(id); got != "x and x" {
				t.Error(got)
			}
		})
		run("two tasks at once", func(t *testing.T, url string, _ *driven) {
			p := newAsked(t, url, revision, "a", canAll)
			a, b := p.create("ask", ask("one")), p.create("ask", ask("one"))
			p.until(a, "input_required")
			p.until(b, "input_required")
			fa, fb := p.result(a), p.result(b)
			p.respond(fa.question(a).ID, note("a"))
			p.respond(fb.question(b).ID, note("b"))
			if got := toolText(fa.next().Result) + toolText(fb.next().Result); got != "ab" {
				t.Error(got)
			}
		})
	}
}

// What a response can be, and who may give it.
func TestQuestionResponses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ response, want string }{
		{note("ok"), "ok"},
		{`"result":{"action":"decline"}`, "declined"},
		{`"result":{"action":"cancel"}`, "dismissed"},
		{`"error":{"code":-32601,"message":"Method not found"}`, "cannot ask"},
		{`"error":{"code":-1,"message":"no","data":{"a":[1]}}`, "cannot ask"},
		{note("too long"), "invalid"},
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
					url, _ := listening(t, setup{bearer: true})
					p := newAsked(t, url, legacyRevision, "a", canAll)
					if plain {
						want := c.want
						if c.response == `"result":"yes"` || strings.HasSuffix(c.response, `"content":[]}`) {
							want = "cannot ask" // the SDK cannot decode it
						}
						f := p.send("tools/call", map[string]any{"name": "ask", "arguments": ask("one")})
						p.respond(f.question("").ID, c.response)
						if got := f.next(); toolText(got.Result) != want {
							t.Errorf("%s, want %s", got.text, want)
						}
						return
					}
					id := p.create("ask", ask("one"))
					p.respond(p.get().question(id).ID, c.response)
					if got := p.outcome(id); got != c.want {
						t.Errorf("%s, want %s", got, c.want)
					}
				})
			})
		}
	}
	t.Run("their error is not the task's", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			url, _ := listening(t, setup{bearer: true})
			p := newAsked(t, url, legacyRevision, "a", canAll)
			id := p.create("ask_and_fail", nil)
			p.respond(p.get().question(id).ID, `"error":{"code":-32601,"message":"Method not found"}`)
			if got := p.outcome(id); !strings.HasPrefix(got, "isError: ") {
				t.Error(got)
			}
		})
	})
	t.Run("strangers", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			url, d := listening(t, setup{bearer: true})
			p, other := newAsked(t, url, legacyRevision, "a", canAll), newAsked(t, url, legacyRevision, "b", canAll)
			get := p.get()
			id := p.create("driven", nil)
			d.say(id, "ask")
			q := get.question(id)
			other.respond(q.ID, note("theft"))
			p.respond(json.RawMessage(`"mcptask/`+id+`/unknown"`), note("key"))
			p.respond(json.RawMessage(`"mcptask/unknown/one"`), note("task"))
			p.respond(json.RawMessage(`"mcptask/"`), note("none"))
			p.until(id, "input_required")
			p.respond(q.ID, note("mine"), withHeader("Mcp-Session-Id", newAsked(t, url, legacyRevision, "a", canAll).session))
			p.respond(q.ID, note("2nd"))
			p.until(id, "working")
			p.respond(q.ID, note("3rd"))
			d.say(id, "answer")
			if got := p.outcome(id); got != "mine" {
				t.Error(got)
			}
			p.respond(q.ID, note("after"))
		})
	})
}

// A question that is no longer open is taken back.
func TestQuestionTakenBack(t *testing.T) {
	t.Parallel()
	taken := func(t *testing.T, f *feed, id json.RawMessage) {
		t.Helper()
		if m := f.next(); m.Method != "notifications/cancelled" || string(m.Params.RequestID) != string(id) {
			t.Errorf("%s", m.text)
		}
	}
	for _, on := range []string{"get", "result"} {
		feedOf := func(p *peer, id string) *feed {
			if on == "get" {
				p.task("tasks/get", id).ok() // who names the task is asked at once
				return p.get()
			}
			return p.result(id)
		}
		t.Run("cancelled "+on, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url := serveAsk(t, setup{bearer: true})
				p := newAsked(t, url, legacyRevision, "a", canAll)
				id := p.create("ask", ask("one"))
				f := feedOf(p, id)
				q := f.question(id)
				p.task("tasks/cancel", id).ok()
				taken(t, f, q.ID)
				p.respond(q.ID, note("late"))
				if on == "result" && f.next().Error == nil {
					t.Error("a cancelled task has a result")
				}
			})
		})
		t.Run("expired "+on, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url := serveAsk(t, setup{bearer: true})
				p := newAsked(t, url, legacyRevision, "a", canAll)
				id := p.call("tools/call", map[string]any{"name": "ask", "arguments": ask("one"), "task": map[string]any{"ttl": 5000}}).ok().text("task", "taskId")
				f := feedOf(p, id)
				taken(t, f, f.question(id).ID)
			})
		})
		t.Run("withdrawn "+on, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url := serveAsk(t, setup{bearer: true})
				p := newAsked(t, url, legacyRevision, "a", canAll)
				id := p.create("ask", map[string]any{"steps": []string{"one", "one"}, "giveUp": 5000})
				f := feedOf(p, id)
				q := f.question(id)
				taken(t, f, q.ID)
				again := f.question(id)
				if string(again.ID) == string(q.ID) { // E-42
					t.Errorf("%s is used again", q.ID)
				}
				p.respond(q.ID, note("old"))
				p.until(id, "input_required")
				p.respond(again.ID, note("new"))
				if got := p.outcome(id); got != "given up,new" {
					t.Error(got)
				}
			})
		})
	}
	t.Run("DELETE while asking", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url := serveAsk(t, setup{bearer: true})
			p, watcher := newAsked(t, url, legacyRevision, "a", canAll), newAsked(t, url, legacyRevision, "a", canAll)
			get := p.get()
			id := p.create("ask", ask("one"))
			q := get.question(id)
			other := watcher.get()
			watcher.task("tasks/get", id).ok() // now it knows
			other.silent()
			end(t, p)
			for range get.messages {
			}
			if again := other.question(id); string(again.ID) != string(q.ID) {
				t.Errorf("%s", again.text)
			}
			end(t, watcher)
			last := newAsked(t, url, legacyRevision, "a", canAll)
			f := last.get()
			f.silent() // nobody has shown it the task
			last.task("tasks/get", id).ok()
			last.respond(f.question(id).ID, note("third"))
			if got := last.outcome(id); got != "third" {
				t.Error(got)
			}
		})
	})
	t.Run("a new session while the old one is open", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url := serveAsk(t, setup{bearer: true})
			p, next := newAsked(t, url, legacyRevision, "a", canAll), newAsked(t, url, legacyRevision, "a", canAll)
			id := p.create("ask", ask("one"))
			p.until(id, "input_required") // by a client that has vanished
			mute := newPeer(t, url, legacyRevision, "a")
			muted := mute.get()
			mute.until(id, "input_required")
			muted.silent() // it has not declared that it can answer
			f := next.get()
			next.until(id, "input_required")
			next.respond(f.question(id).ID, note("ok"))
			if got := next.outcome(id); got != "ok" {
				t.Error(got)
			}
		})
	})
}

// Anonymous callers: the ID is the key.
func TestQuestionAnonymous(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := serveAsk(t, setup{})
		p, other := newAsked(t, url, legacyRevision, "", canAll), newAsked(t, url, legacyRevision, "", canAll)
		stranger := other.get()
		id := p.create("ask", ask("one"))
		p.until(id, "input_required")
		stranger.silent()
		f := p.get()
		q := f.question(id)
		f.stop()
		stranger.silent()
		p.respond(q.ID, note("mine"))
		if got := p.outcome(id); got != "mine" {
			t.Error(got)
		}
	})
}

// A client that cannot be asked.
func TestQuestionMute(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := serveAsk(t, setup{bearer: true})
		for _, revision := range []string{legacyRevision, modernRevision} {
			for tool, declared := range map[string]string{
				"ask": `{"elicitation":{"url":{}},"sampling":{}}`, "url": `{"elicitation":{},"sampling":{}}`,
				"sample": `{"elicitation":{},"roots":{}}`, "roots": `{"elicitation":{},"sampling":{}}`,
			} {
				p := newAsked(t, url, revision, "a", declared)
				if got := p.outcome(p.create(tool, ask("one"))); got != "cannot ask" {
					t.Errorf("%s %s: %s", revision, tool, got)
				}
				params := map[string]any{"name": tool, "arguments": ask("one")}
				if revision == modernRevision {
					p.caps = declared // without tasks: a plain call
				}
				if got := toolText(p.call("tools/call", params).ok().Result); got != "cannot ask" {
					t.Errorf("%s %s plainly: %s", revision, tool, got)
				}
			}
		}
		// T-38: who reads the task can do less than who made it.
		p := newAsked(t, url, modernRevision, "a", canAll)
		id := p.create("ask", ask("one"))
		if r := p.until(id, "input_required"); len(r.get("inputRequests").(map[string]any)) != 1 {
			t.Errorf("%s", r.body)
		}
		p.caps = tasksExtension
		if r := p.until(id, "input_required"); len(r.get("inputRequests").(map[string]any)) != 0 {
			t.Errorf("%s", r.body)
		}
	})
}

func httpOptions(jsonReplies bool) *mcp.StreamableHTTPOptions {
	return &mcp.StreamableHTTPOptions{JSONResponse: jsonReplies}
}
