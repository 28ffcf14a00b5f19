package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// The gateway serves a subscriptions/listen of 2026-07-28 that names tasks (E-62). After the
// acknowledgement the subscriber gets the state of each task, so that it misses no change between
// its last poll and the subscription. Then it gets every change, including changes by other
// processes, because the gateway follows the store. A subscriber that reads slowly gets the latest
// state.
//
// The gateway answers the subscription, and ends the stream when all tasks have ended or are gone. If
// the subscription names other kinds of notifications too, it gets none of these: the acknowledgement
// has the tasks alone (E-63), and the SDK serves another subscription to the rest. When the server
// closes, the gateway also answers the request. Only the answer reports the end:
// the specification's page on cancellation also asks for a notifications/cancelled, but its page on
// subscriptions and the SDKs have dropped that.

const (
	// maxTaskIDs limits the tasks of one subscription.
	maxTaskIDs = 1000
	// maxFollowed limits the tasks in all open subscriptions of an account. Each subscription
	// counts as one more. A request beyond the limit is refused with "followed" in data.limit.
	maxFollowed = 20_000
	// maxFollowedByAnonymous and maxFollowedInAll are the same limit for all anonymous callers
	// together, and for all callers.
	maxFollowedByAnonymous, maxFollowedInAll = 40_000, 100_000
)

// subscription is one open subscriptions/listen.
type subscription struct {
	g      *Gateway
	caller taskserver.Caller
	// id is the ID of the request, unchanged. It also names the subscription (E-68).
	id json.RawMessage
	// tasks are the IDs of the caller's tasks.
	tasks []string
	// close ends the counts of the subscription.
	close func()
}

// answerListen answers a subscriptions/listen that names tasks (E-62, E-64).
func (g *Gateway) answerListen(x exchange, caller taskserver.Caller) {
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
		g.findServerInfo(ctx, x) // for the result, which may come when the server closes
		x.send(s.encodeAcknowledgement())
		result, err := s.answer(ctx, s.followTasks(ctx, x.send))
		if err != nil {
			return nil, err
		}
		return g.nameServer(ctx, x, result), nil
	}})
}

// subscribe opens a subscription to the caller's tasks. It omits tasks of other callers, like tasks
// that do not exist (E-63, E-87).
func (g *Gateway) subscribe(ctx context.Context, caller taskserver.Caller, m *message) (*subscription, error) {
	var d protocol.Server20260728
	asked, err := d.Subscribe(m.Params)
	if err != nil {
		return nil, err
	}
	if len(asked) > maxTaskIDs {
		return nil, mcptask.Errorf(mcptask.CodeInvalidParams, "params.notifications.taskIds names %d tasks, at most %d are allowed", len(asked), maxTaskIDs)
	}
	for _, id := range asked { // the state of each task is sent at once, so it counts as a poll
		if err := g.countPoll(ctx, caller, id); err != nil {
			return nil, err
		}
	}
	waits, refusal := g.countWaiting(ctx, caller)
	if refusal != nil {
		return nil, refusal
	}
	follows, refusal := countUses(ctx, g.server, caller, &g.counts.followed, "followed", 1+len(asked),
		[3]int{maxFollowed, maxFollowedByAnonymous, maxFollowedInAll})
	if refusal != nil {
		waits()
		return nil, refusal
	}
	free := func() { follows(); waits() }
	s := &subscription{g: g, caller: caller, id: m.ID, close: free}
	for _, id := range asked {
		switch _, err := g.server.Get(ctx, caller, id); {
		case err == nil:
			s.tasks = append(s.tasks, id)
		case !protocol.IsGone(err) || ctx.Err() != nil:
			free()
			return nil, err
		}
	}
	return s, nil
}

// followTasks writes the tasks and their changes until all tasks have ended or are gone, or ctx
// ends. It returns only errors of the server. While write waits for the client, it skips changes: the
// next state of a task that it writes is the latest.
func (s *subscription) followTasks(ctx context.Context, write func([]byte)) (err error) {
	defer guard.Then(s.g.server.Logger(), "a subscription to tasks", func() { err = errors.New("a panic") })
	var d protocol.Server20260728
	sent := map[string][]byte{}
	for r, err := range s.g.server.Watch(ctx, s.caller, s.tasks...) {
		if ctx.Err() != nil || s.g.server.Closing().Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := d.Changed(ctx, s.g.server, s.id, s.caller, r)
		if err != nil {
			return err
		}
		if !bytes.Equal(data, sent[r.ID]) { // a change of the lease, for example, is not visible
			write(data)
		}
		if sent[r.ID] = data; r.Done() {
			delete(sent, r.ID)
		}
	}
	return nil
}

// encodeAcknowledgement returns the acknowledgement of the tasks (E-63).
func (s *subscription) encodeAcknowledgement() []byte {
	data, err := protocol.Server20260728{}.Acknowledged(s.id, s.tasks)
	if err != nil { // cannot happen: an ID and strings always marshal
		return nil
	}
	return data
}

// answer returns the answer to the request: the error that stopped the subscription, or its result.
// If the client has disconnected, it returns the error of ctx.
func (s *subscription) answer(ctx context.Context, err error) (json.RawMessage, error) {
	switch {
	case ctx.Err() != nil && s.g.server.Closing().Err() == nil:
		return nil, ctx.Err()
	case err != nil:
		s.g.server.Notice(slog.LevelError, "subscription ended", "error", err)
		return nil, wireError(err)
	}
	return protocol.Server20260728{}.Ended(s.id)
}
