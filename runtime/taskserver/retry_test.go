package taskserver

import (
	"context"
	"encoding/json"
	"errors"
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

// deaf returns a store call that hangs until the test ends. It ignores its context.
func deaf(t *testing.T) func(context.Context) error {
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	return func(context.Context) error {
		<-end
		return errStore
	}
}

// TestHungUpkeep checks that a live server keeps its tasks, whatever hangs in its store and however
// long.
func TestHungUpkeep(t *testing.T) {
	slow := func(context.Context) error { time.Sleep(45 * time.Second); return nil }
	for name, harm := range map[string]func(t *testing.T) tap{
		"a slow expiry":   func(*testing.T) tap { return before(slow, "Expire") },
		"a deaf expiry":   func(t *testing.T) tap { return before(deaf(t), "Expire") },
		"a slow adoption": func(*testing.T) tap { return before(slow, "Lease") },
		"a deaf adoption": func(t *testing.T) tap { return before(deaf(t), "Lease") },
		"a deaf renewal":  func(t *testing.T) tap { return before(first(2, deaf(t)), "Beat") },
		"a lost renewal": func(*testing.T) tap {
			return before(first(2, func(ctx context.Context) error { <-ctx.Done(); return errStore }), "Beat")
		},
		"a refused renewal": func(*testing.T) tap {
			return before(first(3, func(context.Context) error { return errStore }), "Beat")
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			store := taskstore.NewMemory()
			sick := &tapStore{Store: store}
			tool := numberTool("t", mcptask.Policy{TTL: time.Hour}, later(10*time.Minute))
			a, err := New(Options{Store: sick}, mcptask.Tools{Service: "A", Impl: 1, Tools: []mcptask.Tool{tool}})
			if err != nil {
				t.Fatal(err)
			}
			b := newServer(t, Options{Store: store}, tool)
			id := begin(t, a.Backend(), alice, "t").ID
			time.Sleep(time.Second)
			sick.set(harm(t))
			if r := ended(t, b, alice, id); outcomeText(r.Outcome) != doubled || r.Attempt != 1 {
				t.Errorf("attempt %d: %s", r.Attempt, outcomeText(r.Outcome))
			}
			began := time.Now()
			if err := a.Close(); time.Since(began) > DefaultDrain+CloseMargin {
				t.Errorf("closed after %v: %v", time.Since(began), err)
			}
			time.Sleep(time.Minute) // slow calls end
		})
	}
}

// TestPanickingUpkeep checks that the upkeep of a server survives a store that panics.
func TestPanickingUpkeep(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		calls := map[string]*atomic.Int32{"Expire": {}, "Beat": {}}
		sick := &tapStore{Store: taskstore.NewMemory(), tap: func(_ context.Context, method string, _ *taskstore.Record, do func() error) error {
			if n := calls[method]; n != nil && n.Add(1) > 1 {
				panic(method)
			}
			return do()
		}}
		s := newServer(t, Options{Store: sick}, numberTool("t", mcptask.Policy{}, later(time.Minute)))
		if r := ended(t, s, alice, begin(t, s, alice, "t").ID); outcomeText(r.Outcome) != doubled {
			t.Errorf("%s", outcomeText(r.Outcome))
		}
		for method, n := range calls {
			if n.Load() < 2 {
				t.Errorf("%s was called %d times", method, n.Load())
			}
		}
	})
}

// first returns a store call that goes wrong the first n times.
func first(n int32, wrong func(context.Context) error) func(context.Context) error {
	var calls atomic.Int32
	return func(ctx context.Context) error {
		if calls.Add(1) <= n {
			return wrong(ctx)
		}
		return nil
	}
}

// TestHungClose checks that Close ends in time with an error if the store does not return.
func TestHungClose(t *testing.T) {
	for name, methods := range map[string][]string{
		"release": {"Release"},
		"update":  {"Update"},
		"all":     {"Update", "Expire", "Lease", "Beat", "Release"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			sick := &tapStore{Store: taskstore.NewMemory()}
			s, err := New(Options{Store: sick, Drain: time.Second}, mcptask.Tools{Service: "A", Impl: 1, Tools: []mcptask.Tool{
				numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) { <-ctx.Done(); return in, nil })}})
			if err != nil {
				t.Fatal(err)
			}
			begin(t, s.Backend(), alice, "t")
			time.Sleep(time.Second)
			sick.set(before(deaf(t), methods...))
			began := time.Now()
			if err := s.Close(); err == nil || time.Since(began) > time.Second+CloseMargin {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
	}
}

// TestConflicts checks that a store that returns only conflicts is called a bounded number of
// times, and not at all once the server is closed.
func TestConflicts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var conflicts atomic.Int32
		sick := &tapStore{Store: taskstore.NewMemory()}
		s := newServer(t, Options{Store: sick, Drain: time.Second}, numberTool("t", mcptask.Policy{TTL: time.Hour}, hang))
		id := begin(t, s, alice, "t").ID
		time.Sleep(time.Second)
		sick.set(before(func(context.Context) error {
			if n := conflicts.Add(1); n > 1000 {
				panic("no end")
			}
			return taskstore.ErrConflict
		}, "Update"))
		began := time.Now()
		_, _, err := s.Cancel(t.Context(), alice, id)
		if wireError(err).Code != mcptask.CodeInternalError || time.Since(began) > 2*StorePatience {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if n := conflicts.Load(); n < 2 || n > 100 {
			t.Errorf("%d tries", n)
		}
		if err := s.server.Close(); err != nil {
			t.Log(err)
		}
		conflicts.Store(0)
		time.Sleep(time.Hour)
		if n := conflicts.Load(); n > 0 {
			t.Errorf("%d tries after Close", n)
		}
	})
}

// TestLostCreate checks that a task that was not announced soon stops counting, even if the store
// answered neither its creation nor its deletion.
func TestLostCreate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		sick := &tapStore{Store: store}
		var ran atomic.Bool
		s := newServer(t, Options{Store: sick, Limits: Limits{Tasks: 1}}, numberTool("t", mcptask.Policy{Task: mcptask.TaskOptional, TTL: 24 * time.Hour},
			func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				ran.Store(true)
				return in, nil
			}))
		sick.set(func(_ context.Context, method string, r *taskstore.Record, do func() error) error {
			switch method {
			case "Create":
				err := do()
				*r = taskstore.Record{}
				return errors.Join(errStore, err)
			case "Get", "Delete":
				return errStore
			}
			return do()
		})
		_, err := s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeTask})
		if wireError(err).Code != mcptask.CodeInternalError {
			t.Fatalf("%v", err)
		}
		time.Sleep(10 * time.Minute)
		if all, err := store.List(t.Context(), "alice", taskstore.Position{}, 5); err != nil || len(all) != 1 {
			t.Fatalf("%d tasks, %v", len(all), err)
		}
		sick.set(nil)
		time.Sleep(leaseFor)
		if all, err := store.List(t.Context(), "alice", taskstore.Position{}, 5); err != nil || len(all) != 0 || ran.Load() {
			t.Errorf("%d tasks, %v; its handler has run: %v", len(all), err, ran.Load())
		}
		begin(t, s, alice, "t")
	})
}

// TestLateCreate checks that a task with an idempotency key runs once even if the store has it only
// some time after its Create has failed, and that it is forgotten if that never happens.
func TestLateCreate(t *testing.T) {
	for _, concurrency := range []int{DefaultConcurrency, 1} { // with a reserved slot, and in line
		bubble.Test(t, func(t *testing.T) {
			store := taskstore.NewMemory()
			var late []taskstore.Record
			line := &tapStore{Store: store}
			var runs atomic.Int32
			tool := numberTool("t", restart, counting(&runs, later(time.Minute)))
			a := newServer(t, Options{Store: line, Concurrency: concurrency}, tool, numberTool("brief", mcptask.Policy{}, after(time.Second)))
			b := newServer(t, Options{Store: store}, tool)
			begin(t, a, alice, "brief")
			line.set(func(ctx context.Context, method string, r *taskstore.Record, do func() error) error {
				if method == "Create" {
					late = append(late, *r)
					return errStore
				}
				return do()
			})
			call := CallRequest{Mode: ModeTask, IdempotencyKey: "key"}
			if _, err := a.Call(t.Context(), alice, "t", json.RawMessage(`{"n":21}`), call); err == nil {
				t.Fatal("taken")
			}
			line.set(nil)
			time.Sleep(leaseFor / 2)
			if _, err := store.Create(t.Context(), late[0], taskstore.Quota{}); err != nil {
				t.Fatal(err)
			}
			reply, err := b.Call(t.Context(), alice, "t", json.RawMessage(`{"n":21}`), call)
			if err != nil || reply.Task.ID != late[0].ID {
				t.Fatalf("%+v, %v", reply, err)
			}
			began := time.Now()
			if r := ended(t, b, alice, reply.Task.ID); outcomeText(r.Outcome) != doubled || r.Attempt != 1 || runs.Load() != 1 || time.Since(began) > 2*time.Minute {
				t.Errorf("attempt %d: %s after %v and %d runs", r.Attempt, outcomeText(r.Outcome), time.Since(began), runs.Load())
			}
			line.set(before(func(context.Context) error { return errStore }, "Create"))
			call.IdempotencyKey = "other key"
			if _, err := a.Call(t.Context(), alice, "t", json.RawMessage(`{"n":21}`), call); err == nil {
				t.Fatal("taken")
			}
			time.Sleep(2 * leaseFor)
			if n := a.resolving.Load(); n != 0 {
				t.Errorf("%d are not forgotten", n)
			}
		})
	}
}

// TestOneTaskOfAName checks that one of two callers gets the name of a task that both find to be
// over.
func TestOneTaskOfAName(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		tools := []mcptask.Tool{numberTool("t", mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Minute}, later(30*time.Second))}
		a := newServer(t, Options{Store: store}, tools...)
		sick := &tapStore{Store: store}
		b := newServer(t, Options{Store: sick}, tools...)
		create := func(s *Backend) (CallReply, error) {
			return s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeTask, ExternalID: "name"})
		}
		time.Sleep(500 * time.Millisecond) // the end falls between two sweeps
		if _, err := create(a); err != nil {
			t.Fatal(err)
		}
		id := alice.Named("name")
		// b reads the task that is over, and then a is faster by far.
		over, err := store.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + time.Millisecond)
		sick.set(func(ctx context.Context, method string, r *taskstore.Record, do func() error) error {
			if method != "Get" {
				return do()
			}
			sick.set(nil)
			if _, err := store.Expire(ctx, 5); err != nil {
				t.Error(err)
			}
			if reply, err := create(a); err != nil || reply.Task == nil {
				t.Errorf("%+v, %v", reply, err)
			}
			*r = over
			return nil
		})
		_, err = create(b)
		if wireError(err).Code != mcptask.CodeInvalidParams {
			t.Errorf("two tasks of one name: %v", err)
		}
		if r := ended(t, a, alice, id); outcomeText(r.Outcome) != doubled {
			t.Errorf("%s", outcomeText(r.Outcome))
		}
	})
}

// TestCancelElsewhere checks that a cancel in another process reaches the handler at once, through
// the feed of the store, whatever the handler does.
func TestCancelElsewhere(t *testing.T) {
	report := func(ctx context.Context, task *mcptask.Task, _ number) (number, error) {
		for ctx.Err() == nil {
			time.Sleep(time.Second)
			task.Progress(ctx, 1, 2, "on")
		}
		return number{}, context.Cause(ctx)
	}
	for name, cancel := range map[string]func(*testing.T, *Backend, string) error{
		"cancelled": func(t *testing.T, s *Backend, id string) error {
			_, _, err := s.Cancel(t.Context(), alice, id)
			return err
		},
		"asked to stop": func(t *testing.T, s *Backend, id string) error { return s.Stop(t.Context(), alice, id) },
	} {
		for does, handler := range map[string]func(context.Context, *mcptask.Task, number) (number, error){"reports": report, "asks": confirm, "waits": hang} {
			bubble.Run(t, name+"/"+does, func(t *testing.T) {
				store := taskstore.NewMemory()
				causes := make(chan error, 1)
				tool := numberTool("t", mcptask.Policy{TTL: time.Hour}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
					context.AfterFunc(ctx, func() { causes <- context.Cause(ctx) })
					return handler(ctx, task, in)
				})
				a := newServer(t, Options{Store: store}, tool)
				b := newServer(t, Options{Store: store}, tool)
				id := begin(t, a, alice, "t").ID
				time.Sleep(5 * time.Second)
				if err := cancel(t, b, id); err != nil {
					t.Fatal(err)
				}
				cancelled := time.Now()
				if cause := <-causes; !errors.Is(cause, mcptask.ErrCancelled) || !time.Now().Equal(cancelled) {
					t.Errorf("the handler's context ended by %v after %v", cause, time.Since(cancelled))
				}
				if r := ended(t, b, alice, id); r.Outcome.Kind != taskstore.OutcomeCancelled {
					t.Errorf("%s", outcomeText(r.Outcome))
				}
			})
		}
	}
}

// TestRollingDeploy checks that a task waits for a server that has its tool if the other servers do
// not have it yet, or no longer. If no such server comes, the task ends by its ttl.
func TestRollingDeploy(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		tool := numberTool("new", mcptask.Policy{TTL: time.Hour, OnLost: mcptask.RestartWhenLost}, later(time.Minute))
		other := numberTool("old", mcptask.Policy{}, double)
		gone := numberTool("gone", mcptask.Policy{TTL: time.Hour}, double)
		a := newServer(t, Options{Store: store, Concurrency: 1}, tool, other, gone)
		running, queued, forsaken := begin(t, a, alice, "new").ID, begin(t, a, alice, "new").ID, begin(t, a, alice, "gone").ID
		began := time.Now()
		synctest.Wait()
		if err := a.server.Close(); err != nil {
			t.Error(err)
		}
		c := newServer(t, Options{Store: store}, other)
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := c.Await(t.Context(), alice, forsaken); !errors.Is(err, mcptask.ErrExpired) {
				t.Errorf("a task without a server for its tool ended with %v", err)
			}
		})
		time.Sleep(10 * time.Minute)
		for _, id := range []string{running, queued} {
			if r, err := store.Get(t.Context(), id); err != nil || r.Done() {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		b := newServer(t, Options{Store: store}, tool)
		for _, id := range []string{running, queued} {
			if r := ended(t, b, alice, id); outcomeText(r.Outcome) != doubled {
				t.Errorf("%s", outcomeText(r.Outcome))
			}
		}
		all.Wait()
		if took := time.Since(began); took != time.Hour {
			t.Errorf("it ended after %v", took)
		}
	})
}

// TestPoisonedTask checks that a task that kills its workers runs as often as its tool says. Runs
// that a closing server hands over do not count.
func TestPoisonedTask(t *testing.T) {
	for attempts, want := range map[int]int32{0: mcptask.DefaultAttempts, 1: 1, 3: 3} {
		bubble.Run(t, fmt.Sprint("attempts=", attempts), func(t *testing.T) { poisonWorkers(t, attempts, want) })
	}
}

// poisonWorkers runs a task that kills its workers, of a tool with attempts, until it has ended. It
// wants so many runs.
func poisonWorkers(t *testing.T, attempts int, want int32) {
	store := taskstore.NewMemory()
	policy := mcptask.Policy{TTL: 24 * time.Hour, OnLost: mcptask.RestartWhenLost, Attempts: attempts}
	var runs atomic.Int32
	end := make(chan struct{})
	defer close(end)
	poison := numberTool("t", policy, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
		runs.Add(1)
		<-end
		return in, nil
	})
	hands := numberTool("handed", policy, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
		if task.Attempt() <= 2*int(want) {
			<-ctx.Done()
			return in, ctx.Err()
		}
		return double(ctx, task, in)
	})
	serve := func() (*Backend, *tapStore) {
		line := &tapStore{Store: store}
		s, err := New(Options{Store: line, Drain: time.Second}, mcptask.Tools{Service: "A", Impl: 1, Tools: []mcptask.Tool{poison, hands}})
		if err != nil {
			t.Fatal(err)
		}
		return s.Backend(), line
	}
	s, line := serve()
	id, handed := begin(t, s, alice, "t").ID, begin(t, s, alice, "handed").ID
	for range 3 * want {
		time.Sleep(2 * leaseFor)
		if r, err := store.Get(t.Context(), handed); err != nil || r.Done() {
			break
		}
		a := s
		if runs.Load() < want { // it dies
			line.set(cut)
		}
		_ = a.server.Close()
		s, line = serve()
	}
	if r := ended(t, s, alice, handed); outcomeText(r.Outcome) != doubled {
		t.Errorf("handed over: %s after %d attempts", outcomeText(r.Outcome), r.Attempt)
	}
	if r := ended(t, s, alice, id); !errors.Is(r.Outcome.Error, mcptask.ErrWorkerLost) || runs.Load() != want {
		t.Errorf("%s after %d runs", outcomeText(r.Outcome), runs.Load())
	}
	if err := s.server.Close(); err != nil {
		t.Log(err)
	}
}
