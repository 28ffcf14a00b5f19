package gosdk

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/form"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// The requests of a server's that the options answer.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
)

// declare tells the server what the client answers. In 2025-11-25 questions
// come as requests of their own, which the SDK hands to these handlers.
func (c *conn) declare(capabilities *mcp.ClientCapabilities, options *mcp.ClientOptions) {
	if form, url := !c.options.Answer.Empty(), c.options.OpenURL != nil; form || url {
		capabilities.Elicitation = &mcp.ElicitationCapabilities{}
		if form {
			capabilities.Elicitation.Form = &mcp.FormElicitationCapabilities{}
		}
		if url {
			capabilities.Elicitation.URL = &mcp.URLElicitationCapabilities{}
		}
		options.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return asked[mcp.ElicitResult](ctx, c, methodElicit, req.Params, req.Params.Meta)
		}
	}
	if c.options.Sample != nil {
		capabilities.Sampling = &mcp.SamplingCapabilities{}
		options.CreateMessageHandler = func(ctx context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return asked[mcp.CreateMessageResult](ctx, c, methodSample, req.Params, req.Params.Meta)
		}
	}
	if c.options.Roots != nil {
		capabilities.RootsV2 = &mcp.RootCapabilities{}
	}
}

// plainCapabilities is what a client of 2026-07-28 declares for a call that it
// does not want to become a task.
func (c *conn) plainCapabilities() map[string]any {
	capabilities, elicitation := map[string]any{}, map[string]any{}
	if !c.options.Answer.Empty() {
		elicitation["form"] = struct{}{}
	}
	if c.options.OpenURL != nil {
		elicitation["url"] = struct{}{}
	}
	if len(elicitation) > 0 {
		capabilities["elicitation"] = elicitation
	}
	if c.options.Sample != nil {
		capabilities["sampling"] = struct{}{}
	}
	if c.options.Roots != nil {
		capabilities["roots"] = struct{}{}
	}
	return capabilities
}

// asked answers a request of the server's by the connection's answerers.
func asked[R any](ctx context.Context, c *conn, method string, params any, meta mcp.Meta) (*R, error) {
	data, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	_, taskID := protocol.FindRelatedTask(meta)
	q, err := mcptask.NewQuestion(taskID, "", method, data)
	if err != nil {
		return nil, err
	}
	if err := c.checkSchema(q); err != nil {
		return nil, unfit("the requestedSchema is not one that MCP allows: %v", err)
	}
	response, ok, err := c.answer(ctx, q)
	if err == nil && !ok {
		response, err = q.Unanswered()
	}
	if err != nil {
		return nil, &jsonrpc.Error{Code: mcptask.CodeInternalError, Message: err.Error()}
	}
	result := new(R)
	if err := json.Unmarshal(response, result); err != nil {
		return nil, fmt.Errorf("gosdk: the answer to %s does not fit: %w", method, err)
	}
	return result, nil
}

// checkSchema refuses a question whose schema is not what the protocol allows. It
// has to come before anything compiles the schema: one that refers to itself ends
// the process.
func (c *conn) checkSchema(q mcptask.Question) error {
	err := form.Check(q.Schema)
	if err != nil {
		c.options.Logger.Warn("a question was refused: its schema is not allowed", "task", q.TaskID, "key", q.Key, "error", err)
	}
	return err
}

// sampled answers a request to a model that runs as a task.
func (c *conn) sampled(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	result, err := asked[mcp.CreateMessageResult](ctx, c, methodSample, params, metaOf(params))
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// elicited answers a question that runs as a task. It holds an accepted answer
// against the question's schema and fills in defaults, as the SDK does where the
// question is no task: the two have the same result (C-38).
func (c *conn) elicited(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Schema *jsonschema.Schema `json:"requestedSchema"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, unfit("the requested schema is none: %v", err)
	}
	result, err := asked[mcp.ElicitResult](ctx, c, methodElicit, params, metaOf(params))
	if err != nil {
		return nil, err
	}
	if p.Schema != nil && result.Action == "accept" && result.Content != nil {
		schema, err := p.Schema.Resolve(nil)
		if err != nil {
			return nil, unfit("the requested schema cannot be used: %v", err)
		}
		if err := schema.Validate(result.Content); err != nil {
			return nil, unfit("the answer does not fit the requested schema: %v", err)
		}
		if err := schema.ApplyDefaults(&result.Content); err != nil {
			return nil, unfit("the defaults of the requested schema cannot be used: %v", err)
		}
	}
	return json.Marshal(result)
}

// unfit is the error for a question that has no good answer.
func unfit(format string, args ...any) error {
	return &jsonrpc.Error{Code: mcptask.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// metaOf reads the _meta of params.
func metaOf(params json.RawMessage) mcp.Meta {
	var p struct {
		Meta mcp.Meta `json:"_meta"`
	}
	_ = json.Unmarshal(params, &p) // none where it does not fit
	return p.Meta
}
