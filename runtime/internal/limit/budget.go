package limit

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

const (
	// grace is how far a transfer may fall behind slowestPeer before it can lose its room to others.
	grace = 5 * time.Second
	// slowestPeer is the rate of a transfer that falls behind no further, in bytes per second.
	slowestPeer = 64 << 10
	// sweepEvery is how often those who wait get the room of one transfer that has fallen behind.
	sweepEvery = 100 * time.Millisecond
	// maxLine limits how many may wait for the room of one key.
	maxLine = 1000
)

// Budget divides room among those who take some of it, by keys. If there is too little, they wait
// for a bounded time. It forgets a key once nothing of it is taken. Budget is safe for concurrent
// use. The zero value is ready to use.
//
// A Transfer holds room for as long as a peer takes to send or to receive. While others wait for
// room, the transfer that is the furthest behind is cut.
type Budget[K comparable] struct {
	// NewestFirst serves those first who have waited for the shortest time. So a newcomer does not wait
	// for a flood that came before. Set it before the first use.
	NewestFirst bool

	mu        sync.Mutex
	taken     map[K]int
	line      list.List // of *waiter[K], the first is served first
	kept      map[K]int // the memory of those in the line
	waiting   map[K]int // how many have come when this key had too little room
	transfers map[*Transfer[K]]struct{}
	sweeper   *time.Timer // nil while nobody waits
}

// waiter is a Take that waits.
type waiter[K comparable] struct {
	n, kept int
	bounds  []Bound[K]
	full    K             // the first of them that had too little room
	ready   chan struct{} // closed once the room is taken
	granted bool
}

// Take takes n of each key's room until give is called. While a key has too little room, Take waits, but
// not longer than patience. kept is how much the caller keeps in memory while it waits: all who wait keep
// at most a quarter of a bound. If Take fails, give is nil, and full is the index of the bound that has
// too little room.
//
// If n is larger than a bound, Take waits until nothing else of the key is taken.
func (b *Budget[K]) Take(ctx context.Context, patience time.Duration, n, kept int, bounds ...Bound[K]) (give func(), full int) {
	b.mu.Lock()
	full = b.findFull(n, bounds)
	if full < 0 {
		b.add(n, bounds)
		b.mu.Unlock()
		return func() { b.give(n, bounds) }, -1
	}
	if b.waiting[bounds[full].Key] >= maxLine {
		b.mu.Unlock()
		return nil, full
	}
	for i, bound := range bounds {
		if kept > bound.Most/4-b.kept[bound.Key] {
			b.mu.Unlock()
			return nil, i
		}
	}
	w := &waiter[K]{n: n, kept: kept, bounds: bounds, full: bounds[full].Key, ready: make(chan struct{})}
	place := b.join(w)
	b.mu.Unlock()

	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.ready:
	case <-ctx.Done():
	case <-timer.C:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.granted {
		return func() { b.give(n, bounds) }, -1
	}
	full = max(0, b.findFull(n, bounds))
	b.leave(place)
	return nil, full
}

// findFull returns the index of the first bound that has too little room, or -1. b.mu is held.
func (b *Budget[K]) findFull(n int, bounds []Bound[K]) int {
	for i, bound := range bounds {
		if taken := b.taken[bound.Key]; taken > 0 && n > bound.Most-taken {
			return i
		}
	}
	return -1
}

// add takes n of each key. A negative n gives it back. b.mu is held.
func (b *Budget[K]) add(n int, bounds []Bound[K]) {
	for _, bound := range bounds {
		count(&b.taken, bound.Key, n)
	}
}

// count adds n to the count of a key, and forgets a key whose count is 0.
func count[K comparable](counts *map[K]int, key K, n int) {
	if *counts == nil {
		*counts = map[K]int{}
	}
	if (*counts)[key] += n; (*counts)[key] == 0 {
		delete(*counts, key)
	}
}

// give returns n units to the budget, for those who wait.
func (b *Budget[K]) give(n int, bounds []Bound[K]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(-n, bounds)
	b.grant()
}

// grant gives room to those in the line for whom there is enough, in the order of the line. b.mu is
// held.
func (b *Budget[K]) grant() {
	for place := b.line.Front(); place != nil; {
		next := place.Next()
		if w := place.Value.(*waiter[K]); b.findFull(w.n, w.bounds) < 0 {
			b.add(w.n, w.bounds)
			w.granted = true
			close(w.ready)
			b.leave(place)
		}
		place = next
	}
}

// join puts a waiter into the line. b.mu is held.
func (b *Budget[K]) join(w *waiter[K]) (place *list.Element) {
	count(&b.waiting, w.full, 1)
	for _, bound := range w.bounds {
		count(&b.kept, bound.Key, w.kept)
	}
	if b.sweeper == nil {
		b.sweeper = time.AfterFunc(sweepEvery, b.sweep)
	}
	if b.NewestFirst {
		return b.line.PushFront(w)
	}
	return b.line.PushBack(w)
}

// leave removes a waiter from the line. b.mu is held.
func (b *Budget[K]) leave(place *list.Element) {
	w := b.line.Remove(place).(*waiter[K])
	count(&b.waiting, w.full, -1)
	for _, bound := range w.bounds {
		count(&b.kept, bound.Key, -w.kept)
	}
}

// sweep cuts one transfer for each key that has too little room, and comes back while somebody
// waits.
func (b *Budget[K]) sweep() {
	defer guard.Recover(nil, "the sweep of a budget")
	for _, t := range b.findSlow() {
		t.end()
	}
}

// findSlow returns the transfers that lose their room to those who wait, and has sweep come back.
func (b *Budget[K]) findSlow() (slow []*Transfer[K]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.line.Len() == 0 {
		b.sweeper = nil
		return nil
	}
	b.sweeper.Reset(sweepEvery)
	full := map[K]*Transfer[K]{} // with the slowest transfer of each
	for place := b.line.Front(); place != nil; place = place.Next() {
		w := place.Value.(*waiter[K])
		if i := b.findFull(w.n, w.bounds); i >= 0 {
			full[w.bounds[i].Key] = nil
		}
	}
	now := time.Now()
	for t := range b.transfers {
		if t.cut || t.lag(now) <= grace {
			continue
		}
		for _, bound := range t.bounds {
			if slowest, ok := full[bound.Key]; ok && (slowest == nil || slowest.lag(now) < t.lag(now)) {
				full[bound.Key] = t
			}
		}
	}
	for _, t := range full {
		if t != nil && !t.cut {
			t.cut = true
			slow = append(slow, t)
		}
	}
	return slow
}

// Transfer is the sending or receiving of bytes that have room in a Budget.
type Transfer[K comparable] struct {
	budget *Budget[K]
	bounds []Bound[K]
	end    func()
	// due and cut are guarded by the budget's lock. due is when a transfer at the slowest rate would
	// have moved as many bytes. It is never later than the last move.
	due time.Time
	cut bool
}

// Begin begins a transfer of bytes whose room was taken with these bounds. The budget calls end, in
// a goroutine of its own, if the peer is too slow while others wait. end must not block.
func (b *Budget[K]) Begin(end func(), bounds ...Bound[K]) *Transfer[K] {
	t := &Transfer[K]{budget: b, bounds: bounds, end: end, due: time.Now()}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.transfers == nil {
		b.transfers = map[*Transfer[K]]struct{}{}
	}
	b.transfers[t] = struct{}{}
	return t
}

// lag returns how far a transfer is behind the slowest rate. The budget's lock is held.
func (t *Transfer[K]) lag(now time.Time) time.Duration { return now.Sub(t.due) }

// Move notes that n more bytes have been transferred. It returns false if the transfer was cut.
func (t *Transfer[K]) Move(n int) bool {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	now := time.Now()
	if t.due = t.due.Add(time.Duration(n) * time.Second / slowestPeer); t.due.After(now) {
		t.due = now
	}
	return !t.cut
}

// Close ends the transfer. It returns false if the transfer was cut.
func (t *Transfer[K]) Close() bool {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	delete(t.budget.transfers, t)
	return !t.cut
}
