// Package dialect projects the canonical task to the wire form of each
// revision and back. A revision is one file beside its generated wire types.
package dialect

import (
	"context"
	"encoding/json"
	"errors"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Server is the receiver's side of a revision.
type Server interface {
	// Revision is the name of the revision.
	Revision() string
	// Negotiate decides how a tools/call of one of our tools is answered, or
	// refuses it. params is the whole params object; fallback says that fallback
	// tools serve a requestor that knows no tasks, or that the tool is one.
	Negotiate(tool mcptask.ToolSpec, fallback bool, params json.RawMessage) (mcptask.CallRequest, error)
	// Created is the answer to a tools/call that made a task.
	Created(r mcptask.Record, tool mcptask.ToolSpec) (json.RawMessage, error)
	// InputRequired is the answer to a tools/call whose questions come first.
	InputRequired(reply mcptask.CallReply) (json.RawMessage, error)
	// Method returns the handler of a task method, nil where the revision has
	// no such method.
	Method(name string) Method
	// Blocks says whether a method waits for a task's end.
	Blocks(method string) bool
	// Decorate adds to the result of initialize, server/discover or tools/list
	// what belongs to tasks, and to the result of tools/call what every result
	// of the revision has.
	Decorate(s *mcptask.Server, caller mcptask.Caller, method string, result json.RawMessage) (json.RawMessage, error)
	// Check refuses a request for a task method, before its task is looked up, by
	// the capabilities that its client declares.
	Check(capabilities json.RawMessage) error
	// CanAsk reads which requests a client answers from its capabilities.
	CanAsk(capabilities json.RawMessage) []string
}

// Method answers one task method. Errors are JSON-RPC errors.
type Method func(ctx context.Context, s *mcptask.Server, caller mcptask.Caller, params json.RawMessage) (json.RawMessage, error)

// Client is the requestor's side of a revision.
type Client interface {
	// Revision is the name of the revision.
	Revision() string
	// Call makes the params of a tools/call; support is what the server says of
	// the tool, "" where it says nothing; retry is nil the first time.
	Call(call mcptask.ToolCall, support mcptask.TaskSupport, retry *Retry) (params any, err error)
	// Started reads the answer to it. Where a Retry comes with it, the
	// snapshot's questions are to be answered in it, and the call made again.
	Started(result json.RawMessage) (mcptask.Snapshot, *Retry, error)
	// Task reads a task, and its outcome once it is done.
	Task(ctx context.Context, send Send, taskID string) (mcptask.Snapshot, error)
	// Cancel cancels a task.
	Cancel(ctx context.Context, send Send, taskID string) error
	// Respond answers a task's questions.
	Respond(ctx context.Context, send Send, taskID string, responses map[string]json.RawMessage) error
}

// Retry is what a call that was answered with questions is repeated with.
type Retry struct {
	Responses map[string]json.RawMessage
	// State goes back as it came.
	State string
}

// Send sends a request and returns its result; a *mcptask.Error is the peer's.
type Send func(ctx context.Context, method string, params any) (json.RawMessage, error)

// Servers lists the revisions that a server speaks without being told to,
// oldest first.
func Servers() []Server { return []Server{Server20251125{}, Server20260728{}} }

// object is a JSON object whose unknown members stay as they are.
type object = map[string]json.RawMessage

// decode reads params into v; what does not fit is the requestor's fault.
func decode(params json.RawMessage, v any) error {
	if len(params) == 0 {
		return mcptask.Errorf(mcptask.CodeInvalidParams, "the request has no params")
	}
	err := json.Unmarshal(params, v)
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &mismatch): // the gateway has refused what is not JSON
		return mcptask.Errorf(mcptask.CodeInvalidParams, "the params are not JSON")
	case mismatch.Field == "":
		return mcptask.Errorf(mcptask.CodeInvalidParams, "the params must be an object, not a JSON %s", mismatch.Value)
	}
	return mcptask.Errorf(mcptask.CodeInvalidParams, "params.%s must not be a JSON %s", mismatch.Field, mismatch.Value)
}

// taskID reads params.taskId, the only thing that names a task (C-63).
func taskID(params json.RawMessage) (string, error) {
	var p struct {
		TaskID *string `json:"taskId"`
	}
	if err := decode(params, &p); err != nil {
		return "", err
	}
	if p.TaskID == nil {
		return "", mcptask.Errorf(mcptask.CodeInvalidParams, "params.taskId is missing")
	}
	return *p.TaskID, nil
}

// idempotencyKey reads the key from params._meta.
func idempotencyKey(params json.RawMessage) (string, error) {
	var p struct {
		Meta struct {
			Key *string `json:"io.github.mcptaskgen/idempotency-key"`
		} `json:"_meta"`
	}
	if err := decode(params, &p); err != nil {
		return "", err
	}
	if p.Meta.Key == nil {
		return "", nil
	}
	const longest = 256
	if *p.Meta.Key == "" || len(*p.Meta.Key) > longest {
		return "", mcptask.Errorf(mcptask.CodeInvalidParams, "an idempotency key has 1 to %d bytes", longest)
	}
	return *p.Meta.Key, nil
}

// joinedCapabilities is what the server's services declare together, nil where
// they declare nothing.
func joinedCapabilities(s *mcptask.Server, revision string) (joined json.RawMessage, err error) {
	for _, own := range s.Capabilities(revision) {
		if joined, err = merge(joined, json.RawMessage(own)); err != nil {
			return nil, err
		}
	}
	return joined, nil
}

// declared joins our capabilities into those of a result.
func declared(result object, capabilities json.RawMessage) error {
	merged, err := merge(result["capabilities"], capabilities)
	if err != nil {
		return err
	}
	result["capabilities"] = merged
	return nil
}

// merge joins two JSON objects deeply; b wins.
func merge(a, b json.RawMessage) (json.RawMessage, error) {
	if len(a) == 0 {
		return b, nil
	}
	var into, from object
	if json.Unmarshal(a, &into) != nil || json.Unmarshal(b, &from) != nil || into == nil {
		return b, nil // not two objects: nothing to join
	}
	for key, value := range from {
		joined, err := merge(into[key], value)
		if err != nil {
			return nil, err
		}
		into[key] = joined
	}
	return json.Marshal(into)
}

// eachTool lets edit change every entry of a tools/list result that is ours.
func eachTool(s *mcptask.Server, result object, edit func(mcptask.ToolSpec, object) error) error {
	var tools []object
	if err := json.Unmarshal(result["tools"], &tools); err != nil {
		return err
	}
	for _, entry := range tools {
		var name string
		if json.Unmarshal(entry["name"], &name) != nil {
			continue
		}
		if spec, ok := s.Tool(name); ok {
			if err := edit(spec, entry); err != nil {
				return err
			}
		}
	}
	data, err := json.Marshal(tools)
	result["tools"] = data
	return err
}

// editObject decodes a result, lets edit change it and encodes it again.
func editObject(data json.RawMessage, edit func(object) error) (json.RawMessage, error) {
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	if err := edit(o); err != nil {
		return nil, err
	}
	return json.Marshal(o)
}

// asks lists the requests that a client's capabilities say it answers.
func asks(capabilities json.RawMessage) []string {
	var c struct {
		Elicitation *struct {
			Form *object `json:"form"`
			URL  *object `json:"url"`
		} `json:"elicitation"`
		Sampling *object `json:"sampling"`
		Roots    *object `json:"roots"`
	}
	if json.Unmarshal(capabilities, &c) != nil {
		return nil
	}
	var can []string
	if e := c.Elicitation; e != nil {
		if e.Form != nil || e.URL == nil { // an empty object is the older way to declare the form
			can = append(can, "elicitation/create")
		}
		if e.URL != nil {
			can = append(can, mcptask.CanAskURL)
		}
	}
	if c.Sampling != nil {
		can = append(can, "sampling/createMessage")
	}
	if c.Roots != nil {
		can = append(can, "roots/list")
	}
	return can
}
