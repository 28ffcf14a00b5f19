package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// methodIdentify is a notification that finds out which server a StreamableHTTPServer serves, which mcp-go does not tell.
// It never leaves the process.
const methodIdentify = "notifications/io.github.mcptaskgen/identify"

type identifyKey struct{}

// identify handles methodIdentify. It does nothing for a client's notification.
func identify(ctx context.Context, _ mcp.JSONRPCNotification) {
	if found, ok := ctx.Value(identifyKey{}).(*atomic.Pointer[server.MCPServer]); ok {
		found.Store(server.ServerFromContext(ctx))
	}
}

// findServer returns the server behind inner if it has tools of tasks. It returns false if mcp-go does not tell.
func findServer(inner *server.StreamableHTTPServer) (s *server.MCPServer, told bool) {
	var found atomic.Pointer[server.MCPServer]
	ctx := context.WithValue(context.Background(), identifyKey{}, &found)
	modern, err := json.Marshal(modernParams())
	if err != nil {
		return nil, false
	}
	// A server may be restricted to revisions with sessions, of whose IDs most servers check only the form.
	for _, try := range []struct{ params, header, value string }{
		{string(modern), mcp.HeaderProtocolVersion, mcp.ProtocolVersion20260728},
		{"{}", server.HeaderKeySessionID, "mcp-session-00000000-0000-4000-8000-000000000000"},
	} {
		header := http.Header{"Content-Type": {"application/json"}}
		header.Set(try.header, try.value)
		body := []byte(`{"jsonrpc":"2.0","method":"` + methodIdentify + `","params":` + try.params + `}`)
		status := handle(inner, &server.HTTPRequest{Method: http.MethodPost, Header: header, Body: body, Context: ctx})
		if status == http.StatusAccepted {
			return found.Load(), true
		}
	}
	return nil, false
}

// modernParams are the params of a request of 2026-07-28.
func modernParams() map[string]any {
	return map[string]any{"_meta": map[string]any{mcp.MetaKeyProtocolVersion: mcp.ProtocolVersion20260728, mcp.MetaKeyClientCapabilities: map[string]any{}}}
}

// handle has mcp-go handle a request, and returns the status of the response. A function of the program that takes requests
// may panic, because this one has no user.
func handle(inner *server.StreamableHTTPServer, r *server.HTTPRequest) int {
	w := &statusWriter{header: http.Header{}}
	defer func() { _ = recover() }()
	inner.Handle(w, r)
	return w.status
}

// statusWriter is a server.HTTPResponseWriter that keeps only the status.
type statusWriter struct {
	header http.Header
	status int
}

// Header implements server.HTTPResponseWriter.
func (w *statusWriter) Header() http.Header { return w.header }

// WriteHeader implements server.HTTPResponseWriter.
func (w *statusWriter) WriteHeader(status int) { w.status = status }

// Write implements server.HTTPResponseWriter.
func (w *statusWriter) Write(data []byte) (int, error) { return len(data), nil }

// Flush implements server.HTTPResponseWriter.
func (w *statusWriter) Flush() {}

// CanStream implements server.HTTPResponseWriter.
func (w *statusWriter) CanStream() bool { return false }

// serverOf returns a function that returns the server behind inner, or nil if it has no tools of tasks. If mcp-go does not
// tell, it is the only server that has such tools.
func (a *adoptions) serverOf(inner *server.StreamableHTTPServer) func() *server.MCPServer {
	var known atomic.Pointer[server.MCPServer]
	return func() *server.MCPServer {
		if s := known.Load(); s != nil {
			return s
		}
		s, told := findServer(inner)
		if !told {
			s = a.only()
		}
		if s == nil && !told {
			a.warnOnce("mcp-go does not tell which server is behind NewHandler, so tools of AddTaskTool run plainly: " +
				"serve 2026-07-28 too, or give each server its own taskserver.Server")
		}
		if s != nil {
			known.Store(s)
		}
		return s
	}
}

// only returns the only server that has tools of tasks. It returns nil if there are several.
func (a *adoptions) only() (only *server.MCPServer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.servers {
		switch s := key.Value(); {
		case s == nil:
		case only != nil:
			return nil
		default:
			only = s
		}
	}
	return only
}

// checkLeftovers returns an error if a server has tasks of mcp-go's own, whose calls would fail behind a gateway. It asks
// the server as a client would.
func checkLeftovers(s *server.MCPServer) error {
	var faults []error
	var found []string
	cursor := ""
	for {
		var list struct {
			Tools []struct {
				Name      string
				Execution *mcp.ToolExecution
			}
			NextCursor string
		}
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		if !request(s, string(mcp.MethodToolsList), params, &list) {
			break
		}
		for _, tool := range list.Tools {
			if tool.Execution != nil && tool.Execution.TaskSupport != mcp.TaskSupportForbidden {
				found = append(found, tool.Name)
			}
		}
		if cursor = list.NextCursor; cursor == "" {
			break
		}
	}
	if len(found) > 0 {
		faults = append(faults, fmt.Errorf("the tools %s have tasks of mcp-go's own, which cannot be called here: "+
			"add them with mcpgo.AddTaskTool in place of AddTaskTool and WithTaskSupport", strings.Join(found, ", ")))
	}
	var discovered struct {
		Capabilities map[string]json.RawMessage
	}
	if request(s, "server/discover", modernParams(), &discovered) && discovered.Capabilities["tasks"] != nil {
		faults = append(faults, errors.New("the server has mcp-go's own task capability: leave out WithTaskCapabilities, because mcpgo answers all requests about tasks"))
	}
	return errors.Join(faults...)
}

// request has a server handle a request, and decodes the result. It returns false if there is none. Filters and hooks
// of the program may panic, because this request has no session.
func request(s *server.MCPServer, method string, params map[string]any, result any) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	message, err := json.Marshal(map[string]any{"jsonrpc": mcp.JSONRPC_VERSION, "id": "mcptaskgen", "method": method, "params": params})
	if err != nil {
		return false
	}
	data, err := json.Marshal(s.HandleMessage(context.Background(), message))
	var reply struct {
		Result json.RawMessage `json:"result"`
	}
	return err == nil && json.Unmarshal(data, &reply) == nil && reply.Result != nil && json.Unmarshal(reply.Result, result) == nil
}
