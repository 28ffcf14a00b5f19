package mcptask

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
)

// minAnonymousKey is how many bytes an idempotency key or a task's name must have
// without a principal: anyone who guesses it gets the task.
const minAnonymousKey = 16

// createTask stores a task and submits it to the executor. In ModeGrace it waits
// for the end of the task within the tool's grace.
func (s *Server) createTask(ctx context.Context, caller Caller, t *registeredTool, arguments json.RawMessage, call CallRequest, answers []Input) (CallReply, error) {
	key := call.IdempotencyKey
	if key != "" && caller.Principal == "" && len(key) < minAnonymousKey {
		return CallReply{}, Errorf(CodeInvalidParams, "an idempotency key without authentication needs at least %d bytes", minAnonymousKey)
	}
	if name := call.ExternalID; name != "" && caller.Principal == "" && caller.Session == "" && len(name) < minAnonymousKey {
		return CallReply{}, Errorf(CodeInvalidParams, "a task ID without authentication or session needs at least %d bytes", minAnonymousKey)
	}
	if err := ctx.Err(); err != nil {
		return CallReply{}, err // the caller has left and would not learn of the task
	}
	reply, isNew, err := s.beginTask(ctx, caller, t, arguments, call, answers)
	if grace := t.spec.Policy.Grace; isNew && call.Mode == ModeGrace && grace > 0 {
		return s.awaitGrace(ctx, *reply.Task, grace)
	}
	return reply, err
}

// beginTask stores a task and submits it to the executor, or finds the one that the call's idempotency key
// has already. Close waits for it: otherwise a task whose caller is refused could be left to another server.
func (s *Server) beginTask(ctx context.Context, caller Caller, t *registeredTool, arguments json.RawMessage, call CallRequest, answers []Input) (reply CallReply, isNew bool, err error) {
	if !s.enterCreation() {
		return CallReply{}, false, newShutdownError()
	}
	defer s.leaveCreation()
	if err := s.ensureLease(ctx); err != nil {
		return CallReply{}, false, s.explainUnstored(ctx, t, err)
	}
	fresh := s.newRecord(caller, t, arguments, call, answers)
	slot := s.reserve(&fresh, call)
	if slot == nil && s.line != nil {
		fresh.StatusMessage = waitsForSlot
	}
	s.expectChange(fresh.ID, 1)
	record, err := s.insertRecord(ctx, fresh, s.options.Limits.storeQuota())
	if err != nil {
		slot.giveUp()
		s.missChange(fresh.ID) // another task may have its name, and be followed here
	} else {
		s.noteChange(record.ID, record.Version)
	}
	key := call.IdempotencyKey
	if errors.Is(err, ErrExists) && key != "" && record.Version > 0 {
		reply, err = replyRepeated(record, arguments, call.Mode)
		return reply, false, err
	}
	if refusal := s.explainQuota(ctx, caller, err, "tool", t.spec.Name); refusal != nil {
		return CallReply{}, false, refusal
	}
	switch {
	case errors.Is(err, ErrExists):
		return CallReply{}, false, Errorf(CodeInvalidParams, "the task ID %q is in use: choose another one for each call", call.ExternalID)
	case err != nil:
		s.settleCreate(fresh)
		return CallReply{}, false, s.explainUnstored(ctx, t, err)
	}
	s.Audit(ctx, slog.LevelInfo, "task created", "created", caller, record)
	s.tellHooks(ctx, TaskEvent{Kind: EventCreated, Task: record})
	if slot != nil {
		s.tellHooks(ctx, TaskEvent{Kind: EventStarted, Task: record})
	}
	if call.Progress != nil {
		turn := make(chan ProgressFunc, 1)
		turn <- call.Progress
		s.progress.Store(record.ID, turn)
	}
	if slot != nil {
		err = slot.start(record)
	} else {
		err = s.submit(ctx, record)
	}
	switch {
	case err != nil && s.closing.Err() != nil:
		s.forgetTask(record)
		return CallReply{}, false, newShutdownError()
	case err != nil:
		s.leaveUnsubmitted(record, err)
	}
	return CallReply{Task: &record}, true, nil
}

// leaveUnsubmitted gives up a stored task that the executor has not taken. The servers that adopt orphans submit it
// again until it is taken.
func (s *Server) leaveUnsubmitted(record Record, err error) {
	s.logger.Warn("task not submitted: it will be submitted again", "task", LogID(record.Principal, record.ID), "tool", record.Tool, "error", err)
	s.returnOrphan(record, "")
}

// enterCreation reports whether a task may still be created. If so, the caller calls leaveCreation.
func (s *Server) enterCreation() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() != nil {
		return false
	}
	s.creations++
	return true
}

func (s *Server) leaveCreation() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.creations--; s.creations == 0 && s.closing.Err() != nil {
		close(s.created)
	}
}

// refuseCreations begins to close the server. From then on enterCreation returns false.
func (s *Server) refuseCreations() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop(); s.creations == 0 {
		close(s.created)
	}
}

// awaitCreations waits after refuseCreations until no task is being created. ctx may have ended
// already, if the handlers have taken all the time.
func (s *Server) awaitCreations(ctx context.Context) error {
	select {
	case <-s.created:
		return nil
	default:
	}
	select {
	case <-s.created:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// explainUnstored returns what the caller is told about a task that could not be stored.
func (s *Server) explainUnstored(ctx context.Context, t *registeredTool, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.logger.ErrorContext(ctx, "task not stored", "tool", t.spec.Name, "error", err)
	return Errorf(CodeInternalError, "the task could not be stored")
}

// newRecord makes the record of a new task.
func (s *Server) newRecord(caller Caller, t *registeredTool, arguments json.RawMessage, call CallRequest, answers []Input) Record {
	id := s.newTaskID(caller, call.Mode == ModeTask)
	if call.ExternalID != "" {
		id = caller.Named(call.ExternalID)
	}
	canAsk := caller.CanAsk
	if call.ByTool {
		canAsk = append(slices.Clone(canAsk), methodElicit, methodCall)
	}
	policy := t.spec.Policy
	now, nonce := s.Now(), rand.Text()
	record := Record{
		ID:             id,
		Nonce:          nonce,
		ExternalID:     call.ExternalID,
		Principal:      caller.Principal,
		Account:        caller.Account(),
		Tool:           t.spec.Name,
		Arguments:      bytes.Clone(arguments),
		Revision:       caller.Revision,
		IdempotencyKey: call.IdempotencyKey,
		CanAsk:         canAsk,
		Inputs:         answers,
		Phase:          PhaseQueued,
		CreatedAt:      now,
		UpdatedAt:      now,
		ExpiresAt:      now.Add(s.chooseRetention(caller, policy, call)),
		Poll:           policy.Poll,
		Trace:          call.Trace,
		Claim:          Claim{Worker: s.worker, Nonce: nonce},
	}
	record.Timeline = record.Timeline.With(Moment{Kind: EventCreated, At: now, Text: call.again, Operator: call.operator})
	return record
}

// replyRepeated answers a call whose idempotency key has a task already.
func replyRepeated(record Record, arguments json.RawMessage, mode Mode) (CallReply, error) {
	if !bytes.Equal(record.Arguments, arguments) {
		return CallReply{}, Errorf(CodeInvalidParams, "the idempotency key was used before with other arguments")
	}
	if mode == ModeGrace && record.Done() && record.Outcome.Kind != OutcomeCancelled {
		// The server chooses between task and result, and the result is here.
		return CallReply{Outcome: record.Outcome}, nil
	}
	return CallReply{Task: &record}, nil
}

// chooseRetention returns how long a task is kept (C-56). A requestor may ask for more
// than the tool's ttl, up to Options.MaxTTL (C-97), unless it is anonymous, because its
// tasks take room from strangers. It may not ask for less: hosts send a short
// ttl that their user never chose, and it would stop long work.
func (s *Server) chooseRetention(caller Caller, policy Policy, call CallRequest) time.Duration {
	if call.TTL == nil || *call.TTL <= 0 || caller.Principal == "" && !caller.Local {
		return policy.TTL
	}
	return max(policy.TTL, min(*call.TTL, s.options.MaxTTL))
}

// awaitGrace waits until the task ends, asks its first question, or grace is over.
// A task that has ended was never announced, so its record is deleted. A task whose
// caller has left is stopped.
func (s *Server) awaitGrace(ctx context.Context, record Record, grace time.Duration) (CallReply, error) {
	waiting, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	latest := record
	for !latest.Done() && latest.Phase != PhaseInputRequired {
		r, err := s.awaitVersion(waiting, s.newTaskRetry(), record.ID, latest.Version)
		if err != nil {
			break
		}
		latest = r
	}
	switch {
	case latest.Done():
		s.Abandon(latest)
		return CallReply{Outcome: latest.Outcome}, nil
	case ctx.Err() != nil:
		s.Abandon(latest)
		return CallReply{}, ctx.Err()
	}
	return CallReply{Task: &latest}, nil
}

// Abandon stops and deletes a task that was not announced to its caller. A task
// with an idempotency key stays: its caller may come back for it with the key.
func (s *Server) Abandon(r Record) {
	if r.IdempotencyKey == "" {
		s.forgetTask(r) // first, so that a handler that starts from now on finds no task
		s.cancelHandler(r.ID, ErrCancelled)
		if !r.Done() {
			s.tellEngine(r, "Cancel", Engine.Cancel)
		}
	}
}

// insertRecord stores a new record. It replaces one that has expired and is not
// deleted yet. It fails with the store's errors; ErrExists comes with the record
// that exists, if the store returned it.
func (s *Server) insertRecord(ctx context.Context, fresh Record, quota Quota) (Record, error) {
	t := s.newRequestRetry()
	t.end = s.closing.Done() // from then on the task could not start
	for replaced := false; ; replaced = true {
		record, err := s.writeWithRoom(ctx, &fresh, func() (Record, error) {
			return callStore(ctx, t, "Create", func(ctx context.Context) (Record, error) { return s.store.Create(ctx, fresh, quota) })
		})
		if !errors.Is(err, ErrExists) {
			return record, err
		}
		former := record
		if former.Version == 0 { // only the ID is taken
			var unread error
			if former, unread = s.getRecord(ctx, t, fresh.ID); unread != nil {
				if isGone(unread) && !replaced {
					continue // it was deleted meanwhile
				}
				return record, cmp.Or(unread, err)
			}
		}
		switch {
		case former.hasWrite(fresh.Nonce):
			return former, nil // an earlier try stored it, and its answer was lost
		case replaced || !s.isExpired(former):
			return record, err
		}
		switch err = s.deleteStored(ctx, t, former); {
		case err == nil:
			s.announceExpiry(ctx, former)
		case !isGone(err) && !errors.Is(err, ErrConflict):
			return record, err
		}
	}
}
