package unofficialtest

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
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// serveGuide starts a server of tools that ask, which speaks the guide's tasks
// beside the released revisions.
func serveGuide(t testing.TB, s wiretest.Setup) (url string) {
	t.Helper()
	ending := mcptask.NewTool(mcptask.ToolSpec{Name: "ending", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
		func(ctx context.Context, task *mcptask.Task, in wiretest.NoteInput) (string, error) {
			_, err := mcptask.Ask[wiretest.NoteInput](ctx, task, wiretest.NoteSpec, "one", "")
			if in.Note == "declined" { // whatever was answered
				return "", fmt.Errorf("not now: %w", mcptask.ErrDeclined)
			}
			return "", fmt.Errorf("out of stock, after %v", err == nil)
		})
	s.Tools = append(s.Tools, wiretest.AskTools(), mcptask.Tools{Service: "Ending", Impl: 1, Tools: []mcptask.Tool{ending}})
	s.Options.Revisions = wiretest.WithPatterns
	url, _ = wiretest.ServeWith(t, s)
	return url
}

// asks begins a task that asks, and shows that its ID has arrived: the question
// need not be held back any longer.
func (g guide) asks(id, tool, arguments string) {
	g.T.Helper()
	g.begin(id, tool, arguments).OK()
	g.about("tasks/get", id).OK()
}

// newGuideThat makes a client that declares what it can be asked.
func newGuideThat(t testing.TB, url, token, capabilities string) guide {
	t.Helper()
	return guide{wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, token, capabilities)}
}

// TestPatternsAsk checks that a task that asks is input_required, and works again after the answer.
// It is cancelled if the user declines and the handler accepts that (T-12).
func TestPatternsAsk(t *testing.T) {
	rules.Covers(t, "D-09", "D-16")
	t.Parallel()
	begin := func(t *testing.T, url string, id, tool, arguments string) (guide, *wiretest.Feed, wiretest.GuideMessage) {
		t.Helper()
		p := newGuideThat(t, url, "a", wiretest.AllCapabilities)
		f := p.OpenGet()
		p.asks(id, tool, arguments)
		q := f.NextGuideMessage("elicitation/create")
		if q.RequestedTask() != "" {
			t.Errorf("a task of a client that takes none: %s", q.Text)
		}
		p.reaches(id, "input_required")
		p.about("tasks/result", id).Want(http.StatusOK, wiretest.InvalidParams)
		return p, f, q
	}
	t.Run("goes on", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			url := serveGuide(t, wiretest.Setup{Bearer: true})
			p, f, q := begin(t, url, "lingers", "ask", `{"steps":["one"],"linger":600000}`)
			p.Respond(q.ID, wiretest.AcceptNote("yes"))
			p.reaches("lingers", "working")
			f.WantSilence()
			p.about("tasks/cancel", "lingers").OK()
		})
	})
	const declines = `"result":{"action":"decline"}`
	for name, test := range map[string]struct{ tool, arguments, response, status, result string }{
		"declined":                  {"ask_and_fail", `{}`, declines, "cancelled", ""},
		"declined, and wrapped":     {"ending", `{"note":"declined"}`, declines, "cancelled", ""},
		"declined, and failed":      {"ending", `{}`, declines, "completed", "isError: out of stock, after false"},
		"accepted, and declined":    {"ending", `{"note":"declined"}`, wiretest.AcceptNote("yes"), "completed", "isError: not now: mcptask: the question was declined"},
		"dismissed":                 {"ask_and_fail", `{}`, `"result":{"action":"cancel"}`, "completed", "isError: mcptask: the question was dismissed"},
		"declined, and gone on":     {"ask", `{"steps":["one"]}`, declines, "completed", "declined"},
		"declined to open":          {"url", `{}`, declines, "completed", "declined"},
		"failed":                    {"ask_and_fail", `{}`, `"error":{"code":-1,"message":"away"}`, "completed", "isError: "},
		"answered":                  {"ask", `{"steps":["one"]}`, wiretest.AcceptNote("yes"), "completed", "yes"},
		"an answer without meaning": {"ask_and_fail", `{}`, `"result":{"action":"decline it"}`, "completed", "isError: "},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				url := serveGuide(t, wiretest.Setup{Bearer: true})
				p, f, q := begin(t, url, name, test.tool, test.arguments)
				p.Respond(q.ID, test.response)
				p.reaches(name, test.status)
				if test.result == "" {
					p.about("tasks/result", name).Want(http.StatusOK, wiretest.InvalidParams)
					p.about("tasks/cancel", name).Want(http.StatusOK, wiretest.InvalidParams)
				} else if r := p.about("tasks/result", name).OK(); !strings.HasPrefix(wiretest.ToolText(mustJSON(t, r.Get("result"))), test.result) {
					t.Errorf("%s", r.Body)
				}
				f.WantSilence()
			})
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			url := serveGuide(t, wiretest.Setup{Bearer: true})
			p, f, q := begin(t, url, "cancelled", "ask", `{"steps":["one"]}`)
			p.about("tasks/cancel", "cancelled").OK()
			if m := f.Next(); m.Method != "notifications/cancelled" || string(m.Params.RequestID) != string(q.ID) {
				t.Errorf("%s", m.Text)
			}
		})
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

// TestPatternsRequests checks that a client may keep a question as a task, which the server then
// polls.
func TestPatternsRequests(t *testing.T) {
	rules.Covers(t, "D-10", "D-17", "D-25")
	t.Parallel()
	const sum = `{"role":"assistant","model":"m","content":{"type":"text","text":"sum"}}`
	begin := func(t *testing.T, url string, id string) (p guide, f *wiretest.Feed, theirs string, asked time.Time) {
		t.Helper()
		p = newGuideThat(t, url, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
		f = p.OpenGet()
		p.asks(id, "sample", `{}`)
		q := f.NextGuideMessage("sampling/createMessage")
		if theirs = q.RequestedTask(); len(theirs) < 22 {
			t.Fatalf("the question asks for no task: %s", q.Text)
		}
		asked = time.Now() // before the server can count from
		p.Respond(q.ID, `"result":{"_meta":{"task":{`+clientTask(theirs, "working")+`,"ttl":60}}}`)
		return p, f, theirs, asked
	}
	follow := func(f *wiretest.Feed, method, theirs string) wiretest.GuideMessage {
		f.T.Helper()
		m := f.NextGuideMessage(method)
		if m.Params.ID != theirs || m.Params.Meta != nil {
			f.T.Errorf("%s, want the ID %s", m.Text, theirs)
		}
		return m
	}
	ends := func(p guide, id, want string) {
		p.T.Helper()
		p.reaches(id, "completed")
		if r := p.about("tasks/result", id).OK(); !strings.Contains(wiretest.ToolText(mustJSON(p.T, r.Get("result"))), want) {
			p.T.Errorf("%s, want %s", r.Body, want)
		}
	}
	t.Run("polled", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url := serveGuide(t, wiretest.Setup{Bearer: true})
			p, f, theirs, asked := begin(t, url, "polled")
			for i, status := range []string{"working", "input_required", "completed"} {
				m := follow(f, "tasks/get", theirs)
				// D-17, from the beginning on: a poll may be read long after it was sent.
				if polls, took := i+1, time.Since(asked); took < time.Duration(polls)*100*time.Millisecond {
					t.Errorf("%d polls in %v", polls, took)
				}
				p.reaches("polled", "input_required")
				p.Respond(m.ID, `"result":{`+clientTask(theirs, status)+`}`)
			}
			p.Respond(follow(f, "tasks/result", theirs).ID, fmt.Sprintf(`"result":{"id":%q,"status":"completed","result":%s}`, theirs, sum))
			ends(p, "polled", "assistant m")
			f.WantSilence()
		})
	})
	t.Run("done at once", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url := serveGuide(t, wiretest.Setup{Bearer: true})
			p := newGuideThat(t, url, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
			f := p.OpenGet()
			p.asks("at once", "sample", `{}`)
			q := f.NextGuideMessage("sampling/createMessage")
			p.Respond(q.ID, `"result":{"_meta":{"task":{`+clientTask(q.RequestedTask(), "completed")+`}}}`)
			p.Respond(follow(f, "tasks/result", q.RequestedTask()).ID, fmt.Sprintf(`"result":{"id":%q,"status":"completed","result":%s}`, q.RequestedTask(), sum))
			ends(p, "at once", "assistant m")
		})
	})
	t.Run("no task", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url := serveGuide(t, wiretest.Setup{Bearer: true})
			p := newGuideThat(t, url, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
			f := p.OpenGet()
			p.asks("plain", "sample", `{}`)
			p.Respond(f.NextGuideMessage("sampling/createMessage").ID, `"result":`+sum)
			ends(p, "plain", "assistant m")
			f.WantSilence()
		})
	})
	t.Run("the same question asks for the same task", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url := serveGuide(t, wiretest.Setup{Bearer: true})
			p := newGuideThat(t, url, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
			f := p.OpenGet()
			p.asks("again", "sample", `{}`)
			first := f.NextGuideMessage("sampling/createMessage")
			f.Stop()
			f = p.OpenGet()
			second := f.NextGuideMessage("sampling/createMessage")
			if first.RequestedTask() != second.RequestedTask() || string(first.ID) != string(second.ID) {
				t.Errorf("%s, then %s", first.Text, second.Text)
			}
			p.Respond(second.ID, `"result":`+sum)
			ends(p, "again", "assistant m")
		})
	})
	for name, answer := range map[string]string{
		"failed":         `{"id":%q,"status":"failed","error":{"code":-1,"message":"no model"}}`,
		"without a code": `{"id":%q,"status":"failed","error":{"message":"no model"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url := serveGuide(t, wiretest.Setup{Bearer: true})
				p, f, theirs, _ := begin(t, url, name)
				p.Respond(follow(f, "tasks/get", theirs).ID, `"result":{`+clientTask(theirs, "failed")+`}`)
				p.Respond(follow(f, "tasks/result", theirs).ID, fmt.Sprintf(`"result":`+answer, theirs))
				ends(p, name, "cannot ask")
			})
		})
	}
	for name, answer := range map[string]string{"bare": sum, "wrapped twice": `{"id":"x","status":"completed","result":5}`, "nothing": `{}`, "null": `null`} {
		t.Run(name, func(t *testing.T) { // three times, then the question has failed
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url := serveGuide(t, wiretest.Setup{Bearer: true})
				p, f, theirs, _ := begin(t, url, name)
				for range 3 {
					p.Respond(follow(f, "tasks/get", theirs).ID, `"result":{`+clientTask(theirs, "completed")+`}`)
					p.Respond(follow(f, "tasks/result", theirs).ID, `"result":`+answer)
				}
				ends(p, name, "cannot ask")
			})
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url := serveGuide(t, wiretest.Setup{Bearer: true})
			p, f, theirs, _ := begin(t, url, "cancelled here")
			follow(f, "tasks/get", theirs)
			p.about("tasks/cancel", "cancelled here").OK()
			p.Respond(follow(f, "tasks/cancel", theirs).ID, fmt.Sprintf(`"result":{"id":%q,"status":"cancelled"}`, theirs))
			f.WantSilence()
		})
	})
	t.Run("a task of 2025-11-25 in the same session", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url := serveGuide(t, wiretest.Setup{Bearer: true})
			p := newGuideThat(t, url, "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
			f := p.OpenGet()
			id := p.Create("sample", nil)
			p.Task("tasks/get", id).OK()
			q := f.NextTaskQuestion(id)
			p.Respond(q.ID, wiretest.RemoteTaskCreated("r"))
			p.Respond(f.NextFollowUp("tasks/result", "r").ID, wiretest.WithRelatedTask("r", `"result":`+sum))
			if got := p.TaskText(id); !strings.Contains(got, "assistant m") {
				t.Error(got)
			}
		})
	})
}

// TestPatternsOnPipes checks the same in a session on pipes.
func TestPatternsOnPipes(t *testing.T) {
	rules.Covers(t, "D-05", "D-10", "D-12", "D-13", "D-14", "D-16", "D-18", "D-25")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		for _, revisions := range [][]string{wiretest.OnlyPatterns, wiretest.WithPatterns} {
			p := wiretest.NewPipedWith(t, mcptask.Options{Limits: wiretest.NoPollLimits, Revisions: revisions}, wiretest.AskTools().Tools...)
			p.Ask(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
			p.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			var early []string
			hear := func(want string) string { // a question may come before a reply
				t.Helper()
				fits := func(line string) bool { return strings.Contains(line, want) }
				for !slices.ContainsFunc(early, fits) {
					early = append(early, p.Hear())
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
				p.Say(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, id, method, params)
			}
			until := func(id, status string) {
				t.Helper()
				for end := time.Now().Add(wiretest.Patience); ; time.Sleep(10 * time.Millisecond) {
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
			q := wiretest.DecodeGuideMessage(t, hear(`elicitation/create`))
			p.Say(`{"jsonrpc":"2.0","id":%s,"result":{"_meta":{"task":{%s,"ttl":60}}}}`, q.ID, clientTask(q.RequestedTask(), "working"))
			m := wiretest.DecodeGuideMessage(t, hear(`"method":"tasks/get","params":{"id":"`+q.RequestedTask()+`"}`))
			p.Say(`{"jsonrpc":"2.0","id":%s,"result":{%s}}`, m.ID, clientTask(q.RequestedTask(), "completed"))
			m = wiretest.DecodeGuideMessage(t, hear(`"method":"tasks/result","params":{"id":"`+q.RequestedTask()+`"}`))
			p.Say(`{"jsonrpc":"2.0","id":%s,"result":{"id":%q,"status":"completed","result":{"action":"accept","content":{"note":"yes"}}}}`, m.ID, q.RequestedTask())
			until("two", "completed")
			say("7", "tasks/result", `{"id":"two"}`)
			hear(`"result":{"id":"two","status":"completed","result":{"content":[{"text":"yes","type":"text"}]`)
			say("8", "tools/call", `{"name":"ask_and_fail","arguments":{},"_meta":{"taskId":"three"}}`)
			hear(`"id":"three"`)
			say("8", "tasks/get", `{"id":"three"}`)
			hear(`"id":"8"`)
			q = wiretest.DecodeGuideMessage(t, hear(`elicitation/create`))
			until("three", "input_required")
			p.Say(`{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`, q.ID)
			until("three", "cancelled")
		}
	})
}
