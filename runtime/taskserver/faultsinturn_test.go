package taskserver

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

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The ways in which one call of a store goes wrong.
const (
	refused = "refused" // the call is not carried out
	lost    = "lost"    // the call is carried out, but its answer is lost
	hangs   = "hangs"   // the call is not carried out, and returns when its context ends
	late    = "late"    // the call is carried out, and returns when its context ends
)

// errStore has a text that no client may see.
var errStore = errors.New("dial tcp 10.0.0.7:5432: password authentication failed")

// turnStore lets one of its calls go wrong.
type turnStore struct {
	tapStore
	at  int
	how string

	counting sync.Mutex
	calls    int
	named    map[string]int
	hit      string // the name of the call that went wrong
}

func newTurnStore(store taskstore.Store, at int, how string) *turnStore {
	s := &turnStore{tapStore: tapStore{Store: store}, at: at, how: how, named: map[string]int{}}
	s.tap = s.takeTurn
	return s
}

// takeTurn carries out a call, or lets it go wrong if it is its turn.
func (s *turnStore) takeTurn(ctx context.Context, name string, r *taskstore.Record, do func() error) error {
	s.counting.Lock()
	s.named[name]++
	upkeep := name == "Expire" || name == "Beat" || name == "Lease"
	if !upkeep || s.named[name] <= 2 { // upkeep comes again and again, whatever happens
		s.calls++
	}
	hit := s.calls == s.at && s.hit == ""
	if hit {
		s.hit = name
	}
	s.counting.Unlock()
	if !hit {
		return do()
	}
	if s.how == lost || s.how == late {
		_ = do()
	}
	if r != nil {
		*r = taskstore.Record{}
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

// turn is one run of a scenario.
type turn struct {
	*testing.T
	store *turnStore
	log   logged
	open  []*Backend
}

// play runs a scenario and then closes its servers, even if the scenario fails.
func (t *turn) play(scenario func(*turn)) {
	defer func() {
		for _, s := range t.open {
			t.close(s)
		}
	}()
	scenario(t)
}

// serve starts a server on the store. play closes it.
func (t *turn) serve(tools ...mcptask.Tool) *Backend {
	t.Helper()
	s, err := New(Options{Store: t.store, Logger: t.log.logger(), Drain: time.Minute}, mcptask.Tools{Service: "Turns", Impl: 1, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	t.open = append(t.open, s.Backend())
	return s.Backend()
}

// close closes a server. An error is for the operator, who may see the store's error.
func (t *turn) close(s *Backend) {
	if err := s.server.Close(); err != nil {
		t.Logf("close: %v", err)
	}
}

// wantOutcome checks how a task has ended, and that it is the only one.
func (t *turn) wantOutcome(r taskstore.Record, want string) {
	t.Helper()
	got := outcomeText(r.Outcome)
	if strings.Contains(got, "dial tcp") || strings.Contains(r.StatusMessage, "dial tcp") {
		t.Errorf("the store's text is out: %s", got)
	}
	if got != want {
		t.Errorf("the outcome is %s, want %s", got, want)
	}
	t.wantTasks(1)
}

// wantTasks checks how many tasks the principal has.
func (t *turn) wantTasks(n int) {
	t.Helper()
	if all, err := t.store.Store.List(t.Context(), "alice", taskstore.Position{}, 10); err != nil || len(all) != n {
		t.Errorf("%d tasks, want %d: %v", len(all), n, err)
	}
}

func (t *turn) call(s *Backend, request CallRequest) (CallReply, error) {
	return s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":21}`), request)
}

var brief = mcptask.Policy{Task: mcptask.TaskOptional, TTL: 12 * time.Minute, OnLost: mcptask.RestartWhenLost}

// later returns a handler that doubles its number after a while.
func later(d time.Duration) func(context.Context, *mcptask.Task, number) (number, error) {
	return func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
		if _, err := after(d)(ctx, task, in); err != nil {
			return in, err
		}
		return double(ctx, task, in)
	}
}

// counting returns a handler that counts its runs.
func counting(runs *atomic.Int32, handler func(context.Context, *mcptask.Task, number) (number, error)) func(context.Context, *mcptask.Task, number) (number, error) {
	return func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
		runs.Add(1)
		return handler(ctx, task, in)
	}
}

// turns are scenarios that end the same way whichever call of the store fails.
var turns = map[string]func(t *turn){
	"create": func(t *turn) {
		var runs atomic.Int32
		s := t.serve(numberTool("t", brief, counting(&runs, later(time.Second))))
		r := ended(t, s, alice, begin(t, s, alice, "t").ID)
		t.wantOutcome(r, doubled)
		if page, _, err := s.List(t.Context(), alice, taskstore.Position{}); err != nil || len(page) != 1 || runs.Load() != 1 {
			t.Errorf("%d listed, %v, %d runs", len(page), err, runs.Load())
		}
	},
	"create with a key": func(t *turn) {
		s := t.serve(numberTool("t", brief, later(time.Second)))
		request := CallRequest{Mode: ModeTask, IdempotencyKey: "k"}
		first, err1 := t.call(s, request)
		again, err2 := t.call(s, request)
		if err := errors.Join(err1, err2); err != nil || first.Task.ID != again.Task.ID {
			t.Fatalf("two tasks of one key: %v", err)
		}
		t.wantOutcome(ended(t, s, alice, first.Task.ID), doubled)
	},
	"create by a name": func(t *turn) {
		s := t.serve(numberTool("t", brief, later(time.Second)))
		request := CallRequest{Mode: ModeTask, ExternalID: "name"}
		first, err := t.call(s, request)
		time.Sleep(time.Millisecond) // the times of two calls differ
		if _, again := t.call(s, request); err != nil || again == nil {
			t.Fatalf("%v, and of another task of that name: %v", err, again)
		}
		t.wantOutcome(ended(t, s, alice, first.Task.ID), doubled)
	},
	"answer at once": func(t *turn) {
		quick := brief
		quick.Grace = time.Minute
		s := t.serve(numberTool("t", quick, later(time.Second)))
		reply, err := t.call(s, CallRequest{Mode: ModeGrace})
		if err != nil || outcomeText(reply.Outcome) != doubled {
			t.Errorf("%+v, %v", reply, err)
		}
		time.Sleep(2 * time.Minute) // the client was not told of it, so it goes long before its ttl
		t.wantTasks(0)
	},
	"ask": func(t *turn) {
		s := t.serve(numberTool("t", brief, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			task.Progress(ctx, 1, 2, "half")
			if _, err := confirm(ctx, task, in); err != nil {
				return in, err
			}
			return double(ctx, task, in)
		}))
		id := begin(t, s, alice, "t").ID
		r := asks(t, s, alice, id)
		if len(r.Outstanding()) != 1 {
			t.Fatalf("%+v", r.Inputs)
		}
		time.Sleep(time.Minute)
		if err := answer(t, s, alice, id, "ship", yes); err != nil {
			t.Errorf("the answer: %v", err)
		}
		t.wantOutcome(ended(t, s, alice, id), doubled)
	},
	"respond": func(t *turn) {
		s := t.serve(numberTool("t", brief, confirm))
		id := begin(t, s, alice, "t").ID
		asks(t, s, alice, id)
		if err := s.Respond(t.Context(), alice, id, "ship", json.RawMessage(yes), nil); err != nil {
			t.Errorf("the answer: %v", err)
		}
		if r := ended(t, s, alice, id); r.Outcome.Kind != taskstore.OutcomeResult || r.Outcome.IsError {
			t.wantOutcome(r, "a result")
		}
	},
	"withdraw": func(t *turn) {
		s := t.serve(numberTool("t", brief, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			asking, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			if _, err := confirm(asking, task, in); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the question ended by %v", err)
			}
			<-time.After(2 * time.Minute)
			return double(ctx, task, in)
		}))
		id := begin(t, s, alice, "t").ID
		time.Sleep(2 * time.Minute)
		if r, err := s.Get(t.Context(), alice, id); err != nil || r.Phase != taskstore.PhaseRunning || len(r.Outstanding()) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		t.wantOutcome(ended(t, s, alice, id), doubled)
	},
	"cancel": func(t *turn) {
		var cause atomic.Value
		s := t.serve(numberTool("t", brief, func(ctx context.Context, _ *mcptask.Task, in number) (number, error) {
			<-ctx.Done()
			cause.Store(context.Cause(ctx))
			return in, ctx.Err()
		}))
		id := begin(t, s, alice, "t").ID
		synctest.Wait()
		if _, done, err := s.Cancel(t.Context(), alice, id); done || err != nil {
			t.Errorf("cancelled: it had ended: %v, %v", done, err)
		}
		t.wantOutcome(ended(t, s, alice, id), "cancelled")
		synctest.Wait()
		if err, ok := cause.Load().(error); ok && !errors.Is(err, mcptask.ErrCancelled) { // nil: the scenario was over before its turn
			t.Errorf("the handler's context ended by %v", err)
		}
	},
	"stop": func(t *turn) {
		s := t.serve(numberTool("t", brief, hang))
		id := begin(t, s, alice, "t").ID
		synctest.Wait()
		if err := s.Stop(t.Context(), alice, id); err != nil {
			t.Error(err)
		}
		t.wantOutcome(ended(t, s, alice, id), "cancelled")
	},
	"listen": func(t *turn) {
		s := t.serve(numberTool("t", brief, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			for i := range 3 {
				time.Sleep(time.Minute)
				task.Progress(ctx, float64(i), 3, "on")
			}
			return double(ctx, task, in)
		}))
		r := begin(t, s, alice, "t")
		var err error
		for version := int64(0); err == nil && !r.Done(); version = r.Version {
			r, err = s.Changed(t.Context(), alice, r.ID, version)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.wantOutcome(r, doubled)
	},
	"reconnect": func(t *turn) {
		s := t.serve(numberTool("t", brief, later(5*time.Minute)))
		id := begin(t, s, alice, "t").ID
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
		t.wantOutcome(ended(t, s, alice, id), doubled)
	},
	"resume": func(t *turn) {
		tool := numberTool("t", brief, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			if _, err := confirm(ctx, task, in); err != nil {
				return in, err
			}
			return double(ctx, task, in)
		})
		a := t.serve(tool)
		id := begin(t, a, alice, "t").ID
		asks(t, a, alice, id)
		t.close(a)
		b := t.serve(tool)
		time.Sleep(5 * time.Minute)
		if r, err := b.Get(t.Context(), alice, id); err != nil || len(r.Outstanding()) != 1 || len(r.Inputs) != 1 || r.Attempt != 2 {
			t.Errorf("%+v, %v", r, err)
		}
		if err := answer(t, b, alice, id, "ship", yes); err != nil {
			t.Error(err)
		}
		t.wantOutcome(ended(t, b, alice, id), doubled)
	},
	"close": func(t *turn) {
		var closing atomic.Int32
		tool := numberTool("t", brief, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			if closing.Load() == 0 {
				<-ctx.Done() // it ends all the same, and so does its task
			}
			return double(ctx, task, in)
		})
		s := t.serve(tool)
		id := begin(t, s, alice, "t").ID
		synctest.Wait()
		began := time.Now()
		closing.Store(1)
		t.close(s)
		if took := time.Since(began); took > time.Minute+10*time.Second {
			t.Errorf("closed after %v", took)
		}
		other := t.serve(tool)
		t.wantOutcome(ended(t, other, alice, id), doubled)
	},
	"lost worker": func(t *turn) {
		policy := brief
		policy.OnLost = mcptask.FailWhenLost
		tool := numberTool("t", policy, hang)
		s := t.serve(tool)
		id := begin(t, s, alice, "t").ID
		time.Sleep(time.Minute) // it starts, sooner or later
		t.close(s)
		other := t.serve(tool)
		if r := ended(t, other, alice, id); r.Outcome.Kind != taskstore.OutcomeError || !errors.Is(r.Outcome.Error, mcptask.ErrWorkerLost) {
			t.wantOutcome(r, "worker lost")
		}
	},
}

// TestEachFaultInTurn runs each scenario again and again. The first call of its store goes wrong in
// the first run, the second in the next, and so on. One fault costs time. It never costs a question
// or an outcome, makes a second task, or shows a secret.
func TestEachFaultInTurn(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 5
	}
	for name, scenario := range turns {
		for _, how := range []string{refused, lost, hangs, late} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				for at := 1; ; at += step {
					var store *turnStore
					bubble.Test(t, func(t *testing.T) {
						memory := taskstore.NewMemory()
						store = newTurnStore(memory, at, how)
						(&turn{T: t, store: store}).play(scenario)
						after := newServer(t, Options{Store: memory}) // has no tools, and sweeps
						time.Sleep(13 * time.Minute)
						if err := after.server.Close(); err != nil {
							t.Error(err)
						}
						one := taskstore.Record{ID: "one", Principal: alice.Principal, Account: alice.Account(), ExpiresAt: time.Now().Add(time.Hour)}
						if _, err := memory.Create(t.Context(), one, taskstore.Quota{Account: one.Usage()}); err != nil {
							t.Errorf("what is gone still counts: %v", err)
						}
					})
					if t.Failed() {
						t.Fatalf("when call %d, %s, went wrong", at, store.hit)
					} else if store.hit == "" {
						if at == 1 {
							t.Error("no call went wrong")
						}
						t.Logf("%d calls", (at-1)/step)
						break
					}
				}
			})
		}
	}
}
