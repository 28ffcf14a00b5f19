package mcptask_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// inquisitor is a Conn with a task that asks.
type inquisitor struct {
	mcptask.Conn
	questions func(poll int) []string // keys
	answer    func(ctx context.Context, key string) error

	mu        sync.Mutex
	polls     int
	responses map[string]int
}

func (i *inquisitor) CallTool(context.Context, mcptask.ToolCall) (mcptask.Snapshot, error) {
	return mcptask.Snapshot{TaskID: "t", Status: mcptask.StatusWorking, TTL: -1}, nil
}

func (i *inquisitor) Task(context.Context, string) (mcptask.Snapshot, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.polls++
	s := mcptask.Snapshot{TaskID: "t", Status: mcptask.StatusInputRequired, TTL: -1}
	for _, key := range i.questions(i.polls) {
		if i.responses[key] == 0 {
			s.Questions = append(s.Questions, mcptask.Question{TaskID: "t", Key: key, Method: "elicitation/create"})
		}
	}
	if len(s.Questions) == 0 {
		s.Status, s.Result = mcptask.StatusCompleted, &mcptask.Result{Structured: json.RawMessage("{}")}
	}
	return s, nil
}

func (i *inquisitor) Answer(ctx context.Context, q mcptask.Question) (json.RawMessage, bool, error) {
	return json.RawMessage(`{"action":"decline"}`), true, i.answer(ctx, q.Key)
}

func (i *inquisitor) Respond(_ context.Context, _ string, responses map[string]json.RawMessage) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for key := range responses {
		i.responses[key]++
	}
	return nil
}

func (i *inquisitor) CancelTask(context.Context, string) error { return nil }

func keys(n int, prefix string) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// TestQuestionsAtOnce: of the questions of one task a few are answered at once, and
// the others as soon as these were.
func TestQuestionsAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		i := &inquisitor{responses: map[string]int{}, questions: func(int) []string { return keys(500, "q") }}
		i.answer = func(context.Context, string) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(10 * time.Millisecond)
			now.Add(-1)
			return nil
		}
		began := time.Now()
		if _, err := mcptask.Run[struct{}](t.Context(), i, "tool", struct{}{}); err != nil {
			t.Error(err)
		}
		if most.Load() > 16 || len(i.responses) != 500 {
			t.Errorf("%d at once, %d responses", most.Load(), len(i.responses))
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("each poll takes up a few only: %v", took)
		}
		for key, n := range i.responses {
			if n != 1 {
				t.Errorf("%d responses to %s", n, key)
			}
		}
	})
}

// TestQuestionsInAll: a task that asks without end is given up, and so is one whose
// keys alone would fill the memory.
func TestQuestionsInAll(t *testing.T) {
	for name, c := range map[string]struct {
		questions func(poll int) []string
		says      string
		most      int32
	}{
		"new ones each time": {func(poll int) []string { return keys(10, fmt.Sprint(poll, "-")) }, "more than 1000 questions", 1000},
		"all at once":        {func(int) []string { return keys(100_000, "q") }, "more than 1000 questions", 1000},
		"long keys":          {func(int) []string { return []string{strings.Repeat("k", 2000)} }, "2000 bytes", 0},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			var asked atomic.Int32
			i := &inquisitor{responses: map[string]int{}, questions: c.questions}
			i.answer = func(context.Context, string) error { asked.Add(1); return nil }
			for range 2 { // who waits again is told the same
				call, err := mcptask.Start[struct{}](t.Context(), i, "tool", struct{}{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := call.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 500 {
					t.Error(err)
				}
				if _, err := call.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("again: %v", err)
				}
				synctest.Wait()
				if n := asked.Swap(0); n > c.most+32 { // those that the end of the waiting found under way are asked again
					t.Errorf("%d were asked", n)
				}
				i.responses = map[string]int{}
			}
		})
	}
}

// TestFailedAnswerIsNotRepeated: an answer that fails is reported, and not tried
// again before somebody waits again.
func TestFailedAnswerIsNotRepeated(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		broken := errors.New("the form is broken")
		var asked atomic.Int32
		i := &inquisitor{responses: map[string]int{}, questions: func(int) []string { return keys(100, "q") }}
		i.answer = func(_ context.Context, key string) error {
			if key == "q0" {
				asked.Add(1)
				return broken
			}
			return nil
		}
		if _, err := mcptask.Run[struct{}](t.Context(), i, "tool", struct{}{}); !errors.Is(err, broken) {
			t.Error(err)
		}
		synctest.Wait()
		if asked.Load() != 1 {
			t.Errorf("asked %d times", asked.Load())
		}
	})
}

// TestPanickingConn: a panic over a question is that question's failure.
func TestPanickingConn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		i := &inquisitor{responses: map[string]int{}, questions: func(int) []string { return keys(1, "q") }}
		i.answer = func(context.Context, string) error { panic("a bug") }
		if _, err := mcptask.Run[struct{}](t.Context(), i, "tool", struct{}{}); err == nil || !strings.Contains(err.Error(), "panicked") {
			t.Error(err)
		}
	})
}

// explosive panics over what it is decoded from.
type explosive struct{}

func (*explosive) UnmarshalJSON([]byte) error { panic("a bug") }

// TestPanickingOutput: an output type that panics over a result fails its call, in
// whose goroutine it may be decoded.
func TestPanickingOutput(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		i := &inquisitor{responses: map[string]int{}, questions: func(int) []string { return nil }}
		for _, wait := range []func(*mcptask.Call[explosive]) error{
			func(call *mcptask.Call[explosive]) error { _, err := call.Wait(t.Context()); return err },
			func(call *mcptask.Call[explosive]) error {
				for _, err := range mcptask.Settled(t.Context(), call) {
					return err
				}
				return nil
			},
		} {
			call, err := mcptask.Start[explosive](t.Context(), i, "tool", struct{}{})
			if err != nil {
				t.Fatal(err)
			}
			if err := wait(call); err == nil || !strings.Contains(err.Error(), "panicked") {
				t.Error(err)
			}
		}
	})
}

// fragile is a Conn that panics over a task.
type fragile struct{ inquisitor }

func (*fragile) Task(context.Context, string) (mcptask.Snapshot, error) { panic("a bug") }

// TestPanickingRead: a panic in a goroutine of Settled is the end of one call.
func TestPanickingRead(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		call, err := mcptask.Start[struct{}](t.Context(), &fragile{}, "tool", struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		for settled, err := range mcptask.Settled(t.Context(), call) {
			if settled != call || err == nil || !strings.Contains(err.Error(), "panicked") {
				t.Error(err)
			}
		}
	})
}
