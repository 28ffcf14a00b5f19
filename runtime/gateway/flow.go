package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
)

// Hooks are an SDK's ways back to the caller while a call is open.
type Hooks struct {
	Progress mcptask.ProgressFunc
	Ask      func(context.Context, mcptask.Input) (json.RawMessage, error)
}

// Flow is the way of one request through code that is not ours: the gateway
// opens it, the adapter of an SDK takes it. A tool that is called without one
// fails closed, because nobody has established whose call it is.
type Flow struct {
	Caller mcptask.Caller
	// Stateless says that the request belongs to no session: nothing can be sent
	// beside its answer.
	Stateless bool
	// Held says that the call is answered when its task has ended: what is said of
	// the task meanwhile goes where the answer goes.
	Held bool
	// Related is the _meta of what is said of a task, such as its progress; nil is
	// none.
	Related func(taskID string) map[string]any
	// Tool is the tool that the call was negotiated for, "" where the request
	// is no call of one of the server's tools.
	Tool string
	Call mcptask.CallRequest
	// Handle answers the call in the place of Server.Call; nil is none.
	Handle func(ctx context.Context, arguments json.RawMessage, call mcptask.CallRequest) (mcptask.CallReply, error)
	// Encode makes the wire form of a reply that has no outcome yet.
	Encode func(mcptask.CallReply) (json.RawMessage, error)
	// Decorate adds to another request's result what an SDK does not know, such
	// as the tasks capability; nil leaves it as it is.
	Decorate func(result json.RawMessage) (json.RawMessage, error)
	// Connected is told the session and the negotiated revision of an
	// initialize, and how to wait for the session's end; nil elsewhere.
	Connected func(sessionID, revision string, wait func() error)
	// Ended ends when the answer can reach nobody any longer; nil is never.
	Ended context.Context

	// withheld are the call's arguments if an SDK would suffer from them; nil if it gets them.
	withheld json.RawMessage

	// carrier carries the answer to the client in another way than the SDK's; nil is none.
	carrier carrier
	// announced has what is said of the call's task follow the reply, in a session.
	announced *announcement

	running sync.Mutex // the call is under way
	mu      sync.Mutex
	reply   *mcptask.CallReply
	left    func(mcptask.CallReply) // takes a reply that comes after the answer
}

// carrier carries the answer to a call, and what goes before it, to the client.
type carrier interface {
	// overHTTP returns what the SDK is to write the response to, until end is called.
	overHTTP(w http.ResponseWriter, r *http.Request) (carried http.ResponseWriter, end func())
	overPipe(write func(line []byte))
}

// Run calls the tool, once for the flow however often it is called: a
// middleware that calls next twice does not make two tasks.
// The hooks are what only the SDK can do for the call.
func (f *Flow) Run(ctx context.Context, s *mcptask.Server, tool string, arguments json.RawMessage, hooks Hooks) (mcptask.CallReply, error) {
	f.running.Lock()
	defer f.running.Unlock()
	if reply, ok := f.Reply(); ok {
		return reply, nil
	}
	if tool != f.Tool {
		return mcptask.CallReply{}, mcptask.Errorf(mcptask.CodeInvalidParams, "the call of %q came in as a call of %q", tool, f.Tool)
	}
	if f.Ended != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(f.Ended, cancel)()
	}
	if f.withheld != nil {
		arguments = f.withheld
	}
	done, refusal := begin(s, f.Caller, tool, arguments, f.Call.Answers)
	if refusal != nil {
		return mcptask.CallReply{}, refusal
	}
	defer done()
	call := f.Call
	call.Progress, call.Ask = hooks.Progress, asker(s, f.Caller, hooks.Ask)
	var reply mcptask.CallReply
	var err error
	if f.Handle != nil {
		reply, err = f.Handle(ctx, arguments, call)
	} else {
		reply, err = s.Call(ctx, f.Caller, tool, arguments, call)
	}
	if err == nil {
		f.keep(reply)
	}
	return reply, err
}

// Reply is what Run made, if it did.
func (f *Flow) Reply() (mcptask.CallReply, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reply == nil {
		return mcptask.CallReply{}, false
	}
	return *f.reply, true
}

// keep notes the reply, and hands it on where the request is over already.
func (f *Flow) keep(reply mcptask.CallReply) {
	f.mu.Lock()
	f.reply = &reply
	left := f.left
	f.mu.Unlock()
	if left != nil {
		left(reply)
	}
}

// Leave says that the request is answered in another way, perhaps while the call
// still runs: the reply reaches nobody, and goes to left now or once it is there.
func (f *Flow) Leave(left func(mcptask.CallReply)) {
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

// flows is the key of a server's open flows, by their single-use tokens.
type flows struct{}

func flowsOf(s *mcptask.Server) *sync.Map {
	return s.Attached(flows{}, func() any { return new(sync.Map) }).(*sync.Map)
}

// OpenFlow registers a flow under a fresh token that nobody can guess. Close
// it when the request is over: a flow that nobody took must not stay.
func OpenFlow(s *mcptask.Server, f *Flow) (token string, closeFlow func()) {
	token = rand.Text()
	flowsOf(s).Store(token, f)
	return token, func() { flowsOf(s).Delete(token) }
}

// TakeFlow returns the flow and forgets its token; nil where there is none.
func TakeFlow(s *mcptask.Server, token string) *Flow {
	f, ok := flowsOf(s).LoadAndDelete(token)
	if !ok {
		return nil
	}
	return f.(*Flow)
}

// Tools lists what the adapter of an SDK has to register: the tools of the
// server and the fallback tools of its services.
func Tools(s *mcptask.Server) []mcptask.ToolSpec {
	return append(s.Tools(), fallback.Tools(s)...)
}
