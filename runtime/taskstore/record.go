package taskstore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/account"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Phase is how far a task has come. Each revision makes the status that a
// requestor sees from phase and outcome.
type Phase string

// The phases. A task goes from queued to running, back and forth between running
// and input required, and ends in done.
const (
	PhaseQueued        Phase = "queued"
	PhaseRunning       Phase = "running"
	PhaseInputRequired Phase = "input_required"
	PhaseDone          Phase = "done"
)

// OutcomeKind says how a task ended.
type OutcomeKind string

// The outcomes.
const (
	// OutcomeResult is a tool result, a tool error (isError) included.
	OutcomeResult OutcomeKind = "result"
	// OutcomeError is a JSON-RPC error.
	OutcomeError OutcomeKind = "error"
	// OutcomeCancelled is a cancelled task, without a result or an error.
	OutcomeCancelled OutcomeKind = "cancelled"
)

// Outcome is the end of a task. It is set once and never changes.
type Outcome struct {
	Kind OutcomeKind
	// Result is the JSON of a [mcptask.Result], for OutcomeResult.
	Result json.RawMessage
	// IsError is the result's isError: 2025-11-25 calls such a task failed, 2026-07-28 calls it completed.
	IsError bool
	// Error is set for OutcomeError.
	Error *mcptask.Error
}

// InputState is the state of a question.
type InputState string

// The states of a question.
const (
	InputOutstanding InputState = "outstanding"
	InputAnswered    InputState = "answered"
	// InputSuperseded is a question whose answer is no longer wanted.
	InputSuperseded InputState = "superseded"
)

// Input is one question of a task. Its key is used only once.
type Input struct {
	mcptask.Request
	State    InputState
	Response json.RawMessage
	// Error is set instead of Response if the requestor's side failed.
	Error *mcptask.Error
	// Nonce is the [Record.Nonce] of the write that ended the question.
	Nonce string
	// Fetched says that a request which waits for the task has carried the question, in a
	// session that several servers serve. From then on only such requests carry it. So the
	// session's own stream at another server does not carry it a second time.
	Fetched bool
	// Parked says that the run which asked has ended, and that another one begins when a question
	// is answered; see taskserver.Engine.
	Parked bool
}

// Progress is how far the work of a task is: done of total, in any unit. A total of 0
// means unknown. A task that has succeeded has none below its total.
type Progress struct{ Done, Total float64 }

// Record is one task as it is stored. A Store takes and returns copies of it, and of
// its slices and pointers. The copies share bytes, such as Arguments, which never
// change. The server sets all fields but two: a Store sets the Version and, in Lease, the Worker of the Claim.
type Record struct {
	// ID has at least 128 random bits.
	ID string
	// Version counts the updates. The Store compares and sets it.
	Version int64
	// Nonce names the write that made this version, at random. A store knows a repeated write by it. ""
	// means that the write has no name.
	Nonce string

	// The fields from here to Trace are fixed at the creation.

	// Principal owns the task. "" is anonymous: then the ID is the key to it.
	Principal string
	// Account is the account that the task counts against; see taskserver.Caller.Account.
	Account   string
	Tool      string
	Arguments json.RawMessage
	// Revision is the revision of the request that created the task.
	Revision string
	// IdempotencyKey is the requestor's key, or "".
	IdempotencyKey string
	// ExternalID is the requestor's own name for the task, in revisions that have such names, or "". See taskserver.Caller.Named.
	ExternalID string
	// CanAsk names the request methods that the requestor answers, and tools/call if
	// a tool takes the answers to forms.
	CanAsk    []string
	CreatedAt time.Time
	// Poll is the polling interval that requestors are told.
	Poll time.Duration
	// Trace is the trace that the request belongs to: the traceparent of W3C Trace Context and,
	// after a line break, the tracestate if there is one. It names the server's span of the request
	// if a hook has made one, see taskserver.WithTrace, and otherwise the span that the client has named. ""
	// means none.
	Trace string

	Phase Phase
	// Outcome is set once, and never changes.
	Outcome         *Outcome
	StatusMessage   string
	Progress        Progress
	CancelRequested bool
	Inputs          []Input
	// StepBytes is how many bytes the task's steps have, see [Step.Size].
	StepBytes int64
	// Worked is how long the runs of the handler have worked, as far as that was stored: without the time in which they
	// waited for a slot, an answer, a [mcptask.Sleep] or a [mcptask.Task.WithoutSlot].
	Worked time.Duration

	// UpdatedAt and the times below are of the store's clock.
	UpdatedAt time.Time
	// TerminalAt is set together with Outcome.
	TerminalAt time.Time
	// ExpiresAt is when the task is deleted, whatever its phase.
	ExpiresAt time.Time

	// Timeline has the events of the task, for its operator.
	Timeline Timeline

	// Attempt counts the runs of the handler, from 1.
	Attempt int
	// Tries counts the runs that were not handed over by a closing server; see
	// [mcptask.Policy.Attempts].
	Tries int
	// Claim names the worker that has the task, and says whether its handler runs. It is zero once the task has ended.
	Claim Claim
}

// Claim names the worker that has a task, and says whether its handler runs.
type Claim struct {
	// Worker has the task as long as its lease lasts, see [Store.Beat]. Then another may take
	// it. "" means that no worker has it: it waits, and any may take it, see [Store.Waiting].
	Worker string
	State  ClaimState
	// Nonce is the [Record.Nonce] of the write that made the claim. So no two claims are equal.
	Nonce string
}

// ClaimState says whether a task waits or runs.
type ClaimState string

// The states of a claim.
const (
	// ClaimWaiting is a task that no handler runs. If it has a worker, that has submitted it to an executor, or is about
	// to. The executor may pass it to another server.
	ClaimWaiting ClaimState = ""
	// ClaimRunning is a task whose handler runs at its worker, or was lost with it.
	ClaimRunning ClaimState = "running"
)

// Clone returns a copy of the record, and of its slices and pointers. The copies share bytes, which never change.
func (r *Record) Clone() Record {
	c := *r
	c.Inputs, c.CanAsk = slices.Clone(r.Inputs), slices.Clone(r.CanAsk)
	for i := range c.Inputs {
		c.Inputs[i].Error = clonePointer(c.Inputs[i].Error)
	}
	if c.Outcome = clonePointer(r.Outcome); c.Outcome != nil {
		c.Outcome.Error = clonePointer(c.Outcome.Error)
	}
	return c
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	copied := *p
	return &copied
}

// KeepFixed copies the fields that never change from the stored record to r, its outcome included. A [Store] calls it
// in Update.
func (r *Record) KeepFixed(stored *Record) {
	r.ID, r.Version, r.Principal, r.Account, r.Tool = stored.ID, stored.Version, stored.Principal, stored.Account, stored.Tool
	r.Arguments, r.Revision, r.IdempotencyKey = stored.Arguments, stored.Revision, stored.IdempotencyKey
	r.ExternalID, r.CanAsk, r.CreatedAt = stored.ExternalID, stored.CanAsk, stored.CreatedAt
	r.Poll, r.Trace = stored.Poll, stored.Trace
	if stored.Outcome != nil {
		r.Outcome = stored.Outcome
	}
}

// IsFree reports whether the task waits, and any worker may take it.
func (r *Record) IsFree() bool { return !r.Done() && r.Claim.Worker == "" }

// Waits reports whether the task waits for a worker to start its handler: for the first time, or again after its worker
// was lost. A task that waits for an answer does not count.
func (r *Record) Waits() bool {
	return r.Phase == PhaseQueued || r.Phase == PhaseRunning && r.Claim.Worker == ""
}

// Done reports whether the task has ended.
func (r *Record) Done() bool { return r.Phase == PhaseDone }

// Failed reports whether the task has ended with an error: a JSON-RPC error, or a result with isError.
func (r *Record) Failed() bool {
	return r.Outcome != nil && (r.Outcome.Kind == OutcomeError || r.Outcome.IsError)
}

// TTL returns how long the task is kept, counted from its creation.
func (r *Record) TTL() time.Duration { return r.ExpiresAt.Sub(r.CreatedAt) }

// Outstanding lists the questions that wait for an answer, oldest first.
func (r *Record) Outstanding() []Input {
	var open []Input
	for _, in := range r.Inputs {
		if in.State == InputOutstanding {
			open = append(open, in)
		}
	}
	return open
}

// Change returns the news of a record in the feed of its store.
func (r *Record) Change() Change {
	return Change{ID: r.ID, Version: r.Version, Phase: r.Phase, Free: r.IsFree()}
}

// Report returns the task's progress, and its status message without the count.
func (r Record) Report() mcptask.ProgressReport {
	report := mcptask.ProgressReport{Done: r.Progress.Done, Total: max(r.Progress.Total, 0), Message: r.StatusMessage}
	switch count := r.Progress.Status(""); {
	case report.Message == count:
		report.Message = ""
	case report.Total > 0:
		report.Message = strings.TrimSuffix(report.Message, " ("+count+")")
	}
	return report
}

// Status writes the progress and a message as a status message. Beside a message, it leaves out a count whose total is
// not known: the message says what the number is of.
func (p Progress) Status(message string) string {
	if p.Done == 0 && p.Total == 0 || message != "" && p.Total <= 0 {
		return message
	}
	count := strconv.FormatFloat(p.Done, 'f', -1, 64)
	if p.Total > 0 {
		count += "/" + strconv.FormatFloat(p.Total, 'f', -1, 64)
	}
	if message == "" {
		return count
	}
	return fmt.Sprintf("%s (%s)", message, count)
}

// Address returns the Address of the caller that has created the task. It is "" if there is none. A Store counts the
// records of an address together; see [Quota].
func (r *Record) Address() string {
	if r.Principal != "" {
		return ""
	}
	address, _ := account.CutAddress(r.Account)
	return address
}

// LogID returns a task's ID for the log. Without a principal the ID is the key to
// the task, so LogID returns only its beginning.
func LogID(principal, id string) string {
	if principal == "" {
		return id[:min(len(id), 8)] + "..."
	}
	return id
}
