// Package mcpgo gives tasks to servers that are built with
// github.com/mark3labs/mcp-go. It is the smaller sibling of package gosdk, and
// what that SDK withholds is missing here:
//
//   - Its handlers cannot answer a call with a task of ours, so the gateway
//     answers calls of task tools itself. Hooks, middleware and filters of
//     mcp-go do not see them; its other tools are served as before.
//   - A handler that runs in a plain call has no way to ask the client, so
//     questions there end in ErrCannotAsk. Inside a task they work.
//   - Progress goes out as the task's status message, never as a notification.
//   - mcp-go ends sessions without telling: the gateway forgets one when the
//     client deletes it, or after Options.SessionTimeout.
//
// The server's own task support (WithTaskCapabilities, AddTaskTool) must not be
// used beside this one: the gateway answers tasks/* alone.
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
)

// AddTools registers the tools of tasks with an mcp-go server, and the fallback
// tools of services that have them, so that it lists them. A call that does not
// come through NewHandler fails: nobody knows whose it is.
func AddTools(s *server.MCPServer, tasks *mcptask.Server) {
	for _, spec := range gateway.Tools(tasks) {
		s.AddTool(tool(spec), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, mcptask.Errorf(mcptask.CodeInternalError, "the tool %q can be called only through the task gateway", req.Params.Name)
		})
	}
}

func tool(spec mcptask.ToolSpec) mcp.Tool {
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
	// Principal tells whose request a context belongs to; "" is anonymous, an
	// error refuses the request. The options of tasks come first; nil makes
	// every caller anonymous.
	Principal func(context.Context) (string, error)
	// CrossOrigin decides which browser origins may call; nil refuses all
	// cross-origin requests.
	CrossOrigin *http.CrossOriginProtection
	// SessionTimeout ends a session that had no request and no open stream for
	// so long; 0 is never.
	SessionTimeout time.Duration
}

// NewHandler stands in front of an mcp-go server over streamable HTTP and adds
// tasks, in 2025-11-25 and in 2026-07-28 on the same URL. inner has to serve
// the server that AddTools was called on, and to keep sessions
// (server.WithStateful(true)).
func NewHandler(tasks *mcptask.Server, inner *server.StreamableHTTPServer, options Options) http.Handler {
	return gateway.New(gateway.Config{
		Server: tasks, Stateful: inner, Stateless: inner, Direct: true,
		Principal: options.Principal, CrossOrigin: options.CrossOrigin, SessionTimeout: options.SessionTimeout,
	})
}
