package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// AddTaskTool adds an SDK tool that runs as a task. The handler stays as it is. AddTaskTool takes
// the arguments of mcp.AddTool and the policy of the task. As in the SDK, a missing schema is
// derived from In or Out.
//
// The handler's context ends with the task, not with the request. Its request has only the
// parameters: a handler that uses the session is not supported. If the handler panics, the task
// fails. If the tool is invalid, AddTaskTool returns an error and adds nothing.
func AddTaskTool[In, Out any](server *mcp.Server, tasks *taskserver.Server, tool *mcp.Tool, handler mcp.ToolHandlerFor[In, Out], policy mcptask.Policy) error {
	spec := mcptask.ToolSpec{Name: tool.Name, Title: tool.Title, Description: tool.Description, Policy: policy}
	input, err := schemaFor[In](tool.InputSchema)
	if err != nil {
		return fmt.Errorf("gosdk: tool %q: input schema: %w", tool.Name, err)
	}
	spec.InputSchema = input
	var none any
	if _, untyped := any(new(Out)).(*any); !untyped || tool.OutputSchema != nil {
		if spec.OutputSchema, err = schemaFor[Out](tool.OutputSchema); err != nil {
			return fmt.Errorf("gosdk: tool %q: output schema: %w", tool.Name, err)
		}
		none = *new(Out)
	}
	if a := tool.Annotations; a != nil {
		spec.Annotations = mcptask.Annotations{
			ReadOnly: mcptask.Hint(a.ReadOnlyHint), Idempotent: mcptask.Hint(a.IdempotentHint),
			Destructive: a.DestructiveHint, OpenWorld: a.OpenWorldHint,
		}
	}
	adopted := mcptask.NewTool(spec, func(ctx context.Context, _ *mcptask.Task, in In) (*mcptask.Result, error) {
		arguments, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		request := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: tool.Name, Arguments: arguments}}
		result, out, err := handler(ctx, request, in)
		return convertResult(result, out, none, err)
	})
	if err := tasks.Register(mcptask.Tools{
		Service: tool.Name, Impl: handler, Tools: []mcptask.Tool{adopted},
		Capabilities: mcptask.Declared(),
	}); err != nil {
		return err
	}
	attachMiddleware(server, tasks.Backend()).addTool(server, tasks.Backend(), spec)
	return nil
}

// schemaFor returns the given schema as JSON. If given is nil, it derives the schema of T.
func schemaFor[T any](given any) (string, error) {
	if given == nil {
		if _, untyped := any(new(T)).(*any); untyped {
			return `{"type":"object"}`, nil
		}
		derived, err := jsonschema.For[T](nil)
		if err != nil {
			return "", err
		}
		given = derived
	}
	data, err := json.Marshal(given)
	return string(data), err
}

// convertResult converts the result or the error of a handler to the result of a task, as the SDK would.
func convertResult(result *mcp.CallToolResult, out, none any, err error) (*mcptask.Result, error) {
	var wire *jsonrpc.Error
	switch {
	case errors.As(err, &wire):
		return nil, &mcptask.Error{Code: int(wire.Code), Message: wire.Message, Data: wire.Data}
	case err != nil:
		return nil, err
	}
	if result == nil {
		result = &mcp.CallToolResult{}
	}
	data, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	adopted := new(mcptask.Result)
	if err := json.Unmarshal(data, adopted); err != nil {
		return nil, err
	}
	if out == nil && none == nil {
		return adopted, nil
	}
	if adopted.Structured, err = json.Marshal(out); err != nil {
		return nil, err
	}
	if result.Content == nil {
		adopted.Content = []mcptask.Content{mcptask.TextContent(string(adopted.Structured))}
	}
	return adopted, nil
}
