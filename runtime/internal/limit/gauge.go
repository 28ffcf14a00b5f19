package limit

import "sync"

// Gauge counts what is open, by key. The zero value is ready to use. It is safe
// for concurrent use, and keeps nothing of a key that has nothing open.
type Gauge[K comparable] struct {
	mu   sync.Mutex
	open map[K]int
}

// Take opens n more for a key, until done is called, once; ok is false where it
// would have more than most then.
func (g *Gauge[K]) Take(key K, n, most int) (done func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open[key]+n > most {
		return nil, false
	}
	if g.open == nil {
		g.open = map[K]int{}
	}
	g.open[key] += n
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.open[key] -= n; g.open[key] == 0 {
			delete(g.open, key)
		}
	}, true
}
