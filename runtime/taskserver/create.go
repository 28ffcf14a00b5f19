package taskserver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// minAnonymousKey is how many bytes an idempotency key or a task's name must have
// without a principal: anyone who guesses it gets the task.
const minAnonymousKey = 16

// createTask stores a task and submits it to the executor. In ModeGrace it waits
// for the end of the task within the tool's grace.
func (b *Backend) createTask(ctx context.Context, caller Caller, t *registeredTool, arguments json.RawMessage, call CallRequest, answers []taskstore.Input) (CallReply, error) {
	key := call.IdempotencyKey
	if key != "" && caller.Principal == "" && len(key) < minAnonymousKey {
		return CallReply{}, mcptask.Errorf(mcptask.CodeInvalidParams, "an idempotency key without authentication needs at least %d bytes", minAnonymousKey)
	}
	if name := call.ExternalID; name != "" && caller.Principal == "" && caller.Session == "" && len(name) < minAnonymousKey {
		return CallReply{}, mcptask.Errorf(mcptask.CodeInvalidParams, "a task ID without authentication or session needs at least %d bytes", minAnonymousKey)
	}
	if err := ctx.Err(); err != nil {
		return CallReply{}, err // the caller has left and would not learn of the task
	}
	reply, isNew, err := b.beginTask(ctx, caller, t, arguments, call, answers)
	if grace := t.Spec.Policy.Grace; isNew && call.Mode == ModeGrace && grace > 0 {
		return b.awaitGrace(ctx, *reply.Task, grace)
	}
	return reply, err
}

// beginTask stores a task and submits it to the executor, or finds the one that the call's idempotency key
// has already. Close waits for it: otherwise a task whose caller is refused could be left to another server.
func (b *Backend) beginTask(ctx context.Context, caller Caller, t *registeredTool, arguments json.RawMessage, call CallRequest, answers []taskstore.Input) (reply CallReply, isNew bool, err error) {
	if !b.enterCreation() {
		return CallReply{}, false, newShutdownError()
	}
	defer b.leaveCreation()
	if err := b.ensureLease(ctx); err != nil {
		return CallReply{}, false, b.explainUnstored(ctx, t, err)
	}
	fresh := b.newRecord(caller, t, arguments, call, answers)
	if fresh.IdempotencyKey != "" {
		switch former, err := b.findFormer(ctx, fresh, t.Spec.Was); {
		case err != nil:
			return CallReply{}, false, b.explainUnstored(ctx, t, err)
		case former.Version > 0:
			reply, err = replyRepeated(former, arguments, call.Mode)
			return reply, false, err
		}
	}
	slot := b.reserve(&fresh, call)
	isEarly := false
	if slot == nil && b.line != nil {
		fresh.StatusMessage, fresh.Claim.Worker = waitsForSlot, ""
		if isEarly = !isNamed(fresh.ID); isEarly { // a look may start the task as soon as it is stored
			b.keepCall(fresh.ID, call)
		}
	}
	b.expectChange(fresh.ID, 1)
	record, err := b.insertRecord(ctx, fresh, b.options.Limits.storeQuota())
	if err != nil {
		slot.giveUp()
		if isEarly {
			b.forgetCall(fresh.ID)
		}
		b.missChange(fresh.ID) // another task may have its name, and be followed here
	} else {
		b.noteChange(record.ID, record.Version)
	}
	key := call.IdempotencyKey
	if errors.Is(err, taskstore.ErrExists) && key != "" && record.Version > 0 {
		reply, err = replyRepeated(record, arguments, call.Mode)
		return reply, false, err
	}
	if refusal := b.explainQuota(ctx, caller, err, "tool", t.Spec.Name); refusal != nil {
		return CallReply{}, false, refusal
	}
	switch {
	case errors.Is(err, taskstore.ErrExists):
		return CallReply{}, false, mcptask.Errorf(mcptask.CodeInvalidParams, "the task ID %q is in use: choose another one for each call", call.ExternalID)
	case err != nil:
		b.resolveCreate(fresh, call)
		return CallReply{}, false, b.explainUnstored(ctx, t, err)
	}
	if !isEarly {
		b.keepCall(record.ID, call)
	}
	b.Audit(ctx, slog.LevelInfo, "task created", "created", caller, record)
	b.tellHooks(ctx, TaskEvent{Kind: taskstore.EventCreated, Task: record})
	if slot != nil {
		b.tellHooks(ctx, TaskEvent{Kind: taskstore.EventStarted, Task: record})
	}
	switch {
	case slot != nil:
		err = slot.start(record)
	case b.line != nil:
		if b.noteWaiting(); b.ownStore && b.closing.Err() != nil {
			err = mcptask.ErrServerClosed
		}
	default:
		err = b.submit(ctx, record)
	}
	switch {
	case err != nil && b.closing.Err() != nil:
		b.forgetTask(record)
		return CallReply{}, false, newShutdownError()
	case err != nil:
		b.leaveUnsubmitted(record, err)
	}
	return CallReply{Task: &record}, true, nil
}

// leaveUnsubmitted gives up a stored task that the executor has not taken. The servers that adopt orphans submit it
// again until it is taken.
func (b *Backend) leaveUnsubmitted(record taskstore.Record, err error) {
	b.logger.Warn("task not submitted: it will be submitted again", "task", taskstore.LogID(record.Principal, record.ID), "tool", record.Tool, "error", err)
	b.returnOrphan(record, b.nameNobody())
}

// enterCreation reports whether a task may still be created. If so, the caller calls leaveCreation.
func (b *Backend) enterCreation() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing.Err() != nil {
		return false
	}
	b.creations++
	return true
}

func (b *Backend) leaveCreation() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.creations--; b.creations == 0 && b.closing.Err() != nil {
		close(b.created)
	}
}

// refuseCreations begins to close the server. From then on enterCreation returns false.
func (b *Backend) refuseCreations() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stop(); b.creations == 0 {
		close(b.created)
	}
}

// awaitCreations waits after refuseCreations until no task is being created. ctx may have ended
// already, if the handlers have taken all the time.
func (b *Backend) awaitCreations(ctx context.Context) error {
	select {
	case <-b.created:
		return nil
	default:
	}
	select {
	case <-b.created:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// explainUnstored returns the caller's error for a task that could not be stored.
func (b *Backend) explainUnstored(ctx context.Context, t *registeredTool, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b.logger.ErrorContext(ctx, "task not stored", "tool", t.Spec.Name, "error", err)
	return mcptask.Errorf(mcptask.CodeInternalError, "the task could not be stored")
}

// newRecord makes the record of a new task.
func (b *Backend) newRecord(caller Caller, t *registeredTool, arguments json.RawMessage, call CallRequest, answers []taskstore.Input) taskstore.Record {
	id := b.newTaskID(caller, call.Mode == ModeTask)
	if call.ExternalID != "" { // the requestor makes the ID (A-13, D-05)
		id = caller.Named(call.ExternalID)
	}
	canAsk := caller.CanAsk
	if call.ByTool {
		canAsk = append(slices.Clone(canAsk), spec.Elicit, spec.CallTool)
	}
	policy := t.Spec.Policy
	now, nonce := b.Now(), rand.Text()
	record := taskstore.Record{
		ID:             id,
		Nonce:          nonce,
		ExternalID:     call.ExternalID,
		Principal:      caller.Principal,
		Account:        caller.Account(),
		Tool:           t.Spec.Name,
		Arguments:      bytes.Clone(arguments),
		Revision:       caller.Revision,
		IdempotencyKey: call.IdempotencyKey,
		CanAsk:         canAsk,
		Inputs:         answers,
		Phase:          taskstore.PhaseQueued,
		CreatedAt:      now,
		UpdatedAt:      now,
		ExpiresAt:      now.Add(b.chooseRetention(caller, policy, call)),
		Poll:           policy.Poll,
		Trace:          call.Trace,
		Claim:          taskstore.Claim{Worker: b.worker, Nonce: nonce},
	}
	record.Timeline = record.Timeline.With(taskstore.Moment{Kind: taskstore.EventCreated, At: now, Text: call.again, Operator: call.operator})
	return record
}

// replyRepeated answers a call whose idempotency key has a task already.
func replyRepeated(record taskstore.Record, arguments json.RawMessage, mode Mode) (CallReply, error) {
	if !bytes.Equal(record.Arguments, arguments) {
		return CallReply{}, mcptask.Errorf(mcptask.CodeInvalidParams, "the idempotency key was used before with other arguments")
	}
	if mode == ModeGrace && record.Done() && record.Outcome.Kind != taskstore.OutcomeCancelled {
		// The server chooses between task and result, and the result is here.
		return CallReply{Outcome: record.Outcome}, nil
	}
	return CallReply{Task: &record}, nil
}

// chooseRetention returns how long a task is kept (C-56). A requestor may ask for more
// than the tool's ttl, up to Options.MaxTTL (C-97), unless it is anonymous, because its
// tasks take room from strangers. It may not ask for less: hosts send a short
// ttl that their user never chose, and it would stop long work.
func (b *Backend) chooseRetention(caller Caller, policy mcptask.Policy, call CallRequest) time.Duration {
	if call.TTL == nil || *call.TTL <= 0 || caller.Principal == "" && !caller.Local {
		return policy.TTL
	}
	return max(policy.TTL, min(*call.TTL, b.options.MaxTTL))
}

// awaitGrace waits until the task ends, asks its first question, or grace is over.
// A task that has ended was never announced, so its record is deleted. A task whose
// caller has left is stopped, unless the tool says onleave=keep.
func (b *Backend) awaitGrace(ctx context.Context, record taskstore.Record, grace time.Duration) (CallReply, error) {
	waiting, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	latest := record
	for !latest.Done() && latest.Phase != taskstore.PhaseInputRequired {
		r, err := b.awaitVersion(waiting, b.newTaskRetry(), record.ID, latest.Version)
		if err != nil {
			break
		}
		latest = r
	}
	switch {
	case ctx.Err() != nil && b.keepsOnLeave(latest.Tool):
		return CallReply{}, ctx.Err()
	case latest.Done():
		b.Abandon(latest)
		return CallReply{Outcome: latest.Outcome}, nil
	case ctx.Err() != nil:
		b.Abandon(latest)
		return CallReply{}, ctx.Err()
	}
	return CallReply{Task: &latest}, nil
}

// keepsOnLeave reports whether a tool's work goes on when its caller leaves.
func (b *Backend) keepsOnLeave(tool string) bool {
	spec, _ := b.Tool(tool)
	return spec.Policy.OnLeave == mcptask.KeepOnLeave
}

// Abandon stops and deletes a task that was not announced to its caller. A task
// with an idempotency key stays: its caller may come back for it with the key.
func (b *Backend) Abandon(r taskstore.Record) {
	if r.IdempotencyKey == "" {
		b.forgetTask(r) // first, so that a handler that starts from now on finds no task
		b.cancelHandler(r.ID, mcptask.ErrCancelled)
		if !r.Done() {
			b.tellEngine(r, "Cancel", Engine.Cancel)
		}
	}
}

// findFormer finds the task that has the idempotency key of a new record under a former name of its tool. The Version is 0
// if there is none. A Create that exceeds its quota stores nothing, and returns the record that has the key.
func (b *Backend) findFormer(ctx context.Context, fresh taskstore.Record, was []string) (taskstore.Record, error) {
	t := b.newRequestRetry()
	for _, name := range was {
		fresh.ID, fresh.Nonce, fresh.Tool = rand.Text(), rand.Text(), name
		former, err := callStore(ctx, t, "Create", func(ctx context.Context) (taskstore.Record, error) {
			return b.store.Create(ctx, fresh, taskstore.Quota{Server: taskstore.Usage{Bytes: 1}})
		})
		switch {
		case errors.Is(err, taskstore.ErrQuotaBytes):
		case !errors.Is(err, taskstore.ErrExists):
			return taskstore.Record{}, err
		case !b.isExpired(former):
			return former, nil
		}
	}
	return taskstore.Record{}, nil
}

// insertRecord stores a new record. It replaces one that has expired and is not
// deleted yet. It fails with the store's errors; ErrExists comes with the record
// that exists, if the store returned it.
func (b *Backend) insertRecord(ctx context.Context, fresh taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
	t := b.newRequestRetry()
	t.end = b.closing.Done() // from then on the task could not start
	for replaced := false; ; replaced = true {
		record, err := b.writeWithRoom(ctx, &fresh, func() (taskstore.Record, error) {
			return callStore(ctx, t, "Create", func(ctx context.Context) (taskstore.Record, error) { return b.store.Create(ctx, fresh, quota) })
		})
		if !errors.Is(err, taskstore.ErrExists) {
			return record, err
		}
		former := record
		if former.Version == 0 { // only the ID is taken
			var unread error
			if former, unread = b.getRecord(ctx, t, fresh.ID); unread != nil {
				if isGone(unread) && !replaced {
					continue // it was deleted meanwhile
				}
				return record, cmp.Or(unread, err)
			}
		}
		switch {
		case hasWrite(&former, fresh.Nonce):
			return former, nil // an earlier try stored it, and its answer was lost
		case replaced || !b.isExpired(former):
			return record, err
		}
		switch err = b.deleteStored(ctx, t, former); {
		case err == nil:
			b.announceExpiry(ctx, former)
		case !isGone(err) && !errors.Is(err, taskstore.ErrConflict):
			return record, err
		}
	}
}
