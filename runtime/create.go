package mcptask

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/plain"
)

// minAnonymousKey is how long an idempotency key without a principal must be:
// whoever guesses it gets the task.
const minAnonymousKey = 16

// Call answers a tools/call that the gateway has negotiated. Arguments are
// checked before anything is created. An error is a JSON-RPC error for the
// caller; a tool error is an outcome.
func (s *Server) Call(ctx context.Context, caller Caller, tool string, arguments json.RawMessage, call CallRequest) (_ CallReply, failed error) {
	defer s.recovered("call", &failed)
	t, ok := s.catalog.findTool(tool)
	if !ok {
		return CallReply{}, Errorf(CodeInvalidParams, "unknown tool %q", tool)
	}
	if len(arguments) == 0 || bytes.Equal(arguments, []byte("null")) {
		arguments = json.RawMessage("{}")
	}
	if err := t.input.Check(ctx, arguments); err != nil {
		if ctx.Err() != nil {
			return CallReply{}, ctx.Err()
		}
		text := fmt.Sprintf("invalid arguments for %s: %v", tool, err)
		if call.Mode == ModeTask {
			return CallReply{}, Errorf(CodeInvalidParams, "%s", text)
		}
		return newErrorReply(text)
	}
	open, stop := context.WithCancelCause(ctx) // a stored task does not mind that the server closes
	defer stop(nil)
	defer context.AfterFunc(s.closing, func() {
		defer guard.Recover(s.logger, "the end of a call")
		stop(ErrServerClosed)
	})()
	answers, reply, err := s.settleUpfrontQuestions(open, caller, t, call)
	switch {
	case err != nil:
		return CallReply{}, err
	case reply != nil:
		return *reply, nil
	}
	if call.Mode == ModePlain {
		outcome, err := s.runPlainCall(open, caller, t, arguments, call, answers)
		return CallReply{Outcome: outcome}, err
	}
	return s.createTask(ctx, caller, t, arguments, call, answers)
}

// recovered makes an internal error of a panic in what a caller waits for: in a
// validator, a store or a hook. Defer it directly.
func (s *Server) recovered(what string, failed *error) {
	if p := recover(); p != nil {
		guard.Log(s.logger, what, p)
		*failed = Errorf(CodeInternalError, "internal error")
	}
}

func newErrorReply(text string) (CallReply, error) {
	result, err := plain.Marshal(ErrorResult(text))
	return CallReply{Outcome: &Outcome{Kind: OutcomeResult, Result: result, IsError: true}}, err
}

// callPlain runs the handler within the request.
func (s *Server) runPlainCall(ctx context.Context, caller Caller, t *registeredTool, arguments json.RawMessage, call CallRequest, answers []Input) (*Outcome, error) {
	if s.closing.Err() != nil {
		return nil, newShutdownError()
	}
	task := &Task{principal: caller.Principal, attempt: 1, host: callHost{caller, call}, answers: pairUpfrontAnswers(t, answers)}
	wait := t.spec.Policy.Wait
	ctx, cancelWait := limit.Timeout(ctx, wait, errWaitOver)
	defer cancelWait()
	ctx, cancelDeadline := limit.Timeout(ctx, t.spec.Policy.Deadline, errDeadlineOver)
	defer cancelDeadline()
	outcome := s.limitOutcome(caller, "", t.spec.Name, s.invokeHandler(ctx, t, task, arguments))
	switch cause := context.Cause(ctx); {
	case outcome.Kind != OutcomeCancelled:
	case errors.Is(cause, ErrServerClosed):
		return nil, newShutdownError()
	case errors.Is(cause, errWaitOver):
		text := fmt.Sprintf("%s did not finish within the %v that a call without a task may take, and was cancelled. "+
			"Call it as a task to let it run longer.", t.spec.Name, wait)
		reply, err := newErrorReply(text)
		return reply.Outcome, err
	}
	return outcome, nil
}

// create stores a task, schedules it and, within the tool's grace, waits for it.
func (s *Server) createTask(ctx context.Context, caller Caller, t *registeredTool, arguments json.RawMessage, call CallRequest, answers []Input) (CallReply, error) {
	key, id := call.IdempotencyKey, rand.Text()
	if key != "" && caller.Principal == "" && len(key) < minAnonymousKey {
		return CallReply{}, Errorf(CodeInvalidParams, "an idempotency key without authentication needs at least %d bytes", minAnonymousKey)
	}
	if name := call.ExternalID; name != "" {
		if id = caller.Named(name); caller.Account() == "" && len(name) < minAnonymousKey {
			return CallReply{}, Errorf(CodeInvalidParams, "a task ID without authentication or session needs at least %d bytes", minAnonymousKey)
		}
	}
	if err := ctx.Err(); err != nil {
		return CallReply{}, err // nobody is left to learn of the task
	}
	if s.closing.Err() != nil {
		return CallReply{}, newShutdownError()
	}
	canAsk := caller.CanAsk
	if call.Later {
		canAsk = append(slices.Clone(canAsk), methodElicit)
	}
	policy := t.spec.Policy
	// Whole microseconds of the wall clock are what every store and cursor keeps.
	now := time.Now().UTC().Truncate(time.Microsecond)
	fresh := Record{
		ID:             id,
		ExternalID:     call.ExternalID,
		Principal:      caller.Principal,
		Account:        caller.Account(),
		Tool:           t.spec.Name,
		Arguments:      bytes.Clone(arguments),
		Revision:       caller.Revision,
		IdempotencyKey: key,
		CanAsk:         canAsk,
		Inputs:         answers,
		Phase:          PhaseQueued,
		CreatedAt:      now,
		UpdatedAt:      now,
		ExpiresAt:      now.Add(s.chooseRetention(policy, call.TTL)),
		Poll:           policy.Poll,
		Worker:         s.worker,
		LeaseUntil:     now.Add(leaseFor),
	}
	if call.FromEnd {
		fresh.Keep, fresh.ExpiresAt = fresh.TTL(), now.Add(max(s.options.MaxTTL, policy.TTL))
	}
	quota := s.options.Limits.storeQuota()
	record, err := s.insertRecord(ctx, fresh, quota)
	if errors.Is(err, ErrExists) && key != "" && record.Version > 0 {
		if !bytes.Equal(record.Arguments, arguments) {
			return CallReply{}, Errorf(CodeInvalidParams, "the idempotency key was used before with other arguments")
		}
		if call.Mode == ModeGrace && record.Done() && record.Outcome.Kind != OutcomeCancelled {
			// The server may choose, and a task that has ended is no news.
			return CallReply{Outcome: record.Outcome}, nil
		}
		return CallReply{Task: &record}, nil
	}
	if refusal := s.explainQuota(caller, err, "tool", t.spec.Name); refusal != nil {
		return CallReply{}, refusal
	}
	switch {
	case errors.Is(err, ErrExists):
		return CallReply{}, Errorf(CodeInvalidParams, "the task ID %q is in use: choose another one for each call", call.ExternalID)
	case err != nil:
		s.logger.Error("task not stored", "tool", t.spec.Name, "error", err)
		// It may be all the same. Who has its key may come back for it, and finds it
		// running; nobody ever learns of any other.
		if key == "" && call.ExternalID == "" {
			s.discardRecord(unwantedRecord{fresh, time.Now().Add(leaseFor)})
		} else if s.executor.Submit(fresh.toSubmission()) != nil {
			return CallReply{}, newShutdownError()
		}
		return CallReply{}, Errorf(CodeInternalError, "the task could not be stored")
	}
	s.Audit(slog.LevelInfo, "task created", "created", caller, record)
	if call.Progress != nil {
		turn := make(chan ProgressFunc, 1)
		turn <- call.Progress
		s.progress.Store(record.ID, turn)
	}
	if err := s.executor.Submit(record.toSubmission()); err != nil {
		s.forgetTask(record)
		return CallReply{}, newShutdownError()
	}
	if call.Mode == ModeGrace && policy.Grace > 0 {
		return s.awaitGrace(ctx, record, policy.Grace)
	}
	return CallReply{Task: &record}, nil
}

// retention is the requestor's wish within the limit, else the tool's ttl
// (C-56). A wish of 0 or less means the default.
func (s *Server) chooseRetention(policy Policy, wish *time.Duration) time.Duration {
	if wish == nil || *wish <= 0 {
		return policy.TTL
	}
	return min(*wish, s.options.MaxTTL)
}

// grace waits for a quick end or a first question. A task that ended was never
// announced, so its record goes; one whose caller left is stopped.
func (s *Server) awaitGrace(ctx context.Context, record Record, grace time.Duration) (CallReply, error) {
	waiting, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	id, latest := record.ID, record
	for !latest.Done() && latest.Phase != PhaseInputRequired {
		r, err := s.awaitVersion(waiting, s.newTaskRetry(), id, latest.Version)
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

// Abandon stops and removes a task that nobody was told of. One with an
// idempotency key stays: whoever has the key may come back for it.
func (s *Server) Abandon(r Record) {
	if r.IdempotencyKey == "" {
		s.forgetTask(r) // first: a handler that starts from now on finds no task
		s.cancelHandler(r.ID, ErrCancelled)
	}
}

// insert stores a new record, in the place of one that is over and not swept yet.
// It fails with the store's errors. One of which ErrExists comes with another
// record is not stored.
func (s *Server) insertRecord(ctx context.Context, fresh Record, quota Quota) (Record, error) {
	if fresh.ExternalID != "" {
		// A record that is stored by a try whose answer is lost is told from one of
		// another call by its time, so there is one call of a name at a time.
		if _, taken := s.pendingNames.LoadOrStore(fresh.ID, nil); taken {
			return Record{}, ErrExists
		}
		defer s.pendingNames.Delete(fresh.ID)
	}
	t := s.newRequestRetry()
	for replaced := false; ; replaced = true {
		record, err := callStore(ctx, t, "Create", func(ctx context.Context) (Record, error) {
			fresh.LeaseUntil = time.Now().Add(leaseFor)
			return s.store.Create(ctx, fresh, quota)
		})
		if !errors.Is(err, ErrExists) {
			return record, err
		}
		former := record
		if former.Version == 0 { // only its ID is there
			var unread error
			if former, unread = s.getRecord(ctx, t, fresh.ID); unread != nil {
				if errors.Is(unread, ErrNoRecord) && !replaced {
					continue // it has gone meanwhile
				}
				return record, cmp.Or(unread, err)
			}
		}
		switch {
		case t.failures > 0 && former.ID == fresh.ID && former.isSameRun(fresh):
			return former, nil // by a try whose answer was lost
		case replaced || !former.isExpired(fresh.CreatedAt):
			return record, err
		}
		_, err = callStore(ctx, t, "Delete", func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.store.Delete(ctx, former)
		})
		switch {
		case err == nil:
			s.announceExpiry(former)
		case !errors.Is(err, ErrNoRecord) && !errors.Is(err, ErrConflict):
			return record, err
		}
	}
}

// unwanted is a record that nobody was told of.
type unwantedRecord struct {
	record Record
	// late is until when it may yet come to be: its Create has failed.
	late time.Time
}

// forget removes a task that nobody was told of, now or, if the store fails, in the
// background: until then it counts against its account's limits.
func (s *Server) forgetTask(r Record) { s.discardRecord(unwantedRecord{record: r}) }

func (s *Server) discardRecord(u unwantedRecord) {
	s.progress.Delete(u.record.ID)
	t := s.newRequestRetry()
	t.limit = time.Second // somebody may wait for what comes next
	if s.deleteRecord(t, u) {
		return
	}
	r := u.record
	u.record = Record{ID: r.ID, Version: r.Version, CreatedAt: r.CreatedAt, Principal: r.Principal, Tool: r.Tool, Revision: r.Revision}
	s.unwantedMu.Lock()
	defer s.unwantedMu.Unlock()
	if len(s.unwanted) >= mostUnwanted {
		s.logger.Error("task not deleted: it stays until its ttl", "task", LogID(r.Principal, r.ID))
		return
	}
	s.unwanted = append(s.unwanted, u)
}

// delete deletes a record whichever version it has, and says whether it is gone for
// good.
func (s *Server) deleteRecord(t *storeRetry, u unwantedRecord) (gone bool) {
	r := u.record
	for {
		_, err := callStore(s.drained, t, "Delete", func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.store.Delete(ctx, r)
		})
		if errors.Is(err, ErrConflict) && t.pauseAfterConflict(s.drained) {
			var latest Record
			if latest, err = s.getRecord(s.drained, t, r.ID); err == nil && latest.CreatedAt.Equal(r.CreatedAt) {
				r = latest
				continue
			} else if err == nil {
				return true // another task has its name
			}
		}
		if err == nil || errors.Is(err, ErrNoRecord) {
			s.withdrawSubmission(r.ID)
		}
		switch {
		case err == nil && !r.Done():
			s.auditEnd(r, "abandoned")
		case errors.Is(err, ErrNoRecord):
			return !time.Now().Before(u.late)
		}
		return err == nil || errors.Is(err, ErrServerClosed)
	}
}

// deleteUnwanted deletes what could not be deleted before.
func (s *Server) deleteUnwanted() time.Duration {
	s.unwantedMu.Lock()
	list := s.unwanted
	s.unwanted = nil
	s.unwantedMu.Unlock()
	left := list[:0]
	for i, u := range list {
		t := s.newRequestRetry()
		if time.Now().Before(u.late) || !s.deleteRecord(t, u) {
			left = append(left, u)
		}
		if t.failures > 0 && s.drained.Err() == nil { // the others have time
			left = append(left, list[i+1:]...)
			break
		}
	}
	s.unwantedMu.Lock()
	defer s.unwantedMu.Unlock()
	s.unwanted = append(left, s.unwanted...)
	return sweepEvery
}
