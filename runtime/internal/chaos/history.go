package chaos

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// History has the notes of clients, handlers and tests. The order of its elements does not matter.
type History struct {
	Operations []Operation
	Runs       []Run
	Processes  []Disturbance
}

// Action is the kind of an Operation.
type Action string

// The actions.
const (
	ActionCreate Action = "create"
	ActionRead   Action = "read"   // of a task's state, or of its result
	ActionCancel Action = "cancel" // of a task
	ActionAnswer Action = "answer" // to a question
	ActionList   Action = "list"   // of all tasks of the principal, on all pages
	ActionAsked  Action = "asked"  // a question that came on a stream; the call is the start of the stream
)

// Reply is a client's knowledge of an operation's result.
type Reply string

// The replies.
const (
	ReplyOK      Reply = "ok"
	ReplyRefused Reply = "refused" // nothing was carried out
	ReplyMissing Reply = "missing" // there is no such task
	ReplyUnknown Reply = "unknown" // it may have been carried out
)

// Operation is one request of a client, from its call to its return.
type Operation struct {
	Client, Revision, Principal string

	Action           Action
	Called, Returned time.Time
	Reply            Reply
	// Error is the text of a reply other than ok.
	Error string

	// Task is the task's ID. A create without an acknowledgement has none.
	Task string
	// Tool, Nonce and Key are those of a create. Each call has a nonce of its own among its arguments,
	// except that calls with one idempotency key share one.
	Tool  Tool
	Nonce string
	Key   string
	// Step is the question of an answer, and Value is the answer.
	Step, Value string
	// View is the state that an operation has shown, or nil.
	View *View
	// Listed are the tasks of a list, in its order.
	Listed []string
}

// View is the state of a task as a client saw it.
type View struct {
	Status Status
	// Value is the text of the result or of the error; "" means that the client was not told.
	Value string
	// Updated is when the task was changed last, or zero.
	Updated time.Time
	// Message is the status message.
	Message string
	// Open are the steps of the open questions.
	Open []string
}

// Status is a task's status on the wire.
type Status string

// The statuses.
const (
	StatusWorking   Status = "working"
	StatusAsking    Status = "input_required"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
)

// isFinal reports whether a task with the status has ended.
func (s Status) isFinal() bool { return s != StatusWorking && s != StatusAsking }

// Tool is the name of a tool.
type Tool string

// The tools. Each has an argument that says for how many milliseconds it works.
const (
	// ToolRestart works, and restarts when its worker is lost.
	ToolRestart Tool = "work_restart"
	// ToolFail works, and must never run twice.
	ToolFail Tool = "work_fail"
	// ToolAsk asks two questions, and restarts.
	ToolAsk Tool = "ask_restart"
	// ToolWatch waits for its cancellation, and must never run twice.
	ToolWatch Tool = "watch_fail"
)

// restarts reports whether a lost task of the tool runs again.
func (t Tool) restarts() bool { return t == ToolRestart || t == ToolAsk }

// LostMessage is the text of the error of a task that was lost with its worker.
const LostMessage = "the worker of the task was lost"

// Moment is a note of a handler.
type Moment string

// The moments of a run.
const (
	MomentStart     Moment = "start"
	MomentAnswered  Moment = "answered"  // a question, which Step and Value tell
	MomentCancelled Moment = "cancelled" // the handler saw the end of its context
	MomentEnd       Moment = "end"       // the handler returns Value
)

// Run is one moment of one run of a handler.
type Run struct {
	At          time.Time
	Process     string
	Task        string
	Tool        Tool
	Nonce       string
	Attempt     int
	Moment      Moment
	Step, Value string
}

// FormatValue returns the result of a run. It tells every run from every other.
func FormatValue(nonce string, attempt int, process string) string {
	return fmt.Sprintf("%s of attempt %d in %s", nonce, attempt, process)
}

// Harm is an event that disturbs a process.
type Harm string

// The harms.
const (
	HarmStarted   Harm = "started"
	HarmKilled    Harm = "killed"
	HarmStopped   Harm = "stopped"
	HarmContinued Harm = "continued"
	// HarmLate says that the process did not run for a while before this, since the machine is busy.
	HarmLate Harm = "late"
	// HarmCut says that connections to the store were cut. It is of no process.
	HarmCut Harm = "cut"
)

// Disturbance is a Harm to a process at one time.
type Disturbance struct {
	At      time.Time
	Process string
	Harm    Harm
	// For is how long the process was late.
	For time.Duration
}

// Line is one line of the file of a process: a run or a disturbance.
type Line struct {
	Run         *Run         `json:",omitempty"`
	Disturbance *Disturbance `json:",omitempty"`
}

// Journal appends lines to a file. A line survives the death of the process once Write has returned. It is safe for
// concurrent use.
type Journal struct {
	mu   sync.Mutex
	file *os.File
}

// OpenJournal opens the journal of a process.
func OpenJournal(path string) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &Journal{file: file}, err
}

// Write appends a line.
func (j *Journal) Write(l Line) error {
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err = j.file.Write(append(data, '\n'))
	return err
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// ReadJournal adds the lines of a journal to the history. The last line may be torn: then its process was
// killed while it wrote, before it went on.
func (h *History) ReadJournal(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it is only read
	for lines := bufio.NewReader(file); ; {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var l Line
		if err := json.Unmarshal(bytes.TrimSpace(text), &l); err != nil {
			return fmt.Errorf("%s: %q: %w", path, text, err)
		}
		if l.Run != nil {
			h.Runs = append(h.Runs, *l.Run)
		}
		if l.Disturbance != nil {
			h.Processes = append(h.Processes, *l.Disturbance)
		}
	}
}

// String describes an operation in a line.
func (o Operation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s (until %s)  client %s, %s: %s", clock(o.Called), o.Reply, clock(o.Returned), o.Client, o.Revision, o.Action)
	for _, part := range []struct{ name, value string }{
		{"", string(o.Tool)}, {"nonce", o.Nonce}, {"key", o.Key}, {"step", o.Step}, {"value", o.Value}, {"error", o.Error},
	} {
		if part.value != "" {
			fmt.Fprintf(&b, " %s %s", part.name, part.value)
		}
	}
	if v := o.View; v != nil {
		fmt.Fprintf(&b, " -> %s %q, message %q, open %q, updated %s", v.Status, v.Value, v.Message, v.Open, clock(v.Updated))
	}
	return b.String()
}

// sameness tells reads apart that have shown different states. It is "" for other operations.
func (o Operation) sameness() string {
	if o.Action != ActionRead || o.View == nil {
		return ""
	}
	return fmt.Sprint(*o.View)
}

// String describes a moment of a run in a line.
func (r Run) String() string {
	return fmt.Sprintf("%s run      %s, attempt %d: %s %s %s", clock(r.At), r.Process, r.Attempt, r.Moment, r.Step, r.Value)
}

// String describes a disturbance in a line.
func (d Disturbance) String() string {
	text := fmt.Sprintf("%s process  %s: %s", clock(d.At), d.Process, d.Harm)
	if d.For > 0 {
		text += " for " + d.For.String()
	}
	return text
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000000") }

// explained bounds the lines of an explanation.
const explained = 60

// Explain lists the events of a task, and of the processes meanwhile, in order. It leaves out reads that have shown
// nothing new.
func (h *History) Explain(task string) string {
	type line struct {
		at   time.Time
		text string
		same string // is that of lines that say the same; "" is said by no other
	}
	var lines []line
	var nonces []string
	for _, o := range h.Operations {
		if o.Task == task && o.Action == ActionCreate {
			nonces = append(nonces, o.Nonce)
		}
	}
	for _, o := range h.Operations {
		if o.Task == task || o.Nonce != "" && slices.Contains(nonces, o.Nonce) {
			lines = append(lines, line{o.Called, o.String(), o.sameness()})
		}
	}
	for _, r := range h.Runs {
		if r.Task == task {
			lines = append(lines, line{r.At, r.String(), ""})
		}
	}
	byTime := func(a, b line) int { return a.at.Compare(b.at) }
	slices.SortFunc(lines, byTime)
	if len(lines) == 0 {
		return "(nothing is known of it)"
	}
	from, to := lines[0].at.Add(-time.Second), lines[len(lines)-1].at.Add(time.Second)
	for _, d := range h.Processes {
		if !d.At.Before(from) && !d.At.After(to) {
			lines = append(lines, line{d.At, d.String(), ""})
		}
	}
	slices.SortFunc(lines, byTime)
	lines = slices.CompactFunc(lines, func(a, b line) bool { return a.same != "" && a.same == b.same })
	var b strings.Builder
	for i, l := range lines {
		if len(lines) > explained && i == explained/2 {
			fmt.Fprintf(&b, "  ... %d lines ...\n", len(lines)-explained)
		}
		if len(lines) <= explained || i < explained/2 || i >= len(lines)-explained/2 {
			fmt.Fprintf(&b, "  %s\n", l.text)
		}
	}
	return b.String()
}
