package mcptasktest

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Script is the answer to one question of a handler under test. Make one with
// Accept, Decline or Dismiss.
type Script struct {
	step, input string
	response    func() (json.RawMessage, error)
}

// Accept answers the question of a step.
func Accept[T any](step string, answer T) Script {
	return Script{step, reflect.TypeFor[T]().Name(), func() (json.RawMessage, error) {
		return json.Marshal(map[string]any{"action": "accept", "content": answer})
	}}
}

// Decline refuses to answer: the handler gets mcptask.ErrDeclined.
func Decline[T any](step string) Script { return action[T](step, `{"action":"decline"}`) }

// Dismiss closes the question: the handler gets mcptask.ErrDismissed.
func Dismiss[T any](step string) Script { return action[T](step, `{"action":"cancel"}`) }

func action[T any](step, response string) Script {
	return Script{step, reflect.TypeFor[T]().Name(), func() (json.RawMessage, error) {
		return json.RawMessage(response), nil
	}}
}

// NewTask makes a task for the test of one handler, called directly. Its
// questions get the scripted answers, in any order; a question without one
// gets mcptask.ErrCannotAsk and fails the test, and so does an answer that
// nobody asked for. Progress is logged.
func NewTask(t testing.TB, scripts ...Script) *mcptask.Task {
	t.Helper()
	host := &scripted{t: t, scripts: map[string]Script{}}
	for _, s := range scripts {
		if _, twice := host.scripts[s.step]; twice {
			t.Fatalf("mcptasktest: step %q is scripted twice: a step that is asked again is %s#2", s.step, s.step)
		}
		host.scripts[s.step] = s
	}
	t.Cleanup(func() {
		host.mu.Lock()
		defer host.mu.Unlock()
		for step := range host.scripts {
			t.Errorf("mcptasktest: the handler never asked at step %q", step)
		}
	})
	return mcptask.NewTask("mcptasktest", Local, 1, host)
}

// scripted is the mcptask.Host behind NewTask.
type scripted struct {
	t       testing.TB
	mu      sync.Mutex
	scripts map[string]Script // those that were not asked for yet
}

// Report implements mcptask.Host.
func (h *scripted) Report(_ context.Context, done, total float64, message string) {
	h.t.Helper()
	if done == 0 && total == 0 {
		h.t.Logf("message %s", message)
		return
	}
	h.t.Logf("progress %v/%v %s", done, total, message)
}

// Ask implements mcptask.Host.
func (h *scripted) Ask(ctx context.Context, in mcptask.Input) (json.RawMessage, error) {
	h.t.Helper()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	s, ok := h.scripts[in.Key]
	delete(h.scripts, in.Key)
	h.mu.Unlock()
	q, err := mcptask.NewQuestion("", in.Key, in.Method, in.Params)
	if err != nil {
		return nil, err
	}
	if !ok {
		h.t.Errorf("mcptasktest: step %q asks %q, and no answer is scripted", in.Key, q.Message)
		return nil, mcptask.ErrCannotAsk
	}
	if q.Input != s.input {
		h.t.Errorf("mcptasktest: step %q asks for %s, and the script answers with %s", in.Key, q.Input, s.input)
	}
	response, err := s.response()
	if err != nil {
		return nil, err
	}
	if err := mcptask.CheckAnswer(ctx, in, response); err != nil && q.Input == s.input {
		h.t.Errorf("mcptasktest: the answer scripted for step %q would not be taken: %v", in.Key, err)
	}
	return response, nil
}
