package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"
)

// PageSize is how many tasks List returns at most.
const PageSize = 50

// notFound is the answer for a task that is not there, has expired or belongs
// to somebody else: the three are indistinguishable (C-81, C-93, E-74, E-87).
func newNotFoundError() *Error { return Errorf(CodeInvalidParams, "there is no task with that ID") }

// expiredError tells a requestor that was waiting that the task is gone.
func newExpiredError() *Error {
	return Errorf(CodeInvalidParams, "the task has expired").withReason(reasonExpired)
}

// Get returns the caller's task. Errors are JSON-RPC errors.
func (s *Server) Get(ctx context.Context, caller Caller, id string) (Record, error) {
	return s.findOwned(ctx, s.newRequestRetry(), caller, id)
}

func (s *Server) findOwned(ctx context.Context, t *storeRetry, caller Caller, id string) (Record, error) {
	record, err := s.getRecord(ctx, t, id)
	return record, s.checkOwned(ctx, caller, record, err)
}

// owned turns what a store said into what the caller may learn.
func (s *Server) checkOwned(ctx context.Context, caller Caller, record Record, err error) error {
	switch {
	case errors.Is(err, ErrNoRecord):
		return newNotFoundError()
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrServerClosed):
		return newShutdownError()
	case err != nil:
		s.logger.Error("task not read", "error", err)
		return Errorf(CodeInternalError, "the task could not be read")
	case record.Principal != caller.Principal:
		if s.auditRates.Allow([2]string{"principal " + caller.Principal, "stranger"}) { // once a second for each
			s.Audit(slog.LevelWarn, "task asked for by a stranger", "stranger", caller, record, "owner", record.Principal, "method", caller.Method)
		}
		return newNotFoundError()
	case record.isExpired(time.Now()):
		return newNotFoundError()
	}
	return nil
}

// Changed waits until the caller's task has a version beyond the given one and
// returns it; version 0 returns at once. A task that goes meanwhile is an
// error whose data.reason is "expired".
func (s *Server) Changed(ctx context.Context, caller Caller, id string, version int64) (Record, error) {
	record, err := s.findOwned(ctx, s.newWaitRetry(), caller, id)
	if err != nil || record.Version > version {
		return record, err
	}
	return s.waitForChange(ctx, caller, id, version)
}

// wait is for a caller who has been found to own the task: one that goes
// meanwhile has expired, also where its end is seen before its deletion.
func (s *Server) waitForChange(ctx context.Context, caller Caller, id string, version int64) (Record, error) {
	record, err := s.awaitVersion(ctx, s.newWaitRetry(), id, version)
	if errors.Is(err, ErrNoRecord) || err == nil && record.isExpired(time.Now()) {
		return record, newExpiredError()
	}
	return record, s.checkOwned(ctx, caller, record, err)
}

// Await waits until the caller's task has ended (C-37).
func (s *Server) Await(ctx context.Context, caller Caller, id string) (Record, error) {
	record, err := s.findOwned(ctx, s.newWaitRetry(), caller, id)
	for err == nil && !record.Done() {
		s.notifyObservers(record) // it may have changed in another process
		record, err = s.waitForChange(ctx, caller, id, record.Version)
	}
	if err == nil {
		s.notifyObservers(record)
	}
	return record, err
}

// List returns a page of the caller's tasks after a position, oldest first,
// and whether there are more. Anonymous callers have no list (C-92).
func (s *Server) List(ctx context.Context, caller Caller, after Position) (page []Record, more bool, err error) {
	if caller.Principal == "" {
		return nil, false, Errorf(CodeMethodNotFound, "tasks cannot be listed without authentication")
	}
	page, err = callStore(ctx, s.newRequestRetry(), "List", func(ctx context.Context) ([]Record, error) {
		return s.store.List(ctx, caller.Principal, after, PageSize+1)
	})
	if err != nil {
		return nil, false, s.checkOwned(ctx, caller, Record{}, err)
	}
	if len(page) > PageSize {
		return page[:PageSize], true, nil
	}
	return page, false, nil
}

// Cancel ends the caller's task as cancelled before it returns, whatever the
// handler does afterwards (C-77, C-78). done says that it had ended before.
func (s *Server) Cancel(ctx context.Context, caller Caller, id string) (record Record, done bool, err error) {
	record, err = s.Get(ctx, caller, id)
	if err != nil {
		return record, false, err
	}
	record, err = s.applyEvent(ctx, id, func(Record) event {
		return event{kind: eventFinish, outcome: Outcome{Kind: OutcomeCancelled}}
	})
	if errors.Is(err, errTerminal) {
		return record, true, nil
	}
	if err := s.checkOwned(ctx, caller, record, err); err != nil {
		return record, false, err
	}
	s.cancelHandler(id, ErrCancelled)
	return record, false, nil
}

// Stop asks the caller's task to end: its handler's context ends, and the task
// ends with whatever the handler returns (E-56, E-57). A task that has ended
// already stays as it is.
func (s *Server) Stop(ctx context.Context, caller Caller, id string) error {
	if _, err := s.Get(ctx, caller, id); err != nil {
		return err
	}
	record, err := s.applyEvent(ctx, id, func(r Record) event {
		if r.Phase == PhaseQueued { // nothing runs that could stop by itself
			return event{kind: eventFinish, outcome: Outcome{Kind: OutcomeCancelled}}
		}
		return event{kind: eventStop}
	})
	if errors.Is(err, errTerminal) {
		return nil
	}
	if err := s.checkOwned(ctx, caller, record, err); err != nil {
		return err
	}
	s.cancelHandler(id, ErrCancelled)
	s.logger.Info("task asked to stop", "task", LogID(record.Principal, id), "tool", record.Tool, "principal", record.Principal)
	return nil
}

// Answer takes answers to questions of the caller's task. Keys that are not
// outstanding are ignored (E-50); the rest is checked before any of it is
// taken, so that a refused answer leaves every question open.
func (s *Server) Answer(ctx context.Context, caller Caller, id string, answers map[string]json.RawMessage) (failed error) {
	defer s.recovered("answer", &failed)
	record, err := s.Get(ctx, caller, id)
	if err != nil {
		return err
	}
	open := record.Outstanding()
	for _, in := range open {
		if answer, ok := answers[in.Key]; ok {
			if err := CheckAnswer(ctx, in, answer); err != nil {
				return Errorf(CodeInvalidParams, "the answer to %q was not taken: %v", in.Key, err)
			}
		}
	}
	for _, in := range open {
		answer, ok := answers[in.Key]
		if !ok {
			continue
		}
		record, err = s.applyEvent(ctx, id, func(r Record) event {
			if i := r.findInput(in.Key); i < 0 || r.Inputs[i].State != InputOutstanding {
				return event{} // answered by somebody else meanwhile
			}
			return event{kind: eventAnswer, key: in.Key, answer: answer}
		})
		if err != nil && !errors.Is(err, errVoid) && !errors.Is(err, errTerminal) {
			if refusal := s.explainQuota(caller, err, "tool", record.Tool, "task", LogID(record.Principal, id)); refusal != nil {
				return refusal
			}
			return s.checkOwned(ctx, caller, record, err)
		}
	}
	return nil
}

// Respond takes the response to one question as it came: one that does not fit
// ends the question with ErrInvalidAnswer, failed (the requestor's own error) or
// a response that there is no room for with ErrCannotAsk. A key that is not
// outstanding is ignored.
func (s *Server) Respond(ctx context.Context, caller Caller, id, key string, response json.RawMessage, failed *Error) error {
	if _, err := s.Get(ctx, caller, id); err != nil {
		return err
	}
	var full *Error
	settle := func(r Record) event {
		if i := r.findInput(key); i < 0 || r.Inputs[i].State != InputOutstanding {
			return event{}
		}
		if full != nil { // nobody would tell the requestor, and the handler waits
			return event{kind: eventAnswer, key: key, failed: full, unbounded: true}
		}
		return event{kind: eventAnswer, key: key, answer: response, failed: failed}
	}
	record, err := s.applyEvent(ctx, id, settle)
	if full = s.explainQuota(caller, err, "tool", record.Tool, "task", LogID(record.Principal, id)); full != nil {
		record, err = s.applyEvent(ctx, id, settle)
	}
	if errors.Is(err, errVoid) || errors.Is(err, errTerminal) {
		return nil
	}
	return s.checkOwned(ctx, caller, record, err)
}

// Peek reads a task for the gateway itself, whose ever it is. A store that fails for
// more than a moment is the gateway's concern: it looks at many tasks in turn.
func (s *Server) Peek(id string) (Record, error) {
	t := s.newRequestRetry()
	t.limit = time.Second
	return s.getRecord(s.drained, t, id)
}
