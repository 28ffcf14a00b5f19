package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestShowTask checks that open questions stand in the status message, and nothing else of the
// task changes but the status in 2026-07-28.
func TestShowTask(t *testing.T) {
	tool := func(name string, policy mcptask.Policy) mcptask.Tool {
		return mcptask.NewTool(mcptask.ToolSpec{Name: name, InputSchema: `{"type":"object"}`, Policy: policy},
			func(context.Context, *mcptask.Task, struct{}) (string, error) { return "", nil })
	}
	optional := mcptask.Policy{Task: mcptask.TaskOptional}
	server, err := taskserver.New(taskserver.Options{},
		mcptask.Tools{Service: "A", Impl: 1, Prefix: "a_", Fallback: mcptask.FallbackTools, Asks: true, Tools: []mcptask.Tool{tool("a_ship", optional)}},
		mcptask.Tools{Service: "C", Impl: 1, Asks: true, Tools: []mcptask.Tool{tool("c_ship", optional)}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	form := func(key, message string) taskstore.Input {
		return taskstore.Input{Request: mcptask.Request{Key: key, Method: "elicitation/create",
			Params: json.RawMessage(fmt.Sprintf(`{"message":%q}`, message)),
			Schema: json.RawMessage(`{"type":"object","properties":{"sure":{"type":"boolean"},"count":{"type":"integer"}}}`)}, State: taskstore.InputOutstanding}
	}
	url := taskstore.Input{Request: mcptask.Request{Key: "pay", Method: "elicitation/create", Params: json.RawMessage(`{"message":"Pay.","url":"https://example.com/"}`)}, State: taskstore.InputOutstanding}
	roots := taskstore.Input{Request: mcptask.Request{Key: "where", Method: "roots/list"}, State: taskstore.InputOutstanding}
	sample := taskstore.Input{Request: mcptask.Request{Key: "sum", Method: "sampling/createMessage",
		Params: json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":"One."}},{"role":"user","content":{"type":"text","text":"Two."}}]}`)}, State: taskstore.InputOutstanding}
	answered := form("before", "Done?")
	answered.State = taskstore.InputAnswered
	const hint = ` To answer, call the tool a_task_answer with {"task":"T","question":"ship","answer":{"count":<integer>,"sure":<boolean>}}.`
	for name, test := range map[string]struct {
		tool   string
		inputs []taskstore.Input
		canAsk []string
		want   string
		status string // in 2026-07-28
	}{
		"settled":           {"a_ship", []taskstore.Input{answered}, nil, "building", "working"},
		"one":               {"a_ship", []taskstore.Input{answered, form("ship", "Ship it?")}, []string{"elicitation/create"}, "Ship it?", "input_required"},
		"two":               {"a_ship", []taskstore.Input{form("ship", "Ship it?"), url}, []string{"elicitation/create"}, "(1) Ship it? (2) Pay. Open https://example.com/", "input_required"},
		"without text":      {"c_ship", []taskstore.Input{form("ship", "")}, nil, `The tool asks for "ship".`, "working"},
		"for the model":     {"a_ship", []taskstore.Input{sample}, nil, "The tool asks the client's model for a message. It is to answer: Two.", "working"},
		"for roots":         {"a_ship", []taskstore.Input{roots}, []string{"elicitation/create"}, "The tool asks which directories the user has opened at the client.", "working"},
		"mute":              {"a_ship", []taskstore.Input{form("ship", "Ship it?")}, nil, "Ship it?" + hint, "working"},
		"mute, no fallback": {"c_ship", []taskstore.Input{form("ship", "Ship it?")}, nil, "Ship it?", "working"},
		"partly mute":       {"a_ship", []taskstore.Input{roots, form("ship", "Ship it?")}, []string{"roots/list"}, "(1) The tool asks which directories the user has opened at the client. (2) Ship it?" + hint, "input_required"},
		"an odd key": {"a_ship", []taskstore.Input{form("a\a\U000e0001", "Ship it?")}, nil,
			"Ship it?" + strings.Replace(hint, `"ship"`, "\"a\\u0007\U000e0001\"", 1), "working"},
		"a long one, and mute": {"a_ship", []taskstore.Input{form("ship", strings.Repeat("ä", 3000))}, nil, strings.Repeat("ä", 256) + "…" + hint, "working"},
	} {
		t.Run(name, func(t *testing.T) {
			r := taskstore.Record{ID: "T", Tool: test.tool, Phase: taskstore.PhaseInputRequired, StatusMessage: "building", Inputs: test.inputs, Claim: taskstore.Claim{Worker: "w"}}
			if name == "settled" {
				r.Phase = taskstore.PhaseRunning
			}
			caller := taskserver.Caller{CanAsk: test.canAsk, Revision: mcptask.Revision20260728}
			shown, err := projectVisible20260728(t.Context(), server.Backend(), caller, r)
			if err != nil || shown.StatusMessage != test.want || shown.Status != test.status || (len(shown.InputRequests) > 0) != (test.status == "input_required") {
				t.Errorf("%+v, %v, want %s: %s", shown, err, test.status, test.want)
			}
			caller.Revision = mcptask.Revision20251125
			if older := ShowTask(server.Backend(), caller, r); older.Phase != r.Phase || older.StatusMessage != test.want || r.StatusMessage != "building" {
				t.Errorf("in 2025-11-25: %s %q", older.Phase, older.StatusMessage)
			}
		})
	}
	many := taskstore.Record{Phase: taskstore.PhaseInputRequired}
	for range 1000 {
		many.Inputs = append(many.Inputs, form("k", strings.Repeat("x", 500)))
	}
	if got := JoinQuestions(many.Inputs); len(got) > 3*longestMessage {
		t.Errorf("%d bytes", len(got))
	}
}
