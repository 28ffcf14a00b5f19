package pool

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/leak"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

func TestExecutorIsBoundedAndFair(t *testing.T) {
	before := leak.Now()
	bubble.Run(t, "bounded", func(t *testing.T) {
		var now, most, total atomic.Int32
		x := New(func(context.Context, string) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			now.Add(-1)
			total.Add(1)
		}, 3)
		start := time.Now()
		for i := range 30 {
			submit(t, x, fmt.Sprint(i))
		}
		synctest.Wait()
		if n := now.Load(); n != 3 {
			t.Errorf("%d run at once", n)
		}
		time.Sleep(10*time.Second - time.Millisecond)
		if total.Load() != 27 {
			t.Errorf("%d done", total.Load())
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if total.Load() != 30 || most.Load() != 3 || time.Since(start) != 10*time.Second {
			t.Errorf("%d done, %d at most, in %v", total.Load(), most.Load(), time.Since(start))
		}
		closeIdle(t, x, 3)
	})
	bubble.Run(t, "first come, first served", func(t *testing.T) {
		var order []string
		x := New(func(_ context.Context, id string) {
			order = append(order, id) // one at a time: no lock needed
			time.Sleep(time.Millisecond)
		}, 1)
		var want []string
		for i := range 50 {
			want = append(want, fmt.Sprint(i))
		}
		submit(t, x, want...)
		time.Sleep(time.Second)
		closeIdle(t, x, 1)
		if !slices.Equal(order, want) {
			t.Errorf("order %v", order)
		}
	})
	bubble.Run(t, "a handler that comes back waits in line", func(t *testing.T) {
		var order []string
		var x *Pool
		x = New(func(ctx context.Context, id string) {
			order = append(order, id)
			if id == "asks" {
				x.Release()
				time.Sleep(time.Millisecond) // b has the slot by then
				x.Acquire(ctx)
				order = append(order, "answered")
			}
			time.Sleep(time.Second)
		}, 1)
		submit(t, x, "asks", "b", "c")
		time.Sleep(time.Minute)
		closeIdle(t, x, 1)
		if want := []string{"asks", "b", "c", "answered"}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
	})
	before.NoneLeft(t)
}

func TestExecutorClose(t *testing.T) {
	before := leak.Now()
	bubble.Run(t, "ends the handlers and waits for them", func(t *testing.T) {
		var started, ended atomic.Int32
		x := New(func(ctx context.Context, _ string) {
			started.Add(1)
			<-ctx.Done()
			time.Sleep(time.Second)
			ended.Add(1)
		}, 2)
		submit(t, x, "1", "2", "3", "4", "5")
		synctest.Wait()
		if err := x.Close(t.Context()); err != nil || ended.Load() != 2 {
			t.Errorf("%d ended, %v", ended.Load(), err)
		}
		if err := x.Submit("late"); !errors.Is(err, ErrClosed) {
			t.Errorf("submitted to a closed executor: %v", err)
		}
		time.Sleep(time.Hour)
		if started.Load() != 2 {
			t.Errorf("%d started, those in the queue too", started.Load())
		}
		if err := x.Close(t.Context()); err != nil { // again
			t.Error(err)
		}
	})
	bubble.Run(t, "waits no longer than told", func(t *testing.T) {
		release := make(chan struct{})
		x := New(func(context.Context, string) { <-release }, 1)
		submit(t, x, "deaf")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := x.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		close(release)
	})
	bubble.Run(t, "ends the waits for a slot", func(t *testing.T) {
		var x *Pool
		x = New(func(ctx context.Context, id string) {
			if id == "asks" {
				x.Release()
				time.Sleep(time.Second)
				x.Acquire(ctx)
				return
			}
			<-ctx.Done()
		}, 1)
		submit(t, x, "asks", "holds", "queued")
		time.Sleep(time.Minute)
		closeIdle(t, x, 1)
	})
	before.NoneLeft(t)
}

// TestWithdraw checks that a withdrawn task leaves nothing in line, not even its group, and that the tasks
// behind it go on.
func TestWithdraw(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var ran []string
		x := New(func(_ context.Context, id string) {
			time.Sleep(time.Second)
			ran = append(ran, id) // one at a time: no lock needed
		}, 1)
		submit(t, x, "a#runs", "a#first", "a#second", "a#third", "b/c#only", "b/d#last")
		for _, id := range []string{"a#first", "a#third", "b/c#only", "a#third", "a#runs", "unknown"} {
			x.Withdraw(id)
		}
		x.mu.Lock()
		if x.queued != 2 || len(x.root.groups) != 2 {
			t.Errorf("%d queued, %d groups", x.queued, len(x.root.groups))
		}
		x.mu.Unlock()
		time.Sleep(time.Minute)
		closeIdle(t, x, 1)
		if slices.Sort(ran); !slices.Equal(ran, []string{"a#runs", "a#second", "b/d#last"}) {
			t.Errorf("ran %v", ran)
		}
	})
}

// TestPanickingRun checks that a run that panics gives its slot back.
func TestPanickingRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		x := New(func(context.Context, string) { runs.Add(1); panic("a run") }, 1)
		submit(t, x, "1", "2", "3")
		synctest.Wait()
		if closeIdle(t, x, 1); runs.Load() != 3 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

// TestExecutorAccounts gives slots back and takes them again. The wait for a slot is called off at any
// moment. At the end all slots must be free.
func TestExecutorAccounts(t *testing.T) {
	before := leak.Now()
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 4).Draw(t, "slots")
		// One number for each task: the microseconds until its wait for a slot is called off. A task
		// with a negative number does not wait.
		tasks := rapid.SliceOfN(rapid.IntRange(-20, 60), 1, 30).Draw(t, "tasks")
		of := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "anonymous/s", "anonymous/r"}), len(tasks), len(tasks)).Draw(t, "groups")
		var x *Pool
		var left sync.WaitGroup
		left.Add(len(tasks))
		x = New(func(ctx context.Context, id string) {
			defer left.Done()
			number, group, _ := strings.Cut(id, " ")
			patience, err := strconv.Atoi(number)
			if err != nil || patience < 0 {
				runtime.Gosched()
				return
			}
			for range 2 {
				x.Release(path(group)...)
				runtime.Gosched()
				waiting, cancel := context.WithTimeout(ctx, time.Duration(patience)*time.Microsecond)
				x.Acquire(waiting, path(group)...)
				cancel()
			}
		}, slots)
		gone := rapid.SliceOfN(rapid.IntRange(0, len(tasks)-1), 0, len(tasks)).Draw(t, "withdrawn")
		for i, patience := range tasks {
			if err := x.Submit(fmt.Sprint(patience, " ", of[i]), path(of[i])...); err != nil {
				t.Fatal(err)
			}
		}
		for _, i := range gone {
			if x.Withdraw(fmt.Sprint(tasks[i], " ", of[i])) {
				left.Done()
			}
		}
		left.Wait()
		closeIdle(t, x, slots)
	})
	before.NoneLeft(t)
}
