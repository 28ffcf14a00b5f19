package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// calls runs calls of task tools in the middleware of an SDK server, in the place of the SDK's HTTP handler. That
// handler allocates half a megabyte for a call of 2026-07-28, most of it in buffers of its JSON decoder. It still serves
// sessions with an EventStore, batches, requests that it refuses, and calls of tools with x-mcp-header.
type calls struct {
	tasks     *mcptask.Server
	getServer func(*http.Request) *mcp.Server
	stored    bool // the handler has an EventStore
}

// find implements gateway.Config.FindRunner.
func (c *calls) find(call *gateway.Call) gateway.Runner {
	r := call.Request
	if !acceptsAnswers(r.Header.Values("Accept")) || r.Header["Last-Event-Id"] != nil {
		return nil
	}
	var meta map[string]any
	if call.Meta != nil && (json.Unmarshal(call.Meta, &meta) != nil || meta == nil) {
		return nil
	}
	own := &sdkCall{Call: call, meta: meta}
	if call.Flow.Stateless {
		return c.findStateless(own)
	}
	known, ok := call.Session.(*servedSession)
	if !ok || c.stored || !known.admits(auth.TokenInfoFromContext(r.Context())) {
		return nil
	}
	if own.server, own.session = known.server.Value(), known.session.Value(); own.server == nil || own.session == nil {
		return nil
	}
	return own.run
}

// findStateless returns what runs a call of 2026-07-28.
func (c *calls) findStateless(call *sdkCall) gateway.Runner {
	r, tool := call.Request, call.Flow.Tool
	if r.Header.Get("Mcp-Method") != "tools/call" || r.Header.Get("Mcp-Name") != tool {
		return nil
	}
	state := newState(call.Meta)
	server := c.getServer(r)
	if state == nil || server == nil {
		return nil
	}
	known := servedBy(c.tasks, server)
	if known == nil {
		return nil
	}
	if _, annotated := known.annotated.Load(tool); annotated {
		return nil
	}
	info := known.info.Load()
	if info == nil {
		return nil
	}
	call.server = server
	return func(ctx context.Context) (json.RawMessage, *mcptask.Error) {
		if err := call.connect(ctx, "", state); err != nil {
			return nil, newAnswerError(err)
		}
		call.session = call.sender
		result, failed := call.run(ctx)
		if failed != nil {
			return nil, failed
		}
		return nameServer(result, *info)
	}
}

// newState returns the state of the SDK's session of a call of 2026-07-28, from the call's _meta. It returns nil if the
// SDK refuses the _meta.
func newState(raw json.RawMessage) *mcp.ServerSessionState {
	meta := wire.NewObject(raw)
	var capabilities *struct {
		mcp.ClientCapabilities
		Roots *mcp.RootCapabilities `json:"roots"`
	}
	if json.Unmarshal(meta.Get(mcp.MetaKeyClientCapabilities), &capabilities) != nil || capabilities == nil {
		return nil
	}
	var client *mcp.Implementation
	if meta.Has(mcp.MetaKeyClientInfo) && (json.Unmarshal(meta.Get(mcp.MetaKeyClientInfo), &client) != nil || client == nil) {
		return nil
	}
	version, _ := meta.Text(mcp.MetaKeyProtocolVersion)
	level, _ := meta.Text(mcp.MetaKeyLogLevel)
	declared := &capabilities.ClientCapabilities
	if declared.RootsV2 = capabilities.Roots; capabilities.Roots != nil {
		declared.Roots = *capabilities.Roots // the SDK has both
	}
	return &mcp.ServerSessionState{
		InitializeParams: &mcp.InitializeParams{ProtocolVersion: version, Capabilities: declared, ClientInfo: client},
		LogLevel:         mcp.LoggingLevel(level),
	}
}

// nameServer adds to a result of 2026-07-28 what the SDK adds after the middleware.
func nameServer(result, info json.RawMessage) (json.RawMessage, *mcptask.Error) {
	object := wire.NewObject(result)
	var edits []wire.Edit
	if !object.Has("resultType") {
		edits = append(edits, wire.Set(json.RawMessage(`"complete"`), "resultType"))
	}
	if !object.Has("_meta", mcp.MetaKeyServerInfo) {
		edits = append(edits, wire.Set(info, "_meta", mcp.MetaKeyServerInfo))
	}
	named, err := object.Edited(edits...)
	if err != nil {
		return nil, newAnswerError(err)
	}
	return named, nil
}

// acceptsAnswers reports whether a request accepts JSON and streams, as the SDK demands. It leaves a request that says so
// in an unusual way to the SDK.
func acceptsAnswers(values []string) bool {
	var asJSON, asStream bool
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			media, _, _ := strings.Cut(part, ";")
			switch strings.TrimSpace(media) {
			case "application/json":
				asJSON = true
			case "text/event-stream":
				asStream = true
			}
		}
	}
	return asJSON && asStream
}

// middlewareOf returns the receiving middleware of a server, with the SDK's own handler at its end. The SDK calls each
// middleware that is added with the handler to wrap, so one that returns this handler adds nothing. middlewareOf is
// called for each call, because middleware may be added at any time. It is safe for concurrent use.
func middlewareOf(server *mcp.Server) (handler mcp.MethodHandler) {
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		handler = next
		return next
	})
	return handler
}

// sdkCall is a call that runs in the middleware of an SDK server. The context of the call has it. It is safe for
// concurrent use.
type sdkCall struct {
	*gateway.Call
	meta    map[string]any
	server  *mcp.Server
	session *mcp.ServerSession
	taken   atomic.Bool // the middleware of AddTools has the flow

	mu sync.Mutex
	// sender is the session whose messages go on the stream of the call. In 2026-07-28 it is session. In a session of
	// 2025-11-25 it is nil until there is a message: the session itself serves many calls.
	sender *mcp.ServerSession
	conn   *callConn // the transport of sender
	// sending counts the messages under way, and the requests without a response.
	sending int
	over    bool
	stop    func() bool // ends the watch of the session's end; nil if there is none
}

type sdkCallKey struct{}

// callOf returns the call that a context belongs to, or nil.
func callOf(ctx context.Context) *sdkCall {
	call, _ := ctx.Value(sdkCallKey{}).(*sdkCall)
	return call
}

// run calls the middleware.
func (c *sdkCall) run(ctx context.Context) (json.RawMessage, *mcptask.Error) {
	defer c.end()
	result, err := middlewareOf(c.server)(context.WithValue(ctx, sdkCallKey{}, c), "tools/call", &mcp.CallToolRequest{
		Session: c.session,
		Params:  &mcp.CallToolParamsRaw{Meta: c.meta, Name: c.Flow.Tool, Arguments: c.Arguments},
		Extra: &mcp.RequestExtra{
			TokenInfo: auth.TokenInfoFromContext(c.Request.Context()), Header: c.Request.Header,
			CloseSSEStream: func(mcp.CloseSSEStreamArgs) {}, // without an EventStore nothing could resume the stream
		},
	})
	if err != nil {
		return nil, newAnswerError(err)
	}
	data, err := encodeResult(result)
	if err != nil {
		return nil, newAnswerError(err)
	}
	return data, nil
}

// errNoResult says that middleware has returned no result.
var errNoResult = &jsonrpc.Error{Code: mcptask.CodeInternalError, Message: "the server's middleware has returned no result"}

// encodeResult returns the JSON of a result of middleware.
func encodeResult(result mcp.Result) (json.RawMessage, error) {
	if raw, ok := result.(*rawResult); ok && raw != nil && len(raw.Meta) == 0 {
		return raw.body, nil
	}
	data, err := json.Marshal(result)
	if err == nil && !wire.NewObject(data).IsObject() {
		err = errNoResult
	}
	return data, err
}

// newAnswerError returns the error that the SDK makes of an error of middleware.
func newAnswerError(err error) *mcptask.Error {
	answer := &mcptask.Error{Message: err.Error()}
	if sdk := (*jsonrpc.Error)(nil); errors.As(err, &sdk) {
		answer.Code = int(sdk.Code)
		if err == error(sdk) { //nolint:errorlint // the SDK keeps the data of an error that is not wrapped
			answer.Message, answer.Data = sdk.Message, sdk.Data
		}
	}
	if !json.Valid(answer.Data) {
		answer.Data = nil
	}
	return answer
}

// beginSending returns the session whose messages go on the stream of the call. Call endSending when the message is sent,
// or has its response.
func (c *sdkCall) beginSending(ctx context.Context) (*mcp.ServerSession, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, errNotSent
	}
	if c.sender == nil {
		if err := c.connect(context.WithoutCancel(ctx), c.session.ID(),
			&mcp.ServerSessionState{InitializeParams: c.session.InitializeParams(), InitializedParams: &mcp.InitializedParams{}}); err != nil {
			return nil, err
		}
	}
	c.sending++
	return c.sender, nil
}

// endSending follows each beginSending that has returned a session.
func (c *sdkCall) endSending() {
	c.mu.Lock()
	c.sending--
	last := c.over && c.sending == 0
	c.mu.Unlock()
	if last {
		c.close()
	}
}

// connect makes the sender.
func (c *sdkCall) connect(ctx context.Context, id string, state *mcp.ServerSessionState) (err error) {
	c.conn = newCallConn(c, id)
	c.sender, err = c.server.Connect(ctx, c.conn, &mcp.ServerSessionOptions{State: state})
	return err
}

// end ends the call. A request of the server's may outlive it, because a task has taken over the call's question. It then
// ends with its response, or with the session.
func (c *sdkCall) end() {
	c.mu.Lock()
	c.over = true
	last := c.sending == 0
	if !last && c.Flow.Ended != nil {
		c.stop = context.AfterFunc(c.Flow.Ended, func() {
			defer guard.Recover(nil, "the end of a call")
			c.close()
		})
	}
	c.mu.Unlock()
	if last {
		c.close()
	}
}

// close ends the session whose messages went on the stream of the call.
func (c *sdkCall) close() {
	c.mu.Lock()
	stop, conn, sender := c.stop, c.conn, c.sender
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	if sender != nil {
		_ = conn.Close() // without this, the session would wait for the responses to its requests
		_ = sender.Close()
	}
}

// sendOnCalls is sending middleware. It sends a message that belongs to a call on the stream of the call, as the SDK's
// handler does for its calls.
func sendOnCalls(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call := callOf(ctx)
		request, ok := req.(*mcp.ServerRequest[mcp.Params])
		if call == nil || !ok || request.Session != call.session || !call.HasStream() {
			return next(ctx, method, req)
		}
		sender, err := call.beginSending(ctx)
		if err != nil {
			return nil, err
		}
		defer call.endSending()
		on := *request
		on.Session = sender
		return next(ctx, method, &on)
	}
}
