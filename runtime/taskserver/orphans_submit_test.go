package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pool"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// slotExecutor is an executor of a user's, with slots and a line of its own.
type slotExecutor struct {
	*pool.Pool
	run RunFunc
}

func newSlotExecutor(run RunFunc, slots int) slotExecutor {
	return slotExecutor{pool.New(slots, func() {}), run}
}

// Submit implements Executor.
func (x slotExecutor) Submit(_ context.Context, task Submission) error {
	return x.Run(pool.Place{}, func(ctx context.Context) { x.run(ctx, task.TaskID) })
}

// Release implements Slots.
func (x slotExecutor) Release(Submission) { x.Pool.Release(pool.Place{}) }

// Acquire implements Slots.
func (x slotExecutor) Acquire(ctx context.Context, _ Submission) { x.Pool.Acquire(ctx, pool.Place{}) }

// busyExecutor takes nothing for a while.
type busyExecutor struct {
	slotExecutor
	busy atomic.Bool
}

// Submit implements Executor.
func (x *busyExecutor) Submit(ctx context.Context, task Submission) error {
	if x.busy.Load() {
		return errors.New("try again later")
	}
	return x.slotExecutor.Submit(ctx, task)
}

// createOrphan stores a queued task of a worker that is dead.
func createOrphan(t *testing.T, store taskstore.Store, id string) {
	t.Helper()
	_, err := store.Create(t.Context(), taskstore.Record{ID: id, Principal: alice.Principal, Tool: "double", Phase: taskstore.PhaseQueued,
		Arguments: json.RawMessage(`{"n":21}`), Claim: taskstore.Claim{Worker: "dead"}, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(24 * time.Hour)}, taskstore.Quota{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestExecutorRefusesOrphan checks that an orphan that the executor refuses is free again.
// Otherwise its lease would be renewed for as long as the server lives.
func TestExecutorRefusesOrphan(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		createOrphan(t, store, "orphan")
		x := &busyExecutor{}
		x.busy.Store(true)
		s := newServer(t, Options{Store: store, Executor: func(run RunFunc) (Executor, error) {
			x.slotExecutor = newSlotExecutor(run, 1)
			return x, nil
		}}, numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double))
		time.Sleep(time.Minute)
		x.busy.Store(false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if r, err := s.Await(ctx, alice, "orphan"); err != nil || r.Outcome.Kind != taskstore.OutcomeResult {
			t.Errorf("%+v, %v", r.Outcome, err)
		}
	})
}

// TestStuckRecord checks that a server adopts the other orphans if the store does not take one of
// them.
func TestStuckRecord(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &tapStore{Store: taskstore.NewMemory()}
		for _, id := range []string{"a stuck one", "b"} {
			createOrphan(t, store, id)
		}
		store.set(func(_ context.Context, method string, r *taskstore.Record, do func() error) error {
			if method == "Update" && r.ID != "b" {
				return errors.New("a bad page")
			}
			return do()
		})
		s := newServer(t, Options{Store: store}, numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if r, err := s.Await(ctx, alice, "b"); err != nil || r.Outcome.Kind != taskstore.OutcomeResult {
			t.Errorf("%+v, %v", r.Outcome, err)
		}
	})
}

// TestClaimedTask checks that any server starts a task that another server has submitted again, or ends it if its
// handler may not run again here, and that it leaves a task alone that runs there.
func TestClaimedTask(t *testing.T) {
	for name, c := range map[string]struct {
		state  taskstore.ClaimState
		policy mcptask.Policy
		want   string
	}{
		"restarts":     {taskstore.ClaimWaiting, restart, doubled},
		"may not":      {taskstore.ClaimWaiting, mcptask.Policy{Task: mcptask.TaskRequired}, "error the worker of the task was lost"},
		"runs already": {taskstore.ClaimRunning, restart, "none"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			store := taskstore.NewMemory()
			if _, err := store.Beat(t.Context(), "other", time.Hour, nil); err != nil {
				t.Fatal(err)
			}
			_, err := store.Create(t.Context(), taskstore.Record{ID: "claimed", Principal: alice.Principal, Tool: "double", Phase: taskstore.PhaseRunning, Attempt: 1, Tries: 1,
				Arguments: json.RawMessage(`{"n":21}`), Claim: taskstore.Claim{Worker: "other", State: c.state}, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(24 * time.Hour)}, taskstore.Quota{})
			if err != nil {
				t.Fatal(err)
			}
			s := newServer(t, Options{Store: store, Executor: func(run RunFunc) (Executor, error) { return newSlotExecutor(run, 1), nil }},
				numberTool("double", c.policy, double))
			if end := s.runTask(t.Context(), "claimed"); end != RunOver {
				t.Errorf("the run ends with %d", end)
			}
			r, err := s.Get(t.Context(), alice, "claimed")
			if err != nil || !strings.HasPrefix(outcomeText(r.Outcome), c.want) {
				t.Errorf("%s, %v", outcomeText(r.Outcome), err)
			}
		})
	}
}
