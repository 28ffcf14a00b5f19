package mcptask

import (
	"context"
	"errors"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
)

// The causes of the end of a handler's context.
var (
	errWaitOver     = errors.New("mcptask: the wait of a plain call is over")
	errDeadlineOver = errors.New("mcptask: the tool's deadline is over")
	errParked       = errors.New("mcptask: the run ends until the question is answered")
)

// run is a handler of this process. Server.mu guards it.
type run struct {
	// cancel ends the handler's context. Before there is one, early is why it will end.
	cancel context.CancelCauseFunc
	early  error
	// createdAt is that of a task that is being stored, or zero.
	createdAt time.Time
	// record is the newest that is known of the attempt; its Version is 0 before the attempt has begun.
	record Record
	// isAwaited says that the call that has made the task waits for its end.
	isAwaited bool
	// bound calls the handler with the arguments of the call that has made the task. If it is nil, they are read from
	// the record.
	bound boundCall
	// life is the context of the RunFunc of an attempt that has begun.
	life context.Context
	// decided is closed when the attempt has begun, or will not begin.
	decided chan struct{}
}

// runTaskApart is runTask in a goroutine of its own, so that a handler that ends its goroutine does no harm to the
// executor.
func (s *Server) runTaskApart(life context.Context, id string) RunEnd {
	ended := make(chan RunEnd, 1)
	go func() {
		defer guard.Recover(s.logger, "task")
		end := RunLeft // which stays if the goroutine ends: the next call finds out how the task has ended
		defer func() { ended <- end }()
		end = s.runTask(life, id)
	}()
	return <-ended
}

// runTask is the RunFunc. It runs one attempt of a task's handler, from the record
// to the outcome.
func (s *Server) runTask(life context.Context, id string) (end RunEnd) {
	defer guard.Then(s.logger, "task", func() { end = RunLeft }) // after finishAttempt has stored the outcome
	if life.Err() != nil {
		return s.endUnstarted(life, id)
	}
	r, leave := s.enterRun(id, time.Time{})
	defer leave()
	s.awaitOther(life, id, r)
	if !s.clockKnown.Load() { // an executor of the user's has been fast
		_ = s.ensureLease(life) // if it fails, the first renewal that succeeds makes up for it
	}
	looks := 0
	record, err := s.moveTask(life, s.newTaskRetry(), Record{ID: id}, func(known Record) (begin event) {
		begin, end = s.decideStart(known)
		if looks++; looks > 1 && begin.kind == eventFinish { // another run has begun meanwhile, and may live
			return event{}
		}
		return begin
	})
	switch {
	case errors.Is(err, errVoid) && end != RunLeft:
		return end
	case errors.Is(err, errVoid), err != nil && !isOver(err): // this server cannot run it, or closes before the store is back
		return s.leaveUnstarted(id)
	case err != nil:
		return RunOver
	case record.Done():
		s.warnOfLoss(record)
		s.cancelHandler(id, errEndedElsewhere)
		return RunOver
	}
	if record.Claim.Worker != s.nameWorker() { // another server has taken it, before the store's answer to the start was here
		return RunOver
	}
	return s.runAttempt(life, r, record)
}

// decideStart returns the event that begins a run of a task. That is a start of the handler, or the end of a
// task that has lost its run and may not have another one. If it returns no event, end is that of the run. An executor
// may deliver a task twice.
func (s *Server) decideStart(r Record) (begin event, end RunEnd) {
	_, isHere := s.catalog.findTool(r.Tool)
	isOwn := s.engine == nil && r.Claim.State == ClaimRunning && r.Claim.Worker == s.worker
	start := event{kind: eventStart, claim: Claim{Worker: s.nameWorker(), State: ClaimRunning}, lost: r.isRunLost()}
	switch {
	case r.Done(), s.isHeldByOther(r), isOwn && (s.isRunning(r) || s.closing.Err() != nil):
		return event{}, RunOver // the run that has it goes on
	case !isHere:
		return event{}, RunLeft
	case isOwn && s.line != nil: // it was created as running, and the store's answer was lost
		start.again, start.lost = true, false
		return start, RunOver
	case s.engine != nil && r.isParked() && !r.CancelRequested:
		return event{}, RunWaits // without an engine, the handler starts at once and waits itself
	case s.isRunnable(r):
		return start, RunOver // an engine starts lost runs again itself
	}
	return newLostEnd(r), RunLeft
}

// endUnstarted is runTask with a context that has ended.
func (s *Server) endUnstarted(life context.Context, id string) RunEnd {
	if !errors.Is(context.Cause(life), ErrCancelled) {
		return s.leaveUnstarted(id)
	}
	_, err := s.moveTask(s.drained, s.newTaskRetry(), Record{ID: id}, func(Record) event {
		return event{kind: eventFinish, outcome: Outcome{Kind: OutcomeCancelled}}
	})
	if err != nil && !isOver(err) {
		return RunLeft
	}
	s.cancelHandler(id, ErrCancelled)
	return RunOver
}

// leaveUnstarted leaves a task that this server cannot run. An engine runs it elsewhere. Another executor may have
// passed it on from a server that lives and renews its lease, so leaveUnstarted gives the task to all servers.
func (s *Server) leaveUnstarted(id string) RunEnd {
	if s.mayPassTasks() {
		left := Claim{State: ClaimLeft} // this server could get it again
		if s.closing.Err() != nil {
			left.State = ClaimWaiting
		}
		_, err := s.moveTask(s.drained, s.newRequestRetry(), Record{ID: id}, func(r Record) event {
			if r.Claim.State == ClaimRunning {
				return event{}
			}
			return event{kind: eventLeave, claim: left}
		})
		if err != nil && !isOver(err) && s.drained.Err() == nil {
			s.logger.Warn("task not left to other servers", "error", err)
		}
	}
	return RunLeft
}

// enterRun makes a run, and enters it for cancelHandler unless there is another run of the
// task. createdAt is that of a task that is not stored yet, or zero.
func (s *Server) enterRun(id string, createdAt time.Time) (r *run, leave func()) {
	unfollow := s.Follow(id)
	r = &run{createdAt: createdAt, decided: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[id] == nil {
		s.running[id] = r
	}
	return r, func() {
		unfollow()
		s.mu.Lock()
		defer s.mu.Unlock()
		r.decide()
		if s.running[id] == r {
			delete(s.running, id)
			s.progress.Delete(id)
		}
	}
}

// decide notes that the attempt has begun, or will not begin. Server.mu is held.
func (r *run) decide() {
	select {
	case <-r.decided:
	default:
		close(r.decided)
	}
}

// awaitOther waits until another run of a task that is starting in this process has begun, or will not begin. An executor
// may deliver a task twice at once. In between, the record already says that the first run has begun, and this server does
// not know yet that it has. An engine takes the first run for lost then.
func (s *Server) awaitOther(life context.Context, id string, r *run) {
	if s.engine != nil {
		return
	}
	var waited *run
	for {
		s.mu.Lock()
		other := s.running[id]
		if other == nil { // it will not begin, so r is the one that others wait for
			s.running[id], other = r, r
		}
		s.mu.Unlock()
		if other == r || other == waited {
			return
		}
		select {
		case <-other.decided:
			waited = other
		case <-life.Done():
			return
		}
	}
}

// reservation is a free slot for the handler of a task that is not stored yet.
type reservation struct {
	server     *Server
	submission Submission
	run        *run
	leave      func()
}

// reserve takes a slot for a new task, if one is free, and makes the record that of a running
// task. So the start of the handler need not be stored apart. It returns nil otherwise.
func (s *Server) reserve(fresh *Record, call CallRequest) *reservation {
	if s.line == nil || !s.line.reserve(fresh.toSubmission()) {
		return nil
	}
	v := &reservation{server: s, submission: fresh.toSubmission()}
	v.run, v.leave = s.enterRun(fresh.ID, fresh.CreatedAt) // before the task is stored, so that no cancellation is missed
	v.run.isAwaited, v.run.bound = call.Mode != ModeTask, call.bound
	fresh.Phase, fresh.Attempt, fresh.Tries, fresh.Claim.State = PhaseRunning, 1, 1, ClaimRunning
	fresh.addMoment(EventStarted, nameShort(fresh.Claim.Worker), event{at: fresh.CreatedAt})
	return v
}

// giveUp frees the slot. v may be nil.
func (v *reservation) giveUp() {
	if v != nil {
		v.leave()
		v.server.line.Release(v.submission)
	}
}

// start runs the handler of the task, which is stored.
func (v *reservation) start(record Record) error {
	err := v.server.line.start(v.submission, func(life context.Context) {
		defer guard.Recover(v.server.logger, "task")
		defer v.leave()
		v.server.runAttempt(life, v.run, record)
	})
	if err != nil {
		v.giveUp()
	}
	return err
}

// beginRun makes a run the one that cancelHandler finds. It ends a former run of the
// task, which this process has lost and got back. early is why the run must end before its handler
// has begun.
func (s *Server) beginRun(life context.Context, r *run, record Record, cancel context.CancelCauseFunc) (early error) {
	s.mu.Lock()
	r.life, r.cancel, r.record = life, cancel, record
	r.decide()
	early = r.early
	former := s.running[record.ID]
	s.running[record.ID] = r
	s.mu.Unlock()
	if former == r {
		return early
	}
	if former != nil && former.cancel != nil {
		former.cancel(ErrSuperseded)
	}
	// A cancellation in between has reached the former run only. getRecord cancels the handler if
	// the record says so. If the store fails, a later call tells.
	_, _ = s.getRecord(s.drained, s.newRequestRetry(), record.ID)
	return early
}

// runAttempt runs an attempt that is stored as begun.
func (s *Server) runAttempt(life context.Context, r *run, record Record) (end RunEnd) {
	ctx, cancel := context.WithCancelCause(life)
	defer cancel(nil)
	early := s.beginRun(life, r, record, cancel)
	if record.CancelRequested {
		early = ErrCancelled
	}
	host := &taskHost{server: s, record: record, cancel: cancel}
	ctx, ended := s.hookRun(ctx, RunInfo{Task: record, IsAwaited: r.isAwaited})
	// This outcome stays if the handler ends its goroutine, as testing.T.FailNow does.
	outcome := newInternalOutcome()
	defer func() {
		end = s.finishAttempt(ctx, host, *outcome)
		ended(newRunResult(ctx, *outcome))
	}()
	t, ok := s.catalog.findTool(record.Tool)
	if early != nil || !ok { // whoever has started it knows that the tool is here
		cancel(early)
		outcome = &Outcome{Kind: OutcomeCancelled}
		return RunOver
	}
	// The handler ends when the task's ttl or the tool's deadline is over.
	ctx, cancelTTL := context.WithTimeoutCause(ctx, record.ExpiresAt.Sub(s.SureNow()), ErrExpired)
	defer cancelTTL()
	ctx, cancelDeadline := limit.Timeout(ctx, t.spec.Policy.Deadline, errDeadlineOver)
	defer cancelDeadline()
	host.attempt = ctx
	upfront := CallRequest{Answers: record.collectResponses(), Ask: host.Ask}
	answers, refusal, err := s.settleUpfrontQuestions(ctx, Caller{CanAsk: record.CanAsk}, t, upfront)
	switch {
	case err != nil:
		outcome = newFailureOutcome(ctx, t, err)
	case refusal != nil:
		outcome = refusal.Outcome
	default:
		task := &Task{
			id:        record.ID,
			principal: record.Principal,
			attempt:   record.Attempt,
			trace:     record.Trace,
			host:      host,
			upfront:   pairUpfrontAnswers(t, answers),
			schemas:   &s.schemas,
		}
		bound := r.bound
		if r.bound = nil; bound == nil { // the handler may run for long, and need the arguments only at first
			bound = t.bindStored(record.Arguments)
		}
		outcome = s.limitOutcome(ctx, record.asCaller(), record.ID, record.Tool, s.invokeHandler(ctx, t, task, bound))
	}
	return RunOver
}

// isHeldByOther reports whether the handler of a task runs, or has run, at another worker that may be alive.
func (s *Server) isHeldByOther(r Record) bool {
	return r.Claim.State == ClaimRunning && r.Claim.Worker != s.worker && r.Claim.Worker != s.nameWorker()
}

// isRunning reports whether the attempt of a record runs here, and its executor has not given it up.
func (s *Server) isRunning(record Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.running[record.ID]
	return r != nil && r.record.Version > 0 && record.isSameRun(r.record) && !errors.Is(context.Cause(r.life), ErrSuperseded)
}

// invokeHandler calls a handler and returns the outcome, whatever the handler does.
func (s *Server) invokeHandler(ctx context.Context, t *registeredTool, task *Task, call boundCall) (outcome *Outcome) {
	logID := LogID(task.principal, task.id)
	defer func() {
		if outcome == nil {
			guard.LogExit(s.logger, "handler", "tool", t.spec.Name, "task", logID)
			return
		}
		outcome = s.repairOutcome(t.spec.Name, task, outcome)
	}()
	defer guard.Then(s.logger, "handler", func() { outcome = newInternalOutcome() }, "tool", t.spec.Name, "task", logID)
	handlerCtx := ctx
	if s.options.Context != nil {
		built, err := s.options.Context(ctx, task.principal)
		if err != nil {
			s.logger.ErrorContext(ctx, "no context for the principal", "task", logID, "principal", task.principal, "error", err)
			return &Outcome{Kind: OutcomeError, Error: hideInternals(err)}
		}
		handlerCtx = built
	}
	result, err := call(handlerCtx, task)
	if err != nil {
		return newFailureOutcome(ctx, t, err)
	}
	if t.output != nil && !result.IsError {
		// Finished work counts even if the context has ended meanwhile.
		if err := t.output.Check(context.WithoutCancel(ctx), result.Structured); err != nil {
			s.logger.ErrorContext(ctx, "output does not fit its schema", "tool", t.spec.Name, "task", logID, "error", err)
			return &Outcome{Kind: OutcomeError, Error: Errorf(CodeInternalError, "the tool's output does not fit its schema")}
		}
	}
	data, err := encodeResult(t.raw, result)
	if err != nil {
		s.logger.ErrorContext(ctx, "output not encoded", "tool", t.spec.Name, "task", logID, "error", err)
		return newInternalOutcome()
	}
	if !result.isBounded(t.output != nil && !result.IsError) {
		s.logger.ErrorContext(ctx, "output beyond the bounds", "tool", t.spec.Name, "task", logID, "error", errUnbounded)
		return &Outcome{Kind: OutcomeError, Error: errUnbounded}
	}
	return &Outcome{Kind: OutcomeResult, Result: data, IsError: result.IsError}
}

// finishAttempt stores the outcome of an attempt, unless another run has the task.
func (s *Server) finishAttempt(ctx context.Context, host *taskHost, outcome Outcome) RunEnd {
	attempt := host.record
	end := event{kind: eventFinish, outcome: outcome, report: host.takeReport()}
	how := RunOver
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrSuperseded):
		return RunOver // another run has the task and ends it
	case errors.Is(cause, errParked) && (outcome.Kind != OutcomeResult || outcome.IsError):
		end.kind, end.claim, end.park, how = eventHandOver, s.claimAfterRun(), host.listParked(), RunWaits
	case outcome.Kind != OutcomeCancelled:
	case errors.Is(cause, context.Canceled): // the server closes, and another one may go on
		how = RunLeft
		switch {
		case s.ownStore:
			return how
		case s.allowsRestart(attempt):
			end.kind, end.claim = eventHandOver, s.claimAfterRun()
		case end.report != nil:
			end.kind = eventReport
		default:
			return how
		}
	}
	stored, err := s.moveTask(withValuesOf(ctx, s.drained), s.newTaskRetry(), s.knownRecord(attempt), ifSameRun(attempt, end))
	switch {
	case isOver(err):
		return RunOver
	case err != nil:
		s.logger.ErrorContext(ctx, "task not stored", "task", LogID(attempt.Principal, attempt.ID), "tool", attempt.Tool, "error", err)
		return RunLeft
	case how == RunWaits && !stored.isParked(): // the answer has come meanwhile
		return RunLeft
	}
	return how
}

// mixedContext ends with one context and has the values of another.
type mixedContext struct {
	context.Context
	values context.Context
}

// withValuesOf returns a context that ends with end and has the values of ctx, which may have ended.
func withValuesOf(ctx, end context.Context) context.Context { return mixedContext{end, ctx} }

// Value implements context.Context.
func (c mixedContext) Value(key any) any { return c.values.Value(key) }

// cancelHandler ends the context of a task's handler if it runs in this process.
func (s *Server) cancelHandler(id string, cause error) {
	s.mu.Lock()
	var cancel context.CancelCauseFunc
	if r := s.running[id]; r != nil {
		if cancel = r.cancel; cancel == nil {
			r.early = cause
		}
	}
	s.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// stopRun ends the context of a task's handler, unless the handler is that of a later task with the
// same name.
func (s *Server) stopRun(record Record, cause error) {
	s.mu.Lock()
	r := s.running[record.ID]
	isLater := r != nil && !r.createdAt.IsZero() && !r.createdAt.Equal(record.CreatedAt)
	s.mu.Unlock()
	if !isLater {
		s.cancelHandler(record.ID, cause)
	}
}

// noteRun notes a version of a record for the run that it belongs to.
func (s *Server) noteRun(record Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.running[record.ID]; r != nil && record.Version > r.record.Version && record.isSameRun(r.record) {
		r.record = record
	}
}

// knownRecord returns the newest record that is known of an attempt.
func (s *Server) knownRecord(attempt Record) Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.running[attempt.ID]; r != nil && r.record.isSameRun(attempt) {
		return r.record
	}
	return attempt
}

// isStolen reports whether a record shows that another run has a task that runs here.
func (s *Server) isStolen(record Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.running[record.ID]
	return r != nil && r.record.Version > 0 && record.Version > r.record.Version && !record.isSameRun(r.record)
}

// listRuns returns the tasks whose handlers run here.
func (s *Server) listRuns() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]string, 0, len(s.running))
	for id, r := range s.running {
		if r.record.Version > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// hasBegun reports whether an attempt of a task has begun here.
func (s *Server) hasBegun(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.running[id]
	return r != nil && r.record.Version > 0
}
