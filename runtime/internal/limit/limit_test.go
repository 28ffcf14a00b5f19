package limit

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// allowed counts how many of n at one time are allowed.
func allowed[K comparable](r *Rates[K], key K, n int) (count int) {
	for range n {
		if r.Allow(key) {
			count++
		}
	}
	return count
}

// TestRates checks that a key gets a burst of twice the rate and then the rate, whatever other keys
// do.
func TestRates(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := NewRates[string](20, 2)
		for key := range 100 {
			if got := allowed(r, strconv.Itoa(key), 100); got != 40 {
				t.Fatalf("%d of a burst", got)
			}
		}
		for second := range 10 {
			time.Sleep(time.Second)
			if got := allowed(r, "7", 100); got != 20 {
				t.Errorf("%d after second %d", got, second)
			}
		}
		time.Sleep(time.Hour)
		if got := allowed(r, "7", 100); got != 40 {
			t.Errorf("%d after a rest", got)
		}
		if got := allowed(NewRates[string](math.MaxInt, 2), "", 1000); got != 1000 {
			t.Errorf("%d without a bound", got)
		}
	})
}

// TestRatesStaySmall checks that the table keeps the buckets that are not full, drops full ones,
// and stays within its bound, even with long keys.
func TestRatesStaySmall(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := NewRates[string](20, 2)
		size := func() int {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.recent) + len(r.older)
		}
		long := strings.Repeat("x", 1<<10)
		for i := range 3 * maxBuckets {
			r.Allow(long + strconv.Itoa(i))
			if size() > 2*maxBuckets {
				t.Fatalf("%d buckets", size())
			}
		}
		if got := allowed(r, long+strconv.Itoa(3*maxBuckets-1), 100); got != 39 {
			t.Errorf("%d: the bucket was forgotten", got)
		}
		time.Sleep(3 * time.Second)
		if size() == 0 {
			t.Error("dropped too early")
		}
		time.Sleep(2 * time.Second)
		if size() != 0 || r.sweeper != nil {
			t.Errorf("%d buckets are left", size())
		}
	})
}

// TestGauge checks that no more are let in than there is room for, however many ask at once.
func TestGauge(t *testing.T) {
	var g Gauge[string]
	const most = 5
	var open, in, highest atomic.Int32
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			done, _ := g.Take(1, Bound[string]{"a", most})
			if done == nil {
				return
			}
			in.Add(1)
			if n := open.Add(1); n > highest.Load() {
				highest.Store(n)
			}
			open.Add(-1)
			done()
		})
	}
	all.Wait()
	if in.Load() < most || highest.Load() > most || len(g.open) != 0 {
		t.Errorf("%d were let in, %d at once, %d keys are left", in.Load(), highest.Load(), len(g.open))
	}
	for range most {
		if done, full := g.Take(1, Bound[string]{"a", most}); done == nil || full >= 0 {
			t.Error("refused before the bound")
		}
	}
	if done, full := g.Take(1, Bound[string]{"a", most}); done != nil || full != 0 {
		t.Error("let in beyond the bound")
	}
	if done, _ := g.Take(most+1, Bound[string]{"b", most}); done != nil {
		t.Error("too many at once were let in")
	}
	if done, _ := g.Take(most, Bound[string]{"b", most}); done == nil {
		t.Error("another key's were counted")
	} else {
		done()
	}
	if g.open["b"] != 0 {
		t.Errorf("left: %v", g.open)
	}
}

// TestGaugeOfSeveralKeys checks that Take counts for all keys or for none of them, and names the
// first that is full.
func TestGaugeOfSeveralKeys(t *testing.T) {
	var g Gauge[string]
	take := func(account string, n int) (func(), int) {
		return g.Take(n, Bound[string]{account, 2}, Bound[string]{"all", 3}, Bound[string]{"unbounded", math.MaxInt})
	}
	var opened []func()
	for _, step := range []struct {
		account string
		full    int
	}{{"a", -1}, {"a", -1}, {"a", 0}, {"b", -1}, {"b", 1}, {"a", 0}, {"c", 1}} {
		done, full := take(step.account, 1)
		if full != step.full || (done == nil) != (full >= 0) {
			t.Errorf("%s: bound %d is full, want %d", step.account, full, step.full)
		}
		if done != nil {
			opened = append(opened, done)
		}
	}
	if done, full := take("d", 3); done != nil || full != 0 {
		t.Errorf("three of two: %d", full)
	}
	opened[0]()
	if done, full := take("c", 1); done == nil {
		t.Errorf("there is room again: %d", full)
	} else {
		done()
	}
	for _, done := range opened[1:] {
		done()
	}
	if len(g.open) != 0 {
		t.Errorf("left: %v", g.open)
	}
}

func TestRatesConcurrently(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := NewRates[string](20, 2)
		var count atomic.Int32
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				for j := range 200 {
					r.Allow(strconv.Itoa(i*200 + j))
					if r.Allow("shared") {
						count.Add(1)
					}
				}
			})
		}
		all.Wait()
		if count.Load() != 40 {
			t.Errorf("%d were allowed", count.Load())
		}
	})
}

func BenchmarkAllow(b *testing.B) {
	r := NewRates[[2]string](1<<40, 2)
	key := [2]string{"somebody", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
	b.ReportAllocs()
	for b.Loop() {
		r.Allow(key)
	}
}
