package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pool"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// busyExecutor takes nothing for a while.
type busyExecutor struct {
	localExecutor
	busy atomic.Bool
}

// Submit implements Executor.
func (x *busyExecutor) Submit(task Submission) error {
	if x.busy.Load() {
		return errors.New("try again later")
	}
	return x.localExecutor.Submit(task)
}

// createOrphan stores a queued task of a worker that is dead.
func createOrphan(t *testing.T, store Store, id string) {
	t.Helper()
	_, err := store.Create(t.Context(), Record{ID: id, Principal: alice.Principal, Tool: "double", Phase: PhaseQueued,
		Arguments: json.RawMessage(`{"n":21}`), Worker: "dead", CreatedAt: time.Now(), ExpiresAt: time.Now().Add(24 * time.Hour)}, Quota{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestExecutorRefusesOrphan checks that an orphan that the executor refuses is free again.
// Otherwise its lease would be renewed for as long as the server lives.
func TestExecutorRefusesOrphan(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := NewMemoryStore()
		createOrphan(t, store, "orphan")
		x := &busyExecutor{}
		x.busy.Store(true)
		s := newServer(t, Options{Store: store, Executor: func(run RunFunc) Executor {
			x.localExecutor = localExecutor{pool.New(run, 1)}
			return x
		}}, numberTool("double", Policy{Task: TaskOptional}, double))
		time.Sleep(time.Minute)
		x.busy.Store(false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if r, err := s.Await(ctx, alice, "orphan"); err != nil || r.Outcome.Kind != OutcomeResult {
			t.Errorf("%+v, %v", r.Outcome, err)
		}
	})
}

// TestStuckRecord checks that a server adopts the other orphans if the store does not take one of
// them.
func TestStuckRecord(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &tapStore{Store: NewMemoryStore()}
		for _, id := range []string{"a stuck one", "b"} {
			createOrphan(t, store, id)
		}
		store.set(func(_ context.Context, method string, r *Record, do func() error) error {
			if method == "Update" && r.ID != "b" {
				return errors.New("a bad page")
			}
			return do()
		})
		s := newServer(t, Options{Store: store}, numberTool("double", Policy{Task: TaskOptional}, double))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if r, err := s.Await(ctx, alice, "b"); err != nil || r.Outcome.Kind != OutcomeResult {
			t.Errorf("%+v, %v", r.Outcome, err)
		}
	})
}
