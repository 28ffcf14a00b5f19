package mcptask

import (
	"context"
	"fmt"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

const (
	// leaseFor is how long a worker that has died keeps its tasks.
	leaseFor = 30 * time.Second
	// renewEvery leaves two more tries before a lease ends.
	renewEvery = leaseFor / 3
	// renewAgain is the pause after a renewal that failed.
	renewAgain = renewEvery / 5
	// maxRenewals is how many renewals may hang in a store that ignores contexts.
	maxRenewals = 4
	// sweepEvery is how often expired tasks are deleted. A request for one is refused
	// from the moment it expires.
	sweepEvery = time.Second
	// sweepBatch bounds the records of one store call.
	sweepBatch = 256
)

// startUpkeep starts the work that goes on until the server has drained. Each kind
// has its own goroutine, so that a slow store call for one delays no other.
func (s *Server) startUpkeep() {
	s.startLoop("renewal of leases", renewEvery, s.keepLeases)
	s.startLoop("expiry", sweepEvery, s.deleteExpired)
	s.startLoop("adoption", 0, s.adoptOrphans)
	s.startLoop("deletion", sweepEvery, s.deleteUnwanted)
}

// startLoop calls do again and again in a goroutine. do returns how long to wait
// until the next call.
func (s *Server) startLoop(what string, first time.Duration, do func() time.Duration) {
	s.upkeep.Go(func() {
		defer guard.Recover(s.logger, what)
		timer := time.NewTimer(first)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
				timer.Reset(s.runGuarded(what, do))
			case <-s.drained.Done():
				return
			}
		}
	})
}

// runGuarded calls do once and survives its panic.
func (s *Server) runGuarded(what string, do func() time.Duration) (next time.Duration) {
	defer guard.Then(s.logger, what, func() { next = renewEvery })
	return do()
}

// keepLeases renews the leases of this worker's tasks.
func (s *Server) keepLeases() time.Duration {
	if err := s.renewLeases(); err != nil && s.drained.Err() == nil {
		s.logger.Error("leases not renewed", "error", err)
		return renewAgain
	}
	return renewEvery
}

// renewLeases calls the store's Renew. It does not wait for a call that hangs, so
// that the next one may succeed.
func (s *Server) renewLeases() error {
	if s.renewing.Add(1) > maxRenewals {
		s.renewing.Add(-1)
		return fmt.Errorf("the store does not return from %d calls", maxRenewals)
	}
	ctx, cancel := context.WithTimeout(s.drained, StoreTimeout)
	defer cancel()
	return s.callDetached(ctx, "renewal of leases", func(ctx context.Context) error {
		defer s.renewing.Add(-1)
		return s.store.Renew(ctx, s.worker, time.Now().Add(leaseFor))
	})
}

// deleteExpired deletes expired tasks and stops their handlers.
func (s *Server) deleteExpired() time.Duration {
	for {
		gone, err := callOnce(s.drained, s.newTaskRetry(), func(ctx context.Context) ([]Record, error) {
			return s.store.Expire(ctx, time.Now(), sweepBatch)
		})
		if err != nil {
			if s.drained.Err() == nil {
				s.logger.Error("expired tasks not deleted", "error", err)
			}
			return sweepEvery
		}
		for _, r := range gone {
			s.announceExpiry(r)
		}
		if len(gone) < sweepBatch {
			return sweepEvery
		}
	}
}

// announceExpiry stops the handler of a task that was deleted because it has
// expired, and tells observers and the audit trail.
func (s *Server) announceExpiry(r Record) {
	s.cancelHandler(r.ID, ErrExpired)
	s.progress.Delete(r.ID)
	s.withdrawSubmission(r.ID)
	if !r.Done() {
		s.notifyObservers(r)
		s.auditEnd(r, "expired")
	}
}

// cancelUnfinished ends the tasks that are left in a store that closes with the
// server.
func (s *Server) cancelUnfinished(ctx context.Context) {
	t := &storeRetry{server: s, end: ctx.Done(), timeout: StoreTimeout}
	now := time.Now().Add(2 * leaseFor) // when all leases are over
	for {
		left, err := s.store.Lease(ctx, "none", now, now, sweepBatch)
		if err != nil {
			s.logger.Error("unfinished tasks not ended", "error", err)
			return
		}
		for _, r := range left {
			// An error means that the task has ended by itself.
			_, _ = s.moveTask(ctx, t, r.ID, func(Record) event {
				return event{kind: eventFinish, outcome: Outcome{Kind: OutcomeCancelled}}
			})
		}
		if len(left) < sweepBatch {
			return
		}
	}
}
