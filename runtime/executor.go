package mcptask

import "context"

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
