package limit

import "sync"

// Gauge counts what is open, by key. The zero value is ready to use. It is safe
// for concurrent use, and keeps nothing of a key that has nothing open.
type Gauge[K comparable] struct {
	mu   sync.Mutex
	open map[K]int
}

// Bound is the most that a key may have open.
type Bound[K comparable] struct {
	Key  K
	Most int
}

// Take opens n more for each of some keys, until done is called, once. If one would
// have more than it may, nothing is opened: done is nil, and full the place of the
// first such bound.
func (g *Gauge[K]) Take(n int, bounds ...Bound[K]) (done func(), full int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, b := range bounds {
		if n > b.Most-g.open[b.Key] {
			return nil, i
		}
	}
	if g.open == nil {
		g.open = map[K]int{}
	}
	for _, b := range bounds {
		g.open[b.Key] += n
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, b := range bounds {
			if g.open[b.Key] -= n; g.open[b.Key] == 0 {
				delete(g.open, b.Key)
			}
		}
	}, -1
}
