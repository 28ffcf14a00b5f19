package fallback

import (
	"context"
	"slices"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Carrier has a session's client asked what a task asks, until stop is called. A question stays open at the client
// after that, so that a person may take longer to answer than the call blocks. The answers come to the task in other
// requests. stop is nil if there is no way to ask.
type Carrier func(task mcptask.Record) (stop func())

// wait follows a task for a call until the given time, if it is not zero. It returns an error if the call
// or the server ends first. over reports whether the time is over.
func (c Carrier) wait(ctx context.Context, s *mcptask.Server, caller mcptask.Caller, record mcptask.Record, until time.Time, watch func(mcptask.Record)) (_ mcptask.Record, over bool, err error) {
	waiting, cancel := context.WithCancel(ctx)
	if !until.IsZero() {
		waiting, cancel = context.WithDeadline(ctx, until)
	}
	defer cancel()
	defer context.AfterFunc(s.Closing(), cancel)()
	record, err = c.follow(waiting, s, caller, record, watch)
	switch {
	case err != nil || record.Done():
	case s.Closing().Err() != nil:
		err = newShutdownError()
	case ctx.Err() != nil:
		err = ctx.Err()
	}
	return record, waiting.Err() != nil, err
}

// follow waits until a task has ended, until it has a question that the call's client cannot be asked, or
// until ctx ends. The end of ctx is not an error. It calls watch for each new version.
func (c Carrier) follow(ctx context.Context, s *mcptask.Server, caller mcptask.Caller, record mcptask.Record, watch func(mcptask.Record)) (mcptask.Record, error) {
	var stop func()
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	for !record.Done() {
		if open := record.Outstanding(); len(open) > 0 {
			if c == nil || slices.ContainsFunc(open, func(in mcptask.Input) bool { return !caller.Answers(in) }) {
				return record, nil
			}
			if stop == nil {
				stop = c(record)
			}
			if stop == nil {
				return record, nil
			}
		}
		latest, err := s.Changed(ctx, caller, record.ID, record.Version)
		switch {
		case ctx.Err() != nil:
			return record, nil
		case err != nil:
			return record, err
		}
		record = latest
		watch(record)
	}
	return record, nil
}
