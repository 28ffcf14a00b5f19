package taskserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/cause"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// adoptOrphans takes the tasks of dead workers. It queues a task that never ran,
// and restarts or fails one that ran, as its tool says. It does so again and again, and at once
// when a worker leaves tasks.
//
// It leases them under a name of its own, whose lease is never renewed. So a task that it
// does not take is free again soon, whether or not the store's answer was lost. The name begins with that of this server,
// so that the store can end that lease if the process dies.
func (b *Backend) adoptOrphans() time.Duration {
	for b.closing.Err() == nil {
		if b.ensureLease(b.closing) != nil {
			break // its own tasks, whose lease ended while the store was away, are no orphans
		}
		b.adoptions++
		finder := fmt.Sprint(b.worker, "/", b.adoptions)
		orphans, err := callOnce(b.closing, b.newTaskRetry(), "Lease", func(ctx context.Context) ([]taskstore.Record, error) {
			return b.store.Lease(ctx, finder, b.claimFor(), b.catalog.listNames(), sweepBatch)
		})
		if err != nil {
			if b.closing.Err() == nil {
				b.logger.Error("orphaned tasks not taken", "error", err)
			}
			break
		}
		b.adoptAll(orphans)
		if b.line != nil && b.line.isHeld.Load() && (len(orphans) > 0 || !b.expectsOrphans()) {
			b.line.open()
		}
		if len(orphans) < sweepBatch {
			break
		}
	}
	if b.line == nil {
		b.takeWaiting()
	}
	return b.renewEvery()
}

// loseRuns ends the run of a task as if this process had died and another one had found the task: the attempt of the
// task with the ID, or the runs of all tasks if the ID is "". It returns how many there were. It needs the local
// executor. Tests call it, see [tuning.LoseRuns].
func (b *Backend) loseRuns(id string, attempt int) (lost int) {
	var cancels []context.CancelCauseFunc
	var orphans []taskstore.Record
	b.mu.Lock()
	for _, r := range b.running {
		if b.line != nil && r.record.Version > 0 && (id == "" || r.record.ID == id && r.record.Attempt == attempt) {
			cancels, orphans = append(cancels, r.cancel), append(orphans, r.record)
		}
	}
	b.mu.Unlock()
	for i, isTaken := range b.adoptAll(orphans) { // first: a run that knows of its end can store nothing more
		if isTaken {
			cancels[i](mcptask.ErrSuperseded)
			lost++
		}
	}
	return lost
}

// claimFor is how long a server has to take the orphans that it found. After that
// they are free again.
func (b *Backend) claimFor() time.Duration { return b.renewEvery() }

// maxAdopters bounds how many orphans are adopted side by side. Each of them costs a few writes of the store, which is
// mostly waiting.
const maxAdopters = 16

// adoptAll adopts orphans side by side. When it is done with all of them, it returns which ones it has taken.
func (b *Backend) adoptAll(orphans []taskstore.Record) (taken []bool) {
	taken = make([]bool, len(orphans))
	var adopters sync.WaitGroup
	places := make(chan struct{}, maxAdopters)
	for i, r := range orphans {
		places <- struct{}{}
		adopters.Go(func() {
			defer guard.Recover(b.logger, "adoption of a task")
			defer func() { <-places }()
			taken[i] = b.adoptOrphan(r)
		})
	}
	adopters.Wait()
	return taken
}

// adoptOrphan lets an orphan run again, or ends it if it must not. It returns false if the store did not take that. It
// uses a retry that gives up, since one record that the store does not take must not hold up the other orphans.
func (b *Backend) adoptOrphan(orphan taskstore.Record) (isTaken bool) {
	log := b.logger.With("task", taskstore.LogID(orphan.Principal, orphan.ID), "tool", orphan.Tool)
	var e event
	r, err := b.moveTask(b.closing, b.newRequestRetry(), orphan, func(r taskstore.Record) event {
		e = b.decideAdoption(r) // a requestor may cancel the task meanwhile
		return ifSameRun(orphan, e)(r)
	})
	isTaken = err == nil
	if e.kind == eventFinish {
		switch {
		case err == nil:
			b.warnOfLoss(orphan)
		case b.closing.Err() == nil && !isOver(err): // it is found again
			log.Warn("task of a lost worker not ended", "error", err)
		}
		return isTaken
	}
	switch {
	case b.line != nil:
		b.noteWaiting() // even if the store's answer was lost: whoever takes it finds out
	case err == nil:
		err = b.submitClaimed(b.closing, r, orphan.Claim.Worker)
	case !isOver(err):
		b.resolveClaim(orphan, e.claim)
	}
	switch {
	case err == nil:
		log.Info("task of a lost worker is to run again", "worker", describeLostWorker(&orphan), "attempt", r.Attempt+1)
	case b.closing.Err() == nil:
		log.Warn("task of a lost worker not taken", "error", err)
	}
	return isTaken
}

// decideAdoption returns the claim of an orphan that may run, or the end of any other. A task that was asked to stop
// does not run again.
func (b *Backend) decideAdoption(orphan taskstore.Record) event {
	if b.DecideAfterLoss(orphan) != LostRunsAgain {
		return newLostEnd(orphan)
	}
	return event{kind: eventClaim, claim: b.chooseClaim(orphan), lost: isRunLost(&orphan)}
}

// submitClaimed submits a task that this server has taken, or returns it to the name that it was found under.
func (b *Backend) submitClaimed(ctx context.Context, claimed taskstore.Record, finder string) error {
	err := b.submit(ctx, claimed)
	if err != nil {
		if finder == "" { // it waited for any server
			finder = b.nameNobody()
		}
		b.returnOrphan(claimed, finder)
	}
	return err
}

// resolveClaim deals with an orphan whose claim the store has not answered. The store may have the claim all the same,
// or may get it until latestWrite, and this server would renew it forever.
func (b *Backend) resolveClaim(orphan taskstore.Record, claim taskstore.Claim) {
	late := time.Now().Add(latestWrite)
	b.resolve(orphan, func(ctx context.Context, t *storeRetry) bool {
		r, err := b.getRecord(ctx, t, orphan.ID)
		switch {
		case err != nil:
			return isGone(err)
		case r.Version == orphan.Version: // any other write refuses a later claim
			return !time.Now().Before(late)
		}
		if isSame := r.CreatedAt.Equal(orphan.CreatedAt); isSame && r.Claim.Worker == claim.Worker && r.Claim.State == claim.State {
			_ = b.submitClaimed(ctx, r, orphan.Claim.Worker) // the executor knows a task that it has already
		}
		return true
	})
}

// newLostEnd returns the end of a task that has lost its run: it is cancelled if a requestor has asked for that, and
// has the error "worker_lost" otherwise.
func newLostEnd(r taskstore.Record) event {
	outcome := taskstore.Outcome{Kind: taskstore.OutcomeCancelled}
	if !r.CancelRequested {
		lost := withReason(mcptask.Errorf(mcptask.CodeInternalError, "the worker of the task was lost"), cause.WorkerLost)
		outcome = taskstore.Outcome{Kind: taskstore.OutcomeError, Error: lost}
	}
	return event{kind: eventFinish, outcome: outcome, lost: isRunLost(&r)}
}

// warnOfLoss logs that newLostEnd has ended a task.
func (b *Backend) warnOfLoss(r taskstore.Record) {
	b.logger.Warn("task lost with its worker", "task", taskstore.LogID(r.Principal, r.ID), "tool", r.Tool, "worker", describeLostWorker(&r), "attempt", r.Attempt, "tries", r.Tries)
}

// returnOrphan gives a task that this server has taken and cannot submit back to the
// name that it was found under. There its lease ends soon; under this server's name
// it would be renewed forever.
func (b *Backend) returnOrphan(claimed taskstore.Record, finder string) {
	back := event{kind: eventLeave, claim: taskstore.Claim{Worker: finder}}
	b.resolve(claimed, func(ctx context.Context, t *storeRetry) bool {
		_, err := b.moveTask(ctx, t, claimed, ifSameRun(claimed, back))
		return err == nil || isOver(err) || errors.Is(err, mcptask.ErrServerClosed)
	})
}

// AfterLoss is what a server does with a task whose worker is lost.
type AfterLoss string

// The values of AfterLoss.
const (
	// LostUnserved leaves the task to a server that has its tool.
	LostUnserved AfterLoss = "unserved"
	// LostCancelled ends the task as cancelled: its requestor has asked for that.
	LostCancelled AfterLoss = "cancelled"
	// LostForGood ends the task with an error: its tool does not have onlost=restart.
	LostForGood AfterLoss = "lost"
	// LostTooOften ends the task with an error: it has had all its attempts.
	LostTooOften AfterLoss = "lost too often"
	// LostRunsAgain starts the task's handler again.
	LostRunsAgain AfterLoss = "runs again"
)

// DecideAfterLoss returns what this server does with a task if it finds that the task's worker is lost.
func (b *Backend) DecideAfterLoss(r taskstore.Record) AfterLoss {
	tool, ok := b.catalog.findTool(r.Tool)
	switch {
	case !ok:
		return LostUnserved
	case r.CancelRequested:
		return LostCancelled
	case r.Attempt == 0:
		return LostRunsAgain
	case !b.allowsRestart(r):
		return LostForGood
	case r.Tries >= tool.Spec.Policy.Attempts:
		return LostTooOften
	}
	return LostRunsAgain
}

// isRunnable reports whether a task's handler may be started. It may start a second
// time only if its tool allows that, even if an executor delivers a task twice.
func (b *Backend) isRunnable(r taskstore.Record) bool {
	r.CancelRequested = false // a handler that starts learns of it
	return b.DecideAfterLoss(r) == LostRunsAgain
}

// allowsRestart reports whether the tool of a task is here and has onlost=restart.
func (b *Backend) allowsRestart(r taskstore.Record) bool {
	tool, ok := b.catalog.findTool(r.Tool)
	return ok && tool.Spec.Policy.OnLost == mcptask.RestartWhenLost
}
