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
)

// AddTaskTool makes an SDK tool a task without rewriting its handler. It takes
// what mcp.AddTool takes, and the policy of the task; schemas that the tool
// does not have are derived from In and Out as the SDK derives them.
//
// The handler's context ends when the task does, and not with the request. Its
// request has the parameters and nothing else: a handler that uses the session
// is not supported. A panic becomes a failed task. An invalid tool is an error,
// and then nothing was added.
func AddTaskTool[In, Out any](server *mcp.Server, tasks *mcptask.Server, tool *mcp.Tool, handler mcp.ToolHandlerFor[In, Out], policy mcptask.Policy) error {
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
		return adoptedResult(result, out, none, err)
	})
	if err := tasks.Register(mcptask.Tools{
		Service: tool.Name, Impl: handler, Tools: []mcptask.Tool{adopted},
		Capabilities: mcptask.Declared(),
	}); err != nil {
		return err
	}
	of := attach(server, tasks)
	addTool(server, tasks, spec)
	of.has(spec)
	return nil
}

// schemaFor is the tool's own schema, or the one of a type.
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

// adoptedResult is what the SDK would have made of what a handler returned.
func adoptedResult(result *mcp.CallToolResult, out, none any, err error) (*mcptask.Result, error) {
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
