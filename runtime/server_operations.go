package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// PageSize is how many tasks List returns at most.
const PageSize = 50

// NotFound is the answer for a task that does not exist or belongs to another
// principal: the two cannot be told apart (C-81, C-93, E-74, E-87).
func (s *Server) NotFound() *Error {
	if s.KeepsInMemory() {
		return Errorf(CodeInvalidParams, "there is no task with that ID: this server keeps tasks in memory, so a restart loses them")
	}
	return Errorf(CodeInvalidParams, "there is no task with that ID")
}

// KeepsInMemory reports whether the server's store is a memory store, which loses its tasks with the
// process.
func (s *Server) KeepsInMemory() bool {
	_, memory := s.store.(*memoryStore)
	return memory
}

// newExpiredError is the answer to the owner of an expired task, until TombstoneFor has passed.
func newExpiredError() *Error {
	return Errorf(CodeInvalidParams, "the task has expired: its ttl, counted from its creation, is over").withReason(reasonExpired)
}

// Get returns the caller's task. Errors are JSON-RPC errors.
func (s *Server) Get(ctx context.Context, caller Caller, id string) (Record, error) {
	return s.findOwned(ctx, s.newRequestRetry(), caller, id)
}

// findOwned reads a task and checks that it is the caller's.
func (s *Server) findOwned(ctx context.Context, t *storeRetry, caller Caller, id string) (Record, error) {
	record, err := s.getRecord(ctx, t, id)
	return record, s.checkOwned(ctx, caller, record, err)
}

// checkOwned turns a store's answer into the error that the caller may see, or nil
// if the record is the caller's.
func (s *Server) checkOwned(ctx context.Context, caller Caller, record Record, err error) error {
	switch {
	case errors.Is(err, ErrRecordExpired) && record.Principal == caller.Principal:
		return newExpiredError()
	case isGone(err):
		return s.NotFound()
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrServerClosed):
		return newShutdownError()
	case errors.Is(err, ErrUnreadable) && record.Principal == caller.Principal:
		s.Notice(slog.LevelError, "task not read", "task", LogID(record.Principal, record.ID), "error", err)
		return Errorf(CodeInternalError, "the task cannot be read: what is stored of it is damaged, or a newer version of the server has written it")
	case errors.Is(err, ErrUnreadable):
		return s.NotFound()
	case err != nil:
		s.logger.ErrorContext(ctx, "task not read", "error", err)
		return Errorf(CodeInternalError, "the task could not be read")
	case record.Principal != caller.Principal:
		if s.auditRates.Allow([2]string{"principal " + caller.Principal, "stranger"}) { // once a second for each
			s.Audit(ctx, slog.LevelWarn, "task asked for by a stranger", "stranger", caller, record, "owner", record.Principal, "method", caller.Method)
		}
		return s.NotFound()
	case s.isExpired(record):
		return newExpiredError()
	}
	return nil
}

// Changed waits until the caller's task has a version beyond the given one and
// returns it. Version 0 returns at once. If the task is deleted meanwhile, the error
// has the data.reason "expired".
func (s *Server) Changed(ctx context.Context, caller Caller, id string, version int64) (Record, error) {
	record, err := s.findOwned(ctx, s.newWaitRetry(), caller, id)
	if err != nil || record.Version > version {
		return record, err
	}
	return s.waitForChange(ctx, caller, id, version)
}

// waitForChange waits for a caller who owns the task. A task that is deleted
// meanwhile has expired, and so has one that is not deleted yet.
func (s *Server) waitForChange(ctx context.Context, caller Caller, id string, version int64) (Record, error) {
	record, err := s.awaitVersion(ctx, s.newWaitRetry(), id, version)
	if isGone(err) || err == nil && s.isExpired(record) {
		return record, newExpiredError()
	}
	return record, s.checkOwned(ctx, caller, record, err)
}

// Await waits until the caller's task has ended (C-37).
func (s *Server) Await(ctx context.Context, caller Caller, id string) (Record, error) {
	record, err := s.findOwned(ctx, s.newWaitRetry(), caller, id)
	for err == nil && !record.Done() {
		record, err = s.waitForChange(ctx, caller, id, record.Version)
	}
	return record, err
}

// List returns a page of the caller's tasks after a position, oldest first, and
// whether there are more. Their Arguments, the content of their outcomes, and Inputs
// that are not open may be missing. Anonymous callers cannot list (C-92).
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
	if more = len(page) > PageSize; more {
		page = page[:PageSize]
	}
	for i := range page {
		if page[i].Phase == PhaseInputRequired && len(page[i].Inputs) == 0 {
			if err := s.readQuestions(ctx, &page[i]); err != nil {
				return nil, false, s.checkOwned(ctx, caller, Record{}, err)
			}
		}
	}
	return page, more, nil
}

// readQuestions reads a record of a list again, because a store may have left out its open questions. If the record is
// gone or cannot be read, it stays as it is.
func (s *Server) readQuestions(ctx context.Context, r *Record) error {
	whole, err := s.getRecord(ctx, s.newRequestRetry(), r.ID)
	switch {
	case isGone(err), errors.Is(err, ErrUnreadable), err == nil && !whole.CreatedAt.Equal(r.CreatedAt): // another task has the ID
		return nil
	case err != nil:
		return err
	}
	whole.Arguments, whole.Inputs = nil, whole.Outstanding()
	if whole.Outcome != nil { // it has ended meanwhile
		whole.Outcome = &Outcome{Kind: whole.Outcome.Kind, IsError: whole.Outcome.IsError}
	}
	*r = whole
	return nil
}

// Cancel ends the caller's task as cancelled before it returns, whatever the
// handler does afterwards (C-77, C-78). done reports that the task had ended before.
func (s *Server) Cancel(ctx context.Context, caller Caller, id string) (record Record, done bool, err error) {
	record, err = s.Get(ctx, caller, id)
	if err != nil {
		return record, false, err
	}
	record, err = s.applyEvent(ctx, record, func(Record) event {
		return event{kind: eventFinish, outcome: Outcome{Kind: OutcomeCancelled}}
	})
	if errors.Is(err, errTerminal) {
		return record, true, nil
	}
	if err := s.checkOwned(ctx, caller, record, err); err != nil {
		return record, false, err
	}
	s.cancelHandler(id, ErrCancelled)
	s.tellEngine(record, "Cancel", Engine.Cancel)
	return record, false, nil
}

// Stop asks the caller's task to end. The handler's context ends, and the task ends
// with whatever the handler returns (E-56, E-57). A task that has ended already
// stays as it is.
func (s *Server) Stop(ctx context.Context, caller Caller, id string) error {
	record, err := s.Get(ctx, caller, id)
	if err != nil {
		return err
	}
	record, err = s.applyEvent(ctx, record, func(r Record) event {
		if r.Phase == PhaseQueued { // there is no handler that could stop by itself
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
	s.tellEngine(record, "Cancel", Engine.Cancel)
	s.logger.InfoContext(ctx, "task asked to stop", "task", LogID(record.Principal, id), "tool", record.Tool, "principal", record.Principal)
	return nil
}

// Answer takes answers to questions of the caller's task. It ignores keys that are
// not outstanding (E-50). It checks all answers before it takes any, so that a
// refused answer leaves every question open.
func (s *Server) Answer(ctx context.Context, caller Caller, id string, answers map[string]json.RawMessage) (failed error) {
	defer guard.Then(s.logger, "answer", func() { failed = newInternalError() })
	record, err := s.Get(ctx, caller, id)
	if err != nil {
		return err
	}
	open := record.Outstanding()
	for _, in := range open {
		if answer, ok := answers[in.Key]; ok {
			if err := checkAnswer(ctx, &s.schemas, in, answer); err != nil {
				return Errorf(CodeInvalidParams, "the answer to %q was not taken: %v", in.Key, err)
			}
		}
	}
	var answered Record
	defer func() { s.tellEngineOfAnswer(answered) }() // also if a later answer is refused
	for _, in := range open {
		answer, ok := answers[in.Key]
		if !ok {
			continue
		}
		record, err = s.applyEvent(ctx, record, func(r Record) event {
			if !r.isOutstanding(in.Key) {
				return event{} // another request has answered it meanwhile
			}
			return event{kind: eventAnswer, key: in.Key, answer: answer}
		})
		if err == nil || errors.Is(err, errVoid) || errors.Is(err, errTerminal) {
			answered = record
			continue
		}
		if refusal := s.explainQuota(ctx, caller, err, "tool", record.Tool, "task", LogID(record.Principal, id)); refusal != nil {
			return refusal
		}
		if record.ID != "" { // a try whose result was lost may have stored the answer
			answered = record
		}
		return s.checkOwned(ctx, caller, record, err)
	}
	return nil
}

// Respond takes the response to one question as it came. A response that does not
// fit ends the question with ErrInvalidAnswer. The requestor's own error, failed,
// ends it with ErrDeclined, ErrInvalidAnswer or ErrCannotAsk, by its code. A response
// that there is no room for ends it with ErrCannotAsk. A form whose answer a tool
// takes stays open in spite of such an error. Respond ignores a key that is not
// outstanding.
func (s *Server) Respond(ctx context.Context, caller Caller, id, key string, response json.RawMessage, failed *Error) error {
	record, err := s.Get(ctx, caller, id)
	if err != nil {
		return err
	}
	var noRoom *Error
	settle := func(r Record) event {
		if !r.isOutstanding(key) || failed != nil && r.isAnsweredByTool(key) {
			return event{}
		}
		if noRoom != nil { // the requestor cannot be told, and the handler waits
			return event{kind: eventAnswer, key: key, failed: noRoom, unbounded: true}
		}
		return event{kind: eventAnswer, key: key, answer: response, failed: failed}
	}
	record, err = s.applyEvent(ctx, record, settle)
	if noRoom = s.explainQuota(ctx, caller, err, "tool", record.Tool, "task", LogID(record.Principal, id)); noRoom != nil {
		record, err = s.applyEvent(ctx, record, settle)
	}
	if err == nil || errors.Is(err, errVoid) { // a try whose result was lost may have stored the answer
		s.tellEngineOfAnswer(record)
	}
	if errors.Is(err, errVoid) || errors.Is(err, errTerminal) {
		return nil
	}
	return s.checkOwned(ctx, caller, record, err)
}

// Peek reads any task, for the gateway itself. It does not wait long for a store
// that fails, since the gateway reads many tasks in turn.
func (s *Server) Peek(id string) (Record, error) {
	t := s.newRequestRetry()
	t.limit = time.Second
	return s.getRecord(s.drained, t, id)
}

// Inspector returns the view of the server's store across principals. It returns false if the store has none.
func (s *Server) Inspector() (Inspector, bool) {
	inspector, ok := s.store.(Inspector)
	return inspector, ok
}
