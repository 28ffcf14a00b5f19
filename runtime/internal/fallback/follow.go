package fallback

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

type askFunc = func(context.Context, mcptask.Input) (json.RawMessage, error)

// follow waits until a task has ended, until it has a question that cannot be
// asked here, or until ctx ends; the last is no error. While it waits it asks
// the task's questions on the stream of the call that is open.
func follow(ctx context.Context, s *mcptask.Server, caller mcptask.Caller, record mcptask.Record, ask askFunc) (mcptask.Record, error) {
	ctx, stop := context.WithCancel(ctx)
	a := &asking{server: s, caller: caller, task: record.ID, ask: ask, giveUp: stop, open: map[string]context.CancelFunc{}}
	defer a.done.Wait() // the stream is not ours when the call has been answered
	defer stop()
	for !record.Done() && a.take(ctx, record.Outstanding()) {
		latest, err := s.Changed(ctx, caller, record.ID, record.Version)
		switch {
		case ctx.Err() != nil:
			return record, nil
		case err != nil:
			return record, err
		}
		record = latest
	}
	return record, nil
}

// asking is the questions of one task that are asked on a call's stream.
type asking struct {
	server *mcptask.Server
	caller mcptask.Caller
	task   string
	ask    askFunc
	giveUp func()
	open   map[string]context.CancelFunc // by key
	done   sync.WaitGroup
}

// take asks what is new and takes back what is settled; false says that there
// is a question that the caller cannot be asked.
func (a *asking) take(ctx context.Context, questions []mcptask.Input) bool {
	for key, settled := range a.open {
		if !slices.ContainsFunc(questions, func(in mcptask.Input) bool { return in.Key == key }) {
			settled()
		}
	}
	for _, in := range questions {
		if a.ask == nil || !a.caller.Answers(in) {
			return false
		}
		if a.open[in.Key] == nil {
			ctx, cancel := context.WithCancel(ctx)
			a.open[in.Key] = cancel
			a.done.Go(func() { defer guard.Recover(a.server.Logger(), "a question"); a.question(ctx, in) })
		}
	}
	return true
}

// question asks one question. A form that the client fails to show waits for
// the tool that answers; nobody else could answer the rest.
func (a *asking) question(ctx context.Context, in mcptask.Input) {
	response, err := a.ask(ctx, in)
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		err = a.server.Respond(ctx, a.caller, a.task, in.Key, response, nil)
	case form(in):
		a.giveUp()
		return
	default:
		failed := mcptask.Errorf(mcptask.CodeInternalError, "the client has not answered")
		err = a.server.Respond(ctx, a.caller, a.task, in.Key, nil, failed)
	}
	if err != nil && ctx.Err() == nil {
		a.server.Notice(slog.LevelWarn, "answer not taken", "task", mcptask.LogID(a.caller.Principal, a.task), "key", in.Key, "error", err)
		a.giveUp()
	}
}

// form says whether a question is one that a model can pass on to its user.
func form(in mcptask.Input) bool { return in.Method == "elicitation/create" && in.Schema != nil }
