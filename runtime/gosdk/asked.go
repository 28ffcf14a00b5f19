package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// These are the server's requests that the options answer.
const (
	methodElicit = "elicitation/create"
	methodSample = "sampling/createMessage"
)

// codeDeclined says that the user refused a request. It is that of the specification's example for sampling.
const codeDeclined = -1

// declareAnswers declares what the client answers. In 2025-11-25 a question is a request, and the
// SDK passes it to these handlers.
func (c *conn) declareAnswers(capabilities *mcp.ClientCapabilities, options *mcp.ClientOptions) {
	if form, url := !c.options.Answer.Empty(), c.options.OpenURL != nil; form || url {
		capabilities.Elicitation = &mcp.ElicitationCapabilities{}
		if form {
			capabilities.Elicitation.Form = &mcp.FormElicitationCapabilities{}
		}
		if url {
			capabilities.Elicitation.URL = &mcp.URLElicitationCapabilities{}
		}
		options.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return answerRequest[mcp.ElicitResult](ctx, c, methodElicit, req.Params, req.Params.Meta)
		}
	}
	if c.options.Sample != nil {
		capabilities.Sampling = &mcp.SamplingCapabilities{}
		options.CreateMessageHandler = func(ctx context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return answerRequest[mcp.CreateMessageResult](ctx, c, methodSample, req.Params, req.Params.Meta)
		}
	}
	if c.options.Roots != nil {
		capabilities.RootsV2 = &mcp.RootCapabilities{}
	}
}

// answerCapabilities returns the capabilities that a client of 2026-07-28 declares for a call that
// must not become a task.
func (c *conn) answerCapabilities() map[string]any {
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

// answerRequest answers a request of the server with the connection's answerers.
func answerRequest[R any](ctx context.Context, c *conn, method string, params any, meta mcp.Meta) (*R, error) {
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
		return nil, newInvalidParams("MCP does not allow the requestedSchema: %v", err)
	}
	response, ok, err := c.answerQuestion(ctx, q)
	if err == nil && !ok {
		response, err = q.Unanswered()
	}
	switch {
	case errors.Is(err, mcptask.ErrDeclined), errors.Is(err, mcptask.ErrDismissed):
		return nil, &jsonrpc.Error{Code: codeDeclined, Message: err.Error()}
	case err != nil:
		return nil, &jsonrpc.Error{Code: mcptask.CodeInternalError, Message: err.Error()}
	}
	result := new(R)
	if err := json.Unmarshal(response, result); err != nil {
		return nil, fmt.Errorf("gosdk: the answer to %s does not fit the protocol: %w", method, err)
	}
	return result, nil
}

// checkSchema refuses a question with a schema that the protocol does not allow. It must run before
// anything compiles the schema: compiling a schema that refers to itself crashes the process.
func (c *conn) checkSchema(q mcptask.Question) error {
	err := form.Check(q.Schema)
	if err != nil {
		c.options.Logger.Warn("a question was refused: its schema is not allowed", "task", q.TaskID, "key", q.Key, "error", err)
	}
	return err
}

// answerSampling answers a sampling request that runs as a task.
func (c *conn) answerSampling(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	result, err := answerRequest[mcp.CreateMessageResult](ctx, c, methodSample, params, decodeMeta(params))
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// answerElicitation answers an elicitation that runs as a task. It checks an accepted answer
// against the question's schema and fills in defaults. The SDK does the same for an elicitation
// without a task, so both have the same result (C-38).
func (c *conn) answerElicitation(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Schema *jsonschema.Schema `json:"requestedSchema"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, newInvalidParams("the requestedSchema is malformed: %v", err)
	}
	result, err := answerRequest[mcp.ElicitResult](ctx, c, methodElicit, params, decodeMeta(params))
	if err != nil {
		return nil, err
	}
	if p.Schema != nil && result.Action == "accept" && result.Content != nil {
		schema, err := p.Schema.Resolve(nil)
		if err != nil {
			return nil, newInvalidParams("the requested schema cannot be used: %v", err)
		}
		if err := schema.Validate(result.Content); err != nil {
			return nil, newInvalidParams("the answer does not fit the requested schema: %v", err)
		}
		if err := schema.ApplyDefaults(&result.Content); err != nil {
			return nil, newInvalidParams("the defaults of the requested schema cannot be used: %v", err)
		}
	}
	return json.Marshal(result)
}

// newInvalidParams returns the error for a question that cannot be answered.
func newInvalidParams(format string, args ...any) error {
	return &jsonrpc.Error{Code: mcptask.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// decodeMeta returns the _meta of params.
func decodeMeta(params json.RawMessage) mcp.Meta {
	var p struct {
		Meta mcp.Meta `json:"_meta"`
	}
	_ = json.Unmarshal(params, &p) // malformed params have no _meta
	return p.Meta
}
