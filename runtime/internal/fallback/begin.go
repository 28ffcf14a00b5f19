package fallback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// newTaskHandler returns a handler that calls a tool as a task and waits for it as long as a plain call
// may block. Until the wait is over, the client does not know the task. So a task that ends in time
// leaves no record, and a task whose caller leaves is stopped. If the tool says onleave=keep, a task whose caller leaves
// goes on, and keeps its record.
//
// In 2026-07-28 the reply has the questions that the caller can answer. The caller repeats the call with
// the answers and with a state that names the task. The handler then follows that task.
func newTaskHandler(client context.Context, s *taskserver.Backend, caller taskserver.Caller, tool string, carrier Carrier) Handler {
	return func(ctx context.Context, arguments json.RawMessage, call taskserver.CallRequest) (taskserver.CallReply, error) {
		began := time.Now()
		spec, _ := s.Tool(tool)
		h := hiddenTask{set: findSet(s, tool), caller: caller, tool: tool, client: client, known: call.Task != "", keeps: spec.Policy.OnLeave == mcptask.KeepOnLeave}
		if progress := call.Progress; progress != nil {
			var over atomic.Bool
			defer over.Store(true)
			call.Progress = func(_ string, done, total float64, message string) {
				if !over.Load() { // later the call has no stream
					progress("", done, total, message)
				}
			}
		}
		if h.known { // before the task is read, so that another call that ends meanwhile leaves it to this one
			h.follows = followersOf(s).add(caller.Named(call.Task))
			defer h.follows.leave()
		}
		task, reply, err := h.begin(ctx, arguments, call)
		if err != nil || task == nil {
			return reply, err
		}
		record := *task
		var tell func(taskstore.Record)
		if h.known {
			tell = newProgressTeller(call.Progress, record)
		} else { // a handler of this process reports to the call that began it
			report := newProgressTeller(call.Progress, taskstore.Record{})
			tell = func(r taskstore.Record) {
				if s.RunsElsewhere(r) {
					report(r)
				}
			}
		}
		record, over, err := carrier.wait(ctx, s, caller, record, h.waitUntil(began, call), tell)
		reply, err = h.reply(ctx, call, record, over, err)
		if h.known && reply.Task != nil {
			h.follows.pass()
		}
		return reply, err
	}
}

// hiddenTask is the task behind a plain call.
type hiddenTask struct {
	set
	caller taskserver.Caller
	tool   string
	client context.Context // ends when the client's connection does
	// keeps says that the work goes on if the caller leaves.
	keeps bool
	// known says that the caller knows the task: the call repeats one that was answered with the
	// task's questions. Such a task keeps its record, so that a call that is repeated once more has
	// the same result.
	known bool
	// follows is this call's following of a known task.
	follows *follower
}

// begin creates the task, or finds the one that the call names. If there is no task, the reply answers
// the call.
func (h hiddenTask) begin(ctx context.Context, arguments json.RawMessage, call taskserver.CallRequest) (task *taskstore.Record, reply taskserver.CallReply, err error) {
	if h.known {
		record, err := h.resume(ctx, call)
		return &record, reply, err
	}
	if !h.keeps { // otherwise the task must not be deleted before it is known whether the client is there
		call.Mode = taskserver.ModeGrace
	}
	reply, err = h.server.Call(ctx, h.caller, h.tool, arguments, call)
	return reply.Task, reply, err
}

// resume finds the task that a repeated call names, and gives it the answers that came along. The
// task ignores answers that it has already.
func (h hiddenTask) resume(ctx context.Context, call taskserver.CallRequest) (taskstore.Record, error) {
	record, err := h.server.Get(ctx, h.caller, call.Task)
	switch {
	case protocol.IsGone(err):
		return record, mcptask.Errorf(mcptask.CodeInvalidParams, "params.requestState is that of a call that is gone: it has expired, or it is another caller's. "+
			"Call %s without it to start the work anew", h.tool)
	case err != nil:
		return record, err
	case !h.isOf(record):
		return record, mcptask.Errorf(mcptask.CodeInvalidParams, "params.requestState is that of a call of %s: repeat that call, or call %s without it", record.Tool, h.tool)
	case len(call.Answers) == 0:
		return record, nil
	}
	if err := h.server.Answer(ctx, h.caller, record.ID, call.Answers); err != nil {
		return record, err
	}
	return h.server.Get(ctx, h.caller, record.ID)
}

// isOf reports whether a record is of a call of the tool, perhaps under a former name.
func (h hiddenTask) isOf(record taskstore.Record) bool {
	spec, _ := h.server.Tool(record.Tool)
	return spec.Name == h.tool
}

// waitUntil returns when the call has blocked for as long as it may. The zero time means no limit. began
// is when the call began.
func (h hiddenTask) waitUntil(began time.Time, call taskserver.CallRequest) time.Time {
	wait := h.policyWait()
	switch {
	case Serves(h.server, h.tool):
		wait = h.server.PlainWait(h.caller, h.tool, call.Progress != nil)
	case wait == 0:
		return time.Time{}
	}
	return began.Add(wait)
}

// policyWait returns the tool's own limit for a plain call. 0 means none.
func (h hiddenTask) policyWait() time.Duration {
	spec, _ := h.server.Tool(h.tool)
	return spec.Policy.Wait
}

// reply makes the reply to the call from the results of wait.
func (h hiddenTask) reply(ctx context.Context, call taskserver.CallRequest, record taskstore.Record, over bool, failed error) (taskserver.CallReply, error) {
	switch {
	case protocol.IsGone(failed):
		h.abandon(record)
		return newErrorReply(fmt.Sprintf("%s did not finish within the %v that its work is kept, and was cancelled.", h.tool, record.TTL()))
	case failed != nil && errors.Is(failed, ctx.Err()):
		h.stop(ctx, record)
		return taskserver.CallReply{}, failed
	case failed != nil:
		h.abandon(record)
		return taskserver.CallReply{}, failed
	case record.Done():
		return h.replyDone(ctx, record)
	}
	switch questions := answerable(h.caller, record); {
	case call.Retry && len(questions) > 0:
		return taskserver.CallReply{Task: &record, Questions: questions}, nil
	case call.TakesTask && len(record.Outstanding()) == 0:
		return taskserver.CallReply{Task: &record}, nil
	case Serves(h.server, h.tool):
		return h.replyWithTask(record)
	case !over: // the task asks a question that this caller cannot answer
		return newErrorReply(fmt.Sprintf("%s waits for an answer that this client has not declared that it can give. %s",
			h.tool, protocol.JoinQuestions(record.Outstanding())))
	}
	if record.IdempotencyKey != "" {
		return newErrorReply(fmt.Sprintf("%s goes on, longer than the %v that a call without a task may take. "+
			"Call it again with the same idempotency key for its result.", h.tool, h.policyWait()))
	}
	h.stop(ctx, record)
	return newErrorReply(fmt.Sprintf("%s did not finish within the %v that a call without a task may take, and was cancelled. "+
		"Call it as a task to let it run longer.", h.tool, h.policyWait()))
}

// replyDone makes the reply for a task that has ended.
func (h hiddenTask) replyDone(ctx context.Context, record taskstore.Record) (taskserver.CallReply, error) {
	if !h.known {
		if left := ctx.Err() != nil || h.client.Err() != nil; !left || !h.keeps {
			h.server.Abandon(record)
		}
		return taskserver.CallReply{Outcome: record.Outcome}, nil
	}
	if record.Outcome.Kind == taskstore.OutcomeCancelled {
		return taskserver.CallReply{}, mcptask.Errorf(mcptask.CodeInvalidParams, "the call was cancelled: call %s without params.requestState to start the work anew", h.tool)
	}
	protocol.AuditRetrieval(ctx, h.server, h.caller, record)
	return taskserver.CallReply{Outcome: record.Outcome}, nil
}

// replyWithTask makes the reply that describes the task. The generated client, which called without
// a task, finds the task in its _meta.
func (h hiddenTask) replyWithTask(record taskstore.Record) (taskserver.CallReply, error) {
	described, err := protocol.DescribeTask(protocol.ShowTask(h.server, h.caller, record))
	if err != nil {
		return taskserver.CallReply{}, err
	}
	outcome, err := h.newTaskOutcome(h.caller, record, map[string]json.RawMessage{protocol.MetaTask: described})
	return taskserver.CallReply{Task: &record, Outcome: outcome}, err
}

// abandon stops and deletes a task that the caller does not know, unless the tool keeps it.
func (h hiddenTask) abandon(record taskstore.Record) {
	if !h.known && !h.keeps {
		h.server.Abandon(record)
	}
}

// stop ends a task whose caller no longer waits for it. If the caller knows the task, the record
// stays, so that a repeated call learns of the end. A task goes on if another call follows it, or if the
// caller can come back to it with an idempotency key, or the tool keeps it.
func (h hiddenTask) stop(ctx context.Context, record taskstore.Record) {
	h.abandon(record)
	if !h.known || h.keeps || record.IdempotencyKey != "" || !h.follows.leave() {
		return
	}
	if _, _, err := h.server.Cancel(context.WithoutCancel(ctx), h.caller, record.ID); err != nil && !protocol.IsGone(err) {
		h.server.Logger().Warn("task not cancelled", "task", taskstore.LogID(h.caller.Principal, record.ID), "error", err)
	}
}

// newProgressTeller returns a function that reports the progress of a task that an earlier call began. It
// reports that of the record at once, and skips records without a report. A nil report means that the call does not ask
// for progress.
func newProgressTeller(report taskserver.ProgressFunc, record taskstore.Record) func(taskstore.Record) {
	var told taskstore.Record
	tell := func(r taskstore.Record) {
		isEmpty := r.Progress == taskstore.Progress{} && r.StatusMessage == ""
		if report == nil || isEmpty || r.Progress == told.Progress && r.StatusMessage == told.StatusMessage {
			return
		}
		told = r
		report("", r.Progress.Done, r.Progress.Total, r.StatusMessage)
	}
	tell(record)
	return tell
}
