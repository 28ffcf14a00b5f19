package mcptask

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// How the server calls a Store of the user's. A call that fails otherwise than
// with the errors of this package is made again, after pauses that grow: for a task
// until it works, the task is gone or the server is closed.
const (
	// StoreTimeout is how long one call may take before its context ends and it
	// counts as failed.
	StoreTimeout = 5 * time.Second
	// StoreWait is how long one Wait may take before it is made again.
	StoreWait = 30 * time.Second
	// StorePatience is how long a request's calls are made again once they fail;
	// then the request fails.
	StorePatience = 10 * time.Second
	// StoreOutage is StorePatience for a request that waits for a task anyway, such as
	// tasks/result or a subscription.
	StoreOutage = 5 * time.Minute
)

// Pauses before a call is made again.
const (
	shortestPause = 50 * time.Millisecond
	longestPause  = 5 * time.Second
	// After a conflict somebody else has got on: there is less to wait for.
	shortestConflict = time.Millisecond
	longestConflict  = time.Second
)

// tries says whether and when a call of the store is made again. Each piece of
// work has its own. It is not safe for concurrent use.
type storeRetry struct {
	server  *Server
	end     <-chan struct{} // nothing is tried again from then on
	limit   time.Duration   // since the first failure; 0 means no limit
	timeout time.Duration   // of one call

	failing   time.Time // since when
	failures  int
	conflicts int
}

// requestTries are for a request: its caller waits, and can send it again.
func (s *Server) newRequestRetry() *storeRetry {
	return &storeRetry{server: s, end: s.drained.Done(), limit: StorePatience, timeout: StoreTimeout}
}

// waitTries are for a request that waits for a task.
func (s *Server) newWaitRetry() *storeRetry {
	return &storeRetry{server: s, end: s.closing.Done(), limit: StoreOutage, timeout: StoreTimeout}
}

// taskTries are for the run of a task. They have no limit: this process keeps the
// task's lease, so no other process would move it.
func (s *Server) newTaskRetry() *storeRetry {
	return &storeRetry{server: s, end: s.drained.Done(), timeout: StoreTimeout}
}

// again pauses after a call that failed. It reports whether to make the call again.
func (t *storeRetry) pauseAfterFailure(ctx context.Context, call string, err error) bool {
	if isStoreAnswer(err) || !t.hasTimeLeft(ctx) {
		return false
	}
	if s := t.server; s.auditRates.Allow([2]string{"store", call}) { // once a second for each
		s.logger.Warn("store call failed, and is made again", "call", call, "error", err)
	}
	t.failures++
	return t.pauseFor(ctx, min(shortestPause<<min(t.failures-1, 20), longestPause))
}

// conflict is again after ErrConflict; the first one is no reason to wait.
func (t *storeRetry) pauseAfterConflict(ctx context.Context) bool {
	if t.conflicts++; t.conflicts == 1 {
		return true
	}
	return t.hasTimeLeft(ctx) && t.pauseFor(ctx, min(shortestConflict<<min(t.conflicts-2, 20), longestConflict))
}

// more says whether the end of all tries has not come.
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

// pause waits for half to all of d, so that those that failed together do not
// come back together. It says whether nothing has ended meanwhile.
func (t *storeRetry) pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d/2 + rand.N(d/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-t.end:
	}
	return false
}

// isAnswer reports whether an error is a store's answer: the same call would get it
// again. Any other error is a fault, which passes.
func isStoreAnswer(err error) bool {
	for _, answer := range []error{ErrNoRecord, ErrExists, ErrConflict, ErrQuotaStored, ErrQuotaUnfinished, ErrQuotaBytes, ErrServerClosed} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return false
}

// callOnce makes one call of the store, within its time. The server's own store
// needs none.
func callOnce[T any](ctx context.Context, t *storeRetry, call func(context.Context) (T, error)) (T, error) {
	if t.server.ownStore {
		return call(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	return call(ctx)
}

// callStore makes a call until the store answers, or there are no more tries.
func callStore[T any](ctx context.Context, t *storeRetry, name string, call func(context.Context) (T, error)) (T, error) {
	for {
		v, err := callOnce(ctx, t, call)
		if err == nil || !t.pauseAfterFailure(ctx, name, err) {
			return v, err
		}
	}
}

// get reads a record.
func (s *Server) getRecord(ctx context.Context, t *storeRetry, id string) (Record, error) {
	record, err := callStore(ctx, t, "Get", func(ctx context.Context) (Record, error) { return s.store.Get(ctx, id) })
	if err == nil {
		s.stopIfEnded(record)
	}
	return record, err
}

// awaitVersion waits for a version of a record beyond the given one. If the store misses
// a change, the wait takes up to StoreWait longer. If its Wait fails, Get is tried.
func (s *Server) awaitVersion(ctx context.Context, t *storeRetry, id string, version int64) (Record, error) {
	wait := *t
	wait.timeout = StoreWait
	for {
		began := time.Now()
		record, err := callOnce(ctx, &wait, func(ctx context.Context) (Record, error) { return s.store.Wait(ctx, id, version) })
		if err != nil && !isStoreAnswer(err) {
			if time.Since(began) >= StoreWait && ctx.Err() == nil {
				wait.failing = time.Time{} // it had nothing to tell
				continue
			}
			if !wait.pauseAfterFailure(ctx, "Wait", err) {
				return record, err
			}
			record, err = callOnce(ctx, t, func(ctx context.Context) (Record, error) { return s.store.Get(ctx, id) })
			switch {
			case err == nil && record.Version <= version:
				wait.failing = time.Time{} // it is not away
				continue
			case err != nil && !isStoreAnswer(err):
				continue
			}
		}
		if err == nil {
			s.stopIfEnded(record)
		}
		return record, err
	}
}

// heed ends the handler of this process whose task has ended elsewhere, or was
// asked to stop there.
func (s *Server) stopIfEnded(r Record) {
	switch {
	case r.Done() && r.Outcome.Kind != OutcomeCancelled:
		s.cancelHandler(r.ID, errStolen)
	case r.Done(), r.CancelRequested:
		s.cancelHandler(r.ID, ErrCancelled)
	}
}

// leave makes a call, and returns when ctx ends even if the call goes on.
func (s *Server) callDetached(ctx context.Context, what string, call func(context.Context) error) error {
	done := make(chan error, 1)
	go func() {
		defer guard.Then(s.logger, what, func() { done <- errors.New(what + " panicked") })
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
