// Package limit bounds how often something is done, and how often at once, by a key. It knows
// nothing of tasks.
package limit

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// maxBuckets bounds each of the two generations of a Rates, to some 10 MB.
const maxBuckets = 1 << 16

// Rates gives every key a bucket of tokens. It keeps the buckets in two generations. A bucket
// that was not used for as long as an empty one takes to fill is full, as a new one is, so it is
// dropped. Rates is safe for concurrent use.
type Rates[K comparable] struct {
	limit rate.Limit
	burst int
	fill  time.Duration // how long an empty bucket takes
	seed  maphash.Seed

	mu            sync.Mutex
	recent, older map[uint64]*rate.Limiter // by a hash: a key may be as long as a request
	sweeper       *time.Timer              // nil while there are no buckets
}

// NewRates allows each key perSecond uses a second, and saves up unused ones for as many seconds.
// math.MaxInt means no bound.
func NewRates[K comparable](perSecond, seconds int) *Rates[K] {
	r := &Rates[K]{limit: rate.Inf, seed: maphash.MakeSeed(), recent: map[uint64]*rate.Limiter{}}
	if perSecond < math.MaxInt/seconds {
		r.limit, r.burst, r.fill = rate.Limit(perSecond), perSecond*seconds, time.Duration(seconds)*time.Second
	}
	return r
}

// Allow reports whether a key may be used once more now.
func (r *Rates[K]) Allow(key K) bool {
	if r.limit == rate.Inf {
		return true
	}
	hash := maphash.Comparable(r.seed, key)
	r.mu.Lock()
	bucket := r.recent[hash]
	if bucket == nil {
		if bucket = r.older[hash]; bucket == nil {
			bucket = rate.NewLimiter(r.limit, r.burst)
		}
		if delete(r.older, hash); len(r.recent) >= maxBuckets {
			// This drops buckets that are not full, to the benefit of their keys. A flood of
			// keys gains little by it, and locks no one out.
			r.rotateGenerations()
		}
		r.recent[hash] = bucket
		if r.sweeper == nil {
			r.sweeper = time.AfterFunc(r.fill, r.sweep)
		}
	}
	r.mu.Unlock()
	return bucket.Allow()
}

// rotateGenerations drops the older generation. r.mu is held.
func (r *Rates[K]) rotateGenerations() { r.older, r.recent = r.recent, map[uint64]*rate.Limiter{} }

// sweep begins a new generation while there is an old one.
func (r *Rates[K]) sweep() {
	defer guard.Recover(nil, "the sweep of rates")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rotateGenerations(); len(r.older) > 0 {
		r.sweeper.Reset(r.fill)
	} else {
		r.sweeper = nil
	}
}
