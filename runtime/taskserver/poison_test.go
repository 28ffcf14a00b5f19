package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// poison is a number that takes long to compute with. Libraries that compute with fractions return no
// value for it.
const poison = `1e-9999999`

func TestPoisonNumbers(t *testing.T) {
	bounded := mcptask.ToolSpec{Name: "bounded", Policy: mcptask.Policy{Task: mcptask.TaskOptional},
		InputSchema: `{"type":"object","properties":{"n":{"type":"number","minimum":0,"maximum":10}}}`}
	given := mcptask.InputSpec{Name: "Given", Message: "How many?", Schema: bounded.InputSchema}
	asking := mcptask.ToolSpec{Name: "asking", Policy: mcptask.Policy{Task: mcptask.TaskRequired}, InputSchema: `{"type":"object"}`}
	output := mcptask.ToolSpec{Name: "output", Policy: mcptask.Policy{Task: mcptask.TaskOptional}, InputSchema: `{"type":"object"}`, OutputSchema: bounded.InputSchema}
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{},
			mcptask.NewTool(bounded, func(_ context.Context, _ *mcptask.Task, in struct{ N float64 }) (string, error) { return "ran", nil }),
			mcptask.NewTool(asking, func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				answer, err := mcptask.Ask[struct{ N json.Number }](ctx, task, given, "step", "")
				return answer.N.String(), err
			}),
			mcptask.NewTool(output, func(context.Context, *mcptask.Task, struct{}) (map[string]json.Number, error) {
				return map[string]json.Number{"n": poison}, nil
			}))
		caller := alice
		caller.CanAsk = []string{"elicitation/create"}

		arguments := json.RawMessage(`{"n":` + poison + `}`)
		want := "n: the number " + poison + " is out of range"
		for _, mode := range []Mode{ModePlain, ModeGrace} {
			reply, err := s.Call(t.Context(), caller, "bounded", arguments, CallRequest{Mode: mode})
			if err != nil || reply.Outcome == nil || !reply.Outcome.IsError || !strings.Contains(string(reply.Outcome.Result), want) {
				t.Errorf("mode %d: %+v, %v", mode, reply, err)
			}
		}
		_, err := s.Call(t.Context(), caller, "bounded", arguments, CallRequest{Mode: ModeTask})
		if wireError(err).Code != mcptask.CodeInvalidParams || !strings.Contains(wireError(err).Message, want) {
			t.Errorf("as a task: %v", err)
		}

		task := begin(t, s, caller, "asking")
		asks(t, s, caller, task.ID)
		answer := func(n string) error {
			return s.Answer(t.Context(), caller, task.ID, map[string]json.RawMessage{"step": json.RawMessage(`{"action":"accept","content":{"n":` + n + `}}`)})
		}
		if err := answer(poison); wireError(err).Code != mcptask.CodeInvalidParams || !strings.Contains(wireError(err).Message, want) {
			t.Errorf("as an answer: %v", err)
		}
		asks(t, s, caller, task.ID) // still
		if err := answer("7.50"); err != nil {
			t.Error(err)
		}
		if got := outcomeText(ended(t, s, caller, task.ID).Outcome); got != `result {"content":[{"text":"7.50","type":"text"}]}` {
			t.Errorf("after a good answer: %s", got)
		}

		if got := outcomeText(ended(t, s, caller, begin(t, s, caller, "output").ID).Outcome); got != "error the tool's output does not fit its schema (code -32603) " {
			t.Errorf("as output: %s", got)
		}
	})
}

func TestCheckEndsWithItsCaller(t *testing.T) {
	s := newServer(t, Options{}, numberTool("t", mcptask.Policy{Task: mcptask.TaskOptional}, double))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	large := json.RawMessage(`{"n":[` + strings.Repeat("1,", 1<<18) + `1]}`)
	if _, err := s.Call(ctx, alice, "t", large, CallRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	in := mcptask.Request{Method: spec.Elicit, Schema: json.RawMessage(`{"type":"object"}`)}
	err := mcptask.CheckAnswer(ctx, in, json.RawMessage(`{"action":"accept","content":`+string(large)+`}`))
	if !errors.Is(err, context.Canceled) || errors.Is(err, mcptask.ErrInvalidAnswer) {
		t.Errorf("%v", err)
	}
}

// TestStorePanicsOnce checks that a store that panics costs time, as one that fails does.
func TestStorePanicsOnce(t *testing.T) {
	var log logged
	store := &tapStore{Store: taskstore.NewMemory()}
	panicOnce := func(method string) {
		store.set(func(_ context.Context, called string, r *taskstore.Record, do func() error) error {
			if called == method && (method != "Update" || len(r.Inputs) > 0) {
				store.set(nil)
				panic("secret of " + method)
			}
			return do()
		})
	}
	spec := mcptask.ToolSpec{Name: "asked", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired},
		Questions: []mcptask.InputSpec{{Name: "Given", Message: "How many?", Schema: `{"type":"object"}`}}}
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{Store: store, Logger: log.logger()}, numberTool("t", mcptask.Policy{Task: mcptask.TaskOptional}, double),
			mcptask.NewTool(spec, func(context.Context, *mcptask.Task, struct{}) (string, error) { return "ran", nil }))
		caller := alice
		caller.CanAsk = []string{"elicitation/create"}
		panicOnce("Create")
		reply, err := s.Call(t.Context(), caller, "t", json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeTask})
		if err != nil {
			t.Fatalf("a call: %v", err)
		}
		panicOnce("Get")
		if _, err := s.Get(t.Context(), caller, reply.Task.ID); err != nil {
			t.Errorf("a poll: %v", err)
		}
		panicOnce("Update") // that stores the question
		reply, err = s.Call(t.Context(), caller, "asked", nil, CallRequest{Mode: ModeTask, ByTool: true})
		if err != nil {
			t.Fatal(err)
		}
		asking := asks(t, s, caller, reply.Task.ID)
		if err := answer(t, s, caller, reply.Task.ID, asking.Outstanding()[0].Key, `{"action":"accept","content":{}}`); err != nil {
			t.Error(err)
		}
		if got := outcomeText(ended(t, s, caller, reply.Task.ID).Outcome); !strings.Contains(got, "ran") {
			t.Errorf("a task whose question was stored at the second try: %s", got)
		}
		if got := ended(t, s, caller, begin(t, s, caller, "t").ID).Outcome; got.Kind != taskstore.OutcomeResult {
			t.Errorf("the next task: %s", outcomeText(got))
		}
	})
	for _, want := range []string{"secret of Create", "secret of Get", "secret of Update", "poison_test.go"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not tell the operator %q:\n%s", want, &log)
		}
	}
}
