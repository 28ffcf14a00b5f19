package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestNothingIsLeft makes a thousand calls whose tasks are created, refused, lost, repeated, left and
// cancelled, here and elsewhere. Then the server remembers nothing of them, and all its slots are
// free.
func TestNothingIsLeft(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const slots = 4
		store := taskstore.NewMemory()
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(1, 2))
		roll := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }
		sick := &tapStore{Store: store, tap: func(ctx context.Context, method string, _ *taskstore.Record, do func() error) error {
			if method != "Create" && method != "Update" && method != "Delete" {
				return do()
			}
			time.Sleep(time.Duration(roll(3)) * time.Millisecond)
			switch roll(12) {
			case 0:
				return errStore
			case 1:
				return errors.Join(do(), errStore) // the answer is lost
			case 2:
				return &taskstore.QuotaError{Scope: taskstore.ScopeAccount, Err: taskstore.ErrQuotaBytes}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			return do()
		}}
		var running, most atomic.Int32
		work := func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			task.Progress(ctx, 1, 2, "half")
			return after(time.Duration(roll(20))*time.Millisecond)(ctx, task, in)
		}
		tool := numberTool("t", mcptask.Policy{TTL: time.Minute, Grace: 5 * time.Millisecond, OnLost: mcptask.RestartWhenLost}, work)
		a := newServer(t, Options{Store: sick, Concurrency: slots}, tool)
		b := newServer(t, Options{Store: store}, numberTool("other", mcptask.Policy{}, double))
		var calls sync.WaitGroup
		for i := range 1000 {
			calls.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i%5 == 0 {
					time.AfterFunc(time.Duration(roll(10))*time.Millisecond, cancel)
				}
				call := CallRequest{Mode: []Mode{ModeTask, ModeGrace}[i%2], Progress: func(string, float64, float64, string) {}}
				if i%3 == 0 {
					call.IdempotencyKey = fmt.Sprint("key ", i/9)
				}
				caller := Caller{Principal: fmt.Sprint("p", i%7), Revision: mcptask.Revision20260728}
				reply, err := a.Call(ctx, caller, "t", json.RawMessage(`{"n":1}`), call)
				if err == nil && reply.Task != nil && i%4 == 0 {
					_, _, _ = b.Cancel(t.Context(), caller, reply.Task.ID)
				}
			})
			time.Sleep(time.Duration(roll(4)) * time.Millisecond)
		}
		calls.Wait()
		sick.set(nil)
		time.Sleep(5 * time.Minute) // beyond the ttl
		synctest.Wait()
		a.mu.Lock()
		if len(a.running)+len(a.followed)+len(a.toFetch)+a.fetchers > 0 {
			t.Errorf("%d runs, %d followed tasks, %d to fetch, %d fetchers", len(a.running), len(a.followed), len(a.toFetch), a.fetchers)
		}
		a.mu.Unlock()
		for name, m := range map[string]*sync.Map{"progress": &a.progress} {
			m.Range(func(key, _ any) bool { t.Errorf("%s has %v", name, key); return true })
		}
		if free := a.line.Free(); free != slots || most.Load() != slots {
			t.Errorf("%d slots are free of %d, %d ran at once", free, slots, most.Load())
		}
		if n := running.Load(); n != 0 {
			t.Errorf("%d handlers run", n)
		}
		if n := a.resolving.Load(); n != 0 {
			t.Errorf("%d records are not resolved", n)
		}
	})
}

// TestMissedChanges checks that a handler learns that its task was cancelled or is gone, and a request
// that its task has changed, if the feed loses changes or never works.
func TestMissedChanges(t *testing.T) {
	lose := func(_ context.Context, method string, _ *taskstore.Record, do func() error) error {
		if method == "Change" {
			return nil
		}
		return do()
	}
	for name, c := range map[string]struct {
		tap    tap
		within time.Duration
	}{
		"the feed works":          {nil, 0},
		"the feed says that":      {lose, time.Second},
		"the feed fails again":    {before(func(context.Context) error { return errStore }, "Changes", "Change"), longestPause},
		"the feed panics again":   {before(func(context.Context) error { panic("no feed") }, "Changes"), longestPause},
		"the store tells at last": {lose, renewEvery},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			store := taskstore.NewMemory()
			line := &tapStore{Store: store, tap: c.tap}
			var causes sync.Map
			tool := numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				<-ctx.Done()
				causes.Store(task.ID(), context.Cause(ctx))
				return in, ctx.Err()
			})
			a, b := newServer(t, Options{Store: line}, tool), newServer(t, Options{Store: store}, tool)
			cancelled, deleted, waited := begin(t, a, alice, "t"), begin(t, a, alice, "t"), begin(t, b, alice, "t")
			time.Sleep(time.Minute + time.Second)
			var woken atomic.Bool
			go func() {
				_, err := a.Changed(t.Context(), alice, waited.ID, waited.Version)
				woken.Store(err == nil)
			}()
			synctest.Wait()
			for _, id := range []string{cancelled.ID, waited.ID} {
				if _, _, err := b.Cancel(t.Context(), alice, id); err != nil {
					t.Fatal(err)
				}
			}
			if err := store.Delete(t.Context(), deleted); err != nil {
				t.Fatal(err)
			}
			if c.within == time.Second {
				a.takeChange(taskstore.Change{Missed: true})
			}
			time.Sleep(c.within)
			synctest.Wait()
			for id, want := range map[string]error{cancelled.ID: mcptask.ErrCancelled, deleted.ID: mcptask.ErrExpired} {
				if cause, _ := causes.Load(id); fmt.Sprint(cause) != want.Error() {
					t.Errorf("a handler has ended by %v, want %v", cause, want)
				}
			}
			if !woken.Load() && c.within != renewEvery {
				t.Error("the request still waits")
			}
			time.Sleep(StoreWait)
		})
	}
}

// TestCancelBeforeStart checks that a handler does not start if its task is cancelled elsewhere while
// the answer of its Create is on the way.
func TestCancelBeforeStart(t *testing.T) {
	for _, stop := range []bool{false, true} {
		bubble.Test(t, func(t *testing.T) {
			store := taskstore.NewMemory()
			var runs atomic.Int32
			tool := numberTool("t", mcptask.Policy{}, counting(&runs, double))
			b := newServer(t, Options{Store: store}, tool)
			a := newServer(t, Options{Store: &tapStore{Store: store, tap: func(_ context.Context, method string, r *taskstore.Record, do func() error) error {
				err := do()
				if method == "Create" {
					if stop {
						err = errors.Join(err, b.Stop(t.Context(), alice, r.ID))
					} else {
						_, _, failed := b.Cancel(t.Context(), alice, r.ID)
						err = errors.Join(err, failed)
					}
					time.Sleep(time.Second)
				}
				return err
			}}}, tool)
			if r := ended(t, a, alice, begin(t, a, alice, "t").ID); r.Outcome.Kind != taskstore.OutcomeCancelled || runs.Load() != 0 {
				t.Errorf("%s after %d runs", outcomeText(r.Outcome), runs.Load())
			}
		})
	}
}

// TestSkewedReport checks that the events of a task have the store's time.
func TestSkewedReport(t *testing.T) {
	for _, skew := range []time.Duration{-5 * time.Minute, 5 * time.Minute} {
		bubble.Test(t, func(t *testing.T) {
			clock := func() time.Time { return time.Now().Add(skew) }
			s := newServer(t, Options{Store: taskstore.NewMemoryAt(clock)}, numberTool("t", mcptask.Policy{}, after(time.Second)))
			r := ended(t, s, alice, begin(t, s, alice, "t").ID)
			if off := r.TerminalAt.Sub(clock()).Abs(); off > time.Millisecond {
				t.Errorf("the end is off by %v", off)
			}
		})
	}
}

// TestQueueMovesAtOnce checks that another server takes the queue of one that closes without a pause.
func TestQueueMovesAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		tools := []mcptask.Tool{numberTool("t", mcptask.Policy{}, double), numberTool("hang", mcptask.Policy{}, hang)}
		a, b := newServer(t, Options{Store: store, Concurrency: 1}, tools...), newServer(t, Options{Store: store}, tools...)
		begin(t, a, alice, "hang")
		id := begin(t, a, alice, "t").ID
		time.Sleep(time.Second)
		began := time.Now()
		if err := a.server.Close(); err != nil {
			t.Error(err)
		}
		if r := ended(t, b, alice, id); outcomeText(r.Outcome) != doubled || time.Since(began) > time.Second {
			t.Errorf("%s after %v", outcomeText(r.Outcome), time.Since(began))
		}
	})
}
