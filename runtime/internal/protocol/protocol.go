// Package protocol converts the canonical task to the wire form of each released revision and
// back. Each revision has one file here and one package of generated wire types below. Package
// unofficial has the revisions that were never released.
package protocol

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Server is the receiver's side of a revision.
type Server interface {
	// Revision returns the name of the revision.
	Revision() string
	// Protocol returns the protocol version that its requests name, or that its sessions negotiate.
	Protocol() string
	// Negotiate decides how a tools/call of one of our tools is answered, or refuses it. params is
	// the whole params object. fallback says that fallback tools serve a requestor without tasks,
	// or that the tool is one of them.
	Negotiate(tool mcptask.ToolSpec, fallback bool, params Params) (taskserver.CallRequest, error)
	// Created makes the answer to a tools/call that made a task.
	Created(r taskstore.Record, tool mcptask.ToolSpec) (json.RawMessage, error)
	// InputRequired makes the answer to a tools/call whose questions come first.
	InputRequired(reply taskserver.CallReply) (json.RawMessage, error)
	// Method returns the handler of a task method. It returns nil if the revision does not have
	// the method.
	Method(name string) Method
	// Blocks reports whether a method waits for a task's end.
	Blocks(method string) bool
	// Decorate adds the members for tasks to the result of initialize, server/discover or tools/list. To the result of
	// tools/call it adds the members that every result of the revision has.
	Decorate(s *taskserver.Backend, caller taskserver.Caller, method string, result json.RawMessage) (json.RawMessage, error)
	// Check refuses a request for a task method if the capabilities that its params declare do not
	// allow it. The task has not been looked up then.
	Check(params Params) error
	// CanAsk reads from a client's capabilities which requests it answers.
	CanAsk(capabilities Params) []string
}

// Teller is a Server of a revision with sessions. In a session the server also sends messages that
// answer no request.
type Teller interface {
	Server
	// TaskID returns the stored ID of the task that the params of a task method name. It returns
	// "" if they name none.
	TaskID(s *taskserver.Backend, caller taskserver.Caller, params Params) string
	// Show makes the answer to a tasks/get with these params. r is the task that they name.
	Show(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params Params, r taskstore.Record) (json.RawMessage, error)
	// Question makes the params of a task's question, with the task's metadata. A ttl of more than
	// 0 asks the client to answer with a task and to keep that task for the ttl.
	Question(r taskstore.Record, in taskstore.Input, ttl time.Duration) (json.RawMessage, error)
	// Status makes the notification of a task's new state. method is "" if the revision has no such
	// notification.
	Status(r taskstore.Record) (method string, params json.RawMessage, err error)
	// Related returns the _meta of messages that belong to a task, such as its progress. It
	// returns nil if they need none.
	Related(r taskstore.Record) map[string]any
	// Requestor returns the server as the requestor of tasks at a client with these capabilities.
	Requestor(capabilities json.RawMessage) Requestor
}

// Requestor is the server as the requestor of tasks at one client.
type Requestor interface {
	// Augments reports whether the client takes requests of a method as tasks.
	Augments(method string) bool
	// Cancels reports whether the client takes Cancel.
	Cancels() bool
	// ResultWaits reports whether the client answers Result when its task has ended. If not, it
	// has a result only then.
	ResultWaits() bool
	// Started reads the task that the client has made of a question. ok is false if the result is
	// the answer itself, which a client may give at once.
	Started(result json.RawMessage) (s mcptask.Snapshot, ok bool, err error)
	// Get asks for the state of a client's task, Result for its answer, and Cancel ends it.
	Get(taskID string) (method string, params any)
	Result(taskID string) (method string, params any)
	Cancel(taskID string) (method string, params any)
	// Task reads the answer to Get, Answer the one to Result.
	Task(result json.RawMessage) (mcptask.Snapshot, error)
	Answer(result json.RawMessage) (json.RawMessage, error)
}

// Method answers one task method. Errors are JSON-RPC errors.
type Method func(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params Params) (json.RawMessage, error)

// Client is the requestor's side of a revision.
type Client interface {
	// Revision returns the name of the revision.
	Revision() string
	// Protocol returns the protocol version that it connects with.
	Protocol() string
	// Takes reports whether a server takes calls as tasks. capabilities are those in its answer to
	// initialize.
	Takes(capabilities json.RawMessage) bool
	// Support reads the task support in a tool's entry of tools/list. tasks says whether the server has declared that
	// it takes calls as tasks.
	Support(tool json.RawMessage, tasks bool) mcptask.TaskSupport
	// Call makes the params of a tools/call. support is the tool's task support as the server declares it, or "". retry
	// is nil the first time.
	Call(call mcptask.ToolCall, support mcptask.TaskSupport, retry *Retry) (params any, err error)
	// Started reads the answer to a tools/call. If it returns a Retry, the caller has to put the
	// answers to the snapshot's questions into it and call again.
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

// Lister is a Client whose revision lists tasks.
type Lister interface {
	// List reads the page of tasks at a cursor, "" for the first. next is "" on the last page.
	List(ctx context.Context, send Send, cursor string) (tasks []mcptask.Snapshot, next string, err error)
}

// Retry has the params that a client adds when it repeats a call that was answered with questions.
type Retry struct {
	Responses map[string]json.RawMessage
	// State goes back to the server unchanged.
	State string
}

// Send sends a request and returns its result. An error of the peer's is a *mcptask.Error.
type Send func(ctx context.Context, method string, params any) (json.RawMessage, error)

// Receiver is a Teller of a revision in which clients, too, run requests as tasks.
type Receiver interface {
	Teller
	// Asks reports whether a request with these params asks for a task.
	Asks(params Params) bool
	// Receives makes the capabilities of a client that runs requests of these methods as tasks. It
	// returns nil if none of the methods can be a task.
	Receives(methods ...string) (capabilities json.RawMessage, err error)
	// Declare adds capabilities to the params of an initialize that asks for the revision's
	// protocol version. It does not change any other.
	Declare(params, capabilities json.RawMessage) (json.RawMessage, error)
}

// Waiter is a Client of a revision in which a task's questions may come on the
// stream of a request that waits for its end (C-51).
type Waiter interface {
	// Wait makes that request.
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

// JoinCapabilities joins the capabilities of the server's services. It returns nil if they have none.
func JoinCapabilities(s *taskserver.Backend, revision string) (joined json.RawMessage, err error) {
	for _, own := range s.Capabilities(revision) {
		if joined, err = MergeObjects(joined, json.RawMessage(own)); err != nil {
			return nil, err
		}
	}
	return joined, nil
}

// AddCapabilities adds capabilities to those of a result.
func AddCapabilities(result object, capabilities json.RawMessage) error {
	merged, err := MergeObjects(result["capabilities"], capabilities)
	if err != nil {
		return err
	}
	result["capabilities"] = merged
	return nil
}

// MergeObjects joins two JSON objects deeply. If both have a value, that of b wins.
func MergeObjects(a, b json.RawMessage) (json.RawMessage, error) {
	if len(a) == 0 {
		return b, nil
	}
	var into, from object
	if json.Unmarshal(a, &into) != nil || json.Unmarshal(b, &from) != nil || into == nil {
		return b, nil // not two objects: nothing to join
	}
	return EditObject(a, func(o object) error {
		for key, value := range from {
			joined, err := MergeObjects(o[key], value)
			if err != nil {
				return err
			}
			o[key] = joined
		}
		return nil
	})
}

// editTools lets edit change every entry of a tools/list result that is ours. Before, a tool with an
// entry of its own gets that. If all tools have one, they come in the order of their service, since
// the SDK sorts them by name.
func editTools(s *taskserver.Backend, result object, edit func(mcptask.ToolSpec, object) error) error {
	var tools []json.RawMessage
	if err := json.Unmarshal(result["tools"], &tools); err != nil {
		return err
	}
	order, listed := map[string]int{}, 0
	for i, spec := range s.Tools() {
		order[spec.Name] = i
	}
	nameOf := func(entry json.RawMessage) string {
		name, _ := wire.NewObject(entry).Text("name") // another name is not ours
		return name
	}
	for i, entry := range tools {
		spec, ok := s.Tool(nameOf(entry))
		if !ok {
			continue
		}
		if spec.Entry != "" {
			listed++
			var own bytes.Buffer
			if err := json.Compact(&own, []byte(spec.Entry)); err != nil {
				return err
			}
			entry = own.Bytes()
		}
		var err error
		if tools[i], err = EditObject(entry, func(o object) error { return edit(spec, o) }); err != nil {
			return err
		}
	}
	if listed == len(tools) {
		slices.SortStableFunc(tools, func(a, b json.RawMessage) int { return order[nameOf(a)] - order[nameOf(b)] })
	}
	result["tools"] = wire.JoinArray(tools)
	return nil
}

// RestoreEntries gives the tools of a tools/list result that have an entry of their own that entry, in
// a revision that says nothing of tasks in it.
func RestoreEntries(s *taskserver.Backend, result object) error {
	if !slices.ContainsFunc(s.Tools(), func(spec mcptask.ToolSpec) bool { return spec.Entry != "" }) {
		return nil
	}
	return editTools(s, result, func(spec mcptask.ToolSpec, entry object) error {
		if spec.Entry != "" {
			delete(entry, "execution")
		}
		return nil
	})
}

// EditObject lets edit change the members of an object. Members that it does not change keep their bytes and their place.
// It takes null for an object without members.
func EditObject(data json.RawMessage, edit func(object) error) (json.RawMessage, error) {
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	if o == nil {
		o = object{}
	}
	before := maps.Clone(o)
	if err := edit(o); err != nil {
		return nil, err
	}
	var edits []wire.Edit
	for name := range before {
		if _, kept := o[name]; !kept {
			edits = append(edits, wire.Delete(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if value := o[name]; before[name] == nil || !bytes.Equal(value, before[name]) {
			edits = append(edits, wire.Set(value, name))
		}
	}
	if len(edits) == 0 && len(before) == 0 {
		return json.RawMessage("{}"), nil
	}
	return wire.NewObject(data).Edited(edits...)
}

// readAskable lists the requests that a client's capabilities say it answers. It ignores a
// capability that is not an object.
func readAskable(capabilities Params) (can []string) {
	if e := capabilities.Object("elicitation"); e.IsObject() {
		form, url := e.Object("form"), e.Object("url")
		older := isAbsent(form) && isAbsent(url) // an empty object declares the form
		if older || form.IsObject() {
			can = append(can, "elicitation/create")
		}
		if url.IsObject() {
			can = append(can, taskserver.CanAskURL)
		}
	}
	if capabilities.Object("sampling").IsObject() {
		can = append(can, "sampling/createMessage")
	}
	if capabilities.Object("roots").IsObject() {
		can = append(can, "roots/list")
	}
	return can
}

// isAbsent reports whether there is no value, or only null.
func isAbsent(value Params) bool { return value == nil || string(value.Raw()) == "null" }
