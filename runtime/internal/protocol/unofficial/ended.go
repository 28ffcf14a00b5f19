package unofficial

import (
	"context"
	"errors"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// endReader reads the outcomes of tasks in a list, because a list may leave out their content.
type endReader struct {
	server *taskserver.Backend
	caller taskserver.Caller
	failed bool // the store has failed, and no more tasks are read
}

// read returns a record of a list. If the task has ended with an error, read returns the whole record.
func (e *endReader) read(ctx context.Context, r taskstore.Record) taskstore.Record {
	if !r.Done() || r.Outcome.Kind != taskstore.OutcomeError && !r.Outcome.IsError || r.Outcome.Error != nil || r.Outcome.Result != nil {
		return r
	}
	if !e.failed {
		whole, err := e.server.Get(ctx, e.caller, r.ID)
		if err == nil && whole.Done() {
			return whole
		}
		var gone *mcptask.Error
		e.failed = err != nil && !(errors.As(err, &gone) && gone.Code == mcptask.CodeInvalidParams)
	}
	if r.Outcome.Kind == taskstore.OutcomeError {
		r.Outcome = &taskstore.Outcome{Kind: taskstore.OutcomeError, Error: mcptask.Errorf(mcptask.CodeInternalError, "%s", r.StatusMessage)}
	}
	return r
}
