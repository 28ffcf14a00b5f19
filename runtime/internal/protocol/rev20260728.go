package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	wire "github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/wire20260728"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Server20260728 is the receiver's side of the tasks extension on 2026-07-28.
type Server20260728 struct{}

// Revision implements Server.
func (Server20260728) Revision() string { return mcptask.Revision20260728 }

// Protocol implements Server.
func (Server20260728) Protocol() string { return mcptask.Revision20260728 }

// Negotiate implements Server: the server decides. The client only declares that it can take a task
// (E-03 to E-05). A legacy params.task means nothing (E-94).
func (Server20260728) Negotiate(tool mcptask.ToolSpec, fallback bool, params Params) (taskserver.CallRequest, error) {
	call := taskserver.CallRequest{Retry: true}
	extension, err := declaresTasks(params)
	if err != nil {
		return call, err
	}
	if err := readRetry(tool, params, &call); err != nil {
		return call, err
	}
	call.Mode = taskserver.ModeGrace
	switch {
	case tool.Policy.Task == mcptask.TaskForbidden:
		call.Mode = taskserver.ModePlain
		return call, nil
	case call.Task != "": // the task is hidden from the client
		call.Mode = taskserver.ModeFallback
		return call, nil
	case !extension && fallback:
		call.Mode = taskserver.ModeFallback
	case !extension && tool.Policy.Task == mcptask.TaskRequired:
		return call, refuseExtension()
	case !extension:
		call.Mode = taskserver.ModePlain
	}
	call.IdempotencyKey, err = ReadIdempotencyKey(params)
	return call, err
}

// stateTask is the member of a state that names the task of a call. No answer in a state has this key:
// the keys of questions that come before a task begin with "before/".
const stateTask = "task"

// readRetry reads into call the extra params of a repeated call: the answers of this round, and the state that
// InputRequired made. The state has the answers of earlier rounds, or names the task that asks. If the tool cannot have
// asked, a malformed param is no error. The call still gets the answers, because a fallback tool may stand for a tool
// that asks.
func readRetry(tool mcptask.ToolSpec, params Params, call *taskserver.CallRequest) error {
	takesTasks, asksFirst := tool.Policy.Task != mcptask.TaskForbidden, len(tool.Questions) > 0
	state, err := readText(params, "requestState")
	answers := object{}
	if err == nil && state != nil && *state != "" && json.Unmarshal([]byte(*state), &answers) != nil {
		err = mcptask.Errorf(mcptask.CodeInvalidParams, "params.requestState is not what the server has sent")
	}
	if err != nil && (takesTasks || asksFirst) {
		return err
	}
	if raw, ok := answers[stateTask]; ok && takesTasks {
		if json.Unmarshal(raw, &call.Task) != nil || call.Task == "" {
			return mcptask.Errorf(mcptask.CodeInvalidParams, "params.requestState names no task: it is not what the server has sent")
		}
	}
	delete(answers, stateTask)
	responses, err := readInputResponses(params)
	if err != nil && (call.Task != "" || asksFirst) {
		return err
	}
	call.Answers = responses
	if len(answers) > 0 {
		maps.Copy(answers, responses)
		call.Answers = answers
	}
	return nil
}

// readInputResponses reads the answers that come with a call or an update.
func readInputResponses(params Params) (map[string]json.RawMessage, error) {
	return readMembers(params, "inputResponses")
}

// declaresTasks reports whether the request itself declares the extension (E-02, E-91).
func declaresTasks(params Params) (bool, error) {
	path := []string{"_meta", spec.MetaClientCapabilities, "extensions", spec.ExtensionTasks}
	_, err := ReadValue(params, path...)
	return err == nil && params.Object(path...).IsObject(), err
}

// refuseExtension makes the error for a request that does not declare the extension (E-08, E-09,
// E-77).
func refuseExtension() *mcptask.Error {
	err := mcptask.Errorf(spec.CodeMissingClientCapability, "the client must declare the extension %s", spec.ExtensionTasks)
	err.Data, _ = json.Marshal(wire.MissingRequiredClientCapabilityErrorData{ // plain strings always marshal
		RequiredCapabilities: wire.ClientCapabilities{Extensions: object{spec.ExtensionTasks: json.RawMessage("{}")}},
	})
	return err
}

// Created implements Server. The answer is flat and has nothing of the outcome (E-11, EX-01).
func (Server20260728) Created(r taskstore.Record, _ mcptask.ToolSpec) (json.RawMessage, error) {
	t := projectTask20260728(r)
	return json.Marshal(wire.CreateTaskResult{
		ResultType: wire.ResultTypeTask, TaskID: t.TaskID, Status: t.Status, StatusMessage: t.StatusMessage,
		CreatedAt: t.CreatedAt, LastUpdatedAt: t.LastUpdatedAt, TTLMs: t.TTLMs, PollIntervalMs: t.PollIntervalMs,
	})
}

// projectTask20260728 projects a record to the variant of its status (E-29 to E-35). A task with a
// tool error has completed (E-83, T-40). Only a JSON-RPC error makes it fail (E-82).
func projectTask20260728(r taskstore.Record) wire.GetTaskResult {
	t := wire.GetTaskResult{
		ResultType:     wire.ResultTypeComplete,
		TaskID:         r.ID,
		Status:         string(mcptask.StatusWorking),
		StatusMessage:  ShortenMessage(r.StatusMessage),
		CreatedAt:      FormatTime(r.CreatedAt),
		LastUpdatedAt:  FormatTime(r.UpdatedAt),
		TTLMs:          RoundMilliseconds(r.TTL()),
		PollIntervalMs: RoundMilliseconds(r.Poll),
	}
	switch {
	case r.Phase == taskstore.PhaseInputRequired:
		t.Status = string(mcptask.StatusInputRequired)
		t.InputRequests = makeInputRequests(r.Outstanding())
	case r.Phase != taskstore.PhaseDone:
	case r.Outcome.Kind == taskstore.OutcomeCancelled:
		t.Status = string(mcptask.StatusCancelled)
	case r.Outcome.Kind == taskstore.OutcomeError:
		t.Status = string(mcptask.StatusFailed)
		t.Error = &wire.Error{Code: r.Outcome.Error.Code, Message: r.Outcome.Error.Message, Data: r.Outcome.Error.Data}
	default:
		t.Status = string(mcptask.StatusCompleted)
		t.Result = r.Outcome.Result
	}
	return t
}

// Method implements Server.
func (d Server20260728) Method(name string) Method {
	switch name {
	case wire.MethodTasksGet:
		return d.get
	case wire.MethodTasksUpdate:
		return d.update
	case wire.MethodTasksCancel:
		return d.cancel
	}
	return nil
}

// Blocks implements Server.
func (Server20260728) Blocks(string) bool { return false }

func (Server20260728) get(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params Params) (json.RawMessage, error) {
	id, err := ReadTaskID(params)
	if err != nil {
		return nil, err
	}
	r, err := s.Get(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	t, err := projectVisible20260728(ctx, s, caller, r)
	if err != nil {
		return nil, err
	}
	t.Meta = addServerInfo(ctx, t.Meta)
	return json.Marshal(t)
}

// projectVisible20260728 projects the whole state of a task as a caller may see it.
func projectVisible20260728(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, r taskstore.Record) (t wire.GetTaskResult, err error) {
	r = ShowTask(s, caller, r)
	t = projectTask20260728(r)
	t.Meta = taskMeta(r, s.Stale(&r))
	if t.InputRequests != nil { // who reads may be able to do less than who called (T-38)
		t.InputRequests = makeInputRequests(slices.DeleteFunc(r.Outstanding(), func(in taskstore.Input) bool { return !caller.Answers(in.Request) }))
	}
	if r.Done() {
		AuditRetrieval(ctx, s, caller, r)
	}
	if t.Result != nil {
		if err = TakeRoom(ctx, len(t.Result)); err == nil {
			t.Result, err = addMember(t.Result, "resultType", complete)
		}
	}
	return t, err
}

// complete is the resultType of a final result, as every result of this revision is (E-13, T-37).
var complete = json.RawMessage(`"` + wire.ResultTypeComplete + `"`)

// update takes answers and acknowledges them (E-46, E-52). It ignores values under keys that are not
// outstanding, whatever they are (T-31).
func (Server20260728) update(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params Params) (json.RawMessage, error) {
	id, err := ReadTaskID(params)
	if err != nil {
		return nil, err
	}
	responses, err := readInputResponses(params)
	if err != nil {
		return nil, err
	}
	for _, response := range responses {
		if most := s.Options().Limits.Arguments; len(response) > most {
			return nil, s.Limited(ctx, caller, "arguments", most)
		}
	}
	if responses == nil {
		return nil, mcptask.Errorf(mcptask.CodeInvalidParams, "params.inputResponses is missing")
	}
	if err := s.Answer(ctx, caller, id, responses); err != nil {
		return nil, err
	}
	return json.Marshal(wire.UpdateTaskResult{Meta: addServerInfo(ctx, nil), ResultType: wire.ResultTypeComplete})
}

// cancel acknowledges, also if the task has ended (E-54, E-58, EX-04).
func (Server20260728) cancel(ctx context.Context, s *taskserver.Backend, caller taskserver.Caller, params Params) (json.RawMessage, error) {
	id, err := ReadTaskID(params)
	if err != nil {
		return nil, err
	}
	if err := s.Stop(ctx, caller, id); err != nil {
		return nil, err
	}
	return json.Marshal(wire.CancelTaskResult{Meta: addServerInfo(ctx, nil), ResultType: wire.ResultTypeComplete})
}

// Check implements Server: each request has to declare the extension (E-77).
func (Server20260728) Check(params Params) error {
	declared, err := declaresTasks(params)
	if err == nil && !declared {
		return refuseExtension()
	}
	return err
}

// CanAsk implements Server (T-38).
func (Server20260728) CanAsk(capabilities Params) []string { return readAskable(capabilities) }

// InputRequired implements Server: the client calls again with the answers. The questions come before
// the task (E-24, EX-13), or from a task that is hidden from the client, which the state names.
func (Server20260728) InputRequired(reply taskserver.CallReply) (json.RawMessage, error) {
	result := wire.InputRequiredResult{ResultType: resultTypeInputRequired, InputRequests: makeInputRequests(reply.Questions)}
	switch {
	case reply.Task != nil: // the next call checks that the caller owns it
		state, err := json.Marshal(map[string]string{stateTask: reply.Task.ID})
		if err != nil {
			return nil, err
		}
		result.RequestState = string(state)
	case len(reply.Answered) > 0:
		// The answers so far come back with the next ones and are checked like them, so
		// changing them gains nothing.
		answers := object{}
		for _, in := range reply.Answered {
			answers[in.Key] = in.Response
		}
		state, err := json.Marshal(answers)
		if err != nil {
			return nil, err
		}
		result.RequestState = string(state)
	}
	return json.Marshal(result)
}

func makeInputRequests(questions []taskstore.Input) wire.InputRequests {
	requests := wire.InputRequests{}
	for _, in := range questions {
		requests[in.Key] = wire.InputRequest{Method: in.Method, Params: in.Params}
	}
	return requests
}

// Decorate implements Server: server/discover declares the extension (E-01), never
// capabilities.tasks (E-95). tools/list says nothing of tasks.
func (d Server20260728) Decorate(s *taskserver.Backend, _ taskserver.Caller, method string, result json.RawMessage) (json.RawMessage, error) {
	return EditObject(result, func(o object) error {
		if o["resultType"] == nil {
			o["resultType"] = complete
		}
		switch method {
		case spec.Discover:
		case "tools/list":
			return RestoreEntries(s, o)
		default:
			return nil
		}
		joined, err := JoinCapabilities(s, d.Revision())
		if err != nil || joined == nil {
			return err
		}
		return AddCapabilities(o, joined)
	})
}

// Client20260728 is the requestor's side of 2026-07-28.
type Client20260728 struct {
	// Capabilities are the client's capabilities beside the extension.
	Capabilities map[string]any
}

// Revision implements Client.
func (Client20260728) Revision() string { return mcptask.Revision20260728 }

// Protocol implements Client.
func (Client20260728) Protocol() string { return mcptask.Revision20260728 }

// Takes implements Client: each request declares the extension by itself (E-95).
func (Client20260728) Takes(json.RawMessage) bool { return false }

// Support implements Client: tools do not say how they may be called (E-04).
func (Client20260728) Support(json.RawMessage, bool) mcptask.TaskSupport { return "" }

// Call implements Client. A plain call does not declare the extension, which is the only way to
// avoid a task (E-04).
func (c Client20260728) Call(call mcptask.ToolCall, _ mcptask.TaskSupport, retry *Retry) (any, error) {
	params := MakeCallParams(call)
	if retry != nil {
		params["inputResponses"] = retry.Responses
		if retry.State != "" {
			params["requestState"] = retry.State
		}
	}
	if call.Plain {
		meta, ok := params["_meta"].(map[string]any)
		if !ok {
			meta = map[string]any{}
			params["_meta"] = meta
		}
		capabilities := c.Capabilities
		if capabilities == nil {
			capabilities = map[string]any{}
		}
		meta[spec.MetaClientCapabilities] = capabilities
	}
	return params, nil
}

// Started implements Client: resultType tells a task from a result (E-14, T-35).
func (Client20260728) Started(result json.RawMessage) (mcptask.Snapshot, *Retry, error) {
	var created PeerTask
	var kind struct {
		ResultType string `json:"resultType"`
	}
	if err := json.Unmarshal(result, &kind); err != nil {
		return mcptask.Snapshot{}, nil, NewMalformedError("tools/call", err)
	}
	switch kind.ResultType {
	case "", wire.ResultTypeComplete:
		s, err := ReadStarted(result)
		return s, nil, err
	case resultTypeInputRequired:
		return readInputRequired(result)
	case wire.ResultTypeTask:
	default:
		return mcptask.Snapshot{}, nil, NewMalformedError("tools/call", fmt.Errorf("a result of type %q", kind.ResultType))
	}
	if err := json.Unmarshal(result, &created); err != nil {
		return mcptask.Snapshot{}, nil, NewMalformedError("tools/call", err)
	}
	s, err := NewSnapshot(created, created.TTLMs, created.PollIntervalMs)
	return s, nil, err
}

// readInputRequired reads the questions that come before a call is taken (E-24).
func readInputRequired(result json.RawMessage) (s mcptask.Snapshot, retry *Retry, err error) {
	var r wire.InputRequiredResult
	if err := json.Unmarshal(result, &r); err != nil {
		return s, nil, NewMalformedError("tools/call", err)
	}
	s.Status = mcptask.StatusInputRequired
	s.Questions, err = readQuestions("", r.InputRequests)
	return s, &Retry{State: r.RequestState, Responses: map[string]json.RawMessage{}}, err
}

// readQuestions reads inputRequests, in the order of their keys.
func readQuestions(taskID string, requests wire.InputRequests) ([]mcptask.Question, error) {
	var list []mcptask.Question
	for key, request := range requests {
		q, err := mcptask.NewQuestion(taskID, key, request.Method, request.Params)
		if err != nil {
			return nil, NewMalformedError(request.Method, err)
		}
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b mcptask.Question) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}

// Task implements Client: the outcome and the questions come with the status.
func (Client20260728) Task(ctx context.Context, send Send, taskID string) (mcptask.Snapshot, error) {
	raw, err := send(ctx, wire.MethodTasksGet, wire.GetTaskRequestParams{TaskID: taskID})
	if err != nil {
		return mcptask.Snapshot{}, err
	}
	s, err := readSnapshot20260728(wire.MethodTasksGet, raw)
	if err == nil {
		err = CheckTaskID(s, taskID)
	}
	return s, err
}

// readSnapshot20260728 reads a whole task, as tasks/get and notifications have it
// (E-65).
func readSnapshot20260728(method string, raw json.RawMessage) (mcptask.Snapshot, error) {
	var t PeerTask
	if err := json.Unmarshal(raw, &t); err != nil {
		return mcptask.Snapshot{}, NewMalformedError(method, err)
	}
	s, err := NewSnapshot(t, t.TTLMs, t.PollIntervalMs)
	if err != nil {
		return s, err
	}
	switch s.Status {
	case mcptask.StatusInputRequired:
		s.Questions, err = readQuestions(t.TaskID, t.InputRequests)
		return s, err
	case mcptask.StatusCompleted:
		return AddOutcome(s, t.Result, nil)
	case mcptask.StatusFailed:
		if t.Error == nil {
			return s, NewMalformedError(method, fmt.Errorf("a failed task without an error"))
		}
		s.Error = &mcptask.Error{Code: t.Error.Code, Message: t.Error.Message, Data: t.Error.Data}
	}
	return s, nil
}

// Cancel implements Client (E-53).
func (Client20260728) Cancel(ctx context.Context, send Send, taskID string) error {
	_, err := send(ctx, wire.MethodTasksCancel, wire.CancelTaskRequestParams{TaskID: taskID})
	return err
}

// Respond implements Client (E-38).
func (Client20260728) Respond(ctx context.Context, send Send, taskID string, responses map[string]json.RawMessage) error {
	_, err := send(ctx, wire.MethodTasksUpdate, wire.UpdateTaskRequestParams{TaskID: taskID, InputResponses: responses})
	return err
}
