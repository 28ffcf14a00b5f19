package unofficial

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	wire "github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial/wiresep1686"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// ServerSEP1686 is the receiver's side of the proposal SEP-1686. The requestor names its tasks. It hears
// of each new task by a notification, and gets the ordinary answer to its call when the task has
// ended. A task whose worker is lost has failed and says so.
type ServerSEP1686 struct{}

// longestExternalID bounds the ID that a requestor gives a task, in bytes: every
// poll and every list carries it.
const longestExternalID = 256

// Revision implements Server.
func (ServerSEP1686) Revision() string { return mcptask.RevisionSEP1686 }

// Protocol implements Server: the proposal has no version of its own.
func (ServerSEP1686) Protocol() string { return "" }

// Signals reports whether a request is of the proposal. A call shows it by the metadata of its
// task. A request for a task shows it by the related-task metadata of the proposal, or by an ID
// that the caller has made. Only the proposal has tasks/delete.
func (d ServerSEP1686) Signals(s *taskserver.Backend, caller taskserver.Caller, method string, params protocol.Params) bool {
	if method == wire.MethodTasksDelete {
		return true
	}
	if method == wire.MethodToolsCall {
		return params.Has("_meta", wire.MetaTask)
	}
	if d.Method(method) == nil {
		return false
	}
	if params.Has("_meta", wire.MetaRelatedTask) {
		return true
	}
	id, ok := params.Text("taskId")
	return ok && hasNamed(s, caller, id)
}

// Negotiate implements Server: the requestor asks for a task by the task's metadata. A tool that
// cannot run as a task ignores it, even if it is malformed. No tool requires it.
func (ServerSEP1686) Negotiate(tool mcptask.ToolSpec, fallback bool, params protocol.Params) (taskserver.CallRequest, error) {
	var call taskserver.CallRequest
	if _, err := protocol.ReadValue(params, "_meta", wire.MetaTask); err != nil {
		return call, err
	}
	ok := params.Has("_meta", wire.MetaTask)
	if !ok && !fallback || tool.Policy.Task == mcptask.TaskForbidden {
		return call, nil
	}
	key, err := protocol.ReadIdempotencyKey(params)
	if err != nil || !ok {
		return taskserver.CallRequest{Mode: taskserver.ModeFallback, IdempotencyKey: key}, err
	}
	id, keep, err := requestedTask(params.Get("_meta", wire.MetaTask))
	return taskserver.CallRequest{Mode: taskserver.ModeTask, ExternalID: id, TTL: keep, IdempotencyKey: key}, err
}

// requestedTask reads the metadata of a task: its ID, and how long to keep it after its end
//
func requestedTask(metadata json.RawMessage) (id string, keep *time.Duration, err error) {
	const where = `params._meta["` + wire.MetaTask + `"]`
	var members object
	if json.Unmarshal(metadata, &members) != nil || members == nil {
		return "", nil, mcptask.Errorf(mcptask.CodeInvalidParams, "%s is not an object", where)
	}
	if json.Unmarshal(members["taskId"], &id) != nil || id == "" || len(id) > longestExternalID {
		return "", nil, mcptask.Errorf(mcptask.CodeInvalidParams, "%s.taskId is not a string of 1 to %d bytes", where, longestExternalID)
	}
	keep, err = protocol.ReadMilliseconds(members, "keepAlive", where)
	return id, keep, err
}

// Created implements Server. There is no such answer: see Announcement and Answer.
func (ServerSEP1686) Created(taskstore.Record, mcptask.ToolSpec) (json.RawMessage, error) {
	return nil, mcptask.Errorf(mcptask.CodeInternalError, "the call could not be kept open until its task ends")
}

// InputRequired implements Server: the proposal asks by requests of its own.
func (ServerSEP1686) InputRequired(reply taskserver.CallReply) (json.RawMessage, error) {
	return protocol.Server20251125{}.InputRequired(reply)
}

// Announcement makes the notification of a new task.
func (ServerSEP1686) Announcement(r taskstore.Record) (method string, params json.RawMessage, err error) {
	meta, err := relatedSEP1686(nameTask(r))
	if err != nil {
		return "", nil, err
	}
	params, err = json.Marshal(wire.TaskCreatedNotificationParams{Meta: meta})
	return wire.NotificationTasksCreated, params, err
}

// Answer makes the answer to the call of a task that has ended. It is the same as the answer to a plain
// call. A cancelled task has no such answer.
func (ServerSEP1686) Answer(r taskstore.Record) (json.RawMessage, error) {
	return answerSEP1686(r, nameTask(r))
}

func answerSEP1686(r taskstore.Record, name string) (json.RawMessage, error) {
	switch r.Outcome.Kind {
	case taskstore.OutcomeError:
		return nil, r.Outcome.Error
	case taskstore.OutcomeCancelled:
		return nil, protocol.NewCancelledError(name)
	}
	return protocol.WithMeta(r.Outcome.Result, map[string]any{wire.MetaRelatedTask: wire.RelatedTaskMetadata{TaskID: name}})
}

// Related implements Teller.
func (ServerSEP1686) Related(r taskstore.Record) map[string]any {
	return map[string]any{wire.MetaRelatedTask: wire.RelatedTaskMetadata{TaskID: nameTask(r)}}
}

func relatedSEP1686(name string) (object, error) {
	related, err := json.Marshal(wire.RelatedTaskMetadata{TaskID: name})
	return object{wire.MetaRelatedTask: related}, err
}

// Question implements Teller. It never asks the client for a task, because the proposal does not define a
// client's tasks.
func (d ServerSEP1686) Question(r taskstore.Record, in taskstore.Input, _ time.Duration) (json.RawMessage, error) {
	return protocol.WithMeta(in.Params, d.Related(r))
}

// Status implements Teller: the proposal has no such notification.
func (ServerSEP1686) Status(taskstore.Record) (method string, params json.RawMessage, err error) {
	return "", nil, nil
}

// Requestor implements Teller: see Question.
func (ServerSEP1686) Requestor(json.RawMessage) protocol.Requestor {
	return protocol.Requestor20251125{}
}

// TaskID implements Teller.
func (ServerSEP1686) TaskID(s *taskserver.Backend, caller taskserver.Caller, params protocol.Params) string {
	id, err := protocol.ReadTaskID(params)
	if err != nil { // a malformed ID names none
		return ""
	}
	return resolveTaskID(s, caller, id)
}

// Blocks implements Server.
func (ServerSEP1686) Blocks(string) bool { return false }

// Check implements Server: the capability need not be declared (A-01, T-16).
func (ServerSEP1686) Check(protocol.Params) error { return nil }

// CanAsk implements Server.
func (ServerSEP1686) CanAsk(capabilities protocol.Params) []string {
	return protocol.Server20251125{}.CanAsk(capabilities)
}

// Decorate implements Server: capabilities.tasks in initialize, but not in 2025-11-25, whose schema has another
// form for it. The server declares there as much as that form can express (T-16). The proposal says nothing of tasks in
// tools/list.
func (d ServerSEP1686) Decorate(s *taskserver.Backend, _ taskserver.Caller, method string, result json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "initialize":
	case "tools/list":
		return protocol.EditObject(result, func(o object) error { return protocol.RestoreEntries(s, o) })
	default:
		return result, nil
	}
	var negotiated struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	joined, err := protocol.JoinCapabilities(s, d.Revision())
	if err != nil || joined == nil || json.Unmarshal(result, &negotiated) != nil || negotiated.ProtocolVersion >= mcptask.Revision20251125 {
		return result, err
	}
	return protocol.EditObject(result, func(o object) error { return protocol.AddCapabilities(o, joined) })
}

// Method implements Server.
func (d ServerSEP1686) Method(name string) protocol.Method {
	switch name {
	case wire.MethodTasksGet:
		return d.get
	case wire.MethodTasksResult:
		return d.result
	case wire.MethodTasksList:
		return d.list
	case wire.MethodTasksDelete:
		return d.delete
	}
	return nil
}

// taskSEP1686 projects a record under a name.
func taskSEP1686(r taskstore.Record, name string) wire.TaskInfo {
	t := wire.TaskInfo{TaskID: name, Status: statusSEP1686(r), KeepAlive: keepAlive(r), PollFrequency: protocol.RoundMilliseconds(r.Poll)}
	if t.Status == string(mcptask.StatusFailed) {
		t.Error = protocol.ShortenMessage(r.Outcome.Error.Message)
	}
	return t
}

// statusSEP1686 projects phase and outcome. A task that has been asked to stop is
// shown as cancelled only when it has stopped.
func statusSEP1686(r taskstore.Record) string {
	switch {
	case r.Phase == taskstore.PhaseQueued:
		return wire.StatusSubmitted
	case r.Phase == taskstore.PhaseInputRequired:
		return string(mcptask.StatusInputRequired)
	case r.Phase != taskstore.PhaseDone:
		return string(mcptask.StatusWorking)
	case r.Outcome.Kind == taskstore.OutcomeCancelled:
		return string(mcptask.StatusCancelled)
	case r.Outcome.Kind == taskstore.OutcomeError:
		return string(mcptask.StatusFailed)
	}
	return string(mcptask.StatusCompleted)
}

// keepAlive returns how many milliseconds a task is kept after its end. Its retention counts from its creation.
// So keepAlive returns the rest of it at the end, and before the end all of it.
func keepAlive(r taskstore.Record) *int64 {
	if r.Done() {
		return protocol.RoundMilliseconds(max(0, r.ExpiresAt.Sub(r.TerminalAt)))
	}
	return protocol.RoundMilliseconds(r.TTL())
}

// find reads the task that params name, by an ID that the caller made or by the stored one. name is
// the ID in params, which the answer repeats.
func (ServerSEP1686) find(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params protocol.Params) (r taskstore.Record, name string, err error) {
	if name, err = protocol.ReadTaskID(params); err != nil {
		return r, "", err
	}
	r, err = s.Get(ctx, caller, resolveTaskID(s, caller, name))
	return r, name, err
}

func (d ServerSEP1686) get(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params protocol.Params) (json.RawMessage, error) {
	r, _, err := d.find(ctx, s, caller, params)
	if err != nil {
		return nil, err
	}
	return d.Show(ctx, s, caller, params, r)
}

// Show implements Teller, under the name that was asked for.
func (ServerSEP1686) Show(_ context.Context, _ *taskserver.Backend, _ taskserver.Caller, params protocol.Params, r taskstore.Record) (json.RawMessage, error) {
	name, err := protocol.ReadTaskID(params)
	if err != nil {
		return nil, err
	}
	meta, err := relatedSEP1686(name)
	if err != nil {
		return nil, err
	}
	t := taskSEP1686(r, name)
	return json.Marshal(wire.GetTaskResult{
		Meta: meta, TaskID: t.TaskID, Status: t.Status, KeepAlive: t.KeepAlive, PollFrequency: t.PollFrequency, Error: t.Error,
	})
}

// result answers at once, and only for a task that has completed.
func (d ServerSEP1686) result(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params protocol.Params) (json.RawMessage, error) {
	r, name, err := d.find(ctx, s, caller, params)
	if err != nil {
		return nil, err
	}
	if status := statusSEP1686(r); status != string(mcptask.StatusCompleted) {
		return nil, mcptask.Errorf(mcptask.CodeInvalidParams, "the task is %s: only a completed one has a result", status)
	}
	protocol.AuditRetrieval(ctx, s, caller, r)
	return answerSEP1686(r, name)
}

func (ServerSEP1686) list(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params protocol.Params) (json.RawMessage, error) {
	ends := endReader{server: s, caller: caller}
	tasks, next, err := protocol.ReadPage(ctx, s, caller, params, func(r taskstore.Record) wire.TaskInfo {
		return taskSEP1686(ends.read(ctx, r), nameTaskFor(caller, r))
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(wire.ListTasksResult{Tasks: tasks, NextCursor: next})
}

// delete removes a task that has ended. It refuses any other task, which has to be cancelled first
// (A-53 to A-55, T-19).
func (d ServerSEP1686) delete(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params protocol.Params) (json.RawMessage, error) {
	r, name, err := d.find(ctx, s, caller, params)
	if err != nil {
		return nil, err
	}
	if !r.Done() {
		return nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the task is %s: only one that has ended can be deleted", statusSEP1686(r))
	}
	s.Audit(ctx, slog.LevelInfo, "task deleted", "deleted", caller, r)
	r.IdempotencyKey = "" // who has it comes back for nothing
	s.Abandon(r)
	if _, err := s.Peek(r.ID); !errors.Is(err, taskstore.ErrNoRecord) {
		return nil, mcptask.Errorf(mcptask.CodeInternalError, "the task could not be deleted")
	}
	meta, err := relatedSEP1686(name)
	if err != nil {
		return nil, err
	}
	return json.Marshal(wire.DeleteTaskResult{Meta: meta})
}
