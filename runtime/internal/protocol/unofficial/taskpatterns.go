package unofficial

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	wire "github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial/wiretaskpatterns"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// ServerTaskPatterns is the receiver's side of tasks as the Task Patterns guide has them. It is spoken in the sessions
// of other revisions, by requests that show it, and declares the capabilities of 2025-11-25 (D-01).
type ServerTaskPatterns struct{ protocol.Server20251125 }

// Revision implements Server.
func (ServerTaskPatterns) Revision() string { return mcptask.RevisionTaskPatterns }

// Signals reports whether a request is of the guide. A call gives its task an ID, whatever that
// is, and does not ask for a task of 2025-11-25. A task method names its task by params.id alone.
func (ServerTaskPatterns) Signals(_ *taskserver.Backend, _ taskserver.Caller, method string, params protocol.Params) bool {
	switch method {
	case "tools/call":
		return ServerTaskPatterns{}.Asks(params) && !params.Has("task")
	case wire.MethodTasksGet, wire.MethodTasksResult, wire.MethodTasksCancel:
		return params.Has("id") && !params.Has("taskId")
	}
	return false
}

// Asks implements Receiver (D-05).
func (ServerTaskPatterns) Asks(params protocol.Params) bool {
	return params.Has("_meta", wire.MetaTaskID)
}

// Negotiate implements Server: the requestor asks for a task by giving it an ID. A repeated call finds
// the task by that ID (D-05, D-18). The gateway binds the key to the caller's account.
func (ServerTaskPatterns) Negotiate(tool mcptask.ToolSpec, fallback bool, params protocol.Params) (taskserver.CallRequest, error) {
	var call taskserver.CallRequest
	if err := protocol.CheckParams(params); err != nil {
		return call, err
	}
	raw := params.Get("_meta", wire.MetaTaskID)
	if raw == nil {
		return protocol.NegotiateWithoutTask(tool, fallback, params, "params._meta.taskId")
	}
	if tool.Policy.Task == mcptask.TaskForbidden {
		return call, protocol.RefuseTask(tool)
	}
	var id *string
	const longest = 256
	if json.Unmarshal(raw, &id) != nil || id == nil || *id == "" || len(*id) > longest || strings.ContainsFunc(*id, unicode.IsControl) {
		return call, mcptask.Errorf(mcptask.CodeInvalidParams, "params._meta.taskId is not a string of 1 to %d bytes without control characters", longest)
	}
	return taskserver.CallRequest{Mode: taskserver.ModeTask, ExternalID: *id, IdempotencyKey: *id}, nil
}

// Created implements Server (D-06 to D-08).
func (ServerTaskPatterns) Created(r taskstore.Record, _ mcptask.ToolSpec) (json.RawMessage, error) {
	t := projectTaskPatterns(r, nameTask(r))
	ttl := int64((r.TTL() + time.Second - 1) / time.Second) // rounded up, so that the task is there for as long as it says
	task, err := json.Marshal(wire.Task{
		ID: t.ID, Status: t.Status, CreatedAt: t.CreatedAt, LastUpdatedAt: t.LastUpdatedAt, PollInterval: t.PollInterval, TTL: &ttl,
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(wire.CreateTaskResult{Meta: object{wire.MetaTask: task}})
}

// projectTaskPatterns projects a record under a name, without its result (D-11). A task with a tool
// error has completed. Only a JSON-RPC error makes it fail.
func projectTaskPatterns(r taskstore.Record, name string) wire.GetTaskResult {
	t := wire.GetTaskResult{
		ID:            name,
		Status:        string(projectStatusTaskPatterns(r)),
		CreatedAt:     protocol.FormatTime(r.CreatedAt),
		LastUpdatedAt: protocol.FormatTime(r.UpdatedAt),
		PollInterval:  protocol.RoundMilliseconds(r.Poll),
	}
	if t.Status == string(mcptask.StatusFailed) {
		t.Error = &wire.TaskError{Code: &r.Outcome.Error.Code, Message: r.Outcome.Error.Message}
	}
	return t
}

// projectStatusTaskPatterns projects phase and outcome.
func projectStatusTaskPatterns(r taskstore.Record) mcptask.Status {
	switch {
	case r.Phase == taskstore.PhaseInputRequired:
		return mcptask.StatusInputRequired
	case r.Phase != taskstore.PhaseDone:
		return mcptask.StatusWorking
	case r.Outcome.Kind == taskstore.OutcomeCancelled || endedByRefusal(r):
		return mcptask.StatusCancelled
	case r.Outcome.Kind == taskstore.OutcomeError:
		return mcptask.StatusFailed
	}
	return mcptask.StatusCompleted
}

// endedByRefusal reports whether a task ended because its user refused (D-16). The last answer to it
// is a refusal then, and its tool error says so, because the handler returned mcptask.ErrDeclined,
// wrapped or not. A handler may also go on without the answer, or fail for another reason.
func endedByRefusal(r taskstore.Record) bool {
	if !r.Outcome.IsError || !strings.Contains(r.StatusMessage, mcptask.ErrDeclined.Error()) {
		return false
	}
	var last struct {
		Action string `json:"action"`
	}
	for _, in := range r.Inputs {
		if in.State == taskstore.InputAnswered {
			last.Action = ""
			_ = json.Unmarshal(in.Response, &last) // an answer of another kind has no action
		}
	}
	return last.Action == "decline"
}

// Method implements Server.
func (d ServerTaskPatterns) Method(name string) protocol.Method {
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

// Blocks implements Server: a task that has not ended has no result yet.
func (ServerTaskPatterns) Blocks(string) bool { return false }

// readName reads params.id (D-10).
func readName(params protocol.Params) (string, error) {
	if err := protocol.CheckParams(params); err != nil {
		return "", err
	}
	id, ok := params.Text("id")
	if !ok {
		return "", mcptask.Errorf(mcptask.CodeInvalidParams, "params.id is missing, or not a string")
	}
	return id, nil
}

// TaskID implements Teller: the caller's own name for a task goes first.
func (ServerTaskPatterns) TaskID(s *taskserver.Backend, caller taskserver.Caller, params protocol.Params) string {
	name, err := readName(params)
	if err != nil { // a malformed name names none
		return ""
	}
	return resolveTaskID(s, caller, name)
}

// find reads the task that params.id names, for its owner only (D-15, D-20).
func (d ServerTaskPatterns) find(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params protocol.Params) (r taskstore.Record, name string, err error) {
	if name, err = readName(params); err != nil {
		return r, "", err
	}
	r, err = s.Get(ctx, caller, resolveTaskID(s, caller, name))
	return r, name, err
}

func (d ServerTaskPatterns) get(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params protocol.Params) (json.RawMessage, error) {
	r, _, err := d.find(ctx, s, caller, params)
	if err != nil {
		return nil, err
	}
	return d.Show(ctx, s, caller, params, r)
}

// Show implements Teller, under the name that was asked for. The result comes
// along, as the guide shows it.
func (ServerTaskPatterns) Show(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params protocol.Params, r taskstore.Record) (json.RawMessage, error) {
	name, err := readName(params)
	if err != nil {
		return nil, err
	}
	t := projectTaskPatterns(r, name)
	if t.Status == string(mcptask.StatusCompleted) {
		t.Result = r.Outcome.Result
	}
	if r.Done() {
		protocol.AuditRetrieval(ctx, s, caller, r)
	}
	return json.Marshal(t)
}

// result wraps the result or the error of a task (D-12, D-13). It refuses a task that has not ended or was cancelled.
func (d ServerTaskPatterns) result(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params protocol.Params) (json.RawMessage, error) {
	r, name, err := d.find(ctx, s, caller, params)
	if err != nil {
		return nil, err
	}
	t := projectTaskPatterns(r, name)
	switch mcptask.Status(t.Status) {
	case mcptask.StatusCompleted:
		t.Result = r.Outcome.Result
	case mcptask.StatusFailed:
	case mcptask.StatusCancelled:
		return nil, mcptask.Errorf(mcptask.CodeInvalidParams, "the task was cancelled: it has no result")
	default:
		return nil, mcptask.Errorf(mcptask.CodeInvalidParams, "the task has not ended: it is %s", t.Status)
	}
	protocol.AuditRetrieval(ctx, s, caller, r)
	return json.Marshal(wire.GetTaskPayloadResult{ID: t.ID, Status: t.Status, Result: t.Result, Error: t.Error})
}

// mostListed bounds a list, since lists have no pages in the guide.
const mostListed = 1000

// list returns the newest of the caller's tasks, without their results, in the order of their creation. The guide does
// not define the form of a list or its length.
func (ServerTaskPatterns) list(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, _ protocol.Params) (json.RawMessage, error) {
	var newest []taskstore.Record
	var after taskstore.Position
	for more := true; more; {
		var page []taskstore.Record
		var err error
		if page, more, err = s.List(ctx, caller, after); err != nil {
			return nil, err
		}
		for _, r := range page {
			if s.SureNow().Before(r.ExpiresAt) {
				newest = append(newest, r)
			}
			after = taskstore.Position{CreatedAt: r.CreatedAt, ID: r.ID}
		}
		newest = newest[max(0, len(newest)-mostListed):]
	}
	result := wire.ListTasksResult{Tasks: make([]wire.GetTaskResult, 0, len(newest))}
	ends := endReader{server: s, caller: caller}
	for _, r := range newest {
		result.Tasks = append(result.Tasks, projectTaskPatterns(ends.read(ctx, r), nameTaskFor(caller, r)))
	}
	return json.Marshal(result)
}

// cancel cancels a task and answers then. It refuses a task that has ended (D-09, D-14).
func (d ServerTaskPatterns) cancel(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params protocol.Params) (json.RawMessage, error) {
	name, err := readName(params)
	if err != nil {
		return nil, err
	}
	r, done, err := s.Cancel(ctx, caller, resolveTaskID(s, caller, name))
	if err != nil {
		return nil, err
	}
	if done {
		return nil, mcptask.Errorf(mcptask.CodeInvalidParams, "the task has already ended as %s", projectStatusTaskPatterns(r))
	}
	return json.Marshal(wire.CancelTaskResult{ID: name, Status: string(projectStatusTaskPatterns(r))})
}

// Decorate implements Server (D-01): it adds the members that 2025-11-25 adds, in sessions of that revision.
func (d ServerTaskPatterns) Decorate(s *taskserver.Backend, caller taskserver.Caller, method string, result json.RawMessage) (json.RawMessage, error) {
	return protocol.DecorateSession(d, s, caller, method, result, protocol.AddTaskSupport)
}

// Question implements Teller: a task's question looks like any other. With a ttl it asks for a task,
// under an ID that the same question always gets (D-25).
func (ServerTaskPatterns) Question(r taskstore.Record, in taskstore.Input, ttl time.Duration) (json.RawMessage, error) {
	if ttl <= 0 {
		return in.Params, nil
	}
	return protocol.EditObject(in.Params, func(o object) (err error) {
		meta := readMembers(o["_meta"])
		if meta == nil {
			meta = object{}
		}
		if meta[wire.MetaTaskID], err = json.Marshal(makeTaskID(r.ID, in.Key)); err != nil {
			return err
		}
		o["_meta"], err = json.Marshal(meta)
		return err
	})
}

// Status implements Teller: there is no such notification.
func (ServerTaskPatterns) Status(taskstore.Record) (method string, params json.RawMessage, err error) {
	return "", nil, nil
}

// Related implements Teller: nothing names its task in metadata.
func (ServerTaskPatterns) Related(taskstore.Record) map[string]any { return nil }

// Requestor implements Teller.
func (ServerTaskPatterns) Requestor(capabilities json.RawMessage) protocol.Requestor {
	return requestorTaskPatterns{protocol.NewRequestor20251125(capabilities, protocol.IsObject)}
}

// requestorTaskPatterns has the requests that a client declares to take as tasks. Clients declare it as in 2025-11-25.
type requestorTaskPatterns struct{ protocol.Requestor20251125 }

// ResultWaits implements protocol.Requestor: only a task that has ended has a result.
func (requestorTaskPatterns) ResultWaits() bool { return false }

// Started implements Requestor.
func (d requestorTaskPatterns) Started(result json.RawMessage) (s mcptask.Snapshot, ok bool, err error) {
	task := readMembers(readMembers(result)["_meta"])[wire.MetaTask]
	if !protocol.IsObject(task) {
		return s, false, nil
	}
	s, err = d.Task(task)
	return s, true, err
}

// Task implements Requestor.
func (requestorTaskPatterns) Task(result json.RawMessage) (mcptask.Snapshot, error) {
	return readSnapshotTaskPatterns(wire.MethodTasksGet, result)
}

// Answer implements Requestor.
func (requestorTaskPatterns) Answer(result json.RawMessage) (json.RawMessage, error) {
	return readWrapped(result)
}

// Get implements Requestor.
func (requestorTaskPatterns) Get(taskID string) (method string, params any) {
	return wire.MethodTasksGet, wire.GetTaskRequestParams{ID: taskID}
}

// Result implements Requestor.
func (requestorTaskPatterns) Result(taskID string) (method string, params any) {
	return wire.MethodTasksResult, wire.GetTaskPayloadRequestParams{ID: taskID}
}

// Cancel implements Requestor.
func (requestorTaskPatterns) Cancel(taskID string) (method string, params any) {
	return wire.MethodTasksCancel, wire.CancelTaskRequestParams{ID: taskID}
}

// peerTaskPatterns is a task as peers of the guide write it.
type peerTaskPatterns struct {
	protocol.PeerTask

	ID string `json:"id"`
}

// readSnapshotTaskPatterns reads a task, whose ttl is in seconds.
func readSnapshotTaskPatterns(method string, raw json.RawMessage) (mcptask.Snapshot, error) {
	var t peerTaskPatterns
	if err := json.Unmarshal(raw, &t); err != nil {
		return mcptask.Snapshot{}, protocol.NewMalformedError(method, err)
	}
	t.TaskID = t.ID
	t.TTL.N *= 1000 // it has 53 bits
	return protocol.NewSnapshot(t.PeerTask, t.TTL, t.PollInterval)
}

// readWrapped reads the content of an answer to tasks/result: a result, or the error that the request ended with.
func readWrapped(raw json.RawMessage) (json.RawMessage, error) {
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *wire.TaskError `json:"error"`
	}
	switch err := json.Unmarshal(raw, &answer); {
	case err != nil:
		return nil, protocol.NewMalformedError(wire.MethodTasksResult, err)
	case answer.Error != nil:
		code := mcptask.CodeInternalError
		if answer.Error.Code != nil {
			code = *answer.Error.Code
		}
		return nil, &mcptask.Error{Code: code, Message: answer.Error.Message}
	case !protocol.IsObject(answer.Result):
		return nil, protocol.NewMalformedError(wire.MethodTasksResult, errors.New("neither a result nor an error"))
	}
	return answer.Result, nil
}

// ClientTaskPatterns is the requestor's side of the guide's tasks.
type ClientTaskPatterns struct{}

// Revision implements Client.
func (ClientTaskPatterns) Revision() string { return mcptask.RevisionTaskPatterns }

// Protocol implements Client: the guide uses the protocol version of 2025-11-25.
func (ClientTaskPatterns) Protocol() string { return mcptask.Revision20251125 }

// Takes implements Client (D-01).
func (ClientTaskPatterns) Takes(capabilities json.RawMessage) bool {
	return protocol.Client20251125{}.Takes(capabilities)
}

// Support implements Client (D-02 to D-04).
func (ClientTaskPatterns) Support(tool json.RawMessage, tasks bool) mcptask.TaskSupport {
	return protocol.Client20251125{}.Support(tool, tasks)
}

// Call implements Client: it asks for a task, by an ID for it, if the tool may run as one (D-02 to
// D-05). If the call has an idempotency key, the ID is made from it.
func (ClientTaskPatterns) Call(call mcptask.ToolCall, support mcptask.TaskSupport, _ *protocol.Retry) (any, error) {
	params := protocol.MakeCallParams(call)
	if protocol.WantsTask(call, support) {
		id := rand.Text()
		if call.IdempotencyKey != "" {
			id = makeTaskID(call.Tool, call.IdempotencyKey)
		}
		params["_meta"] = map[string]any{wire.MetaTaskID: id}
	}
	return params, nil
}

// Started implements Client: _meta.task tells of a task.
func (ClientTaskPatterns) Started(result json.RawMessage) (mcptask.Snapshot, *protocol.Retry, error) {
	if !protocol.IsObject(result) {
		return mcptask.Snapshot{}, nil, protocol.NewMalformedError("tools/call", errors.New("the result is no object"))
	}
	s, ok, err := requestorTaskPatterns{}.Started(result)
	if !ok {
		s, err = protocol.ReadStarted(result)
	}
	return s, nil, err
}

// ResultKind implements Client: results have no type here.
func (ClientTaskPatterns) ResultKind(string, json.RawMessage) error { return nil }

// Task implements Client: tasks/result says how a task ended.
func (ClientTaskPatterns) Task(ctx context.Context, send protocol.Send, taskID string) (mcptask.Snapshot, error) {
	raw, err := send(ctx, wire.MethodTasksGet, wire.GetTaskRequestParams{ID: taskID})
	if err != nil {
		return mcptask.Snapshot{}, err
	}
	s, err := readSnapshotTaskPatterns(wire.MethodTasksGet, raw)
	if err == nil {
		err = protocol.CheckTaskID(s, taskID)
	}
	if err != nil || !s.Done() || s.Status == mcptask.StatusCancelled {
		return s, err
	}
	if raw, err = send(ctx, wire.MethodTasksResult, wire.GetTaskPayloadRequestParams{ID: taskID}); err != nil {
		return s, err
	}
	raw, err = readWrapped(raw)
	return protocol.AddOutcome(s, raw, err)
}

// Cancel implements Client.
func (ClientTaskPatterns) Cancel(ctx context.Context, send protocol.Send, taskID string) error {
	_, err := send(ctx, wire.MethodTasksCancel, wire.CancelTaskRequestParams{ID: taskID})
	return err
}

// Respond implements Client: questions are requests of their own here.
func (ClientTaskPatterns) Respond(context.Context, protocol.Send, string, map[string]json.RawMessage) error {
	return mcptask.Errorf(mcptask.CodeMethodNotFound, "tasks of the guide take no tasks/update")
}
