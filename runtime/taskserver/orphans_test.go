package taskserver

import (
	"context"
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

// cut makes the writes of a process fail, as if it hung or had lost its network.
var cut = before(func(context.Context) error { return errors.New("the store is away") }, "Update", "Beat", "Lease")

var restart = mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost}

func TestLostWorkerRestarts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		first := &tapStore{Store: store}
		late := make(chan struct{})
		a := newServer(t, Options{Store: first}, numberTool("t", restart, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			if _, err := confirm(ctx, task, in); err != nil {
				t.Errorf("%v", err)
			}
			if task.Attempt() != 1 {
				t.Errorf("attempt %d in the first process", task.Attempt())
			}
			<-late // the handler ignores everything
			return number{-1}, nil
		}))
		b := newServer(t, Options{Store: store}, numberTool("t", restart, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			began := time.Now()
			got, err := confirm(ctx, task, in) // the stored answer, at once
			if err != nil || time.Since(began) != 0 || task.Attempt() != 2 || task.Principal() != "alice" {
				t.Errorf("attempt %d: %+v, %v after %v", task.Attempt(), got, err, time.Since(began))
			}
			time.Sleep(10 * time.Second)
			return number{42}, nil
		}))
		id := begin(t, a, alice, "t").ID
		asks(t, b, alice, id) // the question is answered through the other process
		if err := answer(t, b, alice, id, "ship", yes); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		first.set(cut)
		began := time.Now()
		r, err := b.Changed(t.Context(), alice, id, 3)
		for err == nil && r.Attempt != 2 {
			r, err = b.Changed(t.Context(), alice, id, r.Version)
		}
		if err != nil || r.Claim.Worker != b.worker || time.Since(began) < leaseFor-renewEvery || time.Since(began) > leaseFor+renewEvery {
			t.Fatalf("%+v, %v after %v", r, err, time.Since(began))
		}
		first.set(nil)
		close(late) // the dead process finishes while the other works
		synctest.Wait()
		if r, err := b.Get(t.Context(), alice, id); err != nil || r.Done() {
			t.Fatalf("the void outcome counts: %s, %v", outcomeText(r.Outcome), err)
		}
		if r := ended(t, a, alice, id); outcomeText(r.Outcome) != doubled || r.Attempt != 2 || len(r.Inputs) != 1 {
			t.Errorf("%+v: %s", r, outcomeText(r.Outcome))
		}
	})
}

func TestLostWorkerFails(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		first := &tapStore{Store: store}
		late := make(chan struct{})
		var runs atomic.Int32
		handler := func(ctx context.Context, _ *mcptask.Task, in number) (number, error) {
			runs.Add(1)
			<-late
			return in, nil
		}
		tools := []mcptask.Tool{numberTool("t", mcptask.Policy{}, handler)}
		a := newServer(t, Options{Store: first}, tools...)
		b := newServer(t, Options{Store: store}, tools...)
		id, stopped := begin(t, a, alice, "t").ID, begin(t, a, alice, "t").ID
		synctest.Wait()
		if err := a.Stop(t.Context(), alice, stopped); err != nil {
			t.Fatal(err)
		}
		first.set(cut)
		r := ended(t, b, alice, id)
		if !errors.Is(r.Outcome.Error, mcptask.ErrWorkerLost) || r.Outcome.Error.Code != mcptask.CodeInternalError || r.Attempt != 1 {
			t.Errorf("%s", outcomeText(r.Outcome))
		}
		for _, m := range r.Timeline.Moments() {
			if m.Kind == taskstore.EventLost && m.Text != DescribeWorker(a.worker) {
				t.Errorf("the timeline names the lost worker %q, want %q", m.Text, DescribeWorker(a.worker))
			}
		}
		if r := ended(t, b, alice, stopped); r.Outcome.Kind != taskstore.OutcomeCancelled { // the task was to stop anyway
			t.Errorf("%s", outcomeText(r.Outcome))
		}
		first.set(nil)
		close(late)
		time.Sleep(time.Hour)
		if again := ended(t, b, alice, id); again.Version != r.Version || runs.Load() != 2 {
			t.Errorf("after the end: %+v, %d runs", again, runs.Load())
		}
	})
}

// TestQueuedTaskMoves checks that a task in the line of a process that hangs runs in another
// process, and only there.
func TestQueuedTaskMoves(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		first := &tapStore{Store: store}
		late := make(chan struct{})
		var runs atomic.Int32
		tools := []mcptask.Tool{
			numberTool("blocks", mcptask.Policy{}, func(context.Context, *mcptask.Task, number) (number, error) { <-late; return number{}, nil }),
			numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				runs.Add(1)
				return after(time.Minute)(ctx, task, in)
			}),
		}
		a := newServer(t, Options{Store: first, Concurrency: 1}, tools...)
		b := newServer(t, Options{Store: store, Concurrency: 1}, tools...)
		begin(t, a, alice, "blocks")
		id := begin(t, a, alice, "t").ID
		synctest.Wait()
		first.set(cut)
		time.Sleep(leaseFor + 2*renewEvery)
		if r, err := b.Get(t.Context(), alice, id); err != nil || r.Attempt != 1 || r.Claim.Worker != b.worker {
			t.Fatalf("%+v, %v", r, err)
		}
		first.set(nil)
		close(late) // the first process comes to its queue while the second works
		r := ended(t, b, alice, id)
		if r.Outcome.Kind != taskstore.OutcomeResult || r.Attempt != 1 || runs.Load() != 1 {
			t.Errorf("%s, attempt %d, %d runs", outcomeText(r.Outcome), r.Attempt, runs.Load())
		}
	})
}

// TestTaskComesBack lets a process lose a task and get it back while its first handler still runs.
func TestTaskComesBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		firstLine, secondLine := &tapStore{Store: store}, &tapStore{Store: store}
		late := make(chan struct{})
		stolen := make(chan error, 1)
		a := newServer(t, Options{Store: firstLine}, numberTool("t", restart, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			if task.Attempt() == 1 {
				<-ctx.Done()
				stolen <- context.Cause(ctx)
				<-late
				return number{-1}, nil
			}
			return after(time.Minute)(ctx, task, in)
		}))
		newServer(t, Options{Store: secondLine}, numberTool("t", restart, hang))
		id := begin(t, a, alice, "t").ID
		synctest.Wait()
		firstLine.set(cut)
		time.Sleep(leaseFor + 2*renewEvery)
		firstLine.set(nil)
		secondLine.set(cut)
		time.Sleep(leaseFor + 2*renewEvery)
		r, err := a.Get(t.Context(), alice, id)
		if err != nil || r.Attempt != 3 || r.Claim.Worker != a.worker {
			t.Fatalf("%+v, %v", r, err)
		}
		if err := <-stolen; !errors.Is(err, mcptask.ErrSuperseded) {
			t.Errorf("the first handler ended by %v", err)
		}
		close(late)
		synctest.Wait()
		a.mu.Lock()
		if a.running[id] == nil {
			t.Error("the handler that runs cannot be cancelled")
		}
		a.mu.Unlock()
		if r := ended(t, a, alice, id); outcomeText(r.Outcome) == "" || r.Attempt != 3 || r.Outcome.Kind != taskstore.OutcomeResult {
			t.Errorf("%s, attempt %d", outcomeText(r.Outcome), r.Attempt)
		}
		secondLine.set(nil)
	})
}

func TestClosedServerHandsOver(t *testing.T) {
	for _, queued := range []bool{false, true} {
		bubble.Test(t, func(t *testing.T) {
			store := taskstore.NewMemory()
			tools := []mcptask.Tool{numberTool("t", restart, after(time.Minute)), numberTool("hang", mcptask.Policy{}, hang)}
			a := newServer(t, Options{Store: store, Concurrency: 1}, tools...)
			b := newServer(t, Options{Store: store}, tools...)
			want := 2
			var lost taskstore.Record
			if queued {
				want = 1
				lost = begin(t, a, alice, "hang")
			}
			id := begin(t, a, alice, "t").ID
			time.Sleep(time.Second)
			if err := a.server.Close(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if r := ended(t, b, alice, id); r.Attempt != want || r.Outcome.Kind != taskstore.OutcomeResult || time.Since(began) > renewEvery+time.Minute {
				t.Errorf("attempt %d: %s after %v", r.Attempt, outcomeText(r.Outcome), time.Since(began))
			}
			if queued {
				if r := ended(t, b, alice, lost.ID); !errors.Is(r.Outcome.Error, mcptask.ErrWorkerLost) {
					t.Errorf("%s", outcomeText(r.Outcome))
				}
			}
		})
	}
}

// TestClosedServerHandsOverFaults checks that a tool error counts as an error if the handler returns it because the server
// closes, as handlers of SDKs do whose child process is killed.
func TestClosedServerHandsOverFaults(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		tool := mcptask.NewTool(mcptask.ToolSpec{Name: "t", InputSchema: numberSchema, Policy: restart},
			func(ctx context.Context, _ *mcptask.Task, in number) (*mcptask.Result, error) {
				_, err := after(time.Minute)(ctx, nil, in)
				if err != nil {
					return mcptask.ErrorResult("signal: killed"), nil //nolint:nilerr // as such handlers do
				}
				return &mcptask.Result{Content: []mcptask.Content{mcptask.TextContent("done")}}, nil
			})
		a, b := newServer(t, Options{Store: store}, tool), newServer(t, Options{Store: store}, tool)
		id := begin(t, a, alice, "t").ID
		time.Sleep(time.Second)
		if err := a.server.Close(); err != nil {
			t.Fatal(err)
		}
		if r := ended(t, b, alice, id); r.Attempt != 2 || r.Outcome.IsError {
			t.Errorf("attempt %d: %s", r.Attempt, outcomeText(r.Outcome))
		}
	})
}

// TestLongDrain checks that a handler that takes longer than a lease to end keeps its task.
func TestLongDrain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		var runs atomic.Int32
		tool := numberTool("t", restart, func(ctx context.Context, _ *mcptask.Task, in number) (number, error) {
			runs.Add(1)
			<-ctx.Done()
			time.Sleep(2 * leaseFor)
			return number{42}, nil
		})
		a := newServer(t, Options{Store: store, Drain: 5 * leaseFor}, tool)
		b := newServer(t, Options{Store: store}, tool)
		id := begin(t, a, alice, "t").ID
		synctest.Wait()
		if err := a.server.Close(); err != nil {
			t.Error(err)
		}
		if r, err := b.Get(t.Context(), alice, id); err != nil || !r.Done() || outcomeText(r.Outcome) != doubled || runs.Load() != 1 {
			t.Errorf("%s, %v, %d runs", outcomeText(r.Outcome), err, runs.Load())
		}
	})
}

func TestShortDrain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		s, err := New(Options{Drain: time.Second}, mcptask.Tools{Service: "A", Impl: 1, Tools: []mcptask.Tool{
			numberTool("t", mcptask.Policy{}, func(context.Context, *mcptask.Task, number) (number, error) { <-late; return number{}, nil })}})
		if err != nil {
			t.Fatal(err)
		}
		id := begin(t, s.Backend(), alice, "t").ID
		synctest.Wait()
		var waiting sync.WaitGroup
		waiting.Go(func() {
			r, err := s.Backend().Await(t.Context(), alice, id) // the end that the task gets, or that of the store after it
			if err == nil && r.Outcome.Kind != taskstore.OutcomeCancelled || err != nil && err.Error() != newShutdownError().Error() {
				t.Errorf("who waits gets %s, %v", outcomeText(r.Outcome), err)
			}
		})
		began := time.Now()
		for range 2 {
			err := s.Close()
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second || strings.Contains(err.Error(), "new tasks") {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		}
		waiting.Wait()
		close(late)
	})
}

// TestStoreAway checks that a store that is away for minutes costs time, not tasks.
func TestStoreAway(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		log := &logged{}
		line := &tapStore{Store: taskstore.NewMemory()}
		s := newServer(t, Options{Store: line, Concurrency: 1, Logger: log.logger()},
			numberTool("t", mcptask.Policy{}, after(time.Second)))
		first, queued := begin(t, s, alice, "t").ID, begin(t, s, alice, "t").ID
		synctest.Wait()
		line.set(cut)
		time.Sleep(10 * time.Minute)
		if r, err := s.Get(t.Context(), alice, first); err != nil || r.Done() {
			t.Errorf("%+v, %v", r, err)
		}
		line.set(nil)
		began := time.Now()
		for _, id := range []string{first, queued} {
			if r := ended(t, s, alice, id); r.Outcome.Kind != taskstore.OutcomeResult {
				t.Errorf("%s", outcomeText(r.Outcome))
			}
		}
		if time.Since(began) > 2*renewEvery {
			t.Errorf("ended after %v", time.Since(began))
		}
	})
}
