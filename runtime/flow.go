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
	// Progress takes progress where the caller asked for it; nil drops it. It
	// must not block.
	Progress func(taskID string, done, total float64, message string)
}

// CallReply is the answer to a tools/call: a task, or how the call ended.
type CallReply struct {
	Task    *Record
	Outcome *Outcome
}

// Flow is the way of one request through code that is not ours: the gateway
// opens it, the adapter of an SDK takes it. A tool that is called without one
// fails closed, because nobody has established whose call it is.
type Flow struct {
	Caller Caller
	Call   CallRequest
	// Encode makes the wire form of the reply; nil where the request is not a
	// call of one of the server's tools.
	Encode func(CallReply) (json.RawMessage, error)
	// Connected is told the session and the negotiated revision of an
	// initialize; nil elsewhere.
	Connected func(sessionID, revision string)

	mu    sync.Mutex
	reply *CallReply
}

// Run calls the tool, once for the flow however often it is called: a
// middleware that calls next twice does not make two tasks.
func (f *Flow) Run(ctx context.Context, s *Server, tool string, arguments json.RawMessage) (CallReply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reply != nil {
		return *f.reply, nil
	}
	reply, err := s.Call(ctx, f.Caller, tool, arguments, f.Call)
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
