package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/cause"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// taskHost is the Host of a stored task.
type taskHost struct {
	backend *Backend
	record  taskstore.Record // as it was when the attempt began
	// attempt is the handler's context, and cancel ends it.
	attempt context.Context
	cancel  context.CancelCauseFunc
	watch   *stopwatch
	waiting atomic.Int32 // goroutines of the handler that wait without its slot
	steps   runSteps

	// turn has an element while a report or a step is stored, or the steps are read. Others wait for it for as long as
	// the store is away.
	turn chan struct{}

	mu      sync.Mutex
	ended   bool
	pending *report     // the newest, until it is known to be stored
	timer   *time.Timer // stores the pending report; nil if none is set
	stored  time.Time   // when the last report was stored

	// With an engine, a run that only waits for people is parked after the engine's patience.
	asking    map[string]bool // the questions that goroutines of the handler wait for
	isAwake   bool            // an answer has come, and goroutines of the handler still wait for others
	elsewhere int             // counts the goroutines that wait for work elsewhere
	patience  *time.Timer     // parks the run; nil if none is set
	parked    []string        // the questions that the run waited for when it was parked
}

// Report implements Host. Reports are stored once in a polling interval, the newest of them,
// since requestors see no others. A progress notification is sent at once.
func (h *taskHost) Report(ctx context.Context, done, total float64, message string) {
	send, giveBack := h.backend.takeProgressTurn(h.record.ID, true)
	defer giveBack()
	if due := h.addReport(&report{taskstore.Progress{Done: done, Total: total}.Status(message), taskstore.Progress{Done: done, Total: total}}); due {
		if !h.storeReport(ctx) {
			return
		}
	}
	if send != nil {
		send(h.record.ID, done, total, message)
	}
}

// addReport notes a report and returns whether it is to be stored now. If not, a timer does it.
func (h *taskHost) addReport(r *report) (due bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return false
	}
	h.pending = r
	wait := h.record.Poll - time.Since(h.stored)
	switch {
	case h.stored.IsZero() || wait <= 0:
		return true
	case h.timer == nil:
		h.timer = time.AfterFunc(wait, func() {
			defer guard.Recover(h.backend.logger, "storing of a report")
			h.storeReport(h.backend.drained)
		})
	}
	return false
}

// takeReport ends the reports and returns the one that is not stored, or nil.
func (h *taskHost) takeReport() *report {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	r := h.nextReport()
	h.pending = nil
	return r
}

// nextReport returns the pending report, to be stored now. h.mu is held.
func (h *taskHost) nextReport() *report {
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
	if h.pending != nil {
		h.stored = time.Now()
	}
	return h.pending
}

// storeNews stores what the handler has told and is not stored yet: the pending report, the saved positions, and a step,
// if there is one. What could not be stored is pending until the next time, and the end of the attempt takes it along.
func (h *taskHost) storeNews(ctx context.Context, t *storeRetry, step *taskstore.Step) error {
	if err := h.takeTurn(ctx); err != nil {
		return err
	}
	defer h.giveTurn()
	h.mu.Lock()
	r := h.nextReport()
	ended := h.ended
	isSilent := h.stored.IsZero() && h.record.Progress == (taskstore.Progress{}) // the handler has reported nothing
	h.mu.Unlock()
	e := event{kind: eventReport, report: r, worked: h.watch.read()}
	switch e.steps, e.stepBytes = h.steps.take(step); {
	case step != nil:
		e.kind, e.key = eventStep, step.Name
		if isSilent {
			e.report = &report{message: describeStep(step)}
		}
	case ended: // the end of the attempt takes the positions along, or they are of no use
		return errTerminal
	case r == nil && len(e.steps) == 0:
		return nil
	case r == nil:
		e.kind = eventSave
	}
	if _, err := h.backend.moveTask(ctx, t, h.backend.knownRecord(h.record), ifSameRun(h.record, e)); err != nil {
		h.cancelIfLost(err)
		return err
	}
	h.steps.keep(e.steps)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pending == r {
		h.pending = nil
	}
	return nil
}

// takeTurn waits for its turn, unless ctx ends.
func (h *taskHost) takeTurn(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *taskHost) giveTurn() { <-h.turn }

// storeReport stores the pending report, if there is one. It returns false if the task did not take it: it has ended, or
// there is no room, or the next report succeeds.
func (h *taskHost) storeReport(ctx context.Context) bool {
	err := h.storeNews(ctx, h.backend.newRequestRetry(), nil)
	_ = h.explainQuota(ctx, err)
	return err == nil
}

// Ask implements Host. It stores the question before anyone can see it, releases
// the handler's slot and waits. A step that was answered in an earlier attempt
// returns at once. The question may be another form of the one that was asked; see placeQuestion.
func (h *taskHost) Ask(ctx context.Context, in mcptask.Request) (_ json.RawMessage, err error) {
	b, id := h.backend, h.record.ID
	if err := (Caller{Revision: h.record.Revision, CanAsk: h.record.CanAsk}).checkCanAsk(in, true); err != nil {
		return nil, err
	}
	h.storeReport(ctx)
	record, key, err := h.storeQuestion(ctx, in)
	if err != nil {
		return nil, err
	}
	in.Key = key
	if response, ok, err := readAnswer(record, in.Key); ok || err != nil {
		return response, err
	}
	ctx, end := b.hookQuestion(ctx, h.record, in)
	defer func() { end(err) }()
	defer h.releaseSlot()()
	if b.engine != nil && b.allowsRestart(record) {
		defer h.waitPatiently(in.Key)()
	}
	for {
		err = errNoReturn
		record, err = b.awaitVersion(ctx, b.newTaskRetry(), id, record.Version)
		if err != nil {
			h.withdrawQuestion(ctx, in.Key)
			return nil, h.explainUnstored(ctx, in.Key, err)
		}
		if !record.Done() && !isSameRun(h.record, record) {
			h.cancel(mcptask.ErrSuperseded)
		}
		if response, ok, err := readAnswer(record, in.Key); ok || err != nil {
			return response, err
		}
	}
}

// leastPatience is the shortest patience of an engine. It is enough for a handler to ask all questions that it asks
// at once.
const leastPatience = time.Second

// waitPatiently lets the run be parked if the handler waits for longer than the engine's patience, until stop is
// called. A handler may wait for several answers and go on with the first. So its run is not parked after one has come.
func (h *taskHost) waitPatiently(key string) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asking == nil {
		h.asking = map[string]bool{}
	}
	h.asking[key] = true
	h.isAwake = h.isAwake || isOutstanding(&h.record, key) && hasAnswer(&h.record)
	h.setPatience()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.asking, key)
		h.isAwake = len(h.asking) > 0
		h.setPatience()
	}
}

// mayPark reports whether the handler only waits for answers. h.mu is held.
func (h *taskHost) mayPark() bool { return len(h.asking) > 0 && !h.isAwake && h.elsewhere == 0 }

// setPatience begins the engine's patience anew, or ends it. h.mu is held.
func (h *taskHost) setPatience() {
	if h.patience != nil {
		h.patience.Stop()
		h.patience = nil
	}
	if !h.mayPark() {
		return
	}
	h.patience = time.AfterFunc(max(h.backend.engine.Patience(), leastPatience), func() {
		defer guard.Recover(h.backend.logger, "the patience of an engine")
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.mayPark() {
			h.parked = slices.Collect(maps.Keys(h.asking))
			h.cancel(errParked)
		}
	})
}

// listParked returns the questions that the run waited for when it was parked.
func (h *taskHost) listParked() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.parked
}

// releaseSlot gives the handler's slot to the next waiting task, until acquire is called. A handler has one
// slot, however many of its goroutines wait.
func (h *taskHost) releaseSlot() (acquire func()) {
	resume := h.watch.pause()
	slots := h.backend.slots
	if slots == nil {
		return resume
	}
	if h.waiting.Add(1) == 1 {
		slots.Release(submissionOf(&h.record))
	}
	return func() {
		if h.waiting.Add(-1) == 0 {
			slots.Acquire(h.attempt, submissionOf(&h.record))
		}
		resume()
	}
}

// LeaveSlot is releaseSlot for a handler that waits for work elsewhere. Its run is not parked meanwhile, so that it
// sees the end of that work.
func (h *taskHost) LeaveSlot() (takeBack func()) {
	h.countElsewhere(1)
	acquire := h.releaseSlot()
	return func() {
		h.countElsewhere(-1)
		acquire()
	}
}

// countElsewhere counts the goroutines that wait for work elsewhere.
func (h *taskHost) countElsewhere(change int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.elsewhere += change
	h.setPatience()
}

// Interrupted reports whether the run has ended, and another one goes on with the task.
func (h *taskHost) Interrupted() bool {
	cause := context.Cause(h.attempt)
	outlives := !h.backend.ownStore && (errors.Is(cause, context.Canceled) || errors.Is(cause, errParked))
	return (outlives || h.isFollowed(cause)) && h.backend.allowsRestart(h.record)
}

// isFollowed reports whether another run has the task and goes on with it. A server that takes a lost task for the last
// time does so to end it. An engine bounds the tries of its tasks itself.
func (h *taskHost) isFollowed(cause error) bool {
	if !errors.Is(cause, mcptask.ErrSuperseded) || errors.Is(cause, errEndedElsewhere) {
		return false
	}
	tool, ok := h.backend.catalog.findTool(h.record.Tool)
	return h.backend.engine != nil || ok && h.record.Tries < tool.Spec.Policy.Attempts
}

// storeQuestion stores a question, unless an earlier attempt has stored it. It returns the key under which it is stored.
func (h *taskHost) storeQuestion(ctx context.Context, in mcptask.Request) (record taskstore.Record, key string, err error) {
	b, id := h.backend, h.record.ID
	most, tooMany := b.options.Limits.Questions, false
	record, err = b.moveTask(ctx, b.newTaskRetry(), b.knownRecord(h.record), func(r taskstore.Record) (e event) {
		key, e = placeQuestion(&r, in)
		if tooMany = e.kind == eventAsk && len(r.Inputs) >= most; tooMany || e.kind == "" {
			return event{}
		}
		e.worked = h.watch.read()
		return ifSameRun(h.record, e)(r)
	})
	if tooMany {
		return record, key, b.Limited(ctx, callerOf(&h.record), "questions", most, "task", taskstore.LogID(h.record.Principal, id), "tool", h.record.Tool)
	}
	if err == nil || errors.Is(err, errVoid) {
		return record, key, nil
	}
	return record, key, h.explainUnstored(ctx, in.Key, err)
}

// explainQuota returns the refusal for a *QuotaError, and nil for any other error.
func (h *taskHost) explainQuota(ctx context.Context, err error) *mcptask.Error {
	return h.backend.explainQuota(ctx, callerOf(&h.record), err, "tool", h.record.Tool, "task", taskstore.LogID(h.record.Principal, h.record.ID))
}

// readAnswer returns the response to a question. ok is false while it is open.
func readAnswer(r taskstore.Record, key string) (response json.RawMessage, ok bool, err error) {
	i := findInput(&r, key)
	if i < 0 {
		return nil, false, fmt.Errorf("%s: %w", key, errVoid)
	}
	switch r.Inputs[i].State {
	case taskstore.InputAnswered:
		if failed := r.Inputs[i].Error; failed != nil {
			return nil, false, explainFailure(r.Inputs[i].Request, failed)
		}
		return r.Inputs[i].Response, true, nil
	case taskstore.InputSuperseded:
		if !r.Done() {
			return nil, false, cause.ErrWithdrawn
		}
		return nil, false, mcptask.ErrCancelled
	}
	return nil, false, nil
}

// withdrawQuestion withdraws a question that the handler no longer waits for, unless it asks for the same step again: in the
// next attempt, as when the server closes, or in this one in another form.
func (h *taskHost) withdrawQuestion(ctx context.Context, key string) {
	why := context.Cause(h.attempt)
	if h.backend.closing.Err() != nil || errors.Is(why, mcptask.ErrSuperseded) || errors.Is(why, errParked) || errors.Is(context.Cause(ctx), cause.ErrAskedAnew) {
		return
	}
	_, err := h.backend.applyEvent(context.WithoutCancel(ctx), h.backend.knownRecord(h.record), func(r taskstore.Record) event {
		if !isOutstanding(&r, key) {
			return event{} // answered meanwhile
		}
		return ifSameRun(h.record, event{kind: eventWithdraw, key: key})(r)
	})
	if err != nil && !isOver(err) {
		h.backend.logger.WarnContext(ctx, "question not withdrawn", "task", taskstore.LogID(h.record.Principal, h.record.ID), "key", key, "error", err)
	}
}

// explainUnstored returns the handler's error for a question that could not be asked or awaited, or for a step that
// could not be read or stored. It logs the store's own error and hides it from the handler, which may pass its errors
// on.
func (h *taskHost) explainUnstored(ctx context.Context, key string, err error) error {
	if refusal := h.explainQuota(ctx, err); refusal != nil {
		return refusal
	}
	h.cancelIfLost(err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errTerminal):
	case isGone(err):
		err = mcptask.ErrExpired
	default:
		if !errors.Is(err, mcptask.ErrServerClosed) {
			h.backend.logger.ErrorContext(ctx, "question or step not stored", "task", taskstore.LogID(h.record.Principal, h.record.ID), "key", key, "error", err)
		}
		err = mcptask.ErrServerClosed // the store is called again and again until then
	}
	return fmt.Errorf("%s: %w", key, err)
}

// cancelIfLost ends the handler's context if an event was refused because the task
// is gone or another run has it.
func (h *taskHost) cancelIfLost(err error) {
	switch {
	case errors.Is(err, errVoid):
		h.cancel(mcptask.ErrSuperseded)
	case isGone(err):
		h.cancel(mcptask.ErrExpired)
	}
}
