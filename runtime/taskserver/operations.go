package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/cause"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// PageSize is how many tasks List returns at most.
const PageSize = 50

// NotFound is the answer for a task that does not exist or belongs to another principal: the two cannot be told apart.
func (b *Backend) NotFound() *mcptask.Error {
	// Neither text tells the two cases apart (C-81, C-93, E-74, E-87).
	if b.KeepsInMemory() {
		return mcptask.Errorf(mcptask.CodeInvalidParams, "there is no task with that ID: this server keeps tasks in memory, so a restart loses them")
	}
	return mcptask.Errorf(mcptask.CodeInvalidParams, "there is no task with that ID")
}

// KeepsInMemory reports whether the server's store is a *taskstore.Memory, which loses its tasks with the process. It
// does not see one within a store of another type.
func (b *Backend) KeepsInMemory() bool {
	_, memory := b.store.(*taskstore.Memory)
	return memory
}

// newExpiredError is the answer to the owner of an expired task, until TombstoneFor has passed.
func newExpiredError() *mcptask.Error {
	return withReason(mcptask.Errorf(mcptask.CodeInvalidParams, "the task has expired: its ttl, counted from its creation, is over"), cause.Expired)
}

// Get returns the caller's task. Errors are JSON-RPC errors.
func (b *Backend) Get(ctx context.Context, caller Caller, id string) (taskstore.Record, error) {
	return b.findOwned(ctx, b.newRequestRetry(), caller, id)
}

// findOwned reads a task and checks that it is the caller's.
func (b *Backend) findOwned(ctx context.Context, t *storeRetry, caller Caller, id string) (taskstore.Record, error) {
	record, err := b.getRecord(ctx, t, id)
	return record, b.checkOwned(ctx, caller, record, err)
}

// checkOwned turns a store's answer into the error that the caller may see, or nil
// if the record is the caller's.
func (b *Backend) checkOwned(ctx context.Context, caller Caller, record taskstore.Record, err error) error {
	switch {
	case errors.Is(err, taskstore.ErrRecordExpired) && record.Principal == caller.Principal:
		return newExpiredError()
	case isGone(err):
		return b.NotFound()
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, mcptask.ErrServerClosed):
		return newShutdownError()
	case errors.Is(err, taskstore.ErrUnreadable) && record.Principal == caller.Principal:
		b.Notice(slog.LevelError, "task not read", "task", taskstore.LogID(record.Principal, record.ID), "error", err)
		return mcptask.Errorf(mcptask.CodeInternalError, "the task cannot be read: what is stored of it is damaged, or a newer version of the server has written it")
	case errors.Is(err, taskstore.ErrUnreadable):
		return b.NotFound()
	case err != nil:
		b.logger.ErrorContext(ctx, "task not read", "error", err)
		return mcptask.Errorf(mcptask.CodeInternalError, "the task could not be read")
	case record.Principal != caller.Principal:
		if b.auditRates.Allow([2]string{"principal " + caller.Principal, "stranger"}) { // once a second for each
			b.Audit(ctx, slog.LevelWarn, "task asked for by a stranger", "stranger", caller, record, "owner", record.Principal, "method", caller.Method)
		}
		return b.NotFound()
	case b.isExpired(record):
		return newExpiredError()
	}
	return nil
}

// Changed waits until the caller's task has a version beyond the given one and
// returns it. Version 0 returns at once. If the task is deleted meanwhile, the error
// has the data.reason "expired".
func (b *Backend) Changed(ctx context.Context, caller Caller, id string, version int64) (taskstore.Record, error) {
	record, err := b.findOwned(ctx, b.newWaitRetry(), caller, id)
	if err != nil || record.Version > version {
		return record, err
	}
	return b.waitForChange(ctx, caller, id, version)
}

// waitForChange waits for a caller who owns the task. A task that is deleted
// meanwhile has expired, and so has one that is not deleted yet.
func (b *Backend) waitForChange(ctx context.Context, caller Caller, id string, version int64) (taskstore.Record, error) {
	record, err := b.awaitVersion(ctx, b.newWaitRetry(), id, version)
	if isGone(err) || err == nil && b.isExpired(record) {
		return record, newExpiredError()
	}
	return record, b.checkOwned(ctx, caller, record, err)
}

// Await waits until the caller's task has ended.
func (b *Backend) Await(ctx context.Context, caller Caller, id string) (taskstore.Record, error) {
	record, err := b.findOwned(ctx, b.newWaitRetry(), caller, id)
	for err == nil && !record.Done() { // no answer before the end (C-37)
		record, err = b.waitForChange(ctx, caller, id, record.Version)
	}
	return record, err
}

// List returns a page of the caller's tasks after a position, oldest first, and whether there are more. Their
// Arguments, the content of their outcomes, and Inputs that are not open may be missing. Anonymous callers cannot list.
func (b *Backend) List(ctx context.Context, caller Caller, after taskstore.Position) (page []taskstore.Record, more bool, err error) {
	if caller.Principal == "" { // anonymous callers cannot be told apart (C-92)
		return nil, false, mcptask.Errorf(mcptask.CodeMethodNotFound, "tasks cannot be listed without authentication")
	}
	page, err = callStore(ctx, b.newRequestRetry(), "List", func(ctx context.Context) ([]taskstore.Record, error) {
		return b.store.List(ctx, caller.Principal, after, PageSize+1)
	})
	if err != nil {
		return nil, false, b.checkOwned(ctx, caller, taskstore.Record{}, err)
	}
	if more = len(page) > PageSize; more {
		page = page[:PageSize]
	}
	for i := range page {
		if page[i].Phase == taskstore.PhaseInputRequired && len(page[i].Inputs) == 0 {
			if err := b.readQuestions(ctx, &page[i]); err != nil {
				return nil, false, b.checkOwned(ctx, caller, taskstore.Record{}, err)
			}
		}
	}
	return page, more, nil
}

// readQuestions reads a record of a list again, because a store may have left out its open questions. If the record is
// gone or cannot be read, it stays as it is.
func (b *Backend) readQuestions(ctx context.Context, r *taskstore.Record) error {
	whole, err := b.getRecord(ctx, b.newRequestRetry(), r.ID)
	switch {
	case isGone(err), errors.Is(err, taskstore.ErrUnreadable), err == nil && !whole.CreatedAt.Equal(r.CreatedAt): // another task has the ID
		return nil
	case err != nil:
		return err
	}
	whole.Arguments, whole.Inputs = nil, whole.Outstanding()
	if whole.Outcome != nil { // it has ended meanwhile
		whole.Outcome = &taskstore.Outcome{Kind: whole.Outcome.Kind, IsError: whole.Outcome.IsError}
	}
	*r = whole
	return nil
}

// Cancel ends the caller's task as cancelled before it returns, whatever the handler does afterwards. done reports that
// the task had ended before.
func (b *Backend) Cancel(ctx context.Context, caller Caller, id string) (record taskstore.Record, done bool, err error) {
	record, err = b.Get(ctx, caller, id)
	if err != nil {
		return record, false, err
	}
	// The end is stored before the handler stops, and no later event changes it (C-77, C-78).
	record, err = b.applyEvent(ctx, record, func(taskstore.Record) event {
		return event{kind: eventFinish, outcome: taskstore.Outcome{Kind: taskstore.OutcomeCancelled}}
	})
	if errors.Is(err, errTerminal) {
		return record, true, nil
	}
	if err := b.checkOwned(ctx, caller, record, err); err != nil {
		return record, false, err
	}
	b.cancelHandler(id, mcptask.ErrCancelled)
	b.tellEngine(record, "Cancel", Engine.Cancel)
	return record, false, nil
}

// Stop asks the caller's task to end. The handler's context ends, and the task ends with the outcome that the handler
// then returns. A task that has ended already stays as it is.
func (b *Backend) Stop(ctx context.Context, caller Caller, id string) error {
	record, err := b.Get(ctx, caller, id)
	if err != nil {
		return err
	}
	record, err = b.applyEvent(ctx, record, func(r taskstore.Record) event {
		if r.Claim.State != taskstore.ClaimRunning { // there is no handler that could stop by itself
			return event{kind: eventFinish, outcome: taskstore.Outcome{Kind: taskstore.OutcomeCancelled}}
		}
		return event{kind: eventStop} // the task may go on for a while, and end in another way (E-56, E-57)
	})
	if errors.Is(err, errTerminal) {
		return nil
	}
	if err := b.checkOwned(ctx, caller, record, err); err != nil {
		return err
	}
	b.cancelHandler(id, mcptask.ErrCancelled)
	b.tellEngine(record, "Cancel", Engine.Cancel)
	if !record.Done() && record.Claim.Worker != b.nameWorker() {
		b.kick(b.adoptNow) // its worker may be dead, and then nobody else stops it soon
	}
	b.logger.InfoContext(ctx, "task asked to stop", "task", taskstore.LogID(record.Principal, id), "tool", record.Tool, "principal", record.Principal)
	return nil
}

// Answer takes answers to questions of the caller's task. It ignores keys that are not outstanding, with one exception: if
// the question was asked anew in another form and the answer fits that form, it counts. Answer checks all answers before it
// takes any, so that a refused answer leaves every question open.
func (b *Backend) Answer(ctx context.Context, caller Caller, id string, answers map[string]json.RawMessage) (failed error) {
	defer guard.Then(b.logger, "answer", func() { failed = newInternalError() })
	record, err := b.Get(ctx, caller, id)
	if err != nil {
		return err
	}
	for _, in := range record.Outstanding() { // other keys are ignored (E-50)
		if answer, ok := answers[in.Key]; ok {
			if err := mcptask.CheckAnswer(ctx, in.Request, answer); err != nil {
				return mcptask.Errorf(mcptask.CodeInvalidParams, "the answer to %q was not taken: %v", in.Key, err)
			}
		}
	}
	var answered taskstore.Record
	defer func() { b.tellEngineOfAnswer(answered) }() // also if a later answer is refused
	for _, in := range record.Inputs {
		answer, ok := answers[in.Key]
		if !ok {
			continue
		}
		key := currentForm(&record, in.Key, answer) // E-50 says to ignore an earlier form, but a person has answered it
		if _, isDouble := answers[key]; key != in.Key && isDouble || !isOutstanding(&record, key) {
			continue
		}
		record, err = b.applyEvent(ctx, record, func(r taskstore.Record) event {
			key := currentForm(&r, in.Key, answer)
			if !isOutstanding(&r, key) {
				return event{} // another request has answered it meanwhile
			}
			return event{kind: eventAnswer, key: key, answer: answer}
		})
		if err == nil || errors.Is(err, errVoid) || errors.Is(err, errTerminal) {
			answered = record
			continue
		}
		if refusal := b.explainQuota(ctx, caller, err, "tool", record.Tool, "task", taskstore.LogID(record.Principal, id)); refusal != nil {
			return refusal
		}
		if record.ID != "" { // a try whose result was lost may have stored the answer
			answered = record
		}
		return b.checkOwned(ctx, caller, record, err)
	}
	return nil
}

// Respond takes the response to one question as it came. A response that does not
// fit ends the question with ErrInvalidAnswer. The requestor's own error, failed,
// ends it with ErrDeclined, ErrInvalidAnswer or ErrCannotAsk, by its code. A response
// that there is no room for ends it with ErrCannotAsk. A form whose answer a tool
// takes stays open in spite of such an error. A question that was asked anew stays
// open if the response does not fit it, or the error is that of a wrong answer: no
// task ends because a form has changed. Respond ignores a key that is not
// outstanding, as Answer does.
func (b *Backend) Respond(ctx context.Context, caller Caller, id, key string, response json.RawMessage, failed *mcptask.Error) error {
	record, err := b.Get(ctx, caller, id)
	if err != nil {
		return err
	}
	var noRoom *mcptask.Error
	answer := func(r taskstore.Record) event {
		key := key
		if failed == nil {
			key = currentForm(&r, key, response)
		}
		if !isOutstanding(&r, key) || failed != nil && isAnsweredByTool(&r, key) || isMisfitOfForm(&r, key, response, failed) {
			return event{}
		}
		if noRoom != nil { // the requestor cannot be told, and the handler waits
			return event{kind: eventAnswer, key: key, failed: noRoom, unbounded: true}
		}
		return event{kind: eventAnswer, key: key, answer: response, failed: failed}
	}
	record, err = b.applyEvent(ctx, record, answer)
	if noRoom = b.explainQuota(ctx, caller, err, "tool", record.Tool, "task", taskstore.LogID(record.Principal, id)); noRoom != nil {
		record, err = b.applyEvent(ctx, record, answer)
	}
	if err == nil || errors.Is(err, errVoid) { // a try whose result was lost may have stored the answer
		b.tellEngineOfAnswer(record)
	}
	if errors.Is(err, errVoid) || errors.Is(err, errTerminal) {
		return nil
	}
	return b.checkOwned(ctx, caller, record, err)
}

// Peek reads any task, for the gateway itself. It does not wait long for a store
// that fails, since the gateway reads many tasks in turn.
func (b *Backend) Peek(id string) (taskstore.Record, error) {
	t := b.newRequestRetry()
	t.limit = time.Second
	return b.getRecord(b.drained, t, id)
}
