package mcptask

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// errTerminal refuses every event after the end (C-29).
var errTerminal = errors.New("the task has already ended")

// eventKind names what can happen to a task.
type eventKind string

const (
	eventStart    eventKind = "start"    // a worker begins to run the handler
	eventReport   eventKind = "report"   // the handler reports its progress
	eventAsk      eventKind = "ask"      // the handler asks the requestor
	eventAnswer   eventKind = "answer"   // the requestor answers
	eventFetch    eventKind = "fetch"    // the requestor gets a question; see Input.Fetched
	eventWithdraw eventKind = "withdraw" // the handler no longer waits for an answer
	eventStop     eventKind = "stop"     // the requestor asks it to stop
	eventFinish   eventKind = "finish"   // it ends with an outcome
	eventClaim    eventKind = "claim"    // a worker takes it from a worker that was lost
	eventHandOver eventKind = "handover" // a worker that closes leaves it to another one
)

// event is one thing that happens to a task, at one time. The comments name the
// kinds that use a field.
type event struct {
	kind    eventKind
	at      time.Time
	worker  string          // start, claim, handover
	park    []string        // handover, until one of these questions is answered
	report  *report         // report; finish and handover, if there is one
	input   Input           // ask
	key     string          // answer, fetch, withdraw
	answer  json.RawMessage // answer
	failed  *Error          // answer, if the requestor's side failed
	outcome Outcome         // finish
	lost    bool            // start, claim, finish: the last run was lost, see isRunLost
	// operator is the person who has done it in the requestor's place, or "".
	operator string
	// unbounded stores the record even if it goes beyond the account's bytes.
	unbounded bool
}

// report is what a handler has said of its progress.
type report struct {
	message  string
	progress Progress
}

// transitions is the whole lifecycle: the phases in which an event is allowed, and
// what it does (C-27 to C-29, E-21).
var transitions = map[eventKind]struct {
	from  []Phase
	apply func(*Record, event) error
}{
	// A start in running or input_required is a restart: the handler runs again.
	eventStart:    {[]Phase{PhaseQueued, PhaseRunning, PhaseInputRequired}, applyStart},
	eventReport:   {[]Phase{PhaseRunning, PhaseInputRequired}, applyReport},
	eventAsk:      {[]Phase{PhaseRunning, PhaseInputRequired}, applyAsk},
	eventAnswer:   {[]Phase{PhaseInputRequired}, applyAnswer},
	eventFetch:    {[]Phase{PhaseInputRequired}, applyFetch},
	eventWithdraw: {[]Phase{PhaseInputRequired}, applyWithdraw},
	eventStop:     {[]Phase{PhaseQueued, PhaseRunning, PhaseInputRequired}, applyStop},
	eventFinish:   {[]Phase{PhaseQueued, PhaseRunning, PhaseInputRequired}, applyFinish},
	eventClaim:    {[]Phase{PhaseQueued, PhaseRunning, PhaseInputRequired}, applyClaim},
	eventHandOver: {[]Phase{PhaseRunning, PhaseInputRequired}, applyHandOver},
}

// nextRecord is the one transition function: every write of a task's state goes
// through it. It is pure, and the record that it returns shares no slices with r.
func nextRecord(r Record, e event) (Record, error) {
	if r.Phase == PhaseDone {
		return r, errTerminal
	}
	t, ok := transitions[e.kind]
	if !ok || !slices.Contains(t.from, r.Phase) {
		return r, fmt.Errorf("event %s is not allowed in phase %s", e.kind, r.Phase)
	}
	n := r
	n.Inputs = slices.Clone(r.Inputs)
	if e.lost {
		n.addMoment(EventLost, "", e)
	}
	if err := t.apply(&n, e); err != nil {
		return r, err
	}
	n.UpdatedAt = e.at
	if kind := e.kind.publicKind(); kind != "" {
		n.addMoment(kind, n.describeMoment(e), e)
	}
	return n, nil
}

// publicKind returns what timelines and hooks call the event, or "" if they leave it out.
func (k eventKind) publicKind() EventKind {
	switch k {
	case eventStart:
		return EventStarted
	case eventReport:
		return EventReported
	case eventAsk:
		return EventAsked
	case eventAnswer:
		return EventAnswered
	case eventWithdraw:
		return EventWithdrawn
	case eventStop:
		return EventStopping
	case eventHandOver:
		return EventLeft
	case eventFinish:
		return EventEnded
	}
	return ""
}

// addMoment adds a moment of an event to the timeline.
func (r *Record) addMoment(kind EventKind, text string, e event) {
	r.Timeline = r.Timeline.With(Moment{Kind: kind, At: e.at, Attempt: r.Attempt, Text: text, Operator: e.operator})
}

// describeMoment returns the text of the moment of an event that has been applied.
func (r *Record) describeMoment(e event) string {
	switch e.kind {
	case eventStart:
		return nameShort(r.Worker)
	case eventReport:
		return r.StatusMessage
	case eventAsk:
		return e.input.Key
	case eventAnswer, eventWithdraw:
		return e.key
	case eventFinish:
		return r.Outcome.name()
	}
	return ""
}

// isRunLost reports whether the last run of a task whose worker is gone was lost. It was not if its server left the task
// to others when it closed. A run whose loss is in the timeline is not lost again.
func (r *Record) isRunLost() bool {
	return r.Attempt > 0 && !slices.ContainsFunc(r.Timeline.Moments(), func(m Moment) bool {
		return m.Attempt == r.Attempt && (m.Kind == EventLeft || m.Kind == EventLost)
	})
}

// nameShort returns as much of a worker's name as a person needs to tell workers apart.
func nameShort(worker string) string { return worker[:min(len(worker), 8)] }

// name returns how a task has ended, in the words of the audit trail.
func (o *Outcome) name() string {
	if o.IsError {
		return "tool_error"
	}
	return string(o.Kind)
}

// waitsForSlot is the status message of a new task in the line of the local executor.
const waitsForSlot = "Waits for a free slot."

func applyStart(r *Record, e event) error {
	if r.Phase == PhaseQueued {
		r.Phase = PhaseRunning
	}
	if r.StatusMessage == waitsForSlot {
		r.StatusMessage = ""
	}
	r.Attempt++
	r.Tries++
	r.Worker = e.worker
	for i := range r.Inputs {
		r.Inputs[i].Parked = false
	}
	return nil
}

func applyClaim(r *Record, e event) error {
	r.Worker = e.worker
	return nil
}

func applyHandOver(r *Record, e event) error {
	_ = applyReport(r, e)
	r.Tries--
	r.Worker = e.worker
	for i := range r.Inputs {
		r.Inputs[i].Parked = slices.Contains(e.park, r.Inputs[i].Key)
	}
	return nil
}

func applyReport(r *Record, e event) error {
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

func applyAsk(r *Record, e event) error {
	if r.findInput(e.input.Key) >= 0 {
		return fmt.Errorf("the question %q was asked before", e.input.Key)
	}
	e.input.State = InputOutstanding
	r.Inputs = append(r.Inputs, e.input)
	r.Phase = PhaseInputRequired
	return nil
}

func applyAnswer(r *Record, e event) error {
	answer := e.answer
	if i := r.findInput(e.key); i >= 0 && answer != nil {
		answer = keepAnswer(r.Inputs[i], answer)
	}
	return settleInput(r, e.key, InputAnswered, answer, e.failed)
}

func applyFetch(r *Record, e event) error {
	if !r.isOutstanding(e.key) {
		return fmt.Errorf("the question %q is not outstanding", e.key)
	}
	r.Inputs[r.findInput(e.key)].Fetched = true
	return nil
}

func applyWithdraw(r *Record, e event) error {
	return settleInput(r, e.key, InputSuperseded, nil, nil)
}

// settleInput ends a question. The end of the last one lets the task run again (C-52).
func settleInput(r *Record, key string, state InputState, answer json.RawMessage, failed *Error) error {
	i := r.findInput(key)
	if !r.isOutstanding(key) {
		return fmt.Errorf("the question %q is not outstanding", key)
	}
	r.Inputs[i].State, r.Inputs[i].Response, r.Inputs[i].Error = state, answer, failed
	if len(r.Outstanding()) == 0 {
		r.Phase = PhaseRunning
	}
	return nil
}

func applyStop(r *Record, _ event) error {
	r.CancelRequested = true
	return nil
}

func applyFinish(r *Record, e event) error {
	for i := range r.Inputs {
		if r.Inputs[i].State == InputOutstanding {
			r.Inputs[i].State = InputSuperseded
		}
	}
	outcome := e.outcome
	_ = applyReport(r, e)
	r.Phase, r.Outcome, r.TerminalAt = PhaseDone, &outcome, e.at
	r.Worker = ""
	if r.Keep > 0 {
		r.ExpiresAt = e.at.Add(r.Keep)
	}
	switch {
	case outcome.Kind == OutcomeError:
		r.StatusMessage = cutMessage(outcome.Error.Message)
	case outcome.Kind == OutcomeCancelled:
		r.StatusMessage = "The task was cancelled."
	case outcome.IsError:
		r.StatusMessage = cutMessage(readFirstText(outcome.Result))
	default:
		r.StatusMessage = ""
	}
	return nil
}
