package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// The ways in which one call of a store goes wrong.
const (
	refused = "refused" // it is not carried out, and fails
	lost    = "lost"    // it is carried out, and its answer is lost
	hangs   = "hangs"   // it is not carried out, and takes until its context ends
	late    = "late"    // it is carried out, and its answer takes until its context ends
)

// errStore is the text that nobody outside may see.
var errStore = errors.New("dial tcp 10.0.0.7:5432: password authentication failed")

// turnStore lets one of its calls go wrong.
type turnStore struct {
	Store
	at  int
	how string

	mu    sync.Mutex
	calls int
	named map[string]int
	hit   string // the name of the call that went wrong
}

func (s *turnStore) call(ctx context.Context, name string, do func() error) error {
	s.mu.Lock()
	if s.named == nil {
		s.named = map[string]int{}
	}
	s.named[name]++
	upkeep := name == "Expire" || name == "Renew" || name == "Lease"
	if !upkeep || s.named[name] <= 2 { // they come again and again, whatever happens
		s.calls++
	}
	hit := s.calls == s.at && s.hit == ""
	if hit {
		s.hit = name
	}
	s.mu.Unlock()
	if !hit {
		return do()
	}
	if (s.how == lost || s.how == late) && name != "Wait" { // which changes nothing
		_ = do()
	}
	if s.how == hangs || s.how == late {
		select {
		case <-ctx.Done():
		case <-time.After(time.Hour):
			return fmt.Errorf("no deadline: %w", errStore)
		}
		return fmt.Errorf("%w: %w", errStore, ctx.Err())
	}
	return errStore
}

func (s *turnStore) Create(ctx context.Context, r Record, q Quota) (got Record, err error) {
	err = s.call(ctx, "Create", func() (err error) { got, err = s.Store.Create(ctx, r, q); return err })
	return got, err
}

func (s *turnStore) Get(ctx context.Context, id string) (got Record, err error) {
	err = s.call(ctx, "Get", func() (err error) { got, err = s.Store.Get(ctx, id); return err })
	return got, err
}

func (s *turnStore) Update(ctx context.Context, r Record, quota Quota) (got Record, err error) {
	err = s.call(ctx, "Update", func() (err error) { got, err = s.Store.Update(ctx, r, quota); return err })
	return got, err
}

func (s *turnStore) List(ctx context.Context, principal string, after Position, limit int) (got []Record, err error) {
	err = s.call(ctx, "List", func() (err error) { got, err = s.Store.List(ctx, principal, after, limit); return err })
	return got, err
}

func (s *turnStore) Delete(ctx context.Context, r Record) error {
	return s.call(ctx, "Delete", func() error { return s.Store.Delete(ctx, r) })
}

func (s *turnStore) Expire(ctx context.Context, now time.Time, limit int) (got []Record, err error) {
	err = s.call(ctx, "Expire", func() (err error) { got, err = s.Store.Expire(ctx, now, limit); return err })
	return got, err
}

func (s *turnStore) Wait(ctx context.Context, id string, version int64) (got Record, err error) {
	err = s.call(ctx, "Wait", func() (err error) { got, err = s.Store.Wait(ctx, id, version); return err })
	return got, err
}

func (s *turnStore) Lease(ctx context.Context, worker string, now, until time.Time, limit int) (got []Record, err error) {
	err = s.call(ctx, "Lease", func() (err error) { got, err = s.Store.Lease(ctx, worker, now, until, limit); return err })
	return got, err
}

func (s *turnStore) Renew(ctx context.Context, worker string, until time.Time) error {
	return s.call(ctx, "Renew", func() error { return s.Store.Renew(ctx, worker, until) })
}

func (s *turnStore) Release(ctx context.Context, worker string) error {
	return s.call(ctx, "Release", func() error { return s.Store.Release(ctx, worker) })
}

// turn is one run of a scenario.
type turn struct {
	*testing.T
	store *turnStore
	log   logged
}

// serve starts a server on the store.
func (t *turn) serve(tools ...Tool) *Server {
	t.Helper()
	s, err := NewServer(Options{Store: t.store, Logger: t.log.logger(), Drain: time.Minute}, Tools{Service: "Turns", Impl: 1, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { t.close(s) }) // again, unless the test has failed
	return s
}

// close closes a server: what its store did may be said there, to the operator.
func (t *turn) close(s *Server) {
	if err := s.Close(); err != nil {
		t.Logf("close: %v", err)
	}
}

// is fails unless a task, of which exactly one is there, has ended so.
func (t *turn) is(r Record, want string) {
	t.Helper()
	got := outcomeText(r.Outcome)
	if strings.Contains(got, "dial tcp") || strings.Contains(r.StatusMessage, "dial tcp") {
		t.Errorf("the store's text is out: %s", got)
	}
	if got != want {
		t.Errorf("the outcome is %s, want %s", got, want)
	}
}

// one fails unless the principal has so many tasks.
func (t *turn) one(n int) {
	t.Helper()
	if all, err := t.store.Store.List(t.Context(), "alice", Position{}, 10); err != nil || len(all) != n {
		t.Errorf("%d tasks, want %d: %v", len(all), n, err)
	}
}

func (t *turn) call(s *Server, tool string, request CallRequest) Record {
	t.Helper()
	reply, err := s.Call(t.Context(), alice, tool, json.RawMessage(`{"n":21}`), request)
	if err != nil || reply.Task == nil {
		t.Fatalf("%+v, %v", reply, err)
	}
	return *reply.Task
}

var brief = Policy{Task: TaskOptional, TTL: 12 * time.Minute, OnLost: RestartWhenLost}

// later is a handler that takes its time.
func later(d time.Duration) func(context.Context, *Task, number) (number, error) {
	return func(ctx context.Context, task *Task, in number) (number, error) {
		if _, err := after(d)(ctx, task, in); err != nil {
			return in, err
		}
		return double(ctx, task, in)
	}
}

// counting counts the runs of a handler.
func counting(runs *atomic.Int32, handler func(context.Context, *Task, number) (number, error)) func(context.Context, *Task, number) (number, error) {
	return func(ctx context.Context, task *Task, in number) (number, error) {
		runs.Add(1)
		return handler(ctx, task, in)
	}
}

// turns are what a store's fault must not harm: whatever call it hits, the
// scenario ends as it does without.
var turns = map[string]func(t *turn){
	"create": func(t *turn) {
		var runs atomic.Int32
		s := t.serve(numberTool("t", brief, counting(&runs, later(time.Second))))
		r := ended(t, s, alice, t.call(s, "t", CallRequest{Mode: ModeTask}).ID)
		t.is(r, doubled)
		t.one(1)
		if page, _, err := s.List(t.Context(), alice, Position{}); err != nil || len(page) != 1 || runs.Load() != 1 {
			t.Errorf("%d listed, %v, %d runs", len(page), err, runs.Load())
		}
		t.close(s)
	},
	"create with a key": func(t *turn) {
		s := t.serve(numberTool("t", brief, later(time.Second)))
		first := t.call(s, "t", CallRequest{Mode: ModeTask, IdempotencyKey: "k"})
		again := t.call(s, "t", CallRequest{Mode: ModeTask, IdempotencyKey: "k"})
		if first.ID != again.ID {
			t.Error("two tasks of one key")
		}
		t.is(ended(t, s, alice, first.ID), doubled)
		t.one(1)
		t.close(s)
	},
	"create by a name": func(t *turn) {
		s := t.serve(numberTool("t", brief, later(time.Second)))
		first := t.call(s, "t", CallRequest{Mode: ModeTask, ExternalID: "name"})
		time.Sleep(time.Millisecond) // no clock stands still between two calls
		if _, err := s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeTask, ExternalID: "name"}); err == nil {
			t.Error("two tasks of one name")
		}
		t.is(ended(t, s, alice, first.ID), doubled)
		t.one(1)
		t.close(s)
	},
	"answer at once": func(t *turn) {
		quick := brief
		quick.Grace = time.Minute
		s := t.serve(numberTool("t", quick, later(time.Second)))
		reply, err := s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeGrace})
		if err != nil || outcomeText(reply.Outcome) != doubled {
			t.Errorf("%+v, %v", reply, err)
		}
		time.Sleep(2 * time.Minute) // nobody was told of it, so it goes long before its ttl
		t.one(0)
		t.close(s)
	},
	"ask": func(t *turn) {
		s := t.serve(numberTool("t", brief, func(ctx context.Context, task *Task, in number) (number, error) {
			task.Progress(ctx, 1, 2, "half")
			if _, err := confirm(ctx, task, in); err != nil {
				return in, err
			}
			return double(ctx, task, in)
		}))
		id := t.call(s, "t", CallRequest{Mode: ModeTask}).ID
		r := asks(t, s, alice, id)
		if len(r.Outstanding()) != 1 {
			t.Fatalf("%+v", r.Inputs)
		}
		time.Sleep(time.Minute)
		if err := answer(t, s, alice, id, "ship", yes); err != nil {
			t.Errorf("the answer: %v", err)
		}
		t.is(ended(t, s, alice, id), doubled)
		t.one(1)
		t.close(s)
	},
	"respond": func(t *turn) {
		s := t.serve(numberTool("t", brief, confirm))
		id := t.call(s, "t", CallRequest{Mode: ModeTask}).ID
		asks(t, s, alice, id)
		if err := s.Respond(t.Context(), alice, id, "ship", json.RawMessage(yes), nil); err != nil {
			t.Errorf("the answer: %v", err)
		}
		if r := ended(t, s, alice, id); r.Outcome.Kind != OutcomeResult || r.Outcome.IsError {
			t.is(r, "a result")
		}
		t.close(s)
	},
	"withdraw": func(t *turn) {
		s := t.serve(numberTool("t", brief, func(ctx context.Context, task *Task, in number) (number, error) {
			asking, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			if _, err := confirm(asking, task, in); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the question ended by %v", err)
			}
			<-time.After(2 * time.Minute)
			return double(ctx, task, in)
		}))
		id := t.call(s, "t", CallRequest{Mode: ModeTask}).ID
		time.Sleep(2 * time.Minute)
		if r, err := s.Get(t.Context(), alice, id); err != nil || r.Phase != PhaseRunning || len(r.Outstanding()) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		t.is(ended(t, s, alice, id), doubled)
		t.close(s)
	},
	"cancel": func(t *turn) {
		var cause atomic.Value
		s := t.serve(numberTool("t", brief, func(ctx context.Context, _ *Task, in number) (number, error) {
			<-ctx.Done()
			cause.Store(context.Cause(ctx))
			return in, ctx.Err()
		}))
		id := t.call(s, "t", CallRequest{Mode: ModeTask}).ID
		synctest.Wait()
		if _, done, err := s.Cancel(t.Context(), alice, id); done || err != nil {
			t.Errorf("cancelled: it had ended: %v, %v", done, err)
		}
		t.is(ended(t, s, alice, id), "cancelled")
		synctest.Wait()
		if err, ok := cause.Load().(error); ok && !errors.Is(err, ErrCancelled) { // nil: it was over before its turn
			t.Errorf("the handler's context ended by %v", err)
		}
		t.close(s)
	},
	"stop": func(t *turn) {
		s := t.serve(numberTool("t", brief, hang))
		id := t.call(s, "t", CallRequest{Mode: ModeTask}).ID
		synctest.Wait()
		if err := s.Stop(t.Context(), alice, id); err != nil {
			t.Error(err)
		}
		t.is(ended(t, s, alice, id), "cancelled")
		t.close(s)
	},
	"listen": func(t *turn) {
		s := t.serve(numberTool("t", brief, func(ctx context.Context, task *Task, in number) (number, error) {
			for i := range 3 {
				time.Sleep(time.Minute)
				task.Progress(ctx, float64(i), 3, "on")
			}
			return double(ctx, task, in)
		}))
		r := t.call(s, "t", CallRequest{Mode: ModeTask})
		var err error
		for version := int64(0); err == nil && !r.Done(); version = r.Version {
			r, err = s.Changed(t.Context(), alice, r.ID, version)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.is(r, doubled)
		t.close(s)
	},
	"reconnect": func(t *turn) {
		s := t.serve(numberTool("t", brief, later(5*time.Minute)))
		id := t.call(s, "t", CallRequest{Mode: ModeTask}).ID
		for range 3 {
			ctx, leave := context.WithTimeout(t.Context(), time.Minute)
			if _, err := s.Await(ctx, alice, id); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("left, and got %v", err)
			}
			leave()
			if r, err := s.Get(t.Context(), alice, id); err != nil || r.Done() {
				t.Errorf("%+v, %v", r, err)
			}
			if r, err := s.Peek(id); err != nil || r.ID != id {
				t.Errorf("%+v, %v", r, err)
			}
		}
		t.is(ended(t, s, alice, id), doubled)
		t.close(s)
	},
	"resume": func(t *turn) {
		tool := numberTool("t", brief, func(ctx context.Context, task *Task, in number) (number, error) {
			if _, err := confirm(ctx, task, in); err != nil {
				return in, err
			}
			return double(ctx, task, in)
		})
		a := t.serve(tool)
		id := t.call(a, "t", CallRequest{Mode: ModeTask}).ID
		asks(t, a, alice, id)
		t.close(a)
		b := t.serve(tool)
		time.Sleep(5 * time.Minute)
		if r, err := b.Get(t.Context(), alice, id); err != nil || len(r.Outstanding()) != 1 || r.Attempt != 2 {
			t.Errorf("%+v, %v", r, err)
		}
		if err := answer(t, b, alice, id, "ship", yes); err != nil {
			t.Error(err)
		}
		t.is(ended(t, b, alice, id), doubled)
		t.one(1)
		t.close(b)
	},
	"close": func(t *turn) {
		var closing atomic.Int32
		tool := numberTool("t", brief, func(ctx context.Context, task *Task, in number) (number, error) {
			if closing.Load() == 0 {
				<-ctx.Done() // it ends all the same, and so does its task
			}
			return double(ctx, task, in)
		})
		s := t.serve(tool)
		id := t.call(s, "t", CallRequest{Mode: ModeTask}).ID
		synctest.Wait()
		began := time.Now()
		closing.Store(1)
		t.close(s)
		if took := time.Since(began); took > time.Minute+10*time.Second {
			t.Errorf("closed after %v", took)
		}
		other := t.serve(tool)
		t.is(ended(t, other, alice, id), doubled)
		t.one(1)
		t.close(other)
	},
	"lost worker": func(t *turn) {
		policy := brief
		policy.OnLost = FailWhenLost
		tool := numberTool("t", policy, hang)
		s := t.serve(tool)
		id := t.call(s, "t", CallRequest{Mode: ModeTask}).ID
		time.Sleep(time.Minute) // it has begun, sooner or later
		t.close(s)
		other := t.serve(tool)
		if r := ended(t, other, alice, id); r.Outcome.Kind != OutcomeError || !errors.Is(r.Outcome.Error, ErrWorkerLost) {
			t.is(r, "worker lost")
		}
		t.close(other)
	},
}

// TestEachFaultInTurn runs each scenario again and again: with the first call of
// its store going wrong, with the second, until there is none left. One fault
// costs time, never a question, an outcome, a task too many or a secret.
func TestEachFaultInTurn(t *testing.T) {
	for name, scenario := range turns {
		for _, how := range []string{refused, lost, hangs, late} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				for at := 1; ; at++ {
					store := &turnStore{at: at, how: how}
					bubble.Test(t, func(t *testing.T) {
						memory := NewMemoryStore().(*memoryStore)
						store.Store = memory
						scenario(&turn{T: t, store: store})
						after := newServer(t, Options{Store: memory}) // which has no tools, and sweeps
						time.Sleep(13 * time.Minute)
						if err := after.Close(); err != nil {
							t.Error(err)
						}
						memory.mu.Lock()
						defer memory.mu.Unlock()
						if count, ok := memory.counts.Get("alice"); ok {
							t.Errorf("%+v still counts", count)
						}
					})
					if t.Failed() {
						t.Fatalf("when call %d, %s, went wrong", at, store.hit)
					} else if store.hit == "" {
						t.Logf("%d calls", at-1)
						break
					}
				}
			})
		}
	}
}
