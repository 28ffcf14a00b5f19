package pool

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// path returns the shares of keys with slashes between them. A "!" marks a share that may have all slots.
func path(keys string) (shares []Share) {
	for key := range strings.SplitSeq(keys, "/") {
		name, all := strings.CutSuffix(key, "!")
		shares = append(shares, Share{name, all})
	}
	return shares
}

// sleepers returns a pool whose tasks sleep for as long as their group says. started returns the tasks
// that have begun, in order.
func sleepers(slots int, sleep map[string]time.Duration) (x *Pool, started func() []string) {
	var mu sync.Mutex
	var ids []string
	x = New(func(_ context.Context, id string) {
		mu.Lock()
		ids = append(ids, id)
		mu.Unlock()
		group, _, _ := strings.Cut(id, "#")
		time.Sleep(sleep[group])
	}, slots)
	return x, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(ids)
	}
}

// submit submits tasks. The groups of a task stand before a "#" in its ID.
func submit(t testing.TB, x *Pool, ids ...string) {
	t.Helper()
	for _, id := range ids {
		var shares []Share
		if group, _, ok := strings.Cut(id, "#"); ok {
			shares = path(group)
		}
		if err := x.Submit(id, shares...); err != nil {
			t.Fatal(err)
		}
	}
}

// number returns the IDs of n tasks of a group.
func number(group string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("%s#%d", group, i))
	}
	return ids
}

// closeIdle closes a pool that has nothing to do. All of its slots must be free, and no task or group
// may be left in line.
func closeIdle(t rapid.TB, x *Pool, slots int) {
	t.Helper()
	if err := x.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if free, queued := x.Load(); free != slots || queued != 0 || len(x.root.groups) != 0 || x.root.turns.Len() != 0 || x.tasks.Len() != 0 {
		t.Errorf("%d of %d slots are free, %d queued, %d groups left", free, slots, queued, len(x.root.groups))
	}
}

// TestSleepersDelayNobody checks that another group starts at once, whatever the others hold and have in
// line, in pools of every size.
func TestSleepersDelayNobody(t *testing.T) {
	sessions := func(n int) (groups []string) {
		for i := range n {
			groups = append(groups, fmt.Sprint("anonymous/", i))
		}
		return groups
	}
	for name, tc := range map[string]struct {
		least  int // slots that it takes for this
		flood  []string
		others []string
	}{
		"a group":                   {4, []string{"p a"}, []string{"p b"}},
		"a group and a session":     {4, []string{"p a"}, []string{"anonymous/s"}},
		"two groups":                {16, []string{"p a", "p c"}, []string{"p b"}},
		"a group of a group":        {4, []string{"anonymous/s"}, []string{"p b"}},
		"groups of a group":         {4, sessions(200), []string{"p b"}},
		"a group beside its like":   {16, []string{"anonymous/s"}, []string{"anonymous/r", "p b"}},
		"one that may have all":     {2, []string{"local!"}, nil},
		"a group of all, and a few": {64, append(sessions(10), "p a"), []string{"p b"}},
	} {
		for _, slots := range []int{2, 3, 4, 8, 16, 64} {
			if slots < tc.least {
				continue
			}
			bubble.Test(t, func(t *testing.T) {
				sleep := map[string]time.Duration{}
				for _, group := range tc.flood {
					sleep[group] = 8 * time.Second
				}
				x, started := sleepers(slots, sleep)
				began := time.Now()
				each := max(2, 2*slots*2/len(tc.flood))
				for _, group := range tc.flood {
					submit(t, x, number(group, each)...)
				}
				synctest.Wait()
				held := len(started())
				if tc.others == nil && held != slots || held > slots || held < slots/2 || tc.others != nil && held == slots {
					t.Errorf("%s: %d of %d slots are used", name, held, slots)
				}
				for _, other := range tc.others {
					submit(t, x, other+"#0")
					synctest.Wait()
					if !slices.Contains(started(), other+"#0") || time.Since(began) != 0 {
						t.Errorf("%s: with %d of %d slots used %s waits", name, held, slots, other)
					}
				}
				time.Sleep(24 * time.Hour)
				closeIdle(t, x, slots)
				if want := each*len(tc.flood) + len(tc.others); len(started()) != want {
					t.Errorf("%s: %d of %d have run", name, len(started()), want)
				}
			})
		}
	}
}

// TestFewSlots checks that a pool of fewer than four slots keeps none free: a group that is alone has all of them.
func TestFewSlots(t *testing.T) {
	for slots := 1; slots <= 5; slots++ {
		for _, group := range []string{"p a", "anonymous/s", "anonymous/h/s"} {
			bubble.Test(t, func(t *testing.T) {
				x, started := sleepers(slots, map[string]time.Duration{group: time.Second})
				submit(t, x, number(group, 10)...)
				synctest.Wait()
				want := slots
				if slots > 3 {
					want = (3*slots + 3) / 4
				}
				if got := len(started()); got > want || got < want && (slots <= 3 || group == "p a") {
					t.Errorf("%s has %d of %d slots, want %d", group, got, slots, want)
				}
				time.Sleep(time.Hour)
				closeIdle(t, x, slots)
			})
		}
	}
}

// TestTurns checks that groups take turns, and so do the groups of a group. Within a group the first
// comes first.
func TestTurns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		x, started := sleepers(1, nil)
		hold, run := make(chan struct{}), x.run
		x.run = func(ctx context.Context, id string) {
			if id == "p first#0" {
				<-hold
			}
			run(ctx, id)
		}
		submit(t, x, "p first#0")
		synctest.Wait()
		for _, group := range []string{"p a", "p b", "anonymous/s", "anonymous/r"} {
			submit(t, x, number(group, 3)...)
		}
		close(hold)
		synctest.Wait()
		want := []string{"p first#0", "p a#0", "p b#0", "anonymous/s#0", "p a#1", "p b#1", "anonymous/r#0", "p a#2", "p b#2",
			"anonymous/s#1", "anonymous/r#1", "anonymous/s#2", "anonymous/r#2"}
		if got := started(); !slices.Equal(got, want) {
			t.Errorf("the order is\n%q, want\n%q", got, want)
		}
		closeIdle(t, x, 1)
	})
}

// TestAcquireTakesItsTurn checks that a handler that comes back from a question gets a slot in its turn,
// however much others have in line.
func TestAcquireTakesItsTurn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var x *Pool
		var order []string
		asked := make(chan struct{})
		x = New(func(ctx context.Context, id string) {
			if id == "p b#asks" {
				x.Release(path("p b")...)
				<-asked
				x.Acquire(ctx, path("p b")...)
				order = append(order, "answered")
				return
			}
			order = append(order, id)
			time.Sleep(time.Second)
		}, 1)
		submit(t, x, "p b#asks")
		submit(t, x, number("p a", 100)...)
		synctest.Wait()
		close(asked)
		time.Sleep(time.Hour)
		closeIdle(t, x, 1)
		if i := slices.Index(order, "answered"); i != 2 { // one had the slot, one its turn
			t.Errorf("it is answered behind %d others", i)
		}
	})
}

// BenchmarkSubmit runs tasks of many accounts that all have work in line.
func BenchmarkSubmit(b *testing.B) {
	for _, accounts := range []int{1, 1000} {
		b.Run(fmt.Sprint(accounts), func(b *testing.B) {
			var done atomic.Int64
			all := make(chan struct{})
			x := New(func(context.Context, string) {
				if done.Add(1) == int64(b.N) {
					close(all)
				}
			}, 64)
			keys := make([][]Share, accounts)
			for i := range keys {
				keys[i] = []Share{{Key: fmt.Sprint("p", i)}}
			}
			b.ReportAllocs()
			for i := range b.N {
				_ = x.Submit("t", keys[i%accounts]...)
			}
			<-all
		})
	}
}
