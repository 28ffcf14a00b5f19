package taskserver

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/account"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Caller describes the sender of a request and its abilities, as the gateway found them.
type Caller struct {
	// Principal is compared by equality; "" is anonymous.
	Principal string
	// Local reports whether the caller is the only client of this process, such as the client on a pipe. It may have
	// all slots of the local executor.
	Local bool
	// Address is a keyed hash of the network address of an anonymous caller, without spaces. "" means that the address
	// is not known.
	Address string
	// Session is the session that the request belongs to, or "".
	Session string
	// Revision is the protocol revision of the request.
	Revision string
	// Method is the request's method, for the audit trail, or "" if it is not known.
	Method string
	// Client is the client's program, as it names itself.
	Client ClientInfo
	// CanAsk names the request methods that the client answers, such as
	// elicitation/create.
	CanAsk []string
}

// Account returns the account that the caller's tasks and requests count against.
func (c Caller) Account() string {
	name := ""
	switch {
	case c.Principal != "":
		name = account.Principal + c.Principal
	case c.Session != "":
		name = account.Session + c.Session
	}
	switch {
	case c.Local:
		name = account.Local + name
	case c.Principal == "" && c.Address != "" && name == "":
		name = account.Address + c.Address
	case c.Principal == "" && c.Address != "":
		name = account.Address + c.Address + " " + name
	}
	return name
}

// callerOf returns the owner of the task as a caller.
func callerOf(r *taskstore.Record) Caller {
	name, isLocal := strings.CutPrefix(r.Account, account.Local)
	address, name := account.CutAddress(name)
	session, isSession := strings.CutPrefix(name, account.Session)
	if !isSession {
		session = ""
	}
	return Caller{Principal: r.Principal, Local: isLocal, Address: address, Session: session, Revision: r.Revision, CanAsk: r.CanAsk}
}

// Named returns the stored ID of a task that the caller named itself. It hashes
// account and name, so that accounts cannot collide and no lookup table is needed.
// An ID that is not such a name is used as it is, without Named.
func (c Caller) Named(external string) string {
	c.Local, c.Address = false, "" // the same caller may come from another address
	sum := sha256.Sum256([]byte(c.Account() + "\x00" + external))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// isNamed reports whether an ID is one of Named. The server's own IDs are shorter.
func isNamed(id string) bool { return len(id) > unmarkedLength+markLength }

// Answers reports whether the caller answers such a request.
func (c Caller) Answers(in mcptask.Request) bool {
	return slices.Contains(c.CanAsk, requiredCapability(in)) && !(spec.HasSingleBlocks(c.Revision) && hasSeveralBlocks(in))
}

// checkCanAsk returns an error that says why the caller cannot be asked. reachable
// says whether there is a way to send it a request.
func (c Caller) checkCanAsk(in mcptask.Request, reachable bool) error {
	switch {
	case spec.HasSingleBlocks(c.Revision) && hasSeveralBlocks(in):
		return fmt.Errorf("%w: the step %q has a message of several blocks, but a message has one block in %s: make a message of each block",
			mcptask.ErrCannotAsk, in.Key, c.Revision)
	case !c.Answers(in):
		return fmt.Errorf("%w: its client has not declared that it answers %s", mcptask.ErrCannotAsk, requiredCapability(in))
	case !reachable:
		return fmt.Errorf("%w: this plain call in %s has no way to ask: call the tool as a task", mcptask.ErrCannotAsk, c.Revision)
	}
	return nil
}

// CanAskURL stands in [Caller.CanAsk] for elicitation/create in its URL mode, which a client declares separately.
const CanAskURL = "elicitation/create#url"

// Mode says how to answer a tools/call.
type Mode int

// The modes.
const (
	// ModePlain answers with the result when it is there.
	ModePlain Mode = iota
	// ModeTask answers with a task at once, because the requestor asked for one.
	ModeTask
	// ModeGrace answers with the result if it is there within the tool's grace, and
	// with a task otherwise. The server decides.
	ModeGrace
	// ModeFallback is ModeGrace for a requestor that does not know tasks: the gateway describes the task to it, or asks
	// it the task's questions.
	ModeFallback
)

// CallRequest is a tools/call, negotiated.
type CallRequest struct {
	Mode Mode
	// TTL is the retention that the requestor asks for; nil leaves it to the tool. One
	// that is shorter than the tool's has no effect.
	TTL *time.Duration
	// IdempotencyKey makes a repeated call return the first one's task.
	IdempotencyKey string
	// ExternalID is the requestor's own name for the task; see Caller.Named. A name
	// in use is refused, unless the call has the IdempotencyKey of the first.
	ExternalID string
	// Answers are the responses that came with the call to the tool's questions,
	// by key.
	Answers map[string]json.RawMessage
	// Retry says that the requestor answers questions by repeating the call with the
	// answers.
	Retry bool
	// Task is the ID of the task of an earlier call that was answered with the task's
	// questions. The call repeats it with the answers, and creates no task. "" means none.
	Task string
	// Later says that the questions before the call may also be asked when the task
	// exists.
	Later bool
	// ByTool is Later for a task whose forms a tool answers too, for anyone who knows
	// the task. They need no capability of the requestor, and stay open if it fails to
	// show them.
	ByTool bool
	// TakesTask says that the requestor takes a task for an answer, although the Mode is ModeFallback.
	TakesTask bool
	// Unattended says that nobody answers the call's questions by the fallback tools.
	Unattended bool
	// Trace is the trace that the request belongs to, in the form of [taskstore.Record.Trace]. The
	// gateway has checked it. A call that has a task already does not change the task's.
	Trace string
	// Ask asks the requestor while the call is open. If the requestor answers with an error, Ask
	// returns it as an *Error. nil means that the requestor cannot be asked.
	Ask func(context.Context, mcptask.Request) (json.RawMessage, error)
	// Progress takes progress if the caller asked for it; nil drops it.
	Progress ProgressFunc
	// Bind binds the call's arguments in place of the tool's own Bind, unless it is nil. An adapter sets it for a tool that
	// several servers of its SDK have, so that the handler is that of the server that the call came to. A run of the
	// task in another process uses the tool's own.
	Bind func(arguments json.RawMessage) (mcptask.BoundCall, error)
	// Returned is called when the handler of a call without a task has returned, before its result is
	// encoded. Its error answers the call in place of the result. It may be nil.
	Returned func() error

	// operator is the person who calls in the requestor's place, or "", and again says which task is run again.
	operator, again string
	// bound calls the handler with the arguments. It is nil if they were not checked in this process.
	bound mcptask.BoundCall
	// inRun says that a run of the call's task asks the questions before it.
	inRun bool
}

// ProgressFunc takes the progress of a call; taskID is "" for a plain one.
type ProgressFunc func(taskID string, done, total float64, message string)

// CallReply is the answer to a tools/call: a task, an outcome, or the questions to
// answer first. An outcome beside a task describes the task. Questions beside a task
// are the task's; see CallRequest.Task.
type CallReply struct {
	Task      *taskstore.Record
	Outcome   *taskstore.Outcome
	Questions []taskstore.Input
	// Answered are the questions that need no second answer.
	Answered []taskstore.Input
}
