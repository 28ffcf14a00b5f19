package mcptask

import (
	"context"
	"encoding/json"
	"math/big"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
)

// TestPointerReceivers checks that values are encoded by their address. Without it encoding/json
// does not call a MarshalJSON with a pointer receiver, and a big.Int would be the object {}, which
// fits no schema.
func TestPointerReceivers(t *testing.T) {
	type amount struct {
		N big.Int   `json:"n"`
		F big.Float `json:"f"`
	}
	const want = `{"n":7,"f":"0.5"}`
	value := amount{*big.NewInt(7), *big.NewFloat(0.5)}
	tool := NewTool(ToolSpec{}, func(context.Context, *Task, struct{}) (amount, error) { return value, nil })
	bound, err := tool.Bind(json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	result, err := bound(t.Context(), new(Task))
	if err != nil || string(result.Structured) != want {
		t.Errorf("output: %+v, %v", result, err)
	}
	conn := &fakeConn{call: func(call ToolCall) (Snapshot, error) {
		if string(call.Arguments) != want {
			t.Errorf("arguments: %s", call.Arguments)
		}
		return Snapshot{}, ErrNotFound
	}}
	if _, err := Start[number](t.Context(), conn, "tool", value); err == nil {
		t.Error("no error")
	}
	answerer := Answer(InputSpec{Name: "A"}, func(context.Context, Question) (amount, error) { return value, nil })
	answer, ok, err := answerer.Answer(t.Context(), Question{Input: "A", Method: spec.Elicit})
	if !ok || err != nil || string(answer) != `{"action":"accept","content":`+want+`}` {
		t.Errorf("answer: %s, %v, %v", answer, ok, err)
	}
}
