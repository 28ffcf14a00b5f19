package gosdk

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// callFinder finds the calls of task tools that can run in the middleware of an SDK server without the SDK's HTTP handler.
// That handler allocates half a megabyte for a call of 2026-07-28, most of it in buffers of its JSON decoder.
type callFinder struct {
	tasks         *taskserver.Backend
	getServer     func(*http.Request) *mcp.Server
	hasEventStore bool
}

// findRunner implements gateway.Config.FindRunner.
func (f *callFinder) findRunner(found *gateway.Call) gateway.Runner {
	header := found.Request.Header
	if !acceptsAnswers(header.Values("Accept")) || header["Last-Event-Id"] != nil {
		return nil
	}
	call := &sdkCall{Call: found, tasks: f.tasks}
	if found.Meta != nil && (json.Unmarshal(found.Meta, &call.meta) != nil || call.meta == nil) {
		return nil
	}
	if found.Flow.Stateless {
		return f.findStatelessRunner(call)
	}
	session, ok := found.Session.(*sdkSession)
	if !ok || f.hasEventStore {
		return nil
	}
	if call.server, call.session = session.server.Value(), session.session.Value(); call.server == nil || call.session == nil {
		return nil
	}
	return call.run
}

// findStatelessRunner is findRunner for a call of 2026-07-28.
func (f *callFinder) findStatelessRunner(call *sdkCall) gateway.Runner {
	r, tool := call.Request, call.Flow.Tool
	if r.Header.Get("Mcp-Method") != "tools/call" || r.Header.Get("Mcp-Name") != tool {
		return nil
	}
	state := newSessionState(call.Meta)
	if state == nil {
		return nil
	}
	if call.server = f.getServer(r); call.server == nil {
		return nil
	}
	// If the SDK's handler serves the call, it gets this server.
	*r = *r.WithContext(context.WithValue(r.Context(), serverKey{}, call.server))
	sdk := findSDKServer(f.tasks, call.server)
	if sdk == nil {
		return nil
	}
	info := sdk.info.Load()
	if _, annotated := sdk.annotated.Load(tool); annotated || info == nil {
		return nil
	}
	return func(ctx context.Context) (json.RawMessage, error) {
		return call.runStateless(ctx, state, *info)
	}
}

// serverKey is the key of the SDK server in the context of a request.
type serverKey struct{}

// reuseServer returns a getServer that returns the server of a request's context if there is one.
func reuseServer(getServer func(*http.Request) *mcp.Server) func(*http.Request) *mcp.Server {
	return func(r *http.Request) *mcp.Server {
		if server, ok := r.Context().Value(serverKey{}).(*mcp.Server); ok {
			return server
		}
		return getServer(r)
	}
}

// sdkCall is a call that runs in the middleware of an SDK server. callOf finds it in the context of the call. It is safe
// for concurrent use.
type sdkCall struct {
	*gateway.Call
	tasks   *taskserver.Backend
	meta    map[string]any
	server  *mcp.Server
	session *mcp.ServerSession

	mu sync.Mutex
	// sender is the session whose messages go on the stream of the call. In 2026-07-28 it is session. In a session of
	// 2025-11-25 it is nil until there is a message: the session itself serves many calls.
	sender *mcp.ServerSession
	conn   *callConn // the transport of sender
	// sending counts the messages that are being sent, and the requests that wait for a response.
	sending int
	over    bool        // the middleware has returned
	stop    func() bool // ends the watch of the client's session; nil if there is none
}

type sdkCallKey struct{}

// callOf returns the call that a context belongs to, or nil.
func callOf(ctx context.Context) *sdkCall {
	call, _ := ctx.Value(sdkCallKey{}).(*sdkCall)
	return call
}

// run calls the server's receiving middleware and encodes its result.
func (c *sdkCall) run(ctx context.Context) (json.RawMessage, error) {
	defer c.end()
	token, closeFlow := gateway.OpenFlow(c.tasks, c.Flow)
	defer closeFlow()
	c.Request.Header.Set(gateway.FlowHeader, token)
	result, err := findReceivingHandler(c.server)(context.WithValue(ctx, sdkCallKey{}, c), "tools/call", &mcp.CallToolRequest{
		Session: c.session,
		Params:  &mcp.CallToolParamsRaw{Meta: c.meta, Name: c.Flow.Tool, Arguments: c.Arguments},
		Extra: &mcp.RequestExtra{
			TokenInfo: auth.TokenInfoFromContext(c.Request.Context()), Header: c.Request.Header,
			CloseSSEStream: func(mcp.CloseSSEStreamArgs) {}, // without an EventStore nothing could resume the stream
		},
	})
	if err != nil {
		return nil, toAnswerError(err)
	}
	data, err := encodeResult(result)
	if err != nil {
		return nil, toAnswerError(err)
	}
	return data, nil
}

// runStateless is run for a call of 2026-07-28, which has a session of its own.
func (c *sdkCall) runStateless(ctx context.Context, state *mcp.ServerSessionState, info json.RawMessage) (json.RawMessage, error) {
	if err := c.connectSender(ctx, "", state); err != nil {
		return nil, toAnswerError(err)
	}
	c.session = c.sender
	result, err := c.run(ctx)
	if err != nil {
		return nil, err
	}
	return completeResult(result, info)
}

// findReceivingHandler returns the handler that the SDK calls for a request: the server's receiving middleware around the
// SDK's own handler. It adds middleware that returns the handler unchanged, so the server stays as it is. Look the handler
// up for each call, because a program may add middleware at any time. It is safe for concurrent use.
func findReceivingHandler(server *mcp.Server) (handler mcp.MethodHandler) {
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		handler = next
		return next
	})
	return handler
}

// newSessionState returns the state of the SDK's session of a call of 2026-07-28, from the call's _meta. It returns nil if
// the SDK refuses the _meta.
func newSessionState(raw json.RawMessage) *mcp.ServerSessionState {
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
	level, _ := meta.Text(mcp.MetaKeyLogLevel) //nolint:staticcheck // clients may send it for now
	declared := &capabilities.ClientCapabilities
	if declared.RootsV2 = capabilities.Roots; capabilities.Roots != nil {
		declared.Roots = *capabilities.Roots //nolint:staticcheck // the SDK sets both
	}
	return &mcp.ServerSessionState{
		InitializeParams: &mcp.InitializeParams{ProtocolVersion: version, Capabilities: declared, ClientInfo: client},
		LogLevel:         mcp.LoggingLevel(level), //nolint:staticcheck // as the key
	}
}

// acceptsAnswers reports whether a request accepts JSON and streams, as the SDK demands. It returns false for wildcards
// such as */*, which the SDK's handler understands.
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
