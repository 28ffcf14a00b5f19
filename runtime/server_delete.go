package mcptask

import (
	"context"
	"errors"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// maxSettling bounds how many records settle deals with in the background. Any more stay as they are until their ttl.
const maxSettling = 10_000

// settle calls try for a record until it returns true: at once, and then in the background.
func (s *Server) settle(r Record, try func(context.Context, *storeRetry) bool) {
	t := s.newRequestRetry()
	t.limit = time.Second // a caller may be waiting
	// Not s.drained: if the server is closed, no other one must find the record.
	if try(context.Background(), t) {
		return
	}
	if s.settling.Add(1) > maxSettling {
		s.settling.Add(-1)
		s.logger.Error("task not settled: it stays as it is until its ttl", "task", LogID(r.Principal, r.ID))
		return
	}
	go func() {
		defer guard.Recover(s.logger, "a task that may be stored")
		defer s.settling.Add(-1)
		for pause := sweepEvery; ; pause *= 2 {
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-s.drained.Done():
				timer.Stop()
				return
			}
			if try(s.drained, s.newTaskRetry()) {
				return
			}
		}
	}()
}

// forgetTask deletes a task that was not announced. As long as the store fails, it counts against its account's limits.
func (s *Server) forgetTask(r Record) {
	s.progress.Delete(r.ID)
	r.Arguments = nil // the rest is small, but for an outcome
	if r.Outcome != nil {
		r.Outcome = &Outcome{Kind: r.Outcome.Kind}
	}
	s.settle(r, func(ctx context.Context, t *storeRetry) bool { return s.deleteRecord(ctx, t, r) })
}

// settleCreate deals with a record whose Create has failed. The store may have it all the same, or may get it for as
// long as a lease. A caller with a key or a name may come back for the task, so it is started. Any other caller cannot know
// its ID, so it is deleted.
func (s *Server) settleCreate(fresh Record) {
	id, nonce, late := fresh.ID, fresh.Nonce, time.Now().Add(s.lease)
	s.settle(fresh, func(ctx context.Context, t *storeRetry) bool {
		stored, err := s.getRecord(ctx, t, id)
		switch {
		case err != nil:
			return !time.Now().Before(late)
		case !stored.hasWrite(nonce): // another task has its name, or others have gone on with it
			return true
		case stored.IdempotencyKey == "" && stored.ExternalID == "":
			return s.deleteRecord(ctx, t, stored)
		}
		if err := s.submit(ctx, stored); err != nil {
			s.leaveUnsubmitted(stored, err)
		}
		return true
	})
}

// deleteRecord deletes a record whatever its version, and reports whether it is gone.
func (s *Server) deleteRecord(ctx context.Context, t *storeRetry, r Record) (gone bool) {
	for {
		err := s.deleteStored(ctx, t, r)
		if errors.Is(err, ErrConflict) && t.pauseAfterConflict(ctx) {
			latest, unread := s.getRecord(ctx, t, r.ID)
			switch {
			case unread == nil && !latest.CreatedAt.Equal(r.CreatedAt):
				return true // another task has its name
			case unread == nil:
				r = latest
				continue
			}
			err = unread
		}
		if err != nil && !isGone(err) {
			return errors.Is(err, ErrServerClosed)
		}
		s.withdrawSubmission(r.ID)
		if err == nil && !r.Done() {
			s.auditEnd(ctx, r, "abandoned")
			r.ExpiresAt = s.SureNow() // so that those who watch it forget it
			s.notifyObservers(r)
		}
		return true
	}
}
