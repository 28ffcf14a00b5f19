// Package fallback serves clients that do not know tasks. A call of a tool that takes tasks runs as
// a task behind the scenes. If the result is ready in time, it is the answer. Otherwise the answer
// is a text that tells the model how to go on with a few small tools, which this package has as
// well.
package fallback

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// Handler answers a call. A flow of the gateway takes it.
type Handler = func(ctx context.Context, arguments json.RawMessage, call taskserver.CallRequest) (taskserver.CallReply, error)

// set holds the fallback tools of the services that share a prefix.
type set struct {
	server *taskserver.Backend
	prefix string
	asks   bool
}

// listSets returns the sets of a server, in the order of declaration.
func listSets(s *taskserver.Backend) []set {
	var all []set
	for _, spec := range s.Tools() {
		service, _ := s.Service(spec.Name)
		if !protocol.HasFallback(service, spec) {
			continue
		}
		i := slices.IndexFunc(all, func(each set) bool { return each.prefix == service.Prefix })
		if i < 0 {
			i = len(all)
			all = append(all, set{server: s, prefix: service.Prefix})
		}
		all[i].asks = all[i].asks || protocol.Asks(service, spec)
	}
	return all
}

// Serves reports whether a tool has the fallback: it takes tasks, and its service has
// fallback=tools.
func Serves(s *taskserver.Backend, tool string) bool {
	spec, _ := s.Tool(tool)
	service, ok := s.Service(tool)
	return ok && protocol.HasFallback(service, spec)
}

// Helps reports whether a tool is a fallback tool.
func Helps(s *taskserver.Backend, tool string) bool {
	_, _, ok := find(s, tool)
	return ok
}

// Concerns reports whether the package handles calls of a tool: it has the fallback or is a
// fallback tool.
func Concerns(s *taskserver.Backend, tool string) bool {
	return Helps(s, tool) || Serves(s, tool)
}

// Defers reports whether the questions of a task are left to the tool task_answer, for a caller that
// knows tasks: the task's tool has the fallback and may ask, and the caller cannot show a form.
func Defers(s *taskserver.Backend, caller taskserver.Caller, tool string) bool {
	return !showsForms(caller) && protocol.FindAnswerTool(s, tool) != ""
}

// IsPlain reports whether a call begins as a plain one although its caller declares tasks: the task may ask
// a question that the caller cannot show, and nobody would learn of the question. If it does not ask within the wait,
// the answer is the task.
func IsPlain(s *taskserver.Backend, caller taskserver.Caller, tool string) bool {
	return Defers(s, caller, tool) && s.ClientProfile(caller).HidesStatus
}

// Plan completes the plan of a call that a revision has negotiated: the mode depends on the caller's
// capabilities as well. anywhere says that answers may arrive at any replica. After Plan, nothing changes the mode.
func Plan(s *taskserver.Backend, caller taskserver.Caller, tool mcptask.ToolSpec, call taskserver.CallRequest, anywhere bool) taskserver.CallRequest {
	switch {
	case call.Mode == taskserver.ModePlain && (call.Retry || anywhere) && tool.Policy.Task != mcptask.TaskForbidden && len(caller.CanAsk) > 0:
		// Only a task keeps a handler that waits for an answer, if the answer comes with a repeated call,
		// or in a request to any replica.
		call.Mode = taskserver.ModeFallback
	case call.Mode == taskserver.ModeGrace && IsPlain(s, caller, tool.Name):
		call.Mode, call.TakesTask = taskserver.ModeFallback, true
	}
	switch {
	case call.Unattended || call.Mode == taskserver.ModePlain:
	case call.Mode == taskserver.ModeFallback:
		call.ByTool = findSet(s, tool.Name).asks
	default:
		call.ByTool = Defers(s, caller, tool.Name)
	}
	return call
}

// showsForms reports whether a caller declares that it shows forms to its user.
func showsForms(caller taskserver.Caller) bool {
	return slices.Contains(caller.CanAsk, "elicitation/create")
}

// findSet returns the fallback tools for a tool. If there are none, the set has only the server.
func findSet(s *taskserver.Backend, tool string) set {
	if !Serves(s, tool) {
		return set{server: s}
	}
	service, _ := s.Service(tool)
	for _, each := range listSets(s) {
		if each.prefix == service.Prefix {
			return each
		}
	}
	return set{server: s}
}

// Handle returns the handler for a call that the gateway has negotiated, if it calls a fallback tool or
// has ModeFallback. It returns nil for any other call, which the server answers. A call of a tool without
// the fallback has ModeFallback if its caller can answer questions by repeating the call. client ends when the
// client's connection does. The call may go on then.
func Handle(client context.Context, s *taskserver.Backend, caller taskserver.Caller, tool string, call taskserver.CallRequest, carrier Carrier) Handler {
	if call.Mode == taskserver.ModeFallback {
		return newTaskHandler(client, s, caller, tool, carrier)
	}
	each, kind, ok := find(s, tool)
	if !ok {
		return nil
	}
	if kind == taskserver.ToolTaskList {
		return helper{each, caller, carrier}.list
	}
	answers := map[string]answerFunc{
		taskserver.ToolTaskStatus: helper.status, taskserver.ToolTaskResult: helper.result,
		taskserver.ToolTaskCancel: helper.cancel, taskserver.ToolTaskAnswer: helper.answer,
	}
	return helper{each, caller, carrier}.newHandler(answers[kind])
}

// find splits the name of a fallback tool into its set and its kind.
func find(s *taskserver.Backend, name string) (each set, kind string, ok bool) {
	for _, kind := range kinds {
		prefix, ok := strings.CutSuffix(name, kind)
		if !ok {
			continue
		}
		for _, each := range listSets(s) {
			if each.prefix == prefix && (each.asks || kind != taskserver.ToolTaskAnswer) {
				return each, kind, true
			}
		}
	}
	return set{}, "", false
}

var kinds = [...]string{taskserver.ToolTaskStatus, taskserver.ToolTaskResult, taskserver.ToolTaskCancel, taskserver.ToolTaskAnswer, taskserver.ToolTaskList}

// IsList reports whether a tool is the fallback tool that lists tasks.
func IsList(s *taskserver.Backend, tool string) bool {
	_, kind, _ := find(s, tool)
	return kind == taskserver.ToolTaskList
}

func newShutdownError() error {
	return mcptask.Errorf(mcptask.CodeInternalError, "the server is shutting down")
}
