package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// ErrFault is the error of a call that a [Faulty] store lets fail.
var ErrFault = errors.New("storetest: the store failed, as it was told to")

// Faults says how often what goes wrong: each is a probability from 0 to 1.
type Faults struct {
	// Refuse is for a call that fails and does nothing.
	Refuse float64
	// Lose is for a call that is carried out, and fails all the same: the
	// answer is lost on the way.
	Lose float64
	// Conflict is for an Update that fails with mcptask.ErrConflict, as if
	// another had been faster, and does nothing.
	Conflict float64
	// Latency is the longest time, in equal shares at random, that a call takes
	// before it is carried out, and again before it answers.
	Latency time.Duration
}

// Faulty is a store that fails on purpose, around one that does not. All but
// Close is subject to its faults. It is for tests of what stands on a store, and
// safe for concurrent use.
type Faulty struct {
	store mcptask.Store

	mu     sync.Mutex
	faults Faults
	random *rand.Rand
	failed int
}

// NewFaulty makes a store that fails as told; the seed decides which calls do,
// as far as their order is the same.
func NewFaulty(s mcptask.Store, faults Faults, seed uint64) *Faulty {
	return &Faulty{store: s, faults: faults, random: rand.New(rand.NewPCG(seed, 0))}
}

// Set changes the faults from the next call on.
func (f *Faulty) Set(faults Faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
}

// Failed is how many calls have been made to fail.
func (f *Faulty) Failed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// fate is what becomes of one call.
type fate struct {
	refuse, lose, conflict bool
	before, after          time.Duration
}

func (f *Faulty) draw(update bool) fate {
	f.mu.Lock()
	defer f.mu.Unlock()
	hits := func(p float64) bool { return f.random.Float64() < p }
	latency := func() time.Duration { return time.Duration(f.random.Float64() * float64(f.faults.Latency)) }
	d := fate{hits(f.faults.Refuse), hits(f.faults.Lose), hits(f.faults.Conflict) && update, latency(), latency()}
	if d.refuse || d.lose || d.conflict {
		f.failed++
	}
	return d
}

// call carries a call out, or not, by its fate.
func call[T any](ctx context.Context, d fate, do func() (T, error)) (T, error) {
	var none T
	if err := delay(ctx, d.before); err != nil {
		return none, err
	}
	switch {
	case d.refuse:
		return none, ErrFault
	case d.conflict:
		return none, mcptask.ErrConflict
	}
	v, err := do()
	if d.lose && err == nil {
		v, err = none, ErrFault
	}
	if late := delay(ctx, d.after); late != nil {
		return none, late
	}
	return v, err
}

func delay(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// act is for calls that only have an error.
func act(ctx context.Context, d fate, do func() error) error {
	_, err := call(ctx, d, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Create implements mcptask.Store.
func (f *Faulty) Create(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
	return call(ctx, f.draw(false), func() (mcptask.Record, error) { return f.store.Create(ctx, r, quota) })
}

// Get implements mcptask.Store.
func (f *Faulty) Get(ctx context.Context, id string) (mcptask.Record, error) {
	return call(ctx, f.draw(false), func() (mcptask.Record, error) { return f.store.Get(ctx, id) })
}

// Update implements mcptask.Store.
func (f *Faulty) Update(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
	return call(ctx, f.draw(true), func() (mcptask.Record, error) { return f.store.Update(ctx, r, quota) })
}

// List implements mcptask.Store.
func (f *Faulty) List(ctx context.Context, principal string, after mcptask.Position, limit int) ([]mcptask.Record, error) {
	return call(ctx, f.draw(false), func() ([]mcptask.Record, error) { return f.store.List(ctx, principal, after, limit) })
}

// Delete implements mcptask.Store.
func (f *Faulty) Delete(ctx context.Context, r mcptask.Record) error {
	return act(ctx, f.draw(false), func() error { return f.store.Delete(ctx, r) })
}

// Expire implements mcptask.Store.
func (f *Faulty) Expire(ctx context.Context, now time.Time, limit int) ([]mcptask.Record, error) {
	return call(ctx, f.draw(false), func() ([]mcptask.Record, error) { return f.store.Expire(ctx, now, limit) })
}

// Wait implements mcptask.Store.
func (f *Faulty) Wait(ctx context.Context, id string, version int64) (mcptask.Record, error) {
	return call(ctx, f.draw(false), func() (mcptask.Record, error) { return f.store.Wait(ctx, id, version) })
}

// Lease implements mcptask.Store.
func (f *Faulty) Lease(ctx context.Context, worker string, now, until time.Time, limit int) ([]mcptask.Record, error) {
	return call(ctx, f.draw(false), func() ([]mcptask.Record, error) { return f.store.Lease(ctx, worker, now, until, limit) })
}

// Renew implements mcptask.Store.
func (f *Faulty) Renew(ctx context.Context, worker string, until time.Time) error {
	return act(ctx, f.draw(false), func() error { return f.store.Renew(ctx, worker, until) })
}

// Release implements mcptask.Store.
func (f *Faulty) Release(ctx context.Context, worker string) error {
	return act(ctx, f.draw(false), func() error { return f.store.Release(ctx, worker) })
}

// Close implements mcptask.Store.
func (f *Faulty) Close() error { return f.store.Close() }
