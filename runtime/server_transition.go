package mcptask

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
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
// its ID is known, computes the next one, compares and sets. It reads it again after a conflict
// and when the store fails. decide sees the record as it is and returns the event, or a zero
// event to stop. What is decided on a record that may be stale is decided again.
func (s *Server) moveTask(ctx context.Context, t *storeRetry, known Record, decide func(Record) event) (Record, error) {
	id := known.ID
	var sent Record // by an Update that failed
	var sentEvent event
	conflict := false // whether the task has a version of another writer that is not noted yet
	defer func() {
		if conflict {
			s.missChange(id)
		}
	}()
	for {
		record, isRead := known, false
		if known.Version == 0 {
			var err error
			switch record, err = s.getRecord(ctx, t, id); {
			case isGone(err):
				return record, err
			case err != nil:
				return sent, err
			}
			isRead = true
		}
		if conflict {
			conflict = false
			if s.noteChange(id, record.Version) {
				s.notifyObservers(record)
			}
		}
		known = Record{}
		if s.updateLanded(sentEvent, sent, record) {
			s.announceChange(ctx, record, sentEvent)
			return record, nil
		}
		e := decide(record)
		if e.at = s.Now(); e.at.Before(record.UpdatedAt) {
			e.at = record.UpdatedAt // another process knows the store's time only roughly
		}
		moved, err := nextRecord(record, e)
		if e.kind == "" {
			err = errVoid
		}
		if err != nil && !isRead {
			continue
		}
		if err != nil {
			return record, err
		}
		_, giveBack := s.takeProgressTurn(id, moved.Done())
		s.expectChange(id, record.Version+1)
		stored, moved, err := s.updateRecord(ctx, t, record, moved, e)
		switch {
		case err == nil:
			s.announceChange(ctx, stored, e)
		case errors.Is(err, ErrConflict):
			conflict = true // the record is read next
		default:
			s.missChange(id)
		}
		giveBack()
		var again bool
		switch {
		case err == nil:
			return stored, nil
		case errors.Is(err, ErrConflict):
			again = t.pauseAfterConflict(ctx)
		default:
			sent, sentEvent = moved, e
			again = t.pauseAfterFailure(ctx, "Update", err)
		}
		if !again {
			return moved, err
		}
	}
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

// updateLanded reports whether an Update that failed was stored all the same, and only its answer was lost. Without it, a
// server would take its own start for another worker's, its own claim for another server's, and its own end for another
// caller's. A handover would give back another try, and an answer would not be told. Other events are harmless: they do not
// apply twice. The servers of an engine share the name of their worker, so their starts and claims differ only in time.
func (s *Server) updateLanded(e event, sent, now Record) bool {
	switch e.kind {
	case eventStart:
		return now.isSameRun(sent) && (s.engine == nil || now.UpdatedAt.Equal(sent.UpdatedAt))
	case eventClaim:
		return now.isSameRun(sent) && !now.Done() && (s.engine == nil || now.UpdatedAt.Equal(sent.UpdatedAt))
	case eventHandOver:
		return now.isSameRun(sent) && now.Tries == sent.Tries
	case eventAnswer:
		return slices.ContainsFunc(now.Timeline.Moments(), func(m Moment) bool {
			return m.Kind == EventAnswered && m.At.UnixMicro() == e.at.UnixMicro() && strings.HasPrefix(e.key, m.Text) &&
				strings.HasPrefix(e.operator, m.Operator) && (m.Operator == "") == (e.operator == "")
		})
	case eventFinish:
		return now.Done() && now.CreatedAt.Equal(sent.CreatedAt) && now.TerminalAt.Equal(sent.TerminalAt) &&
			now.Outcome.Kind == sent.Outcome.Kind && bytes.Equal(now.Outcome.Result, sent.Outcome.Result)
	}
	return false
}

// updateRecord stores what an event made of a record. A task ends even if its
// account has no room for the outcome: then it ends with an error that says so, and
// that error is smaller than the outcome. sent is the record that the store was
// given last.
func (s *Server) updateRecord(ctx context.Context, t *storeRetry, record, moved Record, e event) (stored, sent Record, err error) {
	quota := s.options.Limits.storeQuota()
	if e.unbounded || e.kind == eventHandOver || e.kind == eventFinish && e.outcome.Kind == OutcomeCancelled {
		quota = Quota{}
	}
	write := func(quota Quota) (Record, error) {
		return s.writeWithRoom(ctx, &record, func() (Record, error) {
			return callOnce(ctx, t, "Update", func(ctx context.Context) (Record, error) { return s.store.Update(ctx, record, moved, quota) })
		})
	}
	stored, err = write(quota)
	if err == nil || e.kind != eventFinish {
		return stored, moved, err
	}
	refusal := s.explainQuota(ctx, record.asCaller(), err, "tool", record.Tool, "task", LogID(record.Principal, record.ID))
	if refusal != nil {
		e.outcome = Outcome{Kind: OutcomeError, Error: refusal}
		if refused, err := nextRecord(record, e); err == nil && refused.Size() < moved.Size() {
			moved = refused
		}
		stored, err = write(Quota{})
	}
	return stored, moved, err
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
		s.auditEnd(ctx, r, r.Outcome.name())
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
