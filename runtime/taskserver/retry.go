package taskserver

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// How the server calls the user's Store. It makes a call again if it fails with an
// error that is not one of this package's, after pauses that grow. For a task it
// does so until the call succeeds, the task is gone or the server is closed.
const (
	// StoreTimeout is how long one call may take before its context ends and it
	// counts as failed.
	StoreTimeout = 5 * time.Second
	// StoreWait is how long a request waits for the store's feed before it looks for itself.
	StoreWait = 30 * time.Second
	// StorePatience is how long the failing calls of a request are made again. Then
	// the request fails.
	StorePatience = 10 * time.Second
	// StoreOutage is StorePatience for a request that waits for a task anyway, such as
	// tasks/result or a subscription.
	StoreOutage = 5 * time.Minute
)

// The pauses before a call is made again.
const (
	shortestPause = 50 * time.Millisecond
	longestPause  = 5 * time.Second
	// After a conflict, another writer has succeeded: there is less to wait for.
	shortestConflict = time.Millisecond
	longestConflict  = time.Second
)

// storeRetry decides whether and when a call of the store, or of the engine, is made again. Each piece of
// work has its own. It is not safe for concurrent use.
type storeRetry struct {
	backend *Backend
	end     <-chan struct{} // ends all tries
	limit   time.Duration   // since the first failure; 0 means no limit
	timeout time.Duration   // of one call
	// isForEngine says that the calls go to the engine. They are made again as those of the store are.
	isForEngine bool

	failing   time.Time // the time of the first failure
	failures  int
	conflicts int
}

// newRequestRetry is for a request: its caller waits, and can send it again.
func (b *Backend) newRequestRetry() *storeRetry {
	return &storeRetry{backend: b, end: b.drained.Done(), limit: StorePatience, timeout: StoreTimeout}
}

// newEngineRetry is for news for the engine.
func (b *Backend) newEngineRetry() *storeRetry {
	t := b.newRequestRetry()
	t.isForEngine = true
	return t
}

// nameCallee returns whom the calls go to, for the log.
func (t *storeRetry) nameCallee() string {
	if t.isForEngine {
		return "engine"
	}
	return "store"
}

// newWaitRetry is for a request that waits for a task.
func (b *Backend) newWaitRetry() *storeRetry {
	return &storeRetry{backend: b, end: b.closing.Done(), limit: StoreOutage, timeout: StoreTimeout}
}

// newTaskRetry is for the run of a task. It has no limit: this process keeps the
// task's lease, so no other process would move the task.
func (b *Backend) newTaskRetry() *storeRetry {
	return &storeRetry{backend: b, end: b.drained.Done(), timeout: StoreTimeout}
}

// pauseAfterFailure waits after a call that failed. It reports whether to make the
// call again.
func (t *storeRetry) pauseAfterFailure(ctx context.Context, call string, err error) bool {
	if isStoreAnswer(err) || !t.hasTimeLeft(ctx) {
		return false
	}
	t.backend.warnOfFailure(t.nameCallee(), call, err)
	t.failures++
	return t.pauseFor(ctx, pauseAfter(t.failures))
}

// warnOfFailure logs that a call has failed and is made again, at most once a second for each kind of call.
func (b *Backend) warnOfFailure(callee, call string, err error) {
	if b.auditRates.Allow([2]string{callee, call}) {
		b.logger.Warn(callee+" call failed, and is made again", "call", call, "error", err)
	}
}

// pauseAfter returns the pause after a number of failures of a call in a row.
func pauseAfter(failures int) time.Duration {
	return min(shortestPause<<min(failures-1, 20), longestPause)
}

// spread returns half to all of a pause, so that calls that failed together do not come back together.
func spread(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// pauseAfterConflict waits after ErrConflict, except after the first one. It reports
// whether to make the call again.
func (t *storeRetry) pauseAfterConflict(ctx context.Context) bool {
	t.conflicts++
	if t.conflicts == 1 {
		return true
	}
	return t.hasTimeLeft(ctx) && t.pauseFor(ctx, min(shortestConflict<<min(t.conflicts-2, 20), longestConflict))
}

// hasTimeLeft reports whether the limit has not passed and nothing has ended.
func (t *storeRetry) hasTimeLeft(ctx context.Context) bool {
	if t.failing.IsZero() {
		t.failing = time.Now()
	}
	select {
	case <-t.end:
		return false
	default:
		return ctx.Err() == nil && (t.limit == 0 || time.Since(t.failing) < t.limit)
	}
}

// pauseFor waits for half to all of d. It reports whether nothing has ended meanwhile.
func (t *storeRetry) pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(spread(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-t.end:
	}
	return false
}

// isStoreAnswer reports whether an error is a store's answer: the same call would
// get it again. Any other error is a fault, which may pass.
func isStoreAnswer(err error) bool {
	answers := []error{taskstore.ErrNoRecord, taskstore.ErrUnreadable, taskstore.ErrExists, taskstore.ErrConflict, taskstore.ErrQuotaStored, taskstore.ErrQuotaUnfinished, taskstore.ErrQuotaBytes, mcptask.ErrServerClosed}
	return slices.ContainsFunc(answers, func(answer error) bool { return errors.Is(err, answer) })
}

// isGone reports whether an error says that a record does not exist.
func isGone(err error) bool { return errors.Is(err, taskstore.ErrNoRecord) }

// callOnce makes one call, bounded by the timeout. A panic of the store, or of the engine, is an
// error of it. The server's own store needs neither.
func callOnce[T any](ctx context.Context, t *storeRetry, name string, call func(context.Context) (T, error)) (v T, err error) {
	if t.backend.ownStore && !t.isForEngine {
		return hookStore(ctx, t.backend, name, call)
	}
	defer guard.Then(t.backend.logger, t.nameCallee(), func() { err = errors.New("the " + t.nameCallee() + " panicked") })
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	if t.isForEngine {
		return call(ctx)
	}
	return hookStore(ctx, t.backend, name, call)
}

// callStore makes a call, of the store or of the engine, until it is answered or the tries are over.
func callStore[T any](ctx context.Context, t *storeRetry, name string, call func(context.Context) (T, error)) (T, error) {
	for {
		v, err := callOnce(ctx, t, name, call)
		if err == nil || !t.pauseAfterFailure(ctx, name, err) {
			return v, err
		}
	}
}

// deleteStored makes the store's Delete of exactly this version of a record.
func (b *Backend) deleteStored(ctx context.Context, t *storeRetry, r taskstore.Record) error {
	_, err := callStore(ctx, t, "Delete", func(ctx context.Context) (struct{}, error) { return struct{}{}, b.store.Delete(ctx, r) })
	return err
}

// getRecord reads a record. It stops the handler of this process if the record says so.
func (b *Backend) getRecord(ctx context.Context, t *storeRetry, id string) (taskstore.Record, error) {
	record, err := callStore(ctx, t, "Get", func(ctx context.Context) (taskstore.Record, error) { return b.store.Get(ctx, id) })
	if err == nil {
		b.stopIfEnded(record)
	}
	return record, err
}

// stopIfEnded stops the handler of this process if its task has ended elsewhere, was
// asked to stop there, or was taken by another run.
func (b *Backend) stopIfEnded(r taskstore.Record) {
	switch {
	case r.Done() && r.Outcome.Kind != taskstore.OutcomeCancelled:
		b.stopRun(r, errEndedElsewhere, isRunOf)
	case r.Done(), r.CancelRequested:
		b.stopRun(r, mcptask.ErrCancelled, isRunOf)
	default:
		b.stopRun(r, mcptask.ErrSuperseded, isStolenBy)
	}
}

// callDetached makes a call in a goroutine. It returns when ctx ends, even if the
// call goes on.
func (b *Backend) callDetached(ctx context.Context, what string, call func(context.Context) error) error {
	done := make(chan error, 1)
	go func() {
		defer guard.Then(b.logger, what, func() { done <- errors.New(what + " panicked") })
		done <- call(ctx)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		select {
		case err := <-done:
			return err
		default:
			return ctx.Err()
		}
	}
}
