package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
)

// The causes of the end of a handler's context.
var (
	errWaitOver     = errors.New("mcptask: the wait of a plain call is over")
	errDeadlineOver = errors.New("mcptask: the tool's deadline is over")
	errStolen       = errors.New("mcptask: another worker has the task")
)

// runTask is the RunFunc. It runs one attempt of a task's handler, from the record
// to the outcome.
func (s *Server) runTask(ctx context.Context, id string) {
	defer guard.Recover(s.logger, "task") // after finishAttempt has stored the outcome
	// life is the executor's context. A cancelled task must still begin, since only a
	// task that has begun can end here.
	life := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	former := s.running[id]
	if former == nil {
		s.running[id] = &cancel
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running[id] == &cancel {
			delete(s.running, id)
			s.progress.Delete(id)
		}
	}()

	record, err := s.moveTask(life, s.newTaskRetry(), id, s.decideStart)
	if err != nil {
		return // an executor may deliver a task twice: the run that has it goes on
	}
	if former != nil {
		s.takeOverRun(life, id, &cancel)
	}
	t, ok := s.catalog.findTool(record.Tool)
	if !ok {
		return // decideStart has checked that it is there
	}
	if record.CancelRequested {
		cancel(ErrCancelled)
	}
	// This outcome stays if the handler ends its goroutine, as testing.T.FailNow does.
	outcome := newInternalOutcome()
	defer func() { s.finishAttempt(ctx, record, *outcome) }()
	// The handler ends when the task's ttl or the tool's deadline is over.
	ctx, cancelTTL := context.WithDeadlineCause(ctx, record.ExpiresAt, ErrExpired)
	defer cancelTTL()
	ctx, cancelDeadline := limit.Timeout(ctx, t.spec.Policy.Deadline, errDeadlineOver)
	defer cancelDeadline()
	host := &taskHost{server: s, record: record, attempt: ctx, cancel: cancel}
	upfront := CallRequest{Answers: record.collectResponses(), Ask: host.Ask}
	answers, refusal, err := s.settleUpfrontQuestions(ctx, Caller{CanAsk: record.CanAsk}, t, upfront)
	switch {
	case err != nil:
		outcome = newFailureOutcome(ctx, t, err)
	case refusal != nil:
		outcome = refusal.Outcome
	default:
		task := &Task{
			id:        id,
			principal: record.Principal,
			attempt:   record.Attempt,
			host:      host,
			upfront:   pairUpfrontAnswers(t, answers),
			schemas:   &s.schemas,
		}
		outcome = s.limitOutcome(record.asCaller(), record.ID, record.Tool, s.invokeHandler(ctx, t, task, record.Arguments))
	}
}

// takeOverRun ends a former run of a task that has begun again: this process lost
// the task and got it back. A cancellation in between has reached the former run
// only, so takeOverRun reads the record again.
func (s *Server) takeOverRun(ctx context.Context, id string, cancel *context.CancelCauseFunc) {
	s.mu.Lock()
	former := s.running[id]
	s.running[id] = cancel
	s.mu.Unlock()
	if former != nil {
		(*former)(errStolen)
	}
	// getRecord cancels the handler if the record says so. If the store fails, a later
	// call tells.
	_, _ = s.getRecord(ctx, s.newRequestRetry(), id)
}

// decideStart returns the event that starts a handler, or no event if the handler
// may not run again or another worker has the task.
func (s *Server) decideStart(r Record) event {
	heldByOther := r.Attempt > 0 && r.Worker != s.worker && time.Now().Before(r.LeaseUntil)
	if !s.isRunnable(r) || heldByOther {
		return event{}
	}
	return event{kind: eventStart, worker: s.worker, lease: leaseFor}
}

// invokeHandler calls a handler and returns the outcome, whatever the handler does.
func (s *Server) invokeHandler(ctx context.Context, t *registeredTool, task *Task, arguments json.RawMessage) (outcome *Outcome) {
	logID := LogID(task.principal, task.id)
	defer func() {
		if outcome != nil { // nil means that the handler ends its goroutine
			outcome = s.repairOutcome(t.spec.Name, task, outcome)
		}
	}()
	defer guard.Then(s.logger, "handler", func() { outcome = newInternalOutcome() }, "tool", t.spec.Name, "task", logID)
	handlerCtx := ctx
	if s.options.Context != nil {
		built, err := s.options.Context(ctx, task.principal)
		if err != nil {
			s.logger.Error("no context for the principal", "task", logID, "principal", task.principal, "error", err)
			return &Outcome{Kind: OutcomeError, Error: hideInternals(err)}
		}
		handlerCtx = built
	}
	result, err := t.handle(handlerCtx, task, arguments)
	if err != nil {
		return newFailureOutcome(ctx, t, err)
	}
	if t.output != nil && !result.IsError {
		// Finished work counts even if the context has ended meanwhile.
		if err := t.output.Check(context.WithoutCancel(ctx), result.Structured); err != nil {
			s.logger.Error("output does not fit its schema", "tool", t.spec.Name, "task", logID, "error", err)
			return &Outcome{Kind: OutcomeError, Error: Errorf(CodeInternalError, "the tool's output does not fit its schema")}
		}
	}
	data, err := encodeResult(t.raw, result)
	if err != nil {
		s.logger.Error("output not encoded", "tool", t.spec.Name, "task", logID, "error", err)
		return newInternalOutcome()
	}
	return &Outcome{Kind: OutcomeResult, Result: data, IsError: result.IsError}
}

// finishAttempt stores the outcome of an attempt, unless another run has the task.
func (s *Server) finishAttempt(ctx context.Context, attempt Record, outcome Outcome) {
	end := event{kind: eventFinish, outcome: outcome}
	if cause := context.Cause(ctx); outcome.Kind == OutcomeCancelled {
		switch {
		case errors.Is(cause, errStolen):
			return // another worker has the task and ends it
		case errors.Is(cause, context.Canceled): // the server closes, and another one may go on
			if s.ownStore || !s.allowsRestart(attempt) {
				return
			}
			end = event{kind: eventHandOver}
		}
	}
	_, err := s.moveTask(s.drained, s.newTaskRetry(), attempt.ID, ifSameRun(attempt, end))
	if err != nil && !isOver(err) {
		s.logger.Error("task not stored", "task", LogID(attempt.Principal, attempt.ID), "tool", attempt.Tool, "error", err)
	}
}

// cancelHandler ends the context of a task's handler if it runs in this process.
func (s *Server) cancelHandler(id string, cause error) {
	s.mu.Lock()
	cancel := s.running[id]
	s.mu.Unlock()
	if cancel != nil {
		(*cancel)(cause)
	}
}
