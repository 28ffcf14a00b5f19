package taskserver

import (
	"context"
	"errors"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// maxResolving bounds how many records resolve deals with in the background. Any more stay as they are until their ttl.
const maxResolving = 10_000

// resolve calls try for a record until it returns true: at once, and then in the background.
func (b *Backend) resolve(r taskstore.Record, try func(context.Context, *storeRetry) bool) {
	t := b.newRequestRetry()
	t.limit = time.Second // a caller may be waiting
	// Not b.drained: if the server is closed, no other one must find the record.
	if try(context.Background(), t) {
		return
	}
	if b.resolving.Add(1) > maxResolving {
		b.resolving.Add(-1)
		b.logger.Error("task not resolved: it stays as it is until its ttl", "task", taskstore.LogID(r.Principal, r.ID))
		return
	}
	go func() {
		defer guard.Recover(b.logger, "a task that may be stored")
		defer b.resolving.Add(-1)
		for pause := sweepEvery; ; pause *= 2 {
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-b.drained.Done():
				timer.Stop()
				return
			}
			if try(b.drained, b.newTaskRetry()) {
				return
			}
		}
	}()
}

// forgetTask deletes a task that was not announced. As long as the store fails, it counts against its account's limits.
func (b *Backend) forgetTask(r taskstore.Record) {
	b.forgetCall(r.ID)
	r.Arguments = nil // the rest is small, but for an outcome
	if r.Outcome != nil {
		r.Outcome = &taskstore.Outcome{Kind: r.Outcome.Kind}
	}
	b.resolve(r, func(ctx context.Context, t *storeRetry) bool { return b.deleteRecord(ctx, t, r) })
}

// latestWrite is how long after a call of the store has failed the store may still carry it out, as a database may that
// waits for a lock.
const latestWrite = 30 * time.Second

// resolveCreate deals with a record whose Create has failed. The store may have it all the same, or may get it until
// latestWrite. A caller with a key or a name may come back for the task, so it is started. Any other caller cannot
// know its ID, so it is deleted.
func (b *Backend) resolveCreate(fresh taskstore.Record, call CallRequest) {
	id, nonce, late := fresh.ID, fresh.Nonce, time.Now().Add(latestWrite)
	b.resolve(fresh, func(ctx context.Context, t *storeRetry) bool {
		stored, err := b.getRecord(ctx, t, id)
		switch {
		case err != nil:
			return !time.Now().Before(late)
		case !hasWrite(&stored, nonce): // another task has its name, or others have gone on with it
			return true
		case stored.IdempotencyKey == "" && stored.ExternalID == "":
			return b.deleteRecord(ctx, t, stored)
		}
		call.Progress = nil // the caller has got an error
		b.keepCall(id, call)
		if stored.IsFree() {
			b.noteWaiting()
		} else if err := b.submit(ctx, stored); err != nil {
			b.leaveUnsubmitted(stored, err)
		}
		return true
	})
}

// deleteRecord deletes a record whatever its version, and reports whether it is gone.
func (b *Backend) deleteRecord(ctx context.Context, t *storeRetry, r taskstore.Record) (gone bool) {
	for {
		err := b.deleteStored(ctx, t, r)
		if errors.Is(err, taskstore.ErrConflict) && t.pauseAfterConflict(ctx) {
			latest, unread := b.getRecord(ctx, t, r.ID)
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
			return errors.Is(err, mcptask.ErrServerClosed)
		}
		if err == nil && !r.Done() {
			b.auditEnd(ctx, r, "abandoned")
			r.ExpiresAt = b.SureNow() // so that those who watch it forget it
			b.notifyObservers(r)
		}
		return true
	}
}
