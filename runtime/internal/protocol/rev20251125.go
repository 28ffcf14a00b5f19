package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	wire "github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/wire20251125"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Server20251125 is the receiver's side of tasks in the core of 2025-11-25.
type Server20251125 struct{}

// Revision implements Server.
func (Server20251125) Revision() string { return mcptask.Revision20251125 }

// Protocol implements Server.
func (Server20251125) Protocol() string { return mcptask.Revision20251125 }

// Negotiate implements Server: the requestor asks for a task by params.task, and the tool's policy
// allows it or not (C-10, C-13, C-15).
func (Server20251125) Negotiate(tool mcptask.ToolSpec, fallback bool, params Params) (taskserver.CallRequest, error) {
	var call taskserver.CallRequest
	if err := CheckParams(params); err != nil {
		return call, err
	}
	if !params.Has("task") {
		return NegotiateWithoutTask(tool, fallback, params, "params.task")
	}
	if tool.Policy.Task == mcptask.TaskForbidden {
		return call, RefuseTask(tool)
	}
	ttl, err := readTTL(params.Get("task"))
	if err != nil {
		return call, err
	}
	key, err := ReadIdempotencyKey(params)
	return taskserver.CallRequest{Mode: taskserver.ModeTask, TTL: ttl, IdempotencyKey: key}, err
}

// NegotiateWithoutTask negotiates a call that does not ask for a task. missing names the member that
// would ask for one.
func NegotiateWithoutTask(tool mcptask.ToolSpec, fallback bool, params Params, missing string) (call taskserver.CallRequest, err error) {
	switch {
	case fallback && tool.Policy.Task != mcptask.TaskForbidden:
		call.Mode = taskserver.ModeFallback
		call.IdempotencyKey, err = ReadIdempotencyKey(params)
	case tool.Policy.Task == mcptask.TaskRequired:
		err = mcptask.Errorf(mcptask.CodeMethodNotFound, "the tool %q must be called as a task: add %s", tool.Name, missing)
	}
	return call, err
}

// RefuseTask makes the error for a call that asks for a task of a tool that never runs as one.
func RefuseTask(tool mcptask.ToolSpec) *mcptask.Error {
	return mcptask.Errorf(mcptask.CodeMethodNotFound, "the tool %q cannot be called as a task", tool.Name)
}

// readTTL reads params.task.ttl. It returns nil if there is none. 0 too leaves the choice to the
// server.
func readTTL(task json.RawMessage) (*time.Duration, error) {
	var members object
	if json.Unmarshal(task, &members) != nil || members == nil {
		return nil, mcptask.Errorf(mcptask.CodeInvalidParams, "params.task is not an object")
	}
	return ReadMilliseconds(members, "ttl", "params.task")
}

// Created implements Server (C-17, C-19, C-20).
func (Server20251125) Created(r taskstore.Record, tool mcptask.ToolSpec) (json.RawMessage, error) {
	meta, err := MakeCreatedMeta(tool)
	if err != nil {
		return nil, err
	}
	return json.Marshal(wire.CreateTaskResult{Meta: meta, Task: ProjectTask20251125(r)})
}

// MakeCreatedMeta makes the _meta of a CreateTaskResult. It has the text for the model, if the tool
// has one.
func MakeCreatedMeta(tool mcptask.ToolSpec) (map[string]json.RawMessage, error) {
	if tool.Policy.Immediate == "" {
		return nil, nil
	}
	quoted, err := json.Marshal(tool.Policy.Immediate)
	return object{spec.MetaModelImmediateResponse: quoted}, err
}

// ProjectTask20251125 projects a record; see ProjectStatus20251125 for the status.
func ProjectTask20251125(r taskstore.Record) wire.Task {
	return wire.Task{
		TaskID:        r.ID,
		Status:        string(ProjectStatus20251125(r)),
		StatusMessage: ShortenMessage(r.StatusMessage),
		CreatedAt:     FormatTime(r.CreatedAt),
		LastUpdatedAt: FormatTime(r.UpdatedAt),
		TTL:           RoundMilliseconds(r.TTL()),
		PollInterval:  RoundMilliseconds(r.Poll),
	}
}

// ProjectStatus20251125 projects phase and outcome. A task that ended with a tool error has failed in
// this revision, but its result is retrieved like any other (C-87, T-24).
func ProjectStatus20251125(r taskstore.Record) mcptask.Status {
	switch {
	case r.Phase == taskstore.PhaseInputRequired:
		return mcptask.StatusInputRequired
	case r.Phase != taskstore.PhaseDone:
		return mcptask.StatusWorking
	case r.Outcome.Kind == taskstore.OutcomeCancelled:
		return mcptask.StatusCancelled
	case r.Outcome.Kind == taskstore.OutcomeError || r.Outcome.IsError:
		return mcptask.StatusFailed
	}
	return mcptask.StatusCompleted
}

// Method implements Server.
func (Server20251125) Method(name string) Method { return Method20251125(name, ProjectTask20251125) }

// Method20251125 returns the handler of a task method, as 2025-11-25 has it, which shows tasks by
// project. It returns nil for any other method.
func Method20251125[T any](name string, project func(taskstore.Record) T) Method {
	switch name {
	case wire.MethodTasksGet:
		return showTask(findTask, project)
	case wire.MethodTasksResult:
		return waitForResult
	case wire.MethodTasksList:
		return func(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params Params) (json.RawMessage, error) {
			meta := listMeta{}
			tasks, next, err := ReadPage(ctx, s, caller, params, func(r taskstore.Record) T {
				meta.add(MetaTool, r.ID, r.Tool)
				meta.add(MetaStale, r.ID, s.Stale(&r))
				return project(r)
			})
			if err != nil {
				return nil, err
			}
			return json.Marshal(struct {
				Meta       listMeta `json:"_meta,omitempty"`
				Tasks      []T      `json:"tasks"`
				NextCursor string   `json:"nextCursor,omitempty"`
			}{meta, tasks, next})
		}
	case wire.MethodTasksCancel:
		return showTask(cancelTask, project)
	}
	return nil
}

// showTask makes a method that shows the task which find returns.
func showTask[T any](find func(context.Context, *taskserver.Backend, taskserver.Caller, Params) (taskstore.Record, error), project func(taskstore.Record) T) Method {
	return func(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params Params) (json.RawMessage, error) {
		r, err := find(ctx, s, caller, params)
		if err != nil {
			return nil, err
		}
		return encodeTask(project(ShowTask(s, caller, r)), r, s.Stale(&r))
	}
}

// Blocks implements Server.
func (Server20251125) Blocks(method string) bool { return method == wire.MethodTasksResult }

// Show implements Teller.
func (Server20251125) Show(_ context.Context, s *taskserver.Backend, caller taskserver.Caller, _ Params, r taskstore.Record) (json.RawMessage, error) {
	return encodeTask(ProjectTask20251125(ShowTask(s, caller, r)), r, s.Stale(&r))
}

// findTask finds the task that the params of a tasks/get name.
func findTask(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params Params) (taskstore.Record, error) {
	id, err := ReadTaskID(params)
	if err != nil {
		return taskstore.Record{}, err
	}
	return s.Get(ctx, caller, id)
}

// waitForResult waits until the task has ended. Then it answers as the call would have, also with an error
// (C-36 to C-41). A cancelled task has no such answer (T-25).
func waitForResult(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params Params) (json.RawMessage, error) {
	id, err := ReadTaskID(params)
	if err != nil {
		return nil, err
	}
	r, err := s.Await(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	AuditRetrieval(ctx, s, caller, r)
	switch r.Outcome.Kind {
	case taskstore.OutcomeError:
		return nil, r.Outcome.Error
	case taskstore.OutcomeCancelled:
		return nil, NewCancelledError(id)
	}
	if err := TakeRoom(ctx, len(r.Outcome.Result)); err != nil {
		return nil, err
	}
	return addRelatedTask(r.Outcome.Result, id)
}

// NewCancelledError makes the error for the result of a task that was cancelled.
func NewCancelledError(taskID string) error {
	err := mcptask.Errorf(mcptask.CodeInternalError, "the task was cancelled")
	err.Data, _ = json.Marshal(map[string]string{"reason": "cancelled", "taskId": taskID}) // strings always marshal
	return err
}

// addRelatedTask adds the related-task metadata to an object's _meta (C-41, C-50).
func addRelatedTask(data json.RawMessage, taskID string) (json.RawMessage, error) {
	return WithMeta(data, Server20251125{}.Related(taskstore.Record{ID: taskID}))
}

// ReadPage reads a page of a tasks/list and projects each task. next is the cursor of the page after
// it, "" if this is the last.
func ReadPage[T any](ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params Params, project func(taskstore.Record) T) (tasks []T, next string, err error) {
	var cursor *string
	if len(params.Raw()) > 0 {
		if cursor, err = readText(params, "cursor"); err != nil {
			return nil, "", err
		}
	}
	var after taskstore.Position
	if cursor != nil {
		if after, err = parseCursor(caller.Principal, *cursor); err != nil {
			return nil, "", err
		}
	}
	records, more, err := s.List(ctx, caller, after)
	if err != nil {
		return nil, "", err
	}
	tasks = []T{}
	for _, r := range records {
		if s.SureNow().Before(r.ExpiresAt) {
			tasks = append(tasks, project(ShowTask(s, caller, r)))
		}
	}
	if more {
		last := records[len(records)-1]
		next = newCursor(caller.Principal, taskstore.Position{CreatedAt: last.CreatedAt, ID: last.ID})
	}
	return tasks, next, nil
}

// cancelTask cancels the task that the params of a tasks/cancel name and returns it. It refuses a
// task that has ended (C-75, C-77).
func cancelTask(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params Params) (taskstore.Record, error) {
	id, err := ReadTaskID(params)
	if err != nil {
		return taskstore.Record{}, err
	}
	r, done, err := s.Cancel(ctx, caller, id)
	if err == nil && done {
		err = mcptask.Errorf(mcptask.CodeInvalidParams, "the task has already ended as %s", ProjectStatus20251125(r))
	}
	return r, err
}

// Asks implements Receiver (C-15).
func (Server20251125) Asks(params Params) bool { return params.Has("task") }

// Receives implements Receiver (C-01, C-02, C-05).
func (Server20251125) Receives(methods ...string) (capabilities json.RawMessage, err error) {
	var requests wire.ClientCapabilitiesTasksRequests
	yes := json.RawMessage("{}")
	for _, method := range methods {
		switch method {
		case wire.MethodSamplingCreateMessage:
			requests.Sampling = &wire.ClientCapabilitiesTasksRequestsSampling{CreateMessage: yes}
		case wire.MethodElicitationCreate:
			requests.Elicitation = &wire.ClientCapabilitiesTasksRequestsElicitation{Create: yes}
		}
	}
	if requests.Sampling == nil && requests.Elicitation == nil {
		return nil, nil
	}
	return json.Marshal(wire.ClientCapabilities{Tasks: &wire.ClientCapabilitiesTasks{List: yes, Cancel: yes, Requests: &requests}})
}

// Declare implements Receiver (E-95).
func (d Server20251125) Declare(params, capabilities json.RawMessage) (json.RawMessage, error) {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(params, &p) != nil || p.ProtocolVersion != d.Protocol() {
		return params, nil
	}
	return EditObject(params, func(o object) error { return AddCapabilities(o, capabilities) })
}

// Check implements Server: the session has negotiated everything.
func (Server20251125) Check(Params) error { return nil }

// InputRequired implements Server: this revision asks by requests of its own.
func (Server20251125) InputRequired(taskserver.CallReply) (json.RawMessage, error) {
	return nil, mcptask.Errorf(mcptask.CodeInternalError, "the questions of the call could not be asked")
}

// CanAsk implements Server.
func (Server20251125) CanAsk(capabilities Params) []string { return readAskable(capabilities) }

// Status implements Teller. The notification has the whole task (C-45) and no related-task metadata
// beside it (C-48).
func (Server20251125) Status(r taskstore.Record) (method string, params json.RawMessage, err error) {
	params, err = encodeTask(ProjectTask20251125(r), r, "")
	return wire.NotificationTasksStatus, params, err
}

// Decorate implements Server: capabilities.tasks in initialize (C-01, C-02) and
// execution.taskSupport in tools/list (C-14).
func (d Server20251125) Decorate(s *taskserver.Backend, caller taskserver.Caller, method string, result json.RawMessage) (json.RawMessage, error) {
	return DecorateSession(d, s, caller, method, result, AddTaskSupport)
}

// AddTaskSupport says in a tool's entry how the tool may be called. An entry of the tool's own that
// says nothing means that the tool is never a task (C-14).
func AddTaskSupport(spec mcptask.ToolSpec, entry object) (err error) {
	var execution wire.ToolExecution
	if spec.Entry != "" && (spec.Policy.Task == mcptask.TaskForbidden || json.Unmarshal(entry["execution"], &execution) == nil && execution.TaskSupport != "") {
		return nil
	}
	entry["execution"], err = json.Marshal(wire.ToolExecution{TaskSupport: string(spec.Policy.Task)})
	return err
}

// DecorateSession is Decorate for revisions in whose sessions each tool's entry says how the tool may
// be called. support writes that into an entry.
func DecorateSession(d Server, s *taskserver.Backend, caller taskserver.Caller, method string, result json.RawMessage, support func(mcptask.ToolSpec, object) error) (json.RawMessage, error) {
	switch method {
	case "tools/call":
		return result, nil
	case "initialize":
		return EditObject(result, func(o object) error { return declareTasks(d, s, caller, o) })
	}
	return EditObject(result, func(o object) error { return editTools(s, o, support) })
}

// declareTasks adds capabilities.tasks to the result of an initialize. Anonymous callers are not
// offered a list, since they cannot be told apart (C-92).
func declareTasks(d Server, s *taskserver.Backend, caller taskserver.Caller, result object) error {
	var version string
	if json.Unmarshal(result["protocolVersion"], &version) != nil || version != d.Protocol() {
		return nil
	}
	var capabilities wire.ServerCapabilities
	joined, err := JoinCapabilities(s, d.Revision())
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
	return AddCapabilities(result, data)
}

// TaskID implements Teller (C-63).
func (Server20251125) TaskID(_ *taskserver.Backend, _ taskserver.Caller, params Params) string {
	id, _ := ReadTaskID(params) // a malformed ID names none
	return id
}

// Question implements Teller (C-15, C-16, C-50, C-62).
func (Server20251125) Question(r taskstore.Record, in taskstore.Input, ttl time.Duration) (json.RawMessage, error) {
	params, err := addRelatedTask(in.Params, r.ID)
	if err != nil || ttl <= 0 {
		return params, err
	}
	return EditObject(params, func(o object) (err error) {
		o["task"], err = json.Marshal(wire.TaskMetadata{TTL: RoundMilliseconds(ttl)})
		return err
	})
}

// Related implements Teller (C-61).
func (Server20251125) Related(r taskstore.Record) map[string]any {
	return map[string]any{spec.MetaRelatedTask: wire.RelatedTaskMetadata{TaskID: r.ID}}
}

// Requestor implements Teller.
func (Server20251125) Requestor(capabilities json.RawMessage) Requestor {
	return NewRequestor20251125(capabilities, IsObject) // C-02
}

// Requestor20251125 has the requests that a client declares to take as tasks. The zero value is for a client that takes
// none.
type Requestor20251125 struct{ elicits, samples, cancels bool }

// NewRequestor20251125 reads the capabilities of a client (C-03, C-04). declares reports whether a
// leaf of them declares something.
func NewRequestor20251125(capabilities json.RawMessage, declares func(json.RawMessage) bool) Requestor20251125 {
	var c wire.ClientCapabilities
	if json.Unmarshal(capabilities, &c) != nil || c.Tasks == nil {
		return Requestor20251125{}
	}
	r := Requestor20251125{cancels: declares(c.Tasks.Cancel)}
	if requests := c.Tasks.Requests; requests != nil {
		r.elicits = requests.Elicitation != nil && declares(requests.Elicitation.Create)
		r.samples = requests.Sampling != nil && declares(requests.Sampling.CreateMessage)
	}
	return r
}

// IsObject reports whether a JSON value is an object.
func IsObject(data json.RawMessage) bool {
	var o object
	return json.Unmarshal(data, &o) == nil && o != nil
}

// Cancels implements Requestor.
func (r Requestor20251125) Cancels() bool { return r.cancels }

// Augments implements Requestor.
func (r Requestor20251125) Augments(method string) bool {
	return method == wire.MethodElicitationCreate && r.elicits || method == wire.MethodSamplingCreateMessage && r.samples
}

// ResultWaits implements Requestor: tasks/result waits for the task's end (C-36).
func (Requestor20251125) ResultWaits() bool { return true }

// Started implements Requestor (C-21).
func (Requestor20251125) Started(result json.RawMessage) (s mcptask.Snapshot, ok bool, err error) {
	var created object
	if json.Unmarshal(result, &created) != nil || !IsObject(created["task"]) {
		return s, false, nil
	}
	s, err = Requestor20251125{}.Task(created["task"])
	return s, true, err
}

// Answer implements Requestor.
func (Requestor20251125) Answer(result json.RawMessage) (json.RawMessage, error) { return result, nil }

// Task implements Requestor.
func (Requestor20251125) Task(result json.RawMessage) (mcptask.Snapshot, error) {
	var t PeerTask
	if err := json.Unmarshal(result, &t); err != nil {
		return mcptask.Snapshot{}, err
	}
	return newSnapshot20251125(t)
}

// Get implements Requestor. Like Result and Cancel, it names the task by its ID alone and has no
// related-task metadata (C-63, C-64).
func (Requestor20251125) Get(taskID string) (method string, params any) {
	return wire.MethodTasksGet, wire.GetTaskRequestParams{TaskID: taskID}
}

// Result implements Requestor.
func (Requestor20251125) Result(taskID string) (method string, params any) {
	return wire.MethodTasksResult, wire.GetTaskPayloadRequestParams{TaskID: taskID}
}

// Cancel implements Requestor (C-73).
func (Requestor20251125) Cancel(taskID string) (method string, params any) {
	return wire.MethodTasksCancel, wire.CancelTaskRequestParams{TaskID: taskID}
}

// Client20251125 is the requestor's side of 2025-11-25.
type Client20251125 struct{}

// Revision implements Client.
func (Client20251125) Revision() string { return mcptask.Revision20251125 }

// Protocol implements Client.
func (Client20251125) Protocol() string { return mcptask.Revision20251125 }

// Takes implements Client (C-02, C-08).
func (Client20251125) Takes(capabilities json.RawMessage) bool {
	return TakesCalls(capabilities, IsObject)
}

// TakesCalls reports whether a server's capabilities have tasks.requests.tools.call. declares reports
// whether a leaf of them declares something.
func TakesCalls(capabilities json.RawMessage, declares func(json.RawMessage) bool) bool {
	var c wire.ServerCapabilities
	if json.Unmarshal(capabilities, &c) != nil || c.Tasks == nil || c.Tasks.Requests == nil || c.Tasks.Requests.Tools == nil {
		return false
	}
	return declares(c.Tasks.Requests.Tools.Call)
}

// Support implements Client (C-08, C-14).
func (Client20251125) Support(tool json.RawMessage, tasks bool) mcptask.TaskSupport {
	var entry struct {
		Execution struct {
			TaskSupport mcptask.TaskSupport `json:"taskSupport"`
		} `json:"execution"`
	}
	if !tasks || json.Unmarshal(tool, &entry) != nil {
		return ""
	}
	return entry.Execution.TaskSupport
}

// Wait implements Waiter (C-51).
func (Client20251125) Wait(taskID string) (method string, params any) {
	return wire.MethodTasksResult, wire.GetTaskPayloadRequestParams{TaskID: taskID}
}

// Call implements Client: it asks for a task if the tool may run as one (C-08, C-09, C-12). support
// is "" if the server takes no calls as tasks.
func (Client20251125) Call(call mcptask.ToolCall, support mcptask.TaskSupport, _ *Retry) (any, error) {
	params := MakeCallParams(call)
	if WantsTask(call, support) {
		var metadata wire.TaskMetadata
		if call.TTL > 0 {
			metadata.TTL = RoundMilliseconds(call.TTL)
		}
		params["task"] = metadata
	}
	return params, nil
}

// WantsTask reports whether a call asks for a task.
func WantsTask(call mcptask.ToolCall, support mcptask.TaskSupport) bool {
	return support == mcptask.TaskRequired || support == mcptask.TaskOptional && !call.Plain
}

// Started implements Client: a result with a task is a CreateTaskResult (T-28).
func (Client20251125) Started(result json.RawMessage) (mcptask.Snapshot, *Retry, error) {
	var created struct {
		Task *PeerTask `json:"task"`
	}
	if err := json.Unmarshal(result, &created); err != nil {
		return mcptask.Snapshot{}, nil, NewMalformedError("tools/call", err)
	}
	if created.Task == nil {
		s, err := ReadStarted(result)
		return s, nil, err
	}
	s, err := newSnapshot20251125(*created.Task)
	return s, nil, err
}

func newSnapshot20251125(t PeerTask) (mcptask.Snapshot, error) {
	return NewSnapshot(t, t.TTL, t.PollInterval)
}

// Task implements Client. The answer to tasks/result, not the status, says whether a task ended with
// a result, a tool error or an error (T-24). But if the status is completed, an error that limits
// requests or is internal is of the request alone: the result is still there.
func (Client20251125) Task(ctx context.Context, send Send, taskID string) (mcptask.Snapshot, error) {
	raw, err := send(ctx, wire.MethodTasksGet, wire.GetTaskRequestParams{TaskID: taskID})
	if err != nil {
		return mcptask.Snapshot{}, err
	}
	var t PeerTask
	if err := json.Unmarshal(raw, &t); err != nil {
		return mcptask.Snapshot{}, NewMalformedError(wire.MethodTasksGet, err)
	}
	s, err := newSnapshot20251125(t)
	if err == nil {
		err = CheckTaskID(s, taskID)
	}
	if err != nil || !s.Done() || s.Status == mcptask.StatusCancelled {
		return s, err
	}
	raw, err = send(ctx, wire.MethodTasksResult, wire.GetTaskPayloadRequestParams{TaskID: taskID})
	var failed *mcptask.Error
	if s.Status == mcptask.StatusCompleted && errors.As(err, &failed) && (failed.Code == mcptask.CodeInternalError || failed.Limit() != "") {
		return mcptask.Snapshot{}, err
	}
	return AddOutcome(s, raw, err)
}

// Cancel implements Client (C-73).
func (Client20251125) Cancel(ctx context.Context, send Send, taskID string) error {
	_, err := send(ctx, wire.MethodTasksCancel, wire.CancelTaskRequestParams{TaskID: taskID})
	return err
}

// List implements Lister (C-71).
func (Client20251125) List(ctx context.Context, send Send, cursor string) (tasks []mcptask.Snapshot, next string, err error) {
	params := map[string]string{}
	if cursor != "" {
		params["cursor"] = cursor
	}
	raw, err := send(ctx, wire.MethodTasksList, params)
	if err != nil {
		return nil, "", err
	}
	var page struct {
		Meta       json.RawMessage `json:"_meta"`
		Tasks      []PeerTask      `json:"tasks"`
		NextCursor string          `json:"nextCursor"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, "", NewMalformedError(wire.MethodTasksList, err)
	}
	meta := readListMeta(page.Meta)
	for _, t := range page.Tasks {
		s, err := newSnapshot20251125(t)
		if err != nil {
			return nil, "", err
		}
		s.Tool, s.Stale = meta[MetaTool][s.TaskID], meta[MetaStale][s.TaskID]
		tasks = append(tasks, s)
	}
	return tasks, page.NextCursor, nil
}

// Respond implements Client: questions are requests of their own here.
func (Client20251125) Respond(context.Context, Send, string, map[string]json.RawMessage) error {
	return mcptask.Errorf(mcptask.CodeMethodNotFound, "tasks of 2025-11-25 take no tasks/update")
}
