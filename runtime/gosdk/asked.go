package gosdk

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
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

// checkSchema refuses a question with a schema that the protocol does not allow. It must run before
// anything compiles the schema: compiling a schema that refers to itself crashes the process.
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
	var p struct {
		Schema *jsonschema.Schema `json:"requestedSchema"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, newInvalidParams("the requestedSchema is malformed: %v", err)
	}
	response, err := c.answerRequest(ctx, method, params)
	if err != nil || p.Schema == nil {
		return response, err
	}
	var answer struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content"`
	}
	if err := json.Unmarshal(response, &answer); err != nil {
		return nil, err
	}
	if answer.Action != "accept" || answer.Content == nil {
		return response, nil
	}
	schema, err := p.Schema.Resolve(nil)
	if err != nil {
		return nil, newInvalidParams("the requested schema cannot be used: %v", err)
	}
	if err := schema.Validate(answer.Content); err != nil {
		return nil, newInvalidParams("the answer does not fit the requested schema: %v", err)
	}
	if err := schema.ApplyDefaults(&answer.Content); err != nil {
		return nil, newInvalidParams("the defaults of the requested schema cannot be used: %v", err)
	}
	return json.Marshal(answer)
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
