package edgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

func TestFallbackQuestions(t *testing.T) {
	t.Parallel()
	const wait = time.Minute // far more than anything here takes
	eachPlainPeer(t, wait, func(t *testing.T, p *wiretest.Peer, _ func()) {
		for tool, key := range map[string]string{"slow_ask": "note", "slow_ask_first": "before/Note"} {
			begun := time.Now()
			r := p.CallTool(tool, nil)
			id := r.WantTask("input_required")
			if text := r.Content(); !strings.Contains(text, "A note?") || !strings.Contains(text, `slow_task_answer with {"question":"`+key+`","task":"`+id+`"}`) ||
				!strings.Contains(text, `"maxLength":5`) {
				t.Errorf("the text does not say how to answer: %s", text)
			}
			if p.CallTool("slow_task_result", map[string]any{"task": id}).WantTask("input_required"); time.Since(begun) >= wait {
				t.Errorf("waited for an answer that cannot come")
			}
			answer := func(question string, value any) *wiretest.Response {
				return p.CallTool("slow_task_answer", map[string]any{"task": id, "question": question, "answer": value})
			}
			answer("other", map[string]any{"note": "a"}).WantText(true, "no question")
			answer(key, map[string]any{"note": "too long"}).WantText(true, "still open")
			answer(key, "text").WantText(true, "still open")
			answer(key, map[string]any{"note": "milk"}).OK()
			p.CallTool("slow_task_result", map[string]any{"task": id}).WantText(false, "noted milk")
			answer(key, map[string]any{"note": "late"}).WantText(true, "no question")

			id = p.CallTool(tool, nil).WantTask("input_required")
			answer(key, nil).OK()
			p.CallTool("slow_task_result", map[string]any{"task": id}).WantText(true, "declined")
		}
	})
}

// TestFallbackElicitation checks that a client with elicitation is asked on the stream of its open
// call.
func TestFallbackElicitation(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2025-06-18", wiretest.LegacyRevision} {
		for _, tool := range []string{"slow_ask", "slow_ask_first"} {
			t.Run(revision+" "+tool, func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) {
					const wait = time.Minute // far more than anything here takes
					serve := func(wait time.Duration) *wiretest.Peer {
						url, _ := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{slowTools(wait, nil)}})
						return wiretest.NewPeerWith(t, url, revision, "", `{"elicitation":{}}`)
					}
					p := serve(wait)
					// asked calls and answers; "" leaves the question open, "!" fails.
					asked := func(tool string, arguments map[string]any, answer string) *wiretest.Response {
						t.Helper()
						body, edits := p.Request("tools/call", map[string]any{"name": tool, "arguments": arguments})
						res, err := p.Client.Do(p.NewRequest(t.Context(), http.MethodPost, body, edits...))
						if err != nil {
							t.Fatal(err)
						}
						defer res.Body.Close()
						r := &wiretest.Response{T: t, Status: res.StatusCode}
						questions := 0
						for message := range wiretest.Events(res.Body) {
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
									p.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no window"}}`, m.ID))
								default:
									p.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"note":%q}}}`, m.ID, answer))
								}
							case "":
								r.Body = message
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
					asked(tool, nil, "milk").WantText(false, "noted milk")
					// One that cannot show the question: the model may pass it on.
					started := time.Now()
					r := asked(tool, nil, "!")
					if r.WantTask("input_required"); time.Since(started) >= wait || !strings.Contains(r.Content(), "slow_task_answer") {
						t.Errorf("%v: %s", time.Since(started), r.Content())
					}
					// One that the person leaves open is asked again, until the wait is over.
					p = serve(5 * time.Second)
					r = asked(tool, nil, "")
					id := r.WantTask("input_required")
					if text := r.Content(); !strings.Contains(text, "asked when slow_task_result is called") {
						t.Errorf("%s", text)
					}
					asked("slow_task_result", map[string]any{"task": id}, "eggs").WantText(false, "noted eggs")
				})
			})
		}
	}
	t.Run(wiretest.ModernRevision, func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url, _ := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{slowTools(time.Minute, nil)}})
			p := wiretest.NewPeerWith(t, url, wiretest.ModernRevision, "", `{"elicitation":{}}`)
			id := p.CallTool("slow_ask", nil).WantTask("input_required")
			result := map[string]any{"name": "slow_task_result", "arguments": map[string]any{"task": id}}
			r := p.Call("tools/call", result).OK()
			if r.Text("resultType") != "input_required" || r.Text("inputRequests", "note", "params", "message") != "A note?" {
				t.Fatalf("%s", r.Body)
			}
			result["inputResponses"] = map[string]any{"note": map[string]any{"action": "accept", "content": map[string]any{"note": "milk"}}}
			p.Call("tools/call", result).WantText(false, "noted milk")
			// Before the task, the revision's own way stays.
			if r := p.CallTool("slow_ask_first", nil).OK(); r.Text("resultType") != "input_required" {
				t.Errorf("%s", r.Body)
			}
		})
	})
}
