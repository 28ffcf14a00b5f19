// Package pool is the executor of one process: package mcptask's local one.
package pool

import (
	"context"
	"errors"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// ErrClosed says that the pool takes no more work.
var ErrClosed = errors.New("mcptask: the executor is closed")

// Pool runs handlers in goroutines of this process, at most a given
// number at once, first come first served. An idle one has no goroutine.
type Pool struct {
	run  func(ctx context.Context, taskID string)
	base context.Context
	stop context.CancelFunc

	mu      sync.Mutex
	free    int
	queue   []waiter
	closed  bool
	running sync.WaitGroup
}

// waiter is a task to start, or a handler that wants its slot back.
type waiter struct {
	taskID string
	slot   chan struct{}
}

// New makes a pool of so many slots; run gets each task that is submitted.
func New(run func(ctx context.Context, taskID string), concurrency int) *Pool {
	base, stop := context.WithCancel(context.Background())
	return &Pool{run: run, base: base, stop: stop, free: concurrency}
}

// Submit schedules a task; ErrClosed after Close.
func (x *Pool) Submit(taskID string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrClosed
	}
	x.queue = append(x.queue, waiter{taskID: taskID})
	x.dispatch()
	return nil
}

// dispatch hands free slots to the head of the queue. x.mu is held.
func (x *Pool) dispatch() {
	for x.free > 0 && len(x.queue) > 0 {
		next := x.queue[0]
		x.queue = x.queue[1:]
		x.free--
		if next.slot != nil {
			close(next.slot)
			continue
		}
		x.running.Go(func() {
			defer guard.Recover(nil, "the run of a task") // after the slot is free
			defer x.Release()
			x.run(x.base, next.taskID)
		})
	}
}

// Release gives the caller's slot to the next in line.
func (x *Pool) Release() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.free++
	x.dispatch()
}

// Acquire takes a slot again, waiting in line until ctx ends.
func (x *Pool) Acquire(ctx context.Context) {
	w := waiter{slot: make(chan struct{})}
	x.mu.Lock()
	x.queue = append(x.queue, w)
	x.dispatch()
	x.mu.Unlock()
	select {
	case <-w.slot:
	case <-ctx.Done():
		// A cancelled handler is about to return: it does not wait in line,
		// and the slot that it releases then is taken in advance.
		x.mu.Lock()
		defer x.mu.Unlock()
		for i, q := range x.queue {
			if q.slot == w.slot {
				x.queue = append(x.queue[:i:i], x.queue[i+1:]...)
				x.free--
				return
			}
		}
	}
}

// Load is how many slots are free and how many wait for one.
func (x *Pool) Load() (free, queued int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.free, len(x.queue)
}

// Close ends the contexts of what runs and waits for it, at most until ctx
// ends. Tasks that were not started stay in the store.
func (x *Pool) Close(ctx context.Context) error {
	x.mu.Lock()
	x.closed = true
	var waiting []waiter
	for _, w := range x.queue {
		if w.slot != nil {
			waiting = append(waiting, w)
		}
	}
	x.queue = waiting
	x.mu.Unlock()
	x.stop()
	done := make(chan struct{})
	go func() {
		defer guard.Recover(nil, "the wait for runs")
		x.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
