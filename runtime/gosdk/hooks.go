package gosdk

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/hook"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// begin reports a request to the client's hooks. Send the request with the context that begin returns, and call end once
// with the answer. begin does not report subscriptions, which last, or the requests that open a session.
func (l *link) begin(ctx context.Context, method string, params any) (_ context.Context, end func(json.RawMessage, error)) {
	if len(l.options.Hooks) == 0 || slices.Contains([]string{protocol.Listen, spec.Discover, "initialize"}, method) {
		return ctx, func(json.RawMessage, error) {}
	}
	info := taskserver.RequestInfo{Method: method, Revision: l.protocol.Revision(), Peer: l.peer, IsPipe: l.isPipe}
	if members, ok := params.(map[string]any); ok && method == "tools/call" {
		info.Tool, _ = members["name"].(string)
	}
	pick := func(h *taskserver.Hooks) hook.Begin[taskserver.RequestInfo, taskserver.RequestResult] {
		return h.ClientRequest
	}
	ctx, ended := hook.Call(ctx, l.options.Logger, l.options.Hooks, pick, info)
	return ctx, func(response json.RawMessage, err error) {
		result := taskserver.RequestResult{Error: err}
		if method == "tools/call" && err == nil {
			result.IsToolError, result.TaskID = readCallResult(response)
		}
		ended(result)
	}
}

// readCallResult reads from the result of a tools/call whether it has isError, and the task
// that it names, as LogID returns it.
func readCallResult(result json.RawMessage) (isError bool, taskID string) {
	var answer struct {
		IsError bool   `json:"isError"`
		TaskID  string `json:"taskId"` // 2026-07-28
		Task    struct {
			TaskID string `json:"taskId"` // 2025-11-25
		} `json:"task"`
	}
	_ = json.Unmarshal(result, &answer) // the reader of the result reports malformed JSON
	if taskID = answer.TaskID + answer.Task.TaskID; taskID != "" {
		taskID = taskstore.LogID("", taskID) // the client does not know whether the ID is the task's only key
	}
	return answer.IsError, taskID
}

// traceMeta returns the members of a request's _meta that name the trace of a context.
func traceMeta(ctx context.Context) map[string]any {
	meta := map[string]any{}
	parent, state := taskserver.SplitTrace(taskserver.TraceOf(ctx))
	if parent != "" {
		meta["traceparent"] = parent
	}
	if parent != "" && state != "" {
		meta["tracestate"] = state
	}
	return meta
}
