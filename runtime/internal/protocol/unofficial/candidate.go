package unofficial

import (
	"context"
	"encoding/json"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	wire "github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial/wire20251125rc"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Server20251125RC is the receiver's side of the release candidate of 2025-11-25. It differs from the
// release in two ways: a tool says in another place that it runs as a task, and tasks have no
// lastUpdatedAt. A plain call of a tool that always runs as a task is refused as in the release, where
// the candidate leaves the choice to the server (B-13, B-23).
type Server20251125RC struct{ protocol.Server20251125 }

// Revision implements Server.
func (Server20251125RC) Revision() string { return mcptask.Revision20251125RC }

// Created implements Server (B-17, B-19, B-20).
func (Server20251125RC) Created(r taskstore.Record, tool mcptask.ToolSpec) (json.RawMessage, error) {
	meta, err := protocol.MakeCreatedMeta(tool)
	if err != nil {
		return nil, err
	}
	return json.Marshal(wire.CreateTaskResult{Meta: meta, Task: task20251125RC(r)})
}

// task20251125RC projects a record (B-50, B-52, B-55).
func task20251125RC(r taskstore.Record) wire.Task {
	t := protocol.ProjectTask20251125(r)
	return wire.Task{
		TaskID: t.TaskID, Status: t.Status, StatusMessage: t.StatusMessage,
		CreatedAt: t.CreatedAt, TTL: t.TTL, PollInterval: t.PollInterval,
	}
}

// Method implements Server.
func (Server20251125RC) Method(name string) protocol.Method {
	return protocol.Method20251125(name, task20251125RC)
}

// Show implements Teller.
func (Server20251125RC) Show(_ context.Context, s *taskserver.Backend, caller taskserver.Caller, _ protocol.Params, r taskstore.Record) (json.RawMessage, error) {
	return json.Marshal(task20251125RC(protocol.ShowTask(s, caller, r)))
}

// Status implements Teller (B-42, B-45).
func (Server20251125RC) Status(r taskstore.Record) (method string, params json.RawMessage, err error) {
	params, err = json.Marshal(task20251125RC(r))
	return wire.NotificationTasksStatus, params, err
}

// Decorate implements Server: capabilities.tasks in initialize (B-01, B-02) and
// annotations.taskHint in tools/list (B-14).
func (d Server20251125RC) Decorate(s *taskserver.Backend, caller taskserver.Caller, method string, result json.RawMessage) (json.RawMessage, error) {
	return protocol.DecorateSession(d, s, caller, method, result, func(spec mcptask.ToolSpec, entry object) error {
		annotations, err := json.Marshal(wire.ToolAnnotations{TaskHint: hint(spec.Policy.Task)})
		if err != nil {
			return err
		}
		entry["annotations"], err = protocol.MergeObjects(entry["annotations"], annotations)
		return err
	})
}

// Requestor implements Teller.
func (Server20251125RC) Requestor(capabilities json.RawMessage) protocol.Requestor {
	return protocol.NewRequestor20251125(capabilities, declaredRC)
}

// declaredRC reports whether a leaf of capabilities declares something. The text of the candidate has
// true and false there, its schema has objects (B-02).
func declaredRC(leaf json.RawMessage) bool { return protocol.IsObject(leaf) || string(leaf) == "true" }

// The candidate's words for how a tool may be called (B-14).
const (
	hintNever    = "never"
	hintOptional = "optional"
	hintAlways   = "always"
)

func hint(support mcptask.TaskSupport) string {
	switch support {
	case mcptask.TaskOptional:
		return hintOptional
	case mcptask.TaskRequired:
		return hintAlways
	}
	return hintNever
}

// Client20251125RC is the requestor's side of the release candidate of 2025-11-25.
type Client20251125RC struct{ protocol.Client20251125 }

// Revision implements Client.
func (Client20251125RC) Revision() string { return mcptask.Revision20251125RC }

// Takes implements Client (B-02, B-08).
func (Client20251125RC) Takes(capabilities json.RawMessage) bool {
	return protocol.TakesCalls(capabilities, declaredRC)
}

// Support implements Client (B-09, B-12, B-14).
func (Client20251125RC) Support(tool json.RawMessage, tasks bool) mcptask.TaskSupport {
	var entry wire.Tool
	if !tasks || json.Unmarshal(tool, &entry) != nil || entry.Annotations == nil {
		return ""
	}
	switch entry.Annotations.TaskHint {
	case hintNever:
		return mcptask.TaskForbidden
	case hintOptional:
		return mcptask.TaskOptional
	case hintAlways:
		return mcptask.TaskRequired
	}
	return ""
}
