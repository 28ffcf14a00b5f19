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

// lateStore answers the Update that begins an attempt only when it may. Before that, it refuses another one, if refuse is
// not nil, when that is closed.
type lateStore struct {
	Store
	refuse, may chan struct{}
	updates     atomic.Int32
}

func (s *lateStore) Update(ctx context.Context, from, to Record, quota Quota) (Record, error) {
	n := s.updates.Add(1)
	if s.refuse == nil {
		n++
	}
	if n == 1 {
		<-s.refuse
		return Record{}, ErrNoRecord
	}
	stored, err := s.Store.Update(ctx, from, to, quota)
	if n == 2 {
		<-s.may
	}
	return stored, err
}

// TestDeliveredTwiceAtOnce delivers a task again when the store has begun its attempt, and the first delivery has no
// answer yet. The deliveries may also have waited for one that did not begin.
func TestDeliveredTwiceAtOnce(t *testing.T) {
	for name, refuse := range map[string]chan struct{}{"the first begins": nil, "the first does not begin": make(chan struct{})} {
		bubble.Run(t, name, func(t *testing.T) {
			if refuse != nil {
				refuse = make(chan struct{}) // of this bubble
			}
			store := &lateStore{Store: NewMemoryStore(), refuse: refuse, may: make(chan struct{})}
			deliver := &deliveries{}
			s := newServer(t, Options{Store: store, Executor: deliver.open},
				numberTool("slow", Policy{Task: TaskOptional, OnLost: RestartWhenLost}, after(time.Minute)))
			r := begin(t, s, alice, "slow")
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() { deliver.run(t.Context(), r.ID) })
				synctest.Wait()
			}
			if refuse != nil {
				close(refuse)
				synctest.Wait()
			}
			close(store.may)
			all.Wait()
			ended, err := s.Get(t.Context(), alice, r.ID)
			if err != nil || ended.Attempt != 1 || ended.Outcome == nil || ended.Outcome.Kind != OutcomeResult {
				t.Errorf("attempt %d, %+v, %v", ended.Attempt, ended.Outcome, err)
			}
		})
	}
}

// deliveries is an executor whose tasks the test delivers.
type deliveries struct{ run RunFunc }

func (d *deliveries) open(run RunFunc) (Executor, error) { d.run = run; return d, nil }

// Submit implements Executor.
func (d *deliveries) Submit(context.Context, Submission) error { return nil }

// Close implements Executor.
func (d *deliveries) Close(context.Context) error { return nil }
