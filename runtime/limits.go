package mcptask

import (
	"encoding/json"
	"fmt"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
)

// Limits bound what an account takes: a principal, or an anonymous caller's session,
// or all anonymous callers without one. 0 is the default, a negative number no bound.
// The refusal is -32603, with the limit's name in data.limit and the bound in data.max.
//
//	field      default    data.limit  bounds
//	Tasks      10,000     tasks       the tasks that are stored
//	Running    1,000      running     those that have not ended, and, counted apart, the calls that are open (C-96)
//	Waiting    1,000      waiting     the requests that wait for the end of a task, or for changes (E-62)
//	Arguments  1,048,576  arguments   the bytes of a call's arguments, and of each answer
//	Result     4,194,304  result      the bytes of a result: a bigger one is not stored, the task ends with this error
//	Questions  100        questions   the questions of a task in its life: the handler gets this error
//	Polls      20         polls       the requests for a task in a second, twice as many at once (C-95, E-26)
//	Lists      20         lists       the lists in a second, twice as many at once
//	Sessions   1,000      sessions    a handler's sessions, of all anonymous callers together: the longest idle one ends for a new one
type Limits struct {
	Tasks, Running, Waiting, Arguments, Result, Questions, Polls, Lists, Sessions int
}

// fill makes numbers to compare with: no bound is the largest.
func (l *Limits) fill() {
	limit.Fill(map[*int]int{&l.Tasks: 10_000, &l.Running: 1000, &l.Waiting: 1000, &l.Arguments: 1 << 20,
		&l.Result: 4 << 20, &l.Questions: 100, &l.Polls: 20, &l.Lists: 20, &l.Sessions: 1000})
}

// wayOut has the option that sets each limit and what helps against it.
var wayOut = map[string][2]string{
	"tasks": {"Limits.Tasks", "wait until tasks expire"}, "running": {"Limits.Running", "wait until some end, or cancel some"},
	"waiting": {"Limits.Waiting", "wait for fewer tasks at once"}, "arguments": {"Limits.Arguments", "send less"},
	"result": {"Limits.Result", "ask the tool for less"}, "questions": {"Limits.Questions", "ask less often in one task"},
	"polls": {"Limits.Polls", "poll more slowly"}, "lists": {"Limits.Lists", "list less often"},
	"sessions": {"Limits.Sessions", "try again later"}, "followed": {"", "name fewer tasks, or end other subscriptions"},
}

// Limited refuses what exceeds a limit, and audits that once a second for an account and a limit.
func (s *Server) Limited(caller Caller, name string, most int, attrs ...any) *Error {
	if s.noted.Allow([2]string{caller.Account(), name}) {
		s.logger.Warn("limit exceeded", append([]any{"audit", "limit", "limit", name, "max", most, "option", wayOut[name][0],
			"principal", caller.Principal, "revision", caller.Revision}, attrs...)...)
	}
	err := Errorf(CodeInternalError, "the server's limit %q of %d is exceeded: %s", name, most, wayOut[name][1])
	err.Data = json.RawMessage(fmt.Sprintf(`{"limit":%q,"max":%d}`, name, most))
	return err
}

// within is the outcome of a handler, unless it is too big to be kept.
func (s *Server) within(caller Caller, id, tool string, o *Outcome) *Outcome {
	size, most := len(o.Result), s.options.Limits.Result
	if o.Error != nil {
		size = len(o.Error.Message) + len(o.Error.Data)
	}
	if size > most {
		return &Outcome{Kind: OutcomeError, Error: s.Limited(caller, "result", most, "tool", tool, "task", LogID(caller.Principal, id))}
	}
	return o
}
