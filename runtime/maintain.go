package mcptask

import (
	"context"
	"time"
)

const (
	// leaseFor is how long a worker that has died keeps its tasks.
	leaseFor = 30 * time.Second
	// sweepEvery is how often expired tasks are deleted; a request for one is
	// refused from the moment it expires.
	sweepEvery = time.Second
	// renewEvery leaves two more tries before a lease ends.
	renewEvery = leaseFor / 3
	// sweepBatch bounds one store call.
	sweepBatch = 256
)

// maintain is the server's only standing goroutine: it deletes what has
// expired, keeps the leases and takes over what dead workers left.
func (s *Server) maintain() {
	s.adopt()
	sweep, renew := time.NewTicker(sweepEvery), time.NewTicker(renewEvery)
	defer sweep.Stop()
	defer renew.Stop()
	for {
		select {
		case <-sweep.C:
			s.expire()
		case <-renew.C:
			if err := s.store.Renew(s.drained, s.worker, time.Now().Add(leaseFor)); err != nil && s.drained.Err() == nil {
				s.logger.Error("leases not renewed", "error", err)
			}
			s.adopt()
		case <-s.drained.Done():
			return
		}
	}
}

// expire deletes what is over and stops what still runs of it.
func (s *Server) expire() {
	for {
		gone, err := s.store.Expire(s.drained, time.Now(), sweepBatch)
		if err != nil {
			if s.drained.Err() == nil {
				s.logger.Error("expired tasks not deleted", "error", err)
			}
			return
		}
		for _, r := range gone {
			s.cancelRunning(r.ID, ErrExpired)
			s.progress.Delete(r.ID)
			if !r.Done() {
				s.observe(r)
				s.auditEnd(r, "expired")
			}
		}
		if len(gone) < sweepBatch {
			return
		}
	}
}

// adopt takes the tasks of dead workers: one that never ran is queued, one
// that ran is restarted or failed, as its tool says.
func (s *Server) adopt() {
	for s.closing.Err() == nil {
		orphans, err := s.store.Lease(s.closing, s.worker, time.Now(), time.Now().Add(leaseFor), sweepBatch)
		if err != nil {
			if s.closing.Err() == nil {
				s.logger.Error("orphaned tasks not taken", "error", err)
			}
			return
		}
		for _, r := range orphans {
			s.resume(r)
		}
		if len(orphans) < sweepBatch {
			return
		}
	}
}

// abandonAll ends what is left in a store that goes with the server.
func (s *Server) abandonAll() {
	ctx, now := context.Background(), time.Now().Add(2*leaseFor) // when all leases are over
	for n := sweepBatch; n == sweepBatch; {
		left, err := s.store.Lease(ctx, "none", now, now, sweepBatch)
		if n = len(left); err != nil {
			s.logger.Error("unfinished tasks not ended", "error", err)
			return
		}
		for _, r := range left {
			_, _ = s.apply(ctx, r.ID, func(Record) event { // which it may have by itself
				return event{kind: eventFinish, outcome: Outcome{Kind: OutcomeCancelled}}
			})
		}
	}
}

// mayRun says whether a task's handler may be started: a second time only
// where its tool allows it, whatever an executor delivers twice.
func (s *Server) mayRun(r Record) bool {
	tool, ok := s.catalog.get(r.Tool)
	return r.Attempt == 0 || ok && tool.spec.Policy.OnLost == RestartWhenLost
}

// resume decides what becomes of one orphan.
func (s *Server) resume(r Record) {
	if s.mayRun(r) {
		if err := s.executor.Submit(r.submission()); err == nil {
			s.logger.Info("task resumed", "task", LogID(r.Principal, r.ID), "tool", r.Tool, "attempt", r.Attempt+1)
		}
		return
	}
	outcome := Outcome{Kind: OutcomeError, Error: Errorf(CodeInternalError, "the worker of the task was lost").withReason(reasonWorkerLost)}
	if r.CancelRequested {
		outcome = Outcome{Kind: OutcomeCancelled}
	}
	s.upkeep.Go(func() { // the store may be away: nobody else waits for this one
		_, err := s.insist(s.closing, r.ID, func(now Record) event {
			if now.Worker != s.worker || now.Attempt != r.Attempt {
				return event{}
			}
			return event{kind: eventFinish, outcome: outcome}
		})
		s.logger.Warn("task lost with its worker", "task", LogID(r.Principal, r.ID), "tool", r.Tool, "error", err)
	})
}
