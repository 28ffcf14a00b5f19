package fallback

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

type askFunc = func(context.Context, mcptask.Request) (json.RawMessage, error)

// Session is the session of a call. The zero Session stands for none.
type Session struct {
	// ID tells the sessions of a server apart.
	ID any
	// Ended ends with the session.
	Ended context.Context
}

// wait follows a task for a call until the given time, if it is not zero. It returns an error if the call
// or the server ends first. over reports whether the time is over.
func (w way) wait(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, record taskstore.Record, ask askFunc, until time.Time, watch func(taskstore.Record)) (_ taskstore.Record, over bool, err error) {
	waiting, cancel := context.WithCancel(ctx)
	if !until.IsZero() {
		waiting, cancel = context.WithDeadline(ctx, until)
	}
	defer cancel()
	defer context.AfterFunc(s.Closing(), cancel)()
	record, err = w.follow(waiting, s, caller, record, ask, watch)
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
// ctx ends. The end of ctx is not an error. While follow waits, it asks the task's questions on the
// open stream of the call, or has the carrier ask them. It calls watch for each new version.
func (w way) follow(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, record taskstore.Record, ask askFunc, watch func(taskstore.Record)) (taskstore.Record, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a := &asker{way: w, server: s, caller: caller, ask: ask, giveUp: stop}
	defer a.stop()
	for !record.Done() && a.update(ctx, record) {
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

// way is how a call asks its client.
type way struct {
	session Session
	carrier Carrier
}

// asker asks the questions of one task for a call. A question stays open at the client when the call is
// over, so that a person may take longer to answer than the call blocks. Later calls do not ask it again
// in the same session. One goroutine uses an asker.
type asker struct {
	way
	server      *taskserver.Backend
	caller      taskserver.Caller
	ask         askFunc
	giveUp      func()
	stopCarrier func() // nil if the carrier does not ask
}

// askedKey identifies a question that the client of a session was asked and has not answered.
type askedKey struct {
	session   any
	task, key string
}

// openQuestions returns the set of the askedKeys of a server.
func openQuestions(s *taskserver.Backend) *sync.Map {
	type attached struct{}
	return s.Attached(attached{}, func() any { return new(sync.Map) }).(*sync.Map)
}

// update asks the task's new questions. It returns false if the caller cannot be asked one.
func (a *asker) update(ctx context.Context, record taskstore.Record) bool {
	for _, in := range record.Outstanding() {
		switch {
		case !a.caller.Answers(in.Request):
			return false
		case a.carry(record):
		case a.ask == nil || a.session.ID == nil:
			return false
		default:
			a.askOnce(ctx, record, in)
		}
	}
	return true
}

// carry has the carrier ask, and reports whether it can.
func (a *asker) carry(record taskstore.Record) bool {
	if a.carrier != nil && a.stopCarrier == nil { // the task asks for the first time
		a.stopCarrier = a.carrier(record)
	}
	return a.stopCarrier != nil
}

// stop stops the carrier, if it asks.
func (a *asker) stop() {
	if a.stopCarrier != nil {
		a.stopCarrier()
	}
}

// askOnce asks a question, unless the client has it already. It does not wait.
func (a *asker) askOnce(ctx context.Context, record taskstore.Record, in taskstore.Input) {
	asked, key := openQuestions(a.server), askedKey{a.session.ID, record.ID, in.Key}
	if _, has := asked.LoadOrStore(key, nil); has {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ends := context.AfterFunc(a.session.Ended, cancel)
	closes := context.AfterFunc(a.server.Closing(), cancel)
	guard.Go(a.server.Logger(), "a question", func() {
		defer func() { cancel(); ends(); closes(); asked.Delete(key) }()
		a.askQuestion(ctx, record.ID, in)
	})
	guard.Go(a.server.Logger(), "a question that is open", func() {
		defer cancel()
		for r, err := record, error(nil); err == nil && isOpen(r, in.Key); {
			r, err = a.server.Changed(ctx, a.caller, r.ID, r.Version)
		}
	})
}

// isOpen reports whether a question still waits for its answer.
func isOpen(r taskstore.Record, key string) bool {
	return !r.Done() && slices.ContainsFunc(r.Outstanding(), func(in taskstore.Input) bool { return in.Key == key })
}

// askQuestion asks one question. If the client fails to show a form, the question stays open for
// the tool that answers. A question of any other kind is settled with the client's error, because
// nothing else can answer it.
func (a *asker) askQuestion(ctx context.Context, task string, in taskstore.Input) {
	response, err := a.ask(ctx, in.Request)
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		err = a.server.Respond(ctx, a.caller, task, in.Key, response, nil)
	case protocol.IsForm(in):
		a.giveUp()
		return
	default:
		failed := mcptask.Errorf(mcptask.CodeInternalError, "the client has not answered")
		_ = errors.As(err, &failed)
		err = a.server.Respond(ctx, a.caller, task, in.Key, nil, failed)
	}
	if err != nil && ctx.Err() == nil {
		a.server.Notice(slog.LevelWarn, "answer not taken", "task", taskstore.LogID(a.caller.Principal, task), "key", in.Key, "error", err)
		a.giveUp()
	}
}
