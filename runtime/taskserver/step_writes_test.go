package taskserver

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// wantStepBytes checks that the record of a task counts the bytes of its steps.
func wantStepBytes(t *testing.T, s *Backend, id string) {
	t.Helper()
	r, err := s.store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := s.store.Steps(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var want int64
	for i := range steps {
		want += steps[i].Size()
	}
	if r.StepBytes != want || len(steps) == 0 {
		t.Errorf("the record counts %d bytes of %d steps, want %d", r.StepBytes, len(steps), want)
	}
}

// TestStepBytesAfterLostAnswer loses the answer of a step's write, and lets another write follow. Then the server cannot
// know that it has stored the step, and stores it again.
func TestStepBytesAfterLostAnswer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store, isLost := taskstore.NewMemory(), false
		line := &tapStore{Store: store, tap: func(ctx context.Context, method string, r *taskstore.Record, do func() error) error {
			if method != "Update" || isLost || r.StepBytes == 0 {
				return do()
			}
			isLost = true
			err := do()
			other := *r
			other.Nonce = "other"
			_, next := store.Update(ctx, *r, other, taskstore.Quota{})
			return errors.Join(err, next, errors.New("the answer is lost"))
		}}
		s := newServer(t, Options{Store: line}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			_, err := mcptask.Step(ctx, task, "a", func(context.Context) (int, error) { return 1, nil })
			return in, errors.Join(err, mcptask.Save(ctx, task, "row", 1))
		}))
		r := ended(t, s, alice, begin(t, s, alice, "t").ID)
		if r.Outcome.IsError || !isLost {
			t.Errorf("%s", outcomeText(r.Outcome))
		}
		wantStepBytes(t, s, r.ID)
	})
}

// TestHandOverOfPositions closes a server while the write of a position is under way. The handover waits for it, but not
// for long.
func TestHandOverOfPositions(t *testing.T) {
	for name, answersLate := range map[string]bool{"answered": false, "answered late": true} {
		bubble.Run(t, name, func(t *testing.T) {
			store, answered, isHeld := taskstore.NewMemory(), make(chan struct{}), false
			line := &tapStore{Store: store, tap: func(_ context.Context, method string, r *taskstore.Record, do func() error) error {
				err := do()
				if method == "Update" && r.StepBytes > 0 && !isHeld {
					isHeld = true
					<-answered
				}
				return err
			}}
			tool := numberTool("t", restart, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				row, isLater, err := mcptask.Load[int](ctx, task, "row")
				if err != nil || isLater {
					return number{row}, err
				}
				if err := mcptask.Save(ctx, task, "row", 10); err != nil {
					return in, err
				}
				<-ctx.Done()
				if err := mcptask.Save(ctx, task, "row", 11); !errors.Is(err, context.Canceled) {
					t.Errorf("a Save at the close returns %v", err)
				}
				return in, ctx.Err()
			})
			a := newServer(t, Options{Store: line}, tool)
			id := begin(t, a, alice, "t").ID
			synctest.Wait()
			closed := make(chan error)
			go func() { closed <- a.server.Close() }()
			synctest.Wait()
			if !answersLate {
				close(answered)
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
			if answersLate {
				close(answered)
			}
			wantStepBytes(t, a, id)
			b := newServer(t, Options{Store: store}, tool)
			if r := ended(t, b, alice, id); !strings.Contains(outcomeText(r.Outcome), `{"n":11}`) {
				t.Errorf("%s", outcomeText(r.Outcome))
			}
			wantStepBytes(t, b, id)
		})
	}
}

// TestStoredUnderOtherKind runs a later version of a handler, which uses the name of a position for a step.
func TestStoredUnderOtherKind(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		tool := numberTool("t", restart, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			if task.Attempt() > 1 {
				_, err := mcptask.Step(ctx, task, "row", func(context.Context) (int, error) { return 1, nil })
				return in, err
			}
			return in, errors.Join(mcptask.Save(ctx, task, "row", 1), mcptask.Sleep(ctx, task, "night", time.Hour))
		})
		store := taskstore.NewMemory()
		a := newServer(t, Options{Store: store}, tool)
		id := begin(t, a, alice, "t").ID
		synctest.Wait()
		if err := a.server.Close(); err != nil {
			t.Fatal(err)
		}
		r := ended(t, newServer(t, Options{Store: store}, tool), alice, id)
		if want := `step \"row\": the task has stored it by Save, and this call is Step: give them different names`; !strings.Contains(outcomeText(r.Outcome), want) {
			t.Errorf("%s", outcomeText(r.Outcome))
		}
	})
}

// TestRefusedPosition refuses a position that a step takes along later. The next Save no longer tells of it.
func TestRefusedPosition(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		line := &tapStore{Store: taskstore.NewMemory()}
		s := newServer(t, Options{Store: line}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			line.set(before(func(context.Context) error {
				return &taskstore.QuotaError{Scope: taskstore.ScopeAccount, Err: taskstore.ErrQuotaBytes}
			}, "Update"))
			err := mcptask.Save(ctx, task, "row", 1)
			time.Sleep(time.Second)
			line.set(nil)
			_, stored := mcptask.Step(ctx, task, "a", func(context.Context) (int, error) { return 1, nil })
			return in, errors.Join(err, stored, mcptask.Save(ctx, task, "row", 2))
		}))
		r := ended(t, s, alice, begin(t, s, alice, "t").ID)
		if r.Outcome.Kind != taskstore.OutcomeResult || r.Outcome.IsError || !strings.Contains(listSteps(t, s, r.ID), "position row=1 in run 1") {
			t.Errorf("%s: %s", outcomeText(r.Outcome), listSteps(t, s, r.ID))
		}
	})
}

// TestPositionsAreCountedOnce adds a position again before it is stored.
func TestPositionsAreCountedOnce(t *testing.T) {
	var s runSteps
	position := taskstore.Step{Name: "row", Kind: taskstore.StepPosition, Value: []byte("1")}
	for range 3 {
		if _, ok := s.add(&position, 100); !ok || s.bytes != position.Size() {
			t.Fatalf("%v, %d bytes", ok, s.bytes)
		}
	}
}

// TestLoseRunsWhileRead loses the run of a task again and again, while many read its record. None of them takes the next
// run for the one that was lost.
func TestLoseRunsWhileRead(t *testing.T) {
	s := newServer(t, Options{Store: taskstore.NewMemory(), Logger: (&logged{}).logger()}, numberTool("t", mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost, Attempts: 1000}, hang))
	id := begin(t, s, alice, "t").ID
	var readers sync.WaitGroup
	defer readers.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 8 {
		readers.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.Get(ctx, alice, id)
			}
		})
	}
	for n := range 300 {
		for s.loseRuns(id, n+1) == 0 {
			if ctx.Err() != nil {
				t.Fatalf("no run after %d were lost", n)
			}
			runtime.Gosched()
		}
	}
}

// TestLoseRunsThroughFaults interrupts a run while the store is away. The run keeps its task, and goes on.
func TestLoseRunsThroughFaults(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		line := &tapStore{Store: taskstore.NewMemory()}
		s := newServer(t, Options{Store: line}, numberTool("t", restart, after(time.Minute)))
		id := begin(t, s, alice, "t").ID
		synctest.Wait()
		line.set(before(func(context.Context) error { return errors.New("the store is away") }, "Update"))
		if n := s.loseRuns(id, 1); n != 0 {
			t.Errorf("%d runs were lost", n)
		}
		line.set(nil)
		if r := ended(t, s, alice, id); r.Outcome.Kind != taskstore.OutcomeResult || r.Attempt != 1 {
			t.Errorf("%s in run %d", outcomeText(r.Outcome), r.Attempt)
		}
	})
}
