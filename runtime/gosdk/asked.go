package gosdk

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// codeDeclined is the code of a request that the user refused. The specification has it in its example for sampling.
const codeDeclined = -1

// capabilities returns the capabilities for the requests that the client answers.
func (c *conn) capabilities() map[string]any {
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

// declaredCapabilities returns the capabilities of a client with tasks.
func (c *conn) declaredCapabilities() map[string]any {
	capabilities := c.capabilities()
	capabilities["extensions"] = map[string]any{spec.ExtensionTasks: struct{}{}}
	return capabilities
}

// answerRequest answers a request of the server with the connection's answerers.
func (c *conn) answerRequest(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	_, taskID := protocol.FindRelatedTask(decodeMeta(params))
	q, err := mcptask.NewQuestion(taskID, "", method, params)
	if err != nil {
		return nil, newInvalidParams("%v", err)
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
		return nil, mcptask.Errorf(codeDeclined, "%v", err)
	case err != nil:
		return nil, mcptask.Errorf(mcptask.CodeInternalError, "%v", err)
	}
	return response, nil
}

// checkSchema refuses a question with a schema that the protocol does not allow.
func (c *conn) checkSchema(q mcptask.Question) error {
	err := form.Check(q.Schema)
	if err != nil {
		c.options.Logger.Warn("a question was refused: its schema is not allowed", "task", q.TaskID, "key", q.Key, "error", err)
	}
	return err
}

// answerElicitation answers an elicitation. It checks an accepted answer against the question's schema and fills in
// defaults.
func (c *conn) answerElicitation(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	response, err := c.answerRequest(ctx, method, params)
	requested := wire.NewObject(params).Get("requestedSchema")
	answer := wire.NewObject(response)
	content := answer.Get("content")
	if action, _ := answer.Text("action"); err != nil || requested == nil || action != "accept" || content == nil {
		return response, err
	}
	schema, err := validate.Compile(string(requested), true)
	if err != nil {
		return nil, newInvalidParams("the requested schema cannot be used: %v", err)
	}
	if content, err = schema.CheckAndFill(ctx, schema.PlainAnswer(ctx, content)); err != nil {
		return nil, newInvalidParams("%v: %v", mcptask.ErrInvalidAnswer, err)
	}
	return answer.Edited(wire.Set(content, "content"))
}

// encodeRoots returns the result of roots/list.
func encodeRoots(roots []mcptask.Root) json.RawMessage {
	data, err := json.Marshal(map[string]any{"roots": roots})
	if err != nil { // cannot happen: they are strings
		return nil
	}
	return data
}

// newInvalidParams returns the error for a question that cannot be answered.
func newInvalidParams(format string, args ...any) error {
	return mcptask.Errorf(mcptask.CodeInvalidParams, format, args...)
}

// decodeMeta returns the _meta of params.
func decodeMeta(params json.RawMessage) map[string]any {
	var p struct {
		Meta map[string]any `json:"_meta"`
	}
	_ = json.Unmarshal(params, &p) // malformed params have no _meta
	return p.Meta
}
