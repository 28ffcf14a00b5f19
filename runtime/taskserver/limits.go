package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Limits bound the use of the server by one account, and by several accounts together. An account is a principal, or
// the session of an anonymous caller, or all anonymous callers of one network address without a session.
//
// 0 means the default, and a negative number means no bound. The refusal is -32603, with the limit's name
// in data.limit and the bound in data.max. If the bound is one of Anonymous or Server, data.scope is
// "anonymous" or "server".
//
// All anonymous callers of one network address together may take three quarters of each bound of
// Anonymous. Beyond that data.scope is "address". If the ended tasks of anonymous callers
// leave no room for a new task or for a result, the oldest of them are deleted. A session that fills its
// own account is refused instead.
//
//	field      default      data.limit  bounds
//	Tasks      10,000       tasks       the tasks that are stored
//	Running    1,000        running     those that have not ended, and, counted apart, the calls that are open
//	Waiting    1,000        waiting     the requests that wait for the end of a task, or for changes
//	Bytes      268,435,456  bytes       the bytes of all tasks that are stored: arguments, questions, answers, steps, results
//	Arguments  1,048,576    arguments   the bytes of a call's arguments, and of each answer
//	Result     4,194,304    result      the bytes of a result: a bigger one is not stored, the task ends with this error
//	Questions  100          questions   the questions of a task in its life: the handler gets this error
//	Step       262,144      step        the bytes of the value of a step, as JSON: the handler gets this error
//	Steps      4,194,304    steps       the bytes of all steps of a task: the handler gets this error
//	Polls      20           polls       the requests for a task in a second, twice as many at once
//	Lists      20           lists       the lists in a second, twice as many at once
//	Sessions   1,000        sessions    a principal's sessions at a handler; of anonymous callers see Anonymous
type Limits struct {
	Tasks, Running, Waiting, Bytes, Arguments, Result, Questions, Step, Steps, Polls, Lists, Sessions int
	// Anonymous bounds all anonymous callers together, since each may open as many sessions as it likes.
	// 0 means four times the account's bound, and at most half of the server's. For Sessions it means the
	// account's bound.
	Anonymous Totals
	// Server bounds all callers together: the tasks of the store, and the calls, waits and sessions that are open in
	// this process. 0 means 100,000 Tasks, 10,000 Running, Waiting and Sessions, and 1,073,741,824 Bytes, or twice the
	// account's bound if that is more.
	Server Totals
}

// Totals bound the use by several accounts together. Each field bounds the same thing as the field of [Limits] with its
// name.
type Totals struct{ Tasks, Running, Waiting, Bytes, Sessions int }

// setDefaults replaces 0 with the default and a negative number with the largest one.
func (l *Limits) setDefaults() {
	const (
		anonymousAccounts = 4 // all anonymous callers together may take as much as this many accounts,
		anonymousShare    = 2 // and at most the server's bound divided by this: there is room for principals
		serverAccounts    = 2 // the server has room for at least this many accounts
	)
	limit.Fill(map[*int]int{
		&l.Tasks:     10_000,
		&l.Running:   1000, // bounds the tasks at once (C-96)
		&l.Waiting:   1000,
		&l.Bytes:     256 << 20,
		&l.Arguments: 1 << 20,
		&l.Result:    4 << 20,
		&l.Questions: 100,
		&l.Step:      256 << 10,
		&l.Steps:     4 << 20,
		&l.Polls:     20, // bounds the rate of polls (C-95, E-26)
		&l.Lists:     20,
		&l.Sessions:  1000,
	})
	a, s := &l.Anonymous, &l.Server
	for _, f := range []struct {
		account           int
		anonymous, server *int
		total             int
	}{
		{l.Tasks, &a.Tasks, &s.Tasks, 100_000},
		{l.Running, &a.Running, &s.Running, 10_000},
		{l.Waiting, &a.Waiting, &s.Waiting, 10_000},
		{l.Bytes, &a.Bytes, &s.Bytes, 1 << 30},
		{l.Sessions, &a.Sessions, &s.Sessions, 10_000},
	} {
		limit.Fill(map[*int]int{f.server: max(f.total, limit.Times(f.account, serverAccounts))})
		anonymous := limit.Times(f.account, anonymousAccounts)
		if *f.server < math.MaxInt {
			anonymous = max(1, min(anonymous, *f.server/anonymousShare))
		}
		if f.anonymous == &a.Sessions { // an anonymous caller's account is a session
			anonymous = f.account
		}
		limit.Fill(map[*int]int{f.anonymous: anonymous})
	}
}

// storeQuota returns the bounds that the store keeps.
func (l *Limits) storeQuota() taskstore.Quota {
	usage := func(tasks, running, bytes int) taskstore.Usage {
		return taskstore.Usage{Stored: tasks, Unfinished: running, Bytes: int64(bytes)}
	}
	a, s := l.Anonymous, l.Server
	return taskstore.Quota{
		Account:   usage(l.Tasks, l.Running, l.Bytes),
		Address:   usage(limit.ShareOfAddress(a.Tasks), limit.ShareOfAddress(a.Running), limit.ShareOfAddress(a.Bytes)),
		Anonymous: usage(a.Tasks, a.Running, a.Bytes),
		Server:    usage(s.Tasks, s.Running, s.Bytes),
	}
}

// limitAdvice tells the operator and the caller the way out of a limit.
type limitAdvice struct {
	option string // the option that sets the limit; "" if there is none
	help   string // for the caller
}

// accountAdvice has the advice for each limit of an account, by the limit's name.
var accountAdvice = map[string]limitAdvice{
	"tasks":     {"Limits.Tasks", "wait until tasks expire"},
	"running":   {"Limits.Running", "wait until some end, or cancel some"},
	"waiting":   {"Limits.Waiting", "wait for fewer tasks at once"},
	"bytes":     {"Limits.Bytes", "wait until tasks expire, or send and ask for less"},
	"arguments": {"Limits.Arguments", "send less"},
	"result":    {"Limits.Result", "ask the tool for less"},
	"questions": {"Limits.Questions", "ask less often in one task"},
	"step":      {"Limits.Step", "store less in one step: keep files elsewhere, and store where they are"},
	"steps":     {"Limits.Steps", "store less in the steps of one task"},
	"polls":     {"Limits.Polls", "poll more slowly"},
	"lists":     {"Limits.Lists", "list less often"},
	"sessions":  {"Limits.Sessions", "try again later"},
	"followed":  {"", "name fewer tasks, or end other subscriptions"},
	"starting":  {"Concurrency", "try again in a second"},
	"memory":    {"MaxBody", "try again in a second, or send and ask for less at once"},
}

// sharedAdvice has the advice for limits of several accounts. Its options are
// prefixes in the place of "Limits.".
var sharedAdvice = map[taskstore.Scope]struct {
	limitAdvice
	whose string
}{
	taskstore.ScopeAddress:   {limitAdvice{"Limits.Anonymous.", "try again later, or authenticate"}, " for all anonymous callers of one address"},
	taskstore.ScopeAnonymous: {limitAdvice{"Limits.Anonymous.", "try again later, or authenticate"}, " for all anonymous callers together"},
	taskstore.ScopeServer:    {limitAdvice{"Limits.Server.", "try again later"}, " for all callers together"},
}

// Limited returns the refusal for a limit of the caller's account, and writes it to
// the audit trail at most once a second for an account and a limit. All anonymous
// callers are one account here.
func (b *Backend) Limited(ctx context.Context, caller Caller, name string, most int, attrs ...any) *mcptask.Error {
	return b.LimitedIn(ctx, taskstore.ScopeAccount, caller, name, most, attrs...)
}

// LimitedIn is Limited for a limit of any scope.
func (b *Backend) LimitedIn(ctx context.Context, scope taskstore.Scope, caller Caller, name string, most int, attrs ...any) *mcptask.Error {
	advice, whose := accountAdvice[name], ""
	account := "principal " + caller.Principal
	data := fmt.Sprintf(`{"limit":%q,"max":%d}`, name, most)
	if shared, ok := sharedAdvice[scope]; ok {
		advice.option = strings.Replace(advice.option, "Limits.", shared.option, 1)
		advice.help, whose = shared.help, shared.whose
		account = string(scope)
		data = fmt.Sprintf(`{"limit":%q,"max":%d,"scope":%q}`, name, most, scope)
		attrs = append(attrs, "scope", scope)
	}
	b.tellHooksOfLimit(ctx, name)
	if b.auditRates.Allow([2]string{account, name}) {
		b.logger.WarnContext(ctx, "limit exceeded", append([]any{"audit", "limit", "limit", name, "max", most, "option", advice.option,
			"principal", caller.Principal, "revision", caller.Revision}, attrs...)...)
	}
	err := mcptask.Errorf(mcptask.CodeInternalError, "the server's limit %q of %d%s is exceeded: %s", name, most, whose, advice.help)
	err.Data = json.RawMessage(data)
	return err
}

// explainQuota returns the refusal for a store's *QuotaError, and nil for any other
// error.
func (b *Backend) explainQuota(ctx context.Context, caller Caller, err error, attrs ...any) *mcptask.Error {
	var exceeded *taskstore.QuotaError
	scope := taskstore.ScopeAccount
	if errors.As(err, &exceeded) {
		scope = exceeded.Scope
	}
	quota := b.options.Limits.storeQuota()
	most := quota.Account
	switch scope {
	case taskstore.ScopeAddress:
		most = quota.Address
	case taskstore.ScopeAnonymous:
		most = quota.Anonymous
	case taskstore.ScopeServer:
		most = quota.Server
	}
	switch {
	case errors.Is(err, taskstore.ErrQuotaStored):
		return b.LimitedIn(ctx, scope, caller, "tasks", most.Stored, attrs...)
	case errors.Is(err, taskstore.ErrQuotaUnfinished):
		return b.LimitedIn(ctx, scope, caller, "running", most.Unfinished, attrs...)
	case errors.Is(err, taskstore.ErrQuotaBytes):
		return b.LimitedIn(ctx, scope, caller, "bytes", int(most.Bytes), attrs...)
	}
	return nil
}
