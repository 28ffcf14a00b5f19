package mcptask

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// adoptOrphans takes the tasks of dead workers. It queues a task that never ran,
// and restarts or fails one that ran, as its tool says. It does so again and again, and at once
// when a worker leaves tasks.
//
// It leases them under a name of its own, whose lease is never renewed. So a task that it
// does not take is free again soon, whether or not the store's answer was lost.
func (s *Server) adoptOrphans() time.Duration {
	for s.closing.Err() == nil {
		if s.ensureLease(s.closing) != nil {
			break // its own tasks, whose lease ended while the store was away, are no orphans
		}
		s.adoptions++
		finder := fmt.Sprint(s.worker, "/", s.adoptions)
		orphans, err := callOnce(s.closing, s.newTaskRetry(), "Lease", func(ctx context.Context) ([]Record, error) {
			return s.store.Lease(ctx, finder, s.claimFor(), s.catalog.listNames(), sweepBatch)
		})
		if err != nil {
			if s.closing.Err() == nil {
				s.logger.Error("orphaned tasks not taken", "error", err)
			}
			break
		}
		for _, r := range orphans {
			if s.isRunnable(r) && !r.CancelRequested {
				s.restartOrphan(r)
			} else {
				s.failOrphan(r)
			}
		}
		if len(orphans) < sweepBatch {
			break
		}
	}
	return s.renewEvery()
}

// claimFor is how long a server has to take the orphans that it found. After that
// they are free again.
func (s *Server) claimFor() time.Duration { return s.renewEvery() }

// restartOrphan takes an orphan and submits it. It uses a retry that gives up, since
// one record that the store does not take must not hold up the other orphans.
func (s *Server) restartOrphan(orphan Record) {
	log := s.logger.With("task", LogID(orphan.Principal, orphan.ID), "tool", orphan.Tool)
	claim := event{kind: eventClaim, claim: s.chooseClaim(orphan), lost: orphan.isRunLost()}
	r, err := s.moveTask(s.closing, s.newRequestRetry(), orphan, ifSameRun(orphan, claim))
	switch {
	case err == nil:
		err = s.submitClaimed(s.closing, r, orphan.Claim.Worker)
	case !isOver(err):
		s.settleClaim(orphan, claim.claim)
	}
	switch {
	case err == nil:
		log.Info("task resumed", "attempt", r.Attempt+1)
	case s.closing.Err() == nil:
		log.Warn("task not resumed", "error", err)
	}
}

// submitClaimed submits a task that this server has taken, or returns it to the name that it was found under.
func (s *Server) submitClaimed(ctx context.Context, claimed Record, finder string) error {
	err := s.submit(ctx, claimed)
	if err != nil {
		s.returnOrphan(claimed, finder)
	}
	return err
}

// settleClaim deals with an orphan whose claim the store has not answered. The store may have the claim all the same, and
// this server would renew it forever.
func (s *Server) settleClaim(orphan Record, claim Claim) {
	s.settle(orphan, func(ctx context.Context, t *storeRetry) bool {
		r, err := s.getRecord(ctx, t, orphan.ID)
		if err != nil {
			return isGone(err)
		}
		if isSame := r.CreatedAt.Equal(orphan.CreatedAt); isSame && r.Claim.Worker == claim.Worker && r.Claim.State == claim.State {
			_ = s.submitClaimed(ctx, r, orphan.Claim.Worker) // the executor knows a task that it has already
		}
		return true
	})
}

// failOrphan ends an orphan that must not run again.
func (s *Server) failOrphan(orphan Record) {
	_, err := s.moveTask(s.closing, s.newRequestRetry(), orphan, ifSameRun(orphan, newLostEnd(orphan)))
	switch {
	case err == nil:
		s.warnOfLoss(orphan)
	case s.closing.Err() == nil && !isOver(err): // it is found again
		s.logger.Warn("task of a lost worker not ended", "task", LogID(orphan.Principal, orphan.ID), "tool", orphan.Tool, "error", err)
	}
}

// newLostEnd returns the end of a task that has lost its run: it is cancelled if a requestor has asked for that, and has
// the error "worker_lost" otherwise.
func newLostEnd(r Record) event {
	outcome := Outcome{Kind: OutcomeCancelled}
	if !r.CancelRequested {
		lost := Errorf(CodeInternalError, "the worker of the task was lost").withReason(reasonWorkerLost)
		outcome = Outcome{Kind: OutcomeError, Error: lost}
	}
	return event{kind: eventFinish, outcome: outcome, lost: r.isRunLost()}
}

// warnOfLoss logs that newLostEnd has ended a task.
func (s *Server) warnOfLoss(r Record) {
	s.logger.Warn("task lost with its worker", "task", LogID(r.Principal, r.ID), "tool", r.Tool, "attempt", r.Attempt, "tries", r.Tries)
}

// returnOrphan gives a task that this server has taken and cannot submit back to the
// name that it was found under. There its lease ends soon; under this server's name
// it would be renewed forever.
func (s *Server) returnOrphan(claimed Record, finder string) {
	back := event{kind: eventLeave, claim: Claim{Worker: finder}}
	s.settle(claimed, func(ctx context.Context, t *storeRetry) bool {
		_, err := s.moveTask(ctx, t, claimed, ifSameRun(claimed, back))
		return err == nil || isOver(err) || errors.Is(err, ErrServerClosed)
	})
}

// isRunnable reports whether a task's handler may be started. It may start a second
// time only if its tool allows that, even if an executor delivers a task twice.
func (s *Server) isRunnable(r Record) bool {
	tool, ok := s.catalog.findTool(r.Tool)
	return ok && (r.Attempt == 0 || s.allowsRestart(r) && r.Tries < tool.spec.Policy.Attempts)
}

// allowsRestart reports whether the tool of a task is here and has onlost=restart.
func (s *Server) allowsRestart(r Record) bool {
	tool, ok := s.catalog.findTool(r.Tool)
	return ok && tool.spec.Policy.OnLost == RestartWhenLost
}
