package limit

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

const patience = 10 * time.Second

// takeNow takes room that there must be.
func takeNow(t *testing.T, b *Budget[string], n int, bounds ...Bound[string]) (give func()) {
	t.Helper()
	began := time.Now()
	give, full := b.Take(t.Context(), patience, n, 0, bounds...)
	if give == nil || time.Since(began) > 0 {
		t.Fatalf("no room for %d: bound %d is full, after %v", n, full, time.Since(began))
	}
	return give
}

// TestBudget checks that a Take waits for room of each of its keys, that those who wait get it in
// their order, and that smaller ones pass.
func TestBudget(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var b Budget[string]
		account := func(name string) []Bound[string] { return []Bound[string]{{name, 10}, {"all", 15}} }
		first := takeNow(t, &b, 8, account("a")...)
		second := takeNow(t, &b, 6, account("b")...)
		var order []string
		var all sync.WaitGroup
		wait := func(name string, n int) {
			all.Go(func() {
				give, _ := b.Take(t.Context(), patience, n, 0, account(name)...)
				if give == nil {
					t.Errorf("%s gets no room", name)
					return
				}
				order = append(order, name)
				give()
			})
			synctest.Wait()
		}
		wait("a", 3) // its account is full
		wait("c", 2) // the total is full
		takeNow(t, &b, 1, account("d")...)()
		if len(order) != 0 {
			t.Fatalf("%v got room that there was not", order)
		}
		second()
		synctest.Wait()
		if len(order) != 1 || order[0] != "c" {
			t.Errorf("%v got room", order)
		}
		first()
		all.Wait()
		if len(order) != 2 || len(b.taken)+len(b.waiting)+len(b.kept)+b.line.Len() != 0 {
			t.Errorf("%v got room, left %v, %v, %v", order, b.taken, b.waiting, b.kept)
		}
	})
}

// TestBudgetPatience checks that a Take gives up after a time, with its context, and at once if too
// much waits.
func TestBudgetPatience(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var b Budget[string]
		bounds := []Bound[string]{{"a", 40}, {"all", 20}}
		give := takeNow(t, &b, 20, bounds...)
		began := time.Now()
		if give, full := b.Take(t.Context(), patience, 1, 0, bounds...); give != nil || full != 1 || time.Since(began) != patience {
			t.Errorf("bound %d is full, after %v", full, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if give, _ := b.Take(ctx, patience, 1, 0, bounds...); give != nil || time.Since(began) != time.Second {
			t.Errorf("it waits for %v", time.Since(began))
		}
		began = time.Now()
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if give, full := b.Take(t.Context(), patience, 1, 3, bounds...); give != nil || full != 1 {
					t.Errorf("bound %d is full", full)
				}
			})
		}
		synctest.Wait()
		b.mu.Lock()
		waiting := b.waiting["all"]
		b.mu.Unlock()
		if waiting != 1 || time.Since(began) > 0 {
			t.Errorf("%d wait, though two of them keep more than a quarter of the bound", waiting)
		}
		all.Wait()
		give()
		time.Sleep(time.Minute)
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.taken)+len(b.waiting)+len(b.kept)+b.line.Len() != 0 || b.sweeper != nil {
			t.Errorf("left %v, %v, %v", b.taken, b.waiting, b.kept)
		}
	})
}

// TestBudgetLines checks that the line of one account does not keep others from waiting.
func TestBudgetLines(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var b Budget[string]
		account := func(name string) []Bound[string] { return []Bound[string]{{name, 10}, {"all", 20}} }
		gives := []func(){takeNow(t, &b, 10, account("mallory")...), takeNow(t, &b, 10, account("alice")...)}
		var all sync.WaitGroup
		for range maxLine {
			all.Go(func() {
				if give, _ := b.Take(t.Context(), patience, 1, 0, account("mallory")...); give == nil {
					t.Error("refused")
				} else {
					give()
				}
			})
		}
		synctest.Wait()
		if give, full := b.Take(t.Context(), patience, 1, 0, account("mallory")...); give != nil || full != 0 {
			t.Errorf("one more waits, bound %d", full)
		}
		all.Go(func() {
			if give, full := b.Take(t.Context(), patience, 1, 0, account("alice")...); give == nil {
				t.Errorf("alice is refused: bound %d is full", full)
			} else {
				give()
			}
		})
		synctest.Wait()
		for _, give := range gives {
			give()
		}
		all.Wait()
		if len(b.taken)+len(b.waiting)+len(b.kept)+b.line.Len() != 0 {
			t.Errorf("left %v, %v, %v", b.taken, b.waiting, b.kept)
		}
	})
}

// TestBudgetNewestFirst checks that the newest of those who wait is served first if the budget says so.
func TestBudgetNewestFirst(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := Budget[string]{NewestFirst: true}
		give := takeNow(t, &b, 1, Bound[string]{"a", 1})
		var order []int
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				give, _ := b.Take(t.Context(), patience, 1, 0, Bound[string]{"a", 1})
				if give == nil {
					t.Error("no room")
					return
				}
				order = append(order, i)
				give()
			})
			synctest.Wait()
		}
		give()
		all.Wait()
		if len(order) != 3 || order[0] != 2 || order[2] != 0 {
			t.Errorf("served %v", order)
		}
	})
}

// TestBudgetLargest checks that a request larger than a bound gets its room alone.
func TestBudgetLargest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var b Budget[string]
		small := takeNow(t, &b, 1, Bound[string]{"a", 10})
		time.AfterFunc(time.Second, small)
		began := time.Now()
		large, full := b.Take(t.Context(), patience, 100, 0, Bound[string]{"a", 10})
		if large == nil || time.Since(began) != time.Second {
			t.Fatalf("bound %d is full, after %v", full, time.Since(began))
		}
		if give, _ := b.Take(t.Context(), patience, 1, 0, Bound[string]{"a", 10}); give != nil {
			t.Error("it is not alone")
		}
		large()
	})
}

// TestBudgetSlowPeers checks that those who wait get the room of the transfers that are too slow, one
// after the other and the slowest first, and that nobody else loses anything.
func TestBudgetSlowPeers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var b Budget[string]
		own := Bound[string]{"a", 30}
		var cut []string
		begin := func(name string, bound Bound[string], rate int) {
			give := takeNow(t, &b, 10, bound)
			var transfer *Transfer[string]
			transfer = b.Begin(func() {
				cut = append(cut, name)
				transfer.Close()
				give()
			}, bound)
			go func() {
				for began := time.Now(); transfer.Move(rate) && time.Since(began) < time.Hour; {
					time.Sleep(time.Second)
				}
			}()
		}
		begin("stalled", own, 0)
		begin("slow", own, slowestPeer/2)
		begin("fast", own, slowestPeer)
		begin("another's", Bound[string]{"b", 10}, 0)
		time.Sleep(time.Minute)
		if len(cut) != 0 {
			t.Fatalf("%v were cut while nobody waited", cut)
		}
		takeNow := func(n int) func() {
			give, _ := b.Take(t.Context(), patience, n, 0, own)
			if give == nil {
				t.Fatal("no room")
			}
			return give
		}
		one := takeNow(10)
		if len(cut) != 1 || cut[0] != "stalled" {
			t.Errorf("%v were cut", cut)
		}
		two := takeNow(10)
		if len(cut) != 2 || cut[1] != "slow" {
			t.Errorf("%v were cut", cut)
		}
		if give, _ := b.Take(t.Context(), patience, 1, 0, own); give != nil || len(cut) != 2 {
			t.Errorf("%v were cut", cut)
		}
		one()
		two()
		time.Sleep(2 * time.Hour)
	})
}

// TestBudgetBursts checks that a transfer which was fast at first, and then stops, has no credit.
func TestBudgetBursts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var b Budget[string]
		bound := Bound[string]{"a", 10}
		give := takeNow(t, &b, 10, bound)
		transfer := b.Begin(give, bound)
		transfer.Move(1 << 30)
		began := time.Now()
		if give, _ := b.Take(t.Context(), patience, 10, 0, bound); give == nil || time.Since(began) > grace+2*sweepEvery {
			t.Errorf("it waits for %v", time.Since(began))
		}
		if transfer.Close() {
			t.Error("it was not cut")
		}
	})
}

// TestBudgetConcurrently checks that no more is taken than there is, however many ask.
func TestBudgetConcurrently(t *testing.T) {
	var b Budget[string]
	var mu sync.Mutex
	taken, highest := 0, 0
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			n := 1 + i%3
			give, _ := b.Take(t.Context(), patience, n, 0, Bound[string]{"a", 7})
			if give == nil {
				t.Error("no room")
				return
			}
			mu.Lock()
			taken += n
			highest = max(highest, taken)
			mu.Unlock()
			mu.Lock()
			taken -= n
			mu.Unlock()
			give()
		})
	}
	all.Wait()
	if highest > 7 || len(b.taken) != 0 {
		t.Errorf("%d at once, %v left", highest, b.taken)
	}
}
