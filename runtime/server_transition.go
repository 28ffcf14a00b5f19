package mcptask

import (
	"context"
	"crypto/rand"
	"errors"
	"time"
)

// errVoid says that an event no longer applies.
var errVoid = errors.New("mcptask: the event no longer applies")

// isOver reports whether an event was refused because the task has ended, is gone,
// or belongs to another run.
func isOver(err error) bool {
	return errors.Is(err, errTerminal) || errors.Is(err, ErrNoRecord) || errors.Is(err, errVoid)
}

// applyEvent moves a task by one event, for a caller that waits for it and has read the
// record.
func (s *Server) applyEvent(ctx context.Context, known Record, decide func(Record) event) (Record, error) {
	return s.moveTask(ctx, s.newRequestRetry(), known, decide)
}

// moveTask moves a task by one event: it takes the record that is known, or reads it if only
// its ID is known, computes the next one, compares and sets. decide sees the record as it is and
// returns the event, or a zero event to stop. moveTask reads the record again, and decides again, after a
// conflict and if what is known allows no event.
func (s *Server) moveTask(ctx context.Context, t *storeRetry, known Record, decide func(Record) event) (Record, error) {
	record, isRead, nonce := known, known.Version == 0, rand.Text()
	var e event
	for {
		if isRead {
			var err error
			if record, err = s.getRecord(ctx, t, known.ID); err != nil {
				s.missChange(known.ID)
				return record, err
			}
			if s.noteChange(record.ID, record.Version) {
				s.notifyObservers(record)
			}
			if record.hasWrite(nonce) { // its answer was lost, and others have written since
				s.announceChange(ctx, record, e)
				return record, nil
			}
		}
		e = decide(record)
		e.nonce = nonce
		if e.at = s.Now(); e.at.Before(record.UpdatedAt) {
			e.at = record.UpdatedAt // another process knows the store's time only roughly
		}
		moved, err := nextRecord(record, e)
		switch {
		case err == nil:
			stored, err := s.storeMove(ctx, t, record, moved, e)
			switch {
			case !errors.Is(err, ErrConflict):
				return stored, err
			case !t.pauseAfterConflict(ctx):
				s.missChange(record.ID)
				return stored, err
			}
		case isRead:
			return record, err
		}
		isRead = true
	}
}

// storeMove stores what an event made of a record, and tells of it. It keeps progress from being sent meanwhile if the
// task ends.
func (s *Server) storeMove(ctx context.Context, t *storeRetry, record, moved Record, e event) (Record, error) {
	_, giveBack := s.takeProgressTurn(record.ID, moved.Done())
	defer giveBack()
	s.expectChange(record.ID, record.Version+1)
	stored, err := s.updateRecord(ctx, t, record, moved, e)
	switch {
	case err == nil:
		s.announceChange(ctx, stored, e)
	case !errors.Is(err, ErrConflict): // otherwise the record is read next
		s.missChange(record.ID)
	}
	return stored, err
}

// ifSameRun returns a function that decides for e while the task is still in the
// given run, and for no event otherwise.
func ifSameRun(run Record, e event) func(Record) event {
	return func(r Record) event {
		if !r.isSameRun(run) {
			return event{}
		}
		return e
	}
}

// updateRecord stores what an event made of a record. A task ends even if its
// account has no room for the outcome: then it ends with an error that says so, and
// that error is smaller than the outcome. With an error, it returns the record that the store was
// given last.
func (s *Server) updateRecord(ctx context.Context, t *storeRetry, record, moved Record, e event) (Record, error) {
	quota := s.options.Limits.storeQuota()
	if e.unbounded || e.kind == eventHandOver || e.kind == eventFinish && e.outcome.Kind == OutcomeCancelled {
		quota = Quota{}
	}
	stored, err := s.writeUpdate(ctx, t, record, moved, quota)
	if err == nil || e.kind != eventFinish {
		return stored, err
	}
	refusal := s.explainQuota(ctx, record.asCaller(), err, "tool", record.Tool, "task", LogID(record.Principal, record.ID))
	if refusal == nil {
		return stored, err
	}
	e.outcome, e.nonce = Outcome{Kind: OutcomeError, Error: refusal}, rand.Text() // another write
	if refused, err := nextRecord(record, e); err == nil && refused.Size() < moved.Size() {
		moved = refused
	}
	return s.writeUpdate(ctx, t, record, moved, Quota{})
}

// writeUpdate makes the store's Update until it is answered: the store knows a write that it has stored already.
func (s *Server) writeUpdate(ctx context.Context, t *storeRetry, from, to Record, quota Quota) (Record, error) {
	stored, err := s.writeWithRoom(ctx, &from, func() (Record, error) {
		return callStore(ctx, t, "Update", func(ctx context.Context) (Record, error) { return s.store.Update(ctx, from, to, quota) })
	})
	if err != nil {
		return to, err
	}
	return stored, nil
}

// announceChange tells observers, hooks and the audit trail of a version that an event has made and that is stored.
func (s *Server) announceChange(ctx context.Context, r Record, e event) {
	s.noteChange(r.ID, r.Version)
	s.noteRun(r)
	s.notifyObservers(r)
	if e.lost {
		lost := r
		if e.kind == eventStart { // of the run that follows
			lost.Attempt--
		}
		s.tellHooks(ctx, TaskEvent{Kind: EventLost, Task: lost})
	}
	if kind := e.kind.publicKind(); kind != EventEnded { // auditEnd tells of all ends
		s.tellHooks(ctx, TaskEvent{Kind: kind, Task: r})
	}
	if r.Done() {
		s.progress.Delete(r.ID)
		s.withdrawSubmission(r.ID)
		if e.kind == eventFinish { // otherwise the task has ended since, and whoever has ended it tells of that
			s.auditEnd(ctx, r, r.Outcome.name())
		}
	}
}

// Observe calls f with each version of a task that this process stores, and with those that
// other processes store of a task that runs here or that is followed, see [Server.Follow]: some
// may be skipped, but not the last. It also calls f with a task that this process deletes
// unfinished because its ExpiresAt has passed. A version may come twice or late. f must not
// block. The calls end when stop is called.
func (s *Server) Observe(f func(Record)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := new(int)
	s.observers[key] = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.observers, key)
	}
}

// notifyObservers calls the functions that Observe was given.
func (s *Server) notifyObservers(r Record) {
	s.mu.Lock()
	observers := make([]func(Record), 0, len(s.observers))
	for _, f := range s.observers {
		observers = append(observers, f)
	}
	s.mu.Unlock()
	for _, f := range observers {
		f(r)
	}
}

// takeProgressTurn keeps a task from ending between a report and its progress
// notification, so that no progress follows the end (C-68). It gives up after a
// second: a client that does not read its stream must not keep its task alive.
func (s *Server) takeProgressTurn(id string, wanted bool) (send ProgressFunc, giveBack func()) {
	if turn, ok := s.progress.Load(id); ok && wanted {
		turn := turn.(chan ProgressFunc)
		select {
		case send = <-turn:
			if _, ok := s.progress.Load(id); !ok { // it has ended meanwhile
				turn <- send
				return nil, func() {}
			}
			return send, func() { turn <- send }
		case <-time.After(time.Second):
		}
	}
	return nil, func() {}
}
