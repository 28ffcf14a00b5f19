package unofficial

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	wire "github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial/wiresep1686"
)

// ClientSEP1686 is the requestor's side of the proposal SEP-1686. Its calls ask for a task by metadata that any server
// may ignore, so it need not know which requests the server takes as tasks.
type ClientSEP1686 struct{}

// Revision implements Client.
func (ClientSEP1686) Revision() string { return mcptask.RevisionSEP1686 }

// Protocol implements Client. The proposal has no version of its own; it needs
// sessions, and 2025-11-25 is the last with sessions.
func (ClientSEP1686) Protocol() string { return mcptask.Revision20251125 }

// Takes implements Client: servers need not declare it (T-16).
func (ClientSEP1686) Takes(json.RawMessage) bool { return false }

// Support implements Client: tools say nothing of tasks.
func (ClientSEP1686) Support(json.RawMessage, bool) mcptask.TaskSupport { return "" }

// Call implements Client.
func (ClientSEP1686) Call(call mcptask.ToolCall, _ mcptask.TaskSupport, _ *protocol.Retry) (any, error) {
	params := protocol.MakeCallParams(call)
	if call.Plain {
		return params, nil
	}
	task := wire.TaskMetadata{TaskID: chooseTaskID(call)}
	if call.TTL > 0 {
		task.KeepAlive = protocol.RoundMilliseconds(call.TTL)
	}
	meta, _ := params["_meta"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta[wire.MetaTask] = task
	params["_meta"] = meta
	return params, nil
}

// chooseTaskID makes the ID of a call's task. It is a new one, unless the call has an
// idempotency key: a repeated call has the same ID, so that a server that does not know such keys
// takes it for a duplicate. The same key with other arguments makes another ID, and servers of ours
// refuse the call by its key.
func chooseTaskID(call mcptask.ToolCall) string {
	if call.IdempotencyKey == "" {
		return rand.Text()
	}
	return makeTaskID(call.Tool, call.IdempotencyKey, string(call.Arguments))
}

// Expects returns the task ID that the params of a call ask for.
func (ClientSEP1686) Expects(params any) string {
	of, _ := params.(map[string]any)
	meta, _ := of["_meta"].(map[string]any)
	task, _ := meta[wire.MetaTask].(wire.TaskMetadata)
	return task.TaskID
}

// Announced reads the notification of a new task.
func (ClientSEP1686) Announced(method string, params json.RawMessage) (taskID string, ok bool) {
	if method != wire.NotificationTasksCreated {
		return "", false
	}
	var p struct {
		Meta map[string]any `json:"_meta"`
	}
	_ = json.Unmarshal(params, &p) // malformed params name no task
	_, taskID = protocol.FindRelatedTask(p.Meta)
	return taskID, true
}

// Begun returns the state of a task that was announced.
func (ClientSEP1686) Begun(taskID string) mcptask.Snapshot {
	return mcptask.Snapshot{TaskID: taskID, Status: mcptask.StatusWorking, TTL: -1}
}

// Cancelled makes the notification that cancels a task.
func (ClientSEP1686) Cancelled(taskID string, requestID json.RawMessage) (method string, params any) {
	return wire.NotificationCancelled, wire.CancelledNotificationParams{Meta: nameInMeta(taskID), RequestID: requestID, Reason: "the caller wants the task cancelled"}
}

// Started implements Client: the answer to a call is the result or the error of its task.
func (ClientSEP1686) Started(result json.RawMessage) (mcptask.Snapshot, *protocol.Retry, error) {
	s, err := protocol.ReadStarted(result)
	return s, nil, err
}

// ResultKind implements Client: results have no type here.
func (ClientSEP1686) ResultKind(string, json.RawMessage) error { return nil }

// peerTaskSEP1686 is a task as peers write it; see [protocol.PeerTask].
type peerTaskSEP1686 struct {
	TaskID        string          `json:"taskId"`
	Status        string          `json:"status"`
	PollFrequency protocol.Millis `json:"pollFrequency"`
	Error         json.RawMessage `json:"error"`
}

// newSnapshotSEP1686 reads a task. A task that was submitted is shown as working. Its retention is
// left open, because it counts from the task's end.
func newSnapshotSEP1686(t peerTaskSEP1686) (mcptask.Snapshot, error) {
	var text string
	_ = json.Unmarshal(t.Error, &text) // an error that is no text is left out
	lost, status := t.Status == wire.StatusUnknown, t.Status
	switch {
	case lost:
		status = string(mcptask.StatusFailed)
	case status == wire.StatusSubmitted:
		status = string(mcptask.StatusWorking)
	}
	s, err := protocol.NewSnapshot(protocol.PeerTask{TaskID: t.TaskID, Status: status, StatusMessage: text}, protocol.Millis{}, t.PollFrequency)
	switch {
	case err != nil || s.Status != mcptask.StatusFailed:
	case lost:
		s.Error = mcptask.Errorf(mcptask.CodeInternalError, "%s", cmp.Or(text, "the server does not know what became of the task"))
		s.Error.Data = json.RawMessage(`{"reason":"unknown"}`)
	default: // tasks/result would only say that the task is not completed
		s.Error = mcptask.Errorf(mcptask.CodeInternalError, "%s", cmp.Or(text, "the task failed, and the server does not say why"))
	}
	return s, err
}

// Task implements Client. An error of tasks/result is never the tool's.
func (ClientSEP1686) Task(ctx context.Context, send protocol.Send, taskID string) (mcptask.Snapshot, error) {
	raw, err := send(ctx, wire.MethodTasksGet, wire.GetTaskRequestParams{Meta: nameInMeta(taskID), TaskID: taskID})
	if err != nil {
		return mcptask.Snapshot{}, err
	}
	var t peerTaskSEP1686
	if err := json.Unmarshal(raw, &t); err != nil {
		return mcptask.Snapshot{}, protocol.NewMalformedError(wire.MethodTasksGet, err)
	}
	s, err := newSnapshotSEP1686(t)
	if err == nil {
		err = protocol.CheckTaskID(s, taskID)
	}
	if err != nil || s.Status != mcptask.StatusCompleted {
		return s, err
	}
	raw, err = send(ctx, wire.MethodTasksResult, wire.GetTaskPayloadRequestParams{Meta: nameInMeta(taskID), TaskID: taskID})
	if err != nil {
		return mcptask.Snapshot{}, err
	}
	return protocol.AddOutcome(s, raw, nil)
}

// Cancel implements Client: only the request that made a task cancels it.
func (ClientSEP1686) Cancel(context.Context, protocol.Send, string) error {
	return mcptask.Errorf(mcptask.CodeMethodNotFound,
		"a task of sep-1686 is cancelled by the request that made it, which this connection has not sent: the task goes on")
}

// Respond implements Client: questions are requests of their own here.
func (ClientSEP1686) Respond(context.Context, protocol.Send, string, map[string]json.RawMessage) error {
	return mcptask.Errorf(mcptask.CodeMethodNotFound, "tasks of sep-1686 take no tasks/update")
}

// Delete makes the request that deletes a task.
func (ClientSEP1686) Delete(taskID string) (method string, params any) {
	return wire.MethodTasksDelete, wire.DeleteTaskRequestParams{Meta: nameInMeta(taskID), TaskID: taskID}
}

// nameInMeta makes the metadata that every message about a task has.
func nameInMeta(taskID string) object {
	data, err := json.Marshal(wire.RelatedTaskMetadata{TaskID: taskID})
	if err != nil { // a string always marshals
		return nil
	}
	return object{wire.MetaRelatedTask: data}
}
