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
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// serveGuide starts a server of tools that ask, which speaks the guide's tasks
// beside the released revisions.
func serveGuide(t testing.TB) (url string) {
	t.Helper()
	ending := mcptask.NewTool(mcptask.ToolSpec{Name: "ending", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
		func(ctx context.Context, task *mcptask.Task, in wiretest.NoteInput) (string, error) {
			_, err := mcptask.Ask[wiretest.NoteInput](ctx, task, wiretest.NoteSpec, "one", "")
			if in.Note == "declined" { // the answer does not matter
				return "", fmt.Errorf("not now: %w", mcptask.ErrDeclined)
			}
			return "", fmt.Errorf("out of stock, after %v", err == nil)
		})
	url, _ = wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: taskserver.Options{Revisions: wiretest.WithPatterns},
		Tools: []mcptask.Tools{wiretest.AskTools(), {Service: "Ending", Impl: 1, Tools: []mcptask.Tool{ending}}}})
	return url
}

// askGuide starts a server, and a task that asks a client with these capabilities. method is the question's method.
func askGuide(t *testing.T, capabilities, id, tool, arguments, method string) (p guide, f *wiretest.Feed, question wiretest.WireMessage) {
	t.Helper()
	p = newGuideThat(t, serveGuide(t), "a", capabilities)
	f = p.OpenGet()
	p.asks(id, tool, arguments)
	return p, f, f.NextGuideMessage(method)
}

// wantResult fails the test unless the text of a task's result has this prefix.
func (g guide) wantResult(id, text string) {
	g.T.Helper()
	r := g.about("tasks/result", id).OK()
	if got := wiretest.ToolText(mustJSON(g.T, r.Get("result"))); !strings.HasPrefix(got, text) {
		g.T.Errorf("%s, want %s", r.Body, text)
	}
}

// asks starts a task that asks. It lets the client poll, so that the server need not hold the question back.
func (g guide) asks(id, tool, arguments string) {
	g.T.Helper()
	g.begin(id, tool, arguments).OK()
	g.about("tasks/get", id).OK()
}

// newGuideThat returns a client that declares these capabilities.
func newGuideThat(t testing.TB, url, token, capabilities string) guide {
	t.Helper()
	return guide{wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, token, capabilities)}
}

// TestPatternsAsk checks that a task that asks is input_required, and works again after the answer.
// It is cancelled if the user declines and the handler accepts that (T-12).
func TestPatternsAsk(t *testing.T) {
	rules.Covers(t, "D-09", "D-16")
	t.Parallel()
	const declines = `"result":{"action":"decline"}`
	for name, test := range map[string]struct{ tool, arguments, response, status, result string }{
		"goes on":                   {"ask", `{"steps":["one"],"linger":600000}`, wiretest.AcceptNote("yes"), "working", ""},
		"declined":                  {"ask_and_fail", `{}`, declines, "cancelled", ""},
		"declined, and wrapped":     {"ending", `{"note":"declined"}`, declines, "cancelled", ""},
		"declined, and failed":      {"ending", `{}`, declines, "completed", "isError: out of stock, after false"},
		"accepted, and declined":    {"ending", `{"note":"declined"}`, wiretest.AcceptNote("yes"), "completed", "isError: not now: the question was declined"},
		"dismissed":                 {"ask_and_fail", `{}`, `"result":{"action":"cancel"}`, "completed", "isError: one: the question was dismissed"},
		"declined, and gone on":     {"ask", `{"steps":["one"]}`, declines, "completed", "declined"},
		"declined to open":          {"url", `{}`, declines, "completed", "declined"},
		"failed":                    {"ask_and_fail", `{}`, `"error":{"code":-1,"message":"away"}`, "completed", "isError: "},
		"answered":                  {"ask", `{"steps":["one"]}`, wiretest.AcceptNote("yes"), "completed", "yes"},
		"an answer without meaning": {"ask_and_fail", `{}`, `"result":{"action":"decline it"}`, "completed", "isError: "},
		"cancelled":                 {"ask", `{"steps":["one"]}`, "", "cancelled", ""},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p, f, q := askGuide(t, wiretest.AllCapabilities, name, test.tool, test.arguments, "elicitation/create")
			if q.Params.Meta.TaskID != "" {
				t.Errorf("a task of a client that does not accept tasks: %s", q.Text)
			}
			p.reaches(name, "input_required")
			p.about("tasks/result", name).Want(http.StatusOK, wiretest.InvalidParams)
			if test.response != "" {
				p.Respond(q.ID, test.response)
			} else {
				p.about("tasks/cancel", name).OK()
				f.NextCancellation(q)
			}
			p.reaches(name, test.status)
			f.WantSilence()
			switch test.status {
			case "completed":
				p.wantResult(name, test.result)
			case "working":
				p.about("tasks/cancel", name).OK()
			default:
				p.about("tasks/result", name).Want(http.StatusOK, wiretest.InvalidParams)
				p.about("tasks/cancel", name).Want(http.StatusOK, wiretest.InvalidParams)
			}
		})
	}
}

func mustJSON(t testing.TB, value any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// clientTask returns a task of the client in one state.
func clientTask(id, status string) string {
	return fmt.Sprintf(`"id":%q,"status":%q,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","pollInterval":100`, id, status)
}

// TestPatternsRequests checks that a client may keep a question as a task, and that the server polls this task.
func TestPatternsRequests(t *testing.T) {
	rules.Covers(t, "D-10", "D-17", "D-25")
	t.Parallel()
	const sum = `{"role":"assistant","model":"m","content":{"type":"text","text":"sum"}}`
	const answered = "assistant m"
	// talk is a conversation about one question. theirs is the task that the question asks for.
	type talk struct {
		*testing.T
		guide

		feed     *wiretest.Feed
		question wiretest.WireMessage
		theirs   string
	}
	// follows reads the server's next request about the client's task.
	follows := func(c *talk, method string) wiretest.WireMessage {
		c.T.Helper()
		m := c.feed.NextGuideMessage(method)
		if m.Params.ID != c.theirs || strings.Contains(m.Text, "_meta") {
			c.T.Errorf("%s, want the ID %s", m.Text, c.theirs)
		}
		return m
	}
	begins := func(c *talk, status string) {
		c.Respond(c.question.ID, `"result":{"_meta":{"task":{`+clientTask(c.theirs, status)+`,"ttl":60}}}`)
	}
	answers := func(c *talk, result string) {
		c.T.Helper()
		c.Respond(follows(c, "tasks/result").ID, `"result":`+strings.ReplaceAll(result, "THEIRS", c.theirs))
	}
	// ends reports the status of the client's task, and answers tasks/result.
	ends := func(c *talk, status, answer string) {
		c.T.Helper()
		c.Respond(follows(c, "tasks/get").ID, `"result":{`+clientTask(c.theirs, status)+`}`)
		answers(c, answer)
	}
	const wrapped = `{"id":"THEIRS","status":"completed","result":` + sum + `}`
	malformed := func(answer string) func(c *talk) {
		return func(c *talk) {
			begins(c, "working")
			for range 3 { // the question has failed
				ends(c, "completed", answer)
			}
		}
	}
	for name, test := range map[string]struct {
		talk func(c *talk)
		want string // "" is a task that was cancelled
	}{
		"polled": {func(c *talk) {
			asked := time.Now() // before the server begins to count
			begins(c, "working")
			for polls, status := range []string{"working", "input_required", "completed"} {
				m := follows(c, "tasks/get")
				// D-17 holds from the start, although a poll may be read long after it was sent.
				if took := time.Since(asked); took < time.Duration(polls+1)*100*time.Millisecond {
					c.T.Errorf("%d polls in %v", polls+1, took)
				}
				c.reaches("mine", "input_required")
				c.Respond(m.ID, `"result":{`+clientTask(c.theirs, status)+`}`)
			}
			answers(c, wrapped)
		}, answered},
		"done at once": {func(c *talk) {
			begins(c, "completed")
			answers(c, wrapped)
		}, answered},
		"no task": {func(c *talk) { c.Respond(c.question.ID, `"result":`+sum) }, answered},
		"the same question asks for the same task": {func(c *talk) {
			c.feed.Stop()
			c.feed = c.OpenGet()
			second := c.feed.NextGuideMessage("sampling/createMessage")
			if second.Params.Meta.TaskID != c.theirs || string(c.question.ID) != string(second.ID) {
				c.T.Errorf("%s, then %s", c.question.Text, second.Text)
			}
			c.Respond(second.ID, `"result":`+sum)
		}, answered},
		"failed": {func(c *talk) {
			begins(c, "working")
			ends(c, "failed", `{"id":"THEIRS","status":"failed","error":{"code":-1,"message":"no"}}`)
		}, "declined"},
		"failed without a code": {func(c *talk) {
			begins(c, "working")
			ends(c, "failed", `{"id":"THEIRS","status":"failed","error":{"message":"no model"}}`)
		}, "cannot ask"},
		"bare":          {malformed(sum), "cannot ask"},
		"wrapped twice": {malformed(`{"id":"x","status":"completed","result":5}`), "cannot ask"},
		"nothing":       {malformed(`{}`), "cannot ask"},
		"null":          {malformed(`null`), "cannot ask"},
		"cancelled": {func(c *talk) {
			begins(c, "working")
			follows(c, "tasks/get")
			c.about("tasks/cancel", "mine").OK()
			c.Respond(follows(c, "tasks/cancel").ID, fmt.Sprintf(`"result":{"id":%q,"status":"cancelled"}`, c.theirs))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				p, f, q := askGuide(t, wiretest.TaskCapabilities(wiretest.AllTaskCapabilities), "mine", "sample", `{}`, "sampling/createMessage")
				c := &talk{t, p, f, q, q.Params.Meta.TaskID}
				if len(c.theirs) < 22 {
					t.Fatalf("the question asks for no task: %s", q.Text)
				}
				if test.talk(c); test.want != "" {
					c.reaches("mine", "completed")
					c.wantResult("mine", test.want)
				}
				c.feed.WantSilence()
			})
		})
	}
}

// TestPatternsBesideRequests checks that a task of 2025-11-25 in a session of the guide asks in its
// own revision.
func TestPatternsBesideRequests(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		p := newGuideThat(t, serveGuide(t), "a", wiretest.TaskCapabilities(wiretest.AllTaskCapabilities))
		f := p.OpenGet()
		id := p.Create("sample", nil)
		p.Task("tasks/get", id).OK()
		q := f.NextTaskQuestion(id)
		p.Respond(q.ID, wiretest.RemoteTaskCreated("r"))
		p.Respond(f.NextFollowUp("tasks/result", "r").ID, wiretest.WithRelatedTask("r", `"result":{"role":"assistant","model":"m","content":{"type":"text","text":"sum"}}`))
		if got := p.TaskText(id); !strings.Contains(got, "assistant m") {
			t.Error(got)
		}
	})
}

// TestPatternsOnPipes checks the same in a session on pipes.
func TestPatternsOnPipes(t *testing.T) {
	rules.Covers(t, "D-05", "D-10", "D-12", "D-13", "D-14", "D-16", "D-18", "D-25")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		for _, revisions := range [][]string{wiretest.OnlyPatterns, wiretest.WithPatterns} {
			p := wiretest.NewPipedWith(t, taskserver.Options{Limits: wiretest.NoPollLimits, Revisions: revisions}, wiretest.AskTools().Tools...)
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
			exchange := func(id, method, params, want string) {
				t.Helper()
				say(id, method, params)
				hear(want)
			}
			until := func(id, status string) {
				t.Helper()
				wiretest.Await(t, func() (missing string) {
					say("get", "tasks/get", `{"id":"`+id+`"}`)
					if line := hear(`"id":"get"`); !strings.Contains(line, `"status":"`+status+`"`) {
						return line
					}
					return ""
				})
			}
			say("1", "tools/call", `{"name":"endless","arguments":{},"_meta":{"taskId":"one"}}`)
			first := hear(`"_meta":{"task":{"id":"one","status":"working","createdAt":`)
			say("1", "tools/call", `{"name":"endless","arguments":{},"_meta":{"taskId":"one"}}`)
			made := func(line string) string { line, _, _ = strings.Cut(line, `"lastUpdatedAt"`); return line }
			if again := hear(`"_meta":{"task":{"id":"one","status":"working","createdAt":`); made(again) != made(first) {
				t.Errorf("%s, then %s", first, again)
			}
			exchange("2", "tools/call", `{"name":"endless","arguments":{},"_meta":{"taskId":""}}`, `-32602`)
			exchange("3", "tasks/result", `{"id":"one"}`, `-32602`)
			exchange("4", "tasks/cancel", `{"id":"one"}`, `"result":{"id":"one","status":"cancelled"}`)
			exchange("5", "tasks/get", `{"id":"one"}`, `"id":"one","status":"cancelled"`)
			exchange("6", "tools/call", `{"name":"ask","arguments":{"steps":["now"]},"_meta":{"taskId":"two"}}`, `"id":"two"`)
			exchange("6", "tasks/get", `{"id":"two"}`, `"id":"6"`)
			q := wiretest.DecodeGuideMessage(t, hear(`elicitation/create`))
			p.Say(`{"jsonrpc":"2.0","id":%s,"result":{"_meta":{"task":{%s,"ttl":60}}}}`, q.ID, clientTask(q.Params.Meta.TaskID, "working"))
			m := wiretest.DecodeGuideMessage(t, hear(`"method":"tasks/get","params":{"id":"`+q.Params.Meta.TaskID+`"}`))
			p.Say(`{"jsonrpc":"2.0","id":%s,"result":{%s}}`, m.ID, clientTask(q.Params.Meta.TaskID, "completed"))
			m = wiretest.DecodeGuideMessage(t, hear(`"method":"tasks/result","params":{"id":"`+q.Params.Meta.TaskID+`"}`))
			p.Say(`{"jsonrpc":"2.0","id":%s,"result":{"id":%q,"status":"completed","result":{"action":"accept","content":{"note":"yes"}}}}`, m.ID, q.Params.Meta.TaskID)
			until("two", "completed")
			exchange("7", "tasks/result", `{"id":"two"}`, `"result":{"id":"two","status":"completed","result":{"content":[{"text":"yes","type":"text"}]`)
			exchange("8", "tools/call", `{"name":"ask_and_fail","arguments":{},"_meta":{"taskId":"three"}}`, `"id":"three"`)
			exchange("8", "tasks/get", `{"id":"three"}`, `"id":"8"`)
			q = wiretest.DecodeGuideMessage(t, hear(`elicitation/create`))
			until("three", "input_required")
			p.Say(`{"jsonrpc":"2.0","id":%s,"result":{"action":"decline"}}`, q.ID)
			until("three", "cancelled")
		}
	})
}
