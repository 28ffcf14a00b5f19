package fallback

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

type askFunc = func(context.Context, mcptask.Input) (json.RawMessage, error)

// follow waits until a task has ended, until it has a question that the call cannot ask, or until
// ctx ends. The end of ctx is not an error. While follow waits, it asks the task's questions on the
// open stream of the call, or has the carrier ask them. It calls watch for each new version.
func follow(ctx context.Context, s *mcptask.Server, caller mcptask.Caller, record mcptask.Record, ask askFunc, carrier Carrier, watch func(mcptask.Record)) (mcptask.Record, error) {
	ctx, stop := context.WithCancel(ctx)
	a := &openQuestions{server: s, caller: caller, task: record.ID, ask: ask, giveUp: stop, open: map[string]context.CancelFunc{}}
	if carrier != nil {
		a.carry = func() bool {
			if a.stopCarrying == nil {
				a.stopCarrying = carrier(record)
			}
			return a.stopCarrying != nil
		}
		defer func() {
			if a.stopCarrying != nil {
				a.stopCarrying()
			}
		}()
	}
	defer a.done.Wait() // after the answer the stream is not ours
	defer stop()
	for !record.Done() && a.update(ctx, record.Outstanding()) {
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

// openQuestions holds the questions of one task that are asked on a call's stream.
type openQuestions struct {
	server *mcptask.Server
	caller mcptask.Caller
	task   string
	ask    askFunc
	giveUp func()
	open   map[string]context.CancelFunc // by key
	done   sync.WaitGroup
	// carry has the carrier ask, and reports whether it can. It is nil without a carrier.
	carry        func() bool
	stopCarrying func()
}

// update asks new questions and cancels settled ones. It returns false if the caller cannot be
// asked an open question.
func (a *openQuestions) update(ctx context.Context, questions []mcptask.Input) bool {
	for key, settled := range a.open {
		if !slices.ContainsFunc(questions, func(in mcptask.Input) bool { return in.Key == key }) {
			settled()
		}
	}
	for _, in := range questions {
		if a.carry != nil && a.caller.Answers(in) && a.carry() {
			continue
		}
		if a.ask == nil || !a.caller.Answers(in) {
			return false
		}
		if a.open[in.Key] == nil {
			ctx, cancel := context.WithCancel(ctx)
			a.open[in.Key] = cancel
			a.done.Go(func() { defer guard.Recover(a.server.Logger(), "a question"); a.askQuestion(ctx, in) })
		}
	}
	return true
}

// askQuestion asks one question. If the client fails to show a form, the question stays open for
// the tool that answers. A question of any other kind is settled with an error, because nothing
// else can answer it.
func (a *openQuestions) askQuestion(ctx context.Context, in mcptask.Input) {
	response, err := a.ask(ctx, in)
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		err = a.server.Respond(ctx, a.caller, a.task, in.Key, response, nil)
	case protocol.IsForm(in):
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
