package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// Flow carries one request through code that is not the gateway's. The gateway opens it, and the
// adapter of an SDK takes it. A tool that is called without a flow fails closed, because its caller
// is not established. The gateway sets the fields, but for Session.
type Flow struct {
	// Caller is who sends the request.
	Caller taskserver.Caller
	// Stateless says that the request belongs to no session. Nothing can be sent beside its answer.
	Stateless bool
	// Related returns the _meta of messages about a task, such as its progress. It may be nil.
	Related func(taskID string) map[string]any
	// Tool is the tool that the call was negotiated for. It is "" if the request does not call one
	// of the server's tools.
	Tool string
	// Call says how to answer the call. Run passes it to Backend.Call.
	Call taskserver.CallRequest
	// Handle answers the call instead of Backend.Call. It may be nil.
	Handle func(ctx context.Context, arguments json.RawMessage, call taskserver.CallRequest) (taskserver.CallReply, error)
	// Encode returns the wire form of a reply without an outcome.
	Encode func(taskserver.CallReply) (json.RawMessage, error)
	// Decorate adds to another request's result the members that an SDK does not know, such as the tasks
	// capability. If it is nil, the result stays unchanged.
	Decorate func(result json.RawMessage) (json.RawMessage, error)
	// Connected receives the session and the negotiated revision of an initialize, and a function
	// that waits for the session's end. It is nil for other requests.
	Connected func(sessionID, revision string, wait func() error)
	// Session is the adapter's own data about the session of an initialize. The adapter sets it before it calls
	// Connected. The gateway passes it to [Config.FindRunner] as [Call.Session].
	Session any
	// Ended ends when the answer can no longer reach the client. It may be nil.
	Ended context.Context

	// waiting answers the call when its task has ended. It is nil in the released revisions.
	waiting *waitingCall

	// request is the description of the call for the server's hooks.
	request taskserver.RequestInfo

	// withheld are the call's arguments if the SDK cannot read them. It is nil if the SDK gets
	// them.
	withheld json.RawMessage
	// extra are the names of arguments that the caller's program adds on its own. They are dropped.
	extra []string
	// share takes memory for the result.
	share *share

	// announced delays messages about the call's task until the reply is written. It is nil outside
	// of sessions.
	announced *announcement

	// keeps says that the tool has onleave=keep.
	keeps bool

	running sync.Mutex // held during the call
	mu      sync.Mutex
	reply   *taskserver.CallReply
	left    func(taskserver.CallReply) // receives a reply that comes after the answer
}

// Run calls the tool once for the flow, however often Run is called: a middleware that calls next
// twice does not create two tasks. send sends the progress of the call to its caller. It may be nil.
func (f *Flow) Run(ctx context.Context, s *taskserver.Backend, tool string, arguments json.RawMessage, send taskserver.ProgressFunc) (reply taskserver.CallReply, err error) {
	f.running.Lock()
	defer f.running.Unlock()
	if reply, ok := f.Reply(); ok {
		return reply, nil
	}
	if tool != f.Tool {
		return taskserver.CallReply{}, mcptask.Errorf(mcptask.CodeInvalidParams, "the call of %q came in as a call of %q", tool, f.Tool)
	}
	err = mcptask.Errorf(mcptask.CodeInternalError, "internal error") // the answer if the handler ends its goroutine
	if f.Handle == nil && f.Call.Mode != taskserver.ModePlain {       // the task's handler has a goroutine of its own
		defer guard.Then(s.Logger(), "call", func() {})
		return f.run(ctx, s, arguments, send)
	}
	guard.Apart(s.Logger(), "call", func() { reply, err = f.run(ctx, s, arguments, send) })
	return reply, err
}

// run does the work of Run.
func (f *Flow) run(ctx context.Context, s *taskserver.Backend, arguments json.RawMessage, send taskserver.ProgressFunc) (reply taskserver.CallReply, err error) {
	ctx, end := s.BeginRequest(ctx, f.request)
	result := taskserver.RequestResult{Error: errNoAnswer}
	defer func() { end(result) }()
	reply, err = f.call(ctx, s, arguments, send)
	result = newRequestResult(reply, err)
	return reply, err
}

// call calls the tool.
func (f *Flow) call(ctx context.Context, s *taskserver.Backend, arguments json.RawMessage, send taskserver.ProgressFunc) (taskserver.CallReply, error) {
	if f.Ended != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(f.Ended, cancel)()
	}
	if f.withheld != nil {
		arguments = f.withheld
	}
	arguments = dropArguments(arguments, f.extra)
	done, refusal := countCall(ctx, s, f.Caller, f.Tool, arguments, f.Call.Answers)
	if refusal != nil {
		return taskserver.CallReply{}, refusal
	}
	defer done()
	call, endStart := f.Call, func() {}
	if f.Handle == nil && call.Mode == taskserver.ModePlain {
		returned, end, refusal := f.share.beginCall(ctx)
		if refusal != nil {
			return taskserver.CallReply{}, refusal
		}
		defer end()
		call.Returned, endStart = returned, end
	}
	call.Progress = send
	if f.waiting != nil {
		call.Progress = f.waiting.progress()
	} else if send != nil {
		progress := newProgress(send, f.newAge(ctx, s, arguments))
		defer progress.stop()
		call.Progress = progress.report
	}
	var reply taskserver.CallReply
	var err error
	if f.Handle != nil {
		reply, err = f.Handle(ctx, arguments, call)
	} else {
		reply, err = s.Call(ctx, f.Caller, f.Tool, arguments, call)
	}
	endStart() // takeResult may wait for long
	if err == nil && reply.Outcome != nil {
		if refusal := f.share.takeResult(ctx, len(reply.Outcome.Result)); refusal != nil {
			return taskserver.CallReply{}, refusal
		}
	}
	if err == nil {
		f.setReply(reply)
	}
	return reply, err
}

// newAge returns a function that returns how long the work has been running that the call waits for. That
// is the age of a task if the call is one of a fallback tool, or repeats a call that was answered with the
// task's questions. Otherwise the work begins now.
func (f *Flow) newAge(ctx context.Context, s *taskserver.Backend, arguments json.RawMessage) func() time.Duration {
	began, task := time.Now(), f.Call.Task
	if fallback.Helps(s, f.Tool) {
		task = fallback.Task(arguments)
	}
	return func() time.Duration { // by then the limits have let the call pass
		if task != "" {
			if record, err := s.Get(ctx, f.Caller, task); err == nil {
				return s.Now().Sub(record.CreatedAt)
			}
		}
		return time.Since(began)
	}
}

// Reply returns the reply of Run. It returns false if Run has not succeeded.
func (f *Flow) Reply() (taskserver.CallReply, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reply == nil {
		return taskserver.CallReply{}, false
	}
	return *f.reply, true
}

// setReply stores the reply. If the request is already answered, it passes the reply to the
// function of Leave.
func (f *Flow) setReply(reply taskserver.CallReply) {
	f.mu.Lock()
	f.reply = &reply
	left := f.left
	f.mu.Unlock()
	if left != nil {
		left(reply)
	}
}

// Leave says that the request is answered in another way, perhaps during the call. The reply cannot
// reach the client, so left receives it, now or when it is ready. If the tool says onleave=keep, left receives
// nothing, because it may stop the work.
func (f *Flow) Leave(left func(taskserver.CallReply)) {
	if f.keeps {
		return
	}
	f.mu.Lock()
	reply := f.reply
	if reply == nil {
		f.left = left
	}
	f.mu.Unlock()
	if reply != nil {
		left(*reply)
	}
}

// flowsKey is the key of a server's open flows. They are stored by single-use tokens.
type flowsKey struct{}

func flowsOf(s *taskserver.Backend) *sync.Map {
	return s.Attached(flowsKey{}, func() any { return new(sync.Map) }).(*sync.Map)
}

// OpenFlow registers a flow under a new random token, for a gateway, or for an adapter that runs a [Call] in its SDK. Call
// closeFlow when the request ends, because a flow that the SDK has not taken would stay forever.
func OpenFlow(s *taskserver.Backend, f *Flow) (token string, closeFlow func()) {
	token = rand.Text()
	flowsOf(s).Store(token, f)
	return token, func() { flowsOf(s).Delete(token) }
}

// TakeFlow returns the flow of a token and forgets the token. It returns nil if there is no such
// flow.
func TakeFlow(s *taskserver.Backend, token string) *Flow {
	f, ok := flowsOf(s).LoadAndDelete(token)
	if !ok {
		return nil
	}
	return f.(*Flow)
}

// Tools returns the tools that the adapter of an SDK registers: the tools of the server without those of [Adopt], which
// the SDK has, and the fallback tools of all services.
func Tools(s *taskserver.Backend) []mcptask.ToolSpec {
	own := slices.DeleteFunc(s.Tools(), func(spec mcptask.ToolSpec) bool { return IsAdopted(s, spec.Name) })
	return append(own, fallback.Tools(s)...)
}
