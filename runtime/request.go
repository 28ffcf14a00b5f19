package mcptask

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"
)

// Caller is who sends a request and what it can do, as the gateway found out.
type Caller struct {
	// Principal is compared by equality; "" is anonymous.
	Principal string
	// Session is the session that the request belongs to, "" without one.
	Session string
	// Revision is the protocol revision that the request is spoken in.
	Revision string
	// Method is the request's, for the audit trail; "" where it is not known.
	Method string
	// CanAsk names the request methods that the client answers, such as
	// elicitation/create.
	CanAsk []string
}

// Account is what the caller's tasks and requests count against.
func (c Caller) Account() string {
	switch {
	case c.Principal != "":
		return "principal " + c.Principal
	case c.Session != "":
		return "session " + c.Session
	}
	return ""
}

// Named is the ID of the task that the caller calls by a name of its own: nobody
// else's account has it, and it takes no table to find it. An ID of a task stays
// what it is where the caller has named none so.
func (c Caller) Named(external string) string {
	sum := sha256.Sum256([]byte(c.Account() + "\x00" + external))
	return base64.RawURLEncoding.EncodeToString(sum[:])
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
	// ModeFallback is ModeGrace for a requestor that knows no tasks: somebody has
	// to tell it what the task is.
	ModeFallback
)

// CallRequest is a tools/call, negotiated.
type CallRequest struct {
	Mode Mode
	// TTL is the retention that the requestor asks for; nil leaves it to the tool.
	TTL *time.Duration
	// FromEnd counts the retention from the task's end, not from its creation.
	FromEnd bool
	// IdempotencyKey makes a repeated call return the first one's task.
	IdempotencyKey string
	// ExternalID is what the requestor calls the task: Caller.Named finds it. One in
	// use is refused, unless the call has the IdempotencyKey of the first.
	ExternalID string
	// Answers are the responses that came with the call to the tool's questions,
	// by key.
	Answers map[string]json.RawMessage
	// Retry says that the requestor, told the tool's questions, calls again with
	// the answers.
	Retry bool
	// Later says that the tool's questions may also be answered once there is a
	// task, and by whoever knows it: forms need no capability of the requestor.
	Later bool
	// Ask asks the requestor while the call is open; nil is no way to.
	Ask func(context.Context, Input) (json.RawMessage, error)
	// Progress takes progress where the caller asked for it; nil drops it.
	Progress ProgressFunc
}

// ProgressFunc takes the progress of a call; taskID is "" for a plain one.
type ProgressFunc func(taskID string, done, total float64, message string)

// CallReply is the answer to a tools/call: a task, how the call ended, or the
// questions to answer first. An outcome beside a task tells of the task.
type CallReply struct {
	Task      *Record
	Outcome   *Outcome
	Questions []Input
	// Answered are those that need no second answer.
	Answered []Input
}

// Attached returns what goes with the server under a key: what create made the
// first time. A gateway keeps there what it shares with the adapter of an SDK.
func (s *Server) Attached(key any, create func() any) any {
	value, ok := s.attached.Load(key)
	if !ok {
		value, _ = s.attached.LoadOrStore(key, create())
	}
	return value
}
