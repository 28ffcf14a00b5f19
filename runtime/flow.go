package mcptask

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"
)

// Caller is who sends a request and what it can do, as the gateway found out.
type Caller struct {
	// Principal is compared by equality; "" is anonymous.
	Principal string
	// Revision is the protocol revision that the request is spoken in.
	Revision string
	// CanAsk names the request methods that the client answers, such as
	// elicitation/create.
	CanAsk []string
}

// Mode says how a tools/call is to be answered.
type Mode int

// The modes.
const (
	// ModePlain answers with the result when it is there.
	ModePlain Mode = iota
	// ModeTask answers with a task at once: the requestor asked for one.
	ModeTask
	// ModeGrace answers with the result where it is there within the tool's
	// grace, else with a task: the server decides.
	ModeGrace
)

// CallRequest is a tools/call, negotiated.
type CallRequest struct {
	Mode Mode
	// TTL is the retention that the requestor asks for; nil leaves it to the tool.
	TTL *time.Duration
	// IdempotencyKey makes a repeated call return the first one's task.
	IdempotencyKey string
	// Answers are the responses that came with the call to the tool's questions,
	// by key.
	Answers map[string]json.RawMessage
	// Retry says that the requestor, told the tool's questions, calls again with
	// the answers.
	Retry bool
	// Ask asks the requestor while the call is open; nil is no way to.
	Ask func(context.Context, Input) (json.RawMessage, error)
	// Progress takes progress where the caller asked for it; nil drops it.
	Progress ProgressFunc
}

// Hooks are an SDK's ways back to the caller while a call is open.
type Hooks struct {
	Progress ProgressFunc
	Ask      func(context.Context, Input) (json.RawMessage, error)
}

// ProgressFunc takes the progress of a call; taskID is "" for a plain one.
type ProgressFunc func(taskID string, done, total float64, message string)

// CallReply is the answer to a tools/call: a task, how the call ended, or the
// questions to answer first.
type CallReply struct {
	Task      *Record
	Outcome   *Outcome
	Questions []Input
	// Answered are those that need no second answer.
	Answered []Input
}

// Flow is the way of one request through code that is not ours: the gateway
// opens it, the adapter of an SDK takes it. A tool that is called without one
// fails closed, because nobody has established whose call it is.
type Flow struct {
	Caller Caller
	// Tool is the tool that the call was negotiated for, "" where the request
	// is no call of one of the server's tools.
	Tool string
	Call CallRequest
	// Encode makes the wire form of a reply that has no outcome yet.
	Encode func(CallReply) (json.RawMessage, error)
	// Decorate adds to another request's result what an SDK does not know, such
	// as the tasks capability; nil leaves it as it is.
	Decorate func(result json.RawMessage) (json.RawMessage, error)
	// Connected is told the session and the negotiated revision of an
	// initialize, and how to wait for the session's end; nil elsewhere.
	Connected func(sessionID, revision string, wait func() error)
	// Ended ends when the answer can reach nobody any longer; nil is never.
	Ended context.Context

	mu    sync.Mutex
	reply *CallReply
}

// Run calls the tool, once for the flow however often it is called: a
// middleware that calls next twice does not make two tasks.
// The hooks are what only the SDK can do for the call.
func (f *Flow) Run(ctx context.Context, s *Server, tool string, arguments json.RawMessage, hooks Hooks) (CallReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reply != nil {
		return *f.reply, nil
	}
	if tool != f.Tool {
		return CallReply{}, Errorf(CodeInvalidParams, "the call of %q came in as a call of %q", tool, f.Tool)
	}
	if f.Ended != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(f.Ended, cancel)()
	}
	call := f.Call
	call.Progress, call.Ask = hooks.Progress, hooks.Ask
	reply, err := s.Call(ctx, f.Caller, tool, arguments, call)
	if err == nil {
		f.reply = &reply
	}
	return reply, err
}

// Reply is what Run made, if it did.
func (f *Flow) Reply() (CallReply, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reply == nil {
		return CallReply{}, false
	}
	return *f.reply, true
}

// flows holds the open flows by their single-use tokens.
type flows struct {
	mu   sync.Mutex
	open map[string]*Flow
}

// OpenFlow registers a flow under a fresh token that nobody can guess. Close
// it when the request is over: a flow that nobody took must not stay.
func (s *Server) OpenFlow(f *Flow) (token string, closeFlow func()) {
	token = rand.Text()
	s.flows.mu.Lock()
	s.flows.open[token] = f
	s.flows.mu.Unlock()
	return token, func() { s.TakeFlow(token) }
}

// TakeFlow returns the flow and forgets its token; nil where there is none.
func (s *Server) TakeFlow(token string) *Flow {
	s.flows.mu.Lock()
	defer s.flows.mu.Unlock()
	f := s.flows.open[token]
	delete(s.flows.open, token)
	return f
}

// Once says true the first time that it is called with a key: an adapter asks
// before it attaches itself to an SDK server.
func (s *Server) Once(key any) bool {
	_, seen := s.onces.LoadOrStore(key, true)
	return !seen
}
