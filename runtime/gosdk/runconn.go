package gosdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
)

// responses passes responses to the SDK session that waits for them. It has the reading half of an mcp.Connection, and is
// safe for concurrent use.
type responses struct {
	messages chan jsonrpc.Message
	closing  sync.Once
	closed   chan struct{}
}

func newResponses() responses {
	return responses{messages: make(chan jsonrpc.Message), closed: make(chan struct{})}
}

// receive passes a response to Read.
func (r *responses) receive(response jsonrpc.Message) {
	select {
	case r.messages <- response:
	case <-r.closed:
	}
}

// Read implements mcp.Connection.
func (r *responses) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case response := <-r.messages:
		return response, nil
	case <-r.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close implements mcp.Connection.
func (r *responses) Close() error {
	r.closing.Do(func() { close(r.closed) })
	return nil
}

// runConn is the transport of the session in which the handler of an adopted tool runs. It turns the session's messages
// into progress and questions of the task. It implements mcp.Transport and mcp.Connection.
type runConn struct {
	responses
	run  context.Context
	task *mcptask.Task // nil if the session has no handler
	tool *adoptedTool
}

// newRunConn returns the transport of a run, or of a session without a handler if task is nil.
func newRunConn(run context.Context, task *mcptask.Task, tool *adoptedTool) *runConn {
	return &runConn{responses: newResponses(), run: run, task: task, tool: tool}
}

// Connect implements mcp.Transport.
func (c *runConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection.
func (c *runConn) SessionID() string { return "" }

// Write implements mcp.Connection.
func (c *runConn) Write(ctx context.Context, message jsonrpc.Message) error {
	request, ok := message.(*jsonrpc.Request)
	switch {
	case !ok || c.task == nil:
		return errNotSent
	case request.IsCall():
		ctx, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(c.run, cancel)
		guard.Go(c.tool.tasks.Logger(), "a question of a handler", func() {
			defer cancel()
			defer stop()
			c.receive(c.answer(ctx, request))
		})
	case request.Method == "notifications/progress":
		var p mcp.ProgressNotificationParams
		if err := json.Unmarshal(request.Params, &p); err != nil {
			return err
		}
		c.task.Progress(ctx, p.Progress, p.Total, p.Message)
	case request.Method != "notifications/cancelled": // the context of a question ends too
		c.warn(request.Method)
	}
	return nil
}

// warn logs a warning about a message that is dropped.
func (c *runConn) warn(method string) {
	gateway.WarnOnce(c.tool.tasks, "a message of a handler is dropped, because a task cannot carry it: "+
		"use NotifyProgress, Elicit, CreateMessage or ListRoots, or the methods of the task that mcptask.FromContext returns",
		"tool", c.tool.name, "method", method)
}

// answer asks a request's question and returns the response.
func (c *runConn) answer(ctx context.Context, request *jsonrpc.Request) (response *jsonrpc.Response) {
	defer guard.Then(c.tool.tasks.Logger(), "a question of a handler", func() {
		response = &jsonrpc.Response{ID: request.ID, Error: toSDKError(errors.New("panic"))}
	})
	result, err := c.ask(ctx, request.Method, request.Params)
	if err == nil {
		data, failed := json.Marshal(result)
		if err = failed; err == nil {
			return &jsonrpc.Response{ID: request.ID, Result: data}
		}
	}
	answer := &jsonrpc.Error{Code: mcptask.CodeInternalError, Message: err.Error()}
	if wire := (*mcptask.Error)(nil); errors.As(err, &wire) {
		answer = &jsonrpc.Error{Code: int64(wire.Code), Message: wire.Message, Data: wire.Data}
	}
	return &jsonrpc.Response{ID: request.ID, Error: answer}
}

// ask asks the question of a request and returns the result for the SDK.
func (c *runConn) ask(ctx context.Context, method string, params json.RawMessage) (any, error) {
	switch method {
	case "ping":
		return struct{}{}, nil
	case spec.Elicit:
		return c.elicit(ctx, params)
	case spec.Sample:
		var request mcptask.SampleRequest
		decoder := json.NewDecoder(bytes.NewReader(params))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&request); err != nil {
			return nil, fmt.Errorf("a task cannot carry this request of %s: use only the members of mcptask.SampleRequest: %w", method, err)
		}
		return c.task.Sample(ctx, "sample", request)
	case spec.Roots:
		roots, err := c.task.Roots(ctx, "roots")
		return map[string]any{"roots": roots}, err
	}
	c.warn(method)
	return nil, mcptask.Errorf(mcptask.CodeMethodNotFound, "the handler of a task cannot send %s: "+
		"use Elicit, CreateMessage or ListRoots, or the methods of the task that mcptask.FromContext returns", method)
}

// elicit asks the person.
func (c *runConn) elicit(ctx context.Context, params json.RawMessage) (any, error) {
	var asked struct {
		Mode, Message, URL string
		RequestedSchema    json.RawMessage
	}
	if err := json.Unmarshal(params, &asked); err != nil {
		return nil, err
	}
	result := map[string]any{"action": "accept"}
	var err error
	if asked.Mode == "url" {
		err = c.task.AskURL(ctx, "elicit", asked.Message, asked.URL)
	} else {
		if len(asked.RequestedSchema) == 0 {
			asked.RequestedSchema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		result["content"], err = mcptask.Ask[json.RawMessage](ctx, c.task, mcptask.InputSpec{Schema: string(asked.RequestedSchema)}, "elicit", asked.Message)
	}
	switch {
	case errors.Is(err, mcptask.ErrDeclined):
		return map[string]any{"action": "decline"}, nil
	case errors.Is(err, mcptask.ErrDismissed):
		return map[string]any{"action": "cancel"}, nil
	}
	return result, err
}
