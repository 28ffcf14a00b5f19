package gosdk

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
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
			return asked[mcp.ElicitResult](ctx, c, "elicitation/create", req.Params, req.Params.Meta)
		}
	}
	if c.options.Sample != nil {
		capabilities.Sampling = &mcp.SamplingCapabilities{}
		options.CreateMessageHandler = func(ctx context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return asked[mcp.CreateMessageResult](ctx, c, "sampling/createMessage", req.Params, req.Params.Meta)
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
	q, err := mcptask.NewQuestion(relatedTask(meta), "", method, data)
	if err != nil {
		return nil, err
	}
	response, ok, err := c.Answer(ctx, q)
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

// relatedTask reads the related-task metadata of a request (C-50).
func relatedTask(meta mcp.Meta) string {
	related, _ := meta[mcptask.MetaRelatedTask].(map[string]any)
	id, _ := related["taskId"].(string)
	return id
}
