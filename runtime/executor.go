package mcptask

import (
	"context"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pool"
)

// Executor decides when and where the handler of a task runs. The store stays
// the only record of a task: an executor knows what Submission says. All methods
// are safe for concurrent use.
type Executor interface {
	// Submit schedules the task; the executor calls its RunFunc for it once,
	// later and in another goroutine. It does not block.
	Submit(task Submission) error
	// Close stops the start of further handlers, ends the contexts of running
	// ones and returns when they have returned, or with ctx's error before.
	Close(ctx context.Context) error
}

// RunFunc runs the handler of a task to its end. The context's end is the
// order to stop.
type RunFunc func(ctx context.Context, taskID string)

// Submission is a task to run, and whose it is, for executors that share what they
// have fairly.
type Submission struct {
	TaskID string
	// Account is what the task counts against, see [Caller.Account].
	Account string
	// Principal is "" for all anonymous callers, whatever accounts they have.
	Principal string
}

func (r *Record) toSubmission() Submission { return Submission{r.ID, r.Account, r.Principal} }

// Slots is implemented by executors that bound how many handlers run at once.
// A handler that waits for a person gives its slot back meanwhile.
type Slots interface {
	// Release gives the slot of a task's handler to the next waiting task.
	Release(task Submission)
	// Acquire takes a slot again, waiting in line. ctx bounds the wait: if it ends
	// first, the caller has a slot all the same.
	Acquire(ctx context.Context, task Submission)
}

// principalLocal is that of a client on a pipe: it has the process, and nobody waits for it.
const principalLocal = "local"

// localExecutor runs handlers in this process.
type localExecutor struct{ *pool.Pool }

// shares lead to the group of a task: its account, which for an anonymous caller is one of those
// of all anonymous callers. Sessions cost nothing: their number gives no more slots.
func listShares(task Submission) []pool.Share {
	account := pool.Share{Key: task.Account, All: task.Principal == principalLocal}
	if task.Principal == "" {
		return []pool.Share{{Key: string(ScopeAnonymous)}, account}
	}
	return []pool.Share{account}
}

// Submit implements Executor.
func (x localExecutor) Submit(task Submission) error {
	return x.Pool.Submit(task.TaskID, listShares(task)...)
}

// leaveLine takes a task that is over out of the local executor's line. A task that ends before its
// turn counts for no limit any longer, so that there would be no bound for the line.
func (s *Server) withdrawSubmission(taskID string) {
	if x, ok := s.executor.(localExecutor); ok {
		x.Withdraw(taskID)
	}
}

// Release implements Slots.
func (x localExecutor) Release(task Submission) { x.Pool.Release(listShares(task)...) }

// Acquire implements Slots.
func (x localExecutor) Acquire(ctx context.Context, task Submission) {
	x.Pool.Acquire(ctx, listShares(task)...)
}
