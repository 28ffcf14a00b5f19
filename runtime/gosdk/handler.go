package gosdk

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
)

// NewHandler serves SDK servers over streamable HTTP, with tasks, in
// 2025-11-25 (and before, without tasks) and in 2026-07-28 on the same URL. It
// mirrors mcp.NewStreamableHTTPHandler; AddTools must have been called on the
// servers that getServer returns, with the same tasks.
//
// Of the options, Stateless is ignored, since both kinds are served. Requests
// from other browser origins are refused unless CrossOriginProtection admits
// them. The principal is the UserID of the SDK's bearer token, unless the
// options of tasks say otherwise. More options are those of this package, such as
// [DirectTaskCalls].
func NewHandler(tasks *mcptask.Server, getServer func(*http.Request) *mcp.Server, opts *mcp.StreamableHTTPOptions, more ...HandlerOption) http.Handler {
	return NewRevisionHandler(tasks, "", getServer, opts, more...)
}

// NewRevisionHandler is NewHandler for a path on which tasks are spoken in one
// revision only. 2025-11-25-rc needs one beside 2025-11-25: on the wire the two
// cannot be told apart. A revision that is not among Options.Revisions is not
// spoken at all.
func NewRevisionHandler(tasks *mcptask.Server, revision string, getServer func(*http.Request) *mcp.Server, opts *mcp.StreamableHTTPOptions, more ...HandlerOption) http.Handler {
	var own handlerOptions
	for _, option := range more {
		option(&own)
	}
	var options mcp.StreamableHTTPOptions
	if opts != nil {
		options = *opts
	}
	config := gateway.Config{
		Server:         tasks,
		Revision:       revision,
		Principal:      principal,
		CrossOrigin:    options.CrossOriginProtection,
		AnyHost:        options.DisableLocalhostProtection,
		MaxBody:        options.MaxRequestBodyBytes,
		SessionTimeout: options.SessionTimeout,
	}
	if own.direct {
		direct := &bypass{tasks: tasks, getServer: getServer, json: options.JSONResponse, stored: options.EventStore != nil}
		config.Bypass = direct.find
	}
	// The gateway has checked host, origin and size, and owns idle sessions.
	options.CrossOriginProtection, options.DisableLocalhostProtection = nil, true
	options.MaxRequestBodyBytes = -1
	options.SessionTimeout = 0

	stateful, stateless := options, options
	stateful.Stateless, stateless.Stateless = false, true
	// A client of 2026-07-28 cancels a call by closing its stream.
	stateless.PropagateRequestCancellation = true
	config.Stateful = mcp.NewStreamableHTTPHandler(getServer, &stateful)
	config.Stateless = mcp.NewStreamableHTTPHandler(getServer, &stateless)
	return gateway.New(config)
}
