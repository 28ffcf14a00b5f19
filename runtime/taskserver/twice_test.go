package taskserver

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/cause"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestDeliveredTwice checks that a second run of a task that may not start again leaves the first
// run alone, since an executor may deliver a task twice.
func TestDeliveredTwice(t *testing.T) {
	for name, policy := range map[string]mcptask.Policy{
		"fails when lost":    {Task: mcptask.TaskOptional},
		"restarts when lost": {Task: mcptask.TaskOptional, OnLost: mcptask.RestartWhenLost},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := newServer(t, Options{}, numberTool("slow", policy, after(time.Minute)))
			r := begin(t, s, alice, "slow")
			synctest.Wait() // it runs
			if err := s.executor.Submit(t.Context(), submissionOf(&r)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			r, err := s.Await(ctx, alice, r.ID)
			if err != nil || r.Outcome.Kind != taskstore.OutcomeResult {
				t.Errorf("%+v, %v", r.Outcome, err)
			}
			synctest.Wait() // the task ends before its run does
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.running) != 0 {
				t.Errorf("%d handlers are left", len(s.running))
			}
		})
	}
}

// lateStore answers the Update that begins an attempt only when it may. Before that, it refuses another one, if refuse
// is not nil, when that is closed.
type lateStore struct {
	taskstore.Store
	refuse, may chan struct{}
	updates     atomic.Int32
}

func (s *lateStore) Update(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	n := s.updates.Add(1)
	if s.refuse == nil {
		n++
	}
	if n == 1 {
		<-s.refuse
		return taskstore.Record{}, taskstore.ErrNoRecord
	}
	stored, err := s.Store.Update(ctx, from, to, quota, steps...)
	if n == 2 {
		<-s.may
	}
	return stored, err
}

// TestDeliveredTwiceAtOnce delivers a task again when the store has begun its attempt, and the first delivery has no
// answer yet. The deliveries may also have waited for one that did not begin.
func TestDeliveredTwiceAtOnce(t *testing.T) {
	for name, refuse := range map[string]chan struct{}{"the first begins": nil, "the first does not begin": make(chan struct{})} {
		bubble.Run(t, name, func(t *testing.T) {
			if refuse != nil {
				refuse = make(chan struct{}) // of this bubble
			}
			store := &lateStore{Store: taskstore.NewMemory(), refuse: refuse, may: make(chan struct{})}
			deliver := &deliveries{}
			s := newServer(t, Options{Store: store, Executor: deliver.open},
				numberTool("slow", mcptask.Policy{Task: mcptask.TaskOptional, OnLost: mcptask.RestartWhenLost}, after(time.Minute)))
			r := begin(t, s, alice, "slow")
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() { deliver.run(t.Context(), r.ID) })
				synctest.Wait()
			}
			if refuse != nil {
				close(refuse)
				synctest.Wait()
			}
			close(store.may)
			all.Wait()
			ended, err := s.Get(t.Context(), alice, r.ID)
			if err != nil || ended.Attempt != 1 || ended.Outcome == nil || ended.Outcome.Kind != taskstore.OutcomeResult {
				t.Errorf("attempt %d, %+v, %v", ended.Attempt, ended.Outcome, err)
			}
		})
	}
}

// deliveries is an executor whose tasks the test delivers.
type deliveries struct{ run RunFunc }

func (d *deliveries) open(run RunFunc) (Executor, error) { d.run = run; return d, nil }

// Submit implements Executor.
func (d *deliveries) Submit(context.Context, Submission) error { return nil }

// Close implements Executor.
func (d *deliveries) Close(context.Context) error { return nil }

// lossyExecutor starts a run each time that a task is delivered, and keeps the functions that end the runs' contexts.
type lossyExecutor struct {
	run   RunFunc
	lives chan context.CancelCauseFunc
}

func (x *lossyExecutor) Submit(_ context.Context, task Submission) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	x.lives <- cancel
	go x.run(ctx, task.TaskID)
	return nil
}

func (x *lossyExecutor) Close(context.Context) error { return nil }

// TestGivenUpRun checks that an executor that gives up a run, and delivers its task again at the same server, brings no
// task more runs than its tool allows.
func TestGivenUpRun(t *testing.T) {
	for _, tc := range []struct {
		name   string
		policy mcptask.Policy
		cause  error
		most   int32
	}{
		{"fails when lost, cancelled", mcptask.Policy{Task: mcptask.TaskRequired}, nil, 1},
		{"fails when lost, superseded", mcptask.Policy{Task: mcptask.TaskRequired}, mcptask.ErrSuperseded, 1},
		{"restarts when lost, superseded", mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost, Attempts: 2}, mcptask.ErrSuperseded, 2},
	} {
		bubble.Run(t, tc.name, func(t *testing.T) {
			x := &lossyExecutor{lives: make(chan context.CancelCauseFunc, 10)}
			var runs atomic.Int32
			newExecutor := func(run RunFunc) (Executor, error) { x.run = run; return x, nil }
			s := newServer(t, Options{Store: &tapStore{Store: taskstore.NewMemory()}, Executor: newExecutor},
				numberTool("double", tc.policy, func(ctx context.Context, _ *mcptask.Task, n number) (number, error) {
					runs.Add(1)
					<-ctx.Done()
					time.Sleep(time.Second)
					return n, ctx.Err()
				}))
			r := begin(t, s, alice, "double")
			synctest.Wait()
			for range 4 {
				(<-x.lives)(tc.cause)
				if err := x.Submit(t.Context(), submissionOf(&r)); err != nil {
					t.Error(err)
				}
				time.Sleep(5 * time.Second)
			}
			(<-x.lives)(tc.cause)
			if r, err := s.Get(t.Context(), alice, r.ID); err != nil || r.Outcome == nil || r.Outcome.Error.Reason() != cause.WorkerLost || runs.Load() != tc.most {
				t.Errorf("%d runs, %+v, %v", runs.Load(), r.Outcome, err)
			}
		})
	}
}

// TestBoundRuns checks that all runs of a task in the process of its call have the handler of the call, and that the end
// of the task forgets the handler.
func TestBoundRuns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		x := &lossyExecutor{lives: make(chan context.CancelCauseFunc, 10)}
		newExecutor := func(run RunFunc) (Executor, error) { x.run = run; return x, nil }
		policy := mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost}
		s := newServer(t, Options{Executor: newExecutor}, numberTool("double", policy, double))
		reply, err := s.Call(t.Context(), alice, "double", []byte(`{"n":21}`), CallRequest{Mode: ModeTask, Bind: func(json.RawMessage) (mcptask.BoundCall, error) {
			return func(ctx context.Context, task *mcptask.Task) (*mcptask.Result, error) {
				if task.Attempt() == 1 {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return &mcptask.Result{Structured: json.RawMessage(`{"n":7}`)}, nil
			}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		(<-x.lives)(mcptask.ErrSuperseded)
		synctest.Wait()
		if err := x.Submit(t.Context(), submissionOf(reply.Task)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		r, err := s.Get(t.Context(), alice, reply.Task.ID)
		if err != nil || !strings.Contains(outcomeText(r.Outcome), `{"n":7}`) || s.findBound(r.ID) != nil {
			t.Errorf("%d runs, %s, %v", r.Attempt, outcomeText(r.Outcome), err)
		}
	})
}
