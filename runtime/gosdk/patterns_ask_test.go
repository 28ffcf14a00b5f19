package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// serveGuide starts a server of tools that ask, which speaks the guide's tasks
// beside the released revisions.
func serveGuide(t testing.TB, s setup) (url string) {
	t.Helper()
	ending := mcptask.NewTool(mcptask.ToolSpec{Name: "ending", InputSchema: openObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
		func(ctx context.Context, task *mcptask.Task, in noteInput) (string, error) {
			_, err := mcptask.Ask[noteInput](ctx, task, noteSpec, "one", "")
			if in.Note == "declined" { // whatever was answered
				return "", fmt.Errorf("not now: %w", mcptask.ErrDeclined)
			}
			return "", fmt.Errorf("out of stock, after %v", err == nil)
		})
	s.tools = append(s.tools, askTools(), mcptask.Tools{Service: "Ending", Impl: 1, Tools: []mcptask.Tool{ending}})
	s.options.Revisions = withPatterns
	url, _ = serveWith(t, s)
	return url
}

// asks begins a task that asks, and shows that its ID has arrived: the question
// need not be held back any longer.
func (g guide) asks(id, tool, arguments string) {
	g.t.Helper()
	g.begin(id, tool, arguments).ok()
	g.about("tasks/get", id).ok()
}

// newGuideThat makes a client that declares what it can be asked.
func newGuideThat(t testing.TB, url, token, capabilities string) guide {
	t.Helper()
	return guide{newPeerThat(t, url, legacyRevision, token, capabilities)}
}

// guideMessage is a request of the server's in the guide's form.
type guideMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ID   string                     `json:"id"`
		Task json.RawMessage            `json:"task"`
		Meta map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
	text string
}

// made is the ID of the task that a question asks for, "" where it asks for none.
func (m guideMessage) made() (id string) {
	_ = json.Unmarshal(m.Params.Meta["taskId"], &id) // none is ""
	return id
}

// read reads a message, which names no task the way that other revisions do.
func read(t testing.TB, text string) guideMessage {
	t.Helper()
	m := guideMessage{text: text}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err, text)
	}
	if strings.Contains(text, "related-task") || m.Params.Task != nil {
		t.Errorf("words of 2025-11-25: %s", text)
	}
	return m
}

// heard is the next message on a stream, which is of a method.
func (f *feed) heard(method string) guideMessage {
	f.t.Helper()
	m := read(f.t, f.next().text)
	if m.Method != method {
		f.t.Fatalf("%s, want %s", m.text, method)
	}
	return m
}

// A task that asks is input_required, works again once it is answered, and is
// cancelled where its user declines and the handler leaves it at that (T-12).
func TestPatternsAsk(t *testing.T) {
	rules.Covers(t, "D-09", "D-16")
	t.Parallel()
	url := serveGuide(t, setup{bearer: true})
	begin := func(t *testing.T, id, tool, arguments string) (guide, *feed, guideMessage) {
		t.Helper()
		p := newGuideThat(t, url, "a", canAll)
		f := p.get()
		p.asks(id, tool, arguments)
		q := f.heard("elicitation/create")
		if q.made() != "" {
			t.Errorf("a task of a client that takes none: %s", q.text)
		}
		p.reaches(id, "input_required")
		p.about("tasks/result", id).want(http.StatusOK, invalidParams)
		return p, f, q
	}
	t.Run("goes on", func(t *testing.T) {
		p, f, q := begin(t, "lingers", "ask", `{"steps":["one"],"linger":600000}`)
		p.respond(q.ID, note("yes"))
		p.reaches("lingers", "working")
		f.silent()
		p.about("tasks/cancel", "lingers").ok()
	})
	const declines = `"result":{"action":"decline"}`
	for name, test := range map[string]struct{ tool, arguments, response, status, result string }{
		"declined":                  {"ask_and_fail", `{}`, declines, "cancelled", ""},
		"declined, and wrapped":     {"ending", `{"note":"declined"}`, declines, "cancelled", ""},
		"declined, and failed":      {"ending", `{}`, declines, "completed", "isError: out of stock, after false"},
		"accepted, and declined":    {"ending", `{"note":"declined"}`, note("yes"), "completed", "isError: not now: mcptask: the question was declined"},
		"dismissed":                 {"ask_and_fail", `{}`, `"result":{"action":"cancel"}`, "completed", "isError: mcptask: the question was dismissed"},
		"declined, and gone on":     {"ask", `{"steps":["one"]}`, declines, "completed", "declined"},
		"declined to open":          {"url", `{}`, declines, "completed", "declined"},
		"failed":                    {"ask_and_fail", `{}`, `"error":{"code":-1,"message":"away"}`, "completed", "isError: "},
		"answered":                  {"ask", `{"steps":["one"]}`, note("yes"), "completed", "yes"},
		"an answer without meaning": {"ask_and_fail", `{}`, `"result":{"action":"decline it"}`, "completed", "isError: "},
	} {
		t.Run(name, func(t *testing.T) {
			p, f, q := begin(t, name, test.tool, test.arguments)
			p.respond(q.ID, test.response)
			p.reaches(name, test.status)
			if test.result == "" {
				p.about("tasks/result", name).want(http.StatusOK, invalidParams)
				p.about("tasks/cancel", name).want(http.StatusOK, invalidParams)
			} else if r := p.about("tasks/result", name).ok(); !strings.HasPrefix(toolText(mustJSON(t, r.get("result"))), test.result) {
				t.Errorf("%s", r.body)
			}
			f.silent()
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		p, f, q := begin(t, "cancelled", "ask", `{"steps":["one"]}`)
		p.about("tasks/cancel", "cancelled").ok()
		if m := f.next(); m.Method != "notifications/cancelled" || string(m.Params.RequestID) != string(q.ID) {
			t.Errorf("%s", m.text)
		}
	})
}

func mustJSON(t testing.TB, value any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// clientTask is a task of the client's, in the members that a state has.
func clientTask(id, status string) string {
	return fmt.Sprintf(`"id":%q,"status":%q,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","pollInterval":100`, id, status)
}

// A question is a task at a client that takes such ones: the server polls it.
func TestPatternsRequests(t *testing.T) {
	rules.Covers(t, "D-10", "D-17", "D-25")
	t.Parallel()
	url := serveGuide(t, setup{bearer: true})
	const sum = `{"role":"assistant","model":"m","content":{"type":"text","text":"sum"}}`
	begin := func(t *testing.T, id string) (p guide, f *feed, theirs string, asked time.Time) {
		t.Helper()
		p = newGuideThat(t, url, "a", takes(takesAll))
		f = p.get()
		p.asks(id, "sample", `{}`)
		q := f.heard("sampling/createMessage")
		if theirs = q.made(); len(theirs) < 22 {
			t.Fatalf("the question asks for no task: %s", q.text)
		}
		asked = time.Now() // before the server can count from
		p.respond(q.ID, `"result":{"_meta":{"task":{`+clientTask(theirs, "working")+`,"ttl":60}}}`)
		return p, f, theirs, asked
	}
	follow := func(f *feed, method, theirs string) guideMessage {
		f.t.Helper()
		m := f.heard(method)
		if m.Params.ID != theirs || m.Params.Meta != nil {
			f.t.Errorf("%s, want the ID %s", m.text, theirs)
		}
		return m
	}
	ends := func(p guide, id, want string) {
		p.t.Helper()
		p.reaches(id, "completed")
		if r := p.about("tasks/result", id).ok(); !strings.Contains(toolText(mustJSON(p.t, r.get("result"))), want) {
			p.t.Errorf("%s, want %s", r.body, want)
		}
	}
	t.Run("polled", func(t *testing.T) {
		t.Parallel()
		p, f, theirs, asked := begin(t, "polled")
		for i, status := range []string{"working", "input_required", "completed"} {
			m := follow(f, "tasks/get", theirs)
			// D-17, from the beginning on: a poll may be read long after it was sent.
			if polls, took := i+1, time.Since(asked); took < time.Duration(polls)*100*time.Millisecond {
				t.Errorf("%d polls in %v", polls, took)
			}
			p.reaches("polled", "input_required")
			p.respond(m.ID, `"result":{`+clientTask(theirs, status)+`}`)
		}
		p.respond(follow(f, "tasks/result", theirs).ID, fmt.Sprintf(`"result":{"id":%q,"status":"completed","result":%s}`, theirs, sum))
		ends(p, "polled", "assistant m")
		f.silent()
	})
	t.Run("done at once", func(t *testing.T) {
		t.Parallel()
		p := newGuideThat(t, url, "a", takes(takesAll))
		f := p.get()
		p.asks("at once", "sample", `{}`)
		q := f.heard("sampling/createMessage")
		p.respond(q.ID, `"result":{"_meta":{"task":{`+clientTask(q.made(), "completed")+`}}}`)
		p.respond(follow(f, "tasks/result", q.made()).ID, fmt.Sprintf(`"result":{"id":%q,"status":"completed","result":%s}`, q.made(), sum))
		ends(p, "at once", "assistant m")
	})
	t.Run("no task", func(t *testing.T) {
		t.Parallel()
		p := newGuideThat(t, url, "a", takes(takesAll))
		f := p.get()
		p.asks("plain", "sample", `{}`)
		p.respond(f.heard("sampling/createMessage").ID, `"result":`+sum)
		ends(p, "plain", "assistant m")
		f.silent()
	})
	t.Run("the same question asks for the same task", func(t *testing.T) {
		t.Parallel()
		p := newGuideThat(t, url, "a", takes(takesAll))
		f := p.get()
		p.asks("again", "sample", `{}`)
		first := f.heard("sampling/createMessage")
		f.stop()
		f = p.get()
		second := f.heard("sampling/createMessage")
		if first.made() != second.made() || string(first.ID) != string(second.ID) {
			t.Errorf("%s, then %s", first.text, second.text)
		}
		p.respond(second.ID, `"result":`+sum)
		ends(p, "again", "assistant m")
	})
	for name, answer := range map[string]string{
		"failed":         `{"id":%q,"status":"failed","error":{"code":-1,"message":"no model"}}`,
		"without a code": `{"id":%q,"status":"failed","error":{"message":"no model"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, f, theirs, _ := begin(t, name)
			p.respond(follow(f, "tasks/get", theirs).ID, `"result":{`+clientTask(theirs, "failed")+`}`)
			p.respond(follow(f, "tasks/result", theirs).ID, fmt.Sprintf(`"result":`+answer, theirs))
			ends(p, name, "cannot ask")
		})
	}
	for name, answer := range map[string]string{"bare": sum, "wrapped twice": `{"id":"x","status":"completed","result":5}`, "nothing": `{}`, "null": `null`} {
		t.Run(name, func(t *testing.T) { // three times, then the question has failed
			t.Parallel()
			p, f, theirs, _ := begin(t, name)
			for range 3 {
				p.respond(follow(f, "tasks/get", theirs).ID, `"result":{`+clientTask(theirs, "completed")+`}`)
				p.respond(follow(f, "tasks/result", theirs).ID, `"result":`+answer)
			}
			ends(p, name, "cannot ask")
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		p, f, theirs, _ := begin(t, "cancelled here")
		follow(f, "tasks/get", theirs)
		p.about("tasks/cancel", "cancelled here").ok()
		p.respond(follow(f, "tasks/cancel", theirs).ID, fmt.Sprintf(`"result":{"id":%q,"status":"cancelled"}`, theirs))
		f.silent()
	})
	t.Run("a task of 2025-11-25 in the same session", func(t *testing.T) {
		t.Parallel()
		p := newGuideThat(t, url, "a", takes(takesAll))
		f := p.get()
		id := p.create("sample", nil)
		p.task("tasks/get", id).ok()
		q := f.augmented(id)
		p.respond(q.ID, remoteBegan("r"))
		p.respond(f.followUp("tasks/result", "r").ID, relatedTo("r", `"result":`+sum))
		if got := p.outcome(id); !strings.Contains(got, "assistant m") {
			t.Error(got)
		}
	})
}

// TestPatternsOnPipes: the same in a session on pipes.
func TestPatternsOnPipes(t *testing.T) {
	rules.Covers(t, "D-05", "D-10", "D-12", "D-13", "D-14", "D-16", "D-18", "D-25")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		for _, revisions := range [][]string{onlyPatterns, withPatterns} {
			p := newPipedWith(t, mcptask.Options{Limits: hurried, Revisions: revisions}, askTools().Tools...)
			p.ask(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, takes(takesAll))
			p.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			var early []string
			hear := func(want string) string { // a question may come before a reply
				t.Helper()
				fits := func(line string) bool { return strings.Contains(line, want) }
				for !slices.ContainsFunc(early, fits) {
					early = append(early, p.hear())
					if len(early) > 2 {
						t.Fatalf("%s, want %s", early, want)
					}
				}
				i := slices.IndexFunc(early, fits)
				line := early[i]
				early = slices.Delete(early, i, i+1)
				return line
			}
			say := func(id, method, params string) {
				t.Helper()
				p.say(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, id, method, params)
			}
			until := func(id, status string) {
				t.Helper()
				for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
					say("get", "tasks/get", `{"id":"`+id+`"}`)
					if line := hear(`"id":"get"`); strings.Contains(line, `"status":"`+status+`"`) {
						return
					} else if time.Now().After(end) {
						t.Fatal(line)
					}
				}
			}
			say("1", "tools/call", `{"name":"endless","arguments":{},"_meta":{"taskId":"one"}}`)
			first := hear(`"_meta":{"task":{"id":"one","status":"working","createdAt":`)
			say("1", "tools/call", `{"name":"endless","arguments":{},"_meta":{"taskId":"one"}}`)
			made := func(line string) string { line, _, _ = strings.Cut(line, `"lastUpdatedAt"`); return line }
			if again := hear(`"_meta":{"task":{"id":"one","status":"working","createdAt":`); made(again) != made(first) {
				t.Errorf("%s, then %s", first, again)
			}
			say("2", "tools/call", `{"name":"endless","arguments":{},"_meta":{"taskId":""}}`)
			hear(`-32602`)
			say("3", "tasks/result", `{"id":"one"}`)
			hear(`-32602`)
			say("4", "tasks/cancel", `{"id":"one"}`)
			hear(`"result":{"id":"one","status":"cancelled"}`)
			say("5", "tasks/get", `{"id":"one"}`)
			hear(`"id":"one","status":"cancelled"`)
			say("6", "tools/call", `{"name":"ask","arguments":{"steps":["now"]},"_meta":{"taskId":"two"}}`)
			hear(`"id":"two"`)
			say("6", "tasks/get", `{"id":"two"}`)
			hear(`"id":"6"`)
			q := read(t, hear(`elicitation/create`))
			p.say(`{"jsonrpc":"2.0","id":%s,"result":{"_meta":{"task":{%s,"ttl":60}}}}`, q.ID, clientTask(q.made(), "working"))
			m := read(t, hear(`"method":"tasks/get","params":{"id":"`+q.made()+`"}`))
			p.say(`{"jsonrpc":"2.0","id":%s,"result":{%s}}`, m.ID, clientTask(q.made(), "completed"))
			m = read(t, hear(`"method":"tasks/result","params":{"id":"`+q.made()+`"}`))
			p.say(`{"jsonrpc":"2.0","id":%s,"result":{"id":%q,"status":"completed","result":{"action":"accept","content":{"note":"yes"}}}}`, m.ID, q.made())
			until("two", "completed")
			say("7", "tasks/result", `{"id":"two"}`)
			hear(`"result":{"id":"two","status":"completed","result":{"content":[{"text":"yes","type":"text"}]`)
			say("8", "tools/call", `{"name":"ask_and_fail","arguments":{},"_meta":{"taskId":"three"}}`)
			hear(`"id":"three"`)
			say("8", "tasks/get", `{"id":"three"}`)
			hear(`"id":"8"`)
			q = read(t, hear(`elicitation/create`))
			until("three", "input_required")
			p.say(`{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`, q.ID)
			until("three", "cancelled")
		}
	})
}
