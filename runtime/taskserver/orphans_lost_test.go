package taskserver

import (
	"context"
	"encoding/json"
	"errors"
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

// eventLog has the events of tasks that the hooks of several servers were told of, without reports.
type eventLog struct {
	mu    sync.Mutex
	kinds []string
}

func (l *eventLog) hooks() []Hooks {
	return []Hooks{{Task: func(_ context.Context, e TaskEvent) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if e.Kind != taskstore.EventReported {
			l.kinds = append(l.kinds, string(e.Kind))
		}
	}}}
}

// String returns the events in the order in which they were told.
func (l *eventLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.kinds, " ")
}

// listKinds returns the moments of a task, without reports.
func listKinds(r taskstore.Record) string {
	var kinds []string
	for _, m := range r.Timeline.Moments() {
		if m.Kind != taskstore.EventReported {
			kinds = append(kinds, string(m.Kind))
		}
	}
	return strings.Join(kinds, " ")
}

// TestLostRunIsTold checks that the timeline and the hooks tell of each run that was lost, once, and of no run that a
// closing server has left to another one.
func TestLostRunIsTold(t *testing.T) {
	closeServer := func(t *testing.T, a *Backend, _, _ *tapStore) {
		if err := a.server.Close(); err != nil {
			t.Error(err)
		}
	}
	kill := func(_ *testing.T, _ *Backend, first, _ *tapStore) { first.set(cut) }
	// failUpdate makes the first Update of the second server fail, before or after it has changed the store.
	failUpdate := func(isStored bool) tap {
		var once sync.Once
		return func(_ context.Context, method string, _ *taskstore.Record, do func() error) (err error) {
			fails := false
			if method == "Update" {
				once.Do(func() { fails = true })
			}
			switch {
			case fails && isStored:
				return errors.Join(do(), errStore)
			case fails:
				return errStore
			}
			return do()
		}
	}
	for name, c := range map[string]struct {
		policy mcptask.Policy
		end    func(t *testing.T, a *Backend, first, second *tapStore)
		want   string
		orTold string // what hooks may be told instead
	}{
		"closed":        {restart, closeServer, "created started left started ended", ""},
		"killed":        {restart, kill, "created started lost started ended", ""},
		"may not again": {mcptask.Policy{Task: mcptask.TaskRequired}, kill, "created started lost ended", ""},
		"the claim fails": {restart, func(t *testing.T, a *Backend, first, second *tapStore) {
			second.set(failUpdate(false))
			kill(t, a, first, second)
		}, "created started lost started ended", ""},
		"the claim's answer is lost": {restart, func(t *testing.T, a *Backend, first, second *tapStore) {
			second.set(failUpdate(true))
			kill(t, a, first, second)
		}, "created started lost started ended", "created started started ended"}, // if the task runs again before the answer comes
		"the end fails": {mcptask.Policy{Task: mcptask.TaskRequired}, func(t *testing.T, a *Backend, first, second *tapStore) {
			second.set(failUpdate(false))
			kill(t, a, first, second)
		}, "created started lost ended", ""},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			store := taskstore.NewMemory()
			first, second := &tapStore{Store: store}, &tapStore{Store: store}
			// The second server may begin a run before the first one has told its hooks that it left it.
			var byFirst, bySecond eventLog
			tool := numberTool("t", c.policy, after(time.Hour))
			a := newServer(t, Options{Store: first, Hooks: byFirst.hooks()}, tool)
			b := newServer(t, Options{Store: second, Hooks: bySecond.hooks()}, tool)
			id := begin(t, a, alice, "t").ID
			time.Sleep(time.Second)
			c.end(t, a, first, second)
			r := ended(t, b, alice, id)
			synctest.Wait()
			if got := listKinds(r); got != c.want {
				t.Errorf("the timeline has: %s\nwant: %s", got, c.want)
			}
			if got := byFirst.String() + " " + bySecond.String(); got != c.want && (c.orTold == "" || got != c.orTold) {
				t.Errorf("hooks were told: %s\nwant: %s", got, c.want)
			}
			first.set(nil)
		})
	}
}

// TestLostRunOfBusyServer checks that a run is lost once, although the task is found again and again before it can run.
func TestLostRunOfBusyServer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		first := &tapStore{Store: store}
		x := &busyExecutor{}
		x.busy.Store(true)
		var told eventLog
		tool := numberTool("t", restart, after(time.Hour))
		a := newServer(t, Options{Store: first, Hooks: told.hooks()}, tool)
		b := newServer(t, Options{Store: store, Hooks: told.hooks(), Executor: func(run RunFunc) (Executor, error) {
			x.slotExecutor = newSlotExecutor(run, 1)
			return x, nil
		}}, tool)
		id := begin(t, a, alice, "t").ID
		synctest.Wait()
		first.set(cut)
		time.Sleep(10 * leaseFor)
		x.busy.Store(false)
		want := "created started lost started ended"
		if got := listKinds(ended(t, b, alice, id)); got != want {
			t.Errorf("the timeline has: %s\nwant: %s", got, want)
		}
		synctest.Wait()
		if got := told.String(); got != want {
			t.Errorf("hooks were told: %s\nwant: %s", got, want)
		}
		first.set(nil)
	})
}

// TestClaimInDoubt checks that a task runs if the store has taken a server's claim on it, has not answered, and is away
// for longer than the server calls it.
func TestClaimInDoubt(t *testing.T) {
	const away = 15 * time.Second
	bubble.Test(t, func(t *testing.T) {
		store := &tapStore{Store: taskstore.NewMemory()}
		createOrphan(t, store, "orphan")
		var mu sync.Mutex
		var cutAt time.Time
		store.set(func(_ context.Context, method string, _ *taskstore.Record, do func() error) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case method == "Update" && cutAt.IsZero():
				cutAt = time.Now()
				return errors.Join(do(), errStore)
			case !cutAt.IsZero() && time.Since(cutAt) < away:
				return errStore
			}
			return do()
		})
		s := newServer(t, Options{Store: store}, numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		time.Sleep(away)
		if r, err := s.Await(ctx, alice, "orphan"); err != nil || r.Attempt != 1 || r.Outcome.Kind != taskstore.OutcomeResult {
			t.Errorf("attempt %d, %+v, %v", r.Attempt, r.Outcome, err)
		}
	})
}

// TestLateClaim checks that a task runs if the store takes a server's claim on it only after the server has looked
// whether it did.
func TestLateClaim(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := taskstore.NewMemory()
		store := &tapStore{Store: memory}
		createOrphan(t, store, "orphan")
		var claim func() error
		store.set(func(_ context.Context, method string, _ *taskstore.Record, do func() error) error {
			switch {
			case method == "Update":
				claim = do
				return errStore
			case method == "Get" && claim != nil:
				store.set(nil)
				return errors.Join(do(), claim())
			}
			return do()
		})
		s := newServer(t, Options{Store: store}, numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		time.Sleep(2 * StorePatience)
		if r, err := s.Await(ctx, alice, "orphan"); err != nil || r.Attempt != 1 || r.Outcome.Kind != taskstore.OutcomeResult {
			t.Errorf("attempt %d, %+v, %v", r.Attempt, r.Outcome, err)
		}
	})
}

// TestStolenStart checks that a server does not run the handler of a task that another one has taken before the store's
// answer to the start.
func TestStolenStart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := taskstore.NewMemory()
		store := &tapStore{Store: memory}
		createOrphan(t, store, "orphan")
		var starts, runs atomic.Int32
		store.set(func(ctx context.Context, method string, r *taskstore.Record, do func() error) error {
			if method != "Update" || r.Claim.State != taskstore.ClaimRunning || starts.Add(1) > 1 {
				return do()
			}
			err := do()
			ended := memory.Release(ctx, r.Claim.Worker)
			taken, failed := memory.Lease(ctx, "another", time.Hour, []string{"double"}, 1)
			if len(taken) != 1 {
				t.Errorf("taken: %+v", taken)
			}
			return errors.Join(err, ended, failed, errStore)
		})
		newServer(t, Options{Store: store}, numberTool("double", mcptask.Policy{Task: mcptask.TaskRequired}, func(_ context.Context, _ *mcptask.Task, n number) (number, error) {
			runs.Add(1)
			return n, nil
		}))
		time.Sleep(30 * time.Second)
		if r, err := memory.Get(t.Context(), "orphan"); err != nil || r.Claim.Worker != "another" || r.Done() || starts.Load() == 0 || runs.Load() != 0 {
			t.Errorf("%d starts, %d runs, %+v, %v", starts.Load(), runs.Load(), r.Claim, err)
		}
	})
}

// TestEndIsToldOnce checks that hooks hear once of the end of a task that ends before a server knows that the store has
// its answer to a question.
func TestEndIsToldOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := taskstore.NewMemory()
		store := &tapStore{Store: memory}
		var told eventLog
		ship := numberTool("ship", mcptask.Policy{Task: mcptask.TaskRequired}, confirm)
		runs := newServer(t, Options{Store: &tapStore{Store: memory}, Hooks: told.hooks()}, ship)
		answers := newServer(t, Options{Store: store, Hooks: told.hooks()}, ship)
		r := asks(t, runs, alice, begin(t, runs, alice, "ship").ID)
		var updates atomic.Int32
		store.set(func(_ context.Context, method string, _ *taskstore.Record, do func() error) error {
			if method != "Update" || updates.Add(1) > 1 {
				return do()
			}
			err := do()
			time.Sleep(time.Second) // the handler gets the answer and ends
			return errors.Join(err, errStore)
		})
		accept := json.RawMessage(`{"action":"accept","content":{"approve":true}}`)
		if err := answers.Respond(t.Context(), alice, r.ID, r.Inputs[0].Key, accept, nil); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := told.String(); strings.Count(got, "ended") != 1 || strings.Count(got, "answered") != 1 {
			t.Error(got)
		}
	})
}
