package mcptask

import (
	"context"
	"errors"
	"time"
)

// maxUnwanted bounds the records that wait for their deletion. Any more stay in the
// store until their ttl.
const maxUnwanted = 10_000

// unwantedRecord is a record to delete, of a task that was not announced.
type unwantedRecord struct {
	record Record
	// late is until when the record may still appear, because its Create has failed.
	late time.Time
}

// forgetTask deletes a task that was not announced, at once or, if the store fails,
// in the background. Until then it counts against its account's limits.
func (s *Server) forgetTask(r Record) { s.discardRecord(unwantedRecord{record: r}) }

// discardRecord deletes a record, or leaves it to deleteUnwanted.
func (s *Server) discardRecord(u unwantedRecord) {
	s.progress.Delete(u.record.ID)
	t := s.newRequestRetry()
	t.limit = time.Second // a caller may be waiting
	// Not s.drained: if the server is closed, no other one must find the record.
	if s.deleteRecord(context.Background(), t, u) {
		return
	}
	r := u.record
	u.record = Record{ID: r.ID, Version: r.Version, CreatedAt: r.CreatedAt, Principal: r.Principal, Tool: r.Tool, Revision: r.Revision}
	s.unwantedMu.Lock()
	defer s.unwantedMu.Unlock()
	if len(s.unwanted) >= maxUnwanted {
		s.logger.Error("task not deleted: it stays until its ttl", "task", LogID(r.Principal, r.ID))
		return
	}
	s.unwanted = append(s.unwanted, u)
}

// deleteRecord deletes a record whatever its version, and reports whether it is
// gone for good.
func (s *Server) deleteRecord(ctx context.Context, t *storeRetry, u unwantedRecord) (gone bool) {
	r := u.record
	for {
		err := s.deleteStored(ctx, t, r)
		if errors.Is(err, ErrConflict) && t.pauseAfterConflict(ctx) {
			var latest Record
			latest, err = s.getRecord(ctx, t, r.ID)
			if err == nil && !latest.CreatedAt.Equal(r.CreatedAt) {
				return true // another task has its name
			}
			if err == nil {
				r = latest
				continue
			}
		}
		if err == nil || isGone(err) {
			s.withdrawSubmission(r.ID)
		}
		switch {
		case err == nil && !r.Done():
			s.auditEnd(ctx, r, "abandoned")
			r.ExpiresAt = s.SureNow() // so that those who watch it forget it
			s.notifyObservers(r)
		case isGone(err):
			return !time.Now().Before(u.late)
		}
		return err == nil || errors.Is(err, ErrServerClosed)
	}
}

// deleteUnwanted tries again to delete what discardRecord could not delete.
func (s *Server) deleteUnwanted() time.Duration {
	s.unwantedMu.Lock()
	list := s.unwanted
	s.unwanted = nil
	s.unwantedMu.Unlock()
	left := list[:0]
	for i, u := range list {
		t := s.newRequestRetry()
		if time.Now().Before(u.late) || !s.deleteRecord(s.drained, t, u) {
			left = append(left, u)
		}
		if t.failures > 0 && s.drained.Err() == nil { // the store fails: leave the others for later
			left = append(left, list[i+1:]...)
			break
		}
	}
	s.unwantedMu.Lock()
	defer s.unwantedMu.Unlock()
	s.unwanted = append(left, s.unwanted...)
	return sweepEvery
}
