package taskserver

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pool"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The causes of the end of a handler's context.
var (
	errWaitOver = errors.New("mcptask: the wait of a plain call is over")
	errParked   = errors.New("mcptask: the run ends until the question is answered")
)

// run is a handler of this process. Backend.mu guards it.
type run struct {
	// cancel ends the handler's context. Before there is one, early is why it will end.
	cancel context.CancelCauseFunc
	early  error
	// createdAt is that of a task that is being stored, or zero.
	createdAt time.Time
	// record is the newest that is known of the attempt; its Version is 0 before the attempt has begun.
	record taskstore.Record
	// isAwaited says that the call that has made the task waits for its end.
	isAwaited bool
	// bound calls the handler with the arguments of the call that has made the task. If it is nil, they are read from
	// the record.
	bound mcptask.BoundCall
	// life is the context of the RunFunc of an attempt that has begun.
	life context.Context
	// decided is closed when the attempt has begun, or will not begin.
	decided chan struct{}
}

// runTaskApart is runTask in a goroutine of its own, so that a handler that ends its goroutine does no harm to the
// executor.
func (b *Backend) runTaskApart(life context.Context, id string) RunEnd {
	ended := make(chan RunEnd, 1)
	go func() {
		defer guard.Recover(b.logger, "task")
		end := RunLeft // which stays if the goroutine ends: the next call finds out how the task has ended
		defer func() { ended <- end }()
		end = b.runTask(life, id)
	}()
	return <-ended
}

// runTask is the RunFunc. It runs one attempt of a task's handler, from the record
// to the outcome.
func (b *Backend) runTask(life context.Context, id string) (end RunEnd) {
	defer guard.Then(b.logger, "task", func() { end = RunLeft }) // after finishAttempt has stored the outcome
	if life.Err() != nil {
		return b.endUnstarted(life, id)
	}
	r, leave := b.enterRun(id, time.Time{})
	defer leave()
	return b.runEntered(life, id, r)
}

// runEntered is runTask for a run that is entered.
func (b *Backend) runEntered(life context.Context, id string, r *run) (end RunEnd) {
	b.awaitOther(life, id, r)
	if !b.clockKnown.Load() { // an executor of the user's has been fast
		_ = b.ensureLease(life) // if it fails, the first renewal that succeeds makes up for it
	}
	looks := 0
	record, err := b.moveTask(life, b.newTaskRetry(), taskstore.Record{ID: id}, func(known taskstore.Record) (begin event) {
		begin, end = b.decideStart(known)
		if looks++; looks > 1 && begin.kind == eventFinish { // another run has begun meanwhile, and may live
			return event{}
		}
		return begin
	})
	switch {
	case errors.Is(err, errVoid) && end != RunLeft:
		return end
	case errors.Is(err, errVoid), err != nil && !isOver(err): // this server cannot run it, or closes before the store is back
		return b.leaveUnstarted(id)
	case err != nil:
		return RunOver
	case record.Done():
		b.warnOfLoss(record)
		b.cancelHandler(id, errEndedElsewhere)
		return RunOver
	}
	if record.Claim.Worker != b.nameWorker() { // another server has taken it, before the store's answer to the start was here
		return RunOver
	}
	return b.runAttempt(life, r, record)
}

// decideStart returns the event that begins a run of a task. That is a start of the handler, or the end of a
// task that has lost its run and may not have another one. If it returns no event, end is that of the run. An executor
// may deliver a task twice.
func (b *Backend) decideStart(r taskstore.Record) (begin event, end RunEnd) {
	_, isHere := b.catalog.findTool(r.Tool)
	isOwn := b.engine == nil && r.Claim.State == taskstore.ClaimRunning && r.Claim.Worker == b.worker
	start := event{kind: eventStart, claim: taskstore.Claim{Worker: b.nameWorker(), State: taskstore.ClaimRunning}, lost: isRunLost(&r)}
	switch {
	case r.Done(), b.RunsElsewhere(r), isOwn && (b.isRunning(r) || b.closing.Err() != nil), b.line != nil && !isOwn && !r.IsFree():
		return event{}, RunOver // the run that has it goes on
	case !isHere, b.isForOthers(&r):
		return event{}, RunLeft
	case isOwn && b.line != nil: // it was created as running, and the store's answer was lost
		start.again, start.lost = true, false
		return start, RunOver
	case b.engine != nil && isParked(&r) && !r.CancelRequested:
		return event{}, RunWaits // without an engine, the handler starts at once and waits itself
	case b.isRunnable(r):
		return start, RunOver // an engine starts lost runs again itself
	}
	return newLostEnd(r), RunLeft
}

// misfitPatience is how long a server leaves a task to others whose arguments do not fit its tool.
const misfitPatience = 10 * time.Minute

// mostMisfits bounds the tasks that a server leaves to others, as it knows them.
const mostMisfits = 4096

// leftTask is a task that is left to other servers, after as many attempts, and since when.
type leftTask struct {
	attempt int
	since   time.Time
}

// isForOthers reports whether a task is left to other servers: its arguments do not fit its tool here, and other workers
// live. One of them may have the next version of the program, which is being rolled out and has created the task.
func (b *Backend) isForOthers(r *taskstore.Record) bool {
	tool, _ := b.catalog.findTool(r.Tool)
	if r.CancelRequested || b.findBound(r.ID) != nil {
		return false
	}
	if _, misfit := tool.bindStored(r.Arguments); misfit == nil || !b.hasCompany() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	m, isKnown := b.left[r.ID]
	if !isKnown && len(b.left) == mostMisfits {
		maps.DeleteFunc(b.left, func(_ string, m leftTask) bool { return time.Since(m.since) > 2*misfitPatience })
		if len(b.left) == mostMisfits { // they are left for as long as there is no room
			return true
		}
	}
	if !isKnown || m.attempt != r.Attempt { // a run elsewhere shows that others can run it, so a later loss begins the wait anew
		m = leftTask{r.Attempt, time.Now()}
		b.left[r.ID] = m
	}
	return time.Since(m.since) < misfitPatience
}

// leftUntil returns until when a task is left to other servers. It returns false if it is not.
func (b *Backend) leftUntil(id string) (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, ok := b.left[id]
	until := m.since.Add(misfitPatience)
	return until, ok && time.Now().Before(until)
}

// hasCompany reports whether other workers live, or may live.
func (b *Backend) hasCompany() bool {
	if b.ownStore {
		return false
	}
	inspector, ok := b.store.(taskstore.Inspector)
	if !ok {
		return true
	}
	workers, err := callOnce(b.drained, b.newRequestRetry(), "Workers", inspector.Workers)
	return err != nil || slices.ContainsFunc(workers, func(w taskstore.WorkerLease) bool {
		name, _, _ := strings.Cut(w.Worker, "/") // a finder of orphans has the name of its server
		return name != "" && name != b.worker && w.Worker != b.nameWorker() && w.Until.After(b.Now())
	})
}

// endUnstarted is runTask with a context that has ended.
func (b *Backend) endUnstarted(life context.Context, id string) RunEnd {
	if !errors.Is(context.Cause(life), mcptask.ErrCancelled) {
		return b.leaveUnstarted(id)
	}
	_, err := b.moveTask(b.drained, b.newTaskRetry(), taskstore.Record{ID: id}, func(taskstore.Record) event {
		return event{kind: eventFinish, outcome: taskstore.Outcome{Kind: taskstore.OutcomeCancelled}}
	})
	if err != nil && !isOver(err) {
		return RunLeft
	}
	b.cancelHandler(id, mcptask.ErrCancelled)
	return RunOver
}

// leaveUnstarted leaves a task that this server cannot run. An engine runs it elsewhere. Another executor may have
// passed it on from a server that lives and renews its lease, so leaveUnstarted gives the task to all servers.
func (b *Backend) leaveUnstarted(id string) RunEnd {
	if b.mayPassTasks() {
		left := taskstore.Claim{Worker: b.nameNobody()} // this server could get it again
		if b.closing.Err() != nil {
			left.Worker = ""
		}
		_, err := b.moveTask(b.drained, b.newRequestRetry(), taskstore.Record{ID: id}, func(r taskstore.Record) event {
			if r.Claim.State == taskstore.ClaimRunning {
				return event{}
			}
			return event{kind: eventLeave, claim: left}
		})
		if err != nil && !isOver(err) && b.drained.Err() == nil {
			b.logger.Warn("task not left to other servers", "error", err)
		}
	}
	return RunLeft
}

// enterRun makes a run, and enters it for cancelHandler unless there is another run of the
// task. createdAt is that of a task that is not stored yet, or zero.
func (b *Backend) enterRun(id string, createdAt time.Time) (r *run, leave func()) {
	unfollow := b.Follow(id)
	r = &run{createdAt: createdAt, decided: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[id] == nil {
		b.running[id] = r
	}
	return r, func() {
		unfollow()
		b.mu.Lock()
		defer b.mu.Unlock()
		r.decide()
		if b.running[id] == r {
			delete(b.running, id)
			b.progress.Delete(id)
		}
	}
}

// decide notes that the attempt has begun, or will not begin. Backend.mu is held.
func (r *run) decide() {
	select {
	case <-r.decided:
	default:
		close(r.decided)
	}
}

// awaitOther waits until another run of a task that is starting in this process has begun, or will not begin. An
// executor may deliver a task twice at once. In between, the record already says that the first run has begun, and this
// server does not know yet that it has. An engine takes the first run for lost then.
func (b *Backend) awaitOther(life context.Context, id string, r *run) {
	if b.engine != nil {
		return
	}
	var waited *run
	for {
		b.mu.Lock()
		other := b.running[id]
		if other == nil { // it will not begin, so r is the one that others wait for
			b.running[id], other = r, r
		}
		b.mu.Unlock()
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
	backend *Backend
	place   pool.Place
	run     *run
	leave   func()
}

// reserve takes a slot for a new task, if one is free, and makes the record that of a running
// task. So the start of the handler need not be stored apart. It returns nil otherwise.
func (b *Backend) reserve(fresh *taskstore.Record, call CallRequest) *reservation {
	if b.line == nil {
		return nil
	}
	v := &reservation{backend: b, place: b.line.place(fresh.Account, fresh.Principal, fresh.Tool)}
	if !b.line.mayReserve(v.place) || !b.line.Reserve(v.place) {
		return nil
	}
	v.run, v.leave = b.enterRun(fresh.ID, fresh.CreatedAt) // before the task is stored, so that no cancellation is missed
	v.run.isAwaited, v.run.bound = call.Mode != ModeTask, call.bound
	fresh.Phase, fresh.Attempt, fresh.Tries, fresh.Claim.State = taskstore.PhaseRunning, 1, 1, taskstore.ClaimRunning
	addMoment(fresh, taskstore.EventStarted, DescribeWorker(fresh.Claim.Worker), event{at: fresh.CreatedAt})
	return v
}

// giveUp frees the slot. v may be nil.
func (v *reservation) giveUp() {
	if v != nil {
		v.leave()
		v.backend.line.Pool.Release(v.place)
	}
}

// start runs the handler of the task, which is stored.
func (v *reservation) start(record taskstore.Record) error {
	err := v.backend.line.Start(v.place, func(life context.Context) {
		defer guard.Recover(v.backend.logger, "task")
		defer v.leave()
		v.backend.runAttempt(life, v.run, record)
	})
	if err != nil {
		v.giveUp()
	}
	return err
}

// beginRun makes a run the one that cancelHandler finds. It ends a former run of the
// task, which this process has lost and got back. early is why the run must end before its handler
// has begun.
func (b *Backend) beginRun(life context.Context, r *run, record taskstore.Record, cancel context.CancelCauseFunc) (early error) {
	b.mu.Lock()
	r.life, r.cancel, r.record = life, cancel, record
	r.decide()
	early = r.early
	former := b.running[record.ID]
	b.running[record.ID] = r
	b.mu.Unlock()
	if former == r {
		return early
	}
	if former != nil && former.cancel != nil {
		former.cancel(mcptask.ErrSuperseded)
	}
	// A cancellation in between has reached the former run only. getRecord cancels the handler if
	// the record says so. If the store fails, a later call tells.
	_, _ = b.getRecord(b.drained, b.newRequestRetry(), record.ID)
	return early
}

// runAttempt runs an attempt that is stored as begun.
func (b *Backend) runAttempt(life context.Context, r *run, record taskstore.Record) (end RunEnd) {
	ctx, cancel := context.WithCancelCause(life)
	defer cancel(nil)
	early := b.beginRun(life, r, record, cancel)
	if record.CancelRequested {
		early = mcptask.ErrCancelled
	}
	t, ok := b.catalog.findTool(record.Tool)
	host := &taskHost{backend: b, record: record, cancel: cancel, turn: make(chan struct{}, 1)}
	var deadline time.Duration
	if ok {
		deadline = t.Spec.Policy.Deadline
	}
	host.watch = startStopwatch(record.Worked, deadline, func() { cancel(mcptask.ErrDeadline) })
	defer host.watch.stop()
	ctx, ended := b.hookRun(ctx, RunInfo{Task: record, IsAwaited: r.isAwaited})
	// This outcome stays if the handler ends its goroutine, as testing.T.FailNow does.
	outcome := newInternalOutcome()
	defer func() {
		end = b.finishAttempt(ctx, host, *outcome)
		ended(newRunResult(ctx, *outcome))
	}()
	if early != nil || !ok { // whoever has started it knows that the tool is here
		cancel(early)
		outcome = &taskstore.Outcome{Kind: taskstore.OutcomeCancelled}
		return RunOver
	}
	// The handler ends when the task's ttl is over, or the tool's deadline.
	ctx, cancelTTL := context.WithTimeoutCause(ctx, record.ExpiresAt.Sub(b.SureNow()), mcptask.ErrExpired)
	defer cancelTTL()
	host.attempt = ctx
	bound := r.bound
	if r.bound = nil; bound == nil { // the handler may run for long, and need the arguments only at first
		bound = b.findBound(record.ID)
	}
	var answers []taskstore.Input
	var refusal *CallReply
	var err error
	if bound == nil {
		var misfit *mcptask.Error
		if bound, misfit = t.bindStored(record.Arguments); misfit != nil {
			b.Notice(slog.LevelWarn, "a stored task ends: its arguments do not fit its tool", "task", taskstore.LogID(record.Principal, record.ID), "tool", record.Tool, "error", misfit)
			err = misfit
		}
	}
	if err == nil {
		upfront := CallRequest{Answers: collectResponses(&record), Ask: host.Ask, inRun: true}
		answers, refusal, err = b.askUpfront(ctx, Caller{CanAsk: record.CanAsk}, t, upfront)
	}
	switch {
	case err != nil:
		outcome = b.newFailureOutcome(ctx, t, err)
	case refusal != nil:
		outcome = refusal.Outcome
	default:
		task := mcptask.NewTask(host, mcptask.TaskInfo{
			ID:        record.ID,
			Principal: record.Principal,
			Created:   record.CreatedAt,
			Attempt:   record.Attempt,
			Trace:     record.Trace,
			Questions: t.Spec.Questions,
			Answers:   listResponses(answers),
		})
		outcome = b.limitOutcome(ctx, callerOf(&record), record.ID, record.Tool, b.invokeHandler(ctx, t, task, bound))
	}
	return RunOver
}

// RunsElsewhere reports whether the handler of a task runs, or has run, at another worker that may be alive.
func (b *Backend) RunsElsewhere(r taskstore.Record) bool {
	return r.Claim.State == taskstore.ClaimRunning && r.Claim.Worker != b.worker && r.Claim.Worker != b.nameWorker()
}

// isRunning reports whether the attempt of a record runs here, and its executor has not given it up.
func (b *Backend) isRunning(record taskstore.Record) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.running[record.ID]
	return r != nil && r.record.Version > 0 && isSameRun(record, r.record) && !errors.Is(context.Cause(r.life), mcptask.ErrSuperseded)
}

// invokeHandler calls a handler and returns the outcome, whatever the handler does.
func (b *Backend) invokeHandler(ctx context.Context, t *registeredTool, task *mcptask.Task, call mcptask.BoundCall) (outcome *taskstore.Outcome) {
	logID := taskstore.LogID(task.Principal(), task.ID())
	defer func() {
		if outcome == nil {
			guard.LogExit(b.logger, "handler", "tool", t.Spec.Name, "task", logID)
			return
		}
		outcome = b.repairOutcome(t.Spec.Name, task, outcome)
	}()
	defer guard.Then(b.logger, "handler", func() { outcome = newInternalOutcome() }, "tool", t.Spec.Name, "task", logID)
	handlerCtx := ctx
	if b.options.Context != nil {
		built, err := b.options.Context(ctx, task.Principal())
		if err != nil {
			b.logger.ErrorContext(ctx, "no context for the principal", "task", logID, "principal", task.Principal(), "error", err)
			return &taskstore.Outcome{Kind: taskstore.OutcomeError, Error: hideInternals(err)}
		}
		handlerCtx = built
	}
	result, err := call(mcptask.NewContext(handlerCtx, task), task)
	if err != nil {
		return b.newFailureOutcome(ctx, t, err)
	}
	if result.IsError && errors.Is(context.Cause(ctx), context.Canceled) { // the server closes, which may be all that went wrong
		return &taskstore.Outcome{Kind: taskstore.OutcomeCancelled}
	}
	if t.output != nil && !result.IsError {
		// Finished work counts even if the context has ended meanwhile.
		var misfits []string
		if result, misfits, err = t.checkResult(context.WithoutCancel(ctx), result); err != nil {
			b.logger.ErrorContext(ctx, "output does not fit its schema", "tool", t.Spec.Name, "task", logID, "error", err)
			return newMisfitOutcome(misfits)
		}
	}
	data, err := encodeResult(t.IsBare, result)
	if err != nil {
		b.logger.ErrorContext(ctx, "output not encoded", "tool", t.Spec.Name, "task", logID, "error", err)
		return newInternalOutcome()
	}
	if !isBounded(result, t.output != nil && !result.IsError) {
		b.logger.ErrorContext(ctx, "output beyond the bounds", "tool", t.Spec.Name, "task", logID, "error", errUnbounded)
		return &taskstore.Outcome{Kind: taskstore.OutcomeError, Error: errUnbounded}
	}
	return &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: data, IsError: result.IsError}
}

// handOverPatience is how long a handover waits for a write of the handler's news that is under way.
const handOverPatience = time.Second

// finishAttempt stores the outcome of an attempt, unless another run has the task.
func (b *Backend) finishAttempt(ctx context.Context, host *taskHost, outcome taskstore.Outcome) RunEnd {
	attempt := host.record
	end := event{kind: eventFinish, outcome: outcome, report: host.takeReport(), worked: host.watch.read()}
	how := RunOver
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, mcptask.ErrSuperseded):
		return RunOver // another run has the task and ends it
	case errors.Is(cause, errParked) && (outcome.Kind != taskstore.OutcomeResult || outcome.IsError):
		end.kind, end.claim, end.park, how = eventHandOver, b.claimAfterRun(), host.listParked(), RunWaits
	case outcome.Kind != taskstore.OutcomeCancelled:
	case errors.Is(cause, context.Canceled): // the server closes, and another one may go on
		how = RunLeft
		switch {
		case b.ownStore:
			return how
		case b.allowsRestart(attempt):
			end.kind, end.claim = eventHandOver, b.claimAfterRun()
		case end.report != nil:
			end.kind = eventReport
		default:
			return how
		}
	}
	if end.kind == eventHandOver { // the positions are of no use to an ended task
		within, cancel := context.WithTimeout(b.drained, handOverPatience)
		defer cancel()
		if host.takeTurn(within) == nil { // otherwise one of the two writes gets a conflict
			defer host.giveTurn()
		}
		end.steps, end.stepBytes = host.steps.take(nil)
	}
	stored, err := b.moveTask(withValuesOf(ctx, b.drained), b.newTaskRetry(), b.knownRecord(attempt), ifSameRun(attempt, end))
	switch {
	case isOver(err):
		return RunOver
	case err != nil:
		b.logger.ErrorContext(ctx, "task not stored", "task", taskstore.LogID(attempt.Principal, attempt.ID), "tool", attempt.Tool, "error", err)
		return RunLeft
	case how == RunWaits && !isParked(&stored): // the answer has come meanwhile
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
func (b *Backend) cancelHandler(id string, cause error) {
	b.stopRun(taskstore.Record{ID: id}, cause, func(*run, taskstore.Record) bool { return true })
}

// stopRun ends the context of a task's handler if its run is meant. It judges the run that it ends, since another run of the
// task may begin at any time.
func (b *Backend) stopRun(record taskstore.Record, cause error, isMeant func(*run, taskstore.Record) bool) {
	b.mu.Lock()
	var cancel context.CancelCauseFunc
	if r := b.running[record.ID]; r != nil && isMeant(r, record) {
		if cancel = r.cancel; cancel == nil {
			r.early = cause
		}
	}
	b.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// isRunOf reports whether a run is of the task of a record, and not of a later one with the same name.
func isRunOf(r *run, record taskstore.Record) bool {
	return r.createdAt.IsZero() || r.createdAt.Equal(record.CreatedAt)
}

// isStolenBy reports whether a record shows that another run has taken the task of a run.
func isStolenBy(r *run, record taskstore.Record) bool {
	return isRunOf(r, record) && r.record.Version > 0 && record.Version > r.record.Version && !isSameRun(record, r.record)
}

// noteRun notes a version of a record for the run that it belongs to.
func (b *Backend) noteRun(record taskstore.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.running[record.ID]; r != nil && record.Version > r.record.Version && isSameRun(record, r.record) {
		r.record = record
	}
}

// knownRecord returns the newest record that is known of an attempt.
func (b *Backend) knownRecord(attempt taskstore.Record) taskstore.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.running[attempt.ID]; r != nil && isSameRun(r.record, attempt) {
		return r.record
	}
	return attempt
}

// listRuns returns the tasks whose handlers run here.
func (b *Backend) listRuns() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := make([]string, 0, len(b.running))
	for id, r := range b.running {
		if r.record.Version > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// hasStarted reports whether the attempt of a run has begun.
func (b *Backend) hasStarted(r *run) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return r.record.Version > 0
}

// isStarting reports whether a run of a task is entered here, and its attempt has not begun.
func (b *Backend) isStarting(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.running[id]
	return r != nil && r.record.Version == 0
}

// hasBegun reports whether an attempt of a task has begun here.
func (b *Backend) hasBegun(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.running[id]
	return r != nil && r.record.Version > 0
}
