package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// receiver answers the server's requests, and runs them as tasks when the server asks for that. Only revisions with a
// protocol.Receiver have such tasks: 2026-07-28 has none. A taskserver.Server of the connection keeps the tasks, with one
// tool for each kind of request. Like any task, they outlive a session. Their progress is not sent: the server polls
// (C-44, C-46).
type receiver struct {
	options   taskserver.Options
	principal string // the server's name: a connection has one server
	protocol  protocol.Receiver
	kinds     map[string]requestKind
	roots     []mcptask.Root
	// capabilities declare the tasks to the server. They are nil if no request becomes a task.
	capabilities json.RawMessage
	logger       *slog.Logger
	work         sync.WaitGroup // counts the work that startWork has begun

	mu     sync.Mutex
	tasks  *taskserver.Server // nil until a request needs it
	closed bool
}

// requestKind is a request that may become a task if the server asks for that.
type requestKind struct {
	schema string // the schema of the params that the answer needs
	// compiled compiles the schema once: most connections never need it.
	compiled func() (*validate.Schema, error)
	answer   answerFunc
}

// answerFunc returns the result of a request.
type answerFunc = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

func newRequestKind(schema string, answer answerFunc) requestKind {
	return requestKind{schema, sync.OnceValues(func() (*validate.Schema, error) { return validate.Compile(schema, false) }), answer}
}

// check checks the params of a request.
func (k requestKind) check(ctx context.Context, params json.RawMessage) error {
	schema, err := k.compiled()
	if err != nil {
		return err
	}
	return schema.Check(ctx, params)
}

// These schemas refuse params that the protocol does not allow.
const (
	sampleParams = `{"type":"object","required":["messages"],"properties":{"messages":{"type":"array"}}}`
	elicitParams = `{"type":"object","required":["message"],"properties":{"message":{"type":"string"},
	"mode":{"enum":["form","url"]},"url":{"type":"string"},"requestedSchema":{"type":"object"}},
	"if":{"required":["mode"],"properties":{"mode":{"const":"url"}}},
	"then":{"required":["url"],"properties":{"url":{"minLength":1},"requestedSchema":false}},"else":{"properties":{"url":{"maxLength":0}}}}`
)

// newReceiver returns a receiver of the requests that the options answer.
func newReceiver(c *conn) (*receiver, error) {
	r := &receiver{options: c.options.Tasks, principal: c.peer, protocol: findReceiver(c.chosen), kinds: map[string]requestKind{},
		roots: c.options.Roots, logger: c.options.Logger}
	var methods []string
	if !c.options.Answer.Empty() || c.options.OpenURL != nil {
		r.kinds[spec.Elicit] = newRequestKind(elicitParams, c.answerElicitation)
		methods = append(methods, spec.Elicit)
	}
	if c.options.Sample != nil {
		r.kinds[spec.Sample] = newRequestKind(sampleParams, c.answerRequest)
		methods = append(methods, spec.Sample)
	}
	if c.open != nil {
		return r, nil // the revision ignores the wish for a task
	}
	var err error
	r.capabilities, err = r.protocol.Receives(methods...)
	return r, err
}

// openServer returns the server that keeps the tasks. It creates the server at the first use,
// because most peers never ask for a task.
func (r *receiver) openServer() (*taskserver.Server, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, mcptask.ErrServerClosed
	case r.tasks != nil:
		return r.tasks, nil
	}
	service := mcptask.Tools{Service: "requests of " + r.principal, Impl: r}
	for method, k := range r.kinds {
		service.Tools = append(service.Tools, mcptask.NewRawTool(mcptask.ToolSpec{
			Name: toolName(method), InputSchema: k.schema,
			Policy: mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Millisecond}, // the least: createTask sets a TTL for every task
		}, k.bind(method)))
	}
	tasks, err := taskserver.New(r.options, service)
	if err != nil {
		return nil, err
	}
	r.tasks = tasks
	return tasks, nil
}

// toolName returns the name of the tool that stands for a method. It has no slash.
func toolName(method string) string { return strings.ReplaceAll(method, "/", ".") }

// bind returns the handler of the tool that stands for a method. An error of the request is the task's outcome (C-39).
// The end of the task's context is not.
func (k requestKind) bind(method string) func(context.Context, json.RawMessage) (json.RawMessage, error) {
	return func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		result, err := k.answer(ctx, method, params)
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return result, toWireError(err)
	}
}

// toWireError returns the error that the server gets for an error. It returns nil for nil.
func toWireError(err error) error {
	var wire *mcptask.Error
	if err == nil || errors.As(err, &wire) {
		return err
	}
	return mcptask.Errorf(mcptask.CodeInternalError, "internal error")
}

// close ends the tasks. All sessions must have ended.
func (r *receiver) close() error {
	r.mu.Lock()
	tasks := r.tasks
	r.closed = true
	r.mu.Unlock()
	r.work.Wait()
	if tasks == nil {
		return nil
	}
	return tasks.Close()
}

// startWork runs work in a goroutine. It returns false if the receiver is closed.
func (r *receiver) startWork(work func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.work.Go(guard.Func(r.logger, "work for the server", work))
	}
	return !r.closed
}
