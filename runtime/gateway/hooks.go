package gateway

import (
	"context"
	"encoding/json"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
)

// describe returns what the server's hooks are told of a request.
func describe(x exchange, caller mcptask.Caller) mcptask.RequestInfo {
	m := x.message()
	return mcptask.RequestInfo{Method: m.Method, Revision: caller.Revision, ID: string(m.ID), IsPipe: x.isPipe(), Trace: x.trace()}
}

// describeCall is describe for a call of a tool of ours.
func (g *Gateway) describeCall(x exchange, caller mcptask.Caller, tool string) mcptask.RequestInfo {
	info := describe(x, caller)
	info.Tool, info.IsFallback = tool, fallback.Helps(g.server, tool)
	return info
}

// answer answers a request with what work returns, and tells the server's hooks of it.
func (g *Gateway) answer(x exchange, caller mcptask.Caller, work work) {
	if len(g.server.Options().Hooks) > 0 {
		info, run := describe(x, caller), work.run
		work.run = func(ctx context.Context) (_ json.RawMessage, err error) {
			ctx, end := g.server.BeginRequest(ctx, info)
			answered := mcptask.RequestResult{Error: errNoAnswer}
			defer func() { end(answered) }()
			result, err := run(ctx)
			answered.Error = err
			return result, err
		}
	}
	x.answer(work)
}

// errNoAnswer is what hooks are told of a request whose answer panicked.
var errNoAnswer = mcptask.Errorf(mcptask.CodeInternalError, "internal error")

// resultOf returns what hooks are told of the answer to a call.
func resultOf(reply mcptask.CallReply, err error) mcptask.RequestResult {
	result := mcptask.RequestResult{Error: err, IsToolError: reply.Outcome != nil && reply.Outcome.IsError}
	if reply.Task != nil {
		result.TaskID = mcptask.LogID(reply.Task.Principal, reply.Task.ID)
	}
	return result
}
