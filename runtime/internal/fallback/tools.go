package fallback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	taskProperty = `"task":{"type":"string","description":"The task's ID, from the answer that started it."}`
	inputTask    = `{"type":"object","properties":{` + taskProperty + `},"required":["task"]}`
	inputAnswer  = `{"type":"object","properties":{` + taskProperty +
		`,"question":{"type":"string","description":"The key of the question, from task_result."}` +
		`,"answer":{"type":"object","description":"What the user answered, one member for each field of the question. Leave it out if the user declines."}` +
		`},"required":["task","question"]}`
)

// Tools returns the fallback tools of a server, for an SDK to register. They are called through the
// gateway, like all tools.
func Tools(s *taskserver.Backend) []mcptask.ToolSpec {
	var specs []mcptask.ToolSpec
	for _, each := range listSets(s) {
		specs = append(specs, each.toolSpecs()...)
	}
	return specs
}

// ToolsFor returns the fallback tools for the tasks of a tool.
func ToolsFor(s *taskserver.Backend, tool string) []mcptask.ToolSpec {
	if !Serves(s, tool) {
		return nil
	}
	return findSet(s, tool).toolSpecs()
}

// Tool returns a fallback tool by its name.
func Tool(s *taskserver.Backend, name string) (mcptask.ToolSpec, bool) {
	each, kind, ok := find(s, name)
	if !ok {
		return mcptask.ToolSpec{}, false
	}
	return each.toolSpec(kind), true
}

func (e set) toolSpecs() (specs []mcptask.ToolSpec) {
	for _, kind := range kinds {
		if e.asks || kind != taskserver.ToolTaskAnswer {
			specs = append(specs, e.toolSpec(kind))
		}
	}
	return specs
}

func (e set) toolSpec(kind string) mcptask.ToolSpec {
	spec := mcptask.ToolSpec{Name: e.prefix + kind, InputSchema: inputTask, Policy: mcptask.Policy{Task: mcptask.TaskForbidden}}
	reads := mcptask.Annotations{ReadOnly: mcptask.Hint(true), OpenWorld: mcptask.Hint(false)}
	switch kind {
	case taskserver.ToolTaskStatus:
		spec.Description = "Reports the state of a task without waiting. A call that takes long becomes a task."
		spec.Annotations = reads
	case taskserver.ToolTaskResult:
		spec.Description = "Waits for a task to end and gives its result. If the task takes longer than a call may, it says so: then call it again."
		spec.Annotations = reads
	case taskserver.ToolTaskCancel:
		spec.Description = "Cancels a task whose result is no longer wanted."
		spec.Annotations = mcptask.Annotations{Destructive: mcptask.Hint(true), Idempotent: mcptask.Hint(true), OpenWorld: mcptask.Hint(false)}
	case taskserver.ToolTaskAnswer:
		spec.Description = "Answers a question of a task that waits for the user. Ask the user first; do not answer in the user's place."
		spec.InputSchema = inputAnswer
	case taskserver.ToolTaskList:
		spec.Description = "Lists your tasks that have not ended, and those that have ended in the last hour, newest first, with the call that gives the result of each. " +
			"Call it if the task of a call is not known, for example because the call was given up."
		spec.InputSchema, spec.OutputSchema, spec.Annotations = inputList, listSchema, reads
	}
	return spec
}

// helper answers calls of the fallback tools for one caller.
type helper struct {
	set
	caller  taskserver.Caller
	carrier Carrier
}

// answerFunc answers a call of one fallback tool, for the task that its arguments name.
type answerFunc = func(h helper, ctx context.Context, a arguments, record taskstore.Record, call taskserver.CallRequest) (taskserver.CallReply, error)

// newHandler returns the handler of a fallback tool. It reads the arguments and the task. A mistake in
// them becomes a tool error, which the model can read.
func (h helper) newHandler(answer answerFunc) Handler {
	return func(ctx context.Context, data json.RawMessage, call taskserver.CallRequest) (taskserver.CallReply, error) {
		a := arguments{began: time.Now()}
		if json.Unmarshal(data, &a) != nil || a.Task == "" {
			return newErrorReply(`The arguments must name the task: {"task":"…"}, as the call that started it has said.`)
		}
		record, err := h.server.Get(ctx, h.caller, a.Task)
		if err != nil {
			return h.explain(a.Task, err)
		}
		return answer(h, ctx, a, record, call)
	}
}

type arguments struct {
	Task     string          `json:"task"`
	Question string          `json:"question"`
	Answer   json.RawMessage `json:"answer"`
	began    time.Time       // the beginning of the call
}

// Task returns the task that the arguments of a fallback tool name, or "".
func Task(data json.RawMessage) string {
	var a arguments
	if json.Unmarshal(data, &a) != nil {
		return ""
	}
	return a.Task
}

// explain turns the error for a missing task into a tool error.
func (h helper) explain(task string, err error) (taskserver.CallReply, error) {
	if !protocol.IsGone(err) {
		return taskserver.CallReply{}, err
	}
	if errors.Is(err, mcptask.ErrExpired) {
		return newErrorReply(fmt.Sprintf("The task %s has expired: the time for which it was kept, counted from its creation, is over. "+
			"Its result is gone. If it is still needed, call the tool again.", quote(task)))
	}
	reasons := "it belongs to somebody else, or it has expired long ago"
	if h.server.KeepsInMemory() {
		reasons = "it belongs to somebody else, it has expired long ago, or the server was restarted: it keeps tasks in memory only"
	}
	return newErrorReply(fmt.Sprintf("There is no task %s: its name is mistyped, %s. "+
		"Use the name exactly as it was given; if the task is gone, call its tool again.", quote(task), reasons))
}

// status reports a task.
func (h helper) status(_ context.Context, _ arguments, record taskstore.Record, _ taskserver.CallRequest) (taskserver.CallReply, error) {
	outcome, err := h.newTaskOutcome(h.caller, record, nil)
	return taskserver.CallReply{Outcome: outcome}, err
}

// result waits for the task's end, like the call that started it. If a requestor of 2026-07-28 can
// answer the questions, the reply carries them, and the requestor calls again with the answers.
func (h helper) result(ctx context.Context, a arguments, record taskstore.Record, call taskserver.CallRequest) (taskserver.CallReply, error) {
	var err error
	if len(call.Answers) > 0 {
		if err := h.server.Answer(ctx, h.caller, a.Task, call.Answers); err != nil {
			return taskserver.CallReply{}, err
		}
		if record, err = h.server.Get(ctx, h.caller, a.Task); err != nil {
			return h.explain(a.Task, err)
		}
	}
	until := a.began.Add(h.server.PlainWait(h.caller, record.Tool, call.Progress != nil))
	record, _, err = h.carrier.wait(ctx, h.server, h.caller, record, until, newProgressTeller(call.Progress, record))
	switch {
	case err != nil:
		return h.explain(a.Task, err)
	case record.Done():
		protocol.AuditRetrieval(ctx, h.server, h.caller, record)
		return newFinishedReply(record)
	}
	if questions := answerable(h.caller, record); call.Retry && len(questions) > 0 {
		return taskserver.CallReply{Questions: questions}, nil
	}
	return h.status(ctx, a, record, call)
}

// cancel cancels a task, or reports it if it has ended.
func (h helper) cancel(ctx context.Context, a arguments, _ taskstore.Record, call taskserver.CallRequest) (taskserver.CallReply, error) {
	record, done, err := h.server.Cancel(ctx, h.caller, a.Task)
	switch {
	case err != nil:
		return h.explain(a.Task, err)
	case done:
		return h.status(ctx, a, record, call)
	}
	text := mcptask.TextContent(fmt.Sprintf("The task %s of %s is cancelled.", quote(record.ID), record.Tool))
	outcome, err := newOutcome(&mcptask.Result{Content: []mcptask.Content{text}}, &state{Task: record.ID, Status: mcptask.StatusCancelled})
	return taskserver.CallReply{Outcome: outcome}, err
}

// answer accepts an answer that the model got from the user.
func (h helper) answer(ctx context.Context, a arguments, record taskstore.Record, call taskserver.CallRequest) (taskserver.CallReply, error) {
	open := record.Outstanding()
	i := slices.IndexFunc(open, func(in taskstore.Input) bool { return in.Key == a.Question })
	if i < 0 || !protocol.IsForm(open[i]) {
		text, err := h.describeTask(h.caller, record)
		if err != nil {
			return taskserver.CallReply{}, err
		}
		return newErrorReply(fmt.Sprintf("The task has no question %s that this tool could answer. %s", quote(a.Question), text))
	}
	response := json.RawMessage(`{"action":"decline"}`)
	if len(a.Answer) > 0 && !bytes.Equal(a.Answer, []byte("null")) {
		response = json.RawMessage(`{"action":"accept","content":` + string(a.Answer) + `}`)
	}
	if err := h.server.Answer(ctx, h.caller, a.Task, map[string]json.RawMessage{a.Question: response}); err != nil {
		var wire *mcptask.Error
		if !errors.As(err, &wire) || wire.Code != mcptask.CodeInvalidParams {
			return taskserver.CallReply{}, err
		}
		return newErrorReply(fmt.Sprintf("%s. The question is still open; its answer must fit the JSON Schema %s", wire.Message, open[i].Schema))
	}
	record, err := h.server.Get(ctx, h.caller, a.Task)
	if err != nil {
		return h.explain(a.Task, err)
	}
	return h.status(ctx, a, record, call)
}
