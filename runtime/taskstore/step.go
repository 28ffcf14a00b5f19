package taskstore

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Step is a value that a run of a task has stored under a name, so that a later run need not do the work again. The
// values of a task can be read with [Store.Steps].
type Step struct {
	// Name is the step's key within its task.
	Name string
	Kind StepKind
	// Value is JSON.
	Value json.RawMessage
	// At is when the step was stored, by the store's clock.
	At time.Time
	// Attempt is the run that has stored it.
	Attempt int
}

// StepSummary describes a step without its value.
type StepSummary struct {
	Name string
	Kind StepKind
	// ValueSize is how many bytes the value has.
	ValueSize int
	At        time.Time
	Attempt   int
}

// SummarizeSteps returns the summaries of steps.
func SummarizeSteps(steps []Step) []StepSummary {
	list := make([]StepSummary, len(steps))
	for i, s := range steps {
		list[i] = StepSummary{Name: s.Name, Kind: s.Kind, ValueSize: len(s.Value), At: s.At, Attempt: s.Attempt}
	}
	return list
}

// StepKind says what the value of a step is.
type StepKind string

// The kinds of steps.
const (
	// StepDone is the result of a [mcptask.Step]. It never changes.
	StepDone StepKind = "done"
	// StepPosition is the value of the last [mcptask.Save].
	StepPosition StepKind = "position"
	// StepSleep is the time at which a [mcptask.Sleep] ends. It never changes.
	StepSleep StepKind = "sleep"
)

// stepOverhead is what a step counts beside its name and its value, so that tiny steps count too.
const stepOverhead = 64

// Size returns how many bytes of a step count in [Record.StepBytes].
func (s *Step) Size() int64 { return int64(len(s.Name) + len(s.Value) + stepOverhead) }

// SortSteps sorts steps as [Store.Steps] returns them: oldest first, and those of the same time by name.
func SortSteps(steps []Step) {
	slices.SortFunc(steps, func(a, b Step) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Name, b.Name)) })
}
