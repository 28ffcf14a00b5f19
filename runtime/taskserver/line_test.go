package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestLineHasNoEndedTasks checks that a task that ends before its turn leaves the line. It counts for no
// limit any longer, so the line would grow for as long as the tasks before it run.
func TestLineHasNoEndedTasks(t *testing.T) {
	const many = 20
	for name, end := range map[string]func(t *testing.T, s *Backend) error{
		"cancelled": func(t *testing.T, s *Backend) error {
			_, _, err := s.Cancel(t.Context(), alice, begin(t, s, alice, "hang").ID)
			return err
		},
		"stopped": func(t *testing.T, s *Backend) error { return s.Stop(t.Context(), alice, begin(t, s, alice, "hang").ID) },
		"expired": func(t *testing.T, s *Backend) error {
			begin(t, s, alice, "brief")
			return nil
		},
		"abandoned": func(t *testing.T, s *Backend) error {
			ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
			defer leave()
			if _, err := s.Call(ctx, alice, "quick", json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeGrace}); err == nil {
				return errors.New("it has not waited")
			}
			return nil
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			var runs atomic.Int32
			work := counting(&runs, hang)
			s := newServer(t, Options{Concurrency: 1}, numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional}, work),
				numberTool("brief", mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Millisecond}, work), numberTool("quick", mcptask.Policy{Task: mcptask.TaskOptional, Grace: time.Minute}, work))
			begin(t, s, alice, "hang")
			for range many {
				if err := end(t, s); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * sweepEvery)
			if free := s.line.Free(); free != 0 || runs.Load() != 1 {
				t.Errorf("%d slots are free, %d have run", free, runs.Load())
			}
		})
	}
}

// TestLineHasNoTasksEndedElsewhere checks that a task that ends through another server leaves the line
// too, and that its handler does not run.
func TestLineHasNoTasksEndedElsewhere(t *testing.T) {
	const many = 20
	for name, end := range map[string]func(t *testing.T, other *Backend, id string) error{
		"cancelled": func(t *testing.T, other *Backend, id string) error {
			_, _, err := other.Cancel(t.Context(), alice, id)
			return err
		},
		"stopped": func(t *testing.T, other *Backend, id string) error { return other.Stop(t.Context(), alice, id) },
		"expired": func(*testing.T, *Backend, string) error { return nil },
	} {
		bubble.Run(t, name, func(t *testing.T) {
			store := taskstore.NewMemory()
			var runs atomic.Int32
			line := &tapStore{Store: store, tap: before(func(context.Context) error { return errStore }, "Expire")}
			s := newServer(t, Options{Store: line, Concurrency: 1, Logger: (&logged{}).logger()}, numberTool("hang", mcptask.Policy{}, hang),
				numberTool("brief", mcptask.Policy{TTL: time.Minute}, counting(&runs, hang)))
			other := newServer(t, Options{Store: store})
			begin(t, s, alice, "hang")
			for range many {
				r := begin(t, s, alice, "brief")
				if err := end(t, other, r.ID); err != nil {
					t.Fatal(err)
				}
				if r, err := other.Get(t.Context(), alice, r.ID); name != "expired" && (err != nil || !r.Done()) {
					t.Errorf("it has not ended at once: %+v, %v", r, err)
				}
			}
			time.Sleep(2 * time.Minute)
			if free := s.line.Free(); free != 0 || runs.Load() != 0 {
				t.Errorf("%d slots are free, %d have run", free, runs.Load())
			}
		})
	}
}

// TestLineKeepsALaterTask checks that a task stays in line if the feed still tells of an earlier task with
// its name.
func TestLineKeepsALaterTask(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{Store: &tapStore{Store: taskstore.NewMemory()}, Concurrency: 1},
			numberTool("brief", mcptask.Policy{}, after(time.Second)), numberTool("t", mcptask.Policy{}, double))
		begin(t, s, alice, "brief")
		reply, err := s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeTask, ExternalID: "a name"})
		if err != nil {
			t.Fatal(err)
		}
		s.takeChange(taskstore.Change{ID: reply.Task.ID, Version: 3, Phase: taskstore.PhaseDone})
		s.takeChange(taskstore.Change{ID: reply.Task.ID})
		if r := ended(t, s, alice, reply.Task.ID); outcomeText(r.Outcome) != doubled {
			t.Errorf("%s", outcomeText(r.Outcome))
		}
	})
}
