package durable

import (
	"fmt"
	"math"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// zeroTime is the stored form of the zero time.
const zeroTime = math.MinInt64

// Micros returns the stored form of a time: microseconds since 1970, or a mark for the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return zeroTime
	}
	return t.UnixMicro()
}

// Time returns the time that Micros has stored.
func Time(micros int64) time.Time {
	if micros == zeroTime {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// phases and outcomes are the stored numbers of phases and outcomes. A task is unfinished as long
// as its number is less than [PhaseDone].
var (
	phases = map[taskstore.Phase]int64{
		taskstore.PhaseQueued: 0, taskstore.PhaseRunning: 1, taskstore.PhaseInputRequired: 2, taskstore.PhaseDone: PhaseDone, "": 3,
	}
	outcomes = map[taskstore.OutcomeKind]int64{
		taskstore.OutcomeResult: 1, taskstore.OutcomeError: 2, taskstore.OutcomeCancelled: 3, "": 4,
	}
)

// PhaseDone is the number of the phase of all tasks that have ended.
const PhaseDone = 9

// PhaseNumber returns the stored number of a phase. An unknown phase has -1.
func PhaseNumber(p taskstore.Phase) int64 { return numberOf(phases, p) }

// OutcomeNumber returns the stored number of an outcome: 0 for none yet.
func OutcomeNumber(o *taskstore.Outcome) int64 {
	if o == nil {
		return 0
	}
	return numberOf(outcomes, o.Kind)
}

// OutcomeKindNumber returns the stored number of a kind of outcome. An unknown kind has -1.
func OutcomeKindNumber(k taskstore.OutcomeKind) int64 { return numberOf(outcomes, k) }

// PhaseOf returns the phase with a stored number.
func PhaseOf(number int64) (taskstore.Phase, error) {
	p, ok := valueOf(phases, number)
	if !ok {
		return "", fmt.Errorf("the stored number %d is unknown: a newer version of mcptask has written it, or it is damaged", number)
	}
	return p, nil
}

// OutcomeOf returns an outcome of the kind with a stored number: nil for 0.
func OutcomeOf(number int64, isError bool) (*taskstore.Outcome, error) {
	if number == 0 {
		return nil, nil //nolint:nilnil // no outcome yet
	}
	kind, ok := valueOf(outcomes, number)
	if !ok {
		return nil, fmt.Errorf("the stored number %d is unknown: a newer version of mcptask has written it, or it is damaged", number)
	}
	return &taskstore.Outcome{Kind: kind, IsError: isError}, nil
}

// checkRecord refuses a record that has no stored form.
func checkRecord(r *taskstore.Record) error {
	if PhaseNumber(r.Phase) < 0 {
		return fmt.Errorf("the phase %q of task %q is unknown", r.Phase, r.ID)
	}
	if OutcomeNumber(r.Outcome) < 0 {
		return fmt.Errorf("the outcome %q of task %q is unknown", r.Outcome.Kind, r.ID)
	}
	return nil
}

func numberOf[V comparable](numbers map[V]int64, v V) int64 {
	if n, ok := numbers[v]; ok {
		return n
	}
	return -1
}

func valueOf[V comparable](numbers map[V]int64, number int64) (V, bool) {
	for v, n := range numbers {
		if n == number {
			return v, true
		}
	}
	var none V
	return none, false
}
