package mcptask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
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
}

// NewTool binds a typed handler to its spec. Out is a struct (structured
// content), a string (text), *Result (content of one's own) or struct{}
// (nothing to say).
func NewTool[In, Out any](spec ToolSpec, handler func(context.Context, *Task, In) (Out, error)) Tool {
	return Tool{spec: spec, handle: func(ctx context.Context, task *Task, arguments json.RawMessage) (*Result, error) {
		var in In
		if err := json.Unmarshal(arguments, &in); err != nil {
			return ErrorResult("invalid arguments: " + decodeMessage(err)), nil
		}
		out, err := handler(ctx, task, in)
		if err != nil {
			return nil, err
		}
		return encodeOutput(out)
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

// encodeOutput makes the result of what a handler returned.
func encodeOutput(out any) (*Result, error) {
	switch out := out.(type) {
	case *Result:
		if out == nil {
			return nil, errors.New("the handler returned neither a result nor an error")
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
	structured, err := marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	// The text repeats the structured content for clients that read only text.
	return &Result{Content: []Content{TextContent(string(structured))}, Structured: structured}, nil
}

// marshal is json.Marshal without HTML escaping: < and > reach people as such.
func marshal(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// decodeMessage says what did not fit, without Go's names for it.
func decodeMessage(err error) string {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && mismatch.Field != "" {
		return fmt.Sprintf("%s must not be a JSON %s", mismatch.Field, mismatch.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// registered is a tool as the server keeps it: checked and compiled.
type registered struct {
	Tool
	service *Tools
	input   *validator
	output  *validator // nil without an output schema
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// register checks a tool, compiles its schemas and returns all its faults.
func register(service *Tools, t Tool) (r *registered, faults []error) {
	if t.handle == nil {
		faults = append(faults, errors.New("it has no handler: make it with NewTool"))
	}
	if !toolName.MatchString(t.spec.Name) {
		faults = append(faults, errors.New("its name is not 1 to 128 letters, digits, underscores, hyphens or dots"))
	}
	r = &registered{Tool: t, service: service}
	var err error
	if r.spec.Policy, err = t.spec.Policy.normalized(); err != nil {
		faults = append(faults, err)
	}
	if r.input, err = compile(t.spec.InputSchema, false); err != nil {
		faults = append(faults, fmt.Errorf("input schema: %w", err))
	}
	if t.spec.OutputSchema != "" {
		if r.output, err = compile(t.spec.OutputSchema, false); err != nil {
			faults = append(faults, fmt.Errorf("output schema: %w", err))
		}
	}
	return r, faults
}
