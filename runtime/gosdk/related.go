package gosdk

import (
	"context"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// copyRelatedTask is middleware for the requests of a task. The answer names the task as the
// request does (A-38, C-61).
func copyRelatedTask(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		params := req.GetParams()
		// A request without params has a nil pointer there.
		if v := reflect.ValueOf(params); err != nil || result == nil || !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return result, err
		}
		named := params.GetMeta()
		key, taskID := protocol.FindRelatedTask(named)
		if taskID == "" {
			return result, nil
		}
		meta := result.GetMeta()
		if meta == nil {
			meta = map[string]any{}
		}
		meta[key] = named[key]
		result.SetMeta(meta)
		return result, nil
	}
}
