package taskserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memengine"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestParkedWithoutEngine checks that a server without the engine runs a task that waits for an answer, once the engine
// has lost it.
func TestParkedWithoutEngine(t *testing.T) {
	for _, isLate := range []bool{false, true} { // the answer comes after the adoption
		bubble.Test(t, func(t *testing.T) {
			var cluster memengine.Cluster
			store := taskstore.NewMemory()
			tools := []mcptask.Tool{textTool("ask", mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost, TTL: 24 * time.Hour}, askOnce)}
			a := startServer(t, store, cluster.Join, tools...)
			id := call(t, a, "ask")
			time.Sleep(time.Minute) // its run has ended
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			plain := startServer(t, store, nil, tools...)
			if isLate {
				time.Sleep(2 * time.Hour)
			}
			give(t, plain, id, "yes")
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
			defer cancel()
			if r, err := plain.Backend().Await(ctx, carol, id); err != nil || r.Outcome.Kind != taskstore.OutcomeResult {
				t.Errorf("late %v: %v, %s at %s, attempt %d", isLate, err, r.Phase, r.Claim.Worker, r.Attempt)
			}
		})
	}
}

// forgetfulStore loses the answers to Updates that it has carried out.
type forgetfulStore struct {
	taskstore.Store
	lose atomic.Bool
	then func() // called meanwhile, or nil
}

func (s *forgetfulStore) Update(ctx context.Context, from, to taskstore.Record, q taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	r, err := s.Store.Update(ctx, from, to, q, steps...)
	if s.lose.CompareAndSwap(true, false) {
		if s.then != nil {
			s.then()
		}
		return taskstore.Record{}, errors.New("the answer was lost")
	}
	return r, err
}

// countingEngine counts the calls of its methods.
type countingEngine struct {
	taskserver.Engine
	answered *atomic.Int32
}

// Answered implements taskserver.Engine.
func (x countingEngine) Answered(ctx context.Context, task taskserver.Submission) error {
	x.answered.Add(1)
	return x.Engine.Answered(ctx, task)
}

// TestEngineIsToldOfAnswers checks that the engine learns of an answer although the store's word for it was lost, and
// that nobody can flood it with answers that nothing waits for.
func TestEngineIsToldOfAnswers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var cluster memengine.Cluster
		var answered atomic.Int32
		store := &forgetfulStore{Store: taskstore.NewMemory()}
		s := startServer(t, store, func(run taskserver.RunFunc) (taskserver.Executor, error) {
			x, err := cluster.Join(run)
			return countingEngine{x.(taskserver.Engine), &answered}, err
		}, textTool("ask", restarts, askOnce))
		id := call(t, s, "ask")
		time.Sleep(5*time.Second + time.Millisecond) // its run has ended
		for range 100 {
			if err := s.Backend().Answer(t.Context(), carol, id, map[string]json.RawMessage{"nothing": json.RawMessage(`{"action":"decline"}`)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if n := answered.Load(); n > 0 {
			t.Errorf("told %d times of no answer", n)
		}
		began := time.Now()
		store.lose.Store(true)
		if err := s.Backend().Respond(t.Context(), carol, id, "step", json.RawMessage(`{"action":"accept","content":{"Text":"yes"}}`), nil); err != nil {
			t.Fatal(err)
		}
		if got := wait(t, s, id); got != "yes" || time.Since(began) > 5*time.Second {
			t.Errorf("%s after %v", got, time.Since(began))
		}
	})
}

// pickyEngine never takes one of the tasks.
type pickyEngine struct {
	taskserver.Engine
	refused *atomic.Value
}

// Submit implements taskserver.Executor.
func (x pickyEngine) Submit(ctx context.Context, task taskserver.Submission) error {
	if x.refused.Load() == task.TaskID {
		return errors.New("not this one")
	}
	return x.Engine.Submit(ctx, task)
}

// TestEngineRefusesOne checks that all other tasks are submitted again if the engine does not take one.
func TestEngineRefusesOne(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var cluster memengine.Cluster
		var refused atomic.Value
		s := startServer(t, taskstore.NewMemory(), func(run taskserver.RunFunc) (taskserver.Executor, error) {
			x, err := cluster.Join(run)
			return pickyEngine{x.(taskserver.Engine), &refused}, err
		}, textTool("again", restarts, workFor(30*time.Minute)), textTool("long", restarts, workFor(10*time.Hour)))
		forgotten := call(t, s, "again")
		time.Sleep(time.Second)
		other := call(t, s, "long") // newer, so it is submitted first
		refused.Store(other)
		cluster.Forget(forgotten)
		began := time.Now()
		if got := wait(t, s, forgotten); got != "done" || time.Since(began) > 2*time.Hour {
			t.Errorf("%s after %v", got, time.Since(began))
		}
	})
}

// skewedStore has a clock of its own.
type skewedStore struct {
	taskstore.Store
	ahead time.Duration
}

func (s skewedStore) Beat(ctx context.Context, worker string, lease time.Duration, held []string) (taskstore.Heartbeat, error) {
	beat, err := s.Store.Beat(ctx, worker, lease, held)
	beat.Now = beat.Now.Add(s.ahead)
	return beat, err
}

// notingExecutor notes the submissions.
type notingExecutor struct{ submitted chan taskserver.Submission }

func (x notingExecutor) Submit(_ context.Context, task taskserver.Submission) error {
	x.submitted <- task
	return nil
}

func (notingExecutor) Close(context.Context) error { return nil }

// TestUntilIsOfThisClock checks that the end of a submitted task is one of this process's clock, which an executor has.
func TestUntilIsOfThisClock(t *testing.T) {
	for _, ahead := range []time.Duration{-2 * time.Hour, 2 * time.Hour} {
		bubble.Test(t, func(t *testing.T) {
			submitted := make(chan taskserver.Submission, 10)
			s := startServer(t, skewedStore{taskstore.NewMemory(), ahead}, func(taskserver.RunFunc) (taskserver.Executor, error) {
				return notingExecutor{submitted}, nil
			}, textTool("quick", mcptask.Policy{Task: mcptask.TaskRequired, TTL: time.Hour}, workFor(0)))
			call(t, s, "quick")
			if left := time.Until((<-submitted).Until); left < 59*time.Minute || left > 61*time.Minute {
				t.Errorf("the store is %v ahead: %v left", ahead, left)
			}
		})
	}
}

// TestEngineLeavesNothing checks that a server keeps nothing of tasks that others have run.
func TestEngineLeavesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var cluster memengine.Cluster
		store := taskstore.NewMemory()
		tool := textTool("quick", fails, workFor(time.Second))
		a := startServer(t, store, cluster.Join, tool)
		startServer(t, store, cluster.Join, tool)
		for range 10 {
			_, err := a.Backend().Call(t.Context(), carol, "quick", nil, taskserver.CallRequest{Mode: taskserver.ModeTask, Progress: func(string, float64, float64, string) {}})
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if n := a.Backend().CountProgress(); n > 0 {
			t.Errorf("the progress of %d tasks is left", n)
		}
	})
}

// namelessEngine is an engine without a name.
type namelessEngine struct{ taskserver.Engine }

// Name implements taskserver.Engine.
func (namelessEngine) Name() string { return "" }

// TestParkedAfterWork checks that a run is parked after its handler has waited for work elsewhere while it asked.
func TestParkedAfterWork(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var cluster memengine.Cluster
		s := startServer(t, taskstore.NewMemory(), cluster.Join, textTool("both", restarts, func(ctx context.Context, task *mcptask.Task) (string, error) {
			worked := make(chan error, 1)
			go func() {
				worked <- task.WithoutSlot(ctx, func(ctx context.Context) error {
					_, err := workFor(time.Minute)(ctx, task)
					return err
				})
			}()
			text, err := askOnce(ctx, task)
			return text, errors.Join(err, <-worked)
		}))
		id := call(t, s, "both")
		time.Sleep(10 * time.Minute)
		r, err := s.Backend().Get(t.Context(), carol, id)
		if err != nil || len(r.Inputs) != 1 || !r.Inputs[0].Parked {
			t.Errorf("%v, %+v", err, r.Inputs)
		}
		give(t, s, id, "yes")
		if got := wait(t, s, id); got != "yes" {
			t.Error(got)
		}
	})
}

// TestEngineIsToldOfStoredAnswers checks that the engine learns of an answer if there is no room for another answer of
// the same request.
func TestEngineIsToldOfStoredAnswers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cluster := memengine.Cluster{Patience: time.Second}
		input := mcptask.InputSpec{Name: "Text", Schema: `{"type":"object","properties":{"Text":{"type":"string"}}}`}
		askTwo := func(ctx context.Context, task *mcptask.Task) (string, error) {
			texts := make(chan string, 2)
			for _, step := range []string{"a", "b"} {
				go func() {
					if answer, err := mcptask.Ask[struct{ Text string }](ctx, task, input, step, ""); err == nil {
						texts <- answer.Text
					}
				}()
				time.Sleep(time.Millisecond) // so that the order of the questions is known
			}
			select {
			case text := <-texts:
				return text, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		options := taskserver.Options{Store: taskstore.NewMemory(), Executor: cluster.Join, Limits: taskserver.Limits{Bytes: 20_000}}
		s, err := taskserver.New(options, mcptask.Tools{Service: "Texts", Impl: 1, Tools: []mcptask.Tool{textTool("two", restarts, askTwo)}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		id := call(t, s, "two")
		time.Sleep(5 * time.Second) // its run has ended
		began := time.Now()
		err = s.Backend().Answer(t.Context(), carol, id, map[string]json.RawMessage{
			"a": json.RawMessage(`{"action":"accept","content":{"Text":"yes"}}`),
			"b": json.RawMessage(`{"action":"accept","content":{"Text":"` + strings.Repeat("x", 30_000) + `"}}`),
		})
		var refusal *mcptask.Error
		if !errors.As(err, &refusal) || refusal.Limit() == "" {
			t.Errorf("the answers were taken: %v", err)
		}
		if got := wait(t, s, id); got != "yes" || time.Since(began) > 5*time.Second {
			t.Errorf("%s after %v", got, time.Since(began))
		}
	})
}

// slowEngine needs a while for news, as engines on a network do.
type slowEngine struct{ taskserver.Engine }

// Answered implements taskserver.Engine.
func (x slowEngine) Answered(ctx context.Context, task taskserver.Submission) error {
	select {
	case <-time.After(100 * time.Millisecond):
		return x.Engine.Answered(ctx, task)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestCloseTellsEngine checks that the engine learns of the answer that a server has taken last.
func TestCloseTellsEngine(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var cluster memengine.Cluster
		store, tool := taskstore.NewMemory(), textTool("ask", restarts, askOnce)
		closing, err := taskserver.New(taskserver.Options{Store: store, Executor: func(run taskserver.RunFunc) (taskserver.Executor, error) {
			x, err := cluster.Join(run)
			return slowEngine{x.(taskserver.Engine)}, err
		}}, mcptask.Tools{Service: "Texts", Impl: 1, Tools: []mcptask.Tool{tool}})
		if err != nil {
			t.Fatal(err)
		}
		s := startServer(t, store, cluster.Join, tool)
		id := call(t, s, "ask")
		time.Sleep(20 * time.Second) // its run has ended
		give(t, closing, id, "yes")
		if err := closing.Close(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if got := wait(t, s, id); got != "yes" || time.Since(began) > 5*time.Second {
			t.Errorf("%s after %v", got, time.Since(began))
		}
	})
}

// partedStore is a store that its server cannot reach for a while, from its first start of a task on.
type partedStore struct {
	taskstore.Store
	isArmed, isAway atomic.Bool
}

var errAway = errors.New("no route to the store")

// Update implements taskstore.Store.
func (s *partedStore) Update(ctx context.Context, from, to taskstore.Record, q taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	if s.isArmed.Load() && to.Attempt > from.Attempt {
		s.isAway.Store(true)
	}
	if s.isAway.Load() {
		return taskstore.Record{}, errAway
	}
	return s.Store.Update(ctx, from, to, q, steps...)
}

// Get implements taskstore.Store.
func (s *partedStore) Get(ctx context.Context, id string) (taskstore.Record, error) {
	if s.isAway.Load() {
		return taskstore.Record{}, errAway
	}
	return s.Store.Get(ctx, id)
}

// TestLostServerBeginsNoRun cuts a server off while it begins a run. The engine gives the run to another server, which
// has the same name in the record. The first server must take neither the start nor the end of that run for its own.
func TestLostServerBeginsNoRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var cluster memengine.Cluster
		var runs atomic.Int32
		tool := textTool("work", fails, func(ctx context.Context, task *mcptask.Task) (string, error) {
			runs.Add(1)
			return workFor(time.Minute)(ctx, task)
		})
		shared := taskstore.NewMemory()
		parted := &partedStore{Store: shared}
		var lost taskserver.Executor
		a := startServer(t, parted, func(run taskserver.RunFunc) (taskserver.Executor, error) {
			x, err := cluster.Join(run)
			lost = x
			return x, err
		}, tool)
		b := startServer(t, shared, cluster.Join, tool)
		parted.isArmed.Store(true)
		id := call(t, a, "work")
		time.Sleep(2 * time.Second)
		parted.isArmed.Store(false)
		memengine.Kill(lost)
		time.Sleep(2 * time.Second) // the other server has begun
		parted.isAway.Store(false)
		if got := wait(t, b, id); got != "done" || runs.Load() != 1 {
			t.Errorf("%s after %d runs", got, runs.Load())
		}
	})
}

// obliviousStore loses the store's word for the first handovers.
type obliviousStore struct {
	taskstore.Store
	lost atomic.Int32
}

// Update implements taskstore.Store.
func (s *obliviousStore) Update(ctx context.Context, from, to taskstore.Record, q taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	r, err := s.Store.Update(ctx, from, to, q, steps...)
	if err == nil && to.Tries < from.Tries && s.lost.Add(1) <= 3 {
		return taskstore.Record{}, errAway
	}
	return r, err
}

// TestParkedOnce checks that a run which ends to wait for an answer gives back one try, although the store's word for
// it is lost.
func TestParkedOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var cluster memengine.Cluster
		store := &obliviousStore{Store: taskstore.NewMemory()}
		s := startServer(t, store, cluster.Join, textTool("ask", restarts, askOnce))
		id := call(t, s, "ask")
		time.Sleep(20 * time.Second)
		if r, err := s.Backend().Get(t.Context(), carol, id); err != nil || r.Attempt != 1 || r.Tries != 0 || store.lost.Load() != 4 {
			t.Errorf("attempt %d, %d tries, %d handovers, %v", r.Attempt, r.Tries, store.lost.Load(), err)
		}
	})
}

// failingEngine fails in each call of Cancel, at first with a panic.
type failingEngine struct {
	taskserver.Engine
	calls *atomic.Int32
}

// Cancel implements taskserver.Engine.
func (x failingEngine) Cancel(context.Context, taskserver.Submission) error {
	if x.calls.Add(1) == 1 {
		panic("boom")
	}
	return errors.New("the engine is away")
}

// TestFailingEngineIsNotTheStore checks that the log of a server does not blame its store for failures of the engine.
func TestFailingEngineIsNotTheStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var cluster memengine.Cluster
		var calls atomic.Int32
		var log bytes.Buffer
		executor := func(run taskserver.RunFunc) (taskserver.Executor, error) {
			x, err := cluster.Join(run)
			return failingEngine{x.(taskserver.Engine), &calls}, err
		}
		s, err := taskserver.New(taskserver.Options{Store: taskstore.NewMemory(), Executor: executor, Logger: slog.New(slog.NewTextHandler(&log, nil))},
			mcptask.Tools{Service: "Texts", Impl: 1, Tools: []mcptask.Tool{textTool("ask", restarts, askOnce)}})
		if err != nil {
			t.Fatal(err)
		}
		id := call(t, s, "ask")
		if _, _, err := s.Backend().Cancel(t.Context(), carol, id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		got := log.String()
		if calls.Load() < 3 || strings.Contains(got, "store call") || strings.Contains(got, "store panicked") || !strings.Contains(got, `"engine panicked"`) || !strings.Contains(got, `"engine call failed, and is made again" call=Cancel error="the engine is away"`) {
			t.Errorf("%d calls: %s", calls.Load(), got)
		}
	})
}
