package gateway

import (
	"context"
	"encoding/json"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// counts holds the counters for the limits that all gateways of a server share.
type counts struct {
	polls, lists             *limit.Rates[[2]string]
	calls, waiting, followed limit.Gauge[string]
}

type countsKey struct{}

func countsOf(s *taskserver.Backend) *counts {
	return s.Attached(countsKey{}, func() any {
		limits := s.Options().Limits
		return &counts{polls: limit.NewRates[[2]string](limits.Polls, 2), lists: limit.NewRates[[2]string](limits.Lists, 2)}
	}).(*counts)
}

// checkRate refuses a request for a task, or for the list, that comes too soon (C-95, E-26). It
// does not look up the task, so a made-up ID counts like any other. Every principal has requests of
// its own.
func (g *Gateway) checkRate(ctx context.Context, caller taskserver.Caller, m *message) *mcptask.Error {
	id, ok := m.Params.Text("taskId")
	if !ok || id == "" {
		id, _ = m.Params.Text("id") // the Task Patterns guide names a task by this member
	}
	switch {
	case m.Method == "tasks/list":
		return g.countList(ctx, caller)
	case id != "": // without an ID, the method refuses the request
		return g.countPoll(ctx, caller, id)
	}
	return nil
}

// countList counts a request for the list of tasks.
func (g *Gateway) countList(ctx context.Context, caller taskserver.Caller) *mcptask.Error {
	if !g.counts.lists.Allow([2]string{caller.Principal, caller.Session}) {
		return g.server.Limited(ctx, caller, "lists", g.server.Options().Limits.Lists)
	}
	return nil
}

// countLists counts each call of the fallback tool that lists tasks.
func (g *Gateway) countLists(caller taskserver.Caller, next fallback.Handler) fallback.Handler {
	return func(ctx context.Context, arguments json.RawMessage, call taskserver.CallRequest) (taskserver.CallReply, error) {
		if err := g.countList(ctx, caller); err != nil {
			return taskserver.CallReply{}, err
		}
		return next(ctx, arguments, call)
	}
}

// countPoll counts a request for a task.
func (g *Gateway) countPoll(ctx context.Context, caller taskserver.Caller, task string) *mcptask.Error {
	if !g.counts.polls.Allow([2]string{caller.Principal, task}) {
		return g.server.Limited(ctx, caller, "polls", g.server.Options().Limits.Polls,
			"task", taskstore.LogID("", task)) // the owner is not known
	}
	return nil
}

// countPolls counts each call of a fallback tool as a request for the task that it names, and also
// each repeated call whose state names a task.
func (g *Gateway) countPolls(caller taskserver.Caller, next fallback.Handler) fallback.Handler {
	return func(ctx context.Context, arguments json.RawMessage, call taskserver.CallRequest) (taskserver.CallReply, error) {
		task := call.Task
		if task == "" {
			task = fallback.Task(arguments)
		}
		if task != "" { // without a task, the tool refuses the call
			if err := g.countPoll(ctx, caller, task); err != nil {
				return taskserver.CallReply{}, err
			}
		}
		return next(ctx, arguments, call)
	}
}

// countWaiting counts a request that waits for a task to end, until done is called.
func (g *Gateway) countWaiting(ctx context.Context, caller taskserver.Caller) (done func(), err *mcptask.Error) {
	limits := g.server.Options().Limits
	most := [3]int{limits.Waiting, limits.Anonymous.Waiting, limits.Server.Waiting}
	return countUses(ctx, g.server, caller, &g.counts.waiting, "waiting", 1, most)
}

// countUses counts n more uses of a limit, until done is called. It counts them for the caller's
// account and for the server. If the caller is anonymous, it also counts them for all anonymous callers
// of the address, and for all anonymous callers. most has the limits of the account, of all anonymous
// callers and of the server.
func countUses(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, open *limit.Gauge[string], name string, n int, most [3]int,
	attrs ...any) (done func(), err *mcptask.Error) {
	scopes, bounds := make([]taskstore.Scope, 0, 4), make([]limit.Bound[string], 0, 4)
	bound := func(scope taskstore.Scope, key string, most int) { // no account has the names of the scopes
		scopes, bounds = append(scopes, scope), append(bounds, limit.Bound[string]{Key: key, Most: most})
	}
	bound(taskstore.ScopeAccount, caller.Account(), most[0])
	if caller.Principal == "" {
		if caller.Address != "" {
			bound(taskstore.ScopeAddress, "all of "+caller.Address, limit.ShareOfAddress(most[1]))
		}
		bound(taskstore.ScopeAnonymous, string(taskstore.ScopeAnonymous), most[1])
	}
	bound(taskstore.ScopeServer, string(taskstore.ScopeServer), most[2])
	done, full := open.Take(n, bounds...)
	if done == nil {
		return nil, s.LimitedIn(ctx, scopes[full], caller, name, bounds[full].Most, attrs...)
	}
	return done, nil
}

// countCall counts an open call until done is called. It refuses a call whose arguments or answers
// are too big, and a call beyond the limit.
func countCall(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, tool string, arguments json.RawMessage, answers map[string]json.RawMessage) (done func(), err *mcptask.Error) {
	limits := s.Options().Limits
	size := len(arguments)
	for _, answer := range answers {
		size = max(size, len(answer))
	}
	if size > limits.Arguments {
		return nil, s.Limited(ctx, caller, "arguments", limits.Arguments, "tool", tool)
	}
	most := [3]int{limits.Running, limits.Anonymous.Running, limits.Server.Running}
	return countUses(ctx, s, caller, &countsOf(s).calls, "running", 1, most, "tool", tool)
}

// limitAnswer returns the response to a question, or an error if the response is too big. A large
// error of the client's is refused too, because the record would store it. A response gets no
// answer, so only the handler sees the refusal.
func limitAnswer(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, response json.RawMessage, failed *mcptask.Error) (json.RawMessage, *mcptask.Error) {
	size := len(response)
	if failed != nil {
		size += len(failed.Message) + len(failed.Data)
	}
	if most := s.Options().Limits.Arguments; size > most {
		return nil, s.Limited(ctx, caller, "arguments", most)
	}
	return response, failed
}
