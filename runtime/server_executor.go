package mcptask

import (
	"context"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pool"
)

// Executor decides when and where the handler of a task runs. The store stays
// the only record of a task: an executor knows only its Submission. All methods
// are safe for concurrent use.
type Executor interface {
	// Submit schedules the task. The executor calls its RunFunc for it once, later
	// and in another goroutine. Submit does not block.
	Submit(task Submission) error
	// Close starts no further handlers and ends the contexts of running ones. It
	// returns when they have returned, or with ctx's error before.
	Close(ctx context.Context) error
}

// RunFunc runs the handler of a task to its end. The end of the context is the
// order to stop.
type RunFunc func(ctx context.Context, taskID string)

// Submission is a task to run. It says whose task it is, for executors that share
// their slots fairly.
type Submission struct {
	TaskID string
	// Account is the account that the task counts against, see [Caller.Account].
	Account string
	// Principal is "" for all anonymous callers, whatever accounts they have.
	Principal string
}

// toSubmission returns what an executor knows of the task.
func (r *Record) toSubmission() Submission { return Submission{r.ID, r.Account, r.Principal} }

// Slots is implemented by executors that bound how many handlers run at once.
// A handler that waits for a person releases its slot meanwhile.
type Slots interface {
	// Release gives the slot of a task's handler to the next waiting task.
	Release(task Submission)
	// Acquire takes a slot again and waits in line for it. If ctx ends first, the
	// caller has a slot all the same.
	Acquire(ctx context.Context, task Submission)
}

// principalLocal is the principal of a client on a pipe. It is the only client of
// its process, so it may have all slots.
const principalLocal = "local"

// localExecutor runs handlers in this process.
type localExecutor struct{ *pool.Pool }

// Submit implements Executor.
func (x localExecutor) Submit(task Submission) error {
	return x.Pool.Submit(task.TaskID, listShares(task)...)
}

// Release implements Slots.
func (x localExecutor) Release(task Submission) { x.Pool.Release(listShares(task)...) }

// Acquire implements Slots.
func (x localExecutor) Acquire(ctx context.Context, task Submission) {
	x.Pool.Acquire(ctx, listShares(task)...)
}

// listShares returns the path to a task's group in the pool. The group is the task's
// account. The accounts of anonymous callers lie in one group, so that opening more
// sessions brings no more slots.
func listShares(task Submission) []pool.Share {
	account := pool.Share{Key: task.Account, All: task.Principal == principalLocal}
	if task.Principal == "" {
		return []pool.Share{{Key: string(ScopeAnonymous)}, account}
	}
	return []pool.Share{account}
}

// withdrawSubmission removes a task that is over from the local executor's line.
// Such a task no longer counts for any limit, so the line would grow without bound.
func (s *Server) withdrawSubmission(taskID string) {
	if x, ok := s.executor.(localExecutor); ok {
		if x.Withdraw(taskID) {
			s.unsure.Delete(taskID)
			s.progress.Delete(taskID)
		}
	}
}
