package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// A subscriptions/listen of 2026-07-28 that names tasks (E-62) is served here.
// After the acknowledgement the subscriber gets each task as it is, so that no
// change between its last poll and the subscription is lost, then every change,
// also one that another process makes: the store is followed. A subscriber that
// does not read gets the latest state when it does.
//
// Where nothing but tasks was asked for, the request is answered, and the stream
// ends, when all of them have ended or are gone: nothing could come any longer.
// Where other kinds were asked for too, the SDK's stream goes on as ever. When
// the server closes, the request is answered as well. Its answer is all that says
// so: the page on cancellation wants a notifications/cancelled too, the page on
// subscriptions and the SDKs have given that up.

const (
	// maxTaskIDs is how many tasks one subscription may name.
	maxTaskIDs = 1000
	// maxFollowed is how many tasks the open subscriptions of an account may
	// name together, each counted as one more: every one is a goroutine. What
	// exceeds it is refused with "followed" in data.limit.
	maxFollowed = 10_000
	// maxFollowedByAnonymous and maxFollowedInAll are the same for all anonymous
	// callers together, and for all callers.
	maxFollowedByAnonymous, maxFollowedInAll = 40_000, 100_000
)

// subscription is one open subscriptions/listen.
type subscription struct {
	g      *Gateway
	caller mcptask.Caller
	// id is the request's, as it came: the subscription is called so (E-68).
	id json.RawMessage
	// tasks are those that the caller will hear of.
	tasks []string
	// others says that other kinds of notifications were asked for too.
	others bool
	// close frees what the subscription counts for.
	close func()
}

// subscribe opens a subscription to those of the tasks that are the caller's.
// Somebody else's is left out like one that is not there (E-63, E-87).
func (g *Gateway) subscribe(ctx context.Context, caller mcptask.Caller, m *message) (*subscription, error) {
	var d dialect.Server20260728
	asked, err := d.Subscribe(m.Params)
	if err != nil {
		return nil, err
	}
	if len(asked.Tasks) > maxTaskIDs {
		return nil, mcptask.Errorf(mcptask.CodeInvalidParams, "params.notifications.taskIds names %d tasks, at most %d are allowed", len(asked.Tasks), maxTaskIDs)
	}
	for _, id := range asked.Tasks { // each is told at once: that is a poll
		if err := g.poll(caller, id); err != nil {
			return nil, err
		}
	}
	waits, refusal := g.block(caller)
	if refusal != nil {
		return nil, refusal
	}
	follows, refusal := take(g.server, caller, &g.counts.followed, "followed", 1+len(asked.Tasks),
		[3]int{maxFollowed, maxFollowedByAnonymous, maxFollowedInAll})
	if refusal != nil {
		waits()
		return nil, refusal
	}
	free := func() { follows(); waits() }
	s := &subscription{g: g, caller: caller, id: m.ID, others: asked.Others, close: free}
	for _, id := range asked.Tasks {
		switch _, err := g.server.Get(ctx, caller, id); {
		case err == nil:
			s.tasks = append(s.tasks, id)
		case !dialect.Gone(err) || ctx.Err() != nil:
			free()
			return nil, err
		}
	}
	return s, nil
}

// follow writes the tasks and their changes until all of them have ended or are
// gone, or ctx ends. An error is the server's. Nothing is written afterwards;
// write is called by many, one at a time for a task.
func (s *subscription) follow(ctx context.Context, write func([]byte)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	failed := make(chan error, len(s.tasks))
	var tasks sync.WaitGroup
	for _, id := range s.tasks {
		tasks.Go(func() {
			defer guard.Recover(s.g.server.Logger(), "a subscription to a task")
			err := errors.New("a panic")
			defer func() {
				if p := recover(); p != nil {
					s.g.server.Notice(slog.LevelError, "subscription panicked", "task", mcptask.LogID(s.caller.Principal, id), "panic", p)
				}
				if err != nil {
					failed <- err
					cancel(err)
				}
			}()
			err = s.followTask(ctx, id, write)
		})
	}
	tasks.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// followTask writes one task and its changes. While a write waits for the
// client, changes pass: the next one written is the latest.
func (s *subscription) followTask(ctx context.Context, id string, write func([]byte)) error {
	var d dialect.Server20260728
	var version int64
	var last []byte
	for {
		r, err := s.g.server.Changed(ctx, s.caller, id, version)
		switch {
		case ctx.Err() != nil || s.g.server.Closing().Err() != nil:
			return nil
		case dialect.Gone(err):
			return nil // it is gone, and there is no notification for that
		case err != nil:
			return err
		}
		data, err := d.Changed(ctx, s.g.server, s.id, s.caller, r)
		if err != nil {
			return err
		}
		if !bytes.Equal(data, last) { // a lease, say, shows nowhere
			write(data)
		}
		if r.Done() {
			return nil
		}
		last, version = data, r.Version
	}
}

// end is the answer to the request: an error that stopped the subscription, else
// its result. A subscriber that has left gets none.
func (s *subscription) end(ctx context.Context, err error) (json.RawMessage, error) {
	switch {
	case ctx.Err() != nil && s.g.server.Closing().Err() == nil:
		return nil, ctx.Err()
	case err != nil:
		s.g.server.Notice(slog.LevelError, "subscription ended", "error", err)
		return nil, wireError(err)
	}
	return dialect.Server20260728{}.Ended(s.id)
}

// listen answers a subscriptions/listen that names tasks (E-62, E-64).
func (g *Gateway) listen(x exchange, caller mcptask.Caller) {
	if err := g.checkModern(x, false); err != nil {
		x.refuse(refusedRequest, err)
		return
	}
	x.answer(work{waits: true, run: func(ctx context.Context) (json.RawMessage, error) {
		s, err := g.subscribe(ctx, caller, x.message())
		if err != nil {
			return nil, err
		}
		defer s.close()
		if s.others {
			return g.listenMerged(ctx, x, s)
		}
		x.send(s.acknowledged())
		return s.end(ctx, s.follow(ctx, x.send))
	}})
}
