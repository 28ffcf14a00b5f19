package gosdk

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// NewHandler serves SDK servers with tasks over streamable HTTP. It speaks 2025-11-25, earlier
// revisions without tasks, and 2026-07-28 on the same URL. It mirrors mcp.NewStreamableHTTPHandler.
// Call AddTools or AddTaskTool, with the same tasks, for each server that getServer returns.
//
// With a store on SQLite or PostgreSQL, or with taskserver.Options.SessionKey, any replica serves a
// session of 2025-11-25, and a restart does not end it. The SDK server then sees an initialize in each
// process that serves the session, and ServerSession.ID is not the ID that the client has.
//
// A call of a task tool runs in the receiving middleware of its SDK server. If the call becomes a task, the middleware sees
// an empty CallToolResult as soon as the task exists. The client gets the task, whatever result the middleware returns then.
// If the middleware returns an error, the client gets the error, and the task is cancelled. The result of the task does not
// go through middleware later, nor do the requests about tasks. So middleware that refuses a call should do so before it
// goes on.
//
// NewHandler runs the middleware itself if it can, because the SDK's HTTP handler is slow. The SDK's handler still serves
// sessions with an EventStore, tools with x-mcp-header, requests that the SDK may refuse, and in 2026-07-28 the first
// request of each SDK server. So a getServer that makes a server for each request is slower than one that returns the same
// server again.
//
// The context that middleware gets is that of the call's own HTTP request. In a session it outlives the request: it ends
// when the call returns, when the client cancels the call, or when the session ends. The handler of a tool has a context of
// its own, to which only [taskserver.Options.Context] adds.
//
// NewHandler also serves sessions with the option Stateless, because tasks of 2025-11-25 belong to one. With the option,
// clients can use all but tasks without a session. NewHandler refuses requests from pages of other origins unless
// [taskserver.Options.AllowedOrigins] has them. A program that answers preflights itself can admit more by the option
// CrossOriginProtection. The principal is the UserID of the SDK's bearer token, unless the options of tasks say otherwise.
// Streams, subscriptions and waits for a task end when that token expires.
func NewHandler(tasks *taskserver.Server, getServer func(*http.Request) *mcp.Server, opts *mcp.StreamableHTTPOptions) http.Handler {
	return NewRevisionHandler(tasks, "", getServer, opts)
}

// AllowOrigins lets the pages of [taskserver.Options.AllowedOrigins] call a handler in front of
// NewHandler's, such as that of [RequireBearerToken]. It answers preflights, and lets the pages read
// refusals. NewHandler's handler alone needs no AllowOrigins.
func AllowOrigins(tasks *taskserver.Server, next http.Handler) http.Handler {
	return gateway.AllowOrigins(tasks.Backend(), next)
}

// NewRevisionHandler is like NewHandler, but speaks tasks in one revision only. 2025-11-25-rc needs
// a path of its own beside 2025-11-25, because the two look the same on the wire. A revision that
// is not in Options.Revisions is not spoken at all.
func NewRevisionHandler(tasks *taskserver.Server, revision string, getServer func(*http.Request) *mcp.Server, opts *mcp.StreamableHTTPOptions) http.Handler {
	return gateway.New(newConfig(tasks.Backend(), revision, getServer, opts))
}

// newConfig returns the configuration of a gateway in front of SDK servers.
func newConfig(tasks *taskserver.Backend, revision string, getServer func(*http.Request) *mcp.Server, opts *mcp.StreamableHTTPOptions) gateway.Config {
	var options mcp.StreamableHTTPOptions
	if opts != nil {
		options = *opts
	}
	config := gateway.Config{
		Server:         tasks,
		Revision:       revision,
		Principal:      tokenPrincipal,
		Expires:        tokenExpiration,
		CrossOrigin:    options.CrossOriginProtection,
		AnyHost:        options.DisableLocalhostProtection,
		JSON:           options.JSONResponse,
		Resumes:        options.EventStore != nil,
		MaxBody:        options.MaxRequestBodyBytes,
		SessionTimeout: options.SessionTimeout,
	}
	config.FindRunner = (&callFinder{tasks, getServer, options.EventStore != nil}).findRunner
	config.Admits = func(r *http.Request, session any) bool {
		opened, ok := session.(*sdkSession)
		return !ok || opened.admits(r)
	}
	// The gateway checks host, origin and size, and closes idle sessions.
	options.CrossOriginProtection, options.DisableLocalhostProtection = nil, true
	options.MaxRequestBodyBytes = -1
	options.SessionTimeout = 0

	stateful, stateless := options, options
	stateful.Stateless, stateless.Stateless = false, true
	// A client of 2026-07-28 cancels a call by closing its stream.
	stateless.PropagateRequestCancellation = true
	config.Stateful = mcp.NewStreamableHTTPHandler(getServer, &stateful)
	if options.Stateless {
		config.Sessionless = mcp.NewStreamableHTTPHandler(getServer, &options)
	}
	config.Stateless = mcp.NewStreamableHTTPHandler(reuseServer(getServer), &stateless)
	return config
}
