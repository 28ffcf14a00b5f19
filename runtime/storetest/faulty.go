package storetest

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// ErrFault is the error of a call that a [Faulty] store makes fail.
var ErrFault = errors.New("storetest: the store failed on purpose")

// Faults holds the probability of each fault, from 0 to 1.
type Faults struct {
	// Refuse makes a call fail without doing anything.
	Refuse float64
	// Lose performs a call but returns an error, as if the answer were lost.
	Lose float64
	// Conflict makes an Update fail with taskstore.ErrConflict without doing anything, as if another
	// update had been faster.
	Conflict float64
	// Miss replaces an item of a feed by one with Missed set.
	Miss float64
	// Cut ends a feed with an error instead of an item.
	Cut float64
	// Latency is the maximum delay before and after a call. The delays are random and uniformly
	// distributed.
	Latency time.Duration
}

// Faulty is a store that fails on purpose. It wraps another store, for tests of code that uses a
// store. Refuse, Lose and Latency apply to every method except Changes and Close. A Faulty is safe
// for concurrent use. It is not a taskstore.Inspector.
type Faulty struct {
	store taskstore.Store

	mu     sync.Mutex
	faults Faults
	random *rand.Rand
	failed int
}

// NewFaulty returns a store with the given faults. The seed decides which calls fail, as far as
// they come in the same order.
func NewFaulty(s taskstore.Store, faults Faults, seed uint64) *Faulty {
	return &Faulty{store: s, faults: faults, random: rand.New(rand.NewPCG(seed, 0))}
}

// Set changes the faults of later calls.
func (f *Faulty) Set(faults Faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
}

// Failed returns how many calls failed and how many feeds were cut on purpose.
func (f *Faulty) Failed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// fate decides which faults one call has.
type fate struct {
	refuse, lose, conflict bool
	before, after          time.Duration
}

func (f *Faulty) drawFate(update bool) fate {
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

// runCall performs a call according to its fate.
func runCall[T any](ctx context.Context, d fate, do func() (T, error)) (T, error) {
	var none T
	if err := delay(ctx, d.before); err != nil {
		return none, err
	}
	switch {
	case d.refuse:
		return none, ErrFault
	case d.conflict:
		return none, taskstore.ErrConflict
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

// runAction is runCall for calls that only return an error.
func runAction(ctx context.Context, d fate, do func() error) error {
	_, err := runCall(ctx, d, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// Create implements taskstore.Store.
func (f *Faulty) Create(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
	return runCall(ctx, f.drawFate(false), func() (taskstore.Record, error) { return f.store.Create(ctx, r, quota) })
}

// Get implements taskstore.Store.
func (f *Faulty) Get(ctx context.Context, id string) (taskstore.Record, error) {
	return runCall(ctx, f.drawFate(false), func() (taskstore.Record, error) { return f.store.Get(ctx, id) })
}

// Update implements taskstore.Store.
func (f *Faulty) Update(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	return runCall(ctx, f.drawFate(true), func() (taskstore.Record, error) { return f.store.Update(ctx, from, to, quota, steps...) })
}

// List implements taskstore.Store.
func (f *Faulty) List(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
	return runCall(ctx, f.drawFate(false), func() ([]taskstore.Record, error) { return f.store.List(ctx, principal, after, limit) })
}

// Delete implements taskstore.Store.
func (f *Faulty) Delete(ctx context.Context, r taskstore.Record) error {
	return runAction(ctx, f.drawFate(false), func() error { return f.store.Delete(ctx, r) })
}

// Expire implements taskstore.Store.
func (f *Faulty) Expire(ctx context.Context, limit int) ([]taskstore.Record, error) {
	return runCall(ctx, f.drawFate(false), func() ([]taskstore.Record, error) { return f.store.Expire(ctx, limit) })
}

// Changes implements taskstore.Store. Of its faults, only Miss and Cut apply.
func (f *Faulty) Changes(ctx context.Context) iter.Seq2[taskstore.Change, error] {
	return func(yield func(taskstore.Change, error) bool) {
		for c, err := range f.store.Changes(ctx) {
			missed, cut := f.drawFeedFate()
			switch {
			case cut:
				yield(taskstore.Change{}, ErrFault)
				return
			case missed && err == nil:
				c = taskstore.Change{Missed: true}
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// drawFeedFate decides which faults one item of a feed has.
func (f *Faulty) drawFeedFate() (missed, cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	missed, cut = f.random.Float64() < f.faults.Miss, f.random.Float64() < f.faults.Cut
	if cut {
		f.failed++
	}
	return missed, cut
}

// Steps implements taskstore.Store.
func (f *Faulty) Steps(ctx context.Context, id string) ([]taskstore.Step, error) {
	return runCall(ctx, f.drawFate(false), func() ([]taskstore.Step, error) { return f.store.Steps(ctx, id) })
}

// Waiting implements taskstore.Store.
func (f *Faulty) Waiting(ctx context.Context, tools []string, after string, limit int) ([]taskstore.Waiting, error) {
	return runCall(ctx, f.drawFate(false), func() ([]taskstore.Waiting, error) { return f.store.Waiting(ctx, tools, after, limit) })
}

// Lease implements taskstore.Store.
func (f *Faulty) Lease(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) ([]taskstore.Record, error) {
	return runCall(ctx, f.drawFate(false), func() ([]taskstore.Record, error) { return f.store.Lease(ctx, worker, lease, tools, limit) })
}

// Beat implements taskstore.Store.
func (f *Faulty) Beat(ctx context.Context, worker string, lease time.Duration, held []string) (taskstore.Heartbeat, error) {
	return runCall(ctx, f.drawFate(false), func() (taskstore.Heartbeat, error) { return f.store.Beat(ctx, worker, lease, held) })
}

// Release implements taskstore.Store.
func (f *Faulty) Release(ctx context.Context, worker string) error {
	return runAction(ctx, f.drawFate(false), func() error { return f.store.Release(ctx, worker) })
}

// Close implements taskstore.Store.
func (f *Faulty) Close() error { return f.store.Close() }
