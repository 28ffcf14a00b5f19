package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// This file serves the revisions that were never released. No protocol version names them: a
// session of any protocol may use them, and the form of a request shows which one it uses.

// signalled is a revision that requests show by their form.
type signalled interface {
	protocol.Teller
	// Signals reports whether a request uses the revision.
	Signals(s *taskserver.Backend, caller taskserver.Caller, method string, params protocol.Params) bool
}

// unofficialRevisions are the signalled revisions that the server's options name. It is nil if they name none. Its
// methods then leave everything to the released revisions.
type unofficialRevisions struct {
	g         *Gateway
	revisions []signalled
	// shown has the last revision that requests of a session have shown: *session to *atomic.Pointer[signalled].
	shown sync.Map
}

// shownIn returns the revision that a request of the session has shown last. It is kept as long as the session.
func (u *unofficialRevisions) shownIn(s *session) *atomic.Pointer[signalled] {
	shown, known := u.shown.LoadOrStore(s, new(atomic.Pointer[signalled]))
	if !known {
		context.AfterFunc(s.ended, func() {
			defer guard.Recover(u.g.server.Logger(), "the end of a session")
			u.shown.Delete(s)
		})
	}
	return shown.(*atomic.Pointer[signalled])
}

// findRevision returns the revision of a session's request. own is that of the session, or nil.
func (u *unofficialRevisions) findRevision(own protocol.Teller, s *session, caller taskserver.Caller, m *message) protocol.Teller {
	if u == nil || s == nil {
		return own
	}
	if own != nil && m.Method == "tools/call" && m.Params.Has("task") { // the member task decides, whatever else is there
		u.shownIn(s).Store(nil)
		return own
	}
	for _, d := range u.revisions {
		if d.Signals(u.g.server, caller, m.Method, m.Params) {
			u.shownIn(s).Store(&d)
			return d
		}
	}
	if !strings.HasPrefix(m.Method, "tasks/") {
		return own
	}
	if !m.Params.Has("taskId") && !m.Params.Has("id") { // a list does not show its revision
		if shown := u.shownIn(s).Load(); shown != nil {
			return *shown
		}
	}
	if own == nil {
		for _, d := range u.revisions {
			if d.Method(m.Method) != nil {
				return d
			}
		}
	}
	return own
}

// tasklessRevision returns the revision that decides how calls are answered in a session without tasks. It prefers a
// revision in which no tool must be called as a task.
func (u *unofficialRevisions) tasklessRevision(legacy protocol.Teller) protocol.Teller {
	if u != nil {
		for _, d := range u.revisions {
			if d, ok := d.(unofficial.ServerSEP1686); ok {
				return d
			}
		}
	}
	return legacy
}

// declareTasks adds to the result of an initialize or tools/list of a session without tasks of its own. It uses the
// first revision that changes the result.
func (u *unofficialRevisions) declareTasks(caller taskserver.Caller, method string, result json.RawMessage) (json.RawMessage, error) {
	if u != nil {
		for _, d := range u.revisions {
			decorated, err := d.Decorate(u.g.server, caller, method, result)
			if err != nil || string(decorated) != string(result) {
				return decorated, err
			}
		}
	}
	return result, nil
}

// bindKey binds the idempotency key of a call to its caller if it is the task's ID, because anonymous callers share one
// set of keys.
func (u *unofficialRevisions) bindKey(caller taskserver.Caller, call taskserver.CallRequest) taskserver.CallRequest {
	if u != nil && call.ExternalID != "" && call.IdempotencyKey == call.ExternalID {
		call.IdempotencyKey = caller.Named(call.ExternalID)
	}
	return call
}

// waitForEnd lets the flow of a call of SEP-1686 answer it when its task has ended.
func (u *unofficialRevisions) waitForEnd(x exchange, flow *Flow, s *session, d protocol.Teller) {
	proposal, ok := d.(unofficial.ServerSEP1686)
	if !ok || flow.Call.Mode != taskserver.ModeTask || s == nil {
		return
	}
	waiting := &waitingCall{g: u.g, x: x, session: s, d: proposal, flow: flow, announced: make(chan struct{})}
	switch x := x.(type) {
	case *httpExchange:
		response := x.respondToCall()
		waiting.send, waiting.carriesQuestions = response.send, response.streams
	case *pipeExchange: // it has one stream, which carries the session's questions
		waiting.send = func(message []byte) bool { x.p.out.put(message); return true }
	}
	flow.waiting, flow.Handle = waiting, waiting.handle
}

// waitingCall is a call of SEP-1686 that made a task. It stays open until the task has ended. The client receives, in this
// order, the announcement of the task, the messages about the task, and the answer. Over HTTP all of these
// travel on the stream of the POST. If the client does not accept a stream there, it gets the messages on the session's
// standalone stream, if one is open. Otherwise it polls with the ID that it has chosen itself.
//
// Closing the stream does not affect the task. The SDK still gets the answer, for a stream that is
// resumed, and tasks/result returns it.
type waitingCall struct {
	g       *Gateway
	x       exchange
	session *session
	d       unofficial.ServerSEP1686
	flow    *Flow
	// send sends a message before the answer. It returns false if the answer has no stream. carriesQuestions says that
	// the task's questions go there too.
	send             func(message []byte) bool
	carriesQuestions bool
	// announced is closed when the task is announced: the handler may report progress earlier. cancelled is set when the
	// client has cancelled the call.
	announced chan struct{}
	cancelled atomic.Bool
}

// progress returns a function that reports progress on the stream of the call once the task is announced. It returns nil
// if the client has not asked for progress.
func (h *waitingCall) progress() taskserver.ProgressFunc {
	token := h.x.message().progressToken()
	if token == nil {
		return nil
	}
	return func(taskID string, done, total float64, message string) {
		<-h.announced
		if data := encodeProgress(token, done, total, message, h.flow.Related(taskID)); data != nil {
			h.sendOrPush(data)
		}
	}
}

// handle creates the task, announces it, and waits until it has ended.
func (h *waitingCall) handle(ctx context.Context, arguments json.RawMessage, call taskserver.CallRequest) (taskserver.CallReply, error) {
	g, caller := h.g, h.flow.Caller
	done, refusal := g.countWaiting(ctx, caller)
	if refusal != nil {
		return taskserver.CallReply{}, refusal
	}
	done = sync.OnceFunc(done)
	defer done()
	switch _, err := g.server.Get(ctx, caller, call.ExternalID); {
	case err == nil: // a task that the server has named
		return taskserver.CallReply{}, mcptask.Errorf(mcptask.CodeInvalidParams, "the task ID %q is in use: choose another one for each call", call.ExternalID)
	case !protocol.IsGone(err):
		return taskserver.CallReply{}, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(g.server.Closing(), stop)()
	defer g.sessions.addWaiting(h.session, h.x.message().ID, func() { h.cancelled.Store(true); stop() })()
	announce := sync.OnceFunc(func() { close(h.announced) })
	defer announce()
	reply, err := g.server.Call(ctx, caller, h.flow.Tool, arguments, call)
	if err != nil || reply.Task == nil {
		return reply, err
	}
	record := *reply.Task
	box := g.mailbox(h.session)
	box.KnowUnsettled(h.d, record)
	h.announce(record)
	announce()
	over := func() {}
	if h.carriesQuestions {
		over = sync.OnceFunc(g.sendQuestions(h.x.context(), box.Connect(h.d, record.ID), record.ID, func(messages [][]byte) {
			for _, message := range messages {
				h.send(message)
			}
		}))
	}
	defer context.AfterFunc(h.x.context(), func() { // a call without a client does not count as waiting
		defer guard.Recover(g.server.Logger(), "a call whose client has left")
		done()
		over()
	})()
	box.Settle(record.ID, nil) // the client knows the task now
	ended, err := g.server.Await(ctx, caller, record.ID)
	if err != nil && h.cancelled.Load() {
		caller.Method = notificationCancelled
		ended, _, err = g.server.Cancel(context.WithoutCancel(ctx), caller, record.ID) // a task that has ended stays unchanged
	}
	over()
	if err != nil {
		return taskserver.CallReply{}, answerError(ctx, err)
	}
	protocol.AuditRetrieval(ctx, g.server, caller, ended)
	result, err := h.d.Answer(ended)
	if err != nil {
		return taskserver.CallReply{}, err
	}
	return taskserver.CallReply{Outcome: &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: result, IsError: ended.Outcome.IsError}}, nil
}

// announce sends the announcement of the task.
func (h *waitingCall) announce(r taskstore.Record) {
	method, params, err := h.d.Announcement(r)
	var data []byte
	if err == nil {
		data, err = json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	}
	if err != nil {
		h.g.server.Notice(slog.LevelError, "task not announced", "task", taskstore.LogID(r.Principal, r.ID), "error", err)
		return
	}
	h.sendOrPush(data)
}

// sendOrPush sends a message before the answer, or on the session's standalone stream.
func (h *waitingCall) sendOrPush(message []byte) {
	if !h.send(message) {
		h.g.mailbox(h.session).Send(message)
	}
}
