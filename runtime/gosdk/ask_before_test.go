package gosdk_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

const (
	sureKey  = "before/Sure"
	whichKey = "before/Which"
	sureYes  = `{"action":"accept","content":{"yes":true}}`
	whichA   = `{"action":"accept","content":{"one":"a","many":["b"],"when":"2026-01-02T03:04:05Z"}}`
)

// answersOf makes inputResponses of keys and values in turn.
func answersOf(pairs ...string) map[string]any {
	responses := map[string]any{}
	for pair := range slices.Chunk(pairs, 2) {
		responses[pair[0]] = json.RawMessage(pair[1])
	}
	return responses
}

// E-24, EX-13: questions before a task, by calling again.
func TestBeforeModern(t *testing.T) {
	rules.Covers(t, "E-24")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := serveAsk(t, setup{bearer: true})
		call := func(p *peer, tool string, responses map[string]any, state string) *response {
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
			return p.call("tools/call", params)
		}
		keys := func(r *response) string {
			requests, _ := r.get("inputRequests").(map[string]any)
			return r.text("resultType") + fmt.Sprint(slices.Sorted(maps.Keys(requests)))
		}
		const both = "input_required[" + sureKey + " " + whichKey + "]"
		p := newAsked(t, url, modernRevision, "a", canAll)
		plain := newAsked(t, url, modernRevision, "a", canAll)
		plain.caps = canAll

		if r := call(p, "ask_first", nil, "").ok(); keys(r) != both || r.text("inputRequests", sureKey, "method") != "elicitation/create" ||
			!strings.HasPrefix(r.text("inputRequests", sureKey, "params", "message"), `Are you "sure"?`) {
			t.Errorf("%s", r.body)
		}
		for name, c := range map[string]struct {
			responses map[string]any
			want      string
		}{
			"all":          {answersOf(sureKey, sureYes, whichKey, whichA), "task"},
			"and junk":     {answersOf(sureKey, sureYes, whichKey, whichA, "junk", `{"ignored":true}`, "more", `7`, "Sure", `null`), "task"},
			"junk alone":   {answersOf("junk", `[]`), both},
			"none":         {answersOf(), both},
			"one":          {answersOf(sureKey, sureYes), "input_required[" + whichKey + "]"},
			"the other":    {answersOf(whichKey, whichA), "input_required[" + sureKey + "]"},
			"another case": {answersOf("BEFORE/SURE", sureYes, whichKey, whichA), "input_required[" + sureKey + "]"},
		} {
			r := call(p, "ask_first", c.responses, "").ok()
			if got := strings.TrimSuffix(keys(r), "[]"); got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
			if id := r.text("taskId"); id != "" {
				if done := p.until(id, "completed"); done.get("result", "structuredContent", "done") != true {
					t.Errorf("%s", done.body)
				}
			}
		}
		// Partial answers, as a client gives them that answers only what this round asks.
		r := call(p, "ask_first", answersOf(sureKey, sureYes), "").ok()
		state := r.text("requestState")
		if r = call(p, "ask_first", answersOf(whichKey, whichA), state).ok(); r.text("resultType") != "task" || r.get("requestState") != nil {
			t.Errorf("%s", r.body)
		}
		if r = call(p, "ask_first", answersOf(sureKey, `{"action":"decline"}`, whichKey, whichA), state).ok(); !strings.HasPrefix(toolText(r.Result), "isError: Sure ") {
			t.Errorf("the newer answer counts: %s", r.body)
		}
		for name, c := range map[string]struct{ key, value string }{
			"not a response": {sureKey, `7`}, "null": {sureKey, `null`}, "no action": {sureKey, `{}`}, "another action": {sureKey, `{"action":"x"}`},
			"no content": {sureKey, `{"action":"accept"}`}, "another type": {sureKey, `{"action":"accept","content":{"yes":"yes"}}`},
			"out of the enum":   {whichKey, strings.Replace(whichA, `"one":"a"`, `"one":"c"`, 1)},
			"too few":           {whichKey, strings.Replace(whichA, `["b"]`, `[]`, 1)},
			"no time":           {whichKey, strings.Replace(whichA, `2026-01-02T`, ``, 1)},
			"below the minimum": {whichKey, strings.Replace(whichA, `"one"`, `"count":0,"one"`, 1)},
		} {
			responses := answersOf(sureKey, sureYes, whichKey, whichA)
			responses[c.key] = json.RawMessage(c.value)
			t.Log(name)
			call(p, "ask_first", responses, "").want(http.StatusBadRequest, invalidParams)
		}
		for _, state := range []string{"x", "[]", "7"} {
			call(p, "ask_first", nil, state).want(http.StatusBadRequest, invalidParams)
		}
		p.call("tools/call", map[string]any{"name": "ask_first", "arguments": map[string]any{"name": "n"}, "inputResponses": []int{1}}).want(http.StatusBadRequest, invalidParams)
		call(p, "ask_first", nil, `{"before/Sure":7}`).want(http.StatusBadRequest, invalidParams)
		// Refusals are tool errors.
		for _, refusal := range []string{`{"action":"decline"}`, `{"action":"cancel"}`} {
			for _, peer := range []*peer{p, plain} {
				r := call(peer, "ask_first", answersOf(sureKey, sureYes, whichKey, refusal), "").ok()
				if got := toolText(r.Result); !strings.HasPrefix(got, "isError: Which was asked for and not given: ") {
					t.Errorf("%s", r.body)
				}
			}
		}
		// Without tasks: plain results.
		if r := call(plain, "ask_first", nil, "").ok(); keys(r) != both {
			t.Errorf("%s", r.body)
		}
		if r := call(plain, "ask_first", answersOf(sureKey, sureYes, whichKey, whichA), "").ok(); r.get("structuredContent", "done") != true {
			t.Errorf("%s", r.body)
		}
		for _, peer := range []*peer{p, plain} {
			if r := call(peer, "ask_only", nil, "").ok(); keys(r) != "input_required["+whichKey+"]" {
				t.Errorf("%s", r.body)
			}
			if r := call(peer, "ask_only", answersOf(whichKey, whichA), "").ok(); r.get("isError") != nil {
				t.Errorf("%s", r.body)
			}
		}
		// Arguments first, then who can be asked.
		if r := p.call("tools/call", map[string]any{"name": "ask_first", "arguments": map[string]any{}}).ok(); !strings.HasPrefix(toolText(r.Result), "isError: invalid arguments") {
			t.Errorf("%s", r.body)
		}
		mute := newPeer(t, url, modernRevision, "a")
		if r := call(mute, "ask_first", nil, "").ok(); !strings.HasPrefix(toolText(r.Result), "isError: Sure was asked for and not given: ") {
			t.Errorf("%s", r.body)
		}
		if tasks := tasksOf(t, p); len(tasks) != 3 {
			t.Errorf("%d tasks", len(tasks))
		}
	})
}

// Questions before a task in 2025-11-25: requests on the call's own stream.
func TestBeforeLegacy(t *testing.T) {
	t.Parallel()
	for _, jsonReplies := range []bool{false, true} {
		url := serveAsk(t, setup{bearer: true, http: httpOptions(jsonReplies)})
		for _, augmented := range []bool{false, true} {
			for name, c := range map[string]struct{ sure, which, want string }{
				"accepted":   {`"result":` + sureYes, `"result":` + whichA, ""},
				"declined":   {`"result":{"action":"decline"}`, "", "isError: Sure was asked for and not given: "},
				"dismissed":  {`"result":` + sureYes, `"result":{"action":"cancel"}`, "isError: Which was asked for and not given: "},
				"an error":   {`"error":{"code":-1,"message":"no"}`, "", "isError: Sure was asked for and not given: "},
				"misfitting": {`"result":{"action":"accept","content":{"yes":1}}`, "", "isError: Sure was asked for and not given: "},
			} {
				t.Run(fmt.Sprint(name, " augmented=", augmented, " json=", jsonReplies), func(t *testing.T) {
					t.Parallel()
					p := newAsked(t, url, legacyRevision, "a-"+strings.ReplaceAll(t.Name(), " ", ""), canAll)
					params := map[string]any{"name": "ask_first", "arguments": map[string]any{"name": "n"}}
					if augmented {
						params["task"] = map[string]any{}
					}
					var answer func() json.RawMessage
					var questions *feed
					if jsonReplies {
						questions = p.get()
						done := make(chan json.RawMessage, 1)
						go func() { done <- p.call("tools/call", params).Result }()
						answer = func() json.RawMessage { return <-done }
					} else {
						questions = p.send("tools/call", params)
						answer = func() json.RawMessage { return questions.next().Result }
					}
					p.respond(questions.question("").ID, c.sure)
					if c.which != "" {
						p.respond(questions.question("").ID, c.which)
					}
					result := answer()
					tasks := tasksOf(t, p)
					switch {
					case c.want != "":
						if !strings.HasPrefix(toolText(result), c.want) || len(tasks) != 0 {
							t.Errorf("%s, %v", result, tasks)
						}
					case augmented:
						if len(tasks) != 1 || !strings.Contains(string(result), tasks[0]["taskId"].(string)) {
							t.Fatalf("%s, %v", result, tasks)
						}
						if r := p.task("tasks/result", tasks[0]["taskId"].(string)).ok(); r.get("structuredContent", "done") != true {
							t.Errorf("%s", r.body)
						}
					case !strings.Contains(string(result), `"done":true`) || len(tasks) != 0:
						t.Errorf("%s, %v", result, tasks)
					}
				})
			}
		}
	}
	// Nobody to ask, and a client that leaves.
	url := serveAsk(t, setup{bearer: true})
	mute := newPeer(t, url, legacyRevision, "a")
	if r := mute.call("tools/call", map[string]any{"name": "ask_only", "arguments": map[string]any{}}).ok(); !strings.HasPrefix(toolText(r.Result), "isError: Which was") {
		t.Errorf("%s", r.body)
	}
	p := newAsked(t, url, legacyRevision, "a", canAll)
	f := p.send("tools/call", map[string]any{"name": "ask_first", "arguments": map[string]any{"name": "n"}, "task": map[string]any{}})
	q := f.question("")
	f.stop()
	p.respond(q.ID, `"result":{"action":"decline"}`)
	if tasks := tasksOf(t, p); len(tasks) != 0 {
		t.Errorf("%v", tasks)
	}
}
