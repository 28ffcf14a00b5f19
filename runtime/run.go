package mcptask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/plain"
)

// Why a handler's context ended.
var (
	errWaitOver     = errors.New("mcptask: the wait of a plain call is over")
	errDeadlineOver = errors.New("mcptask: the tool's deadline is over")
	errStolen       = errors.New("mcptask: another worker has the task")
)

// run is the RunFunc: one attempt of a task's handler, from its record to its
// outcome.
func (s *Server) runTask(ctx context.Context, id string) {
	defer guard.Recover(s.logger, "task") // last, when finish has stored what became of it
	life := ctx                           // of the executor: a cancel must not keep the task from its beginning, or nothing would end it
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
		return // begin has seen to it that it is there
	}
	if record.CancelRequested {
		cancel(ErrCancelled)
	}
	// Stays where the handler ends its goroutine, as testing.T.FailNow does.
	outcome := &Outcome{Kind: OutcomeError, Error: Errorf(CodeInternalError, "internal error")}
	defer func() { s.finishAttempt(ctx, record, *outcome) }()
	// A task does not outlive its ttl, nor its handler the tool's deadline.
	ctx, cancelTTL := context.WithDeadlineCause(ctx, record.ExpiresAt, ErrExpired)
	defer cancelTTL()
	ctx, cancelDeadline := limit.Timeout(ctx, t.spec.Policy.Deadline, errDeadlineOver)
	defer cancelDeadline()
	host := &taskHost{server: s, record: record, attempt: ctx, cancel: cancel}
	answers, refusal, err := s.settleUpfrontQuestions(ctx, Caller{CanAsk: record.CanAsk}, t, CallRequest{Answers: record.collectResponses(), Ask: host.Ask})
	switch {
	case err != nil:
		outcome = newFailureOutcome(ctx, t, err)
	case refusal != nil:
		outcome = refusal.Outcome
	default:
		task := &Task{id: id, principal: record.Principal, attempt: record.Attempt, host: host, answers: pairUpfrontAnswers(t, answers)}
		outcome = s.limitOutcome(record.asCaller(), record.ID, record.Tool, s.invokeHandler(ctx, t, task, record.Arguments))
	}
}

// takeOver ends a former run of a task that has begun again: this process lost the task
// and got it back. What was to end the task meanwhile has ended the former run alone.
func (s *Server) takeOverRun(ctx context.Context, id string, cancel *context.CancelCauseFunc) {
	s.mu.Lock()
	former := s.running[id]
	s.running[id] = cancel
	s.mu.Unlock()
	if former != nil {
		(*former)(errStolen)
	}
	_, _ = s.getRecord(ctx, s.newRequestRetry(), id) // and heeds what it says; a store that fails says it later
}

// begin makes the event that starts a handler, unless it may not run again or
// another worker has it.
func (s *Server) decideStart(r Record) event {
	now := time.Now()
	if !s.isRunnable(r) || r.Attempt > 0 && r.Worker != s.worker && now.Before(r.LeaseUntil) {
		return event{}
	}
	return event{kind: eventStart, worker: s.worker, lease: now.Add(leaseFor)}
}

// invoke calls a handler and makes an outcome of whatever it does.
func (s *Server) invokeHandler(ctx context.Context, t *registeredTool, task *Task, arguments json.RawMessage) (outcome *Outcome) {
	defer func() {
		if p := recover(); p != nil {
			guard.Log(s.logger, "handler", p, "tool", t.spec.Name, "task", LogID(task.principal, task.id))
			outcome = &Outcome{Kind: OutcomeError, Error: Errorf(CodeInternalError, "internal error")}
		}
		if outcome != nil { // else the handler ends its goroutine
			outcome = s.repairOutcome(t.spec.Name, task, outcome)
		}
	}()
	handlerCtx := ctx
	if s.options.Context != nil {
		built, err := s.options.Context(ctx, task.principal)
		if err != nil {
			s.logger.Error("no context for the principal", "task", LogID(task.principal, task.id), "principal", task.principal, "error", err)
			return &Outcome{Kind: OutcomeError, Error: hideInternals(err)}
		}
		handlerCtx = built
	}
	result, err := t.handle(handlerCtx, task, arguments)
	if err != nil {
		return newFailureOutcome(ctx, t, err)
	}
	if t.output != nil && !result.IsError {
		// Work that is done counts, also if its context has ended meanwhile.
		if err := t.output.Check(context.WithoutCancel(ctx), result.Structured); err != nil {
			s.logger.Error("output does not fit its schema", "tool", t.spec.Name, "task", LogID(task.principal, task.id), "error", err)
			return &Outcome{Kind: OutcomeError, Error: Errorf(CodeInternalError, "the tool's output does not fit its schema")}
		}
	}
	data, err := encodeResult(t.raw, result)
	if err != nil {
		s.logger.Error("output not encoded", "tool", t.spec.Name, "task", LogID(task.principal, task.id), "error", err)
		return &Outcome{Kind: OutcomeError, Error: Errorf(CodeInternalError, "internal error")}
	}
	return &Outcome{Kind: OutcomeResult, Result: data, IsError: result.IsError}
}

// failure is the outcome of a handler's error. An *Error is a JSON-RPC error;
// any other error after the end of the context is the cancellation or the
// missed deadline that ended it; the rest are tool errors, which the model reads.
func newFailureOutcome(ctx context.Context, t *registeredTool, err error) *Outcome {
	var wire *Error
	if errors.As(err, &wire) && wire != nil {
		return &Outcome{Kind: OutcomeError, Error: wire}
	}
	if ctx.Err() != nil {
		if errors.Is(context.Cause(ctx), errDeadlineOver) {
			return &Outcome{Kind: OutcomeError, Error: Errorf(CodeInternalError,
				"%s did not finish within its deadline of %v", t.spec.Name, t.spec.Policy.Deadline).withReason(reasonDeadline)}
		}
		return &Outcome{Kind: OutcomeCancelled}
	}
	result, encodeErr := plain.Marshal(ErrorResult(err.Error()))
	if encodeErr != nil {
		return &Outcome{Kind: OutcomeError, Error: Errorf(CodeInternalError, "internal error")}
	}
	return &Outcome{Kind: OutcomeResult, Result: result, IsError: true}
}

// finish stores the outcome of an attempt, unless it is void.
func (s *Server) finishAttempt(ctx context.Context, attempt Record, outcome Outcome) {
	end := event{kind: eventFinish, outcome: outcome}
	if cause := context.Cause(ctx); outcome.Kind == OutcomeCancelled {
		switch {
		case errors.Is(cause, errStolen):
			return // not ours any longer: somebody else ends it
		case errors.Is(cause, context.Canceled): // the server closes, and somebody else goes on
			if s.ownStore || !s.allowsRestart(attempt) {
				return
			}
			end = event{kind: eventHandOver}
		}
	}
	_, err := s.moveTask(s.drained, s.newTaskRetry(), attempt.ID, func(r Record) event {
		if !attempt.isSameRun(r) {
			return event{} // another run has the task
		}
		return end
	})
	if err != nil && !errors.Is(err, errTerminal) && !errors.Is(err, ErrNoRecord) && !errors.Is(err, errVoid) {
		s.logger.Error("task not stored", "task", LogID(attempt.Principal, attempt.ID), "tool", attempt.Tool, "error", err)
	}
}

// errWithdrawn says that an earlier attempt has taken a question back.
var errWithdrawn = errors.New("mcptask: the question was withdrawn")

// errVoid says that an event no longer applies.
var errVoid = errors.New("mcptask: the event no longer applies")

// apply moves a task by one event for somebody who waits for it.
func (s *Server) applyEvent(ctx context.Context, id string, decide func(Record) event) (Record, error) {
	return s.moveTask(ctx, s.newRequestRetry(), id, decide)
}

// move moves a task by one event: read, next, compare and set, again on conflict
// and when the store fails. decide sees the record as it is; a zero event means
// not to.
func (s *Server) moveTask(ctx context.Context, t *storeRetry, id string, decide func(Record) event) (Record, error) {
	var sent Record // what an Update that failed was to store
	var by eventKind
	for {
		record, err := s.getRecord(ctx, t, id)
		if err != nil {
			return sent, err
		}
		if updateLanded(by, sent, record) {
			s.announceChange(record)
			return record, nil
		}
		e := decide(record)
		if e.kind == "" {
			return record, errVoid
		}
		e.at = time.Now().UTC().Truncate(time.Microsecond)
		moved, err := nextRecord(record, e)
		if err != nil {
			return record, err
		}
		_, giveBack := s.takeProgressTurn(id, moved.Done())
		stored, moved, err := s.updateRecord(ctx, t, record, moved, e)
		giveBack()
		var again bool
		switch {
		case err == nil:
			s.announceChange(stored)
			return stored, nil
		case errors.Is(err, ErrConflict):
			again = t.pauseAfterConflict(ctx)
		default:
			sent, by = moved, e.kind
			again = t.pauseAfterFailure(ctx, "Update", err)
		}
		if !again {
			return moved, err
		}
	}
}

// landed says whether an Update that failed was carried out all the same: only its
// answer was lost. A run that it began must not be taken for another's, nor an
// end for somebody else's. What else happens to a task is not done twice.
func updateLanded(by eventKind, sent, now Record) bool {
	switch by {
	case eventStart:
		return now.isSameRun(sent)
	case eventFinish:
		return now.Done() && now.CreatedAt.Equal(sent.CreatedAt) && now.TerminalAt.Equal(sent.TerminalAt) &&
			now.Outcome.Kind == sent.Outcome.Kind && bytes.Equal(now.Outcome.Result, sent.Outcome.Result)
	}
	return false
}

// update stores what an event made of a record. Whatever the account has, a task ends: if there is no room
// for its outcome, with the error that says so, which takes no more than what it is in the place of. sent is
// what the store was given last.
func (s *Server) updateRecord(ctx context.Context, t *storeRetry, record, moved Record, e event) (stored, sent Record, err error) {
	quota := s.options.Limits.storeQuota()
	if e.unbounded || e.kind == eventFinish && e.outcome.Kind == OutcomeCancelled {
		quota = Quota{}
	}
	write := func(quota Quota) (Record, error) {
		return callOnce(ctx, t, func(ctx context.Context) (Record, error) { return s.store.Update(ctx, moved, quota) })
	}
	stored, err = write(quota)
	if err == nil || e.kind != eventFinish {
		return stored, moved, err
	}
	refusal := s.explainQuota(record.asCaller(), err, "tool", record.Tool, "task", LogID(record.Principal, record.ID))
	if refusal != nil {
		e.outcome = Outcome{Kind: OutcomeError, Error: refusal}
		if refused, err := nextRecord(record, e); err == nil && refused.Size() < moved.Size() {
			moved = refused
		}
		stored, err = write(Quota{})
	}
	return stored, moved, err
}

// moved tells of a version that is stored.
func (s *Server) announceChange(r Record) {
	if s.notifyObservers(r); r.Done() {
		s.progress.Delete(r.ID)
		s.withdrawSubmission(r.ID)
		s.auditEnd(r, string(r.Outcome.Kind))
	}
}

// cancelRunning ends the context of a handler of this process.
func (s *Server) cancelHandler(id string, cause error) {
	s.mu.Lock()
	cancel := s.running[id]
	s.mu.Unlock()
	if cancel != nil {
		(*cancel)(cause)
	}
}

// takeTurn keeps a task from ending between a report and its progress, so that
// no progress follows the end (C-68). It gives up after a second: a client that
// does not read its stream must not keep its task alive.
func (s *Server) takeProgressTurn(id string, wanted bool) (send ProgressFunc, giveBack func()) {
	if turn, ok := s.progress.Load(id); ok && wanted {
		turn := turn.(chan ProgressFunc)
		select {
		case send = <-turn:
			return send, func() { turn <- send }
		case <-time.After(time.Second):
		}
	}
	return nil, func() {}
}

// taskHost stands behind a stored task.
type taskHost struct {
	server *Server
	record Record // as it was when the attempt began
	// attempt is the context that the handler got, cancel ends it.
	attempt context.Context
	cancel  context.CancelCauseFunc
	asking  atomic.Int32 // questions that wait for their answers
}

// mine makes an event only while the attempt still has the task.
func (h *taskHost) restrictToRun(e event) func(Record) event {
	return func(r Record) event {
		if !h.record.isSameRun(r) {
			return event{}
		}
		return e
	}
}

// Report implements Host.
func (h *taskHost) Report(ctx context.Context, done, total float64, message string) {
	id := h.record.ID
	send, giveBack := h.server.takeProgressTurn(id, true)
	defer giveBack()
	_, err := h.server.applyEvent(ctx, id, h.restrictToRun(event{kind: eventReport, message: formatStatus(done, total, message)}))
	if err != nil {
		// The task has ended, or there is no room, or the next report will do.
		_ = h.server.explainQuota(h.record.asCaller(), err, "tool", h.record.Tool, "task", LogID(h.record.Principal, id))
		h.cancelIfLost(err)
		return
	}
	if send != nil {
		send(id, done, total, message)
	}
}

// Ask implements Host. It stores the question before anybody can see it, gives the slot back and
// waits. A step that was answered in an earlier attempt returns at once.
func (h *taskHost) Ask(ctx context.Context, in Input) (json.RawMessage, error) {
	s, id := h.server, h.record.ID
	if err := (Caller{CanAsk: h.record.CanAsk}).checkCanAsk(in, true); err != nil {
		return nil, err
	}
	most, full := s.options.Limits.Questions, false
	record, err := s.moveTask(ctx, s.newTaskRetry(), id, func(r Record) event {
		if full = r.findInput(in.Key) < 0 && len(r.Inputs) >= most; full || r.findInput(in.Key) >= 0 {
			return event{} // one too many, or asked in an earlier attempt
		}
		return h.restrictToRun(event{kind: eventAsk, input: in})(r)
	})
	if full {
		return nil, s.Limited(h.record.asCaller(), "questions", most, "task", LogID(h.record.Principal, id), "tool", h.record.Tool)
	}
	if err != nil && !errors.Is(err, errVoid) {
		refusal := s.explainQuota(h.record.asCaller(), err, "task", LogID(h.record.Principal, id), "tool", h.record.Tool)
		if refusal != nil {
			return nil, refusal
		}
		return nil, h.explainUnasked(ctx, in.Key, err)
	}
	if response, ok, err := readAnswer(record, in.Key); ok || err != nil {
		return response, err
	}
	if slots, ok := s.executor.(Slots); ok {
		// A handler has one slot, however many of its goroutines ask.
		if h.asking.Add(1) == 1 {
			slots.Release(h.record.toSubmission())
		}
		defer func() {
			if h.asking.Add(-1) == 0 {
				slots.Acquire(h.attempt, h.record.toSubmission())
			}
		}()
	}
	for {
		record, err = s.awaitVersion(ctx, s.newTaskRetry(), id, record.Version)
		if err != nil {
			h.withdrawQuestion(ctx, in.Key)
			return nil, h.explainUnasked(ctx, in.Key, err)
		}
		if !record.Done() && !h.record.isSameRun(record) {
			h.cancel(errStolen)
		}
		if response, ok, err := readAnswer(record, in.Key); ok || err != nil {
			return response, err
		}
	}
}

// withdraw takes a question back that the handler no longer waits for. When
// the server closes, it stays: the next attempt asks for the same step.
func (h *taskHost) withdrawQuestion(ctx context.Context, key string) {
	if h.server.closing.Err() != nil || errors.Is(context.Cause(ctx), errStolen) {
		return
	}
	_, err := h.server.applyEvent(context.WithoutCancel(ctx), h.record.ID, func(r Record) event {
		if i := r.findInput(key); i < 0 || r.Inputs[i].State != InputOutstanding {
			return event{} // settled meanwhile
		}
		return h.restrictToRun(event{kind: eventWithdraw, key: key})(r)
	})
	if err != nil && !errors.Is(err, errTerminal) && !errors.Is(err, ErrNoRecord) && !errors.Is(err, errVoid) {
		h.server.logger.Warn("question not withdrawn", "task", LogID(h.record.Principal, h.record.ID), "key", key, "error", err)
	}
}

// notAsked is the error of a question that could not be asked or awaited. What the
// store said is the operator's: the handler may well pass its errors on.
func (h *taskHost) explainUnasked(ctx context.Context, key string, err error) error {
	h.cancelIfLost(err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errTerminal):
	case errors.Is(err, ErrNoRecord):
		err = ErrExpired
	default:
		if !errors.Is(err, ErrServerClosed) {
			h.server.logger.Error("question not asked", "task", LogID(h.record.Principal, h.record.ID), "key", key, "error", err)
		}
		err = ErrServerClosed // the store is called again and again until then
	}
	return fmt.Errorf("mcptask: question %q: %w", key, err)
}

// lose ends the handler's context if an event was refused because the task is no
// longer its own.
func (h *taskHost) cancelIfLost(err error) {
	switch {
	case errors.Is(err, errVoid):
		h.cancel(errStolen)
	case errors.Is(err, ErrNoRecord):
		h.cancel(ErrExpired)
	}
}

// answered is the response to a question once it is settled.
func readAnswer(r Record, key string) (response json.RawMessage, ok bool, err error) {
	i := r.findInput(key)
	if i < 0 {
		return nil, false, fmt.Errorf("mcptask: question %q: %w", key, errVoid)
	}
	switch r.Inputs[i].State {
	case InputAnswered:
		if failed := r.Inputs[i].Error; failed != nil {
			// Its text only: their error is not the one that the task ends with.
			return nil, false, fmt.Errorf("%w: %s", ErrCannotAsk, failed.Error())
		}
		return r.Inputs[i].Response, true, nil
	case InputSuperseded:
		if !r.Done() {
			return nil, false, errWithdrawn
		}
		return nil, false, ErrCancelled
	}
	return nil, false, nil
}
