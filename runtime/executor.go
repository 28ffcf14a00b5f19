package mcptask

import (
	"context"
	"sync"
)

// Executor decides when and where the handler of a task runs. The store stays
// the only record of a task: an executor knows nothing but its ID. All methods
// are safe for concurrent use.
type Executor interface {
	// Submit schedules the task; the executor calls its RunFunc for it once,
	// later and in another goroutine. It does not block.
	Submit(taskID string) error
	// Close stops the start of further handlers, ends the contexts of running
	// ones and returns when they have returned, or with ctx's error before.
	Close(ctx context.Context) error
}

// RunFunc runs the handler of a task to its end. The context's end is the
// order to stop.
type RunFunc func(ctx context.Context, taskID string)

// Slots is implemented by executors that bound how many handlers run at once.
// A handler that waits for a person gives its slot back meanwhile.
type Slots interface {
	// Release gives the caller's slot to the next waiting task.
	Release()
	// Acquire takes a slot again, waiting in line; ctx bounds the wait, and
	// where it ends first the caller has a slot all the same.
	Acquire(ctx context.Context)
}

// localExecutor runs handlers in goroutines of this process, at most a given
// number at once, first come first served. An idle one has no goroutine.
type localExecutor struct {
	run  RunFunc
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

func newLocalExecutor(run RunFunc, concurrency int) *localExecutor {
	base, stop := context.WithCancel(context.Background())
	return &localExecutor{run: run, base: base, stop: stop, free: concurrency}
}

// Submit implements Executor.
func (x *localExecutor) Submit(taskID string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return ErrServerClosed
	}
	x.queue = append(x.queue, waiter{taskID: taskID})
	x.dispatch()
	return nil
}

// dispatch hands free slots to the head of the queue. x.mu is held.
func (x *localExecutor) dispatch() {
	for x.free > 0 && len(x.queue) > 0 {
		next := x.queue[0]
		x.queue = x.queue[1:]
		x.free--
		if next.slot != nil {
			close(next.slot)
			continue
		}
		x.running.Go(func() {
			defer x.Release()
			x.run(x.base, next.taskID)
		})
	}
}

// Release implements Slots.
func (x *localExecutor) Release() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.free++
	x.dispatch()
}

// Acquire implements Slots.
func (x *localExecutor) Acquire(ctx context.Context) {
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

// Close implements Executor. Tasks that were not started stay in the store.
func (x *localExecutor) Close(ctx context.Context) error {
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
	go func() { x.running.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
