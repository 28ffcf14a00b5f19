// Package mcpgo adds tasks to servers built with github.com/mark3labs/mcp-go. [AddTaskTool] makes a tool of such a server a
// task, and its handler stays as it is. [AddTools] adds generated tools. [NewHandler] serves them over streamable HTTP, and
// [ServeStdio] over standard input and output. The package has limits that come from that SDK:
//
//   - Its types cannot carry tasks, so the gateway answers calls of task tools itself. mcp-go's hooks, middleware and
//     filters do not see the calls of generated tools. They see each run of a tool of AddTaskTool. mcp-go serves its other
//     tools as before.
//   - Over HTTP, the progress of a plain call is sent as notifications on the call's stream. That of a task is
//     sent as its status message only.
//   - mcp-go does not report the end of a session. The gateway forgets a session when the client
//     deletes it, or after Options.SessionTimeout.
//
// With a store on SQLite or PostgreSQL, or with taskserver.Options.SessionKey, any replica serves any
// session, and a restart does not end it, as with gosdk. mcp-go sees an initialize in each process
// that serves the session.
//
// Do not use the server's own task support (WithTaskCapabilities, mcp-go's AddTaskTool) with this package,
// because the gateway answers all tasks/* methods. NewHandler logs such leftovers as errors, and ServeStdio refuses them.
package mcpgo

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// AddTools registers the tools of tasks and the fallback tools of its services with an mcp-go
// server, so that the server lists them. A call that does not come through NewHandler or ServeStdio
// fails, because its caller is unknown.
func AddTools(s *server.MCPServer, tasks *taskserver.Server) {
	addSpecs(s, gateway.Tools(tasks.Backend()))
}

// addSpecs registers tools that only a gateway can call.
func addSpecs(s *server.MCPServer, specs []mcptask.ToolSpec) {
	for _, spec := range specs {
		s.AddTool(convertTool(spec), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, mcptask.Errorf(mcptask.CodeInternalError,
				"the tool %q can be called only through the task gateway: serve with mcpgo.NewHandler or mcpgo.ServeStdio", req.Params.Name)
		})
	}
}

func convertTool(spec mcptask.ToolSpec) mcp.Tool {
	t := mcp.NewToolWithRawSchema(spec.Name, spec.Description, json.RawMessage(spec.InputSchema))
	t.Title = spec.Title
	if spec.OutputSchema != "" {
		t.RawOutputSchema = json.RawMessage(spec.OutputSchema)
	}
	t.Annotations = mcp.ToolAnnotation{
		ReadOnlyHint: spec.Annotations.ReadOnly, DestructiveHint: spec.Annotations.Destructive,
		IdempotentHint: spec.Annotations.Idempotent, OpenWorldHint: spec.Annotations.OpenWorld,
	}
	return t
}

// Options configure NewHandler. The zero value is ready to use.
type Options struct {
	// Principal returns the owner of a request. "" means anonymous, and an error refuses the
	// request. The options of tasks take precedence. A nil Principal makes every caller anonymous.
	// While a stream is open, Principal is called again, as [taskserver.Options.Principal] is: return an
	// error once the token has expired.
	Principal func(context.Context) (string, error)
	// SessionTimeout ends a session after this time without a request or an open stream. 0 means
	// never.
	SessionTimeout time.Duration
}

// AllowOrigins lets the pages of [taskserver.Options.AllowedOrigins] call a handler in front of
// NewHandler's, such as one that checks tokens. It answers preflights, and lets the pages read
// refusals. NewHandler's handler alone needs no AllowOrigins.
func AllowOrigins(tasks *taskserver.Server, next http.Handler) http.Handler {
	return gateway.AllowOrigins(tasks.Backend(), next)
}

// NewHandler serves an mcp-go server with tasks over streamable HTTP, in 2025-11-25 and 2026-07-28 at the same URL. inner
// has the options of mcp-go's own handler. NewHandler asks the server for its tools and capabilities, to log what is left
// over of mcp-go's own tasks. Hooks of the server see these requests.
func NewHandler(tasks *taskserver.Server, s *server.MCPServer, options Options, inner ...server.StreamableHTTPOption) http.Handler {
	if err := checkLeftovers(s); err != nil {
		tasks.Backend().Logger().Error("mcp-go's own tasks do not work behind mcpgo.NewHandler", "error", err)
	}
	sdk := server.NewStreamableHTTPServer(s, inner...)
	return gateway.New(gateway.Config{
		Server: tasks.Backend(), Stateful: sdk, Stateless: sdk, Direct: true,
		FindBinder: adoptionsOf(tasks.Backend()).binderFor(s),
		Principal:  options.Principal, SessionTimeout: options.SessionTimeout,
	})
}
