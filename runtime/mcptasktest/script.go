package mcptasktest

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Script is the scripted answer to one question of a handler. Create one with Accept, Decline or
// Dismiss.
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

// Decline refuses to answer. The handler gets mcptask.ErrDeclined.
func Decline[T any](step string) Script { return newScript[T](step, `{"action":"decline"}`) }

// Dismiss closes the question. The handler gets mcptask.ErrDismissed.
func Dismiss[T any](step string) Script { return newScript[T](step, `{"action":"cancel"}`) }

func newScript[T any](step, response string) Script {
	return Script{step, reflect.TypeFor[T]().Name(), func() (json.RawMessage, error) {
		return json.RawMessage(response), nil
	}}
}

// NewTask returns a task for the test of one handler that is called directly. Its questions get the
// scripted answers, in any order. A question without a script gets mcptask.ErrCannotAsk and fails
// the test. A script without a question fails the test too. Progress is logged.
func NewTask(t testing.TB, scripts ...Script) *mcptask.Task {
	t.Helper()
	host := &scriptedHost{t: t, scripts: map[string]Script{}}
	for _, s := range scripts {
		if _, twice := host.scripts[s.step]; twice {
			t.Fatalf("mcptasktest: step %q has two scripts; if the handler asks it again, the second step is %s#2", s.step, s.step)
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

// scriptedHost is the mcptask.Host behind NewTask.
type scriptedHost struct {
	t       testing.TB
	mu      sync.Mutex
	scripts map[string]Script // scripts that were not used yet
}

// Report implements mcptask.Host.
func (h *scriptedHost) Report(_ context.Context, done, total float64, message string) {
	h.t.Helper()
	if done == 0 && total == 0 {
		h.t.Logf("message %s", message)
		return
	}
	h.t.Logf("progress %v/%v %s", done, total, message)
}

// Ask implements mcptask.Host.
func (h *scriptedHost) Ask(ctx context.Context, in mcptask.Input) (json.RawMessage, error) {
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
		h.t.Errorf("mcptasktest: step %q asks %q without a scripted answer", in.Key, q.Message)
		return nil, mcptask.ErrCannotAsk
	}
	if q.Input != s.input {
		h.t.Errorf("mcptasktest: step %q asks for %s, but the script answers with %s", in.Key, q.Input, s.input)
	}
	response, err := s.response()
	if err != nil {
		return nil, err
	}
	if err := mcptask.CheckAnswer(ctx, in, response); err != nil && q.Input == s.input {
		h.t.Errorf("mcptasktest: the scripted answer for step %q is invalid: %v", in.Key, err)
	}
	return response, nil
}
