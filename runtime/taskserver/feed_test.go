package taskserver

import (
	"context"
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

// countingStore notes the calls of a store that write or read a record.
type countingStore struct {
	mu    sync.Mutex
	calls []string
}

func (c *countingStore) tap(_ context.Context, method string, r *taskstore.Record, do func() error) error {
	if err := do(); err != nil || r == nil || method == "Change" {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, fmt.Sprintf("%s %s %d", method, r.StatusMessage, int(r.Progress.Done)))
	return nil
}

func (c *countingStore) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
}

// TestLifeIsTwoWrites checks that the store has two calls for a task that finds a free slot: to
// create it and to end it. A task that waits in line has a third, for its start.
func TestLifeIsTwoWrites(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var count countingStore
		s := newServer(t, Options{Store: &tapStore{Store: taskstore.NewMemory(), tap: count.tap}, Concurrency: 1}, numberTool("t", mcptask.Policy{}, later(time.Second)))
		synctest.Wait() // the feed has begun
		first := begin(t, s, alice, "t")
		time.Sleep(2 * time.Second)
		if got := fmt.Sprint(count.take()); got != "[Create  0 Update  0]" || first.Phase != taskstore.PhaseRunning || first.Attempt != 1 {
			t.Errorf("%s, and begins as %+v", got, first)
		}
		begin(t, s, alice, "t")
		if queued := begin(t, s, alice, "t"); queued.Phase != taskstore.PhaseQueued || queued.Attempt != 0 {
			t.Errorf("without a free slot it begins as %+v", queued)
		}
	})
}

// TestReportsOnce checks that the reports of a handler are stored at most once in a polling interval, the newest
// of them, that progress notifications come at once, and that the last report is stored with the end.
func TestReportsOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var count countingStore
		var told []string
		began := time.Now()
		s := newServer(t, Options{Store: &tapStore{Store: taskstore.NewMemory(), tap: count.tap}},
			numberTool("t", mcptask.Policy{Poll: 10 * time.Second}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				for i := range 25 {
					task.Progress(ctx, float64(i+1), 25, "on")
					time.Sleep(time.Second)
				}
				return in, nil
			}))
		synctest.Wait() // the feed has begun
		reply, err := s.Call(t.Context(), alice, "t", []byte(`{"n":1}`), CallRequest{Mode: ModeTask, Progress: func(_ string, done, _ float64, _ string) {
			told = append(told, fmt.Sprint(done, " at ", time.Since(began)))
		}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		// A timer and the handler wake at one time.
		if got := count.take(); len(got) != 5 || got[1] != "Update on (1/25) 1" || got[4] != "Update  25" {
			t.Errorf("stored: %s", got)
		}
		if len(told) != 25 || told[24] != "25 at 24s" {
			t.Errorf("told: %s", told)
		}
		if r := ended(t, s, alice, reply.Task.ID); r.Progress != (taskstore.Progress{Done: 25, Total: 25}) {
			t.Errorf("in the end: %+v", r.Progress)
		}
	})
}

// TestHandOverIsTakenAtOnce checks that the tasks that a closing server leaves, running or in line, go on at another
// server without a pause and without the loss of a try.
func TestHandOverIsTakenAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		tool := numberTool("t", restart, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			if task.Attempt() == 1 {
				task.Progress(ctx, 1, 0, "")
				task.Progress(ctx, 2, 0, "") // stored with the hand-over
			}
			return after(time.Hour)(ctx, task, in)
		})
		a := newServer(t, Options{Store: store, Concurrency: 2}, tool)
		b := newServer(t, Options{Store: store}, tool)
		ids := []string{begin(t, a, alice, "t").ID, begin(t, a, alice, "t").ID, begin(t, a, alice, "t").ID}
		time.Sleep(15 * time.Second) // between two of b's looks for orphans
		closed := time.Now()
		if err := a.server.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(mostDelay)
		synctest.Wait()
		for i, id := range ids {
			r, err := store.Get(t.Context(), id)
			if err != nil || r.Claim.Worker != b.worker || r.Phase != taskstore.PhaseRunning || r.Tries != 1 || r.UpdatedAt.Sub(closed) > mostDelay ||
				i == 0 && r.Progress.Done != 2 {
				t.Errorf("task %d: %+v, %v", i, r, err)
			}
		}
	})
}

// TestFeedIsCut checks that waits and cancellations survive a feed that fails, and that ends without a word.
func TestFeedIsCut(t *testing.T) {
	for name, fail := range map[string]error{"fails": errors.New("the network is away"), "misses all": nil} {
		bubble.Run(t, name, func(t *testing.T) {
			store := taskstore.NewMemory()
			cut := &tapStore{Store: store, tap: func(_ context.Context, method string, _ *taskstore.Record, do func() error) error {
				switch {
				case method == "Change": // not passed on
					return nil
				case method == "Changes" && fail != nil:
					return fail
				}
				return do()
			}}
			causes := make(chan error, 1)
			a := newServer(t, Options{Store: cut}, numberTool("t", mcptask.Policy{TTL: time.Hour}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				_, err := hang(ctx, task, in)
				causes <- context.Cause(ctx)
				return in, err
			}))
			b := newServer(t, Options{Store: store})
			id := begin(t, a, alice, "t").ID
			waited := make(chan taskstore.Record)
			go func() { waited <- ended(t, a, alice, id) }()
			synctest.Wait()
			if _, _, err := b.Cancel(t.Context(), alice, id); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if cause := <-causes; !errors.Is(cause, mcptask.ErrCancelled) || time.Since(began) > StoreWait {
				t.Errorf("the handler ended by %v after %v", cause, time.Since(began))
			}
			if r := <-waited; r.Outcome.Kind != taskstore.OutcomeCancelled || time.Since(began) > StoreWait {
				t.Errorf("waited %v for %s", time.Since(began), outcomeText(r.Outcome))
			}
		})
	}
}

// TestStoreClock checks that servers whose own clocks are far off follow the store's.
func TestStoreClock(t *testing.T) {
	for _, off := range []time.Duration{-5 * time.Minute, 5 * time.Minute} {
		bubble.Run(t, off.String(), func(t *testing.T) {
			clock := func() time.Time { return time.Now().Add(-off) } // the servers' clocks are off
			store := taskstore.NewMemoryAt(clock)
			s := newServer(t, Options{Store: store}, numberTool("t", mcptask.Policy{TTL: time.Minute, OnLost: mcptask.RestartWhenLost}, hang), numberTool("quick", mcptask.Policy{TTL: time.Minute}, double))
			began := time.Now()
			r := begin(t, s, alice, "t")
			if got := r.CreatedAt.Sub(clock()); got.Abs() > time.Second {
				t.Errorf("created %v from the store's time", got)
			}
			if r := ended(t, s, alice, begin(t, s, alice, "quick").ID); outcomeText(r.Outcome) != doubled {
				t.Errorf("%s", outcomeText(r.Outcome))
			}
			if _, err := s.Await(t.Context(), alice, r.ID); !errors.Is(err, mcptask.ErrExpired) {
				t.Errorf("%v", err)
			}
			if took := time.Since(began); took < 59*time.Second || took > 62*time.Second {
				t.Errorf("the minute took %v", took)
			}
		})
	}
}

// TestNothingIsFollowed checks that a server forgets the tasks that it followed.
func TestNothingIsFollowed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("t", mcptask.Policy{TTL: time.Minute}, double))
		for range 100 {
			ended(t, s, alice, begin(t, s, alice, "t").ID)
			if _, err := s.Changed(t.Context(), alice, "made up", 1); err == nil {
				t.Error("a task that does not exist has changed")
			}
		}
		synctest.Wait()
		wantForgotten(t, s)
	})
}

// wantForgotten checks that a server has forgotten all tasks.
func wantForgotten(t *testing.T, s *Backend) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.followed)+len(s.running)+len(s.toFetch)+len(s.unfetched)+s.fetchers != 0 {
		t.Errorf("%d followed, %d running, %d to fetch, %d after failures, %d fetchers",
			len(s.followed), len(s.running), len(s.toFetch), len(s.unfetched), s.fetchers)
	}
}

// TestUnreadableTasks checks that tasks whose records cannot be read do not delay the news of others,
// are read again until they can be read, without a rush, and are forgotten with their handlers.
func TestUnreadableTasks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var bad sync.Map // by task ID
		var tries atomic.Int32
		store := taskstore.NewMemory()
		line := &tapStore{Store: store}
		stopped := make(chan string, 100)
		tool := numberTool("t", mcptask.Policy{TTL: time.Hour}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			defer func() { stopped <- task.ID() }()
			return after(20*time.Minute)(ctx, task, in)
		})
		a, b := newServer(t, Options{Store: line, Logger: (&logged{}).logger()}, tool), newServer(t, Options{Store: store})
		var unreadable []string
		for range 2 * maxFetchers {
			unreadable = append(unreadable, begin(t, a, alice, "t").ID)
			bad.Store(unreadable[len(unreadable)-1], true)
		}
		good := begin(t, a, alice, "t").ID
		synctest.Wait() // a read that began before line.set could show the writes of b
		line.set(func(_ context.Context, method string, r *taskstore.Record, do func() error) error {
			err := do()
			if method == "Get" {
				if _, isBad := bad.Load(r.ID); isBad {
					tries.Add(1)
					return errStore
				}
			}
			return err
		})
		cancel := func(id string) {
			if _, _, err := b.Cancel(t.Context(), alice, id); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range unreadable[1:] {
			cancel(id)
		}
		a.takeChange(taskstore.Change{ID: unreadable[0], Version: 2, Phase: taskstore.PhaseRunning})
		time.Sleep(time.Minute)
		cancel(good)
		synctest.Wait()
		if len(stopped) != 1 || <-stopped != good {
			t.Error("the handler of a task that can be read still runs")
		}
		time.Sleep(9 * time.Minute)
		// Each is read at once and then every 2.5 to 5 s, and for each renewal that finds it lost.
		if n := int(tries.Load()) / len(unreadable); n < 100 || n > 10*60/2+10*60/10+10 {
			t.Errorf("%d tries for each task", n)
		}
		for _, id := range unreadable[1:] {
			bad.Delete(id)
		}
		time.Sleep(longestPause)
		synctest.Wait()
		if n := len(stopped); n != len(unreadable)-1 {
			t.Errorf("%d handlers have ended of %d", n, len(unreadable)-1)
		}
		time.Sleep(time.Hour) // the task that cannot be read ends
		wantForgotten(t, a)
	})
}

// TestConflictIsReadOnce checks that a task that another process has changed first is read once, and
// that observers and requests that wait see the other's version, although news of it was expected.
func TestConflictIsReadOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var count countingStore
		store := taskstore.NewMemory()
		line := &tapStore{Store: store}
		release := make(chan bool)
		a := newServer(t, Options{Store: line}, numberTool("t", mcptask.Policy{}, func(_ context.Context, _ *mcptask.Task, in number) (number, error) {
			<-release
			return in, nil
		}))
		task := begin(t, a, alice, "t")
		synctest.Wait() // the feed has begun
		var seen []string
		defer a.Observe(func(r taskstore.Record) { seen = append(seen, fmt.Sprint(r.Version, " ", r.StatusMessage)) })()
		woken := make(chan taskstore.Record, 1)
		go func() {
			r, _ := a.Changed(t.Context(), alice, task.ID, task.Version)
			woken <- r
		}()
		synctest.Wait()
		line.set(func(ctx context.Context, method string, r *taskstore.Record, do func() error) error {
			if method == "Update" && r.Version == task.Version {
				other := task
				other.StatusMessage = "another's"
				if _, err := store.Update(ctx, task, other, taskstore.Quota{}); err != nil {
					t.Error(err)
				}
				synctest.Wait() // the news of it has come
			}
			return count.tap(ctx, method, r, do)
		})
		close(release)
		if r := <-woken; r.Version <= task.Version {
			t.Errorf("woken for version %d", r.Version)
		}
		synctest.Wait()
		reads := 0
		for _, call := range count.take() {
			if strings.HasPrefix(call, "Get") {
				reads++
			}
		}
		if reads != 2 || fmt.Sprint(seen) != "[2 another's 3 ]" { // by the writer and by the request that waits
			t.Errorf("%d reads, and observers saw %v", reads, seen)
		}
	})
}

// TestConflictGivenUp checks that observers see another process's version of a task that a request here
// has failed to change and to read.
func TestConflictGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		line := &tapStore{Store: store}
		a := newServer(t, Options{Store: line}, numberTool("t", mcptask.Policy{}, double))
		task, err := store.Create(t.Context(), taskstore.Record{ID: "task", Principal: alice.Principal, Phase: taskstore.PhaseRunning, Claim: taskstore.Claim{Worker: "b"}, ExpiresAt: time.Now().Add(time.Hour)}, taskstore.Quota{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the feed has begun
		var seen []int64
		defer a.Observe(func(r taskstore.Record) { seen = append(seen, r.Version) })()
		defer a.Follow(task.ID)()
		line.set(func(ctx context.Context, method string, _ *taskstore.Record, do func() error) error {
			if method != "Update" {
				return do()
			}
			line.set(before(func(context.Context) error { return errStore }, "Get"))
			if _, err := store.Update(t.Context(), task, task, taskstore.Quota{}); err != nil {
				t.Error(err)
			}
			synctest.Wait() // the news of it has come
			return do()
		})
		if _, _, err := a.Cancel(t.Context(), alice, task.ID); err == nil {
			t.Error("cancelled")
		}
		line.set(nil)
		time.Sleep(longestPause)
		synctest.Wait()
		if fmt.Sprint(seen) != "[2]" {
			t.Errorf("observers saw %v", seen)
		}
	})
}

// TestWaitsTakeTurns checks that requests that wait do not all read at once when the feed has missed
// changes, so that they do not hold up other calls of the store, and that each of them reads.
func TestWaitsTakeTurns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const many = 1000
		store := taskstore.NewMemory()
		line := &tapStore{Store: store}
		a, b := newServer(t, Options{Store: line}, numberTool("t", mcptask.Policy{}, hang)), newServer(t, Options{Store: store})
		task := begin(t, a, alice, "t")
		var waits sync.WaitGroup
		for range many {
			waits.Go(func() {
				if r, err := a.Changed(t.Context(), alice, task.ID, task.Version); err != nil || !r.Done() {
					t.Errorf("%+v, %v", r, err)
				}
			})
		}
		synctest.Wait()
		var reading, most, reads atomic.Int32
		line.set(func(_ context.Context, method string, _ *taskstore.Record, do func() error) error {
			if method != "Get" {
				return do()
			}
			n := reading.Add(1)
			defer reading.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			reads.Add(1)
			time.Sleep(time.Millisecond)
			return do()
		})
		a.takeChange(taskstore.Change{Missed: true})
		time.Sleep(time.Second)
		if n := most.Load(); n > maxWaitReads+maxFetchers || reads.Load() != many+1 {
			t.Errorf("%d reads, %d at once", reads.Load(), n)
		}
		if _, _, err := b.Cancel(t.Context(), alice, task.ID); err != nil {
			t.Error(err)
		}
		waits.Wait()
	})
}

// TestLaterChangeIsFetched checks that a change whose reading fails is fetched again even if the reading of
// an earlier change, which has taken longer, succeeds meanwhile.
func TestLaterChangeIsFetched(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		line := &tapStore{Store: store}
		causes := make(chan error, 1)
		a := newServer(t, Options{Store: line}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, _ *mcptask.Task, in number) (number, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return in, ctx.Err()
		}))
		b := newServer(t, Options{Store: store})
		task := begin(t, a, alice, "t")
		synctest.Wait()
		var gets atomic.Int32
		line.set(func(_ context.Context, method string, _ *taskstore.Record, do func() error) error {
			err := do()
			if method == "Get" {
				switch gets.Add(1) {
				case 1:
					time.Sleep(shortestPause / 4)
				case 2:
					return errStore
				}
			}
			return err
		})
		if _, err := store.Update(t.Context(), task, task, taskstore.Quota{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, _, err := b.Cancel(t.Context(), alice, task.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(shortestPause)
		synctest.Wait()
		if len(causes) != 1 || !errors.Is(<-causes, mcptask.ErrCancelled) {
			t.Errorf("after %d readings, the handler does not know that its task was cancelled", gets.Load())
		}
	})
}

// TestSlowFetch checks that a task that takes long to read does not delay the news of another one.
func TestSlowFetch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		line := &tapStore{Store: store}
		stopped := make(chan string, 2)
		a := newServer(t, Options{Store: line}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			<-ctx.Done()
			stopped <- task.ID()
			return in, ctx.Err()
		}))
		b := newServer(t, Options{Store: store})
		slow, quick := begin(t, a, alice, "t").ID, begin(t, a, alice, "t").ID
		synctest.Wait()
		line.set(func(ctx context.Context, method string, r *taskstore.Record, do func() error) error {
			err := do()
			if method == "Get" && r.ID == slow {
				<-ctx.Done()
				return ctx.Err()
			}
			return err
		})
		for _, id := range []string{slow, quick} {
			if _, _, err := b.Cancel(t.Context(), alice, id); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if len(stopped) != 1 || <-stopped != quick {
			t.Error("the handler of the other task still runs")
		}
		line.set(nil)
		time.Sleep(2 * StoreTimeout)
	})
}
