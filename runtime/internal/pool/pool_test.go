package pool

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
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

// at returns the place of a tool "t" in groups, which stand with slashes between them. A "!" marks a group that may have
// all slots.
func at(groups string) Place {
	p := Place{Tool: "t"}
	for key := range strings.SplitSeq(groups, "/") {
		name, all := strings.CutSuffix(key, "!")
		p.Shares = append(p.Shares, Share{name, all})
	}
	return p
}

// closeIdle closes a pool that has nothing to do. All of its slots must be free, and nothing may be left.
func closeIdle(t rapid.TB, x *Pool, slots int) {
	t.Helper()
	if err := x.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if free := x.Free(); free != slots || len(x.root.groups) != 0 || len(x.tools) != 0 || x.returning.Len() != 0 {
		t.Errorf("%d of %d slots are free, %d groups left, tools %v, %d wait", free, slots, len(x.root.groups), x.tools, x.returning.Len())
	}
}

// TestReturning checks that a handler that comes back gets a slot before new work, and that those who come back take
// turns, unless their tool has all that it may have.
func TestReturning(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var freed atomic.Int32
		x := New(1, func() { freed.Add(1) })
		if !x.Reserve(at("a")) || x.Reserve(at("b")) {
			t.Fatal("not one slot")
		}
		x.tools["bounded"] = 1
		var order []string
		for _, name := range []string{"bounded", "first", "second"} {
			go func() {
				p := Place{Tool: name}
				if name == "bounded" {
					p.Most = 1
				}
				x.Acquire(t.Context(), p)
				order = append(order, name) // one at a time: no lock needed
				time.Sleep(time.Second)
				x.Release(p)
			}()
			synctest.Wait()
		}
		x.Release(at("a"))
		synctest.Wait()
		if x.Reserve(at("b")) || freed.Load() != 0 {
			t.Errorf("new work comes first: %d times", freed.Load())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(order, []string{"first", "second"}) || freed.Load() != 1 {
			t.Errorf("the order is %q, freed %d times", order, freed.Load())
		}
		x.mu.Lock()
		delete(x.tools, "bounded")
		x.dispatch()
		x.mu.Unlock()
		time.Sleep(time.Minute)
		closeIdle(t, x, 1)
	})
}

// TestTool checks that a tool gets no more slots than it may have, while others get theirs.
func TestTool(t *testing.T) {
	x := New(4, func() {})
	bounded := Place{Tool: "bounded", Most: 2, Shares: []Share{{"a", true}}}
	for i := range 3 {
		if got := x.Reserve(bounded); got != (i < 2) {
			t.Errorf("slot %d: %v", i+1, got)
		}
	}
	if !x.IsFull("bounded", 2) || x.IsFull("bounded", 0) || x.IsFull("other", 2) || !x.Reserve(at("a!")) {
		t.Error("not only the tool is full")
	}
	for _, p := range []Place{bounded, bounded, at("a!")} {
		x.Release(p)
	}
	closeIdle(t, x, 4)
}

func TestClose(t *testing.T) {
	before := leak.Now()
	start := func(t *testing.T, x *Pool, f func(context.Context)) {
		t.Helper()
		if !x.Reserve(at("a!")) {
			t.Fatal("no slot")
		}
		if err := x.Start(at("a!"), f); err != nil {
			t.Fatal(err)
		}
	}
	bubble.Run(t, "ends the handlers and waits for them", func(t *testing.T) {
		var ended, begun atomic.Int32
		x := New(2, func() {})
		for range 2 {
			start(t, x, func(ctx context.Context) {
				<-ctx.Done()
				time.Sleep(time.Second)
				ended.Add(1)
			})
		}
		if err := x.Run(at("a"), func(ctx context.Context) {
			if ctx.Err() == nil {
				begun.Add(1)
			}
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := x.Close(t.Context()); err != nil || ended.Load() != 2 || begun.Load() != 0 {
			t.Errorf("%d ended, %d begun, %v", ended.Load(), begun.Load(), err)
		}
		if err := x.Run(at("a"), func(context.Context) {}); !errors.Is(err, ErrClosed) || x.Reserve(at("a")) {
			t.Errorf("a closed pool takes work: %v", err)
		}
		if err := x.Start(at("a"), func(context.Context) {}); !errors.Is(err, ErrClosed) {
			t.Errorf("a closed pool starts work: %v", err)
		}
		closeIdle(t, x, 2) // again
	})
	bubble.Run(t, "waits no longer than told", func(t *testing.T) {
		release := make(chan struct{})
		x := New(1, func() {})
		start(t, x, func(context.Context) { <-release })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := x.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		close(release)
	})
	before.NoneLeft(t)
}

// TestPanickingRun checks that a run that panics gives its slot back.
func TestPanickingRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		x := New(1, func() {})
		for range 3 {
			if err := x.Run(at("a"), func(context.Context) { runs.Add(1); panic("a run") }); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if closeIdle(t, x, 1); runs.Load() != 3 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

// TestAccounts gives slots back and takes them again. The wait for a slot is called off at any moment. At the end all
// slots must be free.
func TestAccounts(t *testing.T) {
	before := leak.Now()
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 4).Draw(t, "slots")
		// One number for each handler: the microseconds until its wait for a slot is called off. One with a negative
		// number does not wait.
		patience := rapid.SliceOfN(rapid.IntRange(-20, 60), 1, 30).Draw(t, "handlers")
		places := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Place {
			p := at(rapid.SampledFrom([]string{"a", "b", "anonymous/s", "anonymous/r"}).Draw(t, "groups"))
			p.Tool = fmt.Sprint("most ", rapid.IntRange(0, 2).Draw(t, "most"))
			_, _ = fmt.Sscanf(p.Tool, "most %d", &p.Most)
			return p
		}), len(patience), len(patience)).Draw(t, "places")
		x := New(slots, func() {})
		var left sync.WaitGroup
		for i, patience := range patience {
			left.Add(1)
			if err := x.Run(places[i], func(ctx context.Context) {
				defer left.Done()
				for range 2 {
					if patience < 0 {
						runtime.Gosched()
						return
					}
					x.Release(places[i])
					runtime.Gosched()
					waiting, cancel := context.WithTimeout(ctx, time.Duration(patience)*time.Microsecond)
					x.Acquire(waiting, places[i])
					cancel()
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		left.Wait()
		closeIdle(t, x, slots)
	})
	before.NoneLeft(t)
}
