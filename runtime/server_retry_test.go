package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// hooked is a store with other methods in the place of its own.
type hooked struct {
	Store
	mu      sync.Mutex
	create  func(ctx context.Context, r Record, quota Quota) (Record, error)
	get     func(ctx context.Context, id string) (Record, error)
	update  func(ctx context.Context, r Record) (Record, error)
	delete  func(ctx context.Context, r Record) error
	expire  func(ctx context.Context) error
	lease   func(ctx context.Context) error
	renew   func(ctx context.Context) error
	release func(ctx context.Context) error
}

// set changes them.
func (s *hooked) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// hook is one of them.
func hook[F any](s *hooked, field *F) F {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *field
}

func (s *hooked) Create(ctx context.Context, r Record, quota Quota) (Record, error) {
	if do := hook(s, &s.create); do != nil {
		return do(ctx, r, quota)
	}
	return s.Store.Create(ctx, r, quota)
}

func (s *hooked) Get(ctx context.Context, id string) (Record, error) {
	if do := hook(s, &s.get); do != nil {
		return do(ctx, id)
	}
	return s.Store.Get(ctx, id)
}

func (s *hooked) Update(ctx context.Context, r Record, quota Quota) (Record, error) {
	if do := hook(s, &s.update); do != nil {
		return do(ctx, r)
	}
	return s.Store.Update(ctx, r, quota)
}

func (s *hooked) Delete(ctx context.Context, r Record) error {
	if do := hook(s, &s.delete); do != nil {
		return do(ctx, r)
	}
	return s.Store.Delete(ctx, r)
}

func (s *hooked) Expire(ctx context.Context, now time.Time, limit int) ([]Record, error) {
	if do := hook(s, &s.expire); do != nil {
		if err := do(ctx); err != nil {
			return nil, err
		}
	}
	return s.Store.Expire(ctx, now, limit)
}

func (s *hooked) Lease(ctx context.Context, worker string, now, until time.Time, limit int) ([]Record, error) {
	if do := hook(s, &s.lease); do != nil {
		if err := do(ctx); err != nil {
			return nil, err
		}
	}
	return s.Store.Lease(ctx, worker, now, until, limit)
}

func (s *hooked) Renew(ctx context.Context, worker string, until time.Time) error {
	if do := hook(s, &s.renew); do != nil {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return s.Store.Renew(ctx, worker, until)
}

func (s *hooked) Release(ctx context.Context, worker string) error {
	if do := hook(s, &s.release); do != nil {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return s.Store.Release(ctx, worker)
}

// deaf is a call of a store that hangs until the test ends, whatever its context
// says.
func deaf(t *testing.T) func(context.Context) error {
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	return func(context.Context) error {
		<-end
		return errStore
	}
}

// TestHungUpkeep: whatever hangs in a store, and however long, a server that lives
// keeps its tasks.
func TestHungUpkeep(t *testing.T) {
	slow := func(context.Context) error { time.Sleep(45 * time.Second); return nil }
	for name, harm := range map[string]func(t *testing.T, s *hooked){
		"a slow expiry":   func(_ *testing.T, s *hooked) { s.expire = slow },
		"a deaf expiry":   func(t *testing.T, s *hooked) { s.expire = deaf(t) },
		"a slow adoption": func(_ *testing.T, s *hooked) { s.lease = slow },
		"a deaf adoption": func(t *testing.T, s *hooked) { s.lease = deaf(t) },
		"a deaf renewal":  func(t *testing.T, s *hooked) { s.renew = first(2, deaf(t)) },
		"a lost renewal": func(_ *testing.T, s *hooked) {
			s.renew = first(2, func(ctx context.Context) error { <-ctx.Done(); return errStore })
		},
		"a refused renewal": func(_ *testing.T, s *hooked) { s.renew = first(3, func(context.Context) error { return errStore }) },
	} {
		bubble.Run(t, name, func(t *testing.T) {
			store := NewMemoryStore()
			sick := &hooked{Store: store}
			tool := numberTool("t", Policy{TTL: time.Hour}, later(10*time.Minute))
			a, err := NewServer(Options{Store: sick}, Tools{Service: "A", Impl: 1, Tools: []Tool{tool}})
			if err != nil {
				t.Fatal(err)
			}
			b := newServer(t, Options{Store: store}, tool)
			id := begin(t, a, alice, "t").ID
			time.Sleep(time.Second)
			sick.set(func() { harm(t, sick) })
			if r := ended(t, b, alice, id); outcomeText(r.Outcome) != doubled || r.Attempt != 1 {
				t.Errorf("attempt %d: %s", r.Attempt, outcomeText(r.Outcome))
			}
			began := time.Now()
			if err := a.Close(); time.Since(began) > DefaultDrain+CloseMargin {
				t.Errorf("closed after %v: %v", time.Since(began), err)
			}
			time.Sleep(time.Minute) // what is slow ends
		})
	}
}

// first lets the first calls go wrong.
func first(n int32, wrong func(context.Context) error) func(context.Context) error {
	var calls atomic.Int32
	return func(ctx context.Context) error {
		if calls.Add(1) <= n {
			return wrong(ctx)
		}
		return nil
	}
}

// TestHungClose: Close ends in time though the store does not return, and says so.
func TestHungClose(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, s *hooked){
		"release": func(t *testing.T, s *hooked) { s.release = deaf(t) },
		"update": func(t *testing.T, s *hooked) {
			wait := deaf(t)
			s.update = func(ctx context.Context, r Record) (Record, error) { return r, wait(ctx) }
		},
		"all": func(t *testing.T, s *hooked) {
			wait := deaf(t)
			s.update = func(ctx context.Context, r Record) (Record, error) { return r, wait(ctx) }
			s.expire, s.lease, s.renew, s.release = wait, wait, wait, wait
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			sick := &hooked{Store: NewMemoryStore()}
			s, err := NewServer(Options{Store: sick, Drain: time.Second}, Tools{Service: "A", Impl: 1, Tools: []Tool{
				numberTool("t", Policy{}, func(ctx context.Context, task *Task, in number) (number, error) { <-ctx.Done(); return in, nil })}})
			if err != nil {
				t.Fatal(err)
			}
			begin(t, s, alice, "t")
			time.Sleep(time.Second)
			sick.set(func() { harm(t, sick) })
			began := time.Now()
			if err := s.Close(); err == nil || time.Since(began) > time.Second+CloseMargin {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		})
	}
}

// TestConflicts: a store that has nothing but conflicts is asked a bounded number of
// times, and not at all once the server is closed.
func TestConflicts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var conflicts atomic.Int32
		sick := &hooked{Store: NewMemoryStore()}
		s := newServer(t, Options{Store: sick, Drain: time.Second}, numberTool("t", Policy{TTL: time.Hour}, hang))
		id := begin(t, s, alice, "t").ID
		time.Sleep(time.Second)
		sick.set(func() {
			sick.update = func(_ context.Context, r Record) (Record, error) {
				if n := conflicts.Add(1); n > 1000 {
					panic("no end")
				}
				return r, ErrConflict
			}
		})
		began := time.Now()
		_, _, err := s.Cancel(t.Context(), alice, id)
		var wire *Error
		if !errors.As(err, &wire) || wire.Code != CodeInternalError || time.Since(began) > 2*StorePatience {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if n := conflicts.Load(); n < 2 || n > 100 {
			t.Errorf("%d tries", n)
		}
		if err := s.Close(); err != nil {
			t.Log(err)
		}
		conflicts.Store(0)
		time.Sleep(time.Hour)
		if n := conflicts.Load(); n > 0 {
			t.Errorf("%d tries after Close", n)
		}
	})
}

// TestLostCreate: a task that nobody was told of does not count for long, though
// neither its creation nor its deletion was answered.
func TestLostCreate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := NewMemoryStore()
		sick := &hooked{Store: store}
		var ran atomic.Bool
		s := newServer(t, Options{Store: sick, Limits: Limits{Tasks: 1}}, numberTool("t", Policy{Task: TaskOptional, TTL: 24 * time.Hour},
			func(ctx context.Context, task *Task, in number) (number, error) { ran.Store(true); return in, nil }))
		sick.set(func() {
			sick.create = func(ctx context.Context, r Record, quota Quota) (Record, error) {
				_, err := store.Create(ctx, r, quota)
				return Record{}, errors.Join(errStore, err)
			}
			sick.get = func(context.Context, string) (Record, error) { return Record{}, errStore }
			sick.delete = func(context.Context, Record) error { return errStore }
		})
		_, err := s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeTask})
		var wire *Error
		if !errors.As(err, &wire) || wire.Code != CodeInternalError {
			t.Fatalf("%v", err)
		}
		time.Sleep(10 * time.Minute)
		if all, err := store.List(t.Context(), "alice", Position{}, 5); err != nil || len(all) != 1 {
			t.Fatalf("%d tasks, %v", len(all), err)
		}
		sick.set(func() { sick.create, sick.get, sick.delete = nil, nil, nil })
		time.Sleep(leaseFor)
		if all, err := store.List(t.Context(), "alice", Position{}, 5); err != nil || len(all) != 0 || ran.Load() {
			t.Errorf("%d tasks, %v; its handler has run: %v", len(all), err, ran.Load())
		}
		begin(t, s, alice, "t")
	})
}

// TestOneTaskOfAName: of two callers that find a task of a name to be over, one
// gets the name.
func TestOneTaskOfAName(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := NewMemoryStore()
		tools := []Tool{numberTool("t", Policy{Task: TaskOptional, TTL: time.Minute}, later(30*time.Second))}
		a := newServer(t, Options{Store: store}, tools...)
		sick := &hooked{Store: store}
		b := newServer(t, Options{Store: sick}, tools...)
		create := func(s *Server) (CallReply, error) {
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
		sick.set(func() {
			sick.get = func(ctx context.Context, id string) (Record, error) {
				sick.set(func() { sick.get = nil })
				if _, err := store.Expire(ctx, time.Now(), 5); err != nil {
					t.Error(err)
				}
				if reply, err := create(a); err != nil || reply.Task == nil {
					t.Errorf("%+v, %v", reply, err)
				}
				return over, nil
			}
		})
		_, err = create(b)
		var wire *Error
		if !errors.As(err, &wire) || wire.Code != CodeInvalidParams {
			t.Errorf("two tasks of one name: %v", err)
		}
		if r := ended(t, a, alice, id); outcomeText(r.Outcome) != doubled {
			t.Errorf("%s", outcomeText(r.Outcome))
		}
	})
}

// TestCancelElsewhere: the cancel that another process took reaches a handler that
// reports, asks, or whose task is looked at here.
func TestCancelElsewhere(t *testing.T) {
	report := func(ctx context.Context, task *Task, _ number) (number, error) {
		for ctx.Err() == nil {
			time.Sleep(time.Second)
			task.Progress(ctx, 1, 2, "on")
		}
		return number{}, context.Cause(ctx)
	}
	for name, cancel := range map[string]func(*testing.T, *Server, string) error{
		"cancelled": func(t *testing.T, s *Server, id string) error {
			_, _, err := s.Cancel(t.Context(), alice, id)
			return err
		},
		"asked to stop": func(t *testing.T, s *Server, id string) error { return s.Stop(t.Context(), alice, id) },
	} {
		for does, handler := range map[string]func(context.Context, *Task, number) (number, error){"reports": report, "asks": confirm, "waits": hang} {
			bubble.Run(t, name+"/"+does, func(t *testing.T) {
				store := NewMemoryStore()
				var cause error
				tool := numberTool("t", Policy{TTL: time.Hour}, func(ctx context.Context, task *Task, in number) (number, error) {
					out, err := handler(ctx, task, in)
					cause = context.Cause(ctx)
					return out, err
				})
				a := newServer(t, Options{Store: store}, tool)
				b := newServer(t, Options{Store: store}, tool)
				id := begin(t, a, alice, "t").ID
				time.Sleep(5 * time.Second)
				if err := cancel(t, b, id); err != nil {
					t.Fatal(err)
				}
				if does == "waits" {
					if _, err := a.Get(t.Context(), alice, id); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if !errors.Is(cause, ErrCancelled) {
					t.Errorf("the handler's context ended by %v", cause)
				}
				if r := ended(t, b, alice, id); r.Outcome.Kind != OutcomeCancelled {
					t.Errorf("%s", outcomeText(r.Outcome))
				}
			})
		}
	}
}

// TestRollingDeploy: a task of a tool that a replica does not have yet, or no longer,
// waits for one that has it; if none comes, it ends by its ttl.
func TestRollingDeploy(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &hooked{Store: NewMemoryStore()}
		var leases atomic.Int32
		store.lease = func(context.Context) error { leases.Add(1); return nil }
		tool := numberTool("new", Policy{TTL: time.Hour, OnLost: RestartWhenLost}, later(time.Minute))
		other := numberTool("old", Policy{}, double)
		gone := numberTool("gone", Policy{TTL: time.Hour}, double)
		a := newServer(t, Options{Store: store, Concurrency: 1}, tool, other, gone)
		running, queued, forsaken := begin(t, a, alice, "new").ID, begin(t, a, alice, "new").ID, begin(t, a, alice, "gone").ID
		var all sync.WaitGroup
		began := time.Now()
		all.Go(func() {
			if _, err := a.Await(t.Context(), alice, forsaken); !errors.Is(err, ErrExpired) {
				t.Errorf("what nobody can run ended with %v", err)
			}
		})
		synctest.Wait()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		for range 3 {
			newServer(t, Options{Store: store}, other)
		}
		leases.Store(0)
		time.Sleep(10 * time.Minute)
		if n := leases.Load(); n > 3*20 {
			t.Errorf("%d times three servers looked for what they cannot run", n)
		}
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

// TestPoisonedTask: a task that takes its worker with it runs MaxTries times. Those
// that a closing server has handed over do not count.
func TestPoisonedTask(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := NewMemoryStore()
		var runs atomic.Int32
		end := make(chan struct{})
		defer close(end)
		poison := numberTool("t", Policy{TTL: 24 * time.Hour, OnLost: RestartWhenLost}, func(ctx context.Context, task *Task, in number) (number, error) {
			runs.Add(1)
			<-end
			return in, nil
		})
		hands := numberTool("handed", Policy{TTL: 24 * time.Hour, OnLost: RestartWhenLost}, func(ctx context.Context, task *Task, in number) (number, error) {
			if task.Attempt() <= 2*MaxTries {
				<-ctx.Done()
				return in, ctx.Err()
			}
			return double(ctx, task, in)
		})
		serve := func() (*Server, *lifeline) {
			line := &lifeline{Store: store}
			s, err := NewServer(Options{Store: line, Drain: time.Second}, Tools{Service: "A", Impl: 1, Tools: []Tool{poison, hands}})
			if err != nil {
				t.Fatal(err)
			}
			return s, line
		}
		s, line := serve()
		id, handed := begin(t, s, alice, "t").ID, begin(t, s, alice, "handed").ID
		for range 3 * MaxTries {
			time.Sleep(2 * leaseFor)
			if r, err := store.Get(t.Context(), handed); err != nil || r.Done() {
				break
			}
			a := s
			if runs.Load() < MaxTries { // it dies
				line.set(true)
			}
			_ = a.Close()
			s, line = serve()
		}
		if r := ended(t, s, alice, handed); outcomeText(r.Outcome) != doubled {
			t.Errorf("handed over: %s after %d attempts", outcomeText(r.Outcome), r.Attempt)
		}
		if r := ended(t, s, alice, id); !errors.Is(r.Outcome.Error, ErrWorkerLost) || runs.Load() != MaxTries {
			t.Errorf("%s after %d runs", outcomeText(r.Outcome), runs.Load())
		}
		if err := s.Close(); err != nil {
			t.Log(err)
		}
	})
}
