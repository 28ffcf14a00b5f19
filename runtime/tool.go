package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/cause"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"
)

// ToolSpec describes a tool to clients and determines how it runs.
type ToolSpec struct {
	Name, Title, Description string
	// Was are former names of the tool. Calls and stored tasks under one of them are the tool's. No list has them.
	Was []string
	// InputSchema is a JSON Schema 2020-12 with type object. NoArguments is that of a tool
	// without arguments. The handler of NewTool gets its defaults for the properties that a call
	// leaves out.
	InputSchema string
	// OutputSchema describes the structured content, or is "" if the tool returns text
	// or content of its own.
	OutputSchema string
	Annotations  Annotations
	Policy       Policy
	// Questions are asked before the task exists, in this order.
	Questions []InputSpec
	// Entry is the tool as tools/list describes it, a JSON object. If it is set, the name, the title,
	// the description, the schemas, the hints and Policy.Task come from it and are not set here. The
	// server lists the entry as it is, with members that have no field, such as icons. The member
	// execution is only in the revisions that have it.
	Entry string
}

// NoArguments is the input schema of a tool that has no arguments.
const NoArguments = `{"type":"object","properties":{},"additionalProperties":false}`

// InputSpec describes a question: a type under //mcptask:input.
type InputSpec struct {
	// Name is the type's name.
	Name string
	// Message is the question's default text.
	Message string
	// Schema is the JSON Schema of an accepted answer.
	Schema string
}

// ErrorSpec describes an error that tools return: a type under //mcptask:error.
type ErrorSpec struct {
	// Code is the code by which clients know the error.
	Code        string
	Description string
	// Schema is the JSON Schema of the error's fields. It may be empty.
	Schema string
}

// Tool is a ToolSpec with its handler. Make one with NewTool.
type Tool struct {
	Spec ToolSpec
	// Bind decodes arguments for the handler. Its error is for values that the schema does not forbid, such as a time
	// that does not exist.
	Bind func(arguments json.RawMessage) (BoundCall, error)
	// IsBare reports whether the structured content of the handler's result is the whole result; see [NewRawTool].
	IsBare bool
	// Fault is the error in the Entry of the Spec, or nil.
	Fault error
}

// BoundCall calls a handler with the arguments that it was bound to. It may be called once, because the handler may
// change them.
type BoundCall func(ctx context.Context, task *Task) (*Result, error)

// NewTool binds a typed handler to its spec. Out is a struct for structured content,
// a string for text, *Result for content of the handler's own, or struct{} for no
// output. Nothing else is supported.
func NewTool[In, Out any](spec ToolSpec, handler func(context.Context, *Task, In) (Out, error)) Tool {
	spec, fault := spec.readEntry()
	return Tool{Spec: spec, Fault: fault, Bind: func(arguments json.RawMessage) (BoundCall, error) {
		in, err := value.Decode[In](arguments)
		return func(ctx context.Context, task *Task) (*Result, error) {
			out, err := handler(ctx, task, in)
			if err != nil {
				return nil, err
			}
			if host, ok := task.host.(interface{ Returned() error }); ok {
				if err := host.Returned(); err != nil {
					return nil, err
				}
			}
			return encodeOutput(out)
		}, err
	}}
}

// readEntry sets the fields that come from the spec's Entry.
func (s ToolSpec) readEntry() (ToolSpec, error) {
	if s.Entry == "" {
		return s, nil
	}
	if s.Name+s.Title+s.Description+s.InputSchema+s.OutputSchema != "" || s.Annotations != (Annotations{}) {
		return s, errors.New("its spec has an Entry and other fields for what the Entry says")
	}
	var entry struct {
		Name, Title, Description  string
		InputSchema, OutputSchema json.RawMessage
		Annotations               struct{ ReadOnlyHint, DestructiveHint, IdempotentHint, OpenWorldHint *bool }
		Execution                 struct{ TaskSupport TaskSupport }
	}
	if err := json.Unmarshal([]byte(s.Entry), &entry); err != nil {
		return s, fmt.Errorf("its Entry is not that of a tool: %w", err)
	}
	s.Name, s.Title, s.Description = entry.Name, entry.Title, entry.Description
	s.InputSchema, s.OutputSchema = string(entry.InputSchema), string(entry.OutputSchema)
	hints := entry.Annotations
	s.Annotations = Annotations{hints.ReadOnlyHint, hints.DestructiveHint, hints.IdempotentHint, hints.OpenWorldHint}
	if stated := entry.Execution.TaskSupport; stated != "" {
		if s.Policy.Task != "" && s.Policy.Task != stated {
			return s, fmt.Errorf("its Policy has the task support %s and its Entry %s", s.Policy.Task, stated)
		}
		s.Policy.Task = stated
	}
	return s, nil
}

// NewRawTool binds the handler of a request other than tools/call that becomes a task. The handler's JSON object is the
// result as it is. There is no isError, so the handler returns its errors as *Error.
func NewRawTool(spec ToolSpec, handler func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)) Tool {
	// The result is exactly that of the plain request (C-38).
	return Tool{Spec: spec, IsBare: true, Bind: func(params json.RawMessage) (BoundCall, error) {
		return func(ctx context.Context, _ *Task) (*Result, error) {
			result, err := handler(ctx, params)
			return &Result{Structured: result}, err
		}, nil
	}}
}

// Tools is one service bound to its implementation. A generated <Service>Tools
// returns it, and taskserver.New takes it. Without the generator, make each tool with [NewTool].
type Tools struct {
	// Service is the name of the interface.
	Service string
	// Impl is the implementation. taskserver.New refuses nil. Any other value will do if the handlers are not its methods.
	Impl any
	// Fallback determines how clients without tasks are served.
	Fallback Fallback
	// Prefix starts the names of the fallback tools, such as "ci_" for ci_task_status.
	Prefix string
	// Asks adds a fallback tool that answers the questions of handlers. Set it if a handler calls
	// Ask. Generated code sets it if the package declares inputs, or a tool of the service is a workflow.
	Asks bool
	// Capabilities are those that the gateway declares, by revision. Set them to Declared() if you write a Tools by
	// hand: without them, clients of 2025-11-25 call no tool as a task.
	Capabilities Capabilities
	// Errors describes the typed errors of the package. A handler may return others too.
	Errors []ErrorSpec
	Tools  []Tool
	// Fault is the error of [Tools.With], or nil. taskserver.New returns it.
	Fault error
}

// With returns a copy of the service in which change has changed the policy of a tool, for example to values from flags.
// If the service has no such tool, or the policy is then invalid, taskserver.New returns an error. tool is the name that
// clients see, with the service's prefix.
func (t Tools) With(tool string, change func(*Policy)) Tools {
	t.Tools = slices.Clone(t.Tools)
	names := make([]string, len(t.Tools))
	for i := range t.Tools {
		if names[i] = t.Tools[i].Spec.Name; names[i] != tool {
			continue
		}
		spec := &t.Tools[i].Spec
		change(&spec.Policy)
		if spec.Entry != "" { // it may name another task support
			_, fault := ToolSpec{Entry: spec.Entry, Policy: spec.Policy}.readEntry()
			t.Tools[i].Fault = errors.Join(t.Tools[i].Fault, fault)
		}
		return t
	}
	t.Fault = errors.Join(t.Fault, fmt.Errorf("With(%q): there is no such tool, only %q", tool, names))
	return t
}

// Capabilities maps a revision to the JSON object that is merged into the
// server's capabilities.
type Capabilities map[string]string

// encodeOutput makes a result from a handler's output.
func encodeOutput[Out any](out Out) (*Result, error) {
	switch out := any(out).(type) {
	case *Result:
		if out == nil {
			return nil, cause.ErrNoResult
		}
		result := *out // the handler may keep and share its own
		if result.Content == nil {
			result.Content = []Content{}
		}
		return &result, nil
	case string:
		return &Result{Content: []Content{TextContent(out)}}, nil
	case struct{}:
		return &Result{Content: []Content{}}, nil
	}
	structured, err := value.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cause.ErrNotEncoded, err)
	}
	// The text repeats the structured content for clients that read only text.
	return &Result{Content: []Content{TextContent(string(structured))}, Structured: structured}, nil
}
