package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
)

// answering is a Host that answers each question with a content.
type answering string

func (answering) Report(context.Context, float64, float64, string) {}

func (a answering) Ask(context.Context, Request) (json.RawMessage, error) {
	return json.RawMessage(`{"action":"accept","content":` + string(a) + `}`), nil
}

// TestLeftOut checks that null, and "" in place of a choice, count as left out, before a task and in it.
func TestLeftOut(t *testing.T) {
	type order struct {
		Size  string  `json:"size"`
		Color *string `json:"color"`
		Note  string  `json:"note"`
	}
	input := InputSpec{Name: "Order", Schema: `{"type":"object","required":["size"],"properties":{
		"size":{"type":"string","enum":["s","m"]},"color":{"type":"string","enum":["red"],"default":"red"},"note":{"type":"string"}}}`}
	for content, fits := range map[string]bool{
		`{"size":"s"}`:                                true,
		`{"size":"s","color":"","note":""}`:           true,
		`{"size":"s","color":null,"note":null}`:       true,
		`{"size":"s","color":"blue"}`:                 false,
		`{"size":""}`:                                 false,
		`{"size":null}`:                               false,
		`{"size":"s","color":""` + `,"color":"blue"}`: false,
	} {
		got, err := Ask[order](t.Context(), NewTask(answering(content), TaskInfo{}), input, "order", "")
		before, beforeErr := json.RawMessage(nil), error(nil)
		if fits {
			response, _ := answering(content).Ask(t.Context(), Request{})
			info := TaskInfo{Answers: []json.RawMessage{response}, Questions: []InputSpec{input}}
			before, beforeErr = Asked[json.RawMessage](NewTask(nil, info), 0)
		}
		switch {
		case !fits && !errors.Is(err, ErrInvalidAnswer):
			t.Errorf("%s: %+v, %v", content, got, err)
		case fits && (err != nil || beforeErr != nil || got.Size != "s" || got.Color != nil):
			t.Errorf("%s: %+v, %v, %s, %v", content, got, err, before, beforeErr)
		}
	}
	if err := CheckAnswer(t.Context(), Request{Method: spec.Elicit, Schema: json.RawMessage(input.Schema)}, json.RawMessage(`{"action":"accept","content":{"size":"m","color":""}}`)); err != nil {
		t.Error(err)
	}
}
