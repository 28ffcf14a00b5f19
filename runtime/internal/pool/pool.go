// Package pool runs the handlers of tasks in one process. It is the core of package taskserver's local
// executor.
package pool

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/index"
)

// ErrClosed says that the pool is closed and takes no work.
var ErrClosed = errors.New("mcptask: the executor is closed")

// Pool runs handlers in goroutines, at most a given number at once. An idle Pool has no
// goroutine. It shares its slots fairly, see [Share].
type Pool struct {
	run  func(ctx context.Context, taskID string)
	base context.Context
	stop context.CancelFunc

	mu      sync.Mutex
	slots   int
	root    group
	queued  int
	tasks   index.Map[string, *waiter] // the tasks in line, by ID
	closed  bool
	running sync.WaitGroup
}

// waiter is a task to start, or a handler that wants its slot back.
type waiter struct {
	taskID string
	shares []Share
	slot   chan struct{}

	group *group
	place *list.Element // in the group's line; nil after it has left the line
}

// New makes a pool with concurrency slots. It calls run for each task that is submitted.
func New(run func(ctx context.Context, taskID string), concurrency int) *Pool {
	base, stop := context.WithCancel(context.Background())
	return &Pool{run: run, base: base, stop: stop, slots: concurrency}
}

// Submit schedules a task in the group at the end of the path, which goes from the widest group
// to the narrowest. After Close it returns ErrClosed.
func (x *Pool) Submit(taskID string, shares ...Share) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	w := &waiter{taskID: taskID, shares: shares}
	x.tasks.Set(taskID, w)
	x.enqueue(x.root.find(shares), w)
	return nil
}

// Withdraw removes a task from the line, because it has ended before its turn and should not take
// memory until then. It returns false if the task is not in line: it runs, or has run.
func (x *Pool) Withdraw(taskID string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	w, ok := x.tasks.Get(taskID)
	if ok {
		x.dequeue(w)
		w.group.hold(0)
	}
	return ok
}

// enqueue puts a waiter into the line. x.mu is held.
func (x *Pool) enqueue(g *group, w *waiter) {
	w.group, w.place = g, g.waiting.PushBack(w)
	g.enlist()
	x.queued++
	x.dispatch()
}

// dequeue removes a waiter from the line. The caller calls its group's hold next. x.mu is held.
func (x *Pool) dequeue(w *waiter) {
	w.group.drop(w.place)
	w.place = nil
	x.queued--
	if same, _ := x.tasks.Get(w.taskID); same == w { // unless the task has been submitted again
		x.tasks.Delete(w.taskID)
	}
}

// dispatch gives free slots to the waiters whose turn it is. x.mu is held.
func (x *Pool) dispatch() {
	for {
		g := x.root.turn(x.slots - x.root.held)
		if g == nil {
			return
		}
		next := g.waiting.Front().Value.(*waiter)
		x.dequeue(next)
		if next.slot != nil {
			g.hold(1)
			close(next.slot)
			continue
		}
		if x.closed { // the task stays in the store
			g.hold(0)
			continue
		}
		g.hold(1)
		x.start(func(ctx context.Context) { x.run(ctx, next.taskID) }, next.shares)
	}
}

// start calls f in a goroutine that has a slot.
func (x *Pool) start(f func(context.Context), shares []Share) {
	x.running.Go(func() {
		defer guard.Recover(nil, "the run of a task") // after the slot is free
		growStack()
		defer x.Release(shares...)
		f(x.base)
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

// Reserve takes a slot if one is free for the group and no other waiter is before it in line. It
// reports whether it did. The caller then calls Start or Release.
func (x *Pool) Reserve(shares ...Share) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return false
	}
	w := &waiter{slot: make(chan struct{})}
	x.enqueue(x.root.find(shares), w)
	if w.place != nil {
		x.dequeue(w)
		w.group.hold(0)
		return false
	}
	return true
}

// Start calls f in the slot that Reserve has taken, and then frees it. After Close it returns
// ErrClosed, and the caller still has the slot.
func (x *Pool) Start(f func(context.Context), shares ...Share) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	x.start(f, shares)
	return nil
}

// Release gives the caller's slot to the next in line.
func (x *Pool) Release(shares ...Share) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.root.find(shares).hold(-1)
	x.dispatch()
}

// Acquire takes a slot again. It waits in line until ctx ends.
func (x *Pool) Acquire(ctx context.Context, shares ...Share) {
	w := &waiter{slot: make(chan struct{})}
	x.mu.Lock()
	x.enqueue(x.root.find(shares), w)
	x.mu.Unlock()
	select {
	case <-w.slot:
	case <-ctx.Done():
		// A cancelled handler is about to return, so it does not wait in line. It takes in
		// advance the slot that it will release.
		x.mu.Lock()
		defer x.mu.Unlock()
		if w.place != nil {
			x.dequeue(w)
			w.group.hold(1)
		}
	}
}

// Load returns how many slots are free and how many waiters are in line.
func (x *Pool) Load() (free, queued int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.slots - x.root.held, x.queued
}

// Close ends the contexts of running handlers and waits for them, at most until ctx ends. Tasks
// that have not started stay in the store.
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
