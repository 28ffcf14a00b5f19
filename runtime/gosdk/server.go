// Package gosdk connects the runtime to servers of the official Go SDK of MCP (github.com/modelcontextprotocol/go-sdk),
// and has a client for any server.
//
// A server calls [AddTools] for generated tools, or [AddTaskTool] for a tool of the SDK. It serves with [NewHandler] over
// HTTP, with [StdioTransport] over standard input and output, or with [Transport] over any other transport. A client
// connects with [Connect] or [ConnectCommand]. A client also runs the server's own requests as tasks if the server asks
// for that.
package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// AddTools adds the tools of tasks to an SDK server, and the fallback tools of services that have
// them. The tools can be called only through a gateway, such as NewHandler's: without a gateway the
// caller is unknown and the call fails.
//
// AddTools also adds receiving middleware. Middleware that is added later runs outside of it and
// sees tasks as results of a custom type, so add yours before. Add sending middleware after: messages
// of a call may go on a session of their own, which only middleware that is added before sees.
func AddTools(server *mcp.Server, tasks *taskserver.Server) {
	sdk := attachMiddleware(server, tasks.Backend())
	for _, spec := range gateway.Tools(tasks.Backend()) {
		sdk.addTool(server, tasks.Backend(), spec)
	}
}

// attachMiddleware adds the middleware, once for each SDK server.
func attachMiddleware(server *mcp.Server, tasks *taskserver.Backend) *sdkServer {
	all := sdkServersOf(tasks)
	key := weak.Make(server)
	loaded, attached := all.LoadOrStore(key, &sdkServer{server: key})
	sdk := loaded.(*sdkServer)
	if attached {
		return sdk
	}
	// getServer may make an SDK server for every request, so tasks must not keep it. The cleanup
	// must not keep tasks either, because their handlers may hold the SDK server.
	runtime.AddCleanup(server, func(all weak.Pointer[sync.Map]) {
		if all := all.Value(); all != nil {
			all.Delete(key)
		}
	}, weak.Make(all))
	server.AddReceivingMiddleware(newMiddleware(tasks, sdk))
	server.AddSendingMiddleware(sendOnCalls)
	return sdk
}

// sdkServersOf returns the SDK servers that have the middleware of tasks: an sdkServer by a weak pointer to its server.
func sdkServersOf(tasks *taskserver.Backend) *sync.Map {
	return tasks.Attached(attachedKey{}, func() any { return new(sync.Map) }).(*sync.Map)
}

// attachedKey is the key under which a server records which SDK servers have its middleware.
type attachedKey struct{}

// addTool adds one tool of tasks to the SDK server.
func (s *sdkServer) addTool(server *mcp.Server, tasks *taskserver.Backend, spec mcptask.ToolSpec) {
	if strings.Contains(spec.InputSchema, "x-mcp-header") {
		s.annotated.Store(spec.Name, nil)
	}
	s.added.Store(spec.Name, nil)
	server.AddTool(newSDKTool(spec), taskTools{tasks}.call)
}

func newSDKTool(spec mcptask.ToolSpec) *mcp.Tool {
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

// flight is a request in the SDK and the user's middleware.
type flight struct {
	flow *gateway.Flow
	// result is the tool's own. typed is how the SDK encodes its type of it.
	result, typed json.RawMessage
	// refused is the SDK's answer to arguments that do not fit an adopted tool. It is nil for others.
	refused *mcp.CallToolResult
}

// newMiddleware returns the middleware that takes the flow of a request, and encodes results that
// the SDK's types cannot express.
func newMiddleware(tasks *taskserver.Backend, sdk *sdkServer) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		handler := func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			flow := takeFlow(tasks, req)
			if flow == nil {
				result, err := next(ctx, method, req)
				if call, ok := req.(*mcp.CallToolRequest); ok && err != nil {
					err = sdk.explainUnknown(ctx, next, tasks, call, err)
				}
				return result, err
			}
			f := &flight{flow: flow}
			result, err := next(context.WithValue(ctx, flightKey{}, f), method, req)
			if err != nil {
				cancelAbandoned(ctx, tasks, flow)
				return nil, err
			}
			switch reply, ok := flow.Reply(); {
			case !ok:
				cancelAbandoned(ctx, tasks, flow) // middleware has answered instead of the tool, or before it
			case reply.Outcome == nil:
				return sdk.newResult(flow.Encode(reply))
			}
			if flow.Connected != nil {
				sdk.reportSession(flow, req, result)
			}
			data, err := encodeResult(result)
			if err != nil {
				return nil, fmt.Errorf("encode the result: %w", err)
			}
			if f.result != nil {
				if data, err = patchResult(f.result, f.typed, data); err != nil {
					return nil, fmt.Errorf("encode the result: %w", err)
				}
			}
			return sdk.newResult(flow.Decorate(data))
		}
		sdk.middlewareCode = reflect.ValueOf(handler).Pointer()
		return handler
	}
}

// takeFlow finds the request's flow by the token that the gateway has set.
func takeFlow(tasks *taskserver.Backend, req mcp.Request) *gateway.Flow {
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
	delete(meta, gateway.FlowMeta) // hide it from the user's middleware and handlers
	if token == "" {
		return nil
	}
	return gateway.TakeFlow(tasks, token)
}

// cancelAbandoned cancels the task of a call that middleware has answered itself, because its
// client never learns of the task. It does not wait for a task that is still to come.
func cancelAbandoned(ctx context.Context, tasks *taskserver.Backend, flow *gateway.Flow) {
	if flow.Call.IdempotencyKey != "" {
		return
	}
	ctx = context.WithoutCancel(ctx)
	flow.Leave(func(reply taskserver.CallReply) {
		if reply.Task == nil {
			return
		}
		if _, _, err := tasks.Cancel(ctx, flow.Caller, reply.Task.ID); err != nil {
			tasks.Logger().Warn("abandoned task not cancelled", "task", taskstore.LogID(flow.Caller.Principal, reply.Task.ID), "error", err)
		}
	})
}

// taskTools is the handler of the tools of tasks in the SDK.
type taskTools struct{ tasks *taskserver.Backend }

// call runs a task tool for the SDK.
func (t taskTools) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	f, _ := ctx.Value(flightKey{}).(*flight)
	if f == nil {
		return nil, toSDKError(mcptask.Errorf(mcptask.CodeInternalError, "the tool %q can be called only through the task gateway: "+
			"serve with gosdk.NewHandler, gosdk.StdioTransport or gosdk.Transport", req.Params.Name))
	}
	return t.run(ctx, f, req)
}

// run is call with the flight of the request.
func (t taskTools) run(ctx context.Context, f *flight, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var progress taskserver.ProgressFunc
	if token := req.Params.GetProgressToken(); token != nil {
		progress = newProgressFunc(ctx, req.Session, f.flow, token)
	}
	reply, err := f.flow.Run(ctx, t.tasks, req.Params.Name, req.Params.Arguments, progress)
	switch {
	case err != nil:
		return nil, toSDKError(err)
	case reply.Outcome == nil: // newMiddleware encodes the task
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil
	case reply.Outcome.Kind == taskstore.OutcomeError:
		return nil, toSDKError(reply.Outcome.Error)
	case reply.Outcome.Kind == taskstore.OutcomeCancelled:
		return nil, toSDKError(mcptask.Errorf(mcptask.CodeInternalError, "the call was cancelled"))
	}
	result, err := decodeToolResult(reply.Outcome.Result)
	if err != nil { // the SDK does not know the content
		result = &mcp.CallToolResult{Content: []mcp.Content{}, IsError: reply.Outcome.IsError}
	}
	if f.typed, err = json.Marshal(result); err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	f.result = reply.Outcome.Result
	return result, nil
}

// newProgressFunc returns a function that sends the progress of a call. For a plain call it uses
// the call's own stream. For a task it uses the session's standalone stream, because the call's
// stream is closed by then. Progress of a task names its ID (C-61, C-67).
func newProgressFunc(ctx context.Context, session *mcp.ServerSession, flow *gateway.Flow, token any) taskserver.ProgressFunc {
	return func(taskID string, done, total float64, message string) {
		params := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: total, Message: message}
		send := ctx
		if taskID != "" {
			if flow.Stateless {
				return // 2026-07-28 has no progress of tasks, and no stream for it (E-67)
			}
			if flow.Related != nil {
				params.Meta = flow.Related(taskID)
			}
			send = context.Background() // the call's context ends with its stream
		}
		// Progress is best effort: the client may be gone.
		_ = session.NotifyProgress(send, params)
	}
}

// tokenPrincipal is the default principal of gosdk: the user of the SDK's bearer token. A request
// without a token is anonymous. A token without a user is refused, because all such tokens would
// share one principal.
func tokenPrincipal(ctx context.Context) (string, error) {
	token := auth.TokenInfoFromContext(ctx)
	if token == nil {
		return "", nil
	}
	if token.UserID == "" {
		return "", errors.New("the bearer token has no user ID: set TokenInfo.UserID in the verifier")
	}
	return token.UserID, nil
}

// tokenExpiration returns when the SDK's bearer token expires, or the zero time.
func tokenExpiration(ctx context.Context) time.Time {
	if token := auth.TokenInfoFromContext(ctx); token != nil {
		return token.Expiration
	}
	return time.Time{}
}

// toSDKError converts our error to the SDK's.
func toSDKError(err error) error {
	var wire *mcptask.Error
	switch {
	case errors.As(err, &wire):
	case errors.Is(err, context.Canceled):
		return &jsonrpc.Error{Code: mcptask.CodeInternalError, Message: "the request was cancelled"}
	default:
		return &jsonrpc.Error{Code: mcptask.CodeInternalError, Message: "internal error"}
	}
	data := wire.Data
	if !json.Valid(data) { // the SDK would end the session
		data = nil
	}
	return &jsonrpc.Error{Code: int64(wire.Code), Message: wire.Message, Data: data}
}
