package taskserver

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestLeaseLastsForSlowCalls checks that a server whose renewals fail neither loses a task while it
// stores it, nor takes its own tasks for orphans, if the call of the store is slow.
func TestLeaseLastsForSlowCalls(t *testing.T) {
	for _, method := range []string{"Create", "Lease"} {
		bubble.Run(t, method, func(t *testing.T) {
			store := taskstore.NewMemory()
			line := &tapStore{Store: store}
			tool := numberTool("t", mcptask.Policy{TTL: time.Hour}, later(time.Minute))
			a := newServer(t, Options{Store: line}, tool)
			id := begin(t, a, alice, "t").ID
			time.Sleep(time.Second)
			a.mu.Lock()
			renewed := a.renewed
			a.mu.Unlock()
			var away atomic.Bool
			away.Store(true)
			line.set(func(ctx context.Context, called string, _ *taskstore.Record, do func() error) error {
				switch {
				case called == "Beat" && away.Load():
					return errStore
				case called == method:
					time.Sleep(StoreTimeout - time.Second) // and then the call succeeds
				}
				return do()
			})
			end := renewed.Add(leaseFor)
			time.AfterFunc(time.Until(end.Add(StoreTimeout)), func() { away.Store(false) })
			if method == "Create" {
				time.Sleep(time.Until(end.Add(StoreTimeout - 2*time.Second - renewEvery)))
				newServer(t, Options{Store: store}, tool) // it looks for orphans at once, and 2 seconds before the store is back
			}
			time.Sleep(time.Until(end.Add(-time.Second)))
			if method == "Create" {
				id = begin(t, a, alice, "t").ID
			} else {
				a.adoptNow <- struct{}{}
			}
			synctest.Wait()
			if r := ended(t, a, alice, id); outcomeText(r.Outcome) != doubled || r.Attempt != 1 {
				t.Errorf("attempt %d: %s", r.Attempt, outcomeText(r.Outcome))
			}
		})
	}
}

// TestTimeUnknown checks that a server that does not know the store's time yet, and whose own clock
// is fast, does not call a live task expired.
func TestTimeUnknown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemoryAt(func() time.Time { return time.Now().Add(-5 * time.Minute) })
		tool := numberTool("t", mcptask.Policy{TTL: time.Minute}, later(30*time.Second))
		a := newServer(t, Options{Store: store}, tool)
		id := begin(t, a, alice, "t").ID
		b := newServer(t, Options{Store: &tapStore{Store: store, tap: before(func(ctx context.Context) error { <-ctx.Done(); return errStore }, "Beat")}}, tool)
		if _, err := b.Get(t.Context(), alice, id); err != nil {
			t.Error(err)
		}
		if r, err := b.Await(t.Context(), alice, id); err != nil || outcomeText(r.Outcome) != doubled {
			t.Errorf("%s, %v", outcomeText(r.Outcome), err)
		}
	})
}

// TestTimeUnknownToRun checks that a task that an executor starts before the server knows the store's
// time gets its whole ttl.
func TestTimeUnknownToRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemoryAt(func() time.Time { return time.Now().Add(-5 * time.Minute) })
		tool := numberTool("t", mcptask.Policy{TTL: time.Minute}, later(30*time.Second))
		var run RunFunc
		keep := func(f RunFunc) (Executor, error) { run = f; return idle{}, nil }
		a := newServer(t, Options{Store: store, Executor: keep}, tool)
		id := begin(t, a, alice, "t").ID
		slow := &tapStore{Store: store, tap: before(func(context.Context) error { time.Sleep(time.Second); return nil }, "Beat")}
		b := newServer(t, Options{Store: slow, Executor: keep}, tool)
		run(t.Context(), id)
		if r := ended(t, b, alice, id); outcomeText(r.Outcome) != doubled {
			t.Errorf("%s", outcomeText(r.Outcome))
		}
	})
}

// idle is an Executor that runs nothing.
type idle struct{}

func (idle) Submit(context.Context, Submission) error { return nil }
func (idle) Close(context.Context) error              { return nil }

// jumpingStore is a store whose clock is ahead for a while.
type jumpingStore struct {
	taskstore.Store
	ahead atomic.Int64
}

func (s *jumpingStore) Beat(ctx context.Context, worker string, lease time.Duration, held []string) (taskstore.Heartbeat, error) {
	beat, err := s.Store.Beat(ctx, worker, lease, held)
	beat.Now = beat.Now.Add(time.Duration(s.ahead.Load()))
	return beat, err
}

// TestClockJumpEndsNoTask checks that a server calls no task expired, and ends no handler, because a clock is
// 25 hours ahead for a moment. It does if the clock stays ahead.
func TestClockJumpEndsNoTask(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &jumpingStore{Store: taskstore.NewMemory()}
		s := newServer(t, Options{Store: store}, numberTool("t", mcptask.Policy{TTL: time.Hour}, later(time.Minute)))
		running := begin(t, s, alice, "t").ID
		time.Sleep(time.Second)
		store.ahead.Store(int64(25 * time.Hour))
		time.Sleep(renewEvery)
		if ahead := time.Until(s.Now()); ahead < 25*time.Hour-time.Second {
			t.Fatalf("the server's time is %v ahead", ahead)
		}
		if _, err := s.Get(t.Context(), alice, running); err != nil {
			t.Errorf("in the jump: %v", err)
		}
		begun := begin(t, s, alice, "t").ID // its handler has a deadline
		store.ahead.Store(0)
		time.Sleep(renewEvery)
		for _, id := range []string{running, begun} {
			if r := ended(t, s, alice, id); outcomeText(r.Outcome) != doubled {
				t.Errorf("after the jump: %s", outcomeText(r.Outcome))
			}
		}
		store.ahead.Store(int64(25 * time.Hour))
		for range 10 { // the server looks at the time now and then
			time.Sleep(renewEvery)
			_, _ = s.Get(t.Context(), alice, running)
		}
		if _, err := s.Get(t.Context(), alice, running); err == nil {
			t.Error("a task of an hour is there, 25 hours later")
		}
	})
}
