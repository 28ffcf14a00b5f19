// Package fallback serves clients that know nothing of tasks. A call of a tool
// that takes tasks runs as one behind the scenes: it is answered with the
// result where that is there in time, else with a text that tells the model
// how to go on by a few small tools, which this package has as well.
package fallback

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Handler answers a call; it is what a flow of the gateway takes.
type Handler = func(ctx context.Context, arguments json.RawMessage, call mcptask.CallRequest) (mcptask.CallReply, error)

// set is the fallback tools of the services that share a prefix.
type set struct {
	server *mcptask.Server
	prefix string
	asks   bool
}

// sets lists the sets of a server, in the order of declaration.
func sets(s *mcptask.Server) []set {
	var all []set
	for _, spec := range s.Tools() {
		service, _ := s.Service(spec.Name)
		if !serves(service, spec) {
			continue
		}
		i := slices.IndexFunc(all, func(each set) bool { return each.prefix == service.Prefix })
		if i < 0 {
			i = len(all)
			all = append(all, set{server: s, prefix: service.Prefix})
		}
		all[i].asks = all[i].asks || service.Asks || len(spec.Questions) > 0
	}
	return all
}

func serves(service mcptask.Tools, spec mcptask.ToolSpec) bool {
	return service.Fallback == mcptask.FallbackTools && spec.Policy.Task != mcptask.TaskForbidden
}

// Serves says whether a tool has the fallback: it takes tasks, and its service
// has fallback=tools.
func Serves(s *mcptask.Server, tool string) bool {
	spec, _ := s.Tool(tool)
	service, ok := s.Service(tool)
	return ok && serves(service, spec)
}

// Helps says whether a tool is one of the fallback tools.
func Helps(s *mcptask.Server, tool string) bool {
	_, _, ok := find(s, tool)
	return ok
}

// Concerns says whether the package has a part in calls of a tool: it has the
// fallback, or belongs to it.
func Concerns(s *mcptask.Server, tool string) bool {
	return Helps(s, tool) || Serves(s, tool)
}

// setOf finds the fallback tools that go with a tool which has them.
func setOf(s *mcptask.Server, tool string) set {
	service, _ := s.Service(tool)
	for _, each := range sets(s) {
		if each.prefix == service.Prefix {
			return each
		}
	}
	return set{}
}

// Handle is how the gateway answers a call that it has negotiated: a call of a
// fallback tool, or one in ModeFallback. nil leaves it to the server.
func Handle(s *mcptask.Server, caller mcptask.Caller, tool string, call mcptask.CallRequest) Handler {
	if call.Mode == mcptask.ModeFallback {
		return begin(s, caller, tool)
	}
	each, kind, ok := find(s, tool)
	if !ok {
		return nil
	}
	t := helper{each, caller}
	return map[string]Handler{
		mcptask.ToolTaskStatus: t.status, mcptask.ToolTaskResult: t.result,
		mcptask.ToolTaskCancel: t.cancel, mcptask.ToolTaskAnswer: t.answer,
	}[kind]
}

// find splits the name of a fallback tool into its set and its kind.
func find(s *mcptask.Server, name string) (each set, kind string, ok bool) {
	for _, kind := range kinds {
		prefix, ok := strings.CutSuffix(name, kind)
		if !ok {
			continue
		}
		for _, each := range sets(s) {
			if each.prefix == prefix && (each.asks || kind != mcptask.ToolTaskAnswer) {
				return each, kind, true
			}
		}
	}
	return set{}, "", false
}

var kinds = [...]string{mcptask.ToolTaskStatus, mcptask.ToolTaskResult, mcptask.ToolTaskCancel, mcptask.ToolTaskAnswer}

// defaultWait is how long a fallback tool blocks for a task whose tool says
// nothing of it: common clients give up at 120 seconds.
const defaultWait = 90 * time.Second

// waitOf is how long a call may block for a tool's task; 0 is without limit.
func waitOf(s *mcptask.Server, tool string) time.Duration {
	if !Serves(s, tool) {
		return defaultWait
	}
	spec, _ := s.Tool(tool)
	return spec.Policy.Wait
}

// within bounds a context by a wait that began at a time; 0 is without limit.
func within(ctx context.Context, began time.Time, wait time.Duration) (context.Context, context.CancelFunc) {
	if wait <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, began.Add(wait))
}

func shuttingDown() error {
	return mcptask.Errorf(mcptask.CodeInternalError, "the server is shutting down")
}
