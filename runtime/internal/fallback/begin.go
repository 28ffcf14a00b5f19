package fallback

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// newTaskHandler returns a handler that calls a tool as a task and waits for it as long as a plain call
// may block. Until the wait is over, the client does not know the task. So a task that ends in time
// leaves no record, and a task whose caller leaves is stopped.
//
// In 2026-07-28 the reply has the questions that the caller can answer. The caller repeats the call with
// the answers and with a state that names the task. The handler then follows that task.
func newTaskHandler(s *mcptask.Server, caller mcptask.Caller, tool string, w way) Handler {
	return func(ctx context.Context, arguments json.RawMessage, call mcptask.CallRequest) (mcptask.CallReply, error) {
		began := time.Now()
		h := hiddenTask{set: findSet(s, tool), caller: caller, tool: tool, known: call.Task != ""}
		if progress := call.Progress; progress != nil {
			var over atomic.Bool
			defer over.Store(true)
			call.Progress = func(_ string, done, total float64, message string) {
				if !over.Load() { // later the call has no stream
					progress("", done, total, message)
				}
			}
		}
		task, reply, err := h.begin(ctx, arguments, call)
		if err != nil || task == nil {
			return reply, err
		}
		record := *task
		if h.known {
			h.leave = followersOf(s).add(record.ID)
			defer h.leave()
		}
		waiting, cancel := h.limitWait(ctx, began, call)
		defer cancel()
		defer context.AfterFunc(s.Closing(), cancel)()
		watch := func(mcptask.Record) {} // the handler reports to the call that began it
		if h.known {
			watch = watchProgress(call.Progress, record)
		}
		record, err = w.follow(waiting, s, caller, record, call.Ask, watch)
		return h.reply(ctx, waiting, call, record, err)
	}
}

// hiddenTask is the task behind a plain call.
type hiddenTask struct {
	set
	caller mcptask.Caller
	tool   string
	// known says that the caller knows the task: the call repeats one that was answered with the
	// task's questions. Such a task keeps its record, so that a call that is repeated once more has
	// the same result.
	known bool
	// leave ends the following of a known task. It returns true if no other call follows it here.
	leave func() (last bool)
}

// followers counts the repeated calls that follow each task.
type followers struct {
	mu    sync.Mutex
	count map[string]int // by task ID
}

// followersOf returns the followers of a server's tasks.
func followersOf(s *mcptask.Server) *followers {
	type attached struct{}
	return s.Attached(attached{}, func() any { return &followers{count: map[string]int{}} }).(*followers)
}

// add adds a call. leave removes it, once, and returns whether it was the last of its task.
func (f *followers) add(task string) (leave func() (last bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[task]++
	return sync.OnceValue(func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.count[task]--; f.count[task] > 0 {
			return false
		}
		delete(f.count, task)
		return true
	})
}

// begin creates the task, or finds the one that the call names. If there is no task, the reply answers
// the call.
func (h hiddenTask) begin(ctx context.Context, arguments json.RawMessage, call mcptask.CallRequest) (task *mcptask.Record, reply mcptask.CallReply, err error) {
	if h.known {
		record, err := h.resume(ctx, call)
		return &record, reply, err
	}
	call.Mode, call.Later = mcptask.ModeGrace, h.asks && !call.Unattended
	reply, err = h.server.Call(ctx, h.caller, h.tool, arguments, call)
	return reply.Task, reply, err
}

// resume finds the task that a repeated call names, and gives it the answers that came along. The
// task ignores answers that it has already.
func (h hiddenTask) resume(ctx context.Context, call mcptask.CallRequest) (mcptask.Record, error) {
	record, err := h.server.Get(ctx, h.caller, call.Task)
	switch {
	case protocol.IsGone(err):
		return record, mcptask.Errorf(mcptask.CodeInvalidParams, "params.requestState is that of a call that is gone: it has expired, or it is another caller's. "+
			"Call %s without it to start the work anew", h.tool)
	case err != nil:
		return record, err
	case record.Tool != h.tool:
		return record, mcptask.Errorf(mcptask.CodeInvalidParams, "params.requestState is that of a call of %s: repeat that call, or call %s without it", record.Tool, h.tool)
	case len(call.Answers) == 0:
		return record, nil
	}
	if err := h.server.Answer(ctx, h.caller, record.ID, call.Answers); err != nil {
		return record, err
	}
	return h.server.Get(ctx, h.caller, record.ID)
}

// limitWait returns a context that ends when the call has blocked for as long as it may. began is when
// the call began.
func (h hiddenTask) limitWait(ctx context.Context, began time.Time, call mcptask.CallRequest) (context.Context, context.CancelFunc) {
	wait := h.policyWait()
	switch {
	case Serves(h.server, h.tool):
		wait = h.server.PlainWait(h.caller, h.tool, call.Progress != nil)
	case wait == 0: // no limit
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, began.Add(wait))
}

// policyWait returns the tool's own limit for a plain call. 0 means none.
func (h hiddenTask) policyWait() time.Duration {
	spec, _ := h.server.Tool(h.tool)
	return spec.Policy.Wait
}

// reply makes the reply to the call. record is the task as follow left it, failed the error of follow,
// waiting the context of the wait, and ctx that of the call.
func (h hiddenTask) reply(ctx, waiting context.Context, call mcptask.CallRequest, record mcptask.Record, failed error) (mcptask.CallReply, error) {
	switch questions := answerable(h.caller, record); {
	case protocol.IsGone(failed):
		h.abandon(record)
		return newErrorReply(fmt.Sprintf("%s did not finish within the %v that its work is kept, and was cancelled.", h.tool, record.TTL()))
	case failed != nil:
		h.abandon(record)
		return mcptask.CallReply{}, failed
	case record.Done() && h.known && record.Outcome.Kind == mcptask.OutcomeCancelled:
		return mcptask.CallReply{}, mcptask.Errorf(mcptask.CodeInvalidParams, "the call was cancelled: call %s without params.requestState to start the work anew", h.tool)
	case record.Done():
		if h.known {
			protocol.AuditRetrieval(ctx, h.server, h.caller, record)
		}
		h.abandon(record)
		return mcptask.CallReply{Outcome: record.Outcome}, nil
	case h.server.Closing().Err() != nil:
		h.abandon(record)
		return mcptask.CallReply{}, newShutdownError()
	case ctx.Err() != nil:
		h.stop(ctx, record)
		return mcptask.CallReply{}, ctx.Err()
	case call.Retry && len(questions) > 0:
		return mcptask.CallReply{Task: &record, Questions: questions}, nil
	case call.TakesTask && len(record.Outstanding()) == 0:
		return mcptask.CallReply{Task: &record}, nil
	case Serves(h.server, h.tool):
		return h.replyWithTask(record)
	case waiting.Err() == nil: // the task asks what this caller cannot answer
		return newErrorReply(fmt.Sprintf("%s waits for an answer that this client has not declared that it can give. %s",
			h.tool, protocol.JoinQuestions(record.Outstanding())))
	}
	h.stop(ctx, record)
	return newErrorReply(fmt.Sprintf("%s did not finish within the %v that a call without a task may take, and was cancelled. "+
		"Call it as a task to let it run longer.", h.tool, h.policyWait()))
}

// replyWithTask makes the reply that describes the task. The generated client, which called without
// a task, finds the task in its _meta.
func (h hiddenTask) replyWithTask(record mcptask.Record) (mcptask.CallReply, error) {
	described, err := protocol.DescribeTask(protocol.ShowQuestions(h.server, h.caller, record))
	if err != nil {
		return mcptask.CallReply{}, err
	}
	outcome, err := h.newTaskOutcome(h.caller, record, map[string]json.RawMessage{protocol.MetaTask: described})
	return mcptask.CallReply{Task: &record, Outcome: outcome}, err
}

// abandon stops and deletes a task that the caller does not know.
func (h hiddenTask) abandon(record mcptask.Record) {
	if !h.known {
		h.server.Abandon(record)
	}
}

// stop ends a task whose caller no longer waits for it. If the caller knows the task, the record
// stays, so that a repeated call learns of the end. A task that another call follows goes on: the caller
// may have sent one call twice and lost a connection.
func (h hiddenTask) stop(ctx context.Context, record mcptask.Record) {
	h.abandon(record)
	if !h.known || !h.leave() {
		return
	}
	if _, _, err := h.server.Cancel(context.WithoutCancel(ctx), h.caller, record.ID); err != nil && !protocol.IsGone(err) {
		h.server.Logger().Warn("task not cancelled", "task", mcptask.LogID(h.caller.Principal, record.ID), "error", err)
	}
}

// answerable returns the open questions of a task that the caller can answer.
func answerable(caller mcptask.Caller, record mcptask.Record) []mcptask.Input {
	return slices.DeleteFunc(record.Outstanding(), func(in mcptask.Input) bool { return !caller.Answers(in) })
}

// watchProgress returns a function that reports the progress of a task that an earlier call began. It
// reports that of the record at once. A nil report means that the call does not ask for progress.
func watchProgress(report mcptask.ProgressFunc, record mcptask.Record) func(mcptask.Record) {
	var told mcptask.Record
	watch := func(r mcptask.Record) {
		if report == nil || r.Progress == told.Progress && r.StatusMessage == told.StatusMessage {
			return
		}
		told = r
		report("", r.Progress.Done, r.Progress.Total, r.StatusMessage)
	}
	watch(record)
	return watch
}
