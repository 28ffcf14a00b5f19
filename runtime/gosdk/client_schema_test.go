package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// hostileSchemas are schemas that end, or hold up, who compiles or follows them.
var hostileSchemas = map[string]string{
	"itself":       `{"$ref":"#"}`,
	"a union":      `{"type":"object","allOf":[{"$ref":"#"}]}`,
	"a property":   `{"type":"object","properties":{"approve":{"type":"boolean","$ref":"#"}}}`,
	"any property": `{"type":"object","additionalProperties":{"$ref":"#"}}`,
	"a number":     `{"type":"object","properties":{"n":{"type":"number","minimum":1e-9999999}}}`,
}

// hostileQuestion is a question that the client has an answerer for.
func hostileQuestion(schema string) string {
	return fmt.Sprintf(`{"message":"?","requestedSchema":%s,"_meta":{"io.github.mcptaskgen/input":"Approval"}}`, schema)
}

// TestHostileSchemas: a question whose schema is not what the protocol allows is
// refused to the server, and nobody is asked: following it would end the process.
func TestHostileSchemas(t *testing.T) {
	for name, schema := range hostileSchemas {
		t.Run(name, func(t *testing.T) {
			if name != "a number" { // the SDK has made a double of it by then
				t.Run("a request", func(t *testing.T) { hostileRequest(t, wiretest.LegacyRevision, schema, "") })
				t.Run("a request of the candidate", func(t *testing.T) { hostileRequest(t, wiretest.CandidateRevision, schema, "") })
			}
			t.Run("a task", func(t *testing.T) { hostileRequest(t, wiretest.LegacyRevision, schema, `,"task":{}`) })
			t.Run("an input request", func(t *testing.T) { hostileInput(t, schema, false) })
			t.Run("before the task", func(t *testing.T) { hostileInput(t, schema, true) })
		})
	}
}

// approver approves and fails the test.
func approver(t *testing.T) mcptask.Answerer {
	return pipeline.AnswerApproval(func(context.Context, mcptask.Question) (pipeline.Approval, error) {
		t.Error("the person was asked")
		return pipeline.Approval{Approve: true}, nil
	})
}

// hostileRequest asks beside the answer to tasks/result.
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
					if task != "" && !strings.Contains(answer, "requestedSchema") { // else it is refused before there is a task
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

// hostileInput asks in 2026-07-28, where a question has no error for an answer.
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
