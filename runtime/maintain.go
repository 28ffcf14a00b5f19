package mcptask

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// MaxTries is how many runs of a task with onlost=restart may lose their worker: a
// task that kills whoever runs it fails after as many, with data.reason
// "worker_lost". A run that a closing server has handed over is not counted.
const MaxTries = 5

const (
	// leaseFor is how long a worker that has died keeps its tasks.
	leaseFor = 30 * time.Second
	// sweepEvery is how often expired tasks are deleted; a request for one is
	// refused from the moment it expires.
	sweepEvery = time.Second
	// renewEvery leaves two more tries before a lease ends.
	renewEvery = leaseFor / 3
	// renewAgain is the pause after a renewal that failed.
	renewAgain = renewEvery / 5
	// mostRenewals is how many renewals may hang in a store that ignores contexts.
	mostRenewals = 4
	// claimFor is how long a server has the orphans that it found to take them. Those
	// that it does not take are free again then.
	claimFor = renewEvery
	// rarestAdoption is how seldom a server looks for orphans that finds such
	// of tools that it does not have.
	rarestAdoption = 6 * renewEvery
	// sweepBatch bounds one store call.
	sweepBatch = 256
	// mostUnwanted is how many records wait for their deletion: what is beyond stays
	// until its ttl.
	mostUnwanted = 10_000
)

// maintain starts what goes on until the server has drained, each in a goroutine of
// its own: a store that takes its time for one of them delays no other.
func (s *Server) startUpkeep() {
	s.startLoop("renewal of leases", renewEvery, s.keepLeases)
	s.startLoop("expiry", sweepEvery, s.deleteExpired)
	s.startLoop("adoption", 0, s.adoptOrphans)
	s.startLoop("deletion", sweepEvery, s.deleteUnwanted)
}

// keep does something again and again. It returns how long to wait until the next
// time.
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

// guarded does something once, and survives it.
func (s *Server) runGuarded(what string, do func() time.Duration) (next time.Duration) {
	defer guard.Then(s.logger, what, func() { next = renewEvery })
	return do()
}

// renew keeps the leases of this worker's tasks.
func (s *Server) keepLeases() time.Duration {
	if err := s.renewLeases(); err != nil && s.drained.Err() == nil {
		s.logger.Error("leases not renewed", "error", err)
		return renewAgain
	}
	return renewEvery
}

// renewLeases leaves a call behind that hangs, so that the next one may do better.
func (s *Server) renewLeases() error {
	if s.renewing.Add(1) > mostRenewals {
		s.renewing.Add(-1)
		return fmt.Errorf("the store does not return from %d calls", mostRenewals)
	}
	ctx, cancel := context.WithTimeout(s.drained, StoreTimeout)
	defer cancel()
	return s.callDetached(ctx, "renewal of leases", func(ctx context.Context) error {
		defer s.renewing.Add(-1)
		return s.store.Renew(ctx, s.worker, time.Now().Add(leaseFor))
	})
}

// expire deletes what is over and stops what still runs of it.
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

// expired tells of a task that was deleted because its time was over.
func (s *Server) announceExpiry(r Record) {
	s.cancelHandler(r.ID, ErrExpired)
	s.progress.Delete(r.ID)
	s.withdrawSubmission(r.ID)
	if !r.Done() {
		s.notifyObservers(r)
		s.auditEnd(r, "expired")
	}
}

// adopt takes the tasks of dead workers: one that never ran is queued, one
// that ran is restarted or failed, as its tool says. It finds them in a name of
// its own, whose lease nobody renews: those that are not taken, because the store's
// answer was lost or the tool is not here, are free again soon.
func (s *Server) adoptOrphans() time.Duration {
	strange := false
	if s.renewLeases() != nil {
		return s.adoptEvery // its own tasks, whose leases ended while the store was away, are no orphans
	}
	for s.closing.Err() == nil {
		s.adoptions++
		finder := fmt.Sprint(s.worker, "/", s.adoptions)
		orphans, err := callOnce(s.closing, s.newTaskRetry(), func(ctx context.Context) ([]Record, error) {
			now := time.Now()
			return s.store.Lease(ctx, finder, now, now.Add(claimFor), sweepBatch)
		})
		if err != nil {
			if s.closing.Err() == nil {
				s.logger.Error("orphaned tasks not taken", "error", err)
			}
			break
		}
		for _, r := range orphans {
			strange = !s.resumeOrphan(r) || strange
		}
		if len(orphans) < sweepBatch {
			break
		}
	}
	if strange { // servers that have the tool come first
		s.adoptEvery = min(4*s.adoptEvery, rarestAdoption)
	} else { // or another one looks at them now
		s.adoptEvery = max(s.adoptEvery/2, renewEvery)
	}
	return s.adoptEvery
}

// abandonAll ends what is left in a store that goes with the server.
func (s *Server) cancelUnfinished(ctx context.Context) {
	t := &storeRetry{server: s, end: ctx.Done(), timeout: StoreTimeout}
	now := time.Now().Add(2 * leaseFor) // when all leases are over
	for n := sweepBatch; n == sweepBatch; {
		left, err := s.store.Lease(ctx, "none", now, now, sweepBatch)
		if n = len(left); err != nil {
			s.logger.Error("unfinished tasks not ended", "error", err)
			return
		}
		for _, r := range left {
			_, _ = s.moveTask(ctx, t, r.ID, func(Record) event { // which it may have by itself
				return event{kind: eventFinish, outcome: Outcome{Kind: OutcomeCancelled}}
			})
		}
	}
}

// letGo gives a task that this server has taken and cannot run back to the name that it was found
// in, so that it is free again soon: its own lease would be renewed for ever.
func (s *Server) returnOrphan(claimed Record, finder string) {
	_, err := s.moveTask(s.closing, s.newRequestRetry(), claimed.ID, func(r Record) event {
		if !r.isSameRun(claimed) {
			return event{}
		}
		return event{kind: eventClaim, worker: finder, lease: time.Now().Add(claimFor)}
	})
	if err != nil && s.closing.Err() == nil && !errors.Is(err, errVoid) {
		s.logger.Warn("task not left to other servers", "task", LogID(claimed.Principal, claimed.ID), "error", err)
	}
}

// restarts says whether the tool of a task is here and lets it run again.
func (s *Server) allowsRestart(r Record) bool {
	tool, ok := s.catalog.findTool(r.Tool)
	return ok && tool.spec.Policy.OnLost == RestartWhenLost
}

// mayRun says whether a task's handler may be started: a second time only
// where its tool allows it, whatever an executor delivers twice.
func (s *Server) isRunnable(r Record) bool {
	_, ok := s.catalog.findTool(r.Tool)
	return ok && (r.Attempt == 0 || s.allowsRestart(r) && r.Tries < MaxTries)
}

// resume decides what becomes of one orphan. A task whose tool is not here is left
// to a server that has it, until its ttl: known is false then.
func (s *Server) resumeOrphan(orphan Record) (known bool) {
	_, known = s.catalog.findTool(orphan.Tool)
	mine := func(r Record) bool { return r.isSameRun(orphan) }
	log := s.logger.With("task", LogID(orphan.Principal, orphan.ID), "tool", orphan.Tool)
	switch {
	case !known && !orphan.CancelRequested:
		log.Warn("task left to a server that has its tool")
		return false
	case s.isRunnable(orphan):
		// One record that the store does not take must not keep the others from being adopted.
		r, err := s.moveTask(s.closing, s.newRequestRetry(), orphan.ID, func(r Record) event {
			if !mine(r) {
				return event{}
			}
			return event{kind: eventClaim, worker: s.worker, lease: time.Now().Add(leaseFor)}
		})
		if claimed := orphan; errors.Is(err, errVoid) {
			if claimed.Worker = s.worker; r.isSameRun(claimed) {
				err = nil // by an Update whose answer was lost
			}
		}
		if err == nil {
			if err = s.executor.Submit(r.toSubmission()); err != nil {
				s.returnOrphan(r, orphan.Worker)
			}
		}
		if err == nil {
			log.Info("task resumed", "attempt", r.Attempt+1)
		} else if s.closing.Err() == nil {
			log.Warn("task not resumed", "error", err)
		}
		return true
	}
	outcome := Outcome{Kind: OutcomeError, Error: Errorf(CodeInternalError, "the worker of the task was lost").withReason(reasonWorkerLost)}
	if orphan.CancelRequested {
		outcome = Outcome{Kind: OutcomeCancelled}
	}
	_, err := s.moveTask(s.closing, s.newRequestRetry(), orphan.ID, func(r Record) event {
		if !mine(r) {
			return event{}
		}
		return event{kind: eventFinish, outcome: outcome}
	})
	log.Warn("task lost with its worker", "attempt", orphan.Attempt, "tries", orphan.Tries, "error", err)
	return true
}
