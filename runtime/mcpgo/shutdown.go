package mcpgo

import (
	"context"
	"io"
	"net/http"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// Shutdown stops a server in an order that loses no answer:
//
//  1. It closes tasks, as [taskserver.Server.Close] does. New calls of task tools are refused. The
//     contexts of handlers end, and handlers have Options.Drain to return. Requests that wait for a
//     task are answered, and subscriptions end.
//  2. It ends the streams that clients of NewHandler keep open, and shuts the HTTP server down. That
//     waits until calls of mcp-go's other tools are answered, and closes the connections. A nil server
//     means no HTTP server.
//  3. It ends the sessions. ServeStdio returns.
//  4. It closes the others, such as an Options.Store, one after another. It skips nil pointers.
//
// If ctx ends first, Shutdown closes the HTTP server with its connections and returns the context's
// error with all others. It then leaves the others open, because handlers may use them until
// Options.Drain is over.
//
// A second call for the same tasks waits for the first, at most until its own context ends, and
// returns the same error.
func Shutdown(ctx context.Context, server *http.Server, tasks *taskserver.Server, others ...io.Closer) error {
	return gateway.Shutdown(ctx, server, tasks, others...)
}
