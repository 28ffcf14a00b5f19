package mcptask

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestDeliveredTwice checks that a second run of a task that may not start again leaves the first
// run alone, since an executor may deliver a task twice.
func TestDeliveredTwice(t *testing.T) {
	for name, policy := range map[string]Policy{
		"fails when lost":    {Task: TaskOptional},
		"restarts when lost": {Task: TaskOptional, OnLost: RestartWhenLost},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := newServer(t, Options{}, numberTool("slow", policy, after(time.Minute)))
			r := begin(t, s, alice, "slow")
			synctest.Wait() // it runs
			if err := s.executor.Submit(t.Context(), r.toSubmission()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			r, err := s.Await(ctx, alice, r.ID)
			if err != nil || r.Outcome.Kind != OutcomeResult {
				t.Errorf("%+v, %v", r.Outcome, err)
			}
			synctest.Wait() // the task ends before its run does
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.running) != 0 {
				t.Errorf("%d handlers are left", len(s.running))
			}
		})
	}
}

// lateStore answers the first Update, which begins an attempt, only when it may.
type lateStore struct {
	Store
	may   chan struct{}
	first atomic.Bool // whether the first has come
}

func (s *lateStore) Update(ctx context.Context, from, to Record, quota Quota) (Record, error) {
	stored, err := s.Store.Update(ctx, from, to, quota)
	if s.first.CompareAndSwap(false, true) {
		<-s.may
	}
	return stored, err
}

// TestDeliveredTwiceAtOnce delivers a task a second time when the store has begun its attempt, and the first delivery has
// no answer yet.
func TestDeliveredTwiceAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &lateStore{Store: NewMemoryStore(), may: make(chan struct{})}
		deliver := &deliveries{}
		s := newServer(t, Options{Store: store, Executor: deliver.open},
			numberTool("slow", Policy{Task: TaskOptional, OnLost: RestartWhenLost}, after(time.Minute)))
		r := begin(t, s, alice, "slow")
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { deliver.run(t.Context(), r.ID) })
			synctest.Wait()
		}
		close(store.may)
		both.Wait()
		ended, err := s.Get(t.Context(), alice, r.ID)
		if err != nil || ended.Attempt != 1 || ended.Outcome == nil || ended.Outcome.Kind != OutcomeResult {
			t.Errorf("attempt %d, %+v, %v", ended.Attempt, ended.Outcome, err)
		}
	})
}

// deliveries is an executor whose tasks the test delivers.
type deliveries struct{ run RunFunc }

func (d *deliveries) open(run RunFunc) (Executor, error) { d.run = run; return d, nil }

// Submit implements Executor.
func (d *deliveries) Submit(context.Context, Submission) error { return nil }

// Close implements Executor.
func (d *deliveries) Close(context.Context) error { return nil }
