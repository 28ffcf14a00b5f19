package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestWithoutSlot checks that a handler that waits for work elsewhere lets another one run meanwhile.
func TestWithoutSlot(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		elsewhere := make(chan struct{})
		wait := func(ctx context.Context, task *Task, _ number) (number, error) {
			return number{N: 1}, task.WithoutSlot(ctx, func(ctx context.Context) error {
				select {
				case <-elsewhere:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		}
		s := newServer(t, Options{Concurrency: 1}, numberTool("wait", Policy{Task: TaskOptional}, wait), numberTool("double", Policy{Task: TaskOptional}, double))
		waiting := begin(t, s, alice, "wait")
		if r := ended(t, s, alice, begin(t, s, alice, "double").ID); outcomeText(r.Outcome) != doubled {
			t.Errorf("the other handler: %s", outcomeText(r.Outcome))
		}
		close(elsewhere)
		if r := ended(t, s, alice, waiting.ID); r.Outcome.Kind != OutcomeResult {
			t.Errorf("the handler that waited: %+v", r.Outcome)
		}
	})
}

// TestNotInterrupted checks that a run whose server is taken for lost, and that has no tries left, is not followed by
// another one: the server that takes the task ends it.
func TestNotInterrupted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := NewMemoryStore()
		cutOff, slow := &tapStore{Store: store}, &tapStore{Store: store}
		// So that the first server sees the record between the two writes of the second.
		slow.set(before(func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil }, "Update"))
		got := make(chan bool, 1)
		watch := numberTool("watch", Policy{Task: TaskRequired, OnLost: RestartWhenLost, Attempts: 1}, func(ctx context.Context, task *Task, _ number) (number, error) {
			<-ctx.Done()
			got <- task.Interrupted(ctx)
			return number{}, ctx.Err()
		})
		first := newServer(t, Options{Store: cutOff}, watch)
		second := newServer(t, Options{Store: slow}, watch)
		task := begin(t, first, alice, "watch")
		time.Sleep(time.Second)
		cutOff.set(before(func(context.Context) error { return errors.New("away") }, "Beat"))
		if r := ended(t, second, alice, task.ID); r.Outcome.Kind != OutcomeError {
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
		end  func(t *testing.T, s *Server, id string)
		want bool
	}{
		"closed":    {func(_ *testing.T, s *Server, _ string) { _ = s.Close() }, true},
		"failed":    {func(_ *testing.T, s *Server, _ string) { _ = s.Close() }, false}, // no other run may go on
		"ended":     {func(*testing.T, *Server, string) {}, false},                      // by the handler
		"cancelled": {func(t *testing.T, s *Server, id string) { _, _, _ = s.Cancel(t.Context(), alice, id) }, false},
		"stopped":   {func(t *testing.T, s *Server, id string) { _ = s.Stop(t.Context(), alice, id) }, false},
		"taken": {func(t *testing.T, s *Server, id string) {
			_, err := s.moveTask(t.Context(), s.newRequestRetry(), Record{ID: id}, func(Record) event { return event{kind: eventStart, worker: "other"} })
			if err != nil {
				t.Error(err)
			}
		}, true},
		"ended elsewhere": {func(t *testing.T, s *Server, id string) {
			outcome := Outcome{Kind: OutcomeError, Error: Errorf(CodeInternalError, "the worker of the task was lost")}
			_, err := s.moveTask(t.Context(), s.newRequestRetry(), Record{ID: id}, func(Record) event { return event{kind: eventFinish, outcome: outcome} })
			if err != nil {
				t.Error(err)
			}
		}, false},
		"expired": {func(*testing.T, *Server, string) { time.Sleep(time.Hour) }, false},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			got := make(chan bool, 3) // a task that was taken runs again
			watch := func(ctx context.Context, task *Task, _ number) (number, error) {
				if task.Interrupted(ctx) {
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
			policy := Policy{Task: TaskOptional, TTL: time.Minute, OnLost: RestartWhenLost}
			if name == "failed" {
				policy.OnLost = FailWhenLost
			}
			s := newServer(t, Options{Store: NewMemoryStore()}, numberTool("watch", policy, watch))
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

// TestNoRunner checks that a workflow without a Runner is a tool error that names it.
func TestNoRunner(t *testing.T) {
	_, err := RunWorkflow[json.RawMessage](t.Context(), nil, NewTask("a", "", 1, nil), "Build")
	if err == nil || !strings.Contains(err.Error(), "Build") {
		t.Errorf("%v", err)
	}
}
