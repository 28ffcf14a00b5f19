// Package pool has the slots of the handlers that run in one process. It is the core of package taskserver's local
// executor.
package pool

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// ErrClosed says that the pool is closed and takes no work.
var ErrClosed = errors.New("mcptask: the executor is closed")

// Pool runs handlers in goroutines, at most a given number at once. An idle Pool has no goroutine. Work that finds no
// slot does not wait in the Pool, unless it has had one before: such handlers come first, in the order in which they
// came back.
type Pool struct {
	base  context.Context
	stop  context.CancelFunc
	freed func()

	mu        sync.Mutex
	slots     int
	root      group
	tools     map[string]int // the slots of each tool
	returning list.List      // of *waiter
	closed    bool
	running   sync.WaitGroup
}

// Place is what a handler's slot counts for.
type Place struct {
	Tool string
	// Most bounds the slots of the tool. 0 means no bound.
	Most int
	// Shares is the path from the widest group to the narrowest.
	Shares []Share
}

// waiter is a handler that wants its slot back.
type waiter struct {
	place Place
	slot  chan struct{}
	entry *list.Element // nil once it has the slot
}

// New makes a pool with a number of slots. It calls freed whenever a slot is free that nobody in the pool waits for.
func New(slots int, freed func()) *Pool {
	base, stop := context.WithCancel(context.Background())
	return &Pool{base: base, stop: stop, freed: freed, slots: slots, tools: map[string]int{}}
}

// hold adds n to the slots of a place. x.mu is held.
func (x *Pool) hold(p Place, n int) {
	x.root.find(p.Shares).hold(n)
	if x.tools[p.Tool] += n; x.tools[p.Tool] == 0 {
		delete(x.tools, p.Tool)
	}
}

// hasRoom reports whether the pool and the tool have a free slot. x.mu is held.
func (x *Pool) hasRoom(p Place) bool {
	return x.root.held < x.slots && (p.Most <= 0 || x.tools[p.Tool] < p.Most)
}

// Reserve takes a slot if one is free, and the tool and the groups may have one more. It reports whether it did. The
// caller then calls Start or Release.
func (x *Pool) Reserve(p Place) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || !x.hasRoom(p) || !x.root.admits(p.Shares, x.slots-x.root.held) {
		return false
	}
	x.hold(p, 1)
	return true
}

// Start calls f in the slot that Reserve has taken, and then frees it. After Close it returns
// ErrClosed, and the caller still has the slot.
func (x *Pool) Start(p Place, f func(context.Context)) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	x.start(func() {
		growStack()
		defer x.Release(p)
		f(x.base)
	})
	return nil
}

// Run calls f once there is a slot, whatever the shares are, and then frees it. After Close it returns ErrClosed.
func (x *Pool) Run(p Place, f func(context.Context)) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	x.start(func() {
		x.Acquire(x.base, p)
		defer x.Release(p)
		f(x.base)
	})
	return nil
}

// start calls f in a goroutine that Close waits for.
func (x *Pool) start(f func()) {
	x.running.Go(func() {
		defer guard.Recover(nil, "the run of a task") // after the slot is free
		f()
	})
}

// growStack grows the stack of a new goroutine to the size that the run of a task needs, while there is nothing to
// copy. Otherwise the runtime would grow it step by step, and copy it each time.
//
//go:noinline
func growStack() {
	var frame [8 << 10]byte
	fill(&frame)
}

//go:noinline
func fill(frame *[8 << 10]byte) { frame[0] = 1 }

// Release gives the caller's slot back.
func (x *Pool) Release(p Place) {
	x.mu.Lock()
	x.hold(p, -1)
	x.dispatch()
	isFree := x.root.held < x.slots && !x.closed
	x.mu.Unlock()
	if isFree {
		x.freed()
	}
}

// Acquire takes a slot again, whatever the shares are. It waits until ctx ends.
func (x *Pool) Acquire(ctx context.Context, p Place) {
	w := &waiter{place: p, slot: make(chan struct{})}
	x.mu.Lock()
	w.entry = x.returning.PushBack(w)
	x.dispatch()
	x.mu.Unlock()
	select {
	case <-w.slot:
	case <-ctx.Done():
		// A cancelled handler is about to return, so it does not wait. It takes in advance the slot that it will release.
		x.mu.Lock()
		defer x.mu.Unlock()
		x.grant(w)
	}
}

// dispatch gives free slots to the handlers that want theirs back. x.mu is held.
func (x *Pool) dispatch() {
	for e := x.returning.Front(); e != nil; {
		w := e.Value.(*waiter)
		e = e.Next()
		if x.hasRoom(w.place) {
			x.grant(w)
		}
	}
}

// grant gives a handler its slot, unless it has one. x.mu is held.
func (x *Pool) grant(w *waiter) {
	if w.entry == nil {
		return
	}
	x.returning.Remove(w.entry)
	w.entry = nil
	x.hold(w.place, 1)
	close(w.slot)
}

// Free returns how many slots are free.
func (x *Pool) Free() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return max(0, x.slots-x.root.held)
}

// IsFull reports whether a tool has as many slots as it may have.
func (x *Pool) IsFull(tool string, most int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return most > 0 && x.tools[tool] >= most
}

// Close ends the contexts of running handlers and waits for them, at most until ctx ends.
func (x *Pool) Close(ctx context.Context) error {
	x.mu.Lock()
	x.closed = true
	x.mu.Unlock()
	x.stop()
	done := make(chan struct{})
	guard.Go(nil, "the wait for runs", func() {
		x.running.Wait()
		close(done)
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
