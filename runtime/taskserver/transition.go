package taskserver

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// errVoid says that an event no longer applies.
var errVoid = errors.New("mcptask: the event no longer applies")

// isOver reports whether an event was refused because the task has ended, is gone,
// or belongs to another run.
func isOver(err error) bool {
	return errors.Is(err, errTerminal) || errors.Is(err, taskstore.ErrNoRecord) || errors.Is(err, errVoid)
}

// applyEvent moves a task by one event, for a caller that waits for it and has read the
// record.
func (b *Backend) applyEvent(ctx context.Context, known taskstore.Record, decide func(taskstore.Record) event) (taskstore.Record, error) {
	return b.moveTask(ctx, b.newRequestRetry(), known, decide)
}

// moveTask moves a task by one event: it takes the record that is known, or reads it if only its ID is known, computes
// the next one, compares and sets. decide sees the record as it is and returns the event, or a zero event to stop.
// moveTask reads the record again, and decides again, after a conflict and if the known record allows no event.
func (b *Backend) moveTask(ctx context.Context, t *storeRetry, known taskstore.Record, decide func(taskstore.Record) event) (taskstore.Record, error) {
	record, isRead, nonce := known, known.Version == 0, rand.Text()
	var e event
	for {
		if isRead {
			var err error
			if record, err = b.getRecord(ctx, t, known.ID); err != nil {
				b.missChange(known.ID)
				return record, err
			}
			if b.noteChange(record.ID, record.Version) {
				b.notifyObservers(record)
			}
			if hasWrite(&record, nonce) { // its answer was lost, and others have written since
				b.announceChange(ctx, record, e)
				return record, nil
			}
		}
		e = decide(record)
		e.nonce = nonce
		if e.at = b.Now(); e.at.Before(record.UpdatedAt) {
			e.at = record.UpdatedAt // another process knows the store's time only roughly
		}
		for i := range e.steps {
			e.steps[i].At, e.steps[i].Attempt = e.at, record.Attempt
		}
		moved, err := nextRecord(record, e)
		switch {
		case err == nil:
			stored, err := b.storeMove(ctx, t, record, moved, e)
			switch {
			case !errors.Is(err, taskstore.ErrConflict):
				return stored, err
			case !t.pauseAfterConflict(ctx):
				b.missChange(record.ID)
				return stored, err
			}
		case isRead:
			return record, err
		}
		isRead = true
	}
}

// storeMove stores a record that an event has changed, and tells the observers and hooks. It keeps progress from being
// sent meanwhile if the task ends.
func (b *Backend) storeMove(ctx context.Context, t *storeRetry, record, moved taskstore.Record, e event) (taskstore.Record, error) {
	_, giveBack := b.takeProgressTurn(record.ID, moved.Done())
	defer giveBack()
	b.expectChange(record.ID, record.Version+1)
	stored, err := b.updateRecord(ctx, t, record, moved, e)
	switch {
	case err == nil:
		b.announceChange(ctx, stored, e)
	case !errors.Is(err, taskstore.ErrConflict): // otherwise the record is read next
		b.missChange(record.ID)
	}
	return stored, err
}

// ifSameRun returns a function that decides for e while the task is still in the
// given run, and for no event otherwise.
func ifSameRun(run taskstore.Record, e event) func(taskstore.Record) event {
	return func(r taskstore.Record) event {
		if !isSameRun(r, run) {
			return event{}
		}
		return e
	}
}

// updateRecord stores a record that an event has changed. A task ends even if its account has no room for the outcome:
// then it ends with an error that says so, and that error is smaller than the outcome. With an error, it returns the
// record that the store was given last.
func (b *Backend) updateRecord(ctx context.Context, t *storeRetry, record, moved taskstore.Record, e event) (taskstore.Record, error) {
	quota := b.options.Limits.storeQuota()
	if e.unbounded || e.kind == eventHandOver || e.kind == eventFinish && e.outcome.Kind == taskstore.OutcomeCancelled {
		quota = taskstore.Quota{}
	}
	stored, err := b.writeUpdate(ctx, t, record, moved, quota, e.steps...)
	if err == nil || e.kind != eventFinish {
		return stored, err
	}
	refusal := b.explainQuota(ctx, callerOf(&record), err, "tool", record.Tool, "task", taskstore.LogID(record.Principal, record.ID))
	if refusal == nil {
		return stored, err
	}
	e.outcome, e.nonce = taskstore.Outcome{Kind: taskstore.OutcomeError, Error: refusal}, rand.Text() // another write
	if refused, err := nextRecord(record, e); err == nil && refused.Size() < moved.Size() {
		moved = refused
	}
	return b.writeUpdate(ctx, t, record, moved, taskstore.Quota{})
}

// writeUpdate makes the store's Update until it is answered: the store knows a write that it has stored already.
func (b *Backend) writeUpdate(ctx context.Context, t *storeRetry, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	stored, err := b.writeWithRoom(ctx, &from, func() (taskstore.Record, error) {
		return callStore(ctx, t, "Update", func(ctx context.Context) (taskstore.Record, error) {
			return b.store.Update(ctx, from, to, quota, steps...)
		})
	})
	if err != nil {
		return to, err
	}
	return stored, nil
}

// announceChange tells observers, hooks and the audit trail of a version that an event has made and that is stored.
func (b *Backend) announceChange(ctx context.Context, r taskstore.Record, e event) {
	b.noteChange(r.ID, r.Version)
	b.noteRun(r)
	b.notifyObservers(r)
	if e.lost {
		lost := r
		if e.kind == eventStart { // of the run that follows
			lost.Attempt--
		}
		b.tellHooks(ctx, TaskEvent{Kind: taskstore.EventLost, Task: lost})
	}
	if kind := transitions[e.kind].public; kind != taskstore.EventEnded { // auditEnd tells of all ends
		b.tellHooks(ctx, TaskEvent{Kind: kind, Task: r})
	}
	if r.Done() {
		b.forgetCall(r.ID)
		if e.kind == eventFinish { // otherwise the task has ended since, and whoever has ended it tells of that
			b.auditEnd(ctx, r, nameOutcome(r.Outcome))
		}
	}
}

// Observe calls f with each version of a task that this process stores, and with those that
// other processes store of a task that runs here or that is followed, see [Backend.Follow]: some
// may be skipped, but not the last. It also calls f with a task that this process deletes
// unfinished because its ExpiresAt has passed. A version may come twice or late. f must not
// block. The calls end when stop is called.
func (b *Backend) Observe(f func(taskstore.Record)) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := new(int)
	b.observers[key] = f
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.observers, key)
	}
}

// notifyObservers calls the functions that Observe was given.
func (b *Backend) notifyObservers(r taskstore.Record) {
	b.mu.Lock()
	observers := make([]func(taskstore.Record), 0, len(b.observers))
	for _, f := range b.observers {
		observers = append(observers, f)
	}
	b.mu.Unlock()
	for _, f := range observers {
		f(r)
	}
}

// takeProgressTurn keeps a task from ending between a report and its progress
// notification, so that no progress follows the end (C-68). It gives up after a
// second: a client that does not read its stream must not keep its task alive.
func (b *Backend) takeProgressTurn(id string, wanted bool) (send ProgressFunc, giveBack func()) {
	if turn, ok := b.progress.Load(id); ok && wanted {
		turn := turn.(chan ProgressFunc)
		select {
		case send = <-turn:
			if _, ok := b.progress.Load(id); !ok { // it has ended meanwhile
				turn <- send
				return nil, func() {}
			}
			return send, func() { turn <- send }
		case <-time.After(time.Second):
		}
	}
	return nil, func() {}
}

// keepCall keeps the progress function and the handler of the call that makes a task, for all runs here. See
// CallRequest.Bind.
func (b *Backend) keepCall(id string, call CallRequest) {
	if call.Bind != nil {
		b.bound.Store(id, call.bound)
	}
	if call.Progress != nil {
		turn := make(chan ProgressFunc, 1)
		turn <- call.Progress
		b.progress.Store(id, turn)
	}
}

// findBound returns the handler that keepCall keeps, or nil.
func (b *Backend) findBound(id string) mcptask.BoundCall {
	bound, _ := b.bound.Load(id)
	call, _ := bound.(mcptask.BoundCall)
	return call
}

// forgetCall forgets the progress function and the handler of the call that has made a task.
func (b *Backend) forgetCall(id string) {
	b.progress.Delete(id)
	b.bound.Delete(id)
}
