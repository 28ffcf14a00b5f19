package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

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

// modernParams are the params of a request of 2026-07-28.
func modernParams() map[string]any {
	return map[string]any{"_meta": map[string]any{mcp.MetaKeyProtocolVersion: mcp.ProtocolVersion20260728, mcp.MetaKeyClientCapabilities: map[string]any{}}}
}
