package gateway

import (
	"context"
	"encoding/json"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// newRequestInfo returns the description of a request for the server's hooks.
func newRequestInfo(x exchange, caller taskserver.Caller) taskserver.RequestInfo {
	m := x.message()
	return taskserver.RequestInfo{Method: m.Method, Revision: caller.Revision, ID: string(m.ID), IsPipe: x.isPipe(), Trace: x.trace()}
}

// newCallInfo is newRequestInfo for a call of a tool of ours.
func (g *Gateway) newCallInfo(x exchange, caller taskserver.Caller, tool string) taskserver.RequestInfo {
	info := newRequestInfo(x, caller)
	info.Tool, info.IsFallback = tool, fallback.Helps(g.server, tool)
	return info
}

// answerWithHooks answers a request with the result of work, and tells the server's hooks of it.
func (g *Gateway) answerWithHooks(x exchange, caller taskserver.Caller, work work) {
	if len(g.server.Options().Hooks) > 0 {
		info, run := newRequestInfo(x, caller), work.run
		work.run = func(ctx context.Context) (_ json.RawMessage, err error) {
			ctx, end := g.server.BeginRequest(ctx, info)
			result := taskserver.RequestResult{Error: errNoAnswer}
			defer func() { end(result) }()
			response, err := run(ctx)
			result.Error = err
			return response, err
		}
	}
	x.answer(work)
}

// errNoAnswer answers a request whose work panicked or ended its goroutine. The server's hooks get it too.
var errNoAnswer = mcptask.Errorf(mcptask.CodeInternalError, "internal error")

// newRequestResult returns the description of the answer to a call for hooks.
func newRequestResult(reply taskserver.CallReply, err error) taskserver.RequestResult {
	result := taskserver.RequestResult{Error: err, IsToolError: reply.Outcome != nil && reply.Outcome.IsError}
	if reply.Task != nil {
		result.TaskID = taskstore.LogID(reply.Task.Principal, reply.Task.ID)
	}
	return result
}
