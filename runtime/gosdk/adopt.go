package gosdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// AddTaskTool is mcp.AddTool for a tool that runs as a task. The handler stays as it is, and the SDK lists the tool, checks
// its arguments and encodes its output as before. In the handler, [mcptask.FromContext] returns the task, also in a plain
// call. The context ends with the task, not with the request. If the handler panics, the task fails. AddTaskTool also adds
// the fallback tools. If the tool is invalid, it returns an error and adds nothing. A policy.Task of "" means
// [mcptask.TaskOptional].
//
// The session of the handler's request belongs to the run. NotifyProgress reports the progress of the task: the request
// always has a progress token. Elicit, CreateMessage and ListRoots ask the questions of the task, in all revisions. The
// session can send nothing else: the first attempt logs a warning, a notification is dropped, and a request returns an
// error. The request has the _meta, the headers and the token of its call. A run after a restart has only the user's ID.
//
// A program may add the tool to several servers, such as one for each session. Equal tools are then one tool. If a tool
// differs, AddTaskTool returns an error that names the difference. A call runs the handler of the server that it came
// through. A run after a restart, or in another process, has the handler that was added first. So if servers belong to
// users, add the tool to one that belongs to none at the start of the program.
//
// A call that does not come through a gateway runs without a task, as with mcp.AddTool, and logs a warning.
func AddTaskTool[In, Out any](server *mcp.Server, tasks *taskserver.Server, tool *mcp.Tool, handler mcp.ToolHandlerFor[In, Out], policy mcptask.Policy) error {
	backend := tasks.Backend()
	var options mcp.ServerOptions
	if tool.InputSchema == nil && tool.OutputSchema == nil { // the cache would keep each schema that the program makes
		options.SchemaCache = backend.Attached(schemaCacheKey{}, func() any { return mcp.NewSchemaCache() }).(*mcp.SchemaCache)
	}
	a := &adoptedTool{name: tool.Name, tasks: backend, own: mcp.NewServer(&mcp.Implementation{Name: tool.Name}, &options)}
	a.handle = findReceivingHandler(a.own)
	err := recoverError(func() {
		mcp.AddTool(a.own, tool, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
			run, _ := ctx.Value(adoptedRunKey{}).(*adoptedRun)
			var out Out
			if run == nil || run.isCheck {
				return nil, out, errArgumentsFit
			}
			if run.request != nil {
				req = run.request
			}
			result, out, err := handler(ctx, req, in)
			run.failed = err
			return result, out, err
		})
	})
	if err != nil {
		return fmt.Errorf("gosdk: %w", err)
	}
	listed, err := a.list()
	if err != nil {
		return err
	}
	entry, err := json.Marshal(listed)
	if err != nil {
		return fmt.Errorf("gosdk: tool %q: %w", tool.Name, err)
	}
	if err := gateway.Adopt(tasks, entry, policy, a.bindStored); err != nil {
		return fmt.Errorf("gosdk: %w", err)
	}
	sdk := attachMiddleware(server, backend)
	if strings.Contains(string(entry), "x-mcp-header") {
		sdk.annotated.Store(tool.Name, nil)
	}
	server.AddTool(listed, a.call)
	for _, spec := range gateway.FallbackTools(backend, tool.Name) {
		if _, known := sdk.added.Load(spec.Name); !known {
			sdk.addTool(server, backend, spec)
		}
	}
	return nil
}

type schemaCacheKey struct{}

// recoverError calls f and returns its panic as an error.
func recoverError(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	f()
	return nil
}

// adoptedTool is a tool that was added to a server of the program. It does not hold that server.
type adoptedTool struct {
	name  string
	tasks *taskserver.Backend
	// own has the tool alone. It checks arguments, calls the handler and encodes its output, as the program's server would.
	own *mcp.Server
	// handle is own's handler of requests.
	handle mcp.MethodHandler
}

// adoptedRun is a call in the adoptedTool's own server.
type adoptedRun struct {
	// isCheck ends the call with errArgumentsFit in place of the handler.
	isCheck bool
	// request is the request that the handler gets. If it is nil, the handler gets that of the own server.
	request *mcp.CallToolRequest
	failed  error // the error of the handler
}

type adoptedRunKey struct{}

// errArgumentsFit ends a call that only checks the arguments.
var errArgumentsFit = &jsonrpc.Error{Code: mcptask.CodeInternalError, Message: "the arguments fit"}

// request sends a request to the own server, in a session of its own. conn gets what the session sends.
func (a *adoptedTool) request(ctx context.Context, conn *runConn, params *mcp.InitializeParams, method string, newRequest func(*mcp.ServerSession) mcp.Request) (mcp.Result, error) {
	session, err := a.own.Connect(context.WithoutCancel(ctx), conn, &mcp.ServerSessionOptions{State: &mcp.ServerSessionState{
		InitializeParams: params, InitializedParams: &mcp.InitializedParams{},
		LogLevel: "debug", // so that Log reaches conn
	}})
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = conn.Close() // without this, the session would wait for the responses to its requests
		_ = session.Close()
	}()
	return a.handle(ctx, method, newRequest(session))
}

// list returns the tool as the SDK lists it.
func (a *adoptedTool) list() (*mcp.Tool, error) {
	result, err := a.request(context.Background(), newRunConn(context.Background(), nil, a), unasked, "tools/list", func(session *mcp.ServerSession) mcp.Request {
		return &mcp.ListToolsRequest{Session: session}
	})
	if err != nil {
		return nil, fmt.Errorf("gosdk: tool %q is not listed: %w", a.name, err)
	}
	return result.(*mcp.ListToolsResult).Tools[0], nil
}

// invoke calls the tool.
func (a *adoptedTool) invoke(ctx context.Context, run *adoptedRun, conn *runConn, client *mcp.InitializeParams, params *mcp.CallToolParamsRaw, extra *mcp.RequestExtra) (*mcp.CallToolResult, error) {
	ctx = context.WithValue(ctx, adoptedRunKey{}, run)
	result, err := a.request(ctx, conn, client, "tools/call", func(session *mcp.ServerSession) mcp.Request {
		return &mcp.CallToolRequest{Session: session, Params: params, Extra: extra}
	})
	if err != nil {
		return nil, err
	}
	return result.(*mcp.CallToolResult), nil
}

// unasked describes a client for calls whose session sends nothing. In 2026-07-28 the SDK returns input requests to the
// caller.
var unasked = &mcp.InitializeParams{ProtocolVersion: mcptask.Revision20260728, Capabilities: &mcp.ClientCapabilities{}}

// call is the handler of the tool on the program's server.
func (a *adoptedTool) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	f, _ := ctx.Value(flightKey{}).(*flight)
	if f == nil || f.flow.Tool != a.name {
		return a.callPlainly(ctx, req)
	}
	// The SDK refuses arguments that are no object with a text of its own.
	if data := bytes.TrimSpace(req.Params.Arguments); f.flow.Call.Mode != taskserver.ModeTask && len(data) > 0 && data[0] != '{' && string(data) != "null" {
		if refused, err := a.check(ctx, data); err != nil && refused != nil {
			return withoutType(refused), nil
		}
	}
	if f.flow.Call.Bind == nil { // middleware may call a tool twice
		bind := a.newBind(newCallFacts(req, f.flow.Caller.CanAsk))
		f.flow.Call.Bind = func(arguments json.RawMessage) (mcptask.BoundCall, error) {
			var err error
			if f.refused, err = a.check(ctx, arguments); err != nil {
				return nil, err
			}
			return bind(arguments)
		}
	}
	result, err := taskTools{a.tasks}.run(ctx, f, req)
	if f.refused == nil || err != nil {
		return result, err
	}
	f.result, f.typed = nil, nil
	return withoutType(f.refused), nil
}

// check returns an error if the arguments do not fit the tool, and the SDK's answer.
func (a *adoptedTool) check(ctx context.Context, arguments json.RawMessage) (refused *mcp.CallToolResult, err error) {
	refused, err = a.invoke(ctx, &adoptedRun{isCheck: true}, newRunConn(ctx, nil, a), unasked, &mcp.CallToolParamsRaw{Name: a.name, Arguments: arguments}, nil)
	switch {
	case errors.Is(err, errArgumentsFit):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return refused, errors.New(textOf(refused))
}

// textOf returns the text of a result.
func textOf(result *mcp.CallToolResult) (text string) {
	for _, content := range result.Content {
		if block, ok := content.(*mcp.TextContent); ok {
			text += block.Text
		}
	}
	return text
}

// callPlainly calls the handler as the program's server would.
func (a *adoptedTool) callPlainly(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	gateway.WarnOnce(a.tasks, "a call runs without a task, since it has not come through the gateway: serve with gosdk.NewHandler, "+
		"gosdk.StdioTransport or gosdk.Transport, and add the tool to a server before the first call", "tool", a.name)
	result, err := a.invoke(ctx, &adoptedRun{request: req}, newRunConn(ctx, nil, a), unasked, req.Params, req.Extra)
	if err != nil {
		return nil, err
	}
	return withoutType(result), nil
}

// withoutType returns a copy of a result for a session of another revision, which sets the type of the result.
func withoutType(result *mcp.CallToolResult) *mcp.CallToolResult {
	untyped := &mcp.CallToolResult{
		Meta: result.Meta, Content: result.Content, StructuredContent: result.StructuredContent,
		InputRequests: result.InputRequests, RequestState: result.RequestState,
	}
	if err := result.GetError(); err != nil {
		untyped.SetError(err)
	}
	untyped.IsError = result.IsError
	return untyped
}

// callFacts has what a handler may read of a call. It does not hold the session.
type callFacts struct {
	meta   mcp.Meta
	extra  mcp.RequestExtra
	client *mcp.InitializeParams
}

// newCallFacts returns the facts of a call by a client that answers the methods of canAsk.
func newCallFacts(req *mcp.CallToolRequest, canAsk []string) *callFacts {
	facts := &callFacts{meta: req.Params.Meta, client: newInitializeParams(canAsk)}
	if extra := req.Extra; extra != nil {
		facts.extra = mcp.RequestExtra{TokenInfo: extra.TokenInfo, Header: extra.Header.Clone()}
		facts.extra.Header.Del(gateway.FlowHeader)
		if extra.CloseSSEStream != nil {
			facts.extra.CloseSSEStream = func(mcp.CloseSSEStreamArgs) {} // the stream is not the run's
		}
	}
	if client := req.Session.InitializeParams(); client != nil && client.ClientInfo != nil {
		facts.client.ClientInfo = client.ClientInfo
	}
	return facts
}

// bindStored is the Binder of runs whose call is not known. The tool may have been declared anew since the call.
func (a *adoptedTool) bindStored(arguments json.RawMessage) (mcptask.BoundCall, error) {
	if refused, err := a.check(context.Background(), arguments); refused != nil {
		return nil, err
	}
	return a.newBind(nil)(arguments)
}

// newBind returns a Binder for the runs of a call, or, if facts is nil, for runs whose call is not known.
func (a *adoptedTool) newBind(facts *callFacts) gateway.Binder {
	return mcptask.NewTool(mcptask.ToolSpec{Name: a.name}, func(ctx context.Context, task *mcptask.Task, arguments json.RawMessage) (*mcptask.Result, error) {
		of := facts
		if of == nil { // the task itself knows which questions its client answers
			of = &callFacts{client: newInitializeParams([]string{spec.Elicit, taskserver.CanAskURL, spec.Sample, spec.Roots})}
			if user := task.Principal(); user != "" && user != Local {
				of.extra.TokenInfo = &auth.TokenInfo{UserID: user}
			}
		}
		params, extra := &mcp.CallToolParamsRaw{Meta: maps.Clone(of.meta), Name: a.name, Arguments: arguments}, of.extra
		if params.GetProgressToken() == nil { // handlers report only if there is one
			params.SetProgressToken("task")
		}
		run := new(adoptedRun)
		result, err := a.invoke(ctx, run, newRunConn(ctx, task, a), of.client, params, &extra)
		return a.convert(ctx, run, result, err)
	}).Bind
}

// convert converts what the SDK returns for a run.
func (a *adoptedTool) convert(ctx context.Context, run *adoptedRun, result *mcp.CallToolResult, err error) (*mcptask.Result, error) {
	switch failed := run.failed.(type) { //nolint:errorlint // as the SDK does
	case nil:
	case *jsonrpc.Error:
		return nil, &mcptask.Error{Code: int(failed.Code), Message: failed.Message, Data: failed.Data}
	default: // the server makes the same text of it, unless it is the end of the task
		return nil, failed
	}
	if err != nil {
		if ctx.Err() == nil {
			err = mcptask.Errorf(mcptask.CodeInternalError, "%v", err)
		}
		return nil, err
	}
	data, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	converted := new(mcptask.Result)
	return converted, json.Unmarshal(data, converted)
}

// newInitializeParams describes to a handler a client that answers the methods of canAsk.
func newInitializeParams(canAsk []string) *mcp.InitializeParams {
	params := &mcp.InitializeParams{ProtocolVersion: mcptask.Revision20251125, Capabilities: &mcp.ClientCapabilities{}, ClientInfo: &mcp.Implementation{}}
	declared := params.Capabilities
	form, url := slices.Contains(canAsk, spec.Elicit), slices.Contains(canAsk, taskserver.CanAskURL)
	if form || url {
		declared.Elicitation = &mcp.ElicitationCapabilities{}
	}
	if form {
		declared.Elicitation.Form = &mcp.FormElicitationCapabilities{}
	}
	if url {
		declared.Elicitation.URL = &mcp.URLElicitationCapabilities{}
	}
	if slices.Contains(canAsk, spec.Sample) {
		declared.Sampling = &mcp.SamplingCapabilities{}
	}
	if slices.Contains(canAsk, spec.Roots) {
		declared.RootsV2 = &mcp.RootCapabilities{}
	}
	return params
}
