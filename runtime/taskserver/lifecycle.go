package taskserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// errTerminal refuses every event after the end (C-29).
var errTerminal = errors.New("the task has already ended")

// eventKind names a kind of event in the life of a task.
type eventKind string

const (
	eventStart    eventKind = "start"    // a worker begins to run the handler
	eventReport   eventKind = "report"   // the handler reports its progress
	eventAsk      eventKind = "ask"      // the handler asks the requestor
	eventAnswer   eventKind = "answer"   // the requestor answers
	eventFetch    eventKind = "fetch"    // the requestor gets a question; see Input.Fetched
	eventStep     eventKind = "step"     // the handler stores a step
	eventSave     eventKind = "save"     // the handler stores positions
	eventWithdraw eventKind = "withdraw" // the handler no longer waits for an answer
	eventStop     eventKind = "stop"     // the requestor asks it to stop
	eventFinish   eventKind = "finish"   // it ends with an outcome
	eventClaim    eventKind = "claim"    // a server takes it from a worker that was lost, so that it runs again
	eventLeave    eventKind = "leave"    // a server that has not started it leaves it to others
	eventHandOver eventKind = "handover" // a run ends, and another one is to go on
)

// event is one thing that happens to a task, at one time. The comments name the
// kinds that use a field.
type event struct {
	kind    eventKind
	at      time.Time
	nonce   string            // of the write that stores it
	claim   taskstore.Claim   // start, claim, leave, handover; the nonce is added
	again   bool              // start, of a run that was stored as begun and has not begun
	park    []string          // handover, until one of these questions is answered
	report  *report           // report; step, finish and handover, if there is one
	input   mcptask.Request   // ask
	key     string            // answer, fetch, withdraw, step
	answer  json.RawMessage   // answer
	failed  *mcptask.Error    // answer, if the requestor's side failed
	outcome taskstore.Outcome // finish
	lost    bool              // start, claim, finish: the last run was lost
	// steps are stored with the record, whose steps have stepBytes bytes then: step, save, report, handover.
	steps     []taskstore.Step
	stepBytes int64
	// worked is how long the handler has worked, or 0 if that is not known.
	worked time.Duration
	// operator is the person who has done it in the requestor's place, or "".
	operator string
	// unbounded stores the record even if it goes beyond the account's bytes.
	unbounded bool
}

// report is a handler's report of its progress.
type report struct {
	message  string
	progress taskstore.Progress
}

// The phases and the states of a claim in which events are allowed.
var (
	inAnyPhase = []taskstore.Phase{taskstore.PhaseQueued, taskstore.PhaseRunning, taskstore.PhaseInputRequired}
	inRun      = []taskstore.Phase{taskstore.PhaseRunning, taskstore.PhaseInputRequired}
	inQuestion = []taskstore.Phase{taskstore.PhaseInputRequired}

	atAnyone = []taskstore.ClaimState{taskstore.ClaimWaiting, taskstore.ClaimRunning}
	atRun    = []taskstore.ClaimState{taskstore.ClaimRunning}
	atNoRun  = []taskstore.ClaimState{taskstore.ClaimWaiting}
)

// transitions is the whole lifecycle: the phases and claims in which an event is allowed, its effect, and its kind in
// timelines and hooks, or "" if they leave it out (C-27 to C-29, E-21). A [taskstore.Store.Lease] is no event: it
// changes the worker of a claim whose lease has ended, and nothing else.
var transitions = map[eventKind]struct {
	from   []taskstore.Phase
	claim  []taskstore.ClaimState
	apply  func(*taskstore.Record, event) error
	public taskstore.EventKind
}{
	// A start in running or input_required is a restart: the handler runs again.
	eventStart:    {inAnyPhase, atAnyone, applyStart, taskstore.EventStarted},
	eventReport:   {inRun, atRun, applyReport, taskstore.EventReported},
	eventAsk:      {inRun, atRun, applyAsk, taskstore.EventAsked},
	eventStep:     {inRun, atRun, applyReport, taskstore.EventStep},
	eventSave:     {inRun, atRun, applyReport, ""},
	eventAnswer:   {inQuestion, atAnyone, applyAnswer, taskstore.EventAnswered},
	eventFetch:    {inQuestion, atAnyone, applyFetch, ""},
	eventWithdraw: {inQuestion, atRun, applyWithdraw, taskstore.EventWithdrawn},
	eventStop:     {inAnyPhase, atAnyone, applyStop, taskstore.EventStopping},
	eventFinish:   {inAnyPhase, atAnyone, applyFinish, taskstore.EventEnded},
	eventClaim:    {inAnyPhase, atAnyone, applyClaim, ""},
	eventLeave:    {inAnyPhase, atNoRun, applyClaim, ""},
	eventHandOver: {inRun, atRun, applyHandOver, taskstore.EventLeft},
}

// nextRecord is the one transition function: every write of a task's state goes
// through it. It is pure, and the record that it returns shares no slices with r.
func nextRecord(r taskstore.Record, e event) (taskstore.Record, error) {
	switch {
	case e.kind == "":
		return r, errVoid
	case r.Phase == taskstore.PhaseDone:
		return r, errTerminal
	}
	t, ok := transitions[e.kind]
	if !ok || !slices.Contains(t.from, r.Phase) || !slices.Contains(t.claim, r.Claim.State) {
		return r, fmt.Errorf("event %s is not allowed in phase %s with the claim %q", e.kind, r.Phase, r.Claim.State)
	}
	n := r
	n.Inputs = slices.Clone(r.Inputs)
	if e.lost {
		addMoment(&n, taskstore.EventLost, describeLostWorker(&n), e)
	}
	if err := t.apply(&n, e); err != nil {
		return r, err
	}
	n.UpdatedAt, n.Nonce = e.at, e.nonce
	n.Worked = max(n.Worked, e.worked)
	if len(e.steps) > 0 {
		n.StepBytes = e.stepBytes
	}
	if t.public != "" && !e.again {
		addMoment(&n, t.public, describeMoment(&n, e), e)
	}
	return n, nil
}

// addMoment adds a moment of an event to the timeline.
func addMoment(r *taskstore.Record, kind taskstore.EventKind, text string, e event) {
	r.Timeline = r.Timeline.With(taskstore.Moment{Kind: kind, At: e.at, Attempt: r.Attempt, Text: text, Operator: e.operator})
}

// describeMoment returns the text of the moment of an event that has been applied.
func describeMoment(r *taskstore.Record, e event) string {
	switch e.kind {
	case eventStart:
		return DescribeWorker(r.Claim.Worker)
	case eventReport:
		return r.StatusMessage
	case eventAsk:
		return e.input.Key
	case eventAnswer, eventWithdraw, eventStep:
		return e.key
	case eventFinish:
		return nameOutcome(r.Outcome)
	}
	return ""
}

// describeLostWorker returns who has begun the last run of a task, as the timeline tells. A task that another server has
// found has that server as its worker.
func describeLostWorker(r *taskstore.Record) string {
	for _, m := range slices.Backward(r.Timeline.Moments()) {
		if m.Kind == taskstore.EventStarted {
			return m.Text
		}
	}
	return ""
}

// nameOutcome returns how a task has ended, in the words of the audit trail.
func nameOutcome(o *taskstore.Outcome) string {
	if o.IsError {
		return "tool_error"
	}
	return string(o.Kind)
}

func applyStart(r *taskstore.Record, e event) error {
	if r.Phase == taskstore.PhaseQueued {
		r.Phase = taskstore.PhaseRunning
	}
	if r.StatusMessage == waitsForSlot {
		r.StatusMessage = ""
	}
	if !e.again {
		r.Attempt++
		r.Tries++
	}
	for i := range r.Inputs {
		r.Inputs[i].Parked = false
	}
	return applyClaim(r, e)
}

func applyClaim(r *taskstore.Record, e event) error {
	r.Claim = e.claim
	r.Claim.Nonce = e.nonce
	return nil
}

func applyHandOver(r *taskstore.Record, e event) error {
	_ = applyReport(r, e)
	r.Tries--
	for i := range r.Inputs {
		r.Inputs[i].Parked = slices.Contains(e.park, r.Inputs[i].Key)
	}
	return applyClaim(r, e)
}

func applyReport(r *taskstore.Record, e event) error {
	if e.report != nil {
		r.StatusMessage, r.Progress = cutMessage(e.report.message), e.report.progress
	}
	return nil
}

// maxMessage is how many bytes a status message has at most. Clients get no more, and lists of an operator read many.
const maxMessage = 1024

// cutMessage returns the beginning of a text that is too long for a status message. The outcome has all of it.
func cutMessage(text string) string {
	const mark = "..."
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage-len(mark)], "") + mark
}

func applyAsk(r *taskstore.Record, e event) error {
	if findInput(r, e.input.Key) >= 0 { // a key is used only once (E-42 to E-44)
		return fmt.Errorf("the question %q was asked before", e.input.Key)
	}
	if i := findInput(r, e.key); i >= 0 && r.Inputs[i].State == taskstore.InputOutstanding {
		r.Inputs[i].State, r.Inputs[i].Nonce = taskstore.InputSuperseded, e.nonce
		addMoment(r, taskstore.EventWithdrawn, e.key, e)
	}
	r.Inputs = append(r.Inputs, taskstore.Input{Request: e.input, State: taskstore.InputOutstanding})
	r.Phase = taskstore.PhaseInputRequired
	return nil
}

func applyAnswer(r *taskstore.Record, e event) error {
	answer := e.answer
	if i := findInput(r, e.key); i >= 0 && answer != nil {
		answer = keepAnswer(r.Inputs[i].Request, answer)
	}
	return endInput(r, e, taskstore.InputAnswered, answer, e.failed)
}

func applyFetch(r *taskstore.Record, e event) error {
	if !isOutstanding(r, e.key) {
		return fmt.Errorf("the question %q is not outstanding", e.key)
	}
	r.Inputs[findInput(r, e.key)].Fetched = true
	return nil
}

func applyWithdraw(r *taskstore.Record, e event) error {
	return endInput(r, e, taskstore.InputSuperseded, nil, nil)
}

// endInput ends a question. The end of the last one lets the task run again (C-52).
func endInput(r *taskstore.Record, e event, state taskstore.InputState, answer json.RawMessage, failed *mcptask.Error) error {
	i := findInput(r, e.key)
	if !isOutstanding(r, e.key) {
		return fmt.Errorf("the question %q is not outstanding", e.key)
	}
	in := &r.Inputs[i]
	in.State, in.Response, in.Error, in.Nonce = state, answer, failed, e.nonce
	if len(r.Outstanding()) == 0 {
		r.Phase = taskstore.PhaseRunning
	}
	return nil
}

func applyStop(r *taskstore.Record, _ event) error {
	r.CancelRequested = true
	return nil
}

func applyFinish(r *taskstore.Record, e event) error {
	for i := range r.Inputs {
		if r.Inputs[i].State == taskstore.InputOutstanding {
			r.Inputs[i].State = taskstore.InputSuperseded
		}
	}
	outcome := e.outcome
	_ = applyReport(r, e)
	r.Phase, r.Outcome, r.TerminalAt, r.Claim = taskstore.PhaseDone, &outcome, e.at, taskstore.Claim{}
	switch {
	case outcome.Kind == taskstore.OutcomeError:
		r.StatusMessage = cutMessage(outcome.Error.Message)
	case outcome.Kind == taskstore.OutcomeCancelled:
		r.StatusMessage = "The task was cancelled."
	case outcome.IsError:
		r.StatusMessage = cutMessage(readFirstText(outcome.Result))
	default:
		r.StatusMessage = ""
		if p := r.Progress; p.Total > 0 && p.Done < p.Total { // the work is complete, so its last report is out of date
			r.Progress = taskstore.Progress{}
		}
	}
	return nil
}
