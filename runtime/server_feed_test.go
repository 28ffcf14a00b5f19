package mcptask

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
)

// TestNothingIsLeft makes a thousand calls whose tasks are created, refused, lost, repeated, left and
// cancelled, here and elsewhere. Then the server remembers nothing of them, and all its slots are
// free.
func TestNothingIsLeft(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const slots = 4
		store := NewMemoryStore()
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(1, 2))
		roll := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }
		sick := &tapStore{Store: store, tap: func(ctx context.Context, method string, _ *Record, do func() error) error {
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
				return &QuotaError{ScopeAccount, ErrQuotaBytes}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			return do()
		}}
		var running, most atomic.Int32
		work := func(ctx context.Context, task *Task, in number) (number, error) {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			task.Progress(ctx, 1, 2, "half")
			return after(time.Duration(roll(20))*time.Millisecond)(ctx, task, in)
		}
		tool := numberTool("t", Policy{TTL: time.Minute, Grace: 5 * time.Millisecond, OnLost: RestartWhenLost}, work)
		a := newServer(t, Options{Store: sick, Concurrency: slots}, tool)
		b := newServer(t, Options{Store: store}, numberTool("other", Policy{}, double))
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
				caller := Caller{Principal: fmt.Sprint("p", i%7), Revision: Revision20260728}
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
		if len(a.running)+len(a.followed)+len(a.unread)+a.feedReaders > 0 {
			t.Errorf("%d runs, %d followed tasks, %d unread, %d readers", len(a.running), len(a.followed), len(a.unread), a.feedReaders)
		}
		a.mu.Unlock()
		for name, m := range map[string]*sync.Map{"progress": &a.progress, "unsure": &a.unsure, "names": &a.pendingNames} {
			m.Range(func(key, _ any) bool { t.Errorf("%s has %v", name, key); return true })
		}
		if free, queued := a.executor.(localExecutor).Load(); free != slots || queued != 0 || most.Load() != slots {
			t.Errorf("%d slots are free of %d, %d wait, %d ran at once", free, slots, queued, most.Load())
		}
		if n := running.Load(); n != 0 {
			t.Errorf("%d handlers run", n)
		}
	})
}
