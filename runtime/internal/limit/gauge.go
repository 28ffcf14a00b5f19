package limit

import "sync"

// Gauge counts open things, such as requests, by key. The zero value is ready to use. It is safe for concurrent use. It
// keeps only keys that have something open.
type Gauge[K comparable] struct {
	mu   sync.Mutex
	open map[K]int
}

// Bound says how much a key may have open.
type Bound[K comparable] struct {
	Key  K
	Most int
}

// Take opens n more for each key, until done is called. If a key would exceed its bound, Take
// opens nothing: done is nil, and full is the index of the first such bound.
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
