package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// asks is the member with questions under the given keys.
func asks(keys ...string) string {
	var requests []string
	for _, key := range keys {
		requests = append(requests, fmt.Sprintf(`%q:{"method":"elicitation/create","params":{"mode":"form","message":"%s?","requestedSchema":%s}}`, key, key, wiretest.NoteSpec.Schema))
	}
	return `"inputRequests":{` + strings.Join(requests, ",") + `}`
}

// noting answers each question with a note of its message.
func noting(asked *atomic.Int32) mcptask.Answerer {
	return mcptask.Answer(wiretest.NoteSpec, func(_ context.Context, q mcptask.Question) (wiretest.NoteInput, error) {
		asked.Add(1)
		return wiretest.NoteInput{Note: strings.TrimSuffix(q.Message, "?")}, nil
	})
}

// wantNumbers is wantNumber for several callers that wait for one call, whose number is 1.
func wantNumbers(t testing.TB, call *mcptask.Call[number]) {
	t.Helper()
	wiretest.RunTogether(5, func(int) { wantNumber(t, call, 1) })
}

// updates lists the answers of all updates, as key=response.
func updates(s *scripted) []string {
	var sent []string
	for _, c := range s.of("tasks/update") {
		var responses map[string]json.RawMessage
		if err := json.Unmarshal([]byte(c.member("inputResponses")), &responses); err != nil {
			s.t.Errorf("%s", c.params)
		}
		for key, response := range responses {
			sent = append(sent, key+"="+string(response))
		}
	}
	slices.Sort(sent)
	return sent
}

// TestOneAnswerAKey: the client answers each question once, under its own key, and follows the task to its end. It may
// see the question often: in polls, in notifications, in both at once, or in the waits of several callers.
func TestOneAnswerAKey(t *testing.T) {
	rules.Covers(t, "E-38", "E-39", "E-40", "E-41", "E-45", "E-49", "E-88", "E-96")
	answered := func(key string) string { return key + `={"action":"accept","content":{"note":"` + key + `"}}` }
	t.Run("polls", inBubble(func(t *testing.T) {
		var asked atomic.Int32
		s := polled(t, wiretest.ModernRevision, func(s *scripted, n int) reply {
			switch {
			case n <= 3:
				return s.state("t", "input_required", asks("a"))
			case n <= 6: // the server is slow to take the answer, and asks another question
				return s.state("t", "input_required", asks("a", "b"))
			case n <= 8:
				return s.state("t", "working")
			}
			return s.done()
		})
		wantNumbers(t, start(t, s.connect(gosdk.ClientOptions{Answer: noting(&asked)})))
		if got := updates(s); fmt.Sprint(got) != fmt.Sprint([]string{answered("a"), answered("b")}) || asked.Load() != 2 {
			t.Errorf("asked %d times, sent %v", asked.Load(), got)
		}
		if n := len(s.of("tasks/get")); n != 9 {
			t.Errorf("%d polls", n)
		}
	}))
	t.Run("notifications and polls that cross", overEachWay(func(t *testing.T, connect connector) {
		b := newBoard(t)
		var asked atomic.Int32
		crossing := func(c call) reply { // a notification comes during this slow poll
			r := b.serve(c)
			if c.method == "tasks/get" && c.n == 1 {
				b.set("t1", "input_required", asks("a"))
				r = b.serve(c)
				time.Sleep(100 * time.Millisecond)
				b.set("t1", "input_required", asks("a", "b"))
				time.Sleep(500 * time.Millisecond)
			}
			return r
		}
		b.answer = crossing
		call := start(t, connect(&b.scripted, gosdk.ClientOptions{Answer: noting(&asked)}))
		go func() {
			time.Sleep(20 * time.Second)
			b.set("t1", "input_required", asks("b", "c"))
			b.set("t1", "input_required", asks("b", "c"))
			time.Sleep(10 * time.Second)
			b.set("t1", "completed", `"result":`+output(1))
		}()
		wantNumbers(t, call)
		if got := updates(&b.scripted); fmt.Sprint(got) != fmt.Sprint([]string{answered("a"), answered("b"), answered("c")}) || asked.Load() != 3 {
			t.Errorf("asked %d times, sent %v", asked.Load(), got)
		}
	}))
	t.Run("one of several leaves", inBubble(func(t *testing.T) {
		var asked atomic.Int32
		s := polled(t, wiretest.ModernRevision, func(s *scripted, n int) reply {
			if n <= 30 {
				return s.state("t", "input_required", asks("a"))
			}
			return s.done()
		})
		call := start(t, s.connect(gosdk.ClientOptions{Answer: mcptask.Answer(wiretest.NoteSpec, func(ctx context.Context, _ mcptask.Question) (wiretest.NoteInput, error) {
			asked.Add(1)
			select {
			case <-time.After(10 * time.Second): // the caller that asked first has left
			case <-ctx.Done():
			}
			return wiretest.NoteInput{Note: "a"}, ctx.Err()
		})}))
		var waiting sync.WaitGroup
		for _, patience := range []time.Duration{5 * time.Second, time.Hour} {
			ctx := within(t, patience)
			waiting.Go(func() {
				if _, err := call.Wait(ctx); err != nil && (patience == time.Hour || !errors.Is(err, context.DeadlineExceeded)) {
					t.Error(err)
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
		waiting.Wait()
		if got := updates(s); len(got) != 1 || asked.Load() != 1 {
			t.Errorf("asked %d times, sent %v", asked.Load(), got)
		}
	}))
	t.Run("the answerer decides", inBubble(func(t *testing.T) {
		s := polled(t, wiretest.ModernRevision, func(s *scripted, n int) reply {
			if n <= 2 {
				return s.state("t", "input_required", asks("a"))
			}
			return s.done()
		})
		call := start(t, s.connect(gosdk.ClientOptions{Answer: mcptask.Answer(wiretest.NoteSpec, func(_ context.Context, q mcptask.Question) (wiretest.NoteInput, error) {
			if q.TaskID != "t" || q.Key != "a" || q.Message != "a?" || q.Method != "elicitation/create" {
				t.Errorf("%+v", q)
			}
			return wiretest.NoteInput{}, mcptask.ErrDeclined
		})}))
		if _, err := call.Wait(t.Context()); err != nil || fmt.Sprint(updates(s)) != `[a={"action":"decline"}]` {
			t.Errorf("%v, sent %v", err, updates(s))
		}
	}))
}

// TestQuestionsOfALegacyTask: if a task of 2025-11-25 asks, the client waits for its result while it polls, and answers
// the question on whichever stream it comes. A broken stream ends nothing.
func TestQuestionsOfALegacyTask(t *testing.T) {
	rules.Covers(t, "C-32", "C-42", "C-43", "C-51", "C-53")
	checkQuestionsOfATask(t, wiretest.LegacyRevision)
}

func TestCandidateQuestions(t *testing.T) {
	rules.Covers(t, "B-48")
	checkQuestionsOfATask(t, wiretest.CandidateRevision)
}

func checkQuestionsOfATask(t *testing.T, revision string) {
	t.Helper()
	ask := func(id string) string {
		return `{"jsonrpc":"2.0","id":"` + id + `","method":"elicitation/create","params":{"mode":"form","message":"` + id + `?","requestedSchema":` +
			wiretest.NoteSpec.Schema + `,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}`
	}
	for name, breaks := range map[string]bool{"to its end": false, "broken off": true} {
		t.Run(name, inBubble(func(t *testing.T) {
			s := &scripted{t: t, revision: revision}
			var answers atomic.Int32
			standing := make(chan func(string), 1)
			s.answer = func(c call) reply {
				switch c.method {
				case "HTTP GET":
					return reply{stream: func(send func(string)) {
						standing <- send
						<-c.ctx.Done()
					}}
				case "tasks/get":
					if answers.Load() < 2 {
						return s.state("t", "input_required")
					}
				case "tasks/result":
					if answers.Load() == 2 {
						return reply{}
					}
					return reply{stream: func(send func(string)) {
						send(ask("first"))
						if breaks {
							return
						}
						<-c.ctx.Done()
					}}
				case "": // an answer
					if answers.Add(1) == 1 {
						go func() { (<-standing)(ask("second")) }()
					}
				}
				return reply{}
			}
			var asked atomic.Int32
			conn := s.connect(gosdk.ClientOptions{Answer: noting(&asked)})
			call := start(t, conn)
			if out, err := call.Wait(t.Context()); err != nil || out.N != 1 || asked.Load() != 2 || answers.Load() != 2 {
				t.Errorf("%+v, %v, asked %d times, answered %d", out, err, asked.Load(), answers.Load())
			}
			if n := len(s.of("tasks/get")); n < 2 {
				t.Errorf("%d polls", n)
			}
			if n := len(s.of("tasks/result")); n < 2 {
				t.Errorf("%d waits for the result", n)
			}
		}))
	}
}

// hostileSchemas are schemas that crash or stall a program that compiles or follows them.
var hostileSchemas = map[string]string{
	"itself":       `{"$ref":"#"}`,
	"a union":      `{"type":"object","allOf":[{"$ref":"#"}]}`,
	"a property":   `{"type":"object","properties":{"approve":{"type":"boolean","$ref":"#"}}}`,
	"any property": `{"type":"object","additionalProperties":{"$ref":"#"}}`,
	"a number":     `{"type":"object","properties":{"n":{"type":"number","minimum":1e-9999999}}}`,
}

// hostileQuestion returns a question that the client has an answerer for.
func hostileQuestion(schema string) string {
	return fmt.Sprintf(`{"message":"?","requestedSchema":%s,"_meta":{"io.github.mcptaskgen/input":"Approval"}}`, schema)
}

// TestHostileSchemas: the client refuses a question whose schema the protocol does not allow, and does not ask the
// person. Following such a schema would crash the process.
func TestHostileSchemas(t *testing.T) {
	for name, schema := range hostileSchemas {
		t.Run(name, func(t *testing.T) {
			if name != "a number" { // by then the SDK has decoded it as a float64
				t.Run("a request", func(t *testing.T) { hostileRequest(t, wiretest.LegacyRevision, schema, "") })
				t.Run("a request of the candidate", func(t *testing.T) { hostileRequest(t, wiretest.CandidateRevision, schema, "") })
			}
			t.Run("a task", func(t *testing.T) { hostileRequest(t, wiretest.LegacyRevision, schema, `,"task":{}`) })
			t.Run("an input request", func(t *testing.T) { hostileInput(t, schema, false) })
			t.Run("before the task", func(t *testing.T) { hostileInput(t, schema, true) })
		})
	}
}

// approver approves, and fails the test if it is called.
func approver(t *testing.T) mcptask.Answerer {
	return pipeline.AnswerApproval(func(context.Context, mcptask.Question) (pipeline.Approval, error) {
		t.Error("the person was asked")
		return pipeline.Approval{Approve: true}, nil
	})
}

// hostileRequest sends a hostile question on the stream of tasks/result.
func hostileRequest(t *testing.T, revision, schema, task string) {
	bubble.Test(t, func(t *testing.T) {
		s := &scripted{t: t, revision: revision}
		var mu sync.Mutex
		answers := map[string]json.RawMessage{} // by request
		s.heard = func(body []byte) {
			var m struct{ ID, Result, Error json.RawMessage }
			if json.Unmarshal(body, &m) == nil && (m.Result != nil || m.Error != nil) {
				mu.Lock()
				defer mu.Unlock()
				answers[string(m.ID)] = append(m.Error, m.Result...)
			}
		}
		got := func(id string) string {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			return string(answers[id])
		}
		s.answer = func(c call) reply {
			switch c.method {
			case "tasks/get":
				return s.state("t", "input_required")
			case "tasks/result":
				return reply{stream: func(send func(string)) {
					params := hostileQuestion(schema)
					send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":%s%s}`, strings.TrimSuffix(params, "}"), task+"}"))
					answer := got(`"q"`)
					if task != "" && !strings.Contains(answer, "requestedSchema") { // a plain question is refused before there is a task
						var created struct {
							Task struct{ TaskID string }
						}
						if err := json.Unmarshal([]byte(answer), &created); err != nil {
							t.Errorf("%s: %v", answer, err)
						}
						send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"r","method":"tasks/result","params":{"taskId":%q}}`, created.Task.TaskID))
						answer = got(`"r"`)
					}
					if !strings.Contains(answer, `"code":-32602`) || !strings.Contains(answer, "requestedSchema") {
						t.Errorf("the question was answered with %s", answer)
					}
					<-c.ctx.Done()
				}}
			}
			return reply{}
		}
		ctx := within(t, time.Minute)
		if _, err := start(t, s.connect(gosdk.ClientOptions{Answer: approver(t)})).Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if got(`"q"`) == "" {
			t.Error("nothing was answered")
		}
	})
}

// hostileInput asks in 2026-07-28. There, the client cannot answer a question with an error.
func hostileInput(t *testing.T, schema string, before bool) {
	bubble.Test(t, func(t *testing.T) {
		s := &scripted{t: t, revision: wiretest.ModernRevision}
		asks := fmt.Sprintf(`{"ship":{"method":"elicitation/create","params":%s}}`, hostileQuestion(schema))
		s.answer = func(c call) reply {
			switch {
			case c.method == "tools/call" && before && c.n == 1:
				return result(`{"resultType":"input_required","inputRequests":%s}`, asks)
			case c.method == "tasks/get" && !before && len(s.of("tasks/update")) == 0:
				return s.state("t", "input_required", `"inputRequests":`+asks)
			}
			return reply{}
		}
		ctx := within(t, time.Minute)
		if out, err := start(t, s.connect(gosdk.ClientOptions{Answer: approver(t)})).Wait(ctx); err != nil || out.N != 1 {
			t.Errorf("%+v, %v", out, err)
		}
		calls := append(s.of("tasks/update"), s.of("tools/call")[1:]...)
		if len(calls) != 1 || calls[0].member("inputResponses", "ship") != `{"action":"cancel"}` {
			t.Errorf("answered %d times: %+v", len(calls), calls)
		}
	})
}
