package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestWithoutSlot checks that a handler that waits for work elsewhere lets another one run meanwhile.
func TestWithoutSlot(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		elsewhere := make(chan struct{})
		wait := func(ctx context.Context, task *mcptask.Task, _ number) (number, error) {
			return number{N: 1}, task.WithoutSlot(ctx, func(ctx context.Context) error {
				select {
				case <-elsewhere:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		}
		s := newServer(t, Options{Concurrency: 1}, numberTool("wait", mcptask.Policy{Task: mcptask.TaskOptional}, wait), numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double))
		waiting := begin(t, s, alice, "wait")
		if r := ended(t, s, alice, begin(t, s, alice, "double").ID); outcomeText(r.Outcome) != doubled {
			t.Errorf("the other handler: %s", outcomeText(r.Outcome))
		}
		close(elsewhere)
		if r := ended(t, s, alice, waiting.ID); r.Outcome.Kind != taskstore.OutcomeResult {
			t.Errorf("the handler that waited: %+v", r.Outcome)
		}
	})
}

// TestNotInterrupted checks that a run whose server is taken for lost, and that has no tries left, is not followed by
// another one: the server that takes the task ends it.
func TestNotInterrupted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		cutOff, slow := &tapStore{Store: store}, &tapStore{Store: store}
		// So that the first server sees the record between the two writes of the second.
		slow.set(before(func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil }, "Update"))
		got := make(chan bool, 1)
		watch := numberTool("watch", mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost, Attempts: 1}, func(ctx context.Context, task *mcptask.Task, _ number) (number, error) {
			<-ctx.Done()
			got <- task.Interrupted(ctx)
			return number{}, ctx.Err()
		})
		first := newServer(t, Options{Store: cutOff}, watch)
		second := newServer(t, Options{Store: slow}, watch)
		task := begin(t, first, alice, "watch")
		time.Sleep(time.Second)
		cutOff.set(before(func(context.Context) error { return errors.New("away") }, "Beat"))
		if r := ended(t, second, alice, task.ID); r.Outcome.Kind != taskstore.OutcomeError {
			t.Errorf("%+v", r.Outcome)
		}
		if <-got {
			t.Error("interrupted, although no other run goes on")
		}
	})
}

// TestInterrupted checks that a handler can tell the end of its run from the end of its task.
func TestInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(t *testing.T, s *Backend, id string)
		want bool
	}{
		"closed":    {func(_ *testing.T, s *Backend, _ string) { _ = s.server.Close() }, true},
		"failed":    {func(_ *testing.T, s *Backend, _ string) { _ = s.server.Close() }, false}, // no other run may go on
		"ended":     {func(*testing.T, *Backend, string) {}, false},                             // by the handler
		"cancelled": {func(t *testing.T, s *Backend, id string) { _, _, _ = s.Cancel(t.Context(), alice, id) }, false},
		"stopped":   {func(t *testing.T, s *Backend, id string) { _ = s.Stop(t.Context(), alice, id) }, false},
		"taken": {func(t *testing.T, s *Backend, id string) {
			_, err := s.moveTask(t.Context(), s.newRequestRetry(), taskstore.Record{ID: id}, func(taskstore.Record) event {
				return event{kind: eventStart, claim: taskstore.Claim{Worker: "other", State: taskstore.ClaimRunning}}
			})
			if err != nil {
				t.Error(err)
			}
		}, true},
		"ended elsewhere": {func(t *testing.T, s *Backend, id string) {
			outcome := taskstore.Outcome{Kind: taskstore.OutcomeError, Error: mcptask.Errorf(mcptask.CodeInternalError, "the worker of the task was lost")}
			_, err := s.moveTask(t.Context(), s.newRequestRetry(), taskstore.Record{ID: id}, func(taskstore.Record) event { return event{kind: eventFinish, outcome: outcome} })
			if err != nil {
				t.Error(err)
			}
		}, false},
		"expired": {func(*testing.T, *Backend, string) { time.Sleep(time.Hour) }, false},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			got := make(chan bool, 3) // a task that was taken runs again
			watch := func(ctx context.Context, task *mcptask.Task, _ number) (number, error) {
				if task.Attempt() == 1 && task.Interrupted(ctx) { // a later run may begin while its server closes at the end of the test
					t.Error("before the context has ended")
				}
				if name == "ended" {
					own, cancel := context.WithCancel(ctx)
					cancel()
					ctx = own
				}
				<-ctx.Done()
				got <- task.Interrupted(ctx)
				return number{}, ctx.Err()
			}
			policy := mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Minute, OnLost: mcptask.RestartWhenLost}
			if name == "failed" {
				policy.OnLost = mcptask.FailWhenLost
			}
			s := newServer(t, Options{Store: taskstore.NewMemory()}, numberTool("watch", policy, watch))
			r := begin(t, s, alice, "watch")
			synctest.Wait()
			other := s
			if name == "taken" || name == "ended elsewhere" {
				other = newServer(t, Options{Store: s.store}, numberTool("watch", policy, watch))
			}
			c.end(t, other, r.ID)
			if got := <-got; got != c.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// handEngine is an Engine whose runs the test calls.
type handEngine struct{ run RunFunc }

func (e *handEngine) join(run RunFunc) (Executor, error) {
	e.run = run
	return e, nil
}

func (*handEngine) Name() string                               { return "hand" }
func (*handEngine) Patience() time.Duration                    { return time.Minute }
func (*handEngine) Submit(context.Context, Submission) error   { return nil }
func (*handEngine) Cancel(context.Context, Submission) error   { return nil }
func (*handEngine) Answered(context.Context, Submission) error { return nil }
func (*handEngine) Close(context.Context) error                { return nil }

// TestInterruptedByEngine checks that a run whose engine has begun another one is interrupted, even if it has no tries
// left, and that one whose task is lost is not.
func TestInterruptedByEngine(t *testing.T) {
	for name, c := range map[string]struct {
		supersede func(t *testing.T, s *Backend, run RunFunc, id string)
		want      bool
	}{
		"another run": {func(t *testing.T, s *Backend, _ RunFunc, id string) {
			other := newServer(t, Options{Store: s.store, Executor: new(handEngine).join}) // another server of the engine
			_, err := other.moveTask(t.Context(), other.newRequestRetry(), taskstore.Record{ID: id}, func(taskstore.Record) event {
				return event{kind: eventStart, claim: taskstore.Claim{Worker: other.nameWorker(), State: taskstore.ClaimRunning}}
			})
			if err != nil {
				t.Error(err)
			}
		}, true},
		"lost": {func(t *testing.T, _ *Backend, run RunFunc, id string) {
			if end := run(t.Context(), id); end != RunOver {
				t.Errorf("%v", end)
			}
		}, false},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			var engine handEngine
			got := make(chan bool, 1)
			watch := numberTool("watch", mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost, Attempts: 1}, func(ctx context.Context, task *mcptask.Task, _ number) (number, error) {
				<-ctx.Done()
				got <- task.Interrupted(ctx)
				return number{}, ctx.Err()
			})
			s := newServer(t, Options{Store: taskstore.NewMemory(), Executor: engine.join}, watch)
			task := begin(t, s, alice, "watch")
			ended := make(chan RunEnd, 1)
			go func() { ended <- engine.run(t.Context(), task.ID) }()
			synctest.Wait()
			c.supersede(t, s, engine.run, task.ID)
			if got := <-got; got != c.want {
				t.Errorf("%v", got)
			}
			<-ended
		})
	}
}

// TestLateCallLeavesRun checks that a call of the RunFunc that finds a task lost leaves a run alone that begins at the
// same server before the task is ended.
func TestLateCallLeavesRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var engine handEngine
		store := &tapStore{Store: taskstore.NewMemory()}
		watch := numberTool("watch", mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost, Attempts: 1}, func(ctx context.Context, task *mcptask.Task, _ number) (number, error) {
			select {
			case <-ctx.Done():
				return number{}, ctx.Err()
			case <-time.After(time.Duration(task.Attempt()) * time.Hour):
				return number{N: task.Attempt()}, nil
			}
		})
		s := newServer(t, Options{Store: store, Executor: engine.join}, watch)
		task := begin(t, s, alice, "watch")
		ends := make(chan RunEnd, 2)
		call := func() { ends <- engine.run(t.Context(), task.ID) }
		go call()
		synctest.Wait()
		store.set(func(ctx context.Context, _ string, r *taskstore.Record, do func() error) error {
			if r == nil || !r.Done() {
				return do()
			}
			store.set(nil)
			_, err := s.moveTask(ctx, s.newRequestRetry(), taskstore.Record{ID: task.ID}, func(taskstore.Record) event { return event{kind: eventHandOver, claim: s.claimAfterRun()} })
			if err != nil {
				t.Error(err)
			}
			go call()
			time.Sleep(time.Second)
			return do()
		})
		if end := engine.run(t.Context(), task.ID); end != RunLeft {
			t.Errorf("the late call returned %v", end)
		}
		if r := ended(t, s, alice, task.ID); r.Outcome.Kind != taskstore.OutcomeResult || r.Attempt != 2 {
			t.Errorf("attempt %d: %+v", r.Attempt, r.Outcome)
		}
		for range 2 {
			if end := <-ends; end != RunOver {
				t.Errorf("%v", end)
			}
		}
	})
}

// TestNoRunner checks that a workflow without a Runner is a tool error that names it.
func TestNoRunner(t *testing.T) {
	_, err := mcptask.RunWorkflow[json.RawMessage](t.Context(), nil, mcptask.NewTask(nil, mcptask.TaskInfo{ID: "a", Attempt: 1}), "Build")
	if err == nil || !strings.Contains(err.Error(), "Build") {
		t.Errorf("%v", err)
	}
}
