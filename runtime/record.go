package mcptask

import (
	"encoding/json"
	"slices"
	"time"
)

// Phase is how far a task has come. The status that a requestor sees is
// projected from phase and outcome by each revision's dialect.
type Phase string

// The phases. A task goes from queued to running, to and fro between running
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
	// OutcomeCancelled is a cancelled task: it has neither.
	OutcomeCancelled OutcomeKind = "cancelled"
)

// Outcome is what a task ended with. It is set once and never changes.
type Outcome struct {
	Kind OutcomeKind
	// Result is the JSON of a [Result], for OutcomeResult.
	Result json.RawMessage
	// IsError is the result's isError: 2025-11-25 calls such a task failed,
	// 2026-07-28 calls it completed (T-40).
	IsError bool
	// Error is set for OutcomeError.
	Error *Error
}

// InputState is what became of a question.
type InputState string

// The states of a question.
const (
	InputOutstanding InputState = "outstanding"
	InputAnswered    InputState = "answered"
	// InputSuperseded is a question that nobody waits for any longer.
	InputSuperseded InputState = "superseded"
)

// Input is one question of a task. Its key is never used again (E-42 to E-44).
type Input struct {
	Key string
	// Method and Params are the request as the requestor gets it, such as
	// elicitation/create.
	Method string
	Params json.RawMessage
	// Schema is what an accepted answer's content must fit; nil is anything.
	Schema   json.RawMessage
	State    InputState
	Response json.RawMessage
	// Error is set in the place of Response where the requestor's side failed.
	Error *Error
}

// Record is one task as it is stored. A Store takes and hands out copies of it and of
// its slices and pointers; they share bytes, such as Arguments, which nobody ever changes.
type Record struct {
	// ID has at least 128 random bits (C-91, E-86).
	ID string
	// Version counts the updates; a Store compares it and sets it.
	Version int64
	// Principal owns the task; "" is anonymous, and then the ID is the key.
	Principal string
	// Account is what the task counts against: its principal, or the session of
	// an anonymous caller, or all anonymous callers without one.
	Account   string
	Tool      string
	Arguments json.RawMessage
	// Revision is the one in which the task was created.
	Revision string
	// IdempotencyKey is the requestor's, "" without one.
	IdempotencyKey string
	// ExternalID is what the requestor calls the task, in revisions where it does
	// (A-13, D-05); "" elsewhere. See Caller.Named.
	ExternalID string
	// CanAsk names the request methods that the requestor answers.
	CanAsk []string

	Phase           Phase
	Outcome         *Outcome
	StatusMessage   string
	CancelRequested bool
	Inputs          []Input

	CreatedAt, UpdatedAt time.Time
	// TerminalAt is set together with Outcome.
	TerminalAt time.Time
	// ExpiresAt is when the task is deleted, whatever its phase.
	ExpiresAt time.Time
	// Keep is how long the task is kept once it has ended, where its retention
	// counts from then: its end sets ExpiresAt. 0 elsewhere.
	Keep time.Duration
	// Poll is the polling interval that requestors are told.
	Poll time.Duration

	// Attempt counts the runs of the handler, from 1.
	Attempt int
	// Tries counts those of them that no closing server has handed over; see
	// MaxTries.
	Tries int
	// Worker holds the task until LeaseUntil; then another may take it.
	Worker     string
	LeaseUntil time.Time
}

// Done says whether the task has ended.
func (r *Record) Done() bool { return r.Phase == PhaseDone }

// TTL is how long the task is kept, counted from its creation.
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

// input finds a question by its key; -1 is none.
func (r *Record) findInput(key string) int {
	return slices.IndexFunc(r.Inputs, func(in Input) bool { return in.Key == key })
}

// sameRun says whether two records are of one run of one task: a name may have
// been given to another task since.
func (r Record) isSameRun(other Record) bool {
	return r.Attempt == other.Attempt && r.Worker == other.Worker && r.CreatedAt.Equal(other.CreatedAt)
}

// expired says whether the task's time is over at now.
func (r *Record) isExpired(now time.Time) bool { return !now.Before(r.ExpiresAt) }
