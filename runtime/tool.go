package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/plain"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
)

// ToolSpec is what a client sees of a tool, and how it runs.
type ToolSpec struct {
	Name, Title, Description string
	// InputSchema is a JSON Schema 2020-12 with type object.
	InputSchema string
	// OutputSchema describes the structured content; "" is a tool whose output
	// is text or content of its own.
	OutputSchema string
	Annotations  Annotations
	Policy       Policy
	// Questions are asked before the task exists, in this order.
	Questions []InputSpec
}

// InputSpec describes a question: a type under //mcptask:input.
type InputSpec struct {
	// Name is the type's name.
	Name string
	// Message is the question's default text.
	Message string
	// Schema is the JSON Schema of an accepted answer.
	Schema string
}

// Tool is a ToolSpec with its handler. Make one with NewTool.
type Tool struct {
	spec   ToolSpec
	handle func(ctx context.Context, task *Task, arguments json.RawMessage) (*Result, error)
	raw    bool // see NewRawTool
}

// NewTool binds a typed handler to its spec. Out is a struct (structured
// content), a string (text), *Result (content of one's own) or struct{}
// (nothing to say).
func NewTool[In, Out any](spec ToolSpec, handler func(context.Context, *Task, In) (Out, error)) Tool {
	return Tool{spec: spec, handle: func(ctx context.Context, task *Task, arguments json.RawMessage) (*Result, error) {
		var in In
		if err := json.Unmarshal(arguments, &in); err != nil {
			return ErrorResult("invalid arguments: " + plain.Mismatch(err)), nil
		}
		out, err := handler(ctx, task, in)
		if err != nil {
			return nil, err
		}
		return encodeOutput(out)
	}}
}

// NewRawTool binds what is no tool but another request that becomes a task: the
// handler's JSON object is the result as it stands (C-38). isError has no
// meaning there, so the handler returns its errors as *Error.
func NewRawTool(spec ToolSpec, handler func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)) Tool {
	return Tool{spec: spec, raw: true, handle: func(ctx context.Context, _ *Task, params json.RawMessage) (*Result, error) {
		result, err := handler(ctx, params)
		return &Result{Structured: result}, err
	}}
}

// Tools is one service bound to its implementation: what a generated
// <Service>Tools returns and NewServer takes.
type Tools struct {
	// Service is the name of the interface.
	Service string
	// Impl is the implementation; nil is refused by NewServer.
	Impl any
	// Fallback says how clients without tasks are served.
	Fallback Fallback
	// Prefix stands before the names of the fallback tools.
	Prefix string
	// Asks says that handlers ask questions: there is a fallback tool to answer.
	Asks bool
	// Capabilities is what the gateway declares, by revision.
	Capabilities Capabilities
	Tools        []Tool
}

// Capabilities maps a revision to the JSON object that is merged into the
// server's capabilities.
type Capabilities map[string]string

var errNoResult = errors.New("the handler returned neither a result nor an error")

// encodeOutput makes the result of what a handler returned.
func encodeOutput[Out any](out Out) (*Result, error) {
	switch out := any(out).(type) {
	case *Result:
		if out == nil {
			return nil, errNoResult
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
	structured, err := plain.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	// The text repeats the structured content for clients that read only text.
	return &Result{Content: []Content{TextContent(string(structured))}, Structured: structured}, nil
}

// registered is a tool as the server keeps it: checked and compiled.
type registeredTool struct {
	Tool
	service *Tools
	input   *validate.Schema
	output  *validate.Schema // nil without an output schema
}

var toolNamePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// register checks a tool, compiles its schemas and returns all its faults.
func compileTool(service *Tools, t Tool) (r *registeredTool, faults []error) {
	if t.handle == nil {
		faults = append(faults, errors.New("it has no handler: make it with NewTool"))
	}
	if !toolNamePattern.MatchString(t.spec.Name) {
		faults = append(faults, errors.New("its name is not 1 to 128 letters, digits, underscores, hyphens or dots"))
	}
	r = &registeredTool{Tool: t, service: service}
	var err error
	if r.spec.Policy, err = t.spec.Policy.normalize(); err != nil {
		faults = append(faults, err)
	}
	if r.input, err = validate.Compile(t.spec.InputSchema, false); err != nil {
		faults = append(faults, fmt.Errorf("input schema: %w", err))
	}
	if t.spec.OutputSchema != "" {
		if r.output, err = validate.Compile(t.spec.OutputSchema, false); err != nil {
			faults = append(faults, fmt.Errorf("output schema: %w", err))
		}
	}
	return r, faults
}
