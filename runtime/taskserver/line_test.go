package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
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

// TestIdleServerHelps checks that an idle server runs the tasks that wait at a busy one, within a second.
func TestIdleServerHelps(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		var runs atomic.Int32
		tool := numberTool("t", mcptask.Policy{}, counting(&runs, after(time.Hour)))
		a := newServer(t, Options{Store: store, Concurrency: 4}, tool)
		newServer(t, Options{Store: store, Concurrency: 4}, tool)
		newServer(t, Options{Store: store, Concurrency: 4}, numberTool("other", mcptask.Policy{}, double))
		time.Sleep(2 * orphansFirst)
		for range 9 {
			begin(t, a, alice, "t")
		}
		time.Sleep(time.Second)
		if n := runs.Load(); n != 8 {
			t.Errorf("%d of 9 tasks run at two servers with 4 slots each", n)
		}
		if time.Sleep(time.Hour); runs.Load() != 9 {
			t.Errorf("%d of 9 tasks have run", runs.Load())
		}
	})
}

// TestDeadServersLine checks that tasks which wait at a server run elsewhere at once if it dies, whatever becomes of
// its own runs.
func TestDeadServersLine(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		first := &tapStore{Store: store}
		a := newServer(t, Options{Store: first, Concurrency: 1}, numberTool("t", mcptask.Policy{}, after(time.Hour)))
		begin(t, a, alice, "t")
		waiting := begin(t, a, alice, "t")
		time.Sleep(time.Minute)
		first.set(cut)
		began := time.Now()
		b := newServer(t, Options{Store: store}, numberTool("t", mcptask.Policy{}, double))
		if r := ended(t, b, alice, waiting.ID); outcomeText(r.Outcome) != doubled || time.Since(began) > orphansFirst+time.Second {
			t.Errorf("%s after %v", outcomeText(r.Outcome), time.Since(began))
		}
		first.set(nil)
	})
}

// TestTurns checks that accounts take turns, and that the tasks of each come in their order.
func TestTurns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		order := make(chan string, 8)
		s := newServer(t, Options{Concurrency: 1}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			order <- task.Principal()
			return after(time.Second)(ctx, task, in)
		}))
		for _, who := range []string{"first", "a", "a", "a", "a", "b", "b", "c"} {
			begin(t, s, Caller{Principal: who, Revision: mcptask.Revision20251125}, "t")
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		for i, want := range strings.Fields("first a b c a b a a") {
			if got := <-order; got != want {
				t.Errorf("the turn %d is that of %s, want %s", i, got, want)
			}
		}
	})
}

// TestToolBound checks that no more handlers of a tool run at once than it says, and that others run meanwhile. A
// handler that waits for an answer does not count.
func TestToolBound(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var now, most, runs atomic.Int32
		work := func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			return after(time.Minute)(ctx, task, in)
		}
		s := newServer(t, Options{}, numberTool("bounded", mcptask.Policy{Task: mcptask.TaskOptional, Concurrency: 2}, counting(&runs, work)), numberTool("double", mcptask.Policy{}, double),
			numberTool("apart", mcptask.Policy{Task: mcptask.TaskOptional, Concurrency: 1}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				return in, task.WithoutSlot(ctx, func(ctx context.Context) error {
					_, err := work(ctx, task, in)
					return err
				})
			}))
		for range 7 {
			begin(t, s, alice, "bounded")
		}
		began := time.Now()
		for range 3 {
			ended(t, s, alice, begin(t, s, alice, "double").ID)
		}
		waited := time.Since(began)
		if time.Sleep(time.Second); waited > time.Second || runs.Load() != 2 {
			t.Errorf("%d run, and others wait for %v", runs.Load(), waited)
		}
		if time.Sleep(4 * time.Minute); runs.Load() != 7 || most.Load() != 2 {
			t.Errorf("%d have run, %d at once", runs.Load(), most.Load())
		}
		for range 3 {
			begin(t, s, alice, "apart")
		}
		if time.Sleep(time.Second); now.Load() != 3 {
			t.Errorf("%d run without a slot", now.Load())
		}
	})
}

// TestPlaceInLine checks what a task that waits says of itself, and the log of all of them.
func TestPlaceInLine(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log logged
		s := newServer(t, Options{Concurrency: 1, Logger: log.logger()}, numberTool("t", mcptask.Policy{}, after(time.Hour)))
		show := func(id string) string {
			r, err := s.Get(t.Context(), alice, id)
			if err != nil {
				t.Fatal(err)
			}
			s.ShowPlace(&r)
			return r.StatusMessage
		}
		var ids []string
		for range 4 {
			ids = append(ids, begin(t, s, alice, "t").ID)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * placesAge)
		for i, want := range []string{"", "Waits for a free slot, next in line.", "Waits for a free slot, 1 before it.", "Waits for a free slot, 2 before it."} {
			if got := show(ids[i]); got != want {
				t.Errorf("task %d says %q, want %q", i, got, want)
			}
		}
		time.Sleep(10 * time.Minute)
		if n := strings.Count(log.String(), "tasks wait for a free slot"); n < 9 || n > 11 || !strings.Contains(log.String(), "waiting=3") {
			t.Errorf("%d times in ten minutes:\n%s", n, log.String())
		}
		time.Sleep(time.Hour)
		if got := show(ids[1]); got != "" {
			t.Errorf("a task that runs says %q", got)
		}
	})
}

// TestWaitsAnew checks that a task that waits for a second time does not count as waiting from the first time on.
func TestWaitsAnew(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{Concurrency: 1}, numberTool("t", mcptask.Policy{}, after(time.Hour)))
		begin(t, s, alice, "t")
		id := begin(t, s, alice, "t").ID
		began := time.Now()
		for ago, want := range map[time.Duration]time.Time{time.Minute: began.Add(-time.Hour), 10 * time.Minute: began} {
			p := places{at: began.Add(-ago), byID: map[string]place{id: {0, began.Add(-time.Hour)}}}
			if got := p.read(s)[id].since; !got.Equal(want) {
				t.Errorf("read %v ago: it waits since %v, want %v", ago, got, want)
			}
		}
	})
}

// TestPlaceAfterATurn checks that the places are those of the accounts whose turn is next.
func TestPlaceAfterATurn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{Concurrency: 1}, numberTool("t", mcptask.Policy{}, after(time.Hour)))
		ids := map[string]string{} // the last task of each account
		for _, who := range []string{"c", "b", "a", "b", "c"} {
			ids[who] = begin(t, s, Caller{Principal: who, Revision: mcptask.Revision20251125}, "t").ID
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2*time.Hour + time.Minute) // c, a, and now the first of b
		r, err := s.store.Get(t.Context(), ids["c"])
		if s.ShowPlace(&r); err != nil || r.StatusMessage != "Waits for a free slot, next in line." {
			t.Errorf("%q, %v", r.StatusMessage, err)
		}
	})
}

// TestTaskThatCannotStart checks that a task that cannot be read holds up neither the others nor the store.
func TestTaskThatCannotStart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var reads, looks atomic.Int32
		store := &tapStore{Store: taskstore.NewMemory()}
		s := newServer(t, Options{Store: store, Concurrency: 1}, numberTool("brief", mcptask.Policy{}, after(time.Second)), numberTool("t", mcptask.Policy{}, double))
		begin(t, s, alice, "brief")
		bad := begin(t, s, alice, "t").ID
		store.set(func(_ context.Context, method string, r *taskstore.Record, do func() error) error {
			switch {
			case method == "Waiting":
				looks.Add(1)
			case method == "Get":
				if err := do(); err != nil || r.ID != bad {
					return err
				}
				reads.Add(1)
				return taskstore.ErrUnreadable
			}
			return do()
		})
		good := begin(t, s, alice, "t")
		time.Sleep(time.Minute)
		if r, err := store.Store.Get(t.Context(), good.ID); err != nil || !r.Done() {
			t.Errorf("%+v, %v", r, err)
		}
		if reads.Load() == 0 || reads.Load() > 20 || looks.Load() > 60 {
			t.Errorf("%d reads, %d looks in a minute", reads.Load(), looks.Load())
		}
	})
}

// TestOrphansFirst checks that a server that is started again goes on with what its former process had begun, before it
// begins with what waited.
func TestOrphansFirst(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		first := &tapStore{Store: store}
		tool := numberTool("t", restart, after(time.Hour))
		a := newServer(t, Options{Store: first, Concurrency: 1}, tool)
		begun := begin(t, a, alice, "t")
		time.Sleep(time.Millisecond)
		begin(t, a, alice, "t")
		time.Sleep(time.Minute)
		first.set(cut)
		if err := store.Release(t.Context(), a.worker); err != nil { // as a store does that sees the process die
			t.Fatal(err)
		}
		b := newServer(t, Options{Store: store, Concurrency: 1}, tool)
		time.Sleep(2 * orphansFirst)
		if r, err := store.Get(t.Context(), begun.ID); err != nil || r.Claim.Worker != b.worker || r.Attempt != 2 {
			t.Errorf("the task that had begun waits: %+v, %v", r, err)
		}
		first.set(nil)
	})
}
