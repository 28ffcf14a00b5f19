package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
)

// counts is what all gateways of a server count to hold its limits.
type counts struct {
	polls, lists             *limit.Rates[[2]string]
	calls, waiting, followed limit.Gauge[string]
}

type countsKey struct{}

func countsOf(s *mcptask.Server) *counts {
	return s.Attached(countsKey{}, func() any {
		limits := s.Options().Limits
		return &counts{polls: limit.NewRates[[2]string](limits.Polls, 2), lists: limit.NewRates[[2]string](limits.Lists, 2)}
	}).(*counts)
}

// admit refuses a request for a task, or for the list, that comes too soon
// (C-95, E-26). The task has not been looked up: a made-up ID counts like any.
// Nobody uses up the requests of another principal.
func (g *Gateway) admit(caller mcptask.Caller, m *message) *mcptask.Error {
	limits := g.server.Options().Limits
	id, ok := m.Params.Text("taskId")
	if !ok || id == "" {
		id, _ = m.Params.Text("id") // by which the guide's dialect names a task
	}
	switch {
	case m.Method == "tasks/list":
		if !g.counts.lists.Allow([2]string{caller.Principal, caller.Session}) {
			return g.server.Limited(caller, "lists", limits.Lists)
		}
	case id != "": // else its method refuses it
		return g.poll(caller, id)
	}
	return nil
}

// poll counts a request for a task.
func (g *Gateway) poll(caller mcptask.Caller, task string) *mcptask.Error {
	if !g.counts.polls.Allow([2]string{caller.Principal, task}) {
		return g.server.Limited(caller, "polls", g.server.Options().Limits.Polls,
			"task", mcptask.LogID("", task)) // whose it is was not asked
	}
	return nil
}

// polling counts calls of a fallback tool as requests for the task that they name.
func (g *Gateway) polling(caller mcptask.Caller, next fallback.Handler) fallback.Handler {
	return func(ctx context.Context, arguments json.RawMessage, call mcptask.CallRequest) (mcptask.CallReply, error) {
		if task := fallback.Task(arguments); task != "" { // else the tool refuses it
			if err := g.poll(caller, task); err != nil {
				return mcptask.CallReply{}, err
			}
		}
		return next(ctx, arguments, call)
	}
}

// block counts a request that waits for the end of a task, until done is called.
func (g *Gateway) block(caller mcptask.Caller) (done func(), err *mcptask.Error) {
	limits := g.server.Options().Limits
	most := [3]int{limits.Waiting, limits.Anonymous.Waiting, limits.Server.Waiting}
	return take(g.server, caller, &g.counts.waiting, "waiting", 1, most)
}

// take opens n more of what a limit bounds, until done is called: for the caller's account, for all
// anonymous callers if it is one of them, and for the server. most has the bounds in this order.
func take(s *mcptask.Server, caller mcptask.Caller, open *limit.Gauge[string], name string, n int, most [3]int,
	attrs ...any) (done func(), err *mcptask.Error) {
	scopes := []mcptask.Scope{mcptask.ScopeAccount, mcptask.ScopeAnonymous, mcptask.ScopeServer}
	bounds := []limit.Bound[string]{
		{Key: caller.Account(), Most: most[0]},
		{Key: string(mcptask.ScopeAnonymous), Most: most[1]}, // no account is called so
		{Key: string(mcptask.ScopeServer), Most: most[2]},
	}
	if caller.Principal != "" {
		scopes, bounds = slices.Delete(scopes, 1, 2), slices.Delete(bounds, 1, 2)
	}
	done, full := open.Take(n, bounds...)
	if done == nil {
		return nil, s.LimitedIn(scopes[full], caller, name, bounds[full].Most, attrs...)
	}
	return done, nil
}

// begin counts a call that is open, until done is called, and refuses one that
// is too big, or one too many.
func begin(s *mcptask.Server, caller mcptask.Caller, tool string, arguments json.RawMessage, answers map[string]json.RawMessage) (done func(), err *mcptask.Error) {
	limits := s.Options().Limits
	size := len(arguments)
	for _, answer := range answers {
		size = max(size, len(answer))
	}
	if size > limits.Arguments {
		return nil, s.Limited(caller, "arguments", limits.Arguments, "tool", tool)
	}
	most := [3]int{limits.Running, limits.Anonymous.Running, limits.Server.Running}
	return take(s, caller, &countsOf(s).calls, "running", 1, most, "tool", tool)
}

// taken is the response to a question; one that is too big is none, an error
// too, which the record would keep like an answer. Since a response has no
// answer, only the handler learns of it.
func taken(s *mcptask.Server, caller mcptask.Caller, response json.RawMessage, failed *mcptask.Error) (json.RawMessage, *mcptask.Error) {
	size := len(response)
	if failed != nil {
		size += len(failed.Message) + len(failed.Data)
	}
	if most := s.Options().Limits.Arguments; size > most {
		return nil, s.Limited(caller, "arguments", most)
	}
	return response, failed
}

// asker bounds the answers that come while a call is open.
func asker(s *mcptask.Server, caller mcptask.Caller, ask askFunc) askFunc {
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, in mcptask.Input) (json.RawMessage, error) {
		response, err := ask(ctx, in)
		if err != nil {
			return nil, err
		}
		response, failed := taken(s, caller, response, nil)
		if failed != nil {
			return nil, fmt.Errorf("%w: %s", mcptask.ErrCannotAsk, failed.Message)
		}
		return response, nil
	}
}

type askFunc = func(context.Context, mcptask.Input) (json.RawMessage, error)
