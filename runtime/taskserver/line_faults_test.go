package taskserver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestLineAfterLostRaces checks that a server goes on with the line if another one has taken all that it reached for.
func TestLineAfterLostRaces(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		var runs, lost atomic.Int32
		tool := numberTool("t", mcptask.Policy{}, counting(&runs, after(time.Hour)))
		busy := newServer(t, Options{Store: store, Concurrency: 1}, tool)
		for range 9 {
			begin(t, busy, alice, "t")
		}
		if _, err := store.Beat(t.Context(), "other", time.Hour, nil); err != nil {
			t.Fatal(err)
		}
		var idle atomic.Bool
		idle.Store(true)
		raced := &tapStore{Store: store, tap: func(ctx context.Context, method string, r *taskstore.Record, do func() error) error {
			if method == "Waiting" && idle.Load() {
				return nil
			}
			if method == "Update" && r.Claim.State == taskstore.ClaimRunning && lost.Add(1) <= 4 {
				from, err := store.Get(ctx, r.ID)
				if err != nil {
					return err
				}
				to := from
				to.Phase, to.Claim, to.Nonce = taskstore.PhaseRunning, taskstore.Claim{Worker: "other", State: taskstore.ClaimRunning}, "other's"
				if _, err := store.Update(ctx, from, to, taskstore.Quota{}); err != nil {
					return err
				}
			}
			return do()
		}}
		newServer(t, Options{Store: raced, Concurrency: 4}, tool)
		time.Sleep(5 * time.Second)
		idle.Store(false)
		if time.Sleep(7 * time.Second); runs.Load() != 5 {
			t.Errorf("%d run", runs.Load())
		}
	})
}

// TestLineGoesPastAStuckStart checks that a task whose start the store does not take holds up no other.
func TestLineGoesPastAStuckStart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &tapStore{Store: taskstore.NewMemory()}
		s := newServer(t, Options{Store: store, Concurrency: 2, Logger: (&logged{}).logger()},
			numberTool("brief", mcptask.Policy{}, after(time.Second)), numberTool("t", mcptask.Policy{}, double))
		begin(t, s, alice, "brief")
		begin(t, s, alice, "brief")
		stuck := begin(t, s, alice, "t").ID
		store.set(func(_ context.Context, method string, r *taskstore.Record, do func() error) error {
			if method == "Update" && r.ID == stuck {
				return errStore
			}
			return do()
		})
		time.Sleep(10 * time.Second)
		began := time.Now()
		for range 3 {
			ended(t, s, alice, begin(t, s, alice, "t").ID)
		}
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("the others wait for %v", waited)
		}
		store.set(nil)
		ended(t, s, alice, stuck)
	})
}

// TestLineBehindACrowd checks that a task runs at once in the slots that are kept free, however many accounts of
// strangers come before it.
func TestLineBehindACrowd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		hour := numberTool("hour", mcptask.Policy{}, after(time.Hour))
		double := numberTool("t", mcptask.Policy{}, double)
		s := newServer(t, Options{Concurrency: 16}, hour, double)
		var first string
		var whose Caller
		for i := range 300 {
			stranger := Caller{Session: fmt.Sprintf("%020d", i), Revision: mcptask.Revision20251125}
			r := begin(t, s, stranger, "hour")
			if i == 0 {
				first, whose = r.ID, stranger
			}
		}
		if _, _, err := s.Cancel(t.Context(), whose, first); err != nil { // the next turn is that of a stranger
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for _, who := range []string{"0", "alice", "zoe", "\xff"} {
			began := time.Now()
			ended(t, s, Caller{Principal: who, Revision: mcptask.Revision20251125}, begin(t, s, Caller{Principal: who, Revision: mcptask.Revision20251125}, "t").ID)
			if waited := time.Since(began); waited > time.Second {
				t.Errorf("%q has waited for %v", who, waited)
			}
		}
	})
}

// TestNewTaskWhileALookIsSlow checks that a look at a slow store holds up no new task while there are slots enough.
func TestNewTaskWhileALookIsSlow(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &tapStore{Store: taskstore.NewMemory(), tap: before(func(ctx context.Context) error { <-ctx.Done(); return errStore }, "Waiting")}
		s := newServer(t, Options{Store: store, Concurrency: 4, Logger: (&logged{}).logger()}, numberTool("t", mcptask.Policy{}, double))
		s.noteWaiting()
		began := time.Now()
		ended(t, s, alice, begin(t, s, alice, "t").ID)
		if waited := time.Since(began); waited > 0 {
			t.Errorf("it has waited for %v", waited)
		}
	})
}

// TestLookAfterFailure checks that a server looks again soon after the store has failed.
func TestLookAfterFailure(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &tapStore{Store: taskstore.NewMemory()}
		s := newServer(t, Options{Store: store, Concurrency: 1, Logger: (&logged{}).logger()},
			numberTool("brief", mcptask.Policy{}, after(time.Second)), numberTool("t", mcptask.Policy{}, double))
		begin(t, s, alice, "brief")
		waiting := begin(t, s, alice, "t")
		var failed atomic.Bool
		store.set(before(func(context.Context) error {
			if s.line.Free() > 0 && failed.CompareAndSwap(false, true) {
				return errStore
			}
			return nil
		}, "Waiting"))
		began := time.Now()
		if ended(t, s, alice, waiting.ID); time.Since(began) > 4*time.Second || !failed.Load() {
			t.Errorf("it has waited for %v", time.Since(began))
		}
	})
}

// TestNewTaskOfABoundedTool checks that a new task does not take the place of its tool that one in line waits for.
func TestNewTaskOfABoundedTool(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &tapStore{Store: taskstore.NewMemory()}
		order := make(chan string, 3)
		s := newServer(t, Options{Store: store}, numberTool("t", mcptask.Policy{Task: mcptask.TaskOptional, Concurrency: 1}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			order <- task.Principal()
			return after(time.Minute)(ctx, task, in)
		}))
		for _, who := range []string{"first", "second"} {
			begin(t, s, Caller{Principal: who, Revision: mcptask.Revision20251125}, "t")
		}
		time.Sleep(time.Second)
		store.set(before(func(context.Context) error { time.Sleep(time.Second); return nil }, "Waiting"))
		time.Sleep(time.Minute - time.Second/2) // the first one has ended, and the server looks for the next
		begin(t, s, Caller{Principal: "third", Revision: mcptask.Revision20251125}, "t")
		time.Sleep(3 * time.Minute)
		for _, want := range []string{"first", "second", "third"} {
			if got := <-order; got != want {
				t.Errorf("%s runs before %s", got, want)
			}
		}
	})
}

// TestBoundHandlerWaits checks that a task which waits runs with the handler of its call, however soon it starts.
func TestBoundHandlerWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var s *Backend
		store := &tapStore{Store: taskstore.NewMemory()}
		s = newServer(t, Options{Store: store, Concurrency: 1}, numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional}, hang), numberTool("t", mcptask.Policy{Task: mcptask.TaskOptional}, double))
		former := begin(t, s, alice, "hang")
		store.set(func(ctx context.Context, method string, r *taskstore.Record, do func() error) error {
			err := do()
			if method == "Create" { // the slot is free before the store has answered
				_, _, _ = s.Cancel(ctx, alice, former.ID)
				time.Sleep(time.Second)
			}
			return err
		})
		reply, err := s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeTask, Bind: func(json.RawMessage) (mcptask.BoundCall, error) {
			return func(context.Context, *mcptask.Task) (*mcptask.Result, error) {
				return mcptask.ErrorResult("bound"), nil
			}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if r := ended(t, s, alice, reply.Task.ID); !strings.Contains(outcomeText(r.Outcome), "bound") {
			t.Errorf("%s", outcomeText(r.Outcome))
		}
		if _, isKept := s.bound.Load(reply.Task.ID); isKept {
			t.Error("the handler is kept after the end")
		}
	})
}

// TestExecutorLineOnce checks that a server with an executor of its own reads the line once if the store takes none of
// its claims.
func TestExecutorLineOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		busy := newServer(t, Options{Store: store, Concurrency: 1}, numberTool("t", mcptask.Policy{}, hang))
		for range mostHeads + 1 {
			begin(t, busy, alice, "t")
		}
		var looks atomic.Int32
		refusing := &tapStore{Store: store, tap: func(_ context.Context, method string, _ *taskstore.Record, do func() error) error {
			switch method {
			case "Waiting":
				looks.Add(1)
			case "Update":
				return taskstore.ErrQuotaBytes
			}
			return do()
		}}
		newServer(t, Options{Store: refusing, Executor: func(run RunFunc) (Executor, error) { return newSlotExecutor(run, 1), nil }, Logger: (&logged{}).logger()}, numberTool("t", mcptask.Policy{}, double))
		if time.Sleep(time.Minute); looks.Load() == 0 || looks.Load() > 10 {
			t.Errorf("%d looks in a minute", looks.Load())
		}
	})
}

// TestToolAddedLater checks that a server takes the tasks of a tool as soon as it has the tool.
func TestToolAddedLater(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		tool := numberTool("t", mcptask.Policy{}, hang)
		busy := newServer(t, Options{Store: store, Concurrency: 1}, tool)
		begin(t, busy, alice, "t")
		waiting := begin(t, busy, alice, "t")
		s := newServer(t, Options{Store: store})
		time.Sleep(time.Second)
		began := time.Now()
		if err := s.server.Register(mcptask.Tools{Service: "Later", Impl: struct{}{}, Tools: []mcptask.Tool{numberTool("t", mcptask.Policy{}, double)}}); err != nil {
			t.Fatal(err)
		}
		if ended(t, s, alice, waiting.ID); time.Since(began) > time.Second {
			t.Errorf("its task has waited for %v", time.Since(began))
		}
	})
}
