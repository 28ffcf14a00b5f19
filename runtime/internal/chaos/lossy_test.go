package chaos

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// lossyStore is a store that acknowledges some writes and loses them.
type lossyStore struct {
	taskstore.Store
	every int

	mu     sync.Mutex
	writes int
	lost   int
	// next is the write that is lost next.
	next int
}

// newLossyStore returns a store that loses one of so many writes.
func newLossyStore(s taskstore.Store, every int) *lossyStore {
	return &lossyStore{Store: s, every: every, next: rand.IntN(every)} //nolint:gosec // any number will do
}

// loses counts a write, and reports whether it is lost.
func (s *lossyStore) loses() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.writes <= s.next {
		return false
	}
	s.next = s.writes - s.writes%s.every + s.every + rand.IntN(s.every) //nolint:gosec // any number will do
	s.lost++
	return true
}

// count returns how many writes there were, and how many of them are lost.
func (s *lossyStore) count() (writes, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes, s.lost
}

// Create implements taskstore.Store.
func (s *lossyStore) Create(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
	if s.loses() {
		r.Version = 1
		return r, nil
	}
	return s.Store.Create(ctx, r, quota)
}

// Update implements taskstore.Store.
func (s *lossyStore) Update(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	if s.loses() {
		to.Version = from.Version + 1
		return to, nil
	}
	return s.Store.Update(ctx, from, to, quota, steps...)
}
