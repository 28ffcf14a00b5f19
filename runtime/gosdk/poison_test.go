package gosdk_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// poisonTools take and ask for numbers between 0 and 10.
func poisonTools() mcptask.Tools {
	type number struct {
		N json.Number `json:"n"`
	}
	const schema = `{"type":"object","properties":{"n":{"type":"number","minimum":0,"maximum":10}}}`
	spec := mcptask.InputSpec{Name: "Number", Message: "How many?", Schema: schema}
	policy := mcptask.Policy{Task: mcptask.TaskOptional}
	return mcptask.Tools{Service: "Poison", Impl: struct{}{}, Fallback: mcptask.FallbackNone, Tools: []mcptask.Tool{
		mcptask.NewTool(mcptask.ToolSpec{Name: "take_number", InputSchema: schema, Policy: policy},
			func(_ context.Context, _ *mcptask.Task, in number) (string, error) {
				return "took " + in.N.String(), nil
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "ask_number", InputSchema: openObject, Policy: policy},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				answer, err := mcptask.Ask[number](ctx, task, spec, "step", "")
				return "got " + answer.N.String(), err
			}),
	}}
}

// TestPoisonNumbersOverHTTP sends a number that has ended servers, as an argument and as an
// answer of a client that nobody knows. A panic in the log fails the test.
func TestPoisonNumbersOverHTTP(t *testing.T) {
	t.Parallel()
	const want = "n: the number 1e-9999999 is out of range"
	poison := json.RawMessage(`{"n":1e-9999999}`)
	answer := func(content string) string { return `{"action":"accept","content":` + content + `}` }
	for _, revision := range []string{legacyRevision, modernRevision} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url, _ := serveWith(t, setup{tools: []mcptask.Tools{poisonTools()}})
				p := newAsked(t, url, revision, "", canAll)

				r := p.call("tools/call", map[string]any{"name": "take_number", "arguments": poison}).ok()
				if r.get("isError") != true || !strings.Contains(toolText(r.Result), want) {
					t.Errorf("a plain call: %s", r.body)
				}
				for _, literal := range []string{"1E400", "5e-324"} { // the SDK stumbles over them
					r := p.call("tools/call", map[string]any{"name": "take_number", "arguments": json.RawMessage(`{"n":` + literal + `}`)}).ok()
					if r.get("isError") != true || !strings.Contains(toolText(r.Result), "n: the number "+literal+" is out of range") {
						t.Errorf("%s: %s", literal, r.body)
					}
				}
				if revision == legacyRevision {
					r := p.call("tools/call", map[string]any{"name": "take_number", "arguments": poison, "task": map[string]any{}}).want(http.StatusOK, invalidParams)
					if !strings.Contains(r.Error.Message, want) {
						t.Errorf("a task: %s", r.body)
					}
				}

				id := p.create("ask_number", nil)
				p.until(id, "input_required")
				if revision == legacyRevision {
					feed := p.result(id)
					p.respond(feed.question(id).ID, `"result":`+answer(string(poison)))
					if last := feed.next(); !strings.Contains(toolText(last.Result), want) {
						t.Errorf("an answer: %s", last.text)
					}
				} else {
					update := func(content string) *response {
						return p.call("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{"step": json.RawMessage(answer(content))}})
					}
					if r := update(string(poison)); r.Error == nil || r.Error.Code != invalidParams || !strings.Contains(r.Error.Message, want) {
						t.Errorf("an answer: %s", r.body)
					}
					update(`{"n":7.50}`).ok()
					if got := p.outcome(id); got != "got 7.50" {
						t.Errorf("after a good answer: %s", got)
					}
				}

				if got := p.outcome(p.create("take_number", map[string]any{"n": json.RawMessage("1e0")})); got != "took 1e0" {
					t.Errorf("afterwards: %s", got)
				}
			})
		})
	}
}
