package fallback

import (
	"context"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Carrier asks a task's questions during a call that waits for the task, until stop is called. The answers come to the
// task in other requests. A question stays open at the client when the call is over, so that a person may take longer to
// answer than the call blocks. The carrier calls giveUp if the client fails to show a form that a tool answers too. It
// returns nil if it cannot ask. A nil Carrier cannot either.
type Carrier func(task taskstore.Record, giveUp func()) (stop func())

// wait follows a task for a call until the given time, if it is not zero. It returns an error if the call
// or the server ends first. over reports whether the time is over.
func (c Carrier) wait(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, record taskstore.Record, until time.Time, tell func(taskstore.Record)) (_ taskstore.Record, over bool, err error) {
	waiting, cancel := context.WithCancel(ctx)
	if !until.IsZero() {
		waiting, cancel = context.WithDeadline(ctx, until)
	}
	defer cancel()
	defer context.AfterFunc(s.Closing(), cancel)()
	record, err = c.follow(waiting, s, caller, record, tell)
	switch {
	case err != nil || record.Done():
	case s.Closing().Err() != nil:
		err = newShutdownError()
	case ctx.Err() != nil:
		err = ctx.Err()
	}
	return record, waiting.Err() != nil, err
}

// follow waits until a task has ended, until it has a question that the call cannot ask, or until
// ctx ends. The end of ctx is not an error. While follow waits, the carrier asks the task's questions. follow calls tell
// for each new version.
func (c Carrier) follow(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, record taskstore.Record, tell func(taskstore.Record)) (taskstore.Record, error) {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var stop func()
	for !record.Done() {
		can := len(answerable(caller, record))
		if can > 0 && stop == nil && c != nil { // the task asks for the first time
			if stop = c(record, giveUp); stop != nil {
				defer stop()
			}
		}
		if open := len(record.Outstanding()); open > can || open > 0 && stop == nil {
			return record, nil
		}
		latest, err := s.Changed(ctx, caller, record.ID, record.Version)
		switch {
		case ctx.Err() != nil:
			return record, nil
		case err != nil:
			return record, err
		}
		record = latest
		tell(record)
	}
	return record, nil
}

// answerable returns the open questions of a task that the caller can answer.
func answerable(caller taskserver.Caller, record taskstore.Record) []taskstore.Input {
	return slices.DeleteFunc(record.Outstanding(), func(in taskstore.Input) bool { return !caller.Answers(in.Request) })
}
