// Package protocol projects the canonical task to the wire form of each
// revision and back. A revision is one file beside its generated wire types.
package protocol

import (
	"context"
	"encoding/json"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Server is the receiver's side of a revision.
type Server interface {
	// Revision is the name of the revision.
	Revision() string
	// Protocol is the protocol version that its requests name, or that its
	// sessions negotiate.
	Protocol() string
	// Negotiate decides how a tools/call of one of our tools is answered, or
	// refuses it. params is the whole params object; fallback says that fallback
	// tools serve a requestor that knows no tasks, or that the tool is one.
	Negotiate(tool mcptask.ToolSpec, fallback bool, params Params) (mcptask.CallRequest, error)
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

// Teller is a Server of a revision with sessions, in which the server sends of
// its own accord.
type Teller interface {
	Server
	// TaskID is the stored ID of the task that the params of a task method name, ""
	// where they name none.
	TaskID(s *mcptask.Server, caller mcptask.Caller, params Params) string
	// Show is the answer to a tasks/get with these params, for the task that they
	// name and that has been read.
	Show(ctx context.Context, s *mcptask.Server, caller mcptask.Caller, params Params, r mcptask.Record) (json.RawMessage, error)
	// Question makes the params of a task's question, with the task's metadata. A
	// ttl of more than 0 asks for a task at the client, to be kept for so long.
	Question(r mcptask.Record, in mcptask.Input, ttl time.Duration) (json.RawMessage, error)
	// Status makes the notification of a task's new state; method is "" where the
	// revision has none.
	Status(r mcptask.Record) (method string, params json.RawMessage, err error)
	// Related is the _meta of what belongs to a task, such as its progress; nil is
	// none.
	Related(r mcptask.Record) map[string]any
	// Requestor is the server as the requestor of tasks at a client with these
	// capabilities.
	Requestor(capabilities json.RawMessage) Requestor
}

// Requestor is the server as the requestor of tasks at one client.
type Requestor interface {
	// Augments says whether the client takes such a request as a task.
	Augments(method string) bool
	// Cancels says whether the client takes Cancel.
	Cancels() bool
	// ResultWaits reports whether the client answers Result when its task has ended. If not, it
	// has a result only then.
	ResultWaits() bool
	// Started reads the task that the client has made of a question; ok is false
	// for the question's own answer, which it may give at once.
	Started(result json.RawMessage) (s mcptask.Snapshot, ok bool, err error)
	// Get, Result and Cancel ask for a client's task, wait for its answer, and end it.
	Get(taskID string) (method string, params any)
	Result(taskID string) (method string, params any)
	Cancel(taskID string) (method string, params any)
	// Task reads the answer to Get, Answer the one to Result.
	Task(result json.RawMessage) (mcptask.Snapshot, error)
	Answer(result json.RawMessage) (json.RawMessage, error)
}

// Method answers one task method. Errors are JSON-RPC errors.
type Method func(ctx context.Context, s *mcptask.Server, caller mcptask.Caller, params Params) (json.RawMessage, error)

// Client is the requestor's side of a revision.
type Client interface {
	// Revision is the name of the revision.
	Revision() string
	// Protocol is the protocol version that it connects with.
	Protocol() string
	// Takes says whether a server with these capabilities, of its answer to
	// initialize, takes calls as tasks.
	Takes(capabilities json.RawMessage) bool
	// Support reads what an entry of tools/list says of a tool; tasks says whether
	// the server has declared that it takes calls as tasks.
	Support(tool json.RawMessage, tasks bool) mcptask.TaskSupport
	// Call makes the params of a tools/call; support is what the server says of
	// the tool, "" where it says nothing; retry is nil the first time.
	Call(call mcptask.ToolCall, support mcptask.TaskSupport, retry *Retry) (params any, err error)
	// Started reads the answer to it. Where a Retry comes with it, the
	// snapshot's questions are to be answered in it, and the call made again.
	Started(result json.RawMessage) (mcptask.Snapshot, *Retry, error)
	// ResultKind refuses a result that the method cannot have.
	ResultKind(method string, result json.RawMessage) error
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

// Receiver is a Teller of a revision in which clients run requests of the server
// as tasks, too.
type Receiver interface {
	Teller
	// Asks says whether a request with these params is to become a task.
	Asks(params Params) bool
	// Receives are the capabilities of a client that runs requests by these methods
	// as tasks, nil where none of them can be one.
	Receives(methods ...string) (capabilities json.RawMessage, err error)
	// Declare adds capabilities to the params of an initialize that asks for the
	// revision's protocol; any other stays as it is.
	Declare(params, capabilities json.RawMessage) (json.RawMessage, error)
}

// Waiter is a Client of a revision in which a task's questions may come on the
// stream of a request that waits for its end (C-51).
type Waiter interface {
	// Wait is that request.
	Wait(taskID string) (method string, params any)
}

// Servers lists the released revisions that a server can speak, oldest first.
func Servers() []Server {
	return []Server{Server20251125{}, Server20260728{}}
}

// Clients lists the released revisions that a client can speak, in the order in which it tries
// them if its options name none.
func Clients() []Client {
	return []Client{Client20260728{}, Client20251125{}}
}

// object is a JSON object whose unknown members stay as they are.
type object = map[string]json.RawMessage

// JoinCapabilities is what the server's services declare together, nil where
// they declare nothing.
func JoinCapabilities(s *mcptask.Server, revision string) (joined json.RawMessage, err error) {
	for _, own := range s.Capabilities(revision) {
		if joined, err = MergeObjects(joined, json.RawMessage(own)); err != nil {
			return nil, err
		}
	}
	return joined, nil
}

// AddCapabilities joins our capabilities into those of a result.
func AddCapabilities(result object, capabilities json.RawMessage) error {
	merged, err := MergeObjects(result["capabilities"], capabilities)
	if err != nil {
		return err
	}
	result["capabilities"] = merged
	return nil
}

// MergeObjects joins two JSON objects deeply; b wins.
func MergeObjects(a, b json.RawMessage) (json.RawMessage, error) {
	if len(a) == 0 {
		return b, nil
	}
	var into, from object
	if json.Unmarshal(a, &into) != nil || json.Unmarshal(b, &from) != nil || into == nil {
		return b, nil // not two objects: nothing to join
	}
	for key, value := range from {
		joined, err := MergeObjects(into[key], value)
		if err != nil {
			return nil, err
		}
		into[key] = joined
	}
	return json.Marshal(into)
}

// editTools lets edit change every entry of a tools/list result that is ours.
func editTools(s *mcptask.Server, result object, edit func(mcptask.ToolSpec, object) error) error {
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

// EditObject decodes a result, lets edit change it and encodes it again; null is an
// object without members.
func EditObject(data json.RawMessage, edit func(object) error) (json.RawMessage, error) {
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	if o == nil {
		o = object{}
	}
	if err := edit(o); err != nil {
		return nil, err
	}
	return json.Marshal(o)
}

// readAskable lists the requests that a client's capabilities say it answers.
func readAskable(capabilities json.RawMessage) []string {
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
