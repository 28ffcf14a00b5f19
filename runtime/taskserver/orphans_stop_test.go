package taskserver

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestStopOfLostTask checks that a task that is asked to stop while no handler of it can hear that ends at once, although
// its tool may run it again.
func TestStopOfLostTask(t *testing.T) {
	ofDead := taskstore.Claim{Worker: "dead", State: taskstore.ClaimRunning}
	stop := func(t *testing.T, s *Backend) {
		if err := s.Stop(t.Context(), alice, "lost"); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		claim taskstore.Claim
		// isAlive says that the worker's lease lasts for an hour.
		isAlive bool
		// lose stops the task at the server s, and makes the worker die.
		lose func(t *testing.T, s, idle *Backend, line *tapStore)
	}{
		"the worker dies later": {ofDead, true, func(t *testing.T, s, _ *Backend, line *tapStore) {
			stop(t, s)
			synctest.Wait()
			if r, err := s.Get(t.Context(), alice, "lost"); err != nil || r.Done() {
				t.Errorf("ended while its worker may live: %+v, %v", r.Outcome, err)
			}
			if err := line.Release(t.Context(), "dead"); err != nil {
				t.Error(err)
			}
		}},
		"the worker has no lease": {ofDead, false, func(t *testing.T, s, _ *Backend, _ *tapStore) { stop(t, s) }},
		"another server is about to take it": {ofDead, true, func(t *testing.T, s, idle *Backend, line *tapStore) {
			var once sync.Once
			line.set(func(_ context.Context, method string, _ *taskstore.Record, do func() error) error {
				err := do()
				if method == "Lease" {
					once.Do(func() { stop(t, idle) })
				}
				return err
			})
			if err := line.Store.Release(t.Context(), "dead"); err != nil {
				t.Error(err)
			}
		}},
		"it waits at another server": {taskstore.Claim{Worker: "dead"}, true, func(t *testing.T, s, _ *Backend, _ *tapStore) { stop(t, s) }},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			store := taskstore.NewMemory()
			line := &tapStore{Store: store}
			var runs atomic.Int32
			// The only slot is taken, so that a task that is claimed waits. The idle server does not have the task's tool.
			s := newServer(t, Options{Store: line, Concurrency: 1}, numberTool("hang", restart, hang), numberTool("t", restart, counting(&runs, double)))
			idle := newServer(t, Options{Store: store}, numberTool("other", restart, double))
			begin(t, s, alice, "hang")
			synctest.Wait()
			if c.isAlive {
				if _, err := store.Beat(t.Context(), "dead", time.Hour, nil); err != nil {
					t.Fatal(err)
				}
			}
			_, err := store.Create(t.Context(), taskstore.Record{ID: "lost", Principal: alice.Principal, Tool: "t", Phase: taskstore.PhaseRunning, Attempt: 1, Tries: 1,
				Arguments: json.RawMessage(`{"n":21}`), Claim: c.claim, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(24 * time.Hour)}, taskstore.Quota{})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			c.lose(t, s, idle, line)
			synctest.Wait()
			r, err := idle.Get(t.Context(), alice, "lost")
			if err != nil || !r.Done() || r.Outcome.Kind != taskstore.OutcomeCancelled || runs.Load() != 0 || !time.Now().Equal(began) {
				t.Errorf("%+v, %v, %d runs, after %v", r, err, runs.Load(), time.Since(began))
			}
		})
	}
}

// TestOrphansSideBySide checks that a server adopts orphans side by side, some at once, and all of them.
func TestOrphansSideBySide(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const orphans = 2*maxAdopters + 1
		store := &tapStore{Store: taskstore.NewMemory()}
		for i := range orphans {
			createOrphan(t, store, fmt.Sprint(i))
		}
		var adopted atomic.Int32
		next := make(chan struct{})
		store.set(func(_ context.Context, method string, r *taskstore.Record, do func() error) error {
			if method == "Update" && r.Claim.State == taskstore.ClaimWaiting && !r.Done() {
				adopted.Add(1)
				<-next
			}
			return do()
		})
		s := newServer(t, Options{Store: store}, numberTool("double", mcptask.Policy{Task: mcptask.TaskRequired}, double))
		synctest.Wait()
		if n := adopted.Load(); n != maxAdopters {
			t.Errorf("%d at once, want %d", n, maxAdopters)
		}
		close(next)
		for i := range orphans {
			if r := ended(t, s, alice, fmt.Sprint(i)); outcomeText(r.Outcome) != doubled || r.Attempt != 1 {
				t.Errorf("attempt %d: %s", r.Attempt, outcomeText(r.Outcome))
			}
		}
	})
}
