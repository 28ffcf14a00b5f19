package gosdk_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

func TestFallbackQuestions(t *testing.T) {
	t.Parallel()
	const wait = time.Minute // far more than anything here takes
	eachPlainPeer(t, wait, func(t *testing.T, p *peer, _ func()) {
		for tool, key := range map[string]string{"slow_ask": "note", "slow_ask_first": "before/Note"} {
			begun := time.Now()
			r := p.tool(tool, nil)
			id := r.goesOn("input_required")
			if text := r.content(); !strings.Contains(text, "A note?") || !strings.Contains(text, `slow_task_answer with {"question":"`+key+`","task":"`+id+`"}`) ||
				!strings.Contains(text, `"maxLength":5`) {
				t.Errorf("the text does not say how to answer: %s", text)
			}
			if p.tool("slow_task_result", map[string]any{"task": id}).goesOn("input_required"); time.Since(begun) >= wait {
				t.Errorf("waited for an answer that cannot come")
			}
			answer := func(question string, value any) *response {
				return p.tool("slow_task_answer", map[string]any{"task": id, "question": question, "answer": value})
			}
			answer("other", map[string]any{"note": "a"}).wantText(true, "no question")
			answer(key, map[string]any{"note": "too long"}).wantText(true, "still open")
			answer(key, "text").wantText(true, "still open")
			answer(key, map[string]any{"note": "milk"}).ok()
			p.tool("slow_task_result", map[string]any{"task": id}).wantText(false, "noted milk")
			answer(key, map[string]any{"note": "late"}).wantText(true, "no question")

			id = p.tool(tool, nil).goesOn("input_required")
			answer(key, nil).ok()
			p.tool("slow_task_result", map[string]any{"task": id}).wantText(true, "declined")
		}
	})
}

// A client with elicitation is asked on the stream of the call that is open.
func TestFallbackElicitation(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2025-06-18", legacyRevision} {
		for _, tool := range []string{"slow_ask", "slow_ask_first"} {
			t.Run(revision+" "+tool, func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) {
					const wait = time.Minute // far more than anything here takes
					serve := func(wait time.Duration) *peer {
						url, _ := serveWith(t, setup{tools: []mcptask.Tools{slowTools(wait, nil)}})
						return newPeerThat(t, url, revision, "", `{"elicitation":{}}`)
					}
					p := serve(wait)
					// asked calls and answers; "" leaves the question open, "!" fails.
					asked := func(tool string, arguments map[string]any, answer string) *response {
						t.Helper()
						body, edits := p.request("tools/call", map[string]any{"name": tool, "arguments": arguments})
						res, err := p.client.Do(p.start(t.Context(), http.MethodPost, body, edits...))
						if err != nil {
							t.Fatal(err)
						}
						defer res.Body.Close()
						r := &response{t: t, status: res.StatusCode}
						questions := 0
						for message := range events(res.Body) {
							var m struct {
								ID     json.RawMessage
								Method string
							}
							if err := json.Unmarshal(message, &m); err != nil {
								t.Fatal(err)
							}
							switch m.Method {
							case "elicitation/create":
								questions++
								switch answer {
								case "":
								case "!":
									p.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no window"}}`, m.ID))
								default:
									p.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"note":%q}}}`, m.ID, answer))
								}
							case "":
								r.body = message
								if err := json.Unmarshal(message, r); err != nil {
									t.Fatal(err)
								}
							}
						}
						if questions != 1 {
							t.Errorf("asked %d times", questions)
						}
						return r
					}
					asked(tool, nil, "milk").wantText(false, "noted milk")
					// One that cannot show the question: the model may pass it on.
					started := time.Now()
					r := asked(tool, nil, "!")
					if r.goesOn("input_required"); time.Since(started) >= wait || !strings.Contains(r.content(), "slow_task_answer") {
						t.Errorf("%v: %s", time.Since(started), r.content())
					}
					// One that the person leaves open is asked again, until the wait is over.
					p = serve(5 * time.Second)
					r = asked(tool, nil, "")
					id := r.goesOn("input_required")
					if text := r.content(); !strings.Contains(text, "asked when slow_task_result is called") {
						t.Errorf("%s", text)
					}
					asked("slow_task_result", map[string]any{"task": id}, "eggs").wantText(false, "noted eggs")
				})
			})
		}
	}
	t.Run(modernRevision, func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url, _ := serveWith(t, setup{tools: []mcptask.Tools{slowTools(time.Minute, nil)}})
			p := newPeerThat(t, url, modernRevision, "", `{"elicitation":{}}`)
			id := p.tool("slow_ask", nil).goesOn("input_required")
			result := map[string]any{"name": "slow_task_result", "arguments": map[string]any{"task": id}}
			r := p.call("tools/call", result).ok()
			if r.text("resultType") != "input_required" || r.text("inputRequests", "note", "params", "message") != "A note?" {
				t.Fatalf("%s", r.body)
			}
			result["inputResponses"] = map[string]any{"note": map[string]any{"action": "accept", "content": map[string]any{"note": "milk"}}}
			p.call("tools/call", result).wantText(false, "noted milk")
			// Before the task, the revision's own way stays.
			if r := p.tool("slow_ask_first", nil).ok(); r.text("resultType") != "input_required" {
				t.Errorf("%s", r.body)
			}
		})
	})
}
