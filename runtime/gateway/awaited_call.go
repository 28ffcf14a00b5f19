package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// In the proposal SEP-1686 a call that created a task stays open until the task has ended. The
// client receives, in this order, the announcement of the task, the messages about the task, and
// the answer. Over HTTP all of these travel on the stream of the POST. If the client
// does not accept a stream there, it gets the messages on the session's standalone stream, if one
// is open. Otherwise it polls with the ID that it has chosen itself.
//
// Closing the stream does not affect the task. The SDK still gets the answer, for a stream that is
// resumed, and tasks/result returns it.

// awaitedCall is a call that is answered when its task has ended.
type awaitedCall struct {
	g       *Gateway
	session *session
	d       announcer
	caller  mcptask.Caller
	tool    string
	// request is the ID of the call, by which the client cancels it.
	request json.RawMessage
	// way carries the answer to the client.
	way callWay

	mu sync.Mutex
	// task is the stored ID. It is "" until the task exists.
	task      string
	cancelled bool
}

// callWay carries messages from an open call to its client.
type callWay interface {
	// send sends a message. It returns false if this way cannot carry it.
	send(message []byte) bool
	// carriesQuestions reports whether the task's questions go this way too.
	carriesQuestions() bool
	// disconnected returns a channel that closes when the client disconnects. It returns nil if
	// that cannot happen.
	disconnected() <-chan struct{}
}

// handle creates the task, announces it, and waits until it has ended.
func (a *awaitedCall) handle(ctx context.Context, arguments json.RawMessage, call mcptask.CallRequest) (mcptask.CallReply, error) {
	done, refusal := a.g.countWaiting(ctx, a.caller)
	if refusal != nil {
		return mcptask.CallReply{}, refusal
	}
	done = sync.OnceFunc(done)
	defer done()
	if err := a.checkIDFree(ctx, call.ExternalID); err != nil {
		return mcptask.CallReply{}, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(a.g.server.Closing(), stop)()
	defer a.g.sessions.addWaiting(a.session, a.request, func() { a.cancelCall(stop) })()
	// The handler may report progress before the task is announced.
	told := make(chan struct{})
	tell := sync.OnceFunc(func() { close(told) })
	defer tell()
	if progress := call.Progress; progress != nil {
		call.Progress = func(taskID string, done, total float64, message string) {
			<-told
			progress(taskID, done, total, message)
		}
	}
	reply, err := a.g.server.Call(ctx, a.caller, a.tool, arguments, call)
	if err != nil || reply.Task == nil {
		return reply, err
	}
	record := *reply.Task
	if a.setTask(record.ID) {
		a.cancelTask(record.ID) // the call was cancelled meanwhile
	}
	a.g.mailbox(a.session).KnowUnsettled(a.d, record)
	a.announce(record)
	tell()
	over := a.carryQuestions(record.ID, done)
	ended, err := a.g.server.Await(ctx, a.caller, record.ID)
	if err != nil { // a cancellation may end ctx before the task
		if r, gone := a.g.server.Peek(record.ID); gone == nil && r.Done() {
			ended, err = r, nil
		}
	}
	over()
	return a.newReply(ctx, ended, err)
}

// checkIDFree refuses an ID that a task of the caller already has, in case the server generated
// that ID. A repeated ID of the caller's own making is refused when the task is stored.
func (a *awaitedCall) checkIDFree(ctx context.Context, id string) error {
	switch _, err := a.g.server.Get(ctx, a.caller, id); {
	case err == nil:
		return mcptask.Errorf(mcptask.CodeInvalidParams, "the task ID %q is in use: choose another one for each call", id)
	case !protocol.IsGone(err):
		return err
	}
	return nil
}

// setTask notes the task. It returns true if the call has been cancelled meanwhile.
func (a *awaitedCall) setTask(task string) (cancelled bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.task = task
	return a.cancelled
}

// cancelCall handles the client's cancellation. It cancels the task, or stops its
// creation.
func (a *awaitedCall) cancelCall(stop context.CancelFunc) {
	a.mu.Lock()
	a.cancelled = true
	task := a.task
	a.mu.Unlock()
	if task == "" {
		stop()
		return
	}
	a.cancelTask(task)
}

// cancelTask cancels the task. A task that has ended stays unchanged.
func (a *awaitedCall) cancelTask(task string) {
	caller := a.caller
	caller.Method = notificationCancelled
	if _, _, err := a.g.server.Cancel(context.WithoutCancel(a.g.server.Closing()), caller, task); err != nil {
		a.g.server.Notice(slog.LevelInfo, "task not cancelled", "task", mcptask.LogID(caller.Principal, task), "error", err)
	}
}

// announce sends the announcement of the task. If the call has no stream, it uses the session's
// standalone stream.
func (a *awaitedCall) announce(r mcptask.Record) {
	method, params, err := a.d.Announcement(r)
	var data []byte
	if err == nil {
		data, err = json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	}
	if err != nil {
		a.g.server.Notice(slog.LevelError, "task not announced", "task", mcptask.LogID(r.Principal, r.ID), "error", err)
		return
	}
	if !a.way.send(data) {
		a.g.mailbox(a.session).Send(data)
	}
}

// carryQuestions sends the task's questions on the call's stream until over is called or the client
// disconnects. A call without a client does not count as waiting, so carryQuestions then calls
// done.
func (a *awaitedCall) carryQuestions(task string, done func()) (over func()) {
	box := a.g.mailbox(a.session)
	if !a.way.carriesQuestions() {
		box.Settle(task, nil)
		return func() {}
	}
	c := box.Connect(a.d, task)
	box.Settle(task, nil) // the client knows the task now
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		defer guard.Then(a.g.server.Logger(), "the stream of a call", done)
		defer c.Close()
		for {
			select {
			case <-c.Wake():
				a.sendMessages(c.Take())
			case <-a.way.disconnected():
				done()
				return
			case <-stop:
				a.g.hub.Refresh(task) // send retractions before the answer
				a.sendMessages(c.Take())
				return
			}
		}
	})
	return func() {
		close(stop)
		writer.Wait()
	}
}

func (a *awaitedCall) sendMessages(messages [][]byte) {
	for _, m := range messages {
		a.way.send(m)
	}
}

// newReply returns the reply with the task's outcome.
func (a *awaitedCall) newReply(ctx context.Context, r mcptask.Record, err error) (mcptask.CallReply, error) {
	if err != nil {
		if ctx.Err() != nil { // the session or the server has ended, or the SDK has given up
			err = mcptask.Errorf(mcptask.CodeInternalError, "the request was ended before its answer was there")
		}
		return mcptask.CallReply{}, err
	}
	protocol.AuditRetrieval(ctx, a.g.server, a.caller, r)
	result, err := a.d.Answer(r)
	var wire *mcptask.Error
	switch {
	case errors.As(err, &wire):
		return mcptask.CallReply{Outcome: &mcptask.Outcome{Kind: mcptask.OutcomeError, Error: wire}}, nil
	case err != nil:
		return mcptask.CallReply{}, err
	}
	return mcptask.CallReply{Outcome: &mcptask.Outcome{Kind: mcptask.OutcomeResult, Result: result, IsError: r.Outcome.IsError}}, nil
}

// pipeWay implements callWay for a pipe. A pipe has one stream, which the session's questions use.
type pipeWay struct{ write func([]byte) }

func (w pipeWay) send(message []byte) bool    { w.write(message); return true }
func (pipeWay) carriesQuestions() bool        { return false }
func (pipeWay) disconnected() <-chan struct{} { return nil }

// announcer is a revision that answers a call that made a task when the task has ended, and
// announces the task before.
type announcer interface {
	protocol.Teller
	// Announcement makes the notification of a new task.
	Announcement(r mcptask.Record) (method string, params json.RawMessage, err error)
	// Answer makes the result of the call of a task that has ended, or its error.
	Answer(r mcptask.Record) (json.RawMessage, error)
}
