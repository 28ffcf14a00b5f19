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
			if err := s.store.Renew(s.closing, s.worker, time.Now().Add(leaseFor)); err != nil && s.closing.Err() == nil {
				s.logger.Error("leases not renewed", "error", err)
			}
			s.adopt()
		case <-s.closing.Done():
			return
		}
	}
}

// expire deletes what is over and stops what still runs of it.
func (s *Server) expire() {
	for {
		gone, err := s.store.Expire(s.closing, time.Now(), sweepBatch)
		if err != nil {
			if s.closing.Err() == nil {
				s.logger.Error("expired tasks not deleted", "error", err)
			}
			return
		}
		for _, r := range gone {
			s.cancelRunning(r.ID, ErrExpired)
			s.logger.Info("task expired", "task", r.ID, "tool", r.Tool, "principal", r.Principal)
		}
		if len(gone) < sweepBatch {
			return
		}
	}
}

// adopt takes the tasks of dead workers: one that never ran is queued, one
// that ran is restarted or failed, as its tool says.
func (s *Server) adopt() {
	for {
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

// resume decides what becomes of one orphan.
func (s *Server) resume(r Record) {
	tool := s.tools[r.Tool]
	if r.Attempt == 0 || tool != nil && tool.spec.Policy.OnLost == RestartWhenLost {
		if err := s.executor.Submit(r.ID); err == nil {
			s.logger.Info("task resumed", "task", r.ID, "tool", r.Tool, "attempt", r.Attempt+1)
		}
		return
	}
	outcome := Outcome{Kind: OutcomeError, Error: Errorf(CodeInternalError, "the worker of the task was lost").withReason(reasonWorkerLost)}
	if r.CancelRequested {
		outcome = Outcome{Kind: OutcomeCancelled}
	}
	_, err := s.apply(context.Background(), r.ID, func(now Record) event {
		if now.Worker != s.worker {
			return event{}
		}
		return event{kind: eventFinish, outcome: outcome}
	})
	s.logger.Warn("task lost with its worker", "task", r.ID, "tool", r.Tool, "error", err)
}
