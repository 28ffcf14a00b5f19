package edgetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/golden/questions"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// TestBeforeModern asks questions before the task exists, in 2026-07-28: the client repeats the
// call with the answers (E-24, EX-13).
func TestBeforeModern(t *testing.T) {
	rules.Covers(t, "E-24")
	inBubble(t, func(t *testing.T) {
		url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
		call := func(p *wiretest.Peer, tool string, responses map[string]any, state string) *wiretest.Response {
			params := map[string]any{"name": tool, "arguments": map[string]any{"name": "n"}}
			if tool == "ask_only" {
				params["arguments"] = map[string]any{}
			}
			if responses != nil {
				params["inputResponses"] = responses
			}
			if state != "" {
				params["requestState"] = state
			}
			return p.Call("tools/call", params)
		}
		keys := func(r *wiretest.Response) string {
			requests, _ := r.Get("inputRequests").(map[string]any)
			return r.Text("resultType") + fmt.Sprint(slices.Sorted(maps.Keys(requests)))
		}
		const both = "input_required[" + wiretest.SureKey + " " + wiretest.WhichKey + "]"
		p := wiretest.NewAskedPeer(t, url, wiretest.ModernRevision, "a", wiretest.AllCapabilities)
		plain := wiretest.NewAskedPeer(t, url, wiretest.ModernRevision, "a", wiretest.AllCapabilities)
		plain.Caps = wiretest.AllCapabilities

		if r := call(p, "ask_first", nil, "").OK(); keys(r) != both || r.Text("inputRequests", wiretest.SureKey, "method") != "elicitation/create" ||
			!strings.HasPrefix(r.Text("inputRequests", wiretest.SureKey, "params", "message"), `Are you "sure"?`) {
			t.Errorf("%s", r.Body)
		}
		for name, c := range map[string]struct {
			responses map[string]any
			want      string
		}{
			"all":          {wiretest.InputResponses(wiretest.SureKey, wiretest.SureYes, wiretest.WhichKey, wiretest.WhichA), "task"},
			"and junk":     {wiretest.InputResponses(wiretest.SureKey, wiretest.SureYes, wiretest.WhichKey, wiretest.WhichA, "junk", `{"ignored":true}`, "more", `7`, "Sure", `null`), "task"},
			"junk alone":   {wiretest.InputResponses("junk", `[]`), both},
			"none":         {wiretest.InputResponses(), both},
			"one":          {wiretest.InputResponses(wiretest.SureKey, wiretest.SureYes), "input_required[" + wiretest.WhichKey + "]"},
			"the other":    {wiretest.InputResponses(wiretest.WhichKey, wiretest.WhichA), "input_required[" + wiretest.SureKey + "]"},
			"another case": {wiretest.InputResponses("BEFORE/SURE", wiretest.SureYes, wiretest.WhichKey, wiretest.WhichA), "input_required[" + wiretest.SureKey + "]"},
		} {
			r := call(p, "ask_first", c.responses, "").OK()
			if got := strings.TrimSuffix(keys(r), "[]"); got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
			if id := r.Text("taskId"); id != "" {
				if done := p.Until(id, "completed"); done.Get("result", "structuredContent", "done") != true {
					t.Errorf("%s", done.Body)
				}
			}
		}
		// Partial answers, from a client that answers only the questions of this round.
		r := call(p, "ask_first", wiretest.InputResponses(wiretest.SureKey, wiretest.SureYes), "").OK()
		state := r.Text("requestState")
		if r = call(p, "ask_first", wiretest.InputResponses(wiretest.WhichKey, wiretest.WhichA), state).OK(); r.Text("resultType") != "task" || r.Get("requestState") != nil {
			t.Errorf("%s", r.Body)
		}
		if r = call(p, "ask_first", wiretest.InputResponses(wiretest.SureKey, `{"action":"decline"}`, wiretest.WhichKey, wiretest.WhichA), state).OK(); !strings.HasPrefix(wiretest.ToolText(r.Result), "isError: Sure ") {
			t.Errorf("the newer answer counts: %s", r.Body)
		}
		for name, c := range map[string]struct{ key, value string }{
			"not a response": {wiretest.SureKey, `7`}, "null": {wiretest.SureKey, `null`}, "no action": {wiretest.SureKey, `{}`}, "another action": {wiretest.SureKey, `{"action":"x"}`},
			"no content": {wiretest.SureKey, `{"action":"accept"}`}, "another type": {wiretest.SureKey, `{"action":"accept","content":{"yes":"yes"}}`},
			"out of the enum":   {wiretest.WhichKey, strings.Replace(wiretest.WhichA, `"one":"a"`, `"one":"c"`, 1)},
			"too few":           {wiretest.WhichKey, strings.Replace(wiretest.WhichA, `["b"]`, `[]`, 1)},
			"no time":           {wiretest.WhichKey, strings.Replace(wiretest.WhichA, `2026-01-02T`, ``, 1)},
			"below the minimum": {wiretest.WhichKey, strings.Replace(wiretest.WhichA, `"one"`, `"count":0,"one"`, 1)},
		} {
			responses := wiretest.InputResponses(wiretest.SureKey, wiretest.SureYes, wiretest.WhichKey, wiretest.WhichA)
			responses[c.key] = json.RawMessage(c.value)
			t.Log(name)
			call(p, "ask_first", responses, "").Want(http.StatusBadRequest, wiretest.InvalidParams)
		}
		for _, state := range []string{"x", "[]", "7"} {
			call(p, "ask_first", nil, state).Want(http.StatusBadRequest, wiretest.InvalidParams)
		}
		p.Call("tools/call", map[string]any{"name": "ask_first", "arguments": map[string]any{"name": "n"}, "inputResponses": []int{1}}).Want(http.StatusBadRequest, wiretest.InvalidParams)
		call(p, "ask_first", nil, `{"before/Sure":7}`).Want(http.StatusBadRequest, wiretest.InvalidParams)
		// Refusals are tool errors.
		for _, refusal := range []string{`{"action":"decline"}`, `{"action":"cancel"}`} {
			for _, peer := range []*wiretest.Peer{p, plain} {
				r := call(peer, "ask_first", wiretest.InputResponses(wiretest.SureKey, wiretest.SureYes, wiretest.WhichKey, refusal), "").OK()
				if got := wiretest.ToolText(r.Result); !strings.HasPrefix(got, "isError: Which was asked for and not given: ") {
					t.Errorf("%s", r.Body)
				}
			}
		}
		// Without tasks: plain results.
		if r := call(plain, "ask_first", nil, "").OK(); keys(r) != both {
			t.Errorf("%s", r.Body)
		}
		if r := call(plain, "ask_first", wiretest.InputResponses(wiretest.SureKey, wiretest.SureYes, wiretest.WhichKey, wiretest.WhichA), "").OK(); r.Get("structuredContent", "done") != true {
			t.Errorf("%s", r.Body)
		}
		for _, peer := range []*wiretest.Peer{p, plain} {
			if r := call(peer, "ask_only", nil, "").OK(); keys(r) != "input_required["+wiretest.WhichKey+"]" {
				t.Errorf("%s", r.Body)
			}
			if r := call(peer, "ask_only", wiretest.InputResponses(wiretest.WhichKey, wiretest.WhichA), "").OK(); r.Get("isError") != nil {
				t.Errorf("%s", r.Body)
			}
		}
		// The server checks the arguments first, then if the client can be asked.
		if r := p.Call("tools/call", map[string]any{"name": "ask_first", "arguments": map[string]any{}}).OK(); !strings.HasPrefix(wiretest.ToolText(r.Result), "isError: invalid arguments") {
			t.Errorf("%s", r.Body)
		}
		mute := wiretest.NewPeer(t, url, wiretest.ModernRevision, "a")
		if r := call(mute, "ask_first", nil, "").OK(); !strings.HasPrefix(wiretest.ToolText(r.Result), "isError: Sure was asked for and not given: ") {
			t.Errorf("%s", r.Body)
		}
		if tasks := wiretest.ListTasks(t, p); len(tasks) != 3 {
			t.Errorf("%d tasks", len(tasks))
		}
	})
}

// TestBeforeLegacy asks questions before the task exists, in 2025-11-25: as requests on the call's
// own stream.
func TestBeforeLegacy(t *testing.T) {
	t.Parallel()
	for _, jsonReplies := range []bool{false, true} {
		url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true, HTTP: wiretest.HTTPOptions(jsonReplies)})
		for _, augmented := range []bool{false, true} {
			for name, c := range map[string]struct{ sure, which, want string }{
				"accepted":   {`"result":` + wiretest.SureYes, `"result":` + wiretest.WhichA, ""},
				"declined":   {`"result":{"action":"decline"}`, "", "isError: Sure was asked for and not given: "},
				"dismissed":  {`"result":` + wiretest.SureYes, `"result":{"action":"cancel"}`, "isError: Which was asked for and not given: "},
				"an error":   {`"error":{"code":-1,"message":"no"}`, "", "isError: Sure was asked for and not given: "},
				"misfitting": {`"result":{"action":"accept","content":{"yes":1}}`, "", "isError: Sure was asked for and not given: "},
			} {
				t.Run(fmt.Sprint(name, " augmented=", augmented, " json=", jsonReplies), func(t *testing.T) {
					t.Parallel()
					p := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a-"+strings.ReplaceAll(t.Name(), " ", ""), wiretest.AllCapabilities)
					params := map[string]any{"name": "ask_first", "arguments": map[string]any{"name": "n"}}
					if augmented {
						params["task"] = map[string]any{}
					}
					var answer func() json.RawMessage
					var questions *wiretest.Feed
					if jsonReplies {
						questions = p.OpenGet()
						done := make(chan json.RawMessage, 1)
						go func() { done <- p.Call("tools/call", params).Result }()
						answer = func() json.RawMessage { return <-done }
					} else {
						questions = p.Send("tools/call", params)
						answer = func() json.RawMessage { return questions.Next().Result }
					}
					p.Respond(questions.NextQuestion("").ID, c.sure)
					if c.which != "" {
						p.Respond(questions.NextQuestion("").ID, c.which)
					}
					result := answer()
					tasks := wiretest.ListTasks(t, p)
					switch {
					case c.want != "":
						if !strings.HasPrefix(wiretest.ToolText(result), c.want) || len(tasks) != 0 {
							t.Errorf("%s, %v", result, tasks)
						}
					case augmented:
						if len(tasks) != 1 || !strings.Contains(string(result), tasks[0]["taskId"].(string)) {
							t.Fatalf("%s, %v", result, tasks)
						}
						if r := p.Task("tasks/result", tasks[0]["taskId"].(string)).OK(); r.Get("structuredContent", "done") != true {
							t.Errorf("%s", r.Body)
						}
					case !strings.Contains(string(result), `"done":true`) || len(tasks) != 0:
						t.Errorf("%s, %v", result, tasks)
					}
				})
			}
		}
	}
	// A client that cannot be asked, and a client that leaves.
	url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
	mute := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a")
	if r := mute.Call("tools/call", map[string]any{"name": "ask_only", "arguments": map[string]any{}}).OK(); !strings.HasPrefix(wiretest.ToolText(r.Result), "isError: Which was") {
		t.Errorf("%s", r.Body)
	}
	p := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
	f := p.Send("tools/call", map[string]any{"name": "ask_first", "arguments": map[string]any{"name": "n"}, "task": map[string]any{}})
	q := f.NextQuestion("")
	f.Stop()
	p.Respond(q.ID, `"result":{"action":"decline"}`)
	if tasks := wiretest.ListTasks(t, p); len(tasks) != 0 {
		t.Errorf("%v", tasks)
	}
}

// asker implements the tools that ask before they start.
type asker struct{ ran chan string }

func (a asker) AskFirst(_ context.Context, task *mcptask.Task, in questions.Input, sure questions.Sure, which questions.Which) (questions.Report, error) {
	a.ran <- in.Name + " " + which.One
	return questions.Report{Done: sure.Yes && len(which.Many) == 1 && which.Note == nil}, nil
}

func (a asker) AskOnly(_ context.Context, which questions.Which) error {
	a.ran <- which.One
	return nil
}

// TestAskedBefore calls tools that ask first, as tasks and as ordinary calls. The client declares
// in both cases what it can answer.
func TestAskedBefore(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			impl := asker{make(chan string, 10)}
			var refuse bool
			answers := mcptask.Answers(
				questions.AnswerSure(func(context.Context, mcptask.Question) (questions.Sure, error) {
					if refuse {
						return questions.Sure{}, mcptask.ErrDeclined
					}
					return questions.Sure{Yes: true}, nil
				}),
				questions.AnswerWhich(func(context.Context, mcptask.Question) (questions.Which, error) {
					return questions.Which{One: "a", Many: []string{"b"}, Count: 1, When: time.Unix(0, 0).UTC()}, nil
				}))
			client := questions.NewAskerClient(mcptasktest.Connect(wirecheck.TB(t), revision, mcptasktest.Options{Answer: answers}, questions.AskerTools(impl)))
			for name, options := range map[string][]mcptask.CallOption{"task": nil, "plain": {mcptask.Plain()}} {
				report, err := client.AskFirst(t.Context(), questions.Input{Name: name}, options...)
				if err != nil || !report.Done {
					t.Fatalf("%s: %+v, %v", name, report, err)
				}
				if got := <-impl.ran; got != name+" a" {
					t.Errorf("%s: %q", name, got)
				}
			}
			if err := client.AskOnly(t.Context()); err != nil || <-impl.ran != "a" {
				t.Error(err)
			}
			refuse = true
			_, err := client.AskFirst(t.Context(), questions.Input{Name: "refused"})
			var toolErr *mcptask.ToolError
			if !errors.As(err, &toolErr) || !strings.Contains(toolErr.Result.Text(), "Sure") {
				t.Errorf("refused: %v", err)
			}
			if len(impl.ran) != 0 {
				t.Error("the handler ran without its answers")
			}
		})
	})
}

// TestPlainOfARequiredTool asks for an ordinary call of a tool that requires a task. The call still
// runs as a task, in both revisions.
func TestPlainOfARequiredTool(t *testing.T) {
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		url, _ := wiretest.Serve(t, taskserver.Options{})
		call, err := wiretest.Connect(t, url, revision, mcptask.Answerer{}).StartRunPipeline(t.Context(), pipeline.RunInput{Repository: "https://example.com/r", Branch: "broken"}, mcptask.Plain())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := call.Token(); !ok {
			t.Error("not a task")
		}
	})
}
