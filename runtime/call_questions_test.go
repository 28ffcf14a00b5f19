package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// newInquisitor returns a connection to a task that asks. questions returns the keys that the task
// asks at a poll. It is done when all of them are answered.
func newInquisitor(questions func(poll int) []string, answer func(ctx context.Context, key string) error) *fakeConn {
	var mu sync.Mutex
	answered := map[string]bool{}
	return &fakeConn{
		answerer: Answer(approvalInput, func(ctx context.Context, q Question) (approval, error) {
			return approval{true}, answer(ctx, q.Key)
		}),
		respond: func(_, key string, _ json.RawMessage) error {
			mu.Lock()
			defer mu.Unlock()
			answered[key] = true
			return nil
		},
		task: func(_ context.Context, _ string, poll int) (Snapshot, error) {
			mu.Lock()
			defer mu.Unlock()
			s := working("t", time.Second)
			for _, key := range questions(poll) {
				if !answered[key] {
					s.Questions = append(s.Questions, question(key))
				}
			}
			if len(s.Questions) == 0 {
				return completed("t", 1), nil
			}
			s.Status = StatusInputRequired
			return s, nil
		},
	}
}

func keys(n int, prefix string) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// TestQuestionsAtOnce checks that a client answers only a few questions of one task at once, and the
// others as soon as these are answered.
func TestQuestionsAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		conn := newInquisitor(func(int) []string { return keys(500, "q") }, func(context.Context, string) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(10 * time.Millisecond)
			now.Add(-1)
			return nil
		})
		began := time.Now()
		if _, err := started(t, conn).Wait(t.Context()); err != nil {
			t.Error(err)
		}
		slices.Sort(conn.responses)
		if all, once := len(conn.responses), len(slices.Compact(conn.responses)); most.Load() > 16 || all != 500 || once != 500 {
			t.Errorf("%d at once, %d responses to %d questions", most.Load(), all, once)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("each poll takes up only a few: %v", took)
		}
	})
}

// TestQuestionsInAll checks that the client gives up a task that asks without end, and one whose keys
// alone would fill the memory.
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
			call := started(t, newInquisitor(c.questions, func(context.Context, string) error { asked.Add(1); return nil }))
			for range 2 { // a later wait gets the same error
				if _, err := call.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 500 {
					t.Error(err)
				}
			}
			synctest.Wait()
			if n := asked.Load(); n > c.most+32 { // questions that were open when the first wait ended are asked again
				t.Errorf("%d were asked", n)
			}
		})
	}
}

// TestFailedAnswerIsNotRepeated checks that a failed answer is reported, and that the person is not
// asked again before the next wait.
func TestFailedAnswerIsNotRepeated(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		broken := errors.New("the form is broken")
		var asked atomic.Int32
		conn := newInquisitor(func(int) []string { return keys(100, "q") }, func(_ context.Context, key string) error {
			if key == "q0" {
				asked.Add(1)
				return broken
			}
			return nil
		})
		if _, err := started(t, conn).Wait(t.Context()); !errors.Is(err, broken) {
			t.Error(err)
		}
		synctest.Wait()
		if asked.Load() != 1 {
			t.Errorf("asked %d times", asked.Load())
		}
	})
}

// explosive is an output type that panics when it is decoded.
type explosive struct{}

func (*explosive) UnmarshalJSON([]byte) error { panic("a bug") }

// explosiveError is an error of a connection that panics when it is examined.
type explosiveError struct{ error }

func (explosiveError) Permanent() bool { panic("a bug") }

// TestPanickingClient checks that a panic on the client's side fails only the calls that meet it. Some
// of this code runs in goroutines that many calls share.
func TestPanickingClient(t *testing.T) {
	panicked := func(t *testing.T, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "panicked") {
			t.Error(err)
		}
	}
	bubble.Run(t, "an answer", func(t *testing.T) {
		conn := newInquisitor(func(int) []string { return keys(1, "q") }, func(context.Context, string) error { panic("a bug") })
		_, err := started(t, conn).Wait(t.Context())
		panicked(t, err)
	})
	for name, read := range map[string]func() error{
		"a read of one of many":    func() error { panic("a bug") },
		"an error for one of many": func() error { return explosiveError{errors.New("no answer")} },
	} {
		bubble.Run(t, name, func(t *testing.T) {
			conn := &fakeConn{task: func(context.Context, string, int) (Snapshot, error) { return Snapshot{}, read() }}
			settled := map[*Call[number]]bool{}
			for call, err := range Settled(t.Context(), started(t, conn), started(t, conn)) {
				panicked(t, err)
				settled[call] = true
			}
			if len(settled) != 2 || settled[nil] {
				t.Errorf("%v are settled", settled)
			}
		})
	}
	bubble.Run(t, "an output", func(t *testing.T) {
		conn := newInquisitor(func(int) []string { return nil }, nil)
		_, err := Run[explosive](t.Context(), conn, "tool", struct{}{})
		panicked(t, err)
		call, err := Start[explosive](t.Context(), conn, "tool", struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		settled := 0
		for _, err := range Settled(t.Context(), call) {
			panicked(t, err)
			settled++
		}
		if settled != 1 {
			t.Errorf("%d are settled", settled)
		}
	})
}
