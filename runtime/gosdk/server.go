// Package gosdk joins the runtime to the official Go SDK of MCP
// (github.com/modelcontextprotocol/go-sdk): [AddTools] with [NewHandler] or
// [StdioTransport] for servers, [Connect] and [ConnectCommand] for clients. A
// client also runs a server's own requests as tasks, where it is asked to.
package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
)

// AddTools registers the tools of tasks with an SDK server, and the fallback
// tools of services that have them. They can be called only through a gateway,
// such as NewHandler's: without one nobody knows whose call it is, and the call
// fails.
//
// AddTools also adds receiving middleware. Middleware that the server gets
// later stands outside of it and sees tasks as results of a custom type: add
// yours before.
func AddTools(server *mcp.Server, tasks *mcptask.Server) {
	of := attach(server, tasks)
	for _, spec := range gateway.Tools(tasks) {
		addTool(server, tasks, spec)
		of.has(spec)
	}
}

// attach adds the middleware, once for each SDK server. It returns what is known of the server.
func attach(server *mcp.Server, tasks *mcptask.Server) *served {
	known := attachedTo(tasks)
	key := weak.Make(server)
	of, attached := known.LoadOrStore(key, new(served))
	if attached {
		return of.(*served)
	}
	// getServer may make a server for every request: tasks must not keep it. Nor may
	// the cleanup keep tasks, whose handlers may hold the SDK server.
	runtime.AddCleanup(server, func(known weak.Pointer[sync.Map]) {
		if known := known.Value(); known != nil {
			known.Delete(key)
		}
	}, weak.Make(known))
	server.AddReceivingMiddleware(middleware(tasks, of.(*served)))
	server.AddSendingMiddleware(keepResponse)
	return of.(*served)
}

// attachedTo returns the SDK servers that have the middleware of tasks, with what is known of them.
func attachedTo(tasks *mcptask.Server) *sync.Map {
	return tasks.Attached(attachedKey{}, func() any { return new(sync.Map) }).(*sync.Map)
}

// attachedKey is the key of attachedTo.
type attachedKey struct{}

// addTool registers one of tasks' tools with an SDK server.
func addTool(server *mcp.Server, tasks *mcptask.Server, spec mcptask.ToolSpec) {
	server.AddTool(sdkTool(spec), taskTools{tasks}.call)
}

func sdkTool(spec mcptask.ToolSpec) *mcp.Tool {
	tool := &mcp.Tool{
		Name: spec.Name, Title: spec.Title, Description: spec.Description,
		InputSchema: json.RawMessage(spec.InputSchema),
	}
	if spec.OutputSchema != "" {
		tool.OutputSchema = json.RawMessage(spec.OutputSchema)
	}
	if a := spec.Annotations; a != (mcptask.Annotations{}) {
		tool.Annotations = &mcp.ToolAnnotations{
			ReadOnlyHint:    a.ReadOnly != nil && *a.ReadOnly,
			IdempotentHint:  a.Idempotent != nil && *a.Idempotent,
			DestructiveHint: a.Destructive,
			OpenWorldHint:   a.OpenWorld,
		}
	}
	return tool
}

type flightKey struct{}

// flight is a request on its way through the SDK and the user's middleware.
type flight struct {
	flow *gateway.Flow
	// result is the tool's own, and typed how the SDK writes its type of it.
	result, typed json.RawMessage
}

// middleware takes the flow of a request and gives its result the form that
// the SDK's types cannot have.
func middleware(tasks *mcptask.Server, of *served) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			flow := takeFlow(tasks, req)
			if flow == nil {
				return next(ctx, method, req)
			}
			f := &flight{flow: flow}
			result, err := next(context.WithValue(ctx, flightKey{}, f), method, req)
			if err != nil {
				abandon(ctx, tasks, flow)
				return nil, err
			}
			switch reply, ok := flow.Reply(); {
			case !ok:
				abandon(ctx, tasks, flow) // middleware has answered without the tool, or before it
			case reply.Outcome == nil:
				return of.result(flow.Encode(reply))
			}
			if flow.Connected != nil {
				of.connected(flow, req, result)
			}
			data, err := json.Marshal(result)
			if err != nil {
				return nil, fmt.Errorf("encode the result: %w", err)
			}
			if f.result != nil {
				if data, err = patched(f.result, f.typed, data); err != nil {
					return nil, fmt.Errorf("encode the result: %w", err)
				}
			}
			return of.result(flow.Decorate(data))
		}
	}
}

// takeFlow finds the request's flow by the token that the gateway set.
func takeFlow(tasks *mcptask.Server, req mcp.Request) *gateway.Flow {
	if extra := req.GetExtra(); extra != nil && extra.Header != nil {
		if token := extra.Header.Get(gateway.FlowHeader); token != "" {
			return gateway.TakeFlow(tasks, token)
		}
		return nil
	}
	params := req.GetParams()
	if params == nil || reflect.ValueOf(params).IsNil() {
		return nil
	}
	meta := params.GetMeta()
	token, _ := meta[gateway.FlowMeta].(string)
	delete(meta, gateway.FlowMeta) // the user's middleware and handlers do not see it
	if token == "" {
		return nil
	}
	return gateway.TakeFlow(tasks, token)
}

// abandon cancels the task of a call that middleware has answered in another way:
// nobody will learn of it. It waits for none that is not there yet.
func abandon(ctx context.Context, tasks *mcptask.Server, flow *gateway.Flow) {
	if flow.Call.IdempotencyKey != "" {
		return
	}
	ctx = context.WithoutCancel(ctx)
	flow.Leave(func(reply mcptask.CallReply) {
		if reply.Task == nil {
			return
		}
		if _, _, err := tasks.Cancel(ctx, flow.Caller, reply.Task.ID); err != nil {
			tasks.Logger().Warn("abandoned task not cancelled", "task", mcptask.LogID(flow.Caller.Principal, reply.Task.ID), "error", err)
		}
	})
}

// maxProgressToken bounds the bytes of a progress token: it stays in memory until its task ends, and
// counts for no limit.
const maxProgressToken = 1 << 10

// taskTools are the tools of tasks, as the SDK calls them.
type taskTools struct{ tasks *mcptask.Server }

// call is the handler of every tool.
func (t taskTools) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	f, _ := ctx.Value(flightKey{}).(*flight)
	if f == nil {
		return nil, sdkError(mcptask.Errorf(mcptask.CodeInternalError, "the tool %q can be called only through the task gateway", req.Params.Name))
	}
	var hooks gateway.Hooks
	if token := req.Params.GetProgressToken(); token != nil {
		if text, ok := token.(string); ok && len(text) > maxProgressToken {
			return nil, sdkError(mcptask.Errorf(mcptask.CodeInvalidParams, "the progress token exceeds %d bytes: choose a shorter one", maxProgressToken))
		}
		hooks.Progress = progress(ctx, req.Session, f.flow, token)
	}
	if !f.flow.Stateless {
		hooks.Ask = asker(req.Session)
	}
	reply, err := f.flow.Run(ctx, t.tasks, req.Params.Name, req.Params.Arguments, hooks)
	switch {
	case err != nil:
		return nil, sdkError(err)
	case reply.Outcome == nil: // the middleware puts the task in its place
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	case reply.Outcome.Kind == mcptask.OutcomeError:
		return nil, sdkError(reply.Outcome.Error)
	case reply.Outcome.Kind == mcptask.OutcomeCancelled:
		return nil, sdkError(mcptask.Errorf(mcptask.CodeInternalError, "the call was cancelled"))
	}
	result, err := sdkResult(reply.Outcome.Result)
	if err != nil { // content that the SDK does not know
		result = &mcp.CallToolResult{Content: []mcp.Content{}, IsError: reply.Outcome.IsError}
	}
	if f.typed, err = json.Marshal(result); err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	f.result = reply.Outcome.Result
	return result, nil
}

// sdkResult makes the SDK's type of a result, for the user's middleware to see.
// Structured content stays bytes: numbers keep their digits.
func sdkResult(data json.RawMessage) (*mcp.CallToolResult, error) {
	var result mcp.CallToolResult
	if err := json.Unmarshal(data, &result); err != nil {
		return nil, fmt.Errorf("decode the result: %w", err)
	}
	var structured struct {
		Content json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(data, &structured); err != nil {
		return nil, fmt.Errorf("decode the result: %w", err)
	}
	if structured.Content != nil {
		result.StructuredContent = structured.Content
	}
	return &result, nil
}

// progress sends progress of a plain call on the call's own stream, of a task
// on the session's standalone stream, since the call's is closed by then, unless
// the call is held. It carries the task's ID (C-61, C-67).
func progress(ctx context.Context, session *mcp.ServerSession, flow *gateway.Flow, token any) mcptask.ProgressFunc {
	return func(taskID string, done, total float64, message string) {
		params := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: total, Message: message}
		send := ctx
		if taskID != "" {
			if flow.Stateless {
				return // 2026-07-28 has no stream for it, and no progress on tasks (E-67)
			}
			if flow.Related != nil {
				params.Meta = flow.Related(taskID)
			}
			if !flow.Held {
				send = context.Background() // the call's context is bound to its stream
			}
		}
		// Progress is best effort: the client may be gone.
		_ = session.NotifyProgress(send, params)
	}
}

// asker asks on the stream of the call that is open (2025-11-25).
func asker(session *mcp.ServerSession) func(context.Context, mcptask.Input) (json.RawMessage, error) {
	return func(ctx context.Context, in mcptask.Input) (json.RawMessage, error) {
		var response mcp.Result
		var err error
		ctx = context.WithValue(ctx, responseKey{}, &response)
		switch in.Method {
		case "elicitation/create":
			params := new(mcp.ElicitParams)
			if err := json.Unmarshal(in.Params, params); err != nil {
				return nil, err
			}
			if in.Schema != nil {
				params.RequestedSchema = in.Schema
			}
			_, err = session.Elicit(ctx, params)
		case "sampling/createMessage":
			params := new(mcp.CreateMessageParams)
			if err := json.Unmarshal(in.Params, params); err != nil {
				return nil, err
			}
			_, err = session.CreateMessage(ctx, params)
		case "roots/list":
			_, err = session.ListRoots(ctx, nil)
		default:
			return nil, mcptask.ErrCannotAsk
		}
		switch {
		case response != nil: // whether it fits is ours to say
			return json.Marshal(response)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%w: %s", mcptask.ErrCannotAsk, err.Error())
	}
}

type responseKey struct{}

// keepResponse is sending middleware: it keeps the response to a question, of
// which the SDK tells nothing where it finds that it does not fit.
func keepResponse(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if kept, ok := ctx.Value(responseKey{}).(*mcp.Result); ok && err == nil {
			*kept = result
		}
		return result, err
	}
}

// principal is the default of gosdk: the user of the SDK's bearer token. No
// token is anonymous; a token without a user is refused, because everybody
// with such a token would be the same principal.
func principal(ctx context.Context) (string, error) {
	token := auth.TokenInfoFromContext(ctx)
	if token == nil {
		return "", nil
	}
	if token.UserID == "" {
		return "", errors.New("the bearer token has no user ID: set TokenInfo.UserID in the verifier")
	}
	return token.UserID, nil
}

// sdkError makes the SDK's error of ours.
func sdkError(err error) error {
	var wire *mcptask.Error
	if !errors.As(err, &wire) {
		return &jsonrpc.Error{Code: mcptask.CodeInternalError, Message: "internal error"}
	}
	data := wire.Data
	if !json.Valid(data) { // over which the SDK would end the session
		data = nil
	}
	return &jsonrpc.Error{Code: int64(wire.Code), Message: wire.Message, Data: data}
}
