package edgetest

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
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
		mcptask.NewTool(mcptask.ToolSpec{Name: "ask_number", InputSchema: wiretest.OpenObject, Policy: policy},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				answer, err := mcptask.Ask[number](ctx, task, spec, "step", "")
				return "got " + answer.N.String(), err
			}),
	}}
}

// TestPoisonNumbersOverHTTP sends a number that has crashed servers, as an argument and as the
// answer of an unknown client. A panic in the log fails the test.
func TestPoisonNumbersOverHTTP(t *testing.T) {
	t.Parallel()
	const want = "n: the number 1e-9999999 is out of range"
	poison := json.RawMessage(`{"n":1e-9999999}`)
	answer := func(content string) string { return `{"action":"accept","content":` + content + `}` }
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url, _ := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{poisonTools()}})
				p := wiretest.NewAskedPeer(t, url, revision, "", wiretest.AllCapabilities)

				r := p.Call("tools/call", map[string]any{"name": "take_number", "arguments": poison}).OK()
				if r.Get("isError") != true || !strings.Contains(wiretest.ToolText(r.Result), want) {
					t.Errorf("a plain call: %s", r.Body)
				}
				for _, literal := range []string{"1E400", "5e-324"} { // the SDK stumbles over them
					r := p.Call("tools/call", map[string]any{"name": "take_number", "arguments": json.RawMessage(`{"n":` + literal + `}`)}).OK()
					if r.Get("isError") != true || !strings.Contains(wiretest.ToolText(r.Result), "n: the number "+literal+" is out of range") {
						t.Errorf("%s: %s", literal, r.Body)
					}
				}
				if revision == wiretest.LegacyRevision {
					r := p.Call("tools/call", map[string]any{"name": "take_number", "arguments": poison, "task": map[string]any{}}).Want(http.StatusOK, wiretest.InvalidParams)
					if !strings.Contains(r.Error.Message, want) {
						t.Errorf("a task: %s", r.Body)
					}
				}

				id := p.Create("ask_number", nil)
				p.Until(id, "input_required")
				if revision == wiretest.LegacyRevision {
					feed := p.Result(id)
					p.Respond(feed.NextQuestion(id).ID, `"result":`+answer(string(poison)))
					if last := feed.Next(); !strings.Contains(wiretest.ToolText(last.Result), want) {
						t.Errorf("an answer: %s", last.Text)
					}
				} else {
					update := func(content string) *wiretest.Response {
						return p.Call("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{"step": json.RawMessage(answer(content))}})
					}
					if r := update(string(poison)); r.Error == nil || r.Error.Code != wiretest.InvalidParams || !strings.Contains(r.Error.Message, want) {
						t.Errorf("an answer: %s", r.Body)
					}
					update(`{"n":7.50}`).OK()
					if got := p.TaskText(id); got != "got 7.50" {
						t.Errorf("after a good answer: %s", got)
					}
				}

				if got := p.TaskText(p.Create("take_number", map[string]any{"n": json.RawMessage("1e0")})); got != "took 1e0" {
					t.Errorf("afterwards: %s", got)
				}
			})
		})
	}
}
