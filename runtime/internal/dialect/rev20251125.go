package dialect

import (
	"context"
	"encoding/json"
	"math"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	wire "github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect/wire20251125"
)

// Server20251125 is the receiver's side of tasks in the core of 2025-11-25.
type Server20251125 struct{}

// Revision implements Server.
func (Server20251125) Revision() string { return mcptask.Revision20251125 }

// Negotiate implements Server: the requestor asks for a task by params.task,
// and the tool says whether it may (C-10, C-13, C-15).
func (Server20251125) Negotiate(tool mcptask.ToolSpec, fallback bool, params json.RawMessage) (mcptask.CallRequest, error) {
	var call mcptask.CallRequest
	var p struct {
		Task json.RawMessage `json:"task"`
	}
	if err := decode(params, &p); err != nil {
		return call, err
	}
	if p.Task == nil {
		if fallback && tool.Policy.Task != mcptask.TaskForbidden {
			key, err := idempotencyKey(params)
			return mcptask.CallRequest{Mode: mcptask.ModeFallback, IdempotencyKey: key}, err
		}
		if tool.Policy.Task == mcptask.TaskRequired {
			return call, mcptask.Errorf(mcptask.CodeMethodNotFound, "the tool %q must be called as a task: add params.task", tool.Name)
		}
		return call, nil
	}
	if tool.Policy.Task == mcptask.TaskForbidden {
		return call, mcptask.Errorf(mcptask.CodeMethodNotFound, "the tool %q cannot be called as a task", tool.Name)
	}
	ttl, err := requestedTTL(p.Task)
	if err != nil {
		return call, err
	}
	key, err := idempotencyKey(params)
	return mcptask.CallRequest{Mode: mcptask.ModeTask, TTL: ttl, IdempotencyKey: key}, err
}

// requestedTTL reads params.task.ttl: a whole number of milliseconds. What no
// duration can hold is cut to the longest; 0 leaves the choice to the server.
func requestedTTL(task json.RawMessage) (*time.Duration, error) {
	var members object
	if json.Unmarshal(task, &members) != nil || members == nil {
		return nil, mcptask.Errorf(mcptask.CodeInvalidParams, "params.task is not an object")
	}
	raw, ok := members["ttl"]
	if !ok {
		return nil, nil
	}
	var ms *float64
	if json.Unmarshal(raw, &ms) != nil || ms == nil || *ms < 0 || *ms != math.Trunc(*ms) {
		return nil, mcptask.Errorf(mcptask.CodeInvalidParams, "params.task.ttl is not a whole number of milliseconds, 0 or more")
	}
	longest := float64(math.MaxInt64 / int64(time.Millisecond))
	ttl := time.Duration(math.MaxInt64)
	if *ms < longest {
		ttl = time.Duration(*ms) * time.Millisecond
	}
	return &ttl, nil
}

// Created implements Server (C-17, C-19, C-20).
func (Server20251125) Created(r mcptask.Record, tool mcptask.ToolSpec) (json.RawMessage, error) {
	result := wire.CreateTaskResult{Task: task20251125(r)}
	if text := tool.Policy.Immediate; text != "" {
		quoted, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		result.Meta = object{mcptask.MetaModelImmediateResponse: quoted}
	}
	return json.Marshal(result)
}

// task20251125 projects a record; see status20251125 for the status.
func task20251125(r mcptask.Record) wire.Task {
	return wire.Task{
		TaskID:        r.ID,
		Status:        string(status20251125(r)),
		StatusMessage: r.StatusMessage,
		CreatedAt:     timestamp(r.CreatedAt),
		LastUpdatedAt: timestamp(r.UpdatedAt),
		TTL:           milliseconds(r.TTL()),
		PollInterval:  milliseconds(r.Poll),
	}
}

// status20251125 projects phase and outcome. A tool error is a failed task
// here, though its result is retrieved like any other (C-87, T-24).
func status20251125(r mcptask.Record) mcptask.Status {
	switch {
	case r.Phase == mcptask.PhaseInputRequired:
		return mcptask.StatusInputRequired
	case r.Phase != mcptask.PhaseDone:
		return mcptask.StatusWorking
	case r.Outcome.Kind == mcptask.OutcomeCancelled:
		return mcptask.StatusCancelled
	case r.Outcome.Kind == mcptask.OutcomeError || r.Outcome.IsError:
		return mcptask.StatusFailed
	}
	return mcptask.StatusCompleted
}

// Method implements Server.
func (d Server20251125) Method(name string) Method {
	switch name {
	case wire.MethodTasksGet:
		return d.get
	case wire.MethodTasksResult:
		return d.result
	case wire.MethodTasksList:
		return d.list
	case wire.MethodTasksCancel:
		return d.cancel
	}
	return nil
}

// Blocks implements Server.
func (Server20251125) Blocks(method string) bool { return method == wire.MethodTasksResult }

func (Server20251125) get(ctx context.Context, s *mcptask.Server, caller mcptask.Caller, params json.RawMessage) (json.RawMessage, error) {
	id, err := taskID(params)
	if err != nil {
		return nil, err
	}
	r, err := s.Get(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	return json.Marshal(task20251125(r))
}

// result blocks until the task has ended and answers as the call would have,
// error included (C-36 to C-41). A cancelled task has no such answer: T-25.
func (Server20251125) result(ctx context.Context, s *mcptask.Server, caller mcptask.Caller, params json.RawMessage) (json.RawMessage, error) {
	id, err := taskID(params)
	if err != nil {
		return nil, err
	}
	r, err := s.Await(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	switch r.Outcome.Kind {
	case mcptask.OutcomeError:
		return nil, r.Outcome.Error
	case mcptask.OutcomeCancelled:
		err := mcptask.Errorf(mcptask.CodeInternalError, "the task was cancelled")
		err.Data, _ = json.Marshal(map[string]string{"reason": "cancelled", "taskId": id}) // strings always marshal
		return nil, err
	}
	return relate(r.Outcome.Result, id)
}

// relate adds the related-task metadata to an object's _meta (C-41, C-50).
func relate(data json.RawMessage, taskID string) (json.RawMessage, error) {
	return editObject(data, func(o object) error {
		related, err := json.Marshal(wire.RelatedTaskMetadata{TaskID: taskID})
		if err != nil {
			return err
		}
		meta := object{}
		if o["_meta"] != nil {
			if err := json.Unmarshal(o["_meta"], &meta); err != nil {
				return err
			}
		}
		meta[mcptask.MetaRelatedTask] = related
		o["_meta"], err = json.Marshal(meta)
		return err
	})
}

func (Server20251125) list(ctx context.Context, s *mcptask.Server, caller mcptask.Caller, params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Cursor *string `json:"cursor"`
	}
	if len(params) > 0 {
		if err := decode(params, &p); err != nil {
			return nil, err
		}
	}
	var after mcptask.Position
	if p.Cursor != nil {
		var err error
		if after, err = parseCursor(caller.Principal, *p.Cursor); err != nil {
			return nil, err
		}
	}
	page, more, err := s.List(ctx, caller, after)
	if err != nil {
		return nil, err
	}
	result := wire.ListTasksResult{Tasks: []wire.Task{}}
	for _, r := range page {
		if time.Now().Before(r.ExpiresAt) {
			result.Tasks = append(result.Tasks, task20251125(r))
		}
	}
	if more {
		last := page[len(page)-1]
		result.NextCursor = newCursor(caller.Principal, mcptask.Position{CreatedAt: last.CreatedAt, ID: last.ID})
	}
	return json.Marshal(result)
}

// cancel answers when the task is cancelled, and refuses one that has ended
// (C-75, C-77).
func (Server20251125) cancel(ctx context.Context, s *mcptask.Server, caller mcptask.Caller, params json.RawMessage) (json.RawMessage, error) {
	id, err := taskID(params)
	if err != nil {
		return nil, err
	}
	r, done, err := s.Cancel(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	if done {
		return nil, mcptask.Errorf(mcptask.CodeInvalidParams, "the task has already ended as %s", status20251125(r))
	}
	return json.Marshal(task20251125(r))
}

// Check implements Server: the session has negotiated everything.
func (Server20251125) Check(json.RawMessage) error { return nil }

// InputRequired implements Server: this revision asks by requests of its own.
func (Server20251125) InputRequired(mcptask.CallReply) (json.RawMessage, error) {
	return nil, mcptask.Errorf(mcptask.CodeInternalError, "the questions of the call could not be asked")
}

// CanAsk implements Server.
func (Server20251125) CanAsk(capabilities json.RawMessage) []string { return asks(capabilities) }

// Question makes the request of a task's question, with the task's metadata
// (C-50, C-62).
func (Server20251125) Question(taskID string, in mcptask.Input) (params json.RawMessage, err error) {
	return relate(in.Params, taskID)
}

// Decorate implements Server: capabilities.tasks in initialize (C-01, C-02) and
// execution.taskSupport in tools/list (C-14). Who cannot be told apart is not
// offered a list (C-92).
func (d Server20251125) Decorate(s *mcptask.Server, caller mcptask.Caller, method string, result json.RawMessage) (json.RawMessage, error) {
	if method == "tools/call" {
		return result, nil
	}
	return editObject(result, func(o object) error {
		if method != "initialize" {
			return eachTool(s, o, func(spec mcptask.ToolSpec, entry object) (err error) {
				entry["execution"], err = json.Marshal(wire.ToolExecution{TaskSupport: string(spec.Policy.Task)})
				return err
			})
		}
		var version string
		if json.Unmarshal(o["protocolVersion"], &version) != nil || version != d.Revision() {
			return nil
		}
		var capabilities wire.ServerCapabilities
		joined, err := joinedCapabilities(s, d.Revision())
		if err != nil || joined == nil {
			return err
		}
		if err := json.Unmarshal(joined, &capabilities); err != nil {
			return err
		}
		if capabilities.Tasks != nil && caller.Principal == "" {
			capabilities.Tasks.List = nil
		}
		data, err := json.Marshal(capabilities)
		if err != nil {
			return err
		}
		return declared(o, data)
	})
}

// Client20251125 is the requestor's side of 2025-11-25.
type Client20251125 struct{}

// Revision implements Client.
func (Client20251125) Revision() string { return mcptask.Revision20251125 }

// Call implements Client: a task is asked for wherever the tool may run as one
// (C-08, C-09, C-12); support is "" where the server takes none.
func (Client20251125) Call(call mcptask.ToolCall, support mcptask.TaskSupport, _ *Retry) (any, error) {
	params := callParams(call)
	asTask := support == mcptask.TaskRequired || support == mcptask.TaskOptional && !call.Plain
	if asTask {
		var metadata wire.TaskMetadata
		if call.TTL > 0 {
			metadata.TTL = milliseconds(call.TTL)
		}
		params["task"] = metadata
	}
	return params, nil
}

// Started implements Client: a result with a task is a CreateTaskResult (T-28).
func (Client20251125) Started(result json.RawMessage) (mcptask.Snapshot, *Retry, error) {
	var created struct {
		Task *wire.Task `json:"task"`
	}
	if err := json.Unmarshal(result, &created); err != nil {
		return mcptask.Snapshot{}, nil, malformed("tools/call", err)
	}
	if created.Task == nil {
		s, err := started(result)
		return s, nil, err
	}
	s, err := snapshot20251125(*created.Task)
	return s, nil, err
}

func snapshot20251125(t wire.Task) (mcptask.Snapshot, error) {
	return newSnapshot(wireTask{t.TaskID, t.Status, t.StatusMessage, t.CreatedAt, t.LastUpdatedAt, t.TTL, t.PollInterval})
}

// Task implements Client. Whether a task that ended has a result, a tool error
// or an error is what tasks/result says, not the status (T-24).
func (Client20251125) Task(ctx context.Context, send Send, taskID string) (mcptask.Snapshot, error) {
	raw, err := send(ctx, wire.MethodTasksGet, wire.GetTaskRequestParams{TaskID: taskID})
	if err != nil {
		return mcptask.Snapshot{}, err
	}
	var t wire.Task
	if err := json.Unmarshal(raw, &t); err != nil {
		return mcptask.Snapshot{}, malformed(wire.MethodTasksGet, err)
	}
	s, err := snapshot20251125(t)
	if err != nil || !s.Done() || s.Status == mcptask.StatusCancelled {
		return s, err
	}
	raw, err = send(ctx, wire.MethodTasksResult, wire.GetTaskPayloadRequestParams{TaskID: taskID})
	return withOutcome(s, raw, err)
}

// Cancel implements Client (C-73).
func (Client20251125) Cancel(ctx context.Context, send Send, taskID string) error {
	_, err := send(ctx, wire.MethodTasksCancel, wire.CancelTaskRequestParams{TaskID: taskID})
	return err
}

// Respond implements Client: questions are requests of their own here.
func (Client20251125) Respond(context.Context, Send, string, map[string]json.RawMessage) error {
	return mcptask.Errorf(mcptask.CodeMethodNotFound, "tasks of 2025-11-25 take no tasks/update")
}
